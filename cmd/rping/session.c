/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/hello.h"
#include "core/payload.h"
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
	SESSION_SETTLING,
	SESSION_DISCONNECTING,
};

/*
 * A client may pause between two pings, but not within one, nor before the first: a client that connects and sends
 * nothing would block a server without -P for ever. The transport has the deadlines of accepting and disconnecting.
 */
static const struct state_row session_states[] = {
	[SESSION_REQUESTED] = { "requested", STATE_BIT(SESSION_ACCEPTING) },
	[SESSION_ACCEPTING] = { "accepting", STATE_BIT(SESSION_ESTABLISHED) },
	[SESSION_ESTABLISHED] = { "waiting for it to begin",
				  STATE_BIT(SESSION_READING) | STATE_BIT(SESSION_DISCONNECTING), true },
	[SESSION_IDLE] = { "waiting for the next ping", STATE_BIT(SESSION_READING) | STATE_BIT(SESSION_DISCONNECTING) },
	[SESSION_ANSWERED] = { "waiting for the next ping, which proves that its answer arrived",
			       STATE_BIT(SESSION_READING) | STATE_BIT(SESSION_CONFIRMING) |
				       STATE_BIT(SESSION_SETTLING) | STATE_BIT(SESSION_DISCONNECTING) },
	[SESSION_CONFIRMING] = { "waiting for the acknowledgement of its answer",
				 STATE_BIT(SESSION_IDLE) | STATE_BIT(SESSION_READING) | STATE_BIT(SESSION_SETTLING) |
					 STATE_BIT(SESSION_DISCONNECTING) },
	[SESSION_READING] = { "reading it", STATE_BIT(SESSION_AWAITING_SINK) | STATE_BIT(SESSION_DISCONNECTING), true },
	[SESSION_AWAITING_SINK] = { "waiting for the client's sink",
				    STATE_BIT(SESSION_ANSWERED) | STATE_BIT(SESSION_DISCONNECTING), true },
	[SESSION_SETTLING] = { "waiting for the acknowledgement of its answer", STATE_BIT(SESSION_DISCONNECTING),
			       true },
	[SESSION_DISCONNECTING] = { "disconnecting", 0 },
};

/* The one message of a server, in its mailbox: a go-ahead is all zeros. */
enum {
	GO_AHEAD
};

static void idle_too_long(void *owner);
static void confirm(void *owner);
static void timed_out(void *owner);
static void unconfirmed(void *owner);

/*
 * Delivery of the last answer may be confirmed by the client's next message for half of --timeout, then by an
 * acknowledgement that the server requests, for the other half: a client that vanished is detected within --timeout,
 * also between pings that are further apart. A persistent server that shuts down waits for one half only, as --timeout
 * limits the whole shutdown.
 */
static void enter(struct session *session, enum session_state state)
{
	int64_t idle = session->options->idle_timeout, half = session->state.timeout / 2;
	struct loop_timer *deadline = &session->state.deadline;
	struct loop *loop = session->state.loop;

	state_enter(&session->state, state, session->endpoint->name);
	if (idle && ((state == SESSION_ANSWERED && idle <= half) || (state == SESSION_ESTABLISHED && idle < 2 * half)))
		loop_timer_start(loop, deadline, idle, idle_too_long, session);
	else if (state == SESSION_ANSWERED)
		loop_timer_start(loop, deadline, half, confirm, session);
	else if (state == SESSION_CONFIRMING || (state == SESSION_SETTLING && session->options->persistent))
		loop_timer_start(loop, deadline, half, unconfirmed, session);
	else if (state == SESSION_IDLE && idle)
		loop_timer_start(loop, deadline, idle - half, idle_too_long, session);
}

/* Limits the lines about clients that connect and never ping: they could fill the log. */
static bool is_worth_telling(struct session *session)
{
	if (session->answered || session->is_reported)
		return true;
	if (!session->is_suppressed)
		session->is_reported = log_allows(session->silent);
	session->is_suppressed = !session->is_reported;
	return session->is_reported;
}

bool session_is_connected(const struct session *session)
{
	return session->state.now >= SESSION_ESTABLISHED;
}

/* The owner frees the session: do not touch it afterwards. */
static void end(struct session *session, enum outcome outcome)
{
	session->ended(session->owner, session, outcome, session_is_connected(session));
}

/* The outcome of a session that ended with a disconnect. */
static enum outcome verdict(struct session *session)
{
	const struct endpoint *endpoint = session->endpoint;
	bool dismissed = session->state.now == SESSION_DISCONNECTING;
	/* A persistent server ends by a signal only, and its sessions with it. */
	bool by_nature = dismissed && session->options->persistent;
	bool cut_off = session->overdue || (dismissed && !by_nature && !session->answered);
	/* Without a ping the only client has tested nothing. */
	bool alone = !session->options->persistent || session->options->one_off;
	uint64_t wanted = session->promised ? session->promised : alone;
	char pings[PINGS_TEXT_SIZE];

	if (!cut_off && (session->answered >= wanted || by_nature))
		return OUTCOME_OK;
	/* A passed deadline is already reported. */
	if (!session->overdue && is_worth_telling(session))
		log_error(session->log, endpoint->name, "%s ended early, after %s%s", dismissed ? "we" : "the client",
			  rping_pings_text(session->answered, session->promised, pings),
			  dismissed ? ": interrupted" : "");
	return OUTCOME_FAILED;
}

void session_print_verdict(struct session *session, enum outcome outcome)
{
	const struct endpoint *endpoint = session->endpoint;
	char pings[PINGS_TEXT_SIZE];
	char sizes[48];

	if (!is_worth_telling(session))
		return;
	if (outcome) {
		fprintf(environment_output(session->environment), "%s: FAILED: %s from %s answered (%s, %s)\n",
			session->log->name, rping_pings_text(session->answered, session->promised, pings),
			endpoint->name, transport_name(endpoint->transport), endpoint->domain->device);
		return;
	}
	if (session->unconfirmed_answer) {
		fprintf(environment_output(session->environment),
			"%s: %s from %s answered, and one whose answer is unconfirmed (%s, %s)\n", session->log->name,
			rping_pings_text(session->answered, 0, pings), endpoint->name,
			transport_name(endpoint->transport), endpoint->domain->device);
		return;
	}
	if (!session->answered) {
		fprintf(environment_output(session->environment), "%s: %s came and went without a ping (%s, %s)\n",
			session->log->name, endpoint->name, transport_name(endpoint->transport),
			endpoint->domain->device);
		return;
	}
	if (session->shortest == session->longest)
		snprintf(sizes, sizeof(sizes), "%" PRIu32, session->longest);
	else
		snprintf(sizes, sizeof(sizes), "%" PRIu32 " to %" PRIu32, session->shortest, session->longest);
	fprintf(environment_output(session->environment), "%s: %s of %s byte%s from %s %sanswered (%s, %s%s)\n",
		session->log->name, rping_pings_text(session->answered, 0, pings), sizes,
		units_plural(session->longest), endpoint->name, session->options->validate ? "verified and " : "",
		transport_name(endpoint->transport), endpoint->domain->device,
		session->options->validate ? "" : RPING_NOT_COMPARED);
}

static void timed_out(void *owner)
{
	struct session *session = owner;
	char silence[ENDPOINT_TIMEOUT_CAUSE_SIZE];

	if (is_worth_telling(session))
		log_failure(
			session->log,
			&(struct failure){ .object = session->endpoint->name, .phase = state_text(&session->state) },
			"timed out after %g s in ping %" PRIu64 "%s", units_seconds(session->state.timeout),
			session->answered, endpoint_timeout_cause(session->endpoint, silence));
	end(session, OUTCOME_FAILED);
}

/*
 * Delivery of the last answer is neither confirmed nor refuted. A client that has all answers may have destroyed its
 * queue pair while its DREQ is late: no failure for a persistent server. The client of a one-shot server must
 * disconnect.
 */
static void unconfirmed(void *owner)
{
	struct session *session = owner;
	bool may_be_all = session->answered + 1 >= session->promised || session->state.now == SESSION_SETTLING;

	if (session->options->persistent && may_be_all)
		end(session, OUTCOME_OK);
	else
		timed_out(session);
}

/* Counts the last answer once its delivery is confirmed, or no failure of it was reported until the end. */
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

static void idle_too_long(void *owner)
{
	struct session *session = owner;
	char pings[PINGS_TEXT_SIZE];

	answer_delivered(session);
	if (is_worth_telling(session))
		log_error(session->log, session->endpoint->name, "nothing came for %g s after %s (--idle-timeout)",
			  units_seconds(session->options->idle_timeout),
			  rping_pings_text(session->answered, session->promised, pings));
	end(session, OUTCOME_FAILED);
}

/* ---- the cycle of a ping: session_completed() ends the session if a step fails ---- */

static enum outcome out_of_order(struct session *session)
{
	log_error(session->log, session->endpoint->name, "ping %" PRIu64 ": a message out of order, while %s",
		  session->answered, state_text(&session->state));
	return OUTCOME_FAILED;
}

static enum outcome check_advertisement(struct session *session, const char *what, const struct advertisement *memory,
					uint32_t least)
{
	const char *fault = advertisement_fault(memory, least, PING_SIZE_MOST);

	if (!fault)
		return OUTCOME_OK;
	log_error(session->log, session->endpoint->name,
		  "ping %" PRIu64 ": the client's %s of %" PRIu32 " bytes cannot be used: %s", session->answered, what,
		  memory->size, fault);
	return OUTCOME_FAILED;
}

/* Grows the buffer by doubling, so that a client with ever longer pings does not cost a registration for each. */
static enum outcome reserve(struct session *session, uint32_t length)
{
	size_t room = session->buffer ? session->buffer->length : 0;

	if (room >= length)
		return OUTCOME_OK;
	room *= 2;
	if (room < length)
		room = length;
	if (room > PING_SIZE_MOST)
		room = PING_SIZE_MOST;
	/* The last WRITE may not be acknowledged yet. It is when the next READ completes. */
	region_destroy(session->outgrown);
	session->outgrown = session->buffer;
	session->buffer = NULL;
	free(session->expected);
	session->expected = NULL;
	if (session->options->validate) {
		session->expected = malloc(room);
		if (!session->expected) {
			log_error(session->log, session->endpoint->name, "out of memory");
			return OUTCOME_INTERNAL;
		}
	}
	return region_create(session->endpoint->domain, room, REGION_READ_SINK, &session->buffer);
}

static enum outcome read_source(struct session *session, const struct advertisement *source)
{
	enum outcome outcome = check_advertisement(session, "source", source, 1);

	if (!outcome)
		outcome = reserve(session, source->size);
	if (outcome)
		return outcome;
	session->length = source->size;
	enter(session, SESSION_READING);
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

/* The payload of a ping depends on its number only, for stock clients, too. */
static enum outcome compare(struct session *session)
{
	struct payload_difference difference;

	payload_ping_fill(session->expected, session->length, ping_number(session->answered));
	if (payload_equal(session->expected, session->buffer->memory, session->length, &difference))
		return OUTCOME_OK;
	log_error(session->log, session->endpoint->name,
		  "ping %" PRIu64 ": what was read differs at byte %zu of %" PRIu32 ": expected 0x%02x, found 0x%02x",
		  session->answered, difference.position, session->length, difference.expected, difference.found);
	return OUTCOME_FAILED;
}

static enum outcome source_read(struct session *session)
{
	const struct rping_options *options = session->options;
	struct work go_ahead = control_send(&session->control, GO_AHEAD);

	rping_classic_completion(session->environment, "rdma read");
	region_destroy(session->outgrown);
	session->outgrown = NULL;
	if (options->validate && compare(session))
		return OUTCOME_FAILED;
	if (options->verbose)
		ping_print(environment_output(session->environment), "server ping data", session->buffer->memory,
			   session->length);
	/* Unsignalled: the completion of the next ping's READ on the same send queue covers it. */
	go_ahead.silent = true;
	enter(session, SESSION_AWAITING_SINK);
	return endpoint_post(session->endpoint, &go_ahead, 1);
}

/*
 * RC keeps the order of WRITE and SEND, so the go-ahead is posted right behind the WRITE, which saves a round trip.
 * Both are unsignalled: the client's next message proves delivery.
 */
static enum outcome write_sink(struct session *session, const struct advertisement *sink)
{
	enum outcome outcome = check_advertisement(session, "sink", sink, session->length);
	struct work works[] = {
		{
			.kind = WORK_WRITE,
			.region = session->buffer,
			.length = session->length,
			.remote_address = sink->address,
			.remote_key = sink->key,
			.silent = true,
		},
		control_send(&session->control, GO_AHEAD),
	};

	if (outcome)
		return outcome;
	works[1].silent = true;
	session->unconfirmed_answer = true;
	enter(session, SESSION_ANSWERED);
	return endpoint_post(session->endpoint, works, sizeof(works) / sizeof(works[0]));
}

static enum outcome disconnect(struct session *session)
{
	enter(session, SESSION_DISCONNECTING);
	return endpoint_disconnect(session->endpoint);
}

/* A WRITE of no bytes touches no memory; it completes when everything posted before it has been delivered. */
static enum outcome request_confirmation(struct session *session, enum session_state state)
{
	enter(session, state);
	return endpoint_post(session->endpoint, &(struct work){ .kind = WORK_WRITE, .region = session->buffer }, 1);
}

static void confirm(void *owner)
{
	struct session *session = owner;
	enum outcome outcome = request_confirmation(session, SESSION_CONFIRMING);

	if (outcome)
		end(session, outcome);
}

/* The completion may come after the client's next message, or its disconnect, has confirmed delivery. */
static enum outcome confirmed(struct session *session)
{
	bool settles = session->state.now == SESSION_SETTLING;

	if (!settles && session->state.now != SESSION_CONFIRMING)
		return OUTCOME_OK;
	answer_delivered(session);
	if (settles)
		return disconnect(session);
	enter(session, SESSION_IDLE);
	return OUTCOME_OK;
}

static enum outcome message_received(struct session *session, const struct completion *completion)
{
	struct advertisement memory;
	enum outcome outcome = control_take(&session->control, session->endpoint, completion, &memory);

	if (outcome)
		return outcome;
	if (session->unconfirmed_answer)
		rping_classic_completion(session->environment, "rdma write");
	if (session->unconfirmed_answer || session->state.now == SESSION_AWAITING_SINK)
		rping_classic_completion(session->environment, "send");
	rping_classic_completion(session->environment, "recv");
	switch ((enum session_state)session->state.now) {
	case SESSION_ESTABLISHED:
	case SESSION_IDLE:
	case SESSION_ANSWERED:
	case SESSION_CONFIRMING:
		answer_delivered(session);
		return read_source(session, &memory);
	case SESSION_AWAITING_SINK:
		return write_sink(session, &memory);
	case SESSION_SETTLING:
		return confirmed(session);
	default:
		return out_of_order(session);
	}
}

static void session_completed(void *owner, struct endpoint *endpoint, const struct completion *completion)
{
	struct session *session = owner;
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
		end(session, outcome);
}

/* ---- the connection ---- */

static void client_disconnected(struct session *session)
{
	switch ((enum session_state)session->state.now) {
	case SESSION_ESTABLISHED:
	case SESSION_IDLE:
	case SESSION_ANSWERED:
	case SESSION_CONFIRMING:
	case SESSION_SETTLING:
		/* A disconnect between pings confirms delivery, too. */
		answer_delivered(session);
		end(session, verdict(session));
		break;
	case SESSION_DISCONNECTING:
		end(session, verdict(session));
		break;
	default:
		log_failure(
			session->log,
			&(struct failure){ .object = session->endpoint->name, .phase = state_text(&session->state) },
			"the client went away in the middle of ping %" PRIu64, session->answered);
		end(session, OUTCOME_FAILED);
		break;
	}
}

static void session_event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct session *session = owner;

	rping_classic_event(session->environment, session->options, endpoint, event->kind);
	switch (event->kind) {
	case EVENT_ESTABLISHED:
		++*session->connected;
		enter(session, SESSION_ESTABLISHED);
		break;
	case EVENT_DISCONNECTED:
		client_disconnected(session);
		break;
	case EVENT_FAILED:
		end(session, event->outcome);
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
		.expired = timed_out,
		.owner = session,
	};
	session->promised =
		hello_read(private_data, length, HELLO_RPING, &hello) ? hello.count : (uint64_t)options->count;
	session->link = list;
	session->next = *list;
	if (session->next)
		session->next->link = &session->next;
	*list = session;
	request->handlers = &session_handlers;
	request->owner = session;
	return session;
}

/* Called before accepting: the client's first message may arrive together with EVENT_ESTABLISHED. */
enum outcome session_prepare(struct session *session)
{
	enum outcome outcome = control_create(&session->control, session->endpoint->domain);

	if (!outcome)
		outcome = endpoint_open_queue(session->endpoint);
	if (!outcome)
		outcome = control_open(&session->control, session->endpoint);
	return outcome;
}

void session_reject(struct session *session, const char *reason)
{
	endpoint_reject(session->endpoint, reason, strlen(reason) + 1);
	session->endpoint = NULL;
}

enum outcome session_accept(struct session *session, session_callback *ended, void *owner)
{
	struct hello hello = { .tool = HELLO_RPING, .capacity = PING_SIZE_MOST };
	uint8_t bytes[HELLO_SIZE];

	session->ended = ended;
	session->owner = owner;
	hello_write(&hello, bytes);
	enter(session, SESSION_ACCEPTING);
	return endpoint_accept(session->endpoint, bytes, sizeof(bytes));
}

void session_dismiss(struct session *session, enum interruption reason)
{
	enum outcome outcome;

	if (session->state.now >= SESSION_SETTLING)
		return;
	if (!session_is_connected(session)) {
		end(session, OUTCOME_FAILED);
		return;
	}
	session->overdue = reason == INTERRUPTION_DEADLINE;
	outcome = session->unconfirmed_answer && !session->overdue ? request_confirmation(session, SESSION_SETTLING)
								   : disconnect(session);
	if (outcome)
		end(session, outcome);
}

void session_destroy(struct session *session)
{
	if (session_is_connected(session))
		--*session->connected;
	state_stop(&session->state);
	endpoint_destroy(session->endpoint);
	control_destroy(&session->control);
	region_destroy(session->buffer);
	region_destroy(session->outgrown);
	free(session->expected);
	*session->link = session->next;
	if (session->next)
		session->next->link = session->link;
	free(session);
}
