/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client resolves the server and makes the connections: the first one alone, then up to CONNECTS_MOST at a time. If
 * the first one fails, the others are not tried: each would fail with the same error after its own timeout.
 */

#include "cmd/ucmatose/ucmatose.h"

enum {
	/*
	 * Connections in progress at once. A listener drops requests beyond its backlog, and a client resends a
	 * dropped request after five seconds. The smallest backlog in use is 128.
	 */
	CONNECTS_MOST = 48,
};

/* ---- errors of the first connection ---- */

void ucmatose_client_release(struct ucmatose *run)
{
	if (run->refused && !run->mismatched)
		log_report(&run->environment->log, &run->refusal);
	run->refused = false;
}

/* The hello in a rejection may give the reason: then the error of the connection request says no more. */
static bool hold_refusal(struct ucmatose *run, const struct error *error)
{
	const struct endpoint *first = run->connections[0].endpoint;

	if (!first || first->state != ENDPOINT_CONNECTING)
		return false;
	ucmatose_client_release(run);
	run->refusal = *error;
	run->refused = true;
	return true;
}

static void report_error(const struct log *log, const struct error *error)
{
	struct ucmatose *run = log->context;
	char text[ERROR_TEXT_SIZE];

	if (!run->retry.until && run->address_next < run->address_count)
		log_hint(&run->environment->log, "%s: %s", error->object, error_text(error, text));
	else if (!retry_hold(&run->retry, error) && !hold_refusal(run, error))
		log_report(&run->environment->log, error);
}

static void report_hint(const struct log *log, const char *text)
{
	const struct ucmatose *run = log->context;

	if (!retry_holds(&run->retry))
		log_hint(&run->environment->log, "%s", text);
}

static const struct log_sink sink = { .error = report_error, .hint = report_hint };

/* ---- its addresses ---- */

static void use_next_address(struct ucmatose *run)
{
	run->destination = run->addresses[run->address_next++];
	run->device = NULL;
	address_text(&run->destination, run->target);
}

static enum outcome start_resolving(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;
	const struct address *source = run->source.family ? &run->source : NULL;
	struct endpoint_options options = run->endpoint_options;
	enum outcome outcome;

	if (!connection->index) {
		ucmatose_figures_try(&run->figures, clock_now());
		options.log = &run->first_log;
	}
	outcome = endpoint_create(ENDPOINT_CONNECTION, run->channel, &options, &ucmatose_connection_handlers,
				  connection, &connection->endpoint);
	ucmatose_connection_begin_step(connection);
	if (!outcome)
		outcome = endpoint_resolve(connection->endpoint, source, &run->destination);
	return outcome;
}

static void resolve_or_retry(struct ucmatose_connection *connection)
{
	enum outcome outcome = start_resolving(connection);

	if (outcome && !ucmatose_client_retry(connection))
		ucmatose_connection_fail(connection, outcome);
}

static void begin_connection(struct ucmatose *run)
{
	if (!run->begun)
		retry_begin(&run->retry, run->options->wait_server);
	resolve_or_retry(ucmatose_connection_new(run));
}

static void retry_first(void *owner)
{
	struct ucmatose *run = owner;

	run->address_next = 0;
	use_next_address(run);
	resolve_or_retry(&run->connections[0]);
	ucmatose_advance(run);
}

/* A name may have several addresses; not all of them need lead to an RDMA device or to the server. */
static bool try_next_address(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;

	while (run->address_next < run->address_count) {
		ucmatose_connection_reset(connection);
		ucmatose_client_release(run);
		use_next_address(run);
		log_hint(&run->first_log, "trying the next address of %s: %s", run->options->server, run->target);
		if (!start_resolving(connection))
			return true;
	}
	return false;
}

bool ucmatose_client_retry(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;

	if (connection->endpoint && connection->endpoint->absent)
		retry_absent(&run->retry);
	if (try_next_address(connection))
		return true;
	if (retry_again(&run->retry, run->environment->loop, retry_first, run)) {
		ucmatose_connection_reset(connection);
		return true;
	}
	retry_give_up(&run->retry, &run->environment->log);
	return false;
}

void ucmatose_client_connect_more(struct ucmatose *run)
{
	while (!run->no_more_connections && run->begun < run->wanted) {
		uint32_t connecting = run->in_state[CONNECTION_CONNECTING];
		uint32_t failed = run->in_state[CONNECTION_FAILED];

		if (run->begun && failed == run->begun) {
			run->no_more_connections = true;
			return;
		}
		/* Until one connection is established, only one is in progress. */
		if (connecting >= (connecting + failed == run->begun ? 1 : CONNECTS_MOST))
			return;
		begin_connection(run);
	}
	run->no_more_connections = true;
}

static void server_resolved(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct ucmatose *run = owner;
	const struct log *log = &run->environment->log;

	if (!outcome)
		outcome = path_keep(&run->options->common.family, run->source.family, log, run->options->server,
				    addresses, count, run->addresses, &run->address_count);
	if (!outcome && address_is_multicast(&run->addresses[0])) {
		log_error(log, "-s", "'%s' is a multicast group, not a host", run->options->server);
		outcome = OUTCOME_USAGE;
	}
	if (outcome) {
		ucmatose_fail_start(run, outcome);
		return;
	}
	for (size_t i = 0; i < run->address_count; i++)
		run->addresses[i].port = (uint16_t)run->options->port;
	use_next_address(run);
	run->first_log = run->environment->log;
	run->first_log.sink = &sink;
	run->first_log.context = run;
	ucmatose_print(run, "cmatose: connecting");
	ucmatose_begin_connecting(run);
}

void ucmatose_client_start(struct ucmatose *run)
{
	resolver_start(&run->server_resolver, run->environment->loop, &run->environment->log, run->options->server,
		       (enum address_format)run->options->format, run->options->common.timeout, server_resolved, run);
}
