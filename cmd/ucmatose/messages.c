/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of a connection: any number of them in bounded memory.
 *
 * Receives are posted into a ring of slots and posted again as they complete. Sends are posted in batches, from the
 * pattern, which never changes. A message is checked before the next one may come into its slot. Flow control:
 *
 *  - A peer of ours: grants. A sender may send as many messages as the peer's hello has slots, and for each message of
 *    no bytes that comes back, a grant, half as many more. The two directions take turns, and the last grant of one is
 *    used up before the other begins: grants and messages never share a ring at the same time. RNR NAKs would cost a
 *    pause per window, and iWARP has none: there the connection breaks. Measured on soft-RoCE (ucmatose -S 64 -C 3000):
 *    8.8 times the rate with RNR NAKs.
 *  - A stock peer sends all messages at once. As many receives are posted before, as it does itself; they share slots,
 *    because its bytes are arbitrary. Those beyond RECEIVES_BUDGET meet RNR NAKs (the sender retries up to
 *    --rnr-retry); on iWARP those beyond what the device can post break the connection.
 *
 * On iWARP the end that connected must send first (RFC 5044, section 7.1.2), but the first message here is the
 * server's. So a server of ours gets its first grant as a message, in place of that in the hello. A stock server sends
 * at once; if that is too early, the connection hangs.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#include "cmd/ucmatose/ucmatose.h"
#include "core/payload.h"

/* Bytes of the slots of all connections, but for one slot of each. More do not stay in CPU caches. */
#define SLOTS_BUDGET (UINT64_C(4) << 20)
/* Receives that all connections post for stock peers: soft-RoCE sends up to 128 packets again after each RNR NAK. */
#define RECEIVES_BUDGET (UINT32_C(1) << 17)

enum {
	SLOTS_MAX = 64, /* enough to hide a round trip */
	BATCH_MAX = SLOTS_MAX / 2,
	/* In flight: the two halves of a window. One has 0.63 of the rate (soft, -S 64 -C 200000, two processors). */
	GRANTS_MAX = 2,
	TAG_GRANT = WORK_TAG_MAX,
};

static uint32_t half_of(uint32_t window)
{
	return window > 1 ? window / 2 : 1;
}

static bool is_iwarp(const struct ucmatose_connection *connection)
{
	return connection->endpoint->domain->fabric == FABRIC_IWARP;
}

/* ---- memory ---- */

/* A failure is reported. */
static enum outcome memory_create(struct ucmatose *run, struct domain *domain)
{
	const uint64_t size = (uint64_t)run->options->size;
	struct ucmatose_memory *memory = environment_allocate(run->environment, 1, sizeof(*memory));
	uint64_t slots, length;
	enum outcome outcome;

	if (!memory)
		return OUTCOME_INTERNAL;
	slots = MIN(MAX(SLOTS_BUDGET / (run->wanted * size), 1), MIN(SLOTS_MAX, run->messages));
	/* The send queue needs entries for grants. */
	slots = MIN(slots, MAX(domain->max_qp_wr, GRANTS_MAX + 1) - GRANTS_MAX);
	memory->slots = (uint32_t)slots;
	memory->pattern = (size_t)(run->wanted * slots * size);
	length = run->wanted * slots * size + payload_pattern_size((size_t)size);
	outcome = region_create(domain, (size_t)MIN(length, SIZE_MAX), REGION_LOCAL, &memory->region);
	if (outcome) {
		free(memory);
		return outcome;
	}
	payload_pattern_write(memory->region->memory + memory->pattern, (size_t)size);
	memory->next = run->memory;
	run->memory = memory;
	return OUTCOME_OK;
}

static const struct ucmatose_memory *memory_find(const struct ucmatose *run, const struct domain *domain)
{
	const struct ucmatose_memory *memory = run->memory;

	while (memory && memory->region->domain != domain)
		memory = memory->next;
	return memory;
}

void ucmatose_messages_free(struct ucmatose *run)
{
	while (run->memory) {
		struct ucmatose_memory *memory = run->memory;

		run->memory = memory->next;
		region_destroy(memory->region);
		free(memory);
	}
}

static size_t receive_slot(const struct ucmatose_connection *connection, uint64_t number)
{
	const size_t slots = connection->memory->slots;

	return (connection->index * slots + (size_t)(number % slots)) * (size_t)connection->run->options->size;
}

static size_t message_offset(const struct ucmatose_connection *connection, uint32_t seed, uint64_t number)
{
	return connection->memory->pattern +
	       payload_pattern_offset((size_t)connection->run->options->size, seed, (uint32_t)number);
}

/* ---- grants ---- */

/* Messages that an end may send in the whole run, after its first window and that number of grants. */
static uint64_t granted(const struct ucmatose_connection *connection, bool by_client, uint32_t window, uint64_t grants)
{
	const bool first_is_message = by_client && is_iwarp(connection);

	if (!connection->peer_window)
		return connection->run->messages;
	if (first_is_message && !grants)
		return 0;
	return MIN(connection->run->messages, window + (grants - first_is_message) * half_of(window));
}

static uint64_t granted_to_us(const struct ucmatose_connection *connection)
{
	return granted(connection, connection->run->is_server, connection->peer_window, connection->grants_received);
}

static uint64_t granted_to_peer(const struct ucmatose_connection *connection)
{
	return granted(connection, !connection->run->is_server, connection->memory->slots, connection->grants_sent);
}

/* Grants half a window more, once receives are posted for it and for all messages granted before. */
static enum outcome grant_more(struct ucmatose_connection *connection)
{
	const struct ucmatose_memory *memory = connection->memory;
	const struct work work = { .kind = WORK_SEND, .tag = TAG_GRANT, .region = memory->region };
	uint64_t room = MIN(memory->slots, connection->posted - connection->consumed);
	uint64_t before = granted_to_peer(connection);

	if (before == connection->run->messages || connection->grants_in_flight == GRANTS_MAX ||
	    connection->received + room < before + half_of(memory->slots))
		return OUTCOME_OK;
	connection->grants_sent++;
	connection->grants_in_flight++;
	return endpoint_post(connection->endpoint, &work, 1);
}

/* ---- sends and receives ---- */

/* Each call costs: nothing is posted below the least number. The device may have given fewer entries than asked for. */
static enum outcome post_receives(struct ucmatose_connection *connection, uint32_t least)
{
	uint64_t total = connection->peer_window ? UINT64_MAX : connection->run->messages;
	uint64_t free = connection->endpoint->options.receive_depth - (connection->posted - connection->consumed);
	uint64_t room = free < least ? 0 : MIN(free, total - connection->posted);
	struct work work[BATCH_MAX];
	enum outcome outcome = OUTCOME_OK;

	while (room && !outcome) {
		uint32_t count = (uint32_t)MIN(room, BATCH_MAX);

		for (uint32_t i = 0; i < count; i++, connection->posted++)
			work[i] = (struct work){
				.kind = WORK_RECEIVE,
				.region = connection->memory->region,
				.offset = receive_slot(connection, connection->posted),
				.length = (uint32_t)connection->run->options->size,
			};
		outcome = endpoint_post(connection->endpoint, work, count);
		room -= count;
	}
	return outcome;
}

static enum outcome post_sends(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;
	const struct ucmatose_memory *memory = connection->memory;
	const uint32_t batch = half_of(memory->slots), size = (uint32_t)run->options->size;
	struct work work[BATCH_MAX];

	for (;;) {
		uint64_t in_flight = connection->sent - connection->acknowledged;
		uint64_t left = run->messages - connection->sent;
		uint64_t count = MIN(granted_to_us(connection) - connection->sent, memory->slots - in_flight);
		enum outcome outcome;

		count = MIN(count, batch);
		/* Each batch costs a call: while one is outstanding, wait for a full batch. */
		if (!count || (in_flight && count < batch && count < left))
			return OUTCOME_OK;
		for (uint32_t i = 0; i < count; i++, connection->sent++)
			work[i] = (struct work){
				.kind = WORK_SEND,
				.region = memory->region,
				.offset = message_offset(connection, connection->send_seed, connection->sent),
				.length = size,
			};
		outcome = endpoint_post(connection->endpoint, work, (size_t)count);
		if (outcome)
			return outcome;
		/* The peer may reply before our last send completes. */
		if (run->is_server && connection->sent == run->messages)
			ucmatose_figures_begin(run, CONNECTION_RECEIVING);
	}
}

enum outcome ucmatose_messages_prepare(struct ucmatose_connection *connection)
{
	struct ucmatose *run = connection->run;
	struct endpoint *endpoint = connection->endpoint;
	struct domain *domain = endpoint->domain;
	uint64_t ahead = is_iwarp(connection) ? run->messages : MIN(run->messages, RECEIVES_BUDGET / run->wanted);
	uint32_t slots;
	enum outcome outcome = OUTCOME_OK;

	run->device = run->device && run->device != domain->device ? "several devices" : domain->device;
	if (!run->messages)
		return endpoint_create_qp(endpoint);
	if (run->options->size > domain->max_message) {
		log_error(&run->environment->log, endpoint->name,
			  "-S %" PRId64 ": the longest message of device %s has %" PRIu32 " bytes", run->options->size,
			  domain->device, domain->max_message);
		return OUTCOME_USAGE;
	}
	if (!memory_find(run, domain))
		outcome = memory_create(run, domain);
	if (outcome)
		return outcome;
	connection->memory = memory_find(run, domain);
	slots = connection->memory->slots;
	endpoint->options.send_depth = slots + GRANTS_MAX;
	endpoint->options.receive_depth = slots;
	if (!connection->peer_window) /* a client does not know its peer yet */
		endpoint->options.receive_depth = (uint32_t)MAX(MIN(ahead, domain->max_qp_wr), slots);
	outcome = endpoint_create_qp(endpoint);
	return outcome ? outcome : post_receives(connection, 1);
}

/* A server sends first, a client when it has received all. */
static enum outcome go_on(struct ucmatose_connection *connection)
{
	const struct ucmatose *run = connection->run;
	const bool all_sent = connection->acknowledged == run->messages;
	const bool all_received = connection->received == run->messages;
	enum connection_state state = CONNECTION_TRANSFERRED;

	if (!all_sent || !all_received)
		state = (run->is_server ? all_sent : !all_received) ? CONNECTION_RECEIVING : CONNECTION_SENDING;
	if (state != connection->state)
		ucmatose_connection_enter(connection, state);
	return state == CONNECTION_SENDING ? post_sends(connection) : OUTCOME_OK;
}

enum outcome ucmatose_messages_begin(struct ucmatose_connection *connection)
{
	enum outcome outcome = OUTCOME_OK;

	/* With the peer's hello the number of receives may be larger than before. */
	if (connection->memory)
		outcome = post_receives(connection, 1);
	if (connection->memory && !outcome)
		outcome = grant_more(connection);
	return outcome ? outcome : go_on(connection);
}

static enum outcome received(struct ucmatose_connection *connection, uint32_t length)
{
	struct ucmatose *run = connection->run;
	const struct ucmatose_memory *memory = connection->memory;
	const uint8_t *bytes = memory->region->memory;
	bool is_grant = !length && connection->peer_window && granted_to_us(connection) < run->messages;
	int64_t expected = connection->received < run->messages ? run->options->size : 0;
	struct payload_difference difference;

	if (is_grant) {
		connection->grants_received++;
	} else if (!expected || length != expected) {
		log_error(&run->environment->log, connection->endpoint->name,
			  "connection %" PRIu32 ": message %" PRIu64 " has %" PRIu32 " bytes instead of %" PRId64,
			  connection->index, connection->received + 1, length, expected);
		log_hint(&run->environment->log, "give both ends the same -C and -S");
		return OUTCOME_FAILED;
	} else if (connection->peer_is_ours &&
		   !payload_equal(bytes + message_offset(connection, connection->receive_seed, connection->received),
				  bytes + receive_slot(connection, connection->consumed), length, &difference)) {
		log_error(&run->environment->log, connection->endpoint->name,
			  "connection %" PRIu32 ": message %" PRIu64
			  " differs at byte %zu: expected 0x%02x, found 0x%02x",
			  connection->index, connection->received + 1, difference.position, difference.expected,
			  difference.found);
		return OUTCOME_FAILED;
	} else {
		connection->received++;
		ucmatose_figures_count(run, CONNECTION_RECEIVING);
		run->figures.verified += connection->peer_is_ours;
	}
	connection->consumed++;
	/* Repost a grant's receive at once: the messages that follow may need it. */
	return post_receives(connection, is_grant ? 1 : half_of(memory->slots));
}

enum outcome ucmatose_messages_completed(struct ucmatose_connection *connection, const struct completion *completion)
{
	struct ucmatose *run = connection->run;
	enum outcome outcome = OUTCOME_OK;

	if (completion->status) {
		/* A message too long for its receive fails at both ends, on soft-RoCE with OTHER at the receiver. */
		if (!connection->peer_is_ours && completion->status < COMPLETION_RETRY_EXCEEDED)
			error_hint(&run->environment->transport->error,
				   "the peer may run with another -S than the %" PRId64 " of this one",
				   run->options->size);
		return OUTCOME_FAILED;
	}
	if (completion->kind == WORK_RECEIVE) {
		outcome = received(connection, completion->length);
		if (!outcome)
			outcome = grant_more(connection);
	} else if (completion->tag == TAG_GRANT) {
		connection->grants_in_flight--;
		outcome = grant_more(connection);
	} else {
		connection->acknowledged++;
		ucmatose_figures_count(run, CONNECTION_SENDING);
	}
	if (outcome || (connection->state != CONNECTION_SENDING && connection->state != CONNECTION_RECEIVING))
		return outcome;
	return go_on(connection);
}
