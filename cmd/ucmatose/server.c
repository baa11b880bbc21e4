/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server accepts connections. It waits for the first request without a limit, or up to --idle-timeout. Each further
 * one must come within --timeout of the last progress: otherwise the run continues with the connections it has, and
 * fails.
 */
#include <string.h>

#include "cmd/request.h"
#include "cmd/ucmatose/ucmatose.h"
#include "core/units.h"

/*
 * A stock client requests all connections at once and then handles the accepts one by one. On a slow host a thousand of
 * them take longer than --timeout. A server allows one more timeout for each 256 connections.
 */
enum {
	STOCK_ACCEPTS_PER_TIMEOUT = 256
};

static void idle_timeout_expired(void *context)
{
	struct ucmatose *run = context;

	log_error(&run->environment->log, NULL, "no client came for %g s (--idle-timeout)",
		  units_seconds(run->options->idle_timeout));
	environment_record_outcome(run->environment, OUTCOME_FAILED);
	run->no_more_connections = true;
	ucmatose_advance(run);
}

static void start_idle_timer(struct ucmatose *run)
{
	if (run->options->idle_timeout)
		loop_timer_start(run->environment->loop, &run->progress_timer, run->options->idle_timeout,
				 idle_timeout_expired, run);
}

static enum outcome prepare_and_accept(void *context)
{
	struct ucmatose_connection *connection = context;
	uint8_t bytes[HELLO_SIZE];
	enum outcome outcome = ucmatose_transfer_prepare(connection);

	if (outcome)
		return outcome;
	ucmatose_hello_write(connection->run, connection, bytes);
	return endpoint_accept(connection->endpoint, bytes, sizeof(bytes));
}

static void accept_request(struct ucmatose *run, struct endpoint *request, const struct hello *hello)
{
	struct ucmatose_connection *connection = ucmatose_connection_new(run);
	enum outcome outcome;

	connection->endpoint = request;
	request->handlers = &ucmatose_connection_handlers;
	request->context = connection;
	if (ucmatose_connection_count(run) == 1)
		ucmatose_figures_restart(&run->figures, ACTIVITY_CONNECTING, clock_now());
	if (hello) {
		ucmatose_hello_apply(connection, hello);
		run->client_id = run->client_id ? run->client_id : hello->run;
	} else {
		request->options.timeout *= 1 + run->wanted / STOCK_ACCEPTS_PER_TIMEOUT;
	}
	outcome = request_accept(run->environment, request, prepare_and_accept, connection);
	if (!outcome)
		return;
	connection->endpoint = NULL;
	if (outcome == OUTCOME_NO_CONNECTION)
		ucmatose_server_drop_request(connection);
	else
		ucmatose_connection_fail(connection, outcome);
}

/*
 * Called after each request that is accepted or fails, and after the first mismatch. Other rejected requests must not
 * restart the progress timer: they would delay the failure of a run whose clients are silent.
 */
static void wait_for_next(struct ucmatose *run)
{
	ucmatose_progressed(run);
	if (ucmatose_connection_count(run) || run->mismatched) {
		ucmatose_start_progress_timer(run);
		return;
	}
	/* No client is left: back to the initial state. */
	run->client_id = 0;
	run->device = NULL;
	loop_timer_stop(&run->progress_timer);
	start_idle_timer(run);
}

void ucmatose_server_drop_request(struct ucmatose_connection *connection)
{
	ucmatose_connection_reset(connection);
	ucmatose_connection_enter(connection, CONNECTION_NEW);
	wait_for_next(connection->run);
}

static void reject_request(struct ucmatose *run, struct endpoint *request, const char *reason)
{
	if (!run->figures.refused)
		environment_print(run->environment, "cmatose: refusing a connection: %s", reason);
	run->figures.refused++;
	endpoint_reject(request, reason, strlen(reason));
}

static void request_received(struct ucmatose *run, const struct endpoint_event *event)
{
	uint8_t bytes[HELLO_SIZE];
	struct hello hello;
	bool mismatched = run->mismatched;
	bool said_hello = hello_read(event->private_data, event->private_length, HELLO_UCMATOSE, &hello);

	if (!ucmatose_wants_more(run)) {
		reject_request(run, event->request, HELLO_FULL);
		return;
	}
	if (said_hello && hello.run && run->client_id && hello.run != run->client_id) {
		reject_request(run, event->request, HELLO_BUSY);
		return;
	}
	if (said_hello && !ucmatose_hello_agrees(run, event->request->name, &hello)) {
		ucmatose_hello_write(run, NULL, bytes); /* the client logs the difference too */
		endpoint_reject(event->request, bytes, sizeof(bytes));
		if (mismatched)
			return;
	} else {
		accept_request(run, event->request, said_hello ? &hello : NULL);
	}
	wait_for_next(run);
}

/* The transport could not create the endpoint of a request that was wanted: the connection has failed. */
static void request_failed(struct ucmatose *run, enum outcome outcome)
{
	ucmatose_connection_fail(ucmatose_connection_new(run), outcome);
	wait_for_next(run);
}

static void server_listener_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct ucmatose *run = context;

	(void)endpoint;
	if (event->kind == EVENT_REQUEST) {
		request_received(run, event);
	} else if (event->kind == EVENT_REQUEST_FAILED && ucmatose_wants_more(run)) {
		request_failed(run, event->outcome);
	} else if (event->kind == EVENT_FAILED) {
		environment_record_outcome(run->environment, event->outcome);
		run->no_more_connections = true;
	}
	ucmatose_advance(run);
}

enum outcome ucmatose_server_start(struct ucmatose *run)
{
	static const struct endpoint_handlers handlers = { .event = server_listener_event };
	enum outcome outcome;

	run->source.port = (uint16_t)run->options->port;
	outcome = endpoint_create(ENDPOINT_LISTENER, run->channel, &run->endpoint_options, &handlers, run,
				  &run->listener);
	if (!outcome)
		outcome = endpoint_listen(run->listener, &run->source);
	if (outcome)
		return outcome;
	start_idle_timer(run);
	ucmatose_begin_connecting(run);
	environment_listens(run->environment, run->listener, run->options->bind, "cmatose", "listening");
	return OUTCOME_OK;
}
