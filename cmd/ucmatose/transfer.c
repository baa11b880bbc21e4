/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of a connection: any number of them in bounded memory.
 *
 * Receives are posted into a ring of slots and reposted as they complete. Sends are posted in batches, from memory that
 * never changes and that connections share (core/payload.h). A message is checked before its slot is reused.
 *
 * Flow control, for a receiver with fewer slots than there are messages:
 *  - rdmatest peer: grants. A sender may send as many messages as the peer's hello says, and half of that more for each
 *    message of zero bytes (a grant) that comes back. The two directions take turns, and the last grant of one is used
 *    up before the other starts: grants and messages never share a ring at the same time. RNR NAKs would cost a pause
 *    per window, and iWARP has none: there the connection breaks. Measured on soft-RoCE (ucmatose -S 64 -C 3000):
 *    8.8 times the rate with RNR NAKs. Over soft, whose pauses are short, 0.9 times that rate.
 *  - stock peer: it sends all messages at once, so all receives are posted beforehand, as it does. They may share
 *    slots, because a stock peer's bytes are arbitrary and only their number can be checked. Messages beyond
 *    max_qp_wr or RECEIVES_BUDGET meet RNR NAKs (the sender retries up to --rnr-retry); on iWARP they are refused.
 *    The kernel's soft-RoCE sends up to 128 packets again after each RNR NAK: ten connections of 1000 messages took
 *    1.4 million packets with 64 receives each, and 40,050 with 1000.
 *
 * On iWARP the end that connected must send first (RFC 5044, section 7.1.2), but the first message here is the
 * server's. So an rdmatest server gets its first grant as a message of the client, instead of with the hello. A stock
 * server sends at once; if that is too early, the connection hangs.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#include "cmd/ucmatose/ucmatose.h"
#include "core/payload.h"

/* Maximum bytes of all slots of a run, unless one slot per connection needs more. */
#define MEMORY_BUDGET (UINT64_C(32) << 20)
/* Receives that all connections post for stock peers, except on iWARP. */
#define RECEIVES_BUDGET (UINT32_C(1) << 17)
/* Bytes of the slots of a connection, at least WINDOW_LEAST slots. More do not stay in CPU caches. */
#define WINDOW_BYTES (UINT64_C(4) << 20)
/* Maximum bytes of the slots of a region, unless one connection needs more. Connections share regions to save keys. */
#define REGION_SIZE ((size_t)4 << 20)

enum {
	WINDOW_MAX = 64, /* enough to hide a round trip, and few enough for a thousand connections */
	WINDOW_LEAST = 4,
	BATCH_MAX = WINDOW_MAX / 2,
	/* In flight: the two halves of a window. One has 0.63 of the rate (soft, -S 64 -C 200000, two processors). */
	GRANTS_MAX = 2,
	TAG_GRANT = WORK_TAG_MAX,
};

static uint32_t half_of(uint32_t window)
{
	return window > 1 ? window / 2 : 1;
}

static uint64_t slot_count(const struct ucmatose *run, const struct domain *domain)
{
	const uint64_t size = (uint64_t)run->options->size;
	uint64_t slots = MEMORY_BUDGET / (run->wanted * size);
	uint64_t max = WINDOW_BYTES / size < WINDOW_LEAST ? WINDOW_LEAST : MIN(WINDOW_BYTES / size, WINDOW_MAX);

	/* The send queue needs entries for grants. */
	if (max + GRANTS_MAX > domain->max_qp_wr)
		max = domain->max_qp_wr > GRANTS_MAX ? domain->max_qp_wr - GRANTS_MAX : 1;
	return MIN(MIN(slots ? slots : 1, max), run->messages);
}

static struct ucmatose_memory *memory_create(const struct ucmatose *run, struct domain *domain, enum outcome *outcome)
{
	const uint64_t size = (uint64_t)run->options->size;
	struct ucmatose_memory *memory = environment_allocate(run->environment, 1, sizeof(*memory));

	*outcome = OUTCOME_INTERNAL;
	if (!memory)
		return NULL;
	memory->slots = (uint32_t)slot_count(run, domain);
	memory->depth = (uint32_t)MIN(run->messages, domain->max_qp_wr);
	if (domain->fabric != FABRIC_IWARP)
		memory->depth = MIN(memory->depth, MAX(memory->slots, RECEIVES_BUDGET / run->wanted));
	memory->stride = memory->slots * (size_t)size;
	memory->capacity = (uint32_t)MIN(REGION_SIZE / memory->stride, run->wanted);
	if (!memory->capacity)
		memory->capacity = 1;
	memory->pattern = memory->capacity * memory->stride;
	*outcome = region_create(domain, memory->pattern + payload_pattern_size((size_t)size), REGION_LOCAL,
				 &memory->region);
	if (*outcome) {
		free(memory);
		return NULL;
	}
	payload_pattern_write(memory->region->memory + memory->pattern, (size_t)size);
	return memory;
}

static enum outcome assign_memory(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;
	struct domain *domain = connection->endpoint->domain;
	struct ucmatose_memory *memory = run->memory;
	enum outcome outcome;

	while (memory && (memory->region->domain != domain || memory->used == memory->capacity))
		memory = memory->next;
	if (!memory) {
		memory = memory_create(run, domain, &outcome);
		if (!memory)
			return outcome;
		memory->next = run->memory;
		run->memory = memory;
	}
	connection->memory = memory;
	connection->slots = memory->used++ * memory->stride;
	return OUTCOME_OK;
}

/* The slots are a ring. */
static size_t receive_slot(const struct ucmatose_connection *connection, uint64_t number)
{
	return connection->slots +
	       (size_t)(number % connection->memory->slots) * (size_t)connection->run->options->size;
}

static size_t message_offset(const struct ucmatose_connection *connection, uint32_t seed, uint64_t number)
{
	return connection->memory->pattern +
	       payload_pattern_offset((size_t)connection->run->options->size, seed, (uint32_t)number);
}

static bool is_iwarp(const struct ucmatose_connection *connection)
{
	return connection->endpoint->domain->fabric == FABRIC_IWARP;
}

static bool first_grant_is_message(const struct ucmatose_connection *connection)
{
	return connection->peer_window && is_iwarp(connection);
}

/* Receives to post in the whole run, for messages and grants. Several grants: no limit but the depth. */
static uint64_t receives_total(const struct ucmatose_connection *connection)
{
	const struct ucmatose *run = connection->run;

	if (connection->peer_window && run->messages > connection->peer_window)
		return UINT64_MAX;
	return run->messages + (run->is_server && first_grant_is_message(connection));
}

/* The queue pair may have got fewer entries than memory->depth. */
static uint64_t receives_free(const struct ucmatose_connection *connection)
{
	return connection->endpoint->options.receive_depth - (connection->posted - connection->consumed);
}

static enum outcome transfer_post_receives(struct ucmatose_connection *connection)
{
	const struct ucmatose_memory *memory = connection->memory;
	struct work work[BATCH_MAX];
	uint64_t room = receives_free(connection);
	enum outcome outcome;

	room = MIN(room, receives_total(connection) - connection->posted);
	while (room) {
		uint32_t count = (uint32_t)MIN(room, BATCH_MAX);

		for (uint32_t i = 0; i < count; i++)
			work[i] = (struct work){
				.kind = WORK_RECEIVE,
				.region = memory->region,
				.offset = receive_slot(connection, connection->posted + i),
				.length = (uint32_t)connection->run->options->size,
			};
		outcome = endpoint_post(connection->endpoint, work, count);
		if (outcome)
			return outcome;
		connection->posted += count;
		room -= count;
	}
	return OUTCOME_OK;
}

/* A server has the peer's hello before it accepts; a client calls this again when established. */
static void set_grants(struct ucmatose_connection *connection)
{
	const struct ucmatose *run = connection->run;

	connection->granted = run->messages;
	connection->allowed = run->messages;
	if (!connection->peer_window)
		return;
	connection->granted = MIN(run->messages, connection->memory->slots);
	connection->allowed = MIN(run->messages, connection->peer_window);
	if (run->is_server && first_grant_is_message(connection))
		connection->allowed = 0;
}

enum outcome ucmatose_transfer_prepare(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;
	struct endpoint *endpoint = connection->endpoint;
	enum outcome outcome;

	if (run->device && run->device != endpoint->domain->device)
		run->device = "several devices";
	else
		run->device = endpoint->domain->device;
	endpoint->options.send_depth = 1;
	endpoint->options.receive_depth = 1;
	if (!run->messages)
		return endpoint_create_qp(endpoint);
	if (run->options->size > endpoint->domain->max_message) {
		log_error(&run->environment->log, endpoint->name,
			  "-S %" PRId64 ": the longest message of device %s has %" PRIu32 " bytes", run->options->size,
			  endpoint->domain->device, endpoint->domain->max_message);
		return OUTCOME_USAGE;
	}
	/* A retried connection keeps its memory if the device is the same. */
	if (connection->memory && connection->memory->region->domain != endpoint->domain)
		connection->memory = NULL;
	outcome = connection->memory ? OUTCOME_OK : assign_memory(connection);
	if (outcome)
		return outcome;
	endpoint->options.send_depth = connection->memory->slots + GRANTS_MAX;
	/* A client does not know its peer yet. */
	endpoint->options.receive_depth =
		connection->peer_window ? connection->memory->slots : connection->memory->depth;
	set_grants(connection);
	/* May reduce the receive depth to what the device has memory for. */
	outcome = endpoint_create_qp(endpoint);
	return outcome ? outcome : transfer_post_receives(connection);
}

static enum outcome transfer_post_sends(struct ucmatose_connection *connection)
{
	const struct ucmatose_memory *memory = connection->memory;
	const uint32_t batch = half_of(memory->slots);
	const uint32_t size = (uint32_t)connection->run->options->size;
	struct work work[BATCH_MAX];
	enum outcome outcome;

	for (;;) {
		uint64_t in_flight = connection->sent - connection->acknowledged;
		uint64_t left = connection->run->messages - connection->sent;
		uint64_t count = MIN(connection->allowed - connection->sent, memory->slots - in_flight);

		count = MIN(count, batch);
		/* Each batch costs a call: while one is outstanding, wait for a full batch. */
		if (!count || (in_flight && count < batch && count < left))
			return OUTCOME_OK;
		for (uint32_t i = 0; i < count; i++)
			work[i] = (struct work){
				.kind = WORK_SEND,
				.region = memory->region,
				.offset = message_offset(connection, connection->send_seed, connection->sent + i),
				.length = size,
			};
		outcome = endpoint_post(connection->endpoint, work, (size_t)count);
		if (outcome)
			return outcome;
		connection->sent += count;
		/* The peer may reply before our last send completes. */
		if (connection->run->is_server && connection->sent == connection->run->messages)
			ucmatose_figures_start(&connection->run->figures, ACTIVITY_RECEIVING, clock_now());
	}
}

static enum outcome send_grant(struct ucmatose_connection *connection)
{
	const struct work work = {
		.kind = WORK_SEND,
		.tag = TAG_GRANT,
		.region = connection->memory->region,
	};

	connection->grants_in_flight++;
	return endpoint_post(connection->endpoint, &work, 1);
}

/* Grants half a window more, once receives are posted for it and for all messages granted before. */
static enum outcome grant_more(struct ucmatose_connection *connection)
{
	const uint32_t half = half_of(connection->memory->slots);
	uint64_t room = MIN(connection->memory->slots, connection->posted - connection->consumed);

	if (!connection->peer_window || connection->grants_in_flight == GRANTS_MAX ||
	    connection->granted >= connection->run->messages ||
	    connection->received + room < connection->granted + half)
		return OUTCOME_OK;
	connection->granted += half;
	return send_grant(connection);
}

static enum outcome start_sending(struct ucmatose_connection *connection)
{
	ucmatose_connection_enter(connection, CONNECTION_SENDING);
	return transfer_post_sends(connection);
}

void ucmatose_transfer_begin(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;
	const uint32_t depth = connection->endpoint->options.receive_depth;
	enum outcome outcome = OUTCOME_OK;

	if (!run->messages) {
		ucmatose_connection_enter(connection, CONNECTION_TRANSFERRED);
		return;
	}
	if (!run->is_server)
		set_grants(connection);
	if (!connection->peer_window && is_iwarp(connection) && run->messages > depth) {
		log_error(&run->environment->log, connection->endpoint->name,
			  "-C %" PRIu64 ": iWARP has no flow control, and device %s can post only %" PRIu32
			  " receives for a stock peer",
			  run->messages, connection->endpoint->domain->device, depth);
		outcome = OUTCOME_FAILED;
	} else if (run->is_server) {
		outcome = start_sending(connection);
	} else {
		ucmatose_connection_enter(connection, CONNECTION_RECEIVING);
		/* With the peer's hello the number of receives may be larger than before. */
		outcome = transfer_post_receives(connection);
		if (!outcome && first_grant_is_message(connection))
			outcome = send_grant(connection);
	}
	if (outcome)
		ucmatose_connection_fail(connection, outcome);
}

static enum outcome check_message(const struct ucmatose_connection *connection, uint32_t length)
{
	const struct ucmatose *run = connection->run;
	const struct log *log = &run->environment->log;
	const char *name = connection->endpoint->name;
	const struct ucmatose_memory *memory = connection->memory;
	struct payload_difference difference;

	if (connection->received == run->messages) {
		log_error(log, name, "connection %" PRIu32 ": received a message beyond the %" PRIu64 " of -C",
			  connection->index, run->messages);
		return OUTCOME_FAILED;
	}
	if (length != run->options->size) {
		log_error(log, name,
			  "connection %" PRIu32 ": message %" PRIu64 " has %" PRIu32 " bytes instead of %" PRId64,
			  connection->index, connection->received + 1, length, run->options->size);
		log_hint(log, "give both ends the same -S");
		return OUTCOME_FAILED;
	}
	if (connection->peer_is_ours &&
	    !payload_equal(
		    memory->region->memory + message_offset(connection, connection->receive_seed, connection->received),
		    memory->region->memory + receive_slot(connection, connection->consumed), length, &difference)) {
		log_error(log, name,
			  "connection %" PRIu32 ": message %" PRIu64
			  " differs at byte %zu: expected 0x%02x, found 0x%02x",
			  connection->index, connection->received + 1, difference.position, difference.expected,
			  difference.found);
		return OUTCOME_FAILED;
	}
	return OUTCOME_OK;
}

static enum outcome receive_completed(struct ucmatose_connection *connection, uint32_t length)
{
	struct ucmatose *run = connection->run;
	bool granted = false;
	enum outcome outcome;

	if (!length && connection->peer_window && connection->allowed < run->messages) {
		uint32_t more = connection->allowed ? half_of(connection->peer_window) : connection->peer_window;

		connection->allowed = MIN(connection->allowed + more, run->messages);
		granted = true;
	} else {
		outcome = check_message(connection, length);
		if (outcome)
			return outcome;
		connection->received++;
		ucmatose_figures_count(&run->figures, ACTIVITY_RECEIVING, run->progress);
		if (connection->peer_is_ours)
			run->figures.verified++;
	}
	connection->consumed++;
	/* Repost a grant's receive at once: the messages that follow may need it. */
	if (granted || receives_free(connection) >= half_of(connection->memory->slots)) {
		outcome = transfer_post_receives(connection);
		if (outcome)
			return outcome;
	}
	outcome = grant_more(connection);
	if (!outcome && granted && connection->state == CONNECTION_SENDING)
		outcome = transfer_post_sends(connection);
	return outcome;
}

/* If a direction is complete, starts the other one or ends the transfer. */
static enum outcome transfer_advance(struct ucmatose_connection *connection)
{
	const struct ucmatose *run = connection->run;
	const bool all_sent = connection->acknowledged == run->messages;
	const bool all_received = connection->received == run->messages;

	if (run->is_server && connection->state == CONNECTION_SENDING && all_sent)
		ucmatose_connection_enter(connection, CONNECTION_RECEIVING);
	else if (!run->is_server && connection->state == CONNECTION_RECEIVING && all_received)
		return start_sending(connection);
	if ((connection->state == CONNECTION_SENDING || connection->state == CONNECTION_RECEIVING) && all_sent &&
	    all_received)
		ucmatose_connection_enter(connection, CONNECTION_TRANSFERRED);
	return OUTCOME_OK;
}

/* A message too long for its receive fails at both ends. soft-RoCE reports a QP operation error at the receiver. */
static void log_failure_hint(const struct ucmatose_connection *connection, const struct completion *completion)
{
	bool too_long = completion->kind == WORK_RECEIVE
				? completion->status == COMPLETION_LENGTH || completion->status == COMPLETION_OTHER
				: completion->status == COMPLETION_REMOTE_REQUEST;

	if (too_long && !connection->peer_is_ours)
		log_hint(&connection->run->environment->log,
			 "the peer may run with another -S than the %" PRId64 " of this one",
			 connection->run->options->size);
}

void ucmatose_transfer_completion(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	struct ucmatose_connection *connection = context;
	enum outcome outcome;

	(void)endpoint;
	ucmatose_progressed(connection->run);
	if (connection->state == CONNECTION_DISCONNECTING)
		return; /* the run was interrupted: ignore late completions */
	if (completion->status) {
		log_failure_hint(connection, completion);
		outcome = OUTCOME_FAILED;
	} else if (completion->kind == WORK_RECEIVE) {
		outcome = receive_completed(connection, completion->length);
	} else if (completion->tag == TAG_GRANT) {
		connection->grants_in_flight--;
		outcome = grant_more(connection);
	} else {
		connection->acknowledged++;
		ucmatose_figures_count(&connection->run->figures, ACTIVITY_SENDING, connection->run->progress);
		outcome = transfer_post_sends(connection);
	}
	if (!outcome)
		outcome = transfer_advance(connection);
	if (outcome)
		ucmatose_connection_fail(connection, outcome);
	ucmatose_advance(connection->run);
}
