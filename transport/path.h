/* SPDX-License-Identifier: BSD-2-Clause */
/* Applies --interface, --device and related options: finds local addresses. */
#ifndef TRANSPORT_PATH_H
#define TRANSPORT_PATH_H

#include "transport/backend.h"

/*
 * If the endpoint's options name an interface or device: sets *source, if it has no family or is the any address, to a
 * local address of family that belongs to it; keeps the port. Sets the error and returns OUTCOME_NO_CONNECTION if there
 * is none, or if the given source does not belong to it.
 */
enum outcome path_find_source(const struct endpoint *endpoint, enum address_family family, struct address *source);

/*
 * If the endpoint's options name an interface, sets it as the scope of a link-local address without one. Sets the error
 * and returns OUTCOME_NO_CONNECTION if there is no such interface.
 */
enum outcome path_find_interface(const struct endpoint *endpoint, struct address *local);

/* Returns false if the options name an interface that does not have the endpoint's local address. */
bool path_has_interface(const struct endpoint *endpoint);

#endif
