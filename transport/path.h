/* SPDX-License-Identifier: BSD-2-Clause */
/* The path that was asked for, made into what backends take. */
#ifndef TRANSPORT_PATH_H
#define TRANSPORT_PATH_H

#include "transport/backend.h"

/*
 * If the endpoint's options name an interface or a device: where *source is open (without a family, or the any address)
 * puts a local address of that family there which belongs to it; the port stays. Tells if there is none, or the one
 * that was given does not belong to it: OUTCOME_NO_CONNECTION.
 */
enum outcome path_find_source(const struct endpoint *endpoint, enum address_family family, struct address *source);

/*
 * If the endpoint's options name an interface, makes it the scope of a link-local address that has none. Tells if this
 * host does not have it: OUTCOME_NO_CONNECTION.
 */
enum outcome path_find_interface(const struct endpoint *endpoint, struct address *local);

/* True unless the options name an interface, and the endpoint's local address is not one of it. */
bool path_has_interface(const struct endpoint *endpoint);

#endif
