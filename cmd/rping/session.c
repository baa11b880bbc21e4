/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/session.h"

#include <inttypes.h>

#include "cmd/hello.h"

/*
 * A client may pause between two pings, but not within one and not before the first: a client that connects and sends
 * nothing would block a server without -P forever.
 */
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

/* Index of the server's only message. It is all zeros. */
enum {
	GO_AHEAD
};

/* ---- the connection ---- */

void session_prepare(struct session *session, struct rping_server *server, const struct log *log,
		     const struct endpoint_event *request)
{
	struct peer *peer = &session->peer;
	struct hello hello;
	bool ours = hello_read(request->private_data, request->private_length, HELLO_RPING, &hello);

	session->server = server;
	peer->options = server->options;
	peer->run = server->run;
	peer->log = log;
	peer->endpoint = request->request;
	peer->name = request->request->name;
	peer->requested = ours ? hello.count : (uint64_t)peer->options->count;
	if (ours && hello.udp_port >= UDP_PORT_FIRST)
		peer->endpoint->options.udp_port = hello.udp_port;
}

/* Returns the maximum ping size of this server. */
static uint32_t session_limit(const struct session *session)
{
	return ping_limit(session->peer.endpoint->domain, PING_SIZE_MAX);
}

enum outcome session_accept(struct session *session)
{
	enum outcome outcome = session ? peer_open(&session->peer) : OUTCOME_INTERNAL;

	return outcome ? outcome : peer_greet(&session->peer, session_limit(session), 0, endpoint_accept);
}

void session_established(struct session *session)
{
	session->server->figures.connected++;
	peer_enter(&session->peer, SESSION_ESTABLISHED, "waiting for the first ping", FOR_TIMEOUT);
}

bool session_is_connected(const struct session *session)
{
	return session->peer.state >= SESSION_ESTABLISHED;
}

static enum outcome session_disconnect(struct session *session)
{
	peer_enter(&session->peer, SESSION_DISCONNECTING, "disconnecting", WITHOUT_LIMIT);
	return endpoint_disconnect(session->peer.endpoint);
}

/* ---- the pings ---- */

/* An answer was sent; its delivery is not confirmed yet. */
static bool is_unconfirmed(const struct session *session)
{
	return session->peer.state == SESSION_ANSWERED || session->peer.state == SESSION_CONFIRMING;
}

/* Counts the last answer when its delivery is confirmed. The next state follows. */
static void answer_delivered(struct session *session)
{
	struct rping_server *server = session->server;

	if (!is_unconfirmed(session))
		return;
	if (!session->peer.pings && server->no_ping_limit.printed)
		server->no_ping_limit.printed--;
	session->peer.log = &server->run->log;
	peer_count_ping(&session->peer);
	server->figures.answered++;
}

/*
 * Posts a READ of length bytes from the client's memory, or a WRITE to it. A WRITE of a ping is posted together with
 * the go-ahead, which saves a round trip: RC keeps their order.
 */
static enum outcome post_transfer(struct session *session, enum work_kind kind, const struct advertisement *memory,
				  uint32_t length)
{
	struct peer *peer = &session->peer;
	bool answers = kind == WORK_WRITE && length;
	struct work works[2] = { {
		.kind = kind,
		.tag = peer->state == SESSION_CONFIRMING,
		.region = peer->data[BUFFER],
		.length = length,
		.remote_address = memory->address,
		.remote_key = memory->key,
		.unsignalled = answers,
	} };

	if (answers)
		works[1] = peer_message(peer, WORK_SEND, GO_AHEAD);
	return endpoint_post(peer->endpoint, works, answers ? 2 : 1);
}

/*
 * Posts a WRITE of length 0, which accesses no memory. It completes when everything posted before it is delivered. Over
 * iWARP it completes once it is sent (RFC 5040, 5.5), and so it is a READ there, of a byte: siw refuses an empty one.
 */
static enum outcome request_confirmation(struct session *session)
{
	bool iwarp = session->peer.endpoint->domain->fabric == FABRIC_IWARP;

	peer_enter(&session->peer, SESSION_CONFIRMING, "waiting for the acknowledgement of the answer",
		   FOR_HALF_TIMEOUT);
	return post_transfer(session, iwarp ? WORK_READ : WORK_WRITE, &session->source, iwarp);
}

/* The completion may arrive after the client's next message, which has confirmed delivery. */
static enum outcome confirmed(struct session *session)
{
	if (session->peer.state != SESSION_CONFIRMING)
		return OUTCOME_OK;
	answer_delivered(session);
	if (session->peer.ending)
		return session_disconnect(session);
	peer_enter(&session->peer, SESSION_IDLE, "waiting for the next ping", WITHOUT_LIMIT);
	return OUTCOME_OK;
}

static enum outcome check_advertisement(struct session *session, const char *what, const struct advertisement *memory,
					uint32_t minimum)
{
	uint32_t maximum = session_limit(session);

	if (memory->size >= minimum && memory->size <= maximum)
		return OUTCOME_OK;
	return peer_error(&session->peer,
			  "ping %" PRIu64 ": the client's %s has %" PRIu32 " bytes, not %" PRIu32 " to %" PRIu32,
			  session->peer.pings, what, memory->size, minimum, maximum);
}

static enum outcome buffer_reserve(struct session *session, uint32_t length)
{
	struct region **data = session->peer.data;

	if (data[BUFFER] && data[BUFFER]->length >= length)
		return OUTCOME_OK;
	region_destroy(data[OLD_BUFFER]);
	data[OLD_BUFFER] = data[BUFFER];
	data[BUFFER] = NULL;
	return region_create(session->peer.endpoint->domain, length, REGION_READ_SINK, &data[BUFFER]);
}

static enum outcome read_source(struct session *session, const struct advertisement *source)
{
	enum outcome outcome = check_advertisement(session, "source", source, 1);

	if (!outcome)
		outcome = buffer_reserve(session, source->size);
	if (outcome)
		return outcome;
	session->source = *source;
	session->peer.size = source->size;
	peer_enter(&session->peer, SESSION_READING, "reading the ping", FOR_TIMEOUT);
	return post_transfer(session, WORK_READ, source, source->size);
}

static enum outcome source_read(struct session *session)
{
	struct peer *peer = &session->peer;

	peer_print_completions(peer, "rdma read");
	region_destroy(peer->data[OLD_BUFFER]);
	peer->data[OLD_BUFFER] = NULL;
	peer_enter(peer, SESSION_AWAITING_SINK, "waiting for the client's sink", FOR_TIMEOUT);
	return peer_post(peer, WORK_SEND, GO_AHEAD, false);
}

/*
 * Verifies and prints the ping after posting the answer, which ends the client's time measurement.
 *
 * The server waits for the client's next message for half of --timeout. Then it requests an acknowledgement and waits
 * for the other half: it detects a client that vanished within --timeout, even if the pings are further apart.
 */
static enum outcome write_sink(struct session *session, const struct advertisement *sink)
{
	struct peer *peer = &session->peer;
	const uint8_t *ping = peer->data[BUFFER]->memory;
	enum outcome outcome = check_advertisement(session, "sink", sink, peer->size);

	if (outcome)
		return outcome;
	peer_enter(peer, SESSION_ANSWERED, "waiting for the next ping", FOR_HALF_TIMEOUT);
	outcome = post_transfer(session, WORK_WRITE, sink, peer->size);
	if (outcome)
		return outcome;
	/* A ping's payload depends only on its number, also with stock clients. */
	if (peer->options->validate && !peer_verify(peer, ping))
		return OUTCOME_FAILED;
	if (peer->options->verbose)
		ping_print(peer->run->output, "server ping data", ping, peer->size);
	return OUTCOME_OK;
}

/* The client's message proves the delivery of earlier sends. */
static const char *completions(const struct session *session)
{
	if (is_unconfirmed(session))
		return "rdma write completion\nsend completion\nrecv";
	return session->peer.state == SESSION_AWAITING_SINK ? "send completion\nrecv" : "recv";
}

static enum outcome message_received(struct session *session, const struct completion *completion)
{
	struct advertisement memory;
	enum outcome outcome = peer_receive(&session->peer, completion, &memory);

	if (outcome)
		return outcome;
	peer_print_completions(&session->peer, completions(session));
	if (session->peer.ending)
		return confirmed(session);
	if (session->peer.state == SESSION_AWAITING_SINK)
		return write_sink(session, &memory);
	if (session->peer.state == SESSION_READING)
		return peer_out_of_order(&session->peer);
	answer_delivered(session);
	return read_source(session, &memory);
}

enum outcome session_complete(struct session *session, const struct completion *completion)
{
	if (completion->status != COMPLETION_OK)
		return peer_work_failed(&session->peer, completion);
	if (completion->kind == WORK_RECEIVE)
		return message_received(session, completion);
	return completion->kind == WORK_READ && !completion->tag ? source_read(session) : confirmed(session);
}

/* ---- the end ---- */

enum outcome session_expire(struct session *session)
{
	/* At the deadline session_interrupt() follows. */
	if (session->peer.state == SESSION_ANSWERED)
		return loop_deadline_passed(session->peer.run->loop) ? OUTCOME_OK : request_confirmation(session);
	return peer_timed_out(&session->peer);
}

enum outcome session_interrupt(struct session *session, enum interruption reason)
{
	enum session_state state = session->peer.state;
	bool deadline = reason == INTERRUPTION_DEADLINE;

	if (!session_is_connected(session))
		return OUTCOME_FAILED;
	session->peer.ending = true;
	session->peer.deadline_passed = deadline;
	if (state == SESSION_ANSWERED && !deadline)
		return request_confirmation(session);
	if (state == SESSION_DISCONNECTING || (state == SESSION_CONFIRMING && !deadline))
		return OUTCOME_OK;
	return session_disconnect(session);
}

enum outcome session_verdict(struct session *session)
{
	const struct peer *peer = &session->peer;
	bool persistent = peer->options->persistent, interrupted = peer->state == SESSION_DISCONNECTING;
	bool in_ping = peer->state == SESSION_READING || peer->state == SESSION_AWAITING_SINK;
	/* The only client must have been answered at least once: else nothing was tested. */
	uint64_t required = peer->requested ? peer->requested : !persistent;

	/* command.c has reported a passed deadline. */
	if (peer->deadline_passed)
		return OUTCOME_FAILED;
	/* The client's disconnect between two pings confirms delivery. */
	if (!interrupted && !in_ping)
		answer_delivered(session);
	/* A signal is the regular end of a persistent server and its sessions. */
	if (!in_ping && (peer->pings >= required || (interrupted && persistent)))
		return OUTCOME_OK;
	return peer_failed(peer, interrupted ? "interrupted" : "the peer disconnected");
}
