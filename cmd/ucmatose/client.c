/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client makes its connections: the first one alone, then a number of them at a time. If the first one fails, the
 * server cannot be reached, and a thousand more messages that say so, each after its own time-out, help nobody.
 */
#include "cmd/ucmatose/ucmatose.h"

enum {
	/*
	 * Connections under way at once. A listener drops a request beyond its backlog, which costs its client five
	 * seconds, and the smallest backlog in use is 128.
	 */
	CONNECTS_MOST = 48,
};

static void begin_one(struct ucmatose *run)
{
	struct ucmatose_connection *connection = ucmatose_connection_new(run);
	const struct address *source = run->source.family ? &run->source : NULL;
	enum outcome outcome;

	outcome = endpoint_create(ENDPOINT_CONNECTION, run->channel, &run->endpoint_options,
				  &ucmatose_connection_handlers, connection, &connection->endpoint);
	ucmatose_connection_begin_step(connection);
	if (!outcome)
		outcome = endpoint_resolve(connection->endpoint, source, &run->destination);
	if (outcome)
		ucmatose_connection_fail(connection, outcome);
}

void ucmatose_client_continue(struct ucmatose *run)
{
	while (!run->arrivals_over && run->begun < run->wanted) {
		uint32_t connecting = run->in_state[CONNECTION_CONNECTING];
		uint32_t failed = run->in_state[CONNECTION_FAILED];

		if (run->begun && failed == run->begun) {
			run->arrivals_over = true;
			return;
		}
		/* Before the first success there is nothing but the first connection. */
		if (connecting >= (connecting + failed == run->begun ? 1 : CONNECTS_MOST))
			return;
		begin_one(run);
	}
	run->arrivals_over = true;
}
