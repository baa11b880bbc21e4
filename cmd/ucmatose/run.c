/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The run. Each callback of the loop changes the state of a connection, ends what failed, and then calls advance(),
 * which begins the next phase.
 *
 * A client makes its first connection alone, then up to UNDER_WAY_MAX at a time. A server waits for the first request
 * without a limit, or up to --idle-timeout. Each further one must come within --timeout of the last progress: otherwise
 * the run continues with the connections it has, and fails.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/ucmatose/ucmatose.h"

enum {
	/*
	 * A stock client requests all connections at once and then handles the accepts one by one. On a slow host a
	 * thousand of them take longer than --timeout. A server allows one more timeout for each 256 connections.
	 */
	STOCK_ACCEPTS_PER_TIMEOUT = 256,
};

/* There was progress: restarts the silence limit. May begin the next phase. */
static void advance(struct ucmatose *run);

/* ---- the silence limit ---- */

static void give_up(struct ucmatose *run, enum outcome outcome)
{
	environment_record_outcome(run->environment, outcome);
	run->no_more = true;
}

/* Completions only note their time: a timer that each of them restarts would cost more. */
static void silence_over(void *context)
{
	struct ucmatose *run = context;
	struct loop *loop = run->environment->loop;
	int64_t left = run->progressed + run->limit - clock_now();
	enum connection_state last = CONNECTION_RECEIVING; /* the transport limits the time of the others */
	char cause[LOOP_PHASE_TEXT_SIZE];

	if (!run->limit)
		return;
	if (left > 0 && !loop_deadline_passed(loop)) {
		loop_phase_start(loop, &run->silence, left, silence_over, run);
		return;
	}
	loop_phase_text(loop, run->limit, cause);
	if (run->is_server && ucmatose_wants_more(run)) {
		log_error(&run->environment->log, NULL,
			  "received only %" PRIu32 " of %" PRIu32 " connection requests: %s",
			  run->wanted - run->in_state[CONNECTION_NEW], run->wanted, cause);
		give_up(run, OUTCOME_FAILED);
	}
	if (run->phase == PHASE_CONNECTING)
		last = CONNECTION_NEW;
	else if (run->phase == PHASE_CLOSING && !run->is_server)
		last = CONNECTION_TRANSFERRED;
	for (uint32_t i = 0; i < run->wanted; i++)
		if (run->connections[i].state >= CONNECTION_SENDING && run->connections[i].state <= last)
			ucmatose_connection_fail(&run->connections[i], cause);
	advance(run);
}

/* ---- the connections ---- */

static bool hello_of(const struct endpoint_event *event, struct hello *hello)
{
	return hello_read(event->private_data, event->private_length, HELLO_UCMATOSE, hello);
}

/* Tells the peer our options: a client requests the connection, a server accepts it. */
static enum outcome greet(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;
	enum outcome outcome = ucmatose_messages_prepare(connection);

	if (outcome)
		return outcome;
	ucmatose_hello_write(run, connection->index);
	return run->is_server ? endpoint_accept(connection->endpoint, run->hello, sizeof(run->hello))
			      : endpoint_connect(connection->endpoint, run->hello, sizeof(run->hello));
}

/* The client withdrew the request or never confirmed the connection: another request may take its place. */
static void drop_request(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;

	environment_report_error(run->environment);
	ucmatose_connection_reset(connection);
	ucmatose_connection_enter(connection, CONNECTION_NEW);
	run->next = 0;
	if (run->in_state[CONNECTION_NEW] == run->wanted) {
		run->client_id = 0;
		run->device = NULL;
	}
}

static enum outcome connection_established(struct ucmatose_connection *connection, const struct endpoint_event *event)
{
	struct ucmatose *run = connection->run;

	if (!run->is_server && !run->stock &&
	    hello_check(&run->environment->log, "server", connection->endpoint, event, HELLO_UCMATOSE))
		return OUTCOME_FAILED;
	if (WITH_REPORT && !run->figures.rates[CONNECTION_CONNECTING].count)
		endpoint_path(connection->endpoint, &run->figures.path);
	ucmatose_figures_count(connection, CONNECTION_CONNECTING);
	run->stock |= !connection->peer_is_ours;
	ucmatose_connection_enter(connection, CONNECTION_ESTABLISHED);
	/* The client starts at once: the server's first message may already have arrived. */
	return run->is_server ? OUTCOME_OK : ucmatose_messages_begin(connection);
}

static void connection_failed(struct ucmatose_connection *connection, enum outcome outcome)
{
	struct ucmatose *run = connection->run;
	bool connecting = connection->state == CONNECTION_CONNECTING;

	if (connecting && run->is_server && !run->no_more && outcome == OUTCOME_NO_CONNECTION)
		drop_request(connection);
	else if (connecting && !run->is_server && !connection->index) /* it may be tried again */
		dial_failed(&run->dial, outcome);
	else
		ucmatose_connection_check(connection, outcome);
}

static void connection_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct ucmatose_connection *connection = context;
	struct ucmatose *run = connection->run;
	enum outcome outcome = OUTCOME_OK;
	struct hello hello;
	bool server_is_ours = !run->is_server && hello_of(event, &hello);

	run->progressed = clock_now();
	ucmatose_figures_time(run, event);
	switch (event->kind) {
	case EVENT_ROUTE_RESOLVED:
		outcome = greet(connection);
		break;
	case EVENT_ESTABLISHED:
		dial_stop(&run->dial);
		if (server_is_ours)
			ucmatose_hello_apply(connection, &hello);
		outcome = connection_established(connection, event);
		break;
	case EVENT_DISCONNECTED:
		if (connection->state == CONNECTION_DISCONNECTING || connection->state == CONNECTION_TRANSFERRED)
			ucmatose_connection_end(connection, CONNECTION_CLOSED);
		else
			ucmatose_connection_fail(connection, "the peer disconnected");
		break;
	case EVENT_FAILED:
		outcome = event->outcome;
		hello_explain_rejection(event, &run->environment->transport->error);
		if (server_is_ours && !ucmatose_hello_agrees(run, endpoint->name, &hello)) {
			dial_stop(&run->dial);
			outcome = OUTCOME_FAILED;
		}
		break;
	default:
		break;
	}
	if (outcome)
		connection_failed(connection, outcome);
	advance(run);
}

static void connection_completion(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	struct ucmatose_connection *connection = context;
	const enum connection_state before = connection->state;
	struct ucmatose *run = connection->run;
	enum outcome outcome;

	(void)endpoint;
	run->progressed = clock_now();
	outcome = ucmatose_messages_completed(connection, completion);
	if (outcome)
		ucmatose_connection_check(connection, outcome);
	if (connection->state != before) /* else no phase can have ended */
		advance(run);
}

static const struct endpoint_handlers connection_handlers = {
	.event = connection_event,
	.completion = connection_completion,
};

/* ---- a client ---- */

static enum outcome resolve(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;
	enum outcome outcome = endpoint_create(ENDPOINT_CONNECTION, run->channel, &run->endpoint_options,
					       &connection_handlers, connection, &connection->endpoint);

	if (outcome)
		return outcome;
	return endpoint_resolve(connection->endpoint, run->local.addresses, &run->dial.address);
}

/* The first one is made alone: if it fails, every other would fail with the same error after its own timeout. */
static void connect_others(struct ucmatose *run)
{
	if (!ucmatose_good(run) || loop_deadline_passed(run->environment->loop))
		run->no_more = true;
	while (ucmatose_wants_more(run) && run->connections[0].state != CONNECTION_CONNECTING &&
	       run->in_state[CONNECTION_CONNECTING] < UNDER_WAY_MAX) {
		struct ucmatose_connection *connection = ucmatose_connection_next(run, CONNECTION_NEW);

		ucmatose_connection_check(connection, resolve(connection));
	}
}

/* The last attempt's figures count. */
static enum outcome connect_first(void *context)
{
	struct ucmatose *run = context;

	run->device = NULL;
	ucmatose_figures_clear(run);
	ucmatose_connection_reset(&run->connections[0]);
	return resolve(&run->connections[0]);
}

static void dial_paused(void *context)
{
	struct ucmatose *run = context;

	ucmatose_connection_reset(&run->connections[0]);
}

static void dial_over(void *context, enum outcome outcome)
{
	struct ucmatose *run = context;

	dial_give_up(&run->dial);
	ucmatose_connection_check(&run->connections[0], outcome);
	advance(run);
}

static enum outcome dial_server(struct ucmatose *run)
{
	static const struct dial_handlers handlers = {
		.connect = connect_first,
		.paused = EXTRA(dial_paused),
		.failed = dial_over,
	};
	enum outcome outcome;

	run->dial.options = (struct dial_options){
		.handlers = &handlers,
		.context = run,
		.environment = run->environment,
		.common = &run->options->common,
		.format = (enum address_format)run->options->format,
		.source = run->local.addresses,
		.host = run->options->server,
		.port = (uint16_t)run->options->port,
		.server = run->options->port_space == PORT_SPACE_IB ? "ucmatose -P ib" : "ucmatose",
		.wait_server = EXTRA(run->options->wait_server),
	};
	outcome = dial_look_up(&run->dial);
	if (outcome)
		return outcome;
	environment_print(run->environment, "cmatose: connecting");
	run->phase = PHASE_CONNECTING;
	ucmatose_connection_next(run, CONNECTION_NEW);
	dial_begin(&run->dial);
	return OUTCOME_OK;
}

/* ---- a server ---- */

static void accept_request(struct ucmatose *run, struct endpoint *request, const struct hello *hello)
{
	struct ucmatose_connection *connection;
	enum outcome outcome;

	if (run->in_state[CONNECTION_NEW] == run->wanted)
		ucmatose_figures_restart(run, CONNECTION_CONNECTING);
	connection = ucmatose_connection_next(run, CONNECTION_NEW);
	connection->endpoint = request;
	request->handlers = &connection_handlers;
	request->context = connection;
	if (hello) {
		ucmatose_hello_apply(connection, hello);
		if (!run->client_id)
			run->client_id = hello->run;
	} else {
		request->options.timeout *= 1 + run->wanted / STOCK_ACCEPTS_PER_TIMEOUT;
		run->stock_iwarp |= request->domain->fabric == FABRIC_IWARP;
	}
	outcome = greet(connection);
	if (!outcome)
		return;
	request_refuse(run->environment, request);
	connection->endpoint = NULL;
	connection_failed(connection, outcome);
}

/* Returns whether it affects the run. A refusal must not delay the failure of a run with a silent client. */
static bool request_received(struct ucmatose *run, const struct endpoint_event *event)
{
	struct hello hello;
	bool is_ours = hello_of(event, &hello);
	const char *reason = NULL;

	if (request_is_foreign(run->environment, event, HELLO_UCMATOSE))
		return false;
	if (!ucmatose_wants_more(run))
		reason = HELLO_FULL;
	else if (is_ours && hello.run && run->client_id && hello.run != run->client_id)
		reason = HELLO_BUSY;
	if (reason) {
		if (!run->refused++)
			environment_print(run->environment, "cmatose: refusing a connection: %s", reason);
		endpoint_reject(event->request, reason, strlen(reason));
		return false;
	}
	if (is_ours && !ucmatose_hello_agrees(run, event->request->name, &hello)) {
		ucmatose_hello_write(run, 0); /* the client also logs the difference */
		endpoint_reject(event->request, run->hello, sizeof(run->hello));
		give_up(run, OUTCOME_FAILED);
	} else {
		accept_request(run, event->request, is_ours ? &hello : NULL);
	}
	return true;
}

static void server_listener_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct ucmatose *run = context;

	(void)endpoint;
	if (event->kind == EVENT_REQUEST && !request_received(run, event))
		return;
	if (event->kind == EVENT_FAILED)
		give_up(run, event->outcome);
	/* The transport had no endpoint for a request. It would have been refused anyway if none is awaited. */
	if (event->kind == EVENT_REQUEST_FAILED) {
		if (!ucmatose_wants_more(run))
			return;
		ucmatose_connection_check(ucmatose_connection_next(run, CONNECTION_NEW), event->outcome);
	}
	advance(run);
}

static enum outcome serve(struct ucmatose *run)
{
	static const struct endpoint_handlers handlers = { .event = server_listener_event };
	enum outcome outcome;

	run->local.addresses->port = (uint16_t)run->options->port;
	outcome = endpoint_create(ENDPOINT_LISTENER, run->channel, &run->endpoint_options, &handlers, run,
				  &run->listener);
	if (!outcome)
		outcome = endpoint_listen(run->listener, run->local.addresses);
	if (outcome)
		return outcome;
	run->phase = PHASE_CONNECTING;
	advance(run);
	environment_listens(run->environment, run->listener, run->options->bind, "cmatose", "listening");
	return OUTCOME_OK;
}

/* ---- the end of each callback ---- */

static void begin_next_phase(void *context)
{
	struct ucmatose *run = context;

	run->pausing = false;
	ucmatose_next_phase(run);
	advance(run);
}

static void advance(struct ucmatose *run)
{
	bool is_idle = run->in_state[CONNECTION_NEW] == run->wanted;
	uint32_t pause;

	if (run->phase == PHASE_ENDED)
		return;
	run->progressed = clock_now();
	run->limit = is_idle ? run->options->idle_timeout : run->options->common.timeout;
	if (run->limit)
		loop_phase_start(run->environment->loop, &run->silence, run->limit, silence_over, run);
	if (!run->is_server && run->phase == PHASE_CONNECTING)
		connect_others(run);
	if (run->is_server && run->phase == PHASE_CLOSING)
		ucmatose_disconnect_more(run);
	if (run->pausing || !ucmatose_phase_is_over(run))
		return;
	pause = ucmatose_phase_pause(run);
	run->pausing = pause > 0;
	if (pause)
		loop_timer_start(run->environment->loop, &run->pause, pause, begin_next_phase, run);
	else
		begin_next_phase(run);
}

/* ---- start and stop ---- */

enum outcome ucmatose_start(struct environment *environment, const void *all_options, void **state)
{
	const struct ucmatose_options *options = all_options;
	const bool is_server = !options->server;
	const char *bind = is_server ? ucmatose_listen_address(options) : options->bind;
	struct ucmatose *run = *state = environment_allocate(environment, 1, sizeof(*run));
	enum outcome outcome;

	if (!run)
		return OUTCOME_INTERNAL;
	run->environment = environment;
	run->options = options;
	run->is_server = is_server;
	run->client_id = is_server ? 0 : (uint16_t)clock_now() | 1;
	run->size = (uint32_t)options->size;
	run->messages = run->size ? (uint32_t)options->count : 0;
	run->endpoint_options.port_space = (enum port_space)options->port_space;
	run->endpoint_options.timeout = options->common.timeout;
	run->endpoint_options.send_depth = 1;
	run->endpoint_options.receive_depth = 1;
	run->endpoint_options.path = &options->common.path;
	run->connections = environment_allocate(environment, (size_t)options->connections, sizeof(*run->connections));
	if (!run->connections)
		return OUTCOME_INTERNAL;
	run->wanted = run->in_state[CONNECTION_NEW] = (uint32_t)options->connections;
	outcome = channel_create(environment->transport, &run->channel);
	if (outcome)
		return outcome;
	environment_print(environment, "cmatose: starting %s", is_server ? "server" : "client");
	if (bind)
		outcome =
			lookup(&run->local, environment, &options->common, bind, (enum address_format)options->format);
	if (!outcome)
		outcome = is_server ? serve(run) : dial_server(run);
	if (outcome)
		ucmatose_finish(run, outcome);
	return OUTCOME_OK;
}

void ucmatose_interrupt(void *state, enum interruption reason)
{
	struct ucmatose *run = state;

	run->phase = PHASE_ENDED;
	if (reason == INTERRUPTION_SIGNAL) /* a deadline is already logged */
		log_error(&run->environment->log, NULL, "interrupted");
	dial_hint(&run->dial);
	ucmatose_finish(run, OUTCOME_FAILED);
}

void ucmatose_stop(void *state)
{
	struct ucmatose *run = state;

	ucmatose_release(run);
	ucmatose_messages_free(run);
	free(run->connections);
	free(run);
}
