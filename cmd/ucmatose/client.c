/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client resolves the server and makes the connections: the first one alone, then up to UNDER_WAY_MAX at a time. If
 * the first one fails, the others are not tried: each would fail with the same error after its own timeout.
 */
#include "cmd/ucmatose/ucmatose.h"

static enum outcome start_resolving(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;
	const struct address *source = run->source.family ? &run->source : NULL;
	struct endpoint_options options = run->endpoint_options;
	enum outcome outcome;

	if (!connection->index) {
		ucmatose_figures_try(run, clock_now());
		options.log = &run->dial.log;
	}
	outcome = endpoint_create(ENDPOINT_CONNECTION, run->channel, &options, &ucmatose_connection_handlers,
				  connection, &connection->endpoint);
	if (!outcome)
		outcome = endpoint_resolve(connection->endpoint, source, &run->dial.address);
	return outcome;
}

static void begin_connection(struct ucmatose *run)
{
	struct ucmatose_connection *connection = ucmatose_connection_new(run);
	enum outcome outcome;

	if (!connection->index) {
		dial_begin(&run->dial);
		return;
	}
	outcome = start_resolving(connection);
	if (outcome)
		ucmatose_connection_fail(connection, outcome);
}

void ucmatose_client_attempt_failed(struct ucmatose_connection *connection, enum outcome outcome, bool busy)
{
	if (connection->index)
		ucmatose_connection_fail(connection, outcome);
	else
		dial_failed(&connection->run->dial, outcome, busy);
}

void ucmatose_client_connect_more(struct ucmatose *run)
{
	while (!run->no_more_connections && run->begun < run->wanted) {
		uint32_t connecting = run->in_state[CONNECTION_CONNECTING];
		uint32_t failed = run->in_state[CONNECTION_FAILED];

		if ((run->begun && failed == run->begun) || loop_deadline_passed(run->environment->loop)) {
			run->no_more_connections = true;
			return;
		}
		/* Until one connection is established, only one is in progress. */
		if (connecting >= (connecting + failed == run->begun ? 1 : UNDER_WAY_MAX))
			return;
		begin_connection(run);
	}
	run->no_more_connections = true;
}

/* ---- the dial of the first connection ---- */

static enum outcome connect_first(void *context)
{
	struct ucmatose *run = context;

	run->device = NULL;
	ucmatose_connection_reset(&run->connections[0]);
	return start_resolving(&run->connections[0]);
}

static void paused(void *context)
{
	struct ucmatose *run = context;

	ucmatose_connection_reset(&run->connections[0]);
}

static void resumed(void *context)
{
	struct ucmatose *run = context;

	dial_begin(&run->dial);
	ucmatose_advance(run);
}

static void dial_over(void *context, enum outcome outcome)
{
	struct ucmatose *run = context;

	dial_give_up(&run->dial);
	ucmatose_connection_fail(&run->connections[0], outcome);
}

enum outcome ucmatose_client_start(struct ucmatose *run)
{
	static const struct dial_handlers handlers = {
		.connect = connect_first,
		.paused = EXTRA(paused),
		.resumed = EXTRA(resumed),
		.failed = dial_over,
	};
	enum outcome outcome;

	dial_initialise(&run->dial,
			&(struct dial_options){
				.handlers = &handlers,
				.context = run,
				.environment = run->environment,
				.log = &run->environment->log,
				.common = &run->options->common,
				.format = (enum address_format)run->options->format,
				.host = run->options->server,
				.port = (uint16_t)run->options->port,
				.server = run->options->port_space == PORT_SPACE_IB ? "ucmatose -P ib" : "ucmatose",
				.transport = run->environment->transport,
				.wait_server = run->options->wait_server,
			});
	dial_look_up(&run->dial);
	outcome = dial_looked_up(&run->dial, run->source.family);
	if (!outcome && address_is_multicast(&run->dial.resolver.addresses[0])) {
		log_error(&run->environment->log, "-s", "'%s' is a multicast group, not a host", run->options->server);
		outcome = OUTCOME_USAGE;
	}
	if (outcome)
		return outcome;
	environment_print(run->environment, "cmatose: connecting");
	ucmatose_begin_connecting(run);
	return OUTCOME_OK;
}
