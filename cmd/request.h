/* SPDX-License-Identifier: BSD-2-Clause */
/* A server accepts a connection request, or rejects it with a reason, which our clients print. */
#ifndef CMD_REQUEST_H
#define CMD_REQUEST_H

#include "cmd/run.h"

/*
 * Calls accept, which allocates what the connection needs and calls endpoint_accept(). If it fails, rejects the request
 * with the cause of its first error: the request's endpoint is gone. OUTCOME_NO_CONNECTION: the client has withdrawn
 * the request.
 */
enum outcome request_accept(struct environment *environment, struct endpoint *request,
			    enum outcome (*accept)(void *context), void *context);

#endif
