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
static void advance(struct ucmatose *ucmatose);

/* ---- the silence limit ---- */

static void give_up(struct ucmatose *ucmatose, enum outcome outcome)
{
	run_record_outcome(ucmatose->run, outcome);
	ucmatose->no_more = true;
}

/* Completions only note their time: a timer that each of them restarts would cost more. */
static void silence_over(void *context)
{
	struct ucmatose *ucmatose = context;
	struct loop *loop = ucmatose->run->loop;
	int64_t left = ucmatose->progressed + ucmatose->limit - clock_now();
	enum connection_state last = CONNECTION_RECEIVING; /* the transport limits the time of the others */
	char cause[LOOP_PHASE_TEXT_SIZE];

	if (!ucmatose->limit)
		return;
	if (left > 0 && !loop_deadline_passed(loop)) {
		loop_phase_start(loop, &ucmatose->silence, left, silence_over, ucmatose);
		return;
	}
	loop_phase_text(loop, ucmatose->limit, cause);
	if (ucmatose->is_server && ucmatose_wants_more(ucmatose)) {
		log_error(&ucmatose->run->log, NULL, "received only %" PRIu32 " of %" PRIu32 " connection requests: %s",
			  ucmatose->wanted - ucmatose->in_state[CONNECTION_NEW], ucmatose->wanted, cause);
		give_up(ucmatose, OUTCOME_FAILED);
	}
	if (ucmatose->phase == PHASE_CONNECTING)
		last = CONNECTION_NEW;
	else if (ucmatose->phase == PHASE_CLOSING && !ucmatose->is_server)
		last = CONNECTION_TRANSFERRED;
	for (uint32_t i = 0; i < ucmatose->wanted; i++)
		if (ucmatose->connections[i].state >= CONNECTION_SENDING && ucmatose->connections[i].state <= last)
			ucmatose_connection_fail(&ucmatose->connections[i], cause);
	advance(ucmatose);
}

/* ---- the connections ---- */

static bool hello_of(const struct endpoint_event *event, struct hello *hello)
{
	return hello_read(event->private_data, event->private_length, HELLO_UCMATOSE, hello);
}

/* Tells the peer our options: a client requests the connection, a server accepts it. */
static enum outcome greet(struct ucmatose_connection *connection)
{
	struct ucmatose *ucmatose = connection->ucmatose;
	enum outcome outcome = ucmatose_messages_prepare(connection);

	if (outcome)
		return outcome;
	ucmatose_hello_write(ucmatose, connection->index);
	return ucmatose->is_server ? endpoint_accept(connection->endpoint, ucmatose->hello, sizeof(ucmatose->hello))
				   : endpoint_connect(connection->endpoint, ucmatose->hello, sizeof(ucmatose->hello));
}

/* The client withdrew the request or never confirmed the connection: another request may take its place. */
static void drop_request(struct ucmatose_connection *connection)
{
	struct ucmatose *ucmatose = connection->ucmatose;

	run_report_error(ucmatose->run);
	ucmatose_connection_reset(connection);
	ucmatose_connection_enter(connection, CONNECTION_NEW);
	ucmatose->next = 0;
	if (ucmatose->in_state[CONNECTION_NEW] == ucmatose->wanted) {
		ucmatose->client_id = 0;
		ucmatose->device = NULL;
	}
}

static enum outcome connection_established(struct ucmatose_connection *connection, const struct endpoint_event *event)
{
	struct ucmatose *ucmatose = connection->ucmatose;

	if (!ucmatose->is_server && !ucmatose->stock &&
	    hello_check(&ucmatose->run->log, "server", connection->endpoint, event, HELLO_UCMATOSE))
		return OUTCOME_FAILED;
	if (WITH_REPORT && !ucmatose->figures.rates[CONNECTION_CONNECTING].count)
		endpoint_path(connection->endpoint, &ucmatose->figures.path);
	ucmatose_figures_count(connection, CONNECTION_CONNECTING);
	ucmatose->stock |= !connection->peer_is_ours;
	ucmatose_connection_enter(connection, CONNECTION_ESTABLISHED);
	/* The client starts at once: the server's first message may already have arrived. */
	return ucmatose->is_server ? OUTCOME_OK : ucmatose_messages_begin(connection);
}

static enum outcome resolve(struct ucmatose_connection *connection);

static void connect_again(struct ucmatose_connection *connection)
{
	ucmatose_connection_reset(connection);
	ucmatose_connection_check(connection, resolve(connection));
}

static void connection_failed(struct ucmatose_connection *connection, enum outcome outcome)
{
	struct ucmatose *ucmatose = connection->ucmatose;
	bool connecting = connection->state == CONNECTION_CONNECTING;

	if (connecting && ucmatose->is_server && !ucmatose->no_more && outcome == OUTCOME_NO_CONNECTION)
		drop_request(connection);
	else if (connecting && !ucmatose->is_server && !connection->index) /* it may be tried again */
		dial_failed(&ucmatose->dial, outcome);
	else if (connecting && !ucmatose->is_server && dial_repeats(&ucmatose->dial, &connection->stale))
		connect_again(connection);
	else
		ucmatose_connection_check(connection, outcome);
}

static void connection_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct ucmatose_connection *connection = context;
	struct ucmatose *ucmatose = connection->ucmatose;
	enum outcome outcome = OUTCOME_OK;
	struct hello hello;
	bool server_is_ours = !ucmatose->is_server && hello_of(event, &hello);

	ucmatose->progressed = clock_now();
	ucmatose_figures_time(ucmatose, event);
	switch (event->kind) {
	case EVENT_ROUTE_RESOLVED:
		outcome = greet(connection);
		break;
	case EVENT_ESTABLISHED:
		dial_stop(&ucmatose->dial);
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
		hello_explain_rejection(event, &ucmatose->run->transport->error);
		if (server_is_ours && !ucmatose_hello_agrees(ucmatose, endpoint->name, &hello)) {
			dial_stop(&ucmatose->dial);
			outcome = OUTCOME_FAILED;
		}
		break;
	default:
		break;
	}
	if (outcome)
		connection_failed(connection, outcome);
	advance(ucmatose);
}

static void connection_completion(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	struct ucmatose_connection *connection = context;
	const enum connection_state before = connection->state;
	struct ucmatose *ucmatose = connection->ucmatose;
	enum outcome outcome;

	(void)endpoint;
	ucmatose->progressed = clock_now();
	outcome = ucmatose_messages_completed(connection, completion);
	if (outcome)
		ucmatose_connection_check(connection, outcome);
	if (connection->state != before) /* else no phase can have ended */
		advance(ucmatose);
}

static const struct endpoint_handlers connection_handlers = {
	.event = connection_event,
	.completion = connection_completion,
};

/* ---- a client ---- */

static enum outcome resolve(struct ucmatose_connection *connection)
{
	struct ucmatose *ucmatose = connection->ucmatose;
	enum outcome outcome = endpoint_create(ENDPOINT_CONNECTION, ucmatose->channel, &ucmatose->endpoint_options,
					       &connection_handlers, connection, &connection->endpoint);

	if (outcome)
		return outcome;
	return endpoint_resolve(connection->endpoint, ucmatose->local.addresses, &ucmatose->dial.address);
}

/* The first one is made alone: if it fails, every other would fail with the same error after its own timeout. */
static void connect_others(struct ucmatose *ucmatose)
{
	if (!ucmatose_good(ucmatose) || loop_deadline_passed(ucmatose->run->loop))
		ucmatose->no_more = true;
	while (ucmatose_wants_more(ucmatose) && ucmatose->connections[0].state != CONNECTION_CONNECTING &&
	       ucmatose->in_state[CONNECTION_CONNECTING] < UNDER_WAY_MAX) {
		struct ucmatose_connection *connection = ucmatose_connection_next(ucmatose, CONNECTION_NEW);

		ucmatose_connection_check(connection, resolve(connection));
	}
}

/* The last attempt's figures count. */
static enum outcome connect_first(void *context)
{
	struct ucmatose *ucmatose = context;

	ucmatose->device = NULL;
	ucmatose_figures_clear(ucmatose);
	ucmatose_connection_reset(&ucmatose->connections[0]);
	return resolve(&ucmatose->connections[0]);
}

static void dial_paused(void *context)
{
	struct ucmatose *ucmatose = context;

	ucmatose_connection_reset(&ucmatose->connections[0]);
}

static void dial_over(void *context, enum outcome outcome)
{
	struct ucmatose *ucmatose = context;

	dial_give_up(&ucmatose->dial);
	ucmatose_connection_check(&ucmatose->connections[0], outcome);
	advance(ucmatose);
}

static enum outcome dial_server(struct ucmatose *ucmatose)
{
	static const struct dial_handlers handlers = {
		.connect = connect_first,
		.paused = EXTRA(dial_paused),
		.failed = dial_over,
	};
	enum outcome outcome;

	ucmatose->dial.options = (struct dial_options){
		.handlers = &handlers,
		.context = ucmatose,
		.run = ucmatose->run,
		.common = &ucmatose->options->common,
		.format = (enum address_format)ucmatose->options->format,
		.shared = &ucmatose->dials,
		.source = ucmatose->local.addresses,
		.host = ucmatose->options->server,
		.port = (uint16_t)ucmatose->options->port,
		.server = ucmatose->options->port_space == PORT_SPACE_IB ? "ucmatose -P ib" : "ucmatose",
		.wait_server = EXTRA(ucmatose->options->wait_server),
	};
	outcome = dial_look_up(&ucmatose->dial);
	if (outcome)
		return outcome;
	run_print(ucmatose->run, "cmatose: connecting");
	ucmatose->phase = PHASE_CONNECTING;
	ucmatose_connection_next(ucmatose, CONNECTION_NEW);
	dial_begin(&ucmatose->dial);
	return OUTCOME_OK;
}

/* ---- a server ---- */

static void accept_request(struct ucmatose *ucmatose, struct endpoint *request, const struct hello *hello)
{
	struct ucmatose_connection *connection;
	enum outcome outcome;

	if (ucmatose->in_state[CONNECTION_NEW] == ucmatose->wanted)
		ucmatose_figures_restart(ucmatose, CONNECTION_CONNECTING);
	connection = ucmatose_connection_next(ucmatose, CONNECTION_NEW);
	connection->endpoint = request;
	request->handlers = &connection_handlers;
	request->context = connection;
	if (hello) {
		ucmatose_hello_apply(connection, hello);
		if (!ucmatose->client_id)
			ucmatose->client_id = hello->run;
	} else {
		request->options.timeout *= 1 + ucmatose->wanted / STOCK_ACCEPTS_PER_TIMEOUT;
		ucmatose->stock_iwarp |= request->domain->fabric == FABRIC_IWARP;
	}
	outcome = greet(connection);
	if (!outcome)
		return;
	request_refuse(ucmatose->run, request);
	connection->endpoint = NULL;
	connection_failed(connection, outcome);
}

/* Returns whether it affects the run. A refusal must not delay the failure of a run with a silent client. */
static bool request_received(struct ucmatose *ucmatose, const struct endpoint_event *event)
{
	struct hello hello;
	bool is_ours = hello_of(event, &hello);
	const char *reason = NULL;

	if (request_is_foreign(ucmatose->run, event, HELLO_UCMATOSE))
		return false;
	if (!ucmatose_wants_more(ucmatose))
		reason = HELLO_FULL;
	else if (is_ours && hello.run && ucmatose->client_id && hello.run != ucmatose->client_id)
		reason = HELLO_BUSY;
	if (reason) {
		if (!ucmatose->refused++)
			run_print(ucmatose->run, "cmatose: refusing a connection: %s", reason);
		endpoint_reject(event->request, reason, strlen(reason));
		return false;
	}
	if (is_ours && !ucmatose_hello_agrees(ucmatose, event->request->name, &hello)) {
		ucmatose_hello_write(ucmatose, 0); /* the client also logs the difference */
		endpoint_reject(event->request, ucmatose->hello, sizeof(ucmatose->hello));
		give_up(ucmatose, OUTCOME_FAILED);
	} else {
		accept_request(ucmatose, event->request, is_ours ? &hello : NULL);
	}
	return true;
}

static void server_listener_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct ucmatose *ucmatose = context;

	(void)endpoint;
	if (event->kind == EVENT_REQUEST && !request_received(ucmatose, event))
		return;
	if (event->kind == EVENT_FAILED)
		give_up(ucmatose, event->outcome);
	/* The transport had no endpoint for a request. It would have been refused anyway if none is awaited. */
	if (event->kind == EVENT_REQUEST_FAILED) {
		if (!ucmatose_wants_more(ucmatose))
			return;
		ucmatose_connection_check(ucmatose_connection_next(ucmatose, CONNECTION_NEW), event->outcome);
	}
	advance(ucmatose);
}

static enum outcome serve(struct ucmatose *ucmatose)
{
	static const struct endpoint_handlers handlers = { .event = server_listener_event };
	enum outcome outcome;

	ucmatose->local.addresses->port = (uint16_t)ucmatose->options->port;
	outcome = endpoint_create(ENDPOINT_LISTENER, ucmatose->channel, &ucmatose->endpoint_options, &handlers,
				  ucmatose, &ucmatose->listener);
	if (!outcome)
		outcome = endpoint_listen(ucmatose->listener, ucmatose->local.addresses);
	if (outcome)
		return outcome;
	ucmatose->phase = PHASE_CONNECTING;
	advance(ucmatose);
	run_listens(ucmatose->run, ucmatose->listener, ucmatose->options->bind, "cmatose", "listening");
	return OUTCOME_OK;
}

/* ---- the end of each callback ---- */

static void begin_next_phase(void *context)
{
	struct ucmatose *ucmatose = context;

	ucmatose->pausing = false;
	ucmatose_next_phase(ucmatose);
	advance(ucmatose);
}

static void advance(struct ucmatose *ucmatose)
{
	bool is_idle = ucmatose->in_state[CONNECTION_NEW] == ucmatose->wanted;
	uint32_t pause;

	if (ucmatose->phase == PHASE_ENDED)
		return;
	ucmatose->progressed = clock_now();
	ucmatose->limit = is_idle ? ucmatose->options->idle_timeout : ucmatose->options->common.timeout;
	if (ucmatose->limit)
		loop_phase_start(ucmatose->run->loop, &ucmatose->silence, ucmatose->limit, silence_over, ucmatose);
	if (!ucmatose->is_server && ucmatose->phase == PHASE_CONNECTING)
		connect_others(ucmatose);
	if (ucmatose->is_server && ucmatose->phase == PHASE_CLOSING)
		ucmatose_disconnect_more(ucmatose);
	if (ucmatose->pausing || !ucmatose_phase_is_over(ucmatose))
		return;
	pause = ucmatose_phase_pause(ucmatose);
	ucmatose->pausing = pause > 0;
	if (pause)
		loop_timer_start(ucmatose->run->loop, &ucmatose->pause, pause, begin_next_phase, ucmatose);
	else
		begin_next_phase(ucmatose);
}

/* ---- start and stop ---- */

enum outcome ucmatose_start(struct run *run, const void *all_options, void **state)
{
	const struct ucmatose_options *options = all_options;
	const bool is_server = !options->server;
	const char *bind = is_server ? ucmatose_listen_address(options) : options->bind;
	struct ucmatose *ucmatose = *state = run_allocate(run, 1, sizeof(*ucmatose));
	enum outcome outcome;

	if (!ucmatose)
		return OUTCOME_INTERNAL;
	ucmatose->run = run;
	ucmatose->options = options;
	ucmatose->is_server = is_server;
	ucmatose->client_id = is_server ? 0 : (uint16_t)clock_now() | 1;
	ucmatose->size = (uint32_t)options->size;
	ucmatose->messages = ucmatose->size ? (uint32_t)options->count : 0;
	ucmatose->endpoint_options.port_space = (enum port_space)options->port_space;
	ucmatose->endpoint_options.timeout = options->common.timeout;
	ucmatose->endpoint_options.send_depth = 1;
	ucmatose->endpoint_options.receive_depth = 1;
	ucmatose->endpoint_options.path = &options->common.path;
	ucmatose->connections = run_allocate(run, (size_t)options->connections, sizeof(*ucmatose->connections));
	if (!ucmatose->connections)
		return OUTCOME_INTERNAL;
	ucmatose->wanted = ucmatose->in_state[CONNECTION_NEW] = (uint32_t)options->connections;
	outcome = channel_create(run->transport, &ucmatose->channel);
	if (outcome)
		return outcome;
	run_print(run, "cmatose: starting %s", is_server ? "server" : "client");
	if (bind)
		outcome = lookup(&ucmatose->local, run, &options->common, bind, (enum address_format)options->format);
	if (!outcome)
		outcome = is_server ? serve(ucmatose) : dial_server(ucmatose);
	if (outcome)
		ucmatose_finish(ucmatose, outcome);
	return OUTCOME_OK;
}

void ucmatose_interrupt(void *state, enum interruption reason)
{
	struct ucmatose *ucmatose = state;

	ucmatose->phase = PHASE_ENDED;
	if (reason == INTERRUPTION_SIGNAL) /* a deadline is already logged */
		log_error(&ucmatose->run->log, NULL, "interrupted");
	dial_hint(&ucmatose->dial);
	ucmatose_finish(ucmatose, OUTCOME_FAILED);
}

void ucmatose_stop(void *state)
{
	struct ucmatose *ucmatose = state;

	ucmatose_release(ucmatose);
	ucmatose_messages_free(ucmatose);
	free(ucmatose->connections);
	free(ucmatose);
}
