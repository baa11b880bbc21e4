/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of one connection. Client: connecting, established, receiving, sending, transferred, closed (the server
 * disconnects). Server: connecting (accepting), established until all other connections are, sending, receiving,
 * transferred, disconnecting, closed. A connection may fail in each state from connecting to disconnecting.
 */
#include <inttypes.h>

#include "cmd/ucmatose/ucmatose.h"
#include "core/state.h"

#define NEXT(state) STATE_BIT(CONNECTION_##state)
#define END	    (NEXT(DISCONNECTING) | NEXT(FAILED)) /* from established on */

/* clang-format off */
static const struct state_row states[CONNECTION_STATES] = {
	[CONNECTION_NEW] =           { .text = "new",           .next = NEXT(CONNECTING) },
	[CONNECTION_CONNECTING] =    { .text = "connecting",    .next = NEXT(NEW) | NEXT(ESTABLISHED) | NEXT(FAILED) },
	[CONNECTION_ESTABLISHED] =   { .text = "established",   .next = NEXT(RECEIVING) | NEXT(SENDING) | NEXT(TRANSFERRED) | END },
	[CONNECTION_RECEIVING] =     { .text = "receiving",     .next = NEXT(SENDING) | NEXT(TRANSFERRED) | END },
	[CONNECTION_SENDING] =       { .text = "sending",       .next = NEXT(RECEIVING) | NEXT(TRANSFERRED) | END },
	[CONNECTION_TRANSFERRED] =   { .text = "transferred",   .next = NEXT(CLOSED) | END },
	[CONNECTION_DISCONNECTING] = { .text = "disconnecting", .next = NEXT(CLOSED) | NEXT(FAILED) },
	[CONNECTION_CLOSED] =        { .text = "closed" },
	[CONNECTION_FAILED] =        { .text = "failed" },
};
/* clang-format on */

struct ucmatose_connection *ucmatose_connection_new(struct ucmatose *run)
{
	uint32_t i = run->in_state[CONNECTION_NEW] ? 0 : run->begun;
	struct ucmatose_connection *connection;

	while (i < run->begun && run->connections[i].state != CONNECTION_NEW)
		i++;
	if (i == run->begun) {
		run->begun++;
		run->in_state[CONNECTION_NEW]++;
	}
	connection = &run->connections[i];
	connection->run = run;
	connection->index = i;
	ucmatose_connection_enter(connection, CONNECTION_CONNECTING);
	return connection;
}

/* Updates the figures for the state entered. */
static void count_state(struct ucmatose *run, enum connection_state state)
{
	int64_t now = clock_now();

	if (state == CONNECTION_CONNECTING)
		ucmatose_figures_start(&run->figures, ACTIVITY_CONNECTING, now);
	else if (state == CONNECTION_ESTABLISHED)
		ucmatose_figures_count(&run->figures, ACTIVITY_CONNECTING, now);
	else if (state == CONNECTION_SENDING)
		ucmatose_figures_start(&run->figures, ACTIVITY_SENDING, now);
	else if (state == CONNECTION_RECEIVING)
		ucmatose_figures_start(&run->figures, ACTIVITY_RECEIVING, now);
	else if (state == CONNECTION_FAILED)
		run->figures.failed++;
}

static void end_step(struct ucmatose_connection *connection, enum step step, const struct endpoint_event *event)
{
	if (WITH_REPORT)
		histogram_add(&connection->run->figures.steps[step], event->took);
}

void ucmatose_connection_enter(struct ucmatose_connection *connection, enum connection_state state)
{
	struct ucmatose *run = connection->run;

	state_change(states, connection->state, state, &run->environment->log, "connection %" PRIu32,
		     connection->index);
	run->in_state[connection->state]--;
	run->in_state[state]++;
	connection->state = state;
	count_state(run, state);
}

static void write_record(const struct ucmatose_connection *connection)
{
	struct report *report = environment_begin_record(connection->run->environment, "connection");

	if (!report)
		return;
	report_count(report, "index", connection->index);
	report_text(report, "peer", connection->endpoint ? connection->endpoint->name : NULL);
	report_text(report, "state", states[connection->state].text);
	report_count(report, "sent", connection->acknowledged);
	report_count(report, "received", connection->received);
	environment_end_record(connection->run->environment);
}

static void drop_endpoint(struct ucmatose_connection *connection)
{
	struct endpoint *endpoint = connection->endpoint;

	write_record(connection);
	connection->endpoint = NULL;
	endpoint_destroy(endpoint);
}

void ucmatose_connection_fail(struct ucmatose_connection *connection, enum outcome outcome)
{
	environment_record_outcome(connection->run->environment, outcome);
	ucmatose_connection_enter(connection, CONNECTION_FAILED);
	drop_endpoint(connection);
}

void ucmatose_connection_close(struct ucmatose_connection *connection)
{
	ucmatose_connection_enter(connection, CONNECTION_CLOSED);
	drop_endpoint(connection);
}

void ucmatose_connection_disconnect(struct ucmatose_connection *connection)
{
	enum outcome outcome = endpoint_disconnect(connection->endpoint);

	if (outcome)
		ucmatose_connection_fail(connection, outcome);
	else
		ucmatose_connection_enter(connection, CONNECTION_DISCONNECTING);
}

void ucmatose_connection_reset(struct ucmatose_connection *connection)
{
	if (connection->endpoint)
		endpoint_destroy(connection->endpoint);
	connection->endpoint = NULL;
	connection->posted = 0;
	connection->peer_is_ours = false;
	connection->peer_window = 0;
}

void ucmatose_hello_write(const struct ucmatose *run, const struct ucmatose_connection *connection,
			  uint8_t bytes[HELLO_SIZE])
{
	const struct hello hello = {
		.tool = HELLO_UCMATOSE,
		.run = run->client_id,
		.capacity = (uint32_t)run->options->size,
		.connections = run->wanted,
		.count = run->messages,
		.connection = connection ? connection->index : 0,
		.window = connection && connection->memory ? connection->memory->slots : 0,
	};

	hello_write(&hello, bytes);
}

bool ucmatose_hello_agrees(struct ucmatose *run, const char *object, const struct hello *hello)
{
	/* Without messages their size may differ. */
	if (hello->connections == run->wanted && hello->count == run->messages &&
	    (!run->messages || hello->capacity == run->options->size))
		return true;
	run->mismatched = true;
	environment_record_outcome(run->environment, OUTCOME_FAILED);
	log_error(&run->environment->log, object,
		  "the two ends do not agree: the peer runs with -c %" PRIu32 " -C %" PRIu64 " -S %" PRIu32
		  ", this end with -c %" PRIu32 " -C %" PRIu64 " -S %" PRId64,
		  hello->connections, hello->count, hello->capacity, run->wanted, run->messages, run->options->size);
	return false;
}

void ucmatose_hello_apply(struct ucmatose_connection *connection, const struct hello *hello)
{
	connection->peer_is_ours = true;
	/* The seeds of the two directions differ: a device that returns our own message fails the check. */
	connection->send_seed = 2 * connection->index + connection->run->is_server;
	connection->receive_seed = 2 * hello->connection + !connection->run->is_server;
	connection->peer_window = hello->window;
}

static bool read_hello(const struct endpoint_event *event, struct hello *hello)
{
	return hello_read(event->private_data, event->private_length, HELLO_UCMATOSE, hello);
}

/* The route is resolved: the client sends the connection request. */
static void request_connection(struct ucmatose_connection *connection)
{
	uint8_t bytes[HELLO_SIZE];
	enum outcome outcome = ucmatose_transfer_prepare(connection);

	if (!outcome) {
		ucmatose_hello_write(connection->run, connection, bytes);
		outcome = endpoint_connect(connection->endpoint, bytes, sizeof(bytes));
	}
	if (outcome)
		ucmatose_client_attempt_failed(connection, outcome, false);
}

static void connection_established(struct ucmatose_connection *connection, const struct endpoint_event *event)
{
	struct ucmatose *run = connection->run;
	struct hello hello;

	end_step(connection, run->is_server ? STEP_ACCEPT : STEP_CONNECT, event);
	if (WITH_REPORT && !run->figures.activities[ACTIVITY_CONNECTING].count)
		endpoint_path(connection->endpoint, &run->figures.path);
	if (!connection->index)
		dial_stop(&run->dial);
	if (!run->is_server && read_hello(event, &hello)) {
		if (!ucmatose_hello_agrees(run, connection->endpoint->name, &hello)) {
			ucmatose_connection_fail(connection, OUTCOME_FAILED);
			return;
		}
		ucmatose_hello_apply(connection, &hello);
	} else if (!run->is_server && hello_read(event->private_data, event->private_length, HELLO_RPING, &hello)) {
		log_error(&run->environment->log, connection->endpoint->name, "the server is rping, not ucmatose");
		ucmatose_connection_fail(connection, OUTCOME_FAILED);
		return;
	}
	ucmatose_connection_enter(connection, CONNECTION_ESTABLISHED);
	/* The client starts at once: the server's first message may already have arrived. */
	if (!run->is_server)
		ucmatose_transfer_begin(connection);
}

static void ucmatose_connection_failed(struct ucmatose_connection *connection, const struct endpoint_event *event)
{
	struct ucmatose *run = connection->run;
	bool connecting = connection->state == CONNECTION_CONNECTING;
	struct hello hello;

	if (connecting && run->is_server && !run->no_more_connections && event->outcome == OUTCOME_NO_CONNECTION) {
		ucmatose_server_drop_request(connection);
		return;
	}
	if (connecting && read_hello(event, &hello) &&
	    !ucmatose_hello_agrees(run, connection->endpoint->name, &hello)) {
		dial_stop(&run->dial);
	} else if (connecting && !run->is_server) {
		ucmatose_client_attempt_failed(connection, event->outcome,
					       hello_says_busy(event->private_data, event->private_length));
		return;
	}
	ucmatose_connection_fail(connection, event->outcome);
}

static void connection_disconnected(struct ucmatose_connection *connection, const struct endpoint_event *event)
{
	struct ucmatose *run = connection->run;
	char cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];

	switch (connection->state) {
	case CONNECTION_TRANSFERRED:
		/* -m also migrates connections that the server has already disconnected. */
		connection->peer_disconnected = run->options->migrate && run->phase < UCMATOSE_CLOSING;
		if (!connection->peer_disconnected)
			ucmatose_connection_close(connection);
		return;
	case CONNECTION_DISCONNECTING:
		end_step(connection, STEP_DISCONNECT, event);
		ucmatose_connection_close(connection);
		return;
	case CONNECTION_SENDING:
		log_error(&run->environment->log, connection->endpoint->name,
			  "connection %" PRIu32 ": the peer disconnected before it acknowledged message %" PRIu64
			  " of %" PRIu64 "%s",
			  connection->index, connection->acknowledged + 1, run->messages,
			  endpoint_timeout_cause(connection->endpoint, cause));
		break;
	case CONNECTION_RECEIVING:
		log_error(&run->environment->log, connection->endpoint->name,
			  "connection %" PRIu32 ": the peer disconnected after %" PRIu64 " of %" PRIu64 " messages%s",
			  connection->index, connection->received, run->messages,
			  endpoint_timeout_cause(connection->endpoint, cause));
		break;
	default:
		log_error(&run->environment->log, connection->endpoint->name,
			  "connection %" PRIu32 ": the peer disconnected before the first message%s", connection->index,
			  endpoint_timeout_cause(connection->endpoint, cause));
		break;
	}
	ucmatose_connection_fail(connection, OUTCOME_FAILED);
}

static void connection_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct ucmatose_connection *connection = context;

	(void)endpoint;
	ucmatose_progressed(connection->run);
	switch (event->kind) {
	case EVENT_ADDRESS_RESOLVED:
		end_step(connection, STEP_RESOLVE_ADDRESS, event);
		break;
	case EVENT_ROUTE_RESOLVED:
		end_step(connection, STEP_RESOLVE_ROUTE, event);
		request_connection(connection);
		break;
	case EVENT_ESTABLISHED:
		connection_established(connection, event);
		break;
	case EVENT_DISCONNECTED:
		connection_disconnected(connection, event);
		break;
	case EVENT_FAILED:
		ucmatose_connection_failed(connection, event);
		break;
	default:
		break;
	}
	ucmatose_advance(connection->run);
}

const struct endpoint_handlers ucmatose_connection_handlers = {
	.event = connection_event,
	.completion = ucmatose_transfer_completion,
};
