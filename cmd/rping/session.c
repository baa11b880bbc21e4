/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/hello.h"
#include "core/units.h"

enum session_state {
	SESSION_REQUESTED,
	SESSION_ACCEPTING,
	SESSION_ESTABLISHED,
	SESSION_IDLE,
	SESSION_ANSWERED,
	SESSION_CONFIRMING,
	SESSION_READING,
	SESSION_AWAITING_SINK,
	SESSION_DISCONNECTING,
};

/*
 * A client may pause between two pings, but not within one and not before the first: a client that connects and sends
 * nothing would block a server without -P for ever. The transport limits the time of accepting and disconnecting.
 */
static const struct state_row session_states[] = {
	[SESSION_REQUESTED] = { "requested", STATE_BIT(SESSION_ACCEPTING) },
	[SESSION_ACCEPTING] = { "accepting", STATE_BIT(SESSION_ESTABLISHED) },
	[SESSION_ESTABLISHED] = { "waiting for the first ping",
				  STATE_BIT(SESSION_READING) | STATE_BIT(SESSION_DISCONNECTING), .waits = true },
	[SESSION_IDLE] = { "waiting for the next ping", STATE_BIT(SESSION_READING) | STATE_BIT(SESSION_DISCONNECTING) },
	[SESSION_ANSWERED] = { "waiting for the next ping, which confirms the answer",
			       STATE_BIT(SESSION_READING) | STATE_BIT(SESSION_CONFIRMING) |
				       STATE_BIT(SESSION_DISCONNECTING) },
	[SESSION_CONFIRMING] = { "waiting for the acknowledgement of the answer",
				 STATE_BIT(SESSION_IDLE) | STATE_BIT(SESSION_READING) |
					 STATE_BIT(SESSION_DISCONNECTING),
				 .waits = true },
	[SESSION_READING] = { "reading the ping", STATE_BIT(SESSION_AWAITING_SINK) | STATE_BIT(SESSION_DISCONNECTING),
			      .waits = true },
	[SESSION_AWAITING_SINK] = { "waiting for the client's sink",
				    STATE_BIT(SESSION_ANSWERED) | STATE_BIT(SESSION_DISCONNECTING), .waits = true },
	[SESSION_DISCONNECTING] = { "disconnecting", 0 },
};

/* Index of the server's only send buffer. The go-ahead message is all zeros. */
enum {
	GO_AHEAD
};

static void confirmation_due(void *context);

/*
 * After an answer the server waits for the client's next message for half of --timeout. Then it requests an
 * acknowledgement and waits for the other half: it detects a client that vanished within --timeout, even if the pings
 * are further apart.
 */
static void session_enter(struct session *session, enum session_state state)
{
	int64_t timeout = session->options->common.timeout;

	session->state.timeout = state == SESSION_CONFIRMING ? timeout / 2 : timeout;
	state_enter(&session->state, state, session->endpoint->name);
	if (state == SESSION_ANSWERED)
		loop_timer_start(session->state.loop, &session->state.timer, timeout / 2, confirmation_due, session);
}

bool session_may_log(struct session *session)
{
	if (session->answered)
		return true;
	if (session->log_decision == LOG_UNDECIDED)
		session->log_decision = log_allows(session->no_ping_limit) ? LOG_ALLOWED : LOG_SUPPRESSED;
	return session->log_decision == LOG_ALLOWED;
}

bool session_is_connected(const struct session *session)
{
	return session->state.current >= SESSION_ESTABLISHED;
}

/* The owner frees the session: the caller must not use it afterwards. */
static void session_end(struct session *session, enum outcome outcome)
{
	session->ended(session->context, session, outcome, session_is_connected(session));
}

/* Returns the outcome of a session that ended with a disconnect, and reports an early end. */
static enum outcome session_verdict(struct session *session)
{
	const struct endpoint *endpoint = session->endpoint;
	bool interrupted = session->state.current == SESSION_DISCONNECTING;
	/* A signal is the regular end of a persistent server and its sessions. */
	bool open_ended = interrupted && session->options->persistent;
	bool interrupted_early = session->deadline_passed || (interrupted && !open_ended && !session->answered);
	/* The only client must have been answered at least once: else nothing was tested. */
	uint64_t minimum = !session->options->persistent;
	uint64_t required = session->expected_pings ? session->expected_pings : minimum;
	char pings[PINGS_TEXT_SIZE];

	if (!interrupted_early && (session->answered >= required || open_ended))
		return OUTCOME_OK;
	/* run.c has reported a passed deadline. */
	if (!session->deadline_passed && session_may_log(session))
		log_error(session->log, endpoint->name, "%s after %s",
			  interrupted ? "interrupted" : "the client disconnected",
			  rping_pings_text(session->answered, session->expected_pings, pings));
	return OUTCOME_FAILED;
}

struct verdict session_verdict_text(const struct session *session, enum outcome outcome, char text[RPING_VERDICT_SIZE])
{
	const char *peer = session->endpoint->name;
	bool validate = session->options->validate;
	struct verdict verdict = { .device = session->endpoint->domain->device, .has_figures = true };
	char pings[PINGS_TEXT_SIZE];
	char sizes[PINGS_TEXT_SIZE];

	rping_pings_text(session->answered, outcome ? session->expected_pings : 0, pings);
	if (outcome) {
		snprintf(text, RPING_VERDICT_SIZE, "%s from %s answered", pings, peer);
	} else if (!session->answered) {
		snprintf(text, RPING_VERDICT_SIZE, "%s disconnected without a ping", peer);
	} else {
		verdict.note = validate ? NULL : RPING_NOT_CHECKED;
		snprintf(text, RPING_VERDICT_SIZE, "%s of %s from %s %sanswered", pings,
			 rping_sizes_text(session->shortest, session->longest, sizes), peer,
			 validate ? "verified and " : "");
	}
	return verdict;
}

static void session_timed_out(void *context)
{
	struct session *session = context;

	if (session_may_log(session))
		ping_timed_out(&session->state, session->endpoint, session->answered);
	session_end(session, OUTCOME_FAILED);
}

/* Counts the last answer when its delivery is confirmed. */
static void answer_delivered(struct session *session)
{
	if (!session->unconfirmed_answer)
		return;
	session->unconfirmed_answer = false;
	if (!session->answered || session->length < session->shortest)
		session->shortest = session->length;
	if (session->length > session->longest)
		session->longest = session->length;
	session->answered++;
}

/* ---- the cycle of a ping: session_completed() ends the session if a step fails ---- */

/* Returns the maximum ping size of this server. */
static uint32_t longest(const struct session *session)
{
	return ping_limit(session->endpoint->domain, PING_SIZE_MAX);
}

static enum outcome check_advertisement(struct session *session, const char *what, const struct advertisement *memory,
					uint32_t minimum)
{
	const char *fault = advertisement_fault(memory, minimum, longest(session));

	if (!fault)
		return OUTCOME_OK;
	log_error(session->log, session->endpoint->name,
		  "ping %" PRIu64 ": the client's %s of %" PRIu32 " bytes cannot be used: %s", session->answered, what,
		  memory->size, fault);
	return OUTCOME_FAILED;
}

/* Grows the buffer by doubling, so that longer and longer pings do not need a registration each. */
static enum outcome buffer_reserve(struct session *session, uint32_t length)
{
	size_t capacity = session->buffer ? session->buffer->length : 0;

	if (capacity >= length)
		return OUTCOME_OK;
	capacity *= 2;
	if (capacity < length)
		capacity = length;
	if (capacity > longest(session))
		capacity = longest(session);
	/* The last WRITE may use the old buffer until the next READ completes. */
	region_destroy(session->old_buffer);
	session->old_buffer = session->buffer;
	session->buffer = NULL;
	return region_create(session->endpoint->domain, capacity, REGION_READ_SINK, &session->buffer);
}

static enum outcome read_source(struct session *session, const struct advertisement *source)
{
	enum outcome outcome = check_advertisement(session, "source", source, 1);

	if (!outcome)
		outcome = buffer_reserve(session, source->size);
	if (outcome)
		return outcome;
	session->length = source->size;
	session_enter(session, SESSION_READING);
	return endpoint_post(session->endpoint,
			     &(struct work){
				     .kind = WORK_READ,
				     .region = session->buffer,
				     .length = session->length,
				     .remote_address = source->address,
				     .remote_key = source->key,
			     },
			     1);
}

static enum outcome source_read(struct session *session)
{
	struct work go_ahead = control_send(&session->control, GO_AHEAD);

	rping_classic_completion(session->environment, "rdma read");
	region_destroy(session->old_buffer);
	session->old_buffer = NULL;
	/* Unsignalled: the completion of the next READ on the same send queue covers it. */
	go_ahead.unsignalled = true;
	session_enter(session, SESSION_AWAITING_SINK);
	return endpoint_post(session->endpoint, &go_ahead, 1);
}

/*
 * Posts the go-ahead together with the WRITE, which saves a round trip: RC keeps their order. Both are
 * unsignalled: the client's next message proves delivery. Only then verifies and prints the ping: the client measures
 * the time until the answer.
 */
static enum outcome write_sink(struct session *session, const struct advertisement *sink)
{
	const struct rping_options *options = session->options;
	enum outcome outcome = check_advertisement(session, "sink", sink, session->length);
	struct work works[] = {
		{
			.kind = WORK_WRITE,
			.region = session->buffer,
			.length = session->length,
			.remote_address = sink->address,
			.remote_key = sink->key,
			.unsignalled = true,
		},
		control_send(&session->control, GO_AHEAD),
	};

	if (outcome)
		return outcome;
	works[1].unsignalled = true;
	session->unconfirmed_answer = true;
	session_enter(session, SESSION_ANSWERED);
	outcome = endpoint_post(session->endpoint, works, sizeof(works) / sizeof(works[0]));
	if (outcome)
		return outcome;
	/* The payload of a ping depends only on its number, also with stock clients. */
	if (options->validate && !ping_verify(&session->state, session->endpoint, session->answered,
					      session->buffer->memory, session->length))
		return OUTCOME_FAILED;
	if (options->verbose)
		ping_print(session->environment->output, "server ping data", session->buffer->memory, session->length);
	return OUTCOME_OK;
}

static enum outcome session_disconnect(struct session *session)
{
	session_enter(session, SESSION_DISCONNECTING);
	return endpoint_disconnect(session->endpoint);
}

/* Posts a WRITE of length 0, which accesses no memory. It completes when everything posted before it is delivered. */
static enum outcome request_confirmation(struct session *session)
{
	session_enter(session, SESSION_CONFIRMING);
	return endpoint_post(session->endpoint, &(struct work){ .kind = WORK_WRITE, .region = session->buffer }, 1);
}

static void confirmation_due(void *context)
{
	struct session *session = context;
	enum outcome outcome = request_confirmation(session);

	if (outcome)
		session_end(session, outcome);
}

/* The completion may arrive after the client's next message, which has confirmed delivery. */
static enum outcome confirmed(struct session *session)
{
	if (session->state.current != SESSION_CONFIRMING)
		return OUTCOME_OK;
	answer_delivered(session);
	if (session->ending)
		return session_disconnect(session);
	session_enter(session, SESSION_IDLE);
	return OUTCOME_OK;
}

static enum outcome message_received(struct session *session, const struct completion *completion)
{
	struct advertisement memory;
	enum outcome outcome = control_receive(&session->control, session->endpoint, completion, &memory);

	if (outcome)
		return outcome;
	if (session->unconfirmed_answer)
		rping_classic_completion(session->environment, "rdma write");
	if (session->unconfirmed_answer || session->state.current == SESSION_AWAITING_SINK)
		rping_classic_completion(session->environment, "send");
	rping_classic_completion(session->environment, "recv");
	switch ((enum session_state)session->state.current) {
	case SESSION_ESTABLISHED:
	case SESSION_IDLE:
	case SESSION_ANSWERED:
	case SESSION_CONFIRMING:
		if (session->ending)
			return confirmed(session);
		answer_delivered(session);
		return read_source(session, &memory);
	case SESSION_AWAITING_SINK:
		return write_sink(session, &memory);
	default:
		return ping_out_of_order(&session->state, session->endpoint, session->answered);
	}
}

static void session_completed(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	struct session *session = context;
	enum outcome outcome = OUTCOME_FAILED;

	(void)endpoint;
	if (completion->status == COMPLETION_OK) {
		if (completion->kind == WORK_RECEIVE)
			outcome = message_received(session, completion);
		else if (completion->kind == WORK_READ)
			outcome = source_read(session);
		else
			outcome = confirmed(session);
	}
	if (outcome)
		session_end(session, outcome);
}

/* ---- the connection ---- */

static void client_disconnected(struct session *session)
{
	char cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];

	switch ((enum session_state)session->state.current) {
	case SESSION_ESTABLISHED:
	case SESSION_IDLE:
	case SESSION_ANSWERED:
	case SESSION_CONFIRMING:
		/* A disconnect between two pings confirms delivery. */
		answer_delivered(session);
		session_end(session, session_verdict(session));
		break;
	case SESSION_DISCONNECTING:
		session_end(session, session_verdict(session));
		break;
	default:
		log_cause(session->log, session->endpoint->name, state_text(&session->state), 0,
			  "the client went away in the middle of ping %" PRIu64 "%s", session->answered,
			  endpoint_timeout_cause(session->endpoint, cause));
		session_end(session, OUTCOME_FAILED);
		break;
	}
}

static void session_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct session *session = context;

	rping_classic_event(session->environment, session->options, endpoint, event->kind);
	switch (event->kind) {
	case EVENT_ESTABLISHED:
		++*session->connected;
		session_enter(session, SESSION_ESTABLISHED);
		break;
	case EVENT_DISCONNECTED:
		client_disconnected(session);
		break;
	case EVENT_FAILED:
		session_end(session, event->outcome);
		break;
	default:
		break;
	}
}

static const struct endpoint_handlers session_handlers = {
	.event = session_event,
	.completion = session_completed,
};

struct session *session_create(struct session **list, struct environment *environment,
			       const struct rping_options *options, struct endpoint *request,
			       const uint8_t *private_data, size_t length)
{
	struct session *session = calloc(1, sizeof(*session));
	struct hello hello;

	if (!session)
		return NULL;
	session->options = options;
	session->log = &environment->log;
	session->environment = environment;
	session->endpoint = request;
	session->state = (struct state){
		.rows = session_states,
		.loop = environment->loop,
		.log = &environment->log,
		.timeout = options->common.timeout,
		.expired = session_timed_out,
		.context = session,
	};
	session->expected_pings =
		hello_read(private_data, length, HELLO_RPING, &hello) ? hello.count : (uint64_t)options->count;
	session->link = list;
	session->next = *list;
	if (session->next)
		session->next->link = &session->next;
	*list = session;
	request->handlers = &session_handlers;
	request->context = session;
	return session;
}

/* The receives must be posted before accepting: the first message may arrive together with EVENT_ESTABLISHED. */
enum outcome session_accept(void *context)
{
	struct session *session = context;
	struct hello hello = { .tool = HELLO_RPING, .capacity = longest(session) };
	uint8_t bytes[HELLO_SIZE];
	enum outcome outcome = control_create(&session->control, session->endpoint->domain);

	if (!outcome)
		outcome = endpoint_create_qp(session->endpoint);
	if (!outcome)
		outcome = control_post_receives(&session->control, session->endpoint);
	if (outcome)
		return outcome;
	hello_write(&hello, bytes);
	session_enter(session, SESSION_ACCEPTING);
	return endpoint_accept(session->endpoint, bytes, sizeof(bytes));
}

void session_interrupt(struct session *session, enum interruption reason)
{
	bool asked = session->state.current == SESSION_CONFIRMING;
	enum outcome outcome = OUTCOME_OK;

	if (session->state.current == SESSION_DISCONNECTING)
		return;
	if (!session_is_connected(session)) {
		session_end(session, OUTCOME_FAILED);
		return;
	}
	session->ending = true;
	session->deadline_passed = reason == INTERRUPTION_DEADLINE;
	if (!session->unconfirmed_answer || session->deadline_passed)
		outcome = session_disconnect(session);
	else if (!asked)
		outcome = request_confirmation(session);
	if (outcome)
		session_end(session, outcome);
}

void session_destroy(struct session *session)
{
	if (session_is_connected(session))
		--*session->connected;
	state_stop(&session->state);
	endpoint_destroy(session->endpoint);
	control_destroy(&session->control);
	region_destroy(session->buffer);
	region_destroy(session->old_buffer);
	*session->link = session->next;
	if (session->next)
		session->next->link = session->link;
	free(session);
}
