/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of a connection: any number of them in bounded memory.
 *
 * Receives are posted into a ring of slots and posted again as they complete. Sends are posted in batches, from the
 * pattern, which never changes. A message is checked before the next one may come into its slot. Flow control:
 *
 *  - An rdmatest peer: grants. A sender may send as many messages as the peer's hello has slots, and half as many more
 *    for each grant, an empty message from the peer. The two directions take turns, and one's last grant is used up
 *    before the other begins: grants and messages never share a ring at the same time. RNR NAKs would cost a pause per
 *    window, and iWARP has none: there the connection breaks. Measured on soft-RoCE (ucmatose -S 64 -C 3000): 8.8 times
 *    the rate with RNR NAKs.
 *  - A stock peer sends all messages at once. As many receives are posted before, as the stock tool does; they share
 *    slots, because its bytes are arbitrary. Messages beyond RECEIVES_BUDGET get RNR NAKs (the sender retries up to
 *    --rnr-retry); on iWARP those beyond what the device can post break the connection.
 *
 * On iWARP the end that connected must send first (RFC 5044, section 7.1.2), but the first message here is the
 * server's. So our server gets its first grant as a message, instead of in the hello. A stock server sends at once; if
 * that is too early, the connection hangs.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#include "cmd/ucmatose/ucmatose.h"
#include "core/payload.h"

/* Bytes of all connections' slots, except one slot of each. More do not stay in CPU caches. */
#define SLOTS_BUDGET (UINT64_C(4) << 20)
/* The same, with more than SLOTS_MIN slots a connection. A slot also takes entries of queues. */
#define SHORT_BUDGET (UINT64_C(1) << 20)
/* Receives that all connections post for stock peers: soft-RoCE sends up to 128 packets again after each RNR NAK. */
#define RECEIVES_BUDGET (UINT32_C(1) << 17)

enum {
	SLOTS_MIN = 64,	  /* enough to hide a round trip */
	SLOTS_MAX = 256,  /* enough to hide the wake-ups of both ends: 4.4 times the rate of 64 (soft, -S 64) */
	SHORT_LEAST = 64, /* bytes that a slot counts for, at least */
	BATCH_MAX = SLOTS_MAX / 2,
	/* In flight: the two halves of a window. With one, the rate is 0.4 of this (soft, -S 64, two processors). */
	GRANTS_MAX = 2,
	TAG_GRANT = WORK_TAG_MAX,
};

static uint32_t half_of(uint32_t window)
{
	return window > 1 ? window / 2 : 1;
}

/* ---- memory ---- */

/* Per connection. Many connections hide each other's waits. */
static uint32_t count_slots(const struct ucmatose *ucmatose, const struct domain *domain)
{
	const uint64_t connections = ucmatose->wanted;
	uint64_t slots = MIN(SLOTS_BUDGET / (connections * ucmatose->size), SLOTS_MIN);

	slots = MAX(slots, MIN(SHORT_BUDGET / (connections * MAX(ucmatose->size, SHORT_LEAST)), SLOTS_MAX));
	slots = MIN(slots, MIN(MAX(domain->max_qp_wr, GRANTS_MAX + 1) - GRANTS_MAX, ucmatose->messages));
	return (uint32_t)MAX(slots, 1);
}

/* Puts the device's memory at the head of the list. Reports a failure. */
static enum outcome memory_create(struct ucmatose *ucmatose, struct domain *domain)
{
	const uint64_t size_of_all = (uint64_t)ucmatose->wanted * ucmatose->size;
	struct ucmatose_memory *memory = run_allocate(ucmatose->run, 1, sizeof(*memory));
	uint64_t length;
	enum outcome outcome;

	if (!memory)
		return OUTCOME_INTERNAL;
	if (!ucmatose->slots) {
		ucmatose->slots = count_slots(ucmatose, domain);
		ucmatose->batch = half_of(ucmatose->slots);
	}
	length = size_of_all * ucmatose->slots;
	ucmatose->pattern = (size_t)length;
	length += payload_pattern_size(ucmatose->size);
	outcome = region_create(domain, (size_t)MIN(length, SIZE_MAX), REGION_LOCAL, &memory->region);
	if (outcome) {
		free(memory);
		return outcome;
	}
	payload_pattern_write(memory->region->memory + ucmatose->pattern, ucmatose->size);
	memory->next = ucmatose->memory;
	ucmatose->memory = memory;
	return OUTCOME_OK;
}

void ucmatose_messages_free(struct ucmatose *ucmatose)
{
	while (ucmatose->memory) {
		struct ucmatose_memory *memory = ucmatose->memory;

		ucmatose->memory = memory->next;
		region_destroy(memory->region);
		free(memory);
	}
}

static size_t receive_slot(const struct ucmatose_connection *connection, uint32_t number)
{
	const struct ucmatose *ucmatose = connection->ucmatose;

	return (size_t)(connection->index * ucmatose->slots + number % ucmatose->slots) * ucmatose->size;
}

static size_t message_offset(const struct ucmatose_connection *connection, uint32_t seed, uint32_t number)
{
	return connection->ucmatose->pattern + payload_pattern_offset(connection->ucmatose->size, seed, number);
}

/* Posts count more messages or grants, and adds them to *number. A grant is empty. */
static enum outcome post(struct ucmatose_connection *connection, enum work_kind kind, uint32_t tag, uint32_t *number,
			 uint32_t count)
{
	struct work work[BATCH_MAX];
	enum outcome outcome = OUTCOME_OK;
	uint32_t i;

	for (; count && !outcome; count -= i) {
		for (i = 0; i < MIN(count, BATCH_MAX); i++, ++*number)
			work[i] = (struct work){
				.kind = kind,
				.tag = tag,
				.region = connection->region,
				.length = tag ? 0 : connection->ucmatose->size,
				.offset = kind == WORK_RECEIVE
						  ? receive_slot(connection, *number)
						  : message_offset(connection, connection->send_seed, *number),
			};
		outcome = endpoint_post(connection->endpoint, work, i);
	}
	return outcome;
}

/* ---- grants ---- */

/* Adds a grant's messages to *messages: the first grant is a window, the others half of it. */
static void grant(const struct ucmatose *ucmatose, uint32_t *messages, uint32_t window)
{
	*messages = MIN(ucmatose->messages, *messages + (*messages ? half_of(window) : window));
}

/* Grants half a window more, once receives are posted for it and for all messages granted before. */
static enum outcome grant_more(struct ucmatose_connection *connection)
{
	const struct ucmatose *ucmatose = connection->ucmatose;
	uint32_t room;

	if (!connection->peer_window || connection->granted == ucmatose->messages ||
	    connection->grants_in_flight == GRANTS_MAX)
		return OUTCOME_OK;
	room = MIN(ucmatose->slots, connection->posted - connection->consumed);
	if (connection->received + room < connection->granted + ucmatose->batch)
		return OUTCOME_OK;
	grant(ucmatose, &connection->granted, ucmatose->slots);
	return post(connection, WORK_SEND, TAG_GRANT, &connection->grants_in_flight, 1);
}

/* ---- sends and receives ---- */

/* Each call costs: posts nothing below the least number. The device may have provided fewer entries than requested. */
static enum outcome post_receives(struct ucmatose_connection *connection, uint32_t least)
{
	uint32_t room = connection->endpoint->options.receive_depth - (connection->posted - connection->consumed);

	if (room < least)
		return OUTCOME_OK;
	if (!connection->peer_window)
		room = MIN(room, connection->ucmatose->messages - connection->posted);
	return post(connection, WORK_RECEIVE, 0, &connection->posted, room);
}

static enum outcome post_sends(struct ucmatose_connection *connection)
{
	struct ucmatose *ucmatose = connection->ucmatose;
	uint32_t in_flight = connection->sent - connection->acknowledged;
	uint32_t left = ucmatose->messages - connection->sent;
	uint32_t count = MIN(connection->allowed - connection->sent, ucmatose->slots - in_flight);
	enum outcome outcome;

	/* Each batch costs a call: while one is outstanding, wait for a full batch. */
	if (in_flight && count < MIN(ucmatose->batch, left))
		return OUTCOME_OK;
	outcome = post(connection, WORK_SEND, 0, &connection->sent, count);
	/* The peer may reply before our last send completes. */
	if (!outcome && ucmatose->is_server && connection->sent == ucmatose->messages)
		ucmatose_figures_begin(ucmatose, CONNECTION_RECEIVING);
	return outcome;
}

/* Memory, the depths of the queues, and the peer's first window. */
static enum outcome prepare_to_transfer(struct ucmatose_connection *connection)
{
	struct ucmatose *ucmatose = connection->ucmatose;
	struct endpoint *endpoint = connection->endpoint;
	struct domain *domain = endpoint->domain;
	const struct ucmatose_memory *memory = ucmatose->memory;
	const bool on_iwarp = domain->fabric == FABRIC_IWARP;
	uint32_t depth;
	enum outcome outcome;

	if (ucmatose->size > domain->max_message) {
		log_error(&ucmatose->run->log, endpoint->name,
			  "-S %" PRIu32 ": the longest message of device %s has %" PRIu32 " bytes", ucmatose->size,
			  domain->device, domain->max_message);
		return OUTCOME_USAGE;
	}
	while (memory && memory->region->domain != domain)
		memory = memory->next;
	if (!memory) {
		outcome = memory_create(ucmatose, domain);
		if (outcome)
			return outcome;
		memory = ucmatose->memory;
	}
	connection->region = memory->region;
	endpoint->options.send_depth = ucmatose->slots + GRANTS_MAX;
	depth = ucmatose->slots;
	if (!connection->peer_window) /* a client does not know its peer yet */
		depth = MIN(ucmatose->messages, domain->max_qp_wr);
	if (!on_iwarp)
		depth = MIN(depth, MAX(RECEIVES_BUDGET / ucmatose->wanted, ucmatose->slots));
	endpoint->options.receive_depth = depth;
	if (ucmatose->is_server || !on_iwarp)
		grant(ucmatose, &connection->granted, ucmatose->slots);
	return OUTCOME_OK;
}

enum outcome ucmatose_messages_prepare(struct ucmatose_connection *connection)
{
	struct ucmatose *ucmatose = connection->ucmatose;
	const char *device = connection->endpoint->domain->device;
	enum outcome outcome = OUTCOME_OK;

	ucmatose->device = ucmatose->device && ucmatose->device != device ? "several devices" : device;
	if (ucmatose->messages)
		outcome = prepare_to_transfer(connection);
	if (!outcome)
		outcome = endpoint_create_qp(connection->endpoint);
	return outcome ? outcome : post_receives(connection, 1);
}

/* A server sends first, a client after it has received all. */
static enum outcome go_on(struct ucmatose_connection *connection)
{
	const struct ucmatose *ucmatose = connection->ucmatose;
	const bool all_sent = connection->acknowledged == ucmatose->messages;
	const bool all_received = connection->received == ucmatose->messages;
	enum connection_state state = CONNECTION_TRANSFERRED;

	if (!all_sent || !all_received)
		state = (ucmatose->is_server ? all_sent : !all_received) ? CONNECTION_RECEIVING : CONNECTION_SENDING;
	if (state != connection->state)
		ucmatose_connection_enter(connection, state);
	return state == CONNECTION_SENDING ? post_sends(connection) : OUTCOME_OK;
}

enum outcome ucmatose_messages_begin(struct ucmatose_connection *connection)
{
	const struct ucmatose *ucmatose = connection->ucmatose;
	enum outcome outcome;

	if (!connection->peer_window)
		connection->allowed = ucmatose->messages;
	else if (!ucmatose->is_server || connection->endpoint->domain->fabric != FABRIC_IWARP)
		grant(ucmatose, &connection->allowed, connection->peer_window);
	/* With the peer's hello the number of receives may be larger than before. */
	outcome = post_receives(connection, 1);
	if (!outcome)
		outcome = grant_more(connection);
	return outcome ? outcome : go_on(connection);
}

static enum outcome received(struct ucmatose_connection *connection, uint32_t length)
{
	struct ucmatose *ucmatose = connection->ucmatose;
	const uint8_t *bytes = connection->region->memory;
	bool is_grant = !length && connection->peer_window && connection->allowed < ucmatose->messages;
	uint32_t expected = connection->received < ucmatose->messages ? ucmatose->size : 0;
	struct payload_difference difference;

	if (is_grant) {
		grant(ucmatose, &connection->allowed, connection->peer_window);
	} else if (!expected || length != expected) {
		log_error(&ucmatose->run->log, connection->endpoint->name,
			  "connection %" PRIu32 ": message %" PRIu32 " has %" PRIu32 " bytes instead of %" PRIu32,
			  connection->index, connection->received + 1, length, expected);
		log_hint(&ucmatose->run->log, "give both ends the same -C and -S");
		return OUTCOME_FAILED;
	} else if (connection->peer_is_ours &&
		   !payload_equal(bytes + message_offset(connection, connection->receive_seed, connection->received),
				  bytes + receive_slot(connection, connection->consumed), length, &difference)) {
		log_error(&ucmatose->run->log, connection->endpoint->name,
			  "connection %" PRIu32 ": message %" PRIu32
			  " differs at byte %zu: expected 0x%02x, found 0x%02x",
			  connection->index, connection->received + 1, difference.position, difference.expected,
			  difference.found);
		return OUTCOME_FAILED;
	} else {
		connection->received++;
		ucmatose_figures_count(connection, CONNECTION_RECEIVING);
	}
	connection->consumed++;
	/* Repost a grant's receive at once: the messages that follow may need it. */
	return post_receives(connection, is_grant ? 1 : ucmatose->batch);
}

enum outcome ucmatose_messages_completed(struct ucmatose_connection *connection, const struct completion *completion)
{
	struct ucmatose *ucmatose = connection->ucmatose;
	enum outcome outcome = OUTCOME_OK;

	if (completion->status) {
		/* A message too long for its receive fails at both ends, on soft-RoCE with OTHER at the receiver. */
		if (!connection->peer_is_ours && completion->status < COMPLETION_RETRY_EXCEEDED)
			error_hint(&ucmatose->run->transport->error,
				   "the peer's -S may differ from this end's %" PRIu32, ucmatose->size);
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
		ucmatose_figures_count(connection, CONNECTION_SENDING);
	}
	if (outcome || (connection->state != CONNECTION_SENDING && connection->state != CONNECTION_RECEIVING))
		return outcome;
	return go_on(connection);
}
