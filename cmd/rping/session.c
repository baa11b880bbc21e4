/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/session.h"

#include <inttypes.h>
#include <sys/param.h>

#include "cmd/hello.h"

enum session_state {
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
static const struct peer_state states[] = {
	[SESSION_ACCEPTING] = { "accepting" },
	[SESSION_ESTABLISHED] = { "waiting for the first ping", .waits = true },
	[SESSION_IDLE] = { "waiting for the next ping" },
	[SESSION_ANSWERED] = { "waiting for the next ping, which confirms the answer", .waits = true },
	[SESSION_CONFIRMING] = { "waiting for the acknowledgement of the answer", .waits = true },
	[SESSION_READING] = { "reading the ping", .waits = true },
	[SESSION_AWAITING_SINK] = { "waiting for the client's sink", .waits = true },
	[SESSION_DISCONNECTING] = { "disconnecting" },
};

/* Index of the server's only message. It is all zeros. */
enum {
	GO_AHEAD
};

/*
 * After an answer the server waits for the client's next message for half of --timeout. Then it requests an
 * acknowledgement and waits for the other half: it detects a client that vanished within --timeout, even if the pings
 * are further apart.
 */
static void session_enter(struct session *session, enum session_state state)
{
	bool half = state == SESSION_ANSWERED || state == SESSION_CONFIRMING;

	session->peer.limit = session->peer.options->common.timeout / (half ? 2 : 1);
	peer_enter(&session->peer, state, session->peer.endpoint->name);
}

/* ---- the connection ---- */

void session_prepare(struct session *session, struct environment *environment, const struct rping_options *options,
		     const struct log *log, const struct endpoint_event *request, loop_callback *expired)
{
	struct hello hello;

	peer_prepare(&session->peer, environment, options, log, states, expired);
	session->peer.endpoint = request->request;
	session->expected_pings = hello_read(request->private_data, request->private_length, HELLO_RPING, &hello)
					  ? hello.count
					  : (uint64_t)options->count;
}

/* Returns the maximum ping size of this server. */
static uint32_t session_limit(const struct session *session)
{
	return ping_limit(session->peer.endpoint->domain, PING_SIZE_MAX);
}

enum outcome session_accept(void *context)
{
	struct session *session = context;
	struct hello hello = { .tool = HELLO_RPING, .capacity = session_limit(session) };
	uint8_t bytes[HELLO_SIZE];
	enum outcome outcome = peer_open(&session->peer);

	if (outcome)
		return outcome;
	hello_write(&hello, bytes);
	return endpoint_accept(session->peer.endpoint, bytes, sizeof(bytes));
}

void session_established(struct session *session)
{
	session->figures->connected++;
	session_enter(session, SESSION_ESTABLISHED);
}

bool session_is_connected(const struct session *session)
{
	return session->peer.state >= SESSION_ESTABLISHED;
}

static enum outcome session_disconnect(struct session *session)
{
	session_enter(session, SESSION_DISCONNECTING);
	return endpoint_disconnect(session->peer.endpoint);
}

/* ---- the pings ---- */

/* Counts the last answer when its delivery is confirmed. */
static void answer_delivered(struct session *session)
{
	if (!session->unconfirmed)
		return;
	session->unconfirmed = false;
	if (!session->peer.pings && session->no_ping_limit->printed)
		session->no_ping_limit->printed--;
	session->peer.log = &session->peer.environment->log;
	session->shortest = session->peer.pings ? MIN(session->shortest, session->length) : session->length;
	session->longest = MAX(session->longest, session->length);
	session->peer.pings++;
	session->figures->answered++;
}

/* Posts a WRITE of length 0, which accesses no memory. It completes when everything posted before it is delivered. */
static enum outcome request_confirmation(struct session *session)
{
	session_enter(session, SESSION_CONFIRMING);
	return endpoint_post(session->peer.endpoint, &(struct work){ .kind = WORK_WRITE, .region = session->buffer },
			     1);
}

/* The completion may arrive after the client's next message, which has confirmed delivery. */
static enum outcome confirmed(struct session *session)
{
	if (session->peer.state != SESSION_CONFIRMING)
		return OUTCOME_OK;
	answer_delivered(session);
	if (session->ending)
		return session_disconnect(session);
	session_enter(session, SESSION_IDLE);
	return OUTCOME_OK;
}

static enum outcome check_advertisement(struct session *session, const char *what, const struct advertisement *memory,
					uint32_t minimum)
{
	const char *fault = advertisement_fault(memory, minimum, session_limit(session));

	if (!fault)
		return OUTCOME_OK;
	return peer_error(&session->peer, "ping %" PRIu64 ": the client's %s of %" PRIu32 " bytes cannot be used: %s",
			  session->peer.pings, what, memory->size, fault);
}

static enum outcome buffer_reserve(struct session *session, uint32_t length)
{
	if (session->buffer && session->buffer->length >= length)
		return OUTCOME_OK;
	region_destroy(session->old_buffer);
	session->old_buffer = session->buffer;
	session->buffer = NULL;
	return region_create(session->peer.endpoint->domain, length, REGION_READ_SINK, &session->buffer);
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
	return endpoint_post(session->peer.endpoint,
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
	struct work go_ahead = peer_send(&session->peer, GO_AHEAD);

	peer_print_completion(&session->peer, "rdma read");
	region_destroy(session->old_buffer);
	session->old_buffer = NULL;
	session_enter(session, SESSION_AWAITING_SINK);
	return endpoint_post(session->peer.endpoint, &go_ahead, 1);
}

/*
 * Posts the go-ahead together with the WRITE, which saves a round trip: RC keeps their order. Only then verifies and
 * prints the ping: the client measures the time until the answer.
 */
static enum outcome write_sink(struct session *session, const struct advertisement *sink)
{
	const struct rping_options *options = session->peer.options;
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
		peer_send(&session->peer, GO_AHEAD),
	};

	if (outcome)
		return outcome;
	session->unconfirmed = true;
	session_enter(session, SESSION_ANSWERED);
	outcome = endpoint_post(session->peer.endpoint, works, sizeof(works) / sizeof(works[0]));
	if (outcome)
		return outcome;
	/* The payload of a ping depends only on its number, also with stock clients. */
	if (options->validate && !peer_verify(&session->peer, session->buffer->memory, session->length))
		return OUTCOME_FAILED;
	if (options->verbose)
		ping_print(session->peer.environment->output, "server ping data", session->buffer->memory,
			   session->length);
	return OUTCOME_OK;
}

static enum outcome message_received(struct session *session, const struct completion *completion)
{
	enum session_state state = session->peer.state;
	struct advertisement memory;
	enum outcome outcome = peer_receive(&session->peer, completion, &memory);

	if (outcome)
		return outcome;
	if (session->unconfirmed)
		peer_print_completion(&session->peer, "rdma write");
	if (session->unconfirmed || state == SESSION_AWAITING_SINK)
		peer_print_completion(&session->peer, "send");
	peer_print_completion(&session->peer, "recv");
	if (session->ending)
		return confirmed(session);
	if (state == SESSION_AWAITING_SINK)
		return write_sink(session, &memory);
	if (state == SESSION_READING)
		return peer_out_of_order(&session->peer);
	answer_delivered(session);
	return read_source(session, &memory);
}

enum outcome session_complete(struct session *session, const struct completion *completion)
{
	if (completion->status != COMPLETION_OK)
		return OUTCOME_FAILED;
	if (completion->kind == WORK_RECEIVE)
		return message_received(session, completion);
	return completion->kind == WORK_READ ? source_read(session) : confirmed(session);
}

/* ---- the end ---- */

enum outcome session_expire(struct session *session)
{
	/* At the deadline session_interrupt() follows. */
	if (session->peer.state == SESSION_ANSWERED)
		return loop_deadline_passed(session->peer.environment->loop) ? OUTCOME_OK
									     : request_confirmation(session);
	return peer_timed_out(&session->peer);
}

enum outcome session_interrupt(struct session *session, enum interruption reason)
{
	enum session_state state = session->peer.state;

	if (!session_is_connected(session))
		return OUTCOME_FAILED;
	session->ending = true;
	session->deadline_passed = reason == INTERRUPTION_DEADLINE;
	if (state == SESSION_ANSWERED && !session->deadline_passed)
		return request_confirmation(session);
	if (state == SESSION_DISCONNECTING || (state == SESSION_CONFIRMING && !session->deadline_passed))
		return OUTCOME_OK;
	return session_disconnect(session);
}

enum outcome session_verdict(struct session *session)
{
	enum session_state state = session->peer.state;
	bool persistent = session->peer.options->persistent, interrupted = state == SESSION_DISCONNECTING;
	/* The only client must have been answered at least once: else nothing was tested. */
	uint64_t required = session->expected_pings ? session->expected_pings : !persistent;
	char pings[PINGS_TEXT_SIZE], cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];

	/* run.c has reported a passed deadline. */
	if (session->deadline_passed)
		return OUTCOME_FAILED;
	if (state == SESSION_READING || state == SESSION_AWAITING_SINK) {
		log_cause(session->peer.log, session->peer.endpoint->name, peer_state_text(&session->peer), 0,
			  "the client went away in the middle of ping %" PRIu64 "%s", session->peer.pings,
			  endpoint_timeout_cause(session->peer.endpoint, cause));
		return OUTCOME_FAILED;
	}
	/* A disconnect of the client between two pings confirms delivery. */
	if (!interrupted)
		answer_delivered(session);
	/* A signal is the regular end of a persistent server and its sessions. */
	if (session->peer.pings >= required || (interrupted && persistent))
		return OUTCOME_OK;
	return peer_error(&session->peer, "%s after %s", interrupted ? "interrupted" : "the client disconnected",
			  peer_pings_text(session->peer.pings, session->expected_pings, pings));
}

void session_close(struct session *session)
{
	peer_close(&session->peer);
	region_destroy(session->buffer);
	region_destroy(session->old_buffer);
}
