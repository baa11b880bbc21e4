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
	SESSION_ASKING,
	SESSION_ACCEPTING,
	SESSION_GREETED,
	SESSION_IDLE,
	SESSION_ANSWERED,
	SESSION_PROVING,
	SESSION_READING,
	SESSION_AWAITING_SINK,
	SESSION_SETTLING,
	SESSION_LEAVING,
};

/*
 * A client may take its time between two pings, but not in the middle of one, nor before the first: who connects and
 * says nothing would hold a server without -P for ever. Accepting and leaving have the transport's deadlines.
 */
static const struct state_row session_states[] = {
	[SESSION_ASKING] = { "asking to connect", STATE_BIT(SESSION_ACCEPTING) },
	[SESSION_ACCEPTING] = { "accepting", STATE_BIT(SESSION_GREETED) },
	[SESSION_GREETED] = { "waiting for it to begin", STATE_BIT(SESSION_READING) | STATE_BIT(SESSION_LEAVING),
			      true },
	[SESSION_IDLE] = { "waiting for the next ping", STATE_BIT(SESSION_READING) | STATE_BIT(SESSION_LEAVING) },
	[SESSION_ANSWERED] = { "waiting for the next ping, which proves that its answer arrived",
			       STATE_BIT(SESSION_READING) | STATE_BIT(SESSION_PROVING) | STATE_BIT(SESSION_SETTLING) |
				       STATE_BIT(SESSION_LEAVING) },
	[SESSION_PROVING] = { "waiting for the news that its answer arrived",
			      STATE_BIT(SESSION_IDLE) | STATE_BIT(SESSION_READING) | STATE_BIT(SESSION_SETTLING) |
				      STATE_BIT(SESSION_LEAVING) },
	[SESSION_READING] = { "reading it", STATE_BIT(SESSION_AWAITING_SINK) | STATE_BIT(SESSION_LEAVING), true },
	[SESSION_AWAITING_SINK] = { "waiting for the client's sink",
				    STATE_BIT(SESSION_ANSWERED) | STATE_BIT(SESSION_LEAVING), true },
	[SESSION_SETTLING] = { "waiting for the news that its answer arrived", STATE_BIT(SESSION_LEAVING), true },
	[SESSION_LEAVING] = { "disconnecting", 0 },
};

/* The one message of a server, in its mailbox: a go-ahead is all zeros. */
enum {
	GO_AHEAD
};

static void idle_too_long(void *owner);
static void prove(void *owner);
static void timed_out(void *owner);
static void unconfirmed(void *owner);

/*
 * Half of --timeout for a proof of the answer to come by itself, the other half for the one that is requested: a client
 * that is gone is noticed in --timeout, also between two pings that are further apart. A run that ends with -P allows
 * the half, too, before all of it cuts the run short.
 */
static void enter(struct session *session, enum session_state state)
{
	int64_t idle = session->options->idle_timeout, half = session->state.timeout / 2;
	struct loop_timer *deadline = &session->state.deadline;
	struct loop *loop = session->state.loop;

	state_enter(&session->state, state, session->endpoint->name);
	if (idle && ((state == SESSION_ANSWERED && idle <= half) || (state == SESSION_GREETED && idle < 2 * half)))
		loop_timer_start(loop, deadline, idle, idle_too_long, session);
	else if (state == SESSION_ANSWERED)
		loop_timer_start(loop, deadline, half, prove, session);
	else if (state == SESSION_PROVING || (state == SESSION_SETTLING && session->options->persistent))
		loop_timer_start(loop, deadline, half, unconfirmed, session);
	else if (state == SESSION_IDLE && idle)
		loop_timer_start(loop, deadline, idle - half, idle_too_long, session);
}

/* Anybody can connect and say nothing as often as it likes, and the log is not to grow by that. */
static bool is_worth_telling(struct session *session)
{
	if (session->answered || session->is_told)
		return true;
	if (!session->is_untold)
		session->is_told = log_allows(session->silent);
	session->is_untold = !session->is_told;
	return session->is_told;
}

bool session_is_connected(const struct session *session)
{
	return session->state.now >= SESSION_GREETED;
}

/* Nothing may touch the session after this: its owner has freed it. */
static void end(struct session *session, enum outcome outcome)
{
	session->ended(session->owner, session, outcome, session_is_connected(session));
}

/* What a session was worth that has gone in order. */
static enum outcome verdict(struct session *session)
{
	const struct endpoint *endpoint = session->endpoint;
	bool dismissed = session->state.now == SESSION_LEAVING;
	/* A server with -P is ended from outside by its nature, and its clients with it. */
	bool by_nature = dismissed && session->options->persistent;
	bool cut_off = session->overdue || (dismissed && !by_nature && !session->answered);
	/* The only client has shown nothing if it did not ping. */
	bool alone = !session->options->persistent || session->options->one_off;
	uint64_t wanted = session->promised ? session->promised : alone;
	char pings[PINGS_TEXT_SIZE];

	if (!cut_off && (session->answered >= wanted || by_nature))
		return OUTCOME_OK;
	/* That the deadline has passed has been told. */
	if (!session->overdue && is_worth_telling(session))
		log_error(session->log, endpoint->name, "%s ended early, after %s%s", dismissed ? "we" : "the client",
			  rping_pings_text(session->answered, session->promised, pings),
			  dismissed ? ": interrupted" : "");
	return OUTCOME_FAILED;
}

void session_say_verdict(struct session *session, enum outcome outcome)
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
	if (session->unproven) {
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
	char silence[ENDPOINT_SILENCE_SIZE];

	if (is_worth_telling(session))
		log_error(session->log, session->endpoint->name, "ping %" PRIu64 ": %s: timed out after %g s%s",
			  session->answered, state_text(&session->state), units_seconds(session->state.timeout),
			  endpoint_silence(session->endpoint, silence));
	end(session, OUTCOME_FAILED);
}

/*
 * Nothing says that the last answer arrived, nor that it did not. The queue pair of a client that has all of them may
 * be gone, and its disconnect late: that is no failure of a server that goes on. One client alone has to leave in
 * order.
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

/* Something says that the last answer arrived, or, as no failure of it was reported, that it may be taken for that. */
static void answer_arrived(struct session *session)
{
	if (!session->unproven)
		return;
	session->unproven = false;
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

	answer_arrived(session);
	if (is_worth_telling(session))
		log_error(session->log, session->endpoint->name, "nothing came for %g s after %s (--idle-timeout)",
			  units_seconds(session->options->idle_timeout),
			  rping_pings_text(session->answered, session->promised, pings));
	end(session, OUTCOME_FAILED);
}

/* The cycle of a ping. Every step returns how it went; session_completed() ends the session if it went wrong. */

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

/*
 * Makes the buffer long enough. It grows by doubling, so that a client whose pings get longer and longer does not make
 * us register memory for each.
 */
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
	/* The last WRITE has arrived, but the queue may not know yet: the next READ's completion tells. */
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

/* A ping's text follows from its number alone, whoever sends it. */
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
	/* The next ping's READ is later on the same queue, and its completion covers this one. */
	go_ahead.silent = true;
	enter(session, SESSION_AWAITING_SINK);
	return endpoint_post(session->endpoint, &go_ahead, 1);
}

/*
 * The queue keeps its order, so that the go-ahead may follow the WRITE at once: a round trip less. That they arrived is
 * proven by what the client does next. A report of it would wake us for nothing else; only their failure is reported.
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
	session->unproven = true;
	enter(session, SESSION_ANSWERED);
	return endpoint_post(session->endpoint, works, sizeof(works) / sizeof(works[0]));
}

static enum outcome leave(struct session *session)
{
	enter(session, SESSION_LEAVING);
	return endpoint_disconnect(session->endpoint);
}

/* A WRITE of nothing, which touches no memory, is reported when all before it has arrived. */
static enum outcome ask_for_proof(struct session *session, enum session_state state)
{
	enter(session, state);
	return endpoint_post(session->endpoint, &(struct work){ .kind = WORK_WRITE, .region = session->buffer }, 1);
}

static void prove(void *owner)
{
	struct session *session = owner;
	enum outcome outcome = ask_for_proof(session, SESSION_PROVING);

	if (outcome)
		end(session, outcome);
}

/* The proof may be late: then the client's next message was one, or it has left. */
static enum outcome proven(struct session *session)
{
	bool settles = session->state.now == SESSION_SETTLING;

	if (!settles && session->state.now != SESSION_PROVING)
		return OUTCOME_OK;
	answer_arrived(session);
	if (settles)
		return leave(session);
	enter(session, SESSION_IDLE);
	return OUTCOME_OK;
}

static enum outcome message_came(struct session *session, const struct completion *completion)
{
	struct advertisement memory;
	enum outcome outcome = control_take(&session->control, session->endpoint, completion, &memory);

	if (outcome)
		return outcome;
	if (session->unproven)
		rping_classic_completion(session->environment, "rdma write");
	if (session->unproven || session->state.now == SESSION_AWAITING_SINK)
		rping_classic_completion(session->environment, "send");
	rping_classic_completion(session->environment, "recv");
	switch ((enum session_state)session->state.now) {
	case SESSION_GREETED:
	case SESSION_IDLE:
	case SESSION_ANSWERED:
	case SESSION_PROVING:
		answer_arrived(session);
		return read_source(session, &memory);
	case SESSION_AWAITING_SINK:
		return write_sink(session, &memory);
	case SESSION_SETTLING:
		return proven(session);
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
			outcome = message_came(session, completion);
		else if (completion->kind == WORK_READ)
			outcome = source_read(session);
		else
			outcome = proven(session);
	}
	if (outcome)
		end(session, outcome);
}

/* The connection. */

static void client_left(struct session *session)
{
	switch ((enum session_state)session->state.now) {
	case SESSION_GREETED:
	case SESSION_IDLE:
	case SESSION_ANSWERED:
	case SESSION_PROVING:
	case SESSION_SETTLING:
		/* Nobody leaves in order a moment too soon: this, too, proves that the last answer arrived. */
		answer_arrived(session);
		end(session, verdict(session));
		break;
	case SESSION_LEAVING:
		end(session, verdict(session));
		break;
	default:
		log_error(session->log, session->endpoint->name,
			  "ping %" PRIu64 ": %s: the client went away in the middle", session->answered,
			  state_text(&session->state));
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
		enter(session, SESSION_GREETED);
		break;
	case EVENT_DISCONNECTED:
		client_left(session);
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

/* Before the acceptance: the client's first message may come together with the news that it is connected. */
enum outcome session_prepare(struct session *session)
{
	enum outcome outcome = control_create(&session->control, session->endpoint->domain);

	if (!outcome)
		outcome = endpoint_open_queue(session->endpoint);
	if (!outcome)
		outcome = control_open(&session->control, session->endpoint);
	return outcome;
}

void session_refuse(struct session *session, const char *reason)
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
	outcome = session->unproven && !session->overdue ? ask_for_proof(session, SESSION_SETTLING) : leave(session);
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
