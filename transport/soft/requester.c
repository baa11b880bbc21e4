/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending half of a connection's queue pair: go-back-N over a window.
 *
 *      posted    ------------------------------------------------------------------------> PSN
 *      finished  | under way (at most the window) | not sent, or to be sent again |
 *              oldest                           cursor                           end
 *
 * Every posted work owns its PSNs, so whatever has to be sent again follows from the PSN alone. A READ owns one for
 * each packet of its response; long ones are asked for in slices that always end at the same PSNs: a request for what
 * is missing of a slice is then one that the peer has seen before, which it recognizes by its PSN.
 *
 * When something is sent again, and how large the window is: recovery.c.
 */
#include "transport/soft/bytes.h"
#include "transport/soft/queue.h"

enum {
	ASK_MOST = 32,	     /* packets between two requests for an acknowledgement */
	READ_SLICE = 8,	     /* packets of a READ request */
	READ_SLICE_FEW = 32, /* the same with a peer that takes few READs at once */
	READS_FEW = 8,
	READ_WINDOW_LEAST = 2 * READ_SLICE, /* the second request shows that the first was lost */
	FOR_EVER = 7,			    /* as an RNR retry count */
	/* Completion statuses of verbs. */
	RAW_REMOTE_REQUEST = 9,
	RAW_REMOTE_ACCESS = 10,
	RAW_REMOTE_OPERATION = 11,
	RAW_RETRY_EXCEEDED = 12,
	RAW_RNR_EXCEEDED = 13,
};

void requester_connect(struct soft_queue *queue, const struct soft_agreement *agreement)
{
	struct requester *requester = &queue->requester;

	requester->oldest = agreement->first_psn_sent & PSN_MASK;
	requester->cursor = requester->oldest;
	requester->sent = requester->oldest;
	requester->end = requester->oldest;
	recovery_connect(queue);
	requester->reads_most =
		agreement->reads_out > SOFT_READS_AT_ONCE ? SOFT_READS_AT_ONCE : (uint8_t)agreement->reads_out;
	queue->endpoint->base.no_reads = !requester->reads_most;
	requester->read_slice = requester->reads_most < READS_FEW ? READ_SLICE_FEW : READ_SLICE;
	if (requester->read_slice > requester->window_most)
		requester->read_slice = requester->window_most;
}

/* The work that many places behind the oldest. */
static struct request *request_at(struct requester *requester, uint32_t behind)
{
	uint32_t place = requester->head + behind;

	return &requester->ring[place < requester->capacity ? place : place - requester->capacity];
}

static struct request *push(struct soft_queue *queue, uint32_t length)
{
	struct requester *requester = &queue->requester;
	struct request *request = request_at(requester, requester->count++);

	queue->transport->busy_queues += requester->count == 1;
	*request = (struct request){
		.length = length,
		.psn = requester->end,
		.packets = queue_packets(queue, length),
	};
	requester->end = psn_add(requester->end, request->packets);
	return request;
}

void requester_post(struct soft_queue *queue, const struct work *work)
{
	struct request *request = push(queue, work->length);

	request->memory = work->region->memory + work->offset;
	request->remote_address = work->remote_address;
	request->remote_key = work->remote_key;
	request->tag = work->tag;
	request->immediate = work->immediate;
	request->kind = (uint8_t)work->kind;
	request->silent = work->silent;
	request->has_immediate = work->has_immediate;
}

void requester_probe(struct soft_queue *queue)
{
	struct request *request = push(queue, 0);

	request->kind = WORK_WRITE;
	request->probe = true;
	requester_transmit(queue);
}

/* ---- sending ---- */

static const uint8_t opcodes[][4] = {
	/* middle, first, last, only */
	[WORK_SEND] = { OPCODE_SEND_MIDDLE, OPCODE_SEND_FIRST, OPCODE_SEND_LAST, OPCODE_SEND_ONLY },
	[WORK_WRITE] = { OPCODE_WRITE_MIDDLE, OPCODE_WRITE_FIRST, OPCODE_WRITE_LAST, OPCODE_WRITE_ONLY },
};

static uint32_t under_way(const struct requester *requester)
{
	return (requester->cursor - requester->oldest) & PSN_MASK;
}

/* Nothing under way asks for an acknowledgement, and nothing else makes room: one more packet may go, which asks. */
static bool is_unanswered(const struct requester *requester)
{
	return requester->unasked >= under_way(requester);
}

/* These send what a packet of a work needs, or return false if that must wait. */

static bool send_packet(struct soft_queue *queue, const struct request *request, uint32_t index)
{
	struct requester *requester = &queue->requester;
	uint32_t window = recovery_window(queue);
	uint32_t ask_at = window / 4 < ASK_MOST ? window / 4 : ASK_MOST;
	size_t offset = (size_t)index * queue->path.mtu;
	bool last = index + 1 == request->packets;
	bool again = psn_before(requester->cursor, requester->sent);
	struct packet packet = {
		.opcode = opcodes[request->kind][(last ? 2 : 0) + (index ? 0 : 1)],
		.solicited = last && request->kind == WORK_SEND,
		.psn = requester->cursor,
		.remote = { .address = request->remote_address, .key = request->remote_key, .length = request->length },
		.immediate = request->immediate,
		.length = last ? request->length - offset : queue->path.mtu,
	};

	if (under_way(requester) >= window && !is_unanswered(requester))
		return false;
	if (packet.length)
		packet.payload = request->memory + offset;
	if (last && request->has_immediate)
		packet.opcode++;
	if (!requester->unasked++)
		requester->unasked_since = queue_now(queue);
	/*
	 * An acknowledgement must come before the window is used up. Work that is not reported can wait for that of
	 * later work; if there is none, recovery.c sends it again, and then it asks.
	 */
	if ((last && (!request->silent || again || recovery_is_eager(queue))) || requester->unasked >= ask_at ||
	    under_way(requester) + 1 >= window) {
		packet.ack_request = true;
		requester->unasked = 0;
		recovery_time(queue);
	}
	queue_send(queue, &packet);
	requester->cursor = psn_add(requester->cursor, 1);
	return true;
}

/* The packets from one of a READ up to the end of its slice. */
static uint32_t slice_rest(const struct requester *requester, const struct request *request, uint32_t index)
{
	uint32_t rest = requester->read_slice - index % requester->read_slice;

	return rest < request->packets - index ? rest : request->packets - index;
}

/* Asks for the rest of a slice. */
static bool send_read(struct soft_queue *queue, const struct request *request, uint32_t index)
{
	struct requester *requester = &queue->requester;
	uint32_t packets = slice_rest(requester, request, index);
	uint32_t window = recovery_window(queue);
	uint32_t offset = index * queue->path.mtu;
	uint32_t rest = request->length - offset;
	struct packet packet = {
		.opcode = OPCODE_READ_REQUEST,
		.psn = requester->cursor,
		.ack_request = true,
		.remote = { .address = request->remote_address + offset,
			    .key = request->remote_key,
			    .length = rest < packets * queue->path.mtu ? rest : packets * queue->path.mtu },
	};

	if (requester->reads >= requester->reads_most)
		return false;
	if (!is_unanswered(requester) && under_way(requester) + packets > window &&
	    under_way(requester) + packets > READ_WINDOW_LEAST)
		return false;
	recovery_time(queue);
	queue_send(queue, &packet);
	requester->reads++;
	requester->unasked = 0;
	requester->cursor = psn_add(requester->cursor, packets);
	return true;
}

void requester_transmit(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;
	bool was_idle = requester->cursor == requester->oldest;

	if (queue->state != QUEUE_STARTED || requester->waits)
		return;
	while (requester->next < requester->count) {
		const struct request *request = request_at(requester, requester->next);
		uint32_t index = (requester->cursor - request->psn) & PSN_MASK;

		if (!(request->kind == WORK_READ ? send_read : send_packet)(queue, request, index))
			break;
		if (psn_before(requester->sent, requester->cursor))
			requester->sent = requester->cursor;
		if (((requester->cursor - request->psn) & PSN_MASK) == request->packets)
			requester->next++;
	}
	if (requester->cursor == requester->oldest)
		return;
	if (was_idle && !requester->timeouts)
		requester->quiet_since = queue_now(queue);
	if (!requester->deadline)
		recovery_expect(queue);
}

static void fail(struct soft_queue *queue, const struct request *request, enum completion_status status, unsigned raw)
{
	if (request->probe)
		queue_fail_alone(queue, "the peer does not answer", "completion status", (int)raw);
	else
		queue_fail(queue, (enum work_kind)request->kind, request->tag, status, raw);
}

/* The probe only speaks if there is no work that can. */
static void fail_oldest(struct soft_queue *queue, enum completion_status status, unsigned raw)
{
	struct requester *requester = &queue->requester;
	const struct request *request = request_at(requester, 0);

	if (request->probe && requester->count > 1)
		request = request_at(requester, 1);
	fail(queue, request, status, raw);
}

void requester_give_up(struct soft_queue *queue)
{
	fail_oldest(queue, COMPLETION_RETRY_EXCEEDED, RAW_RETRY_EXCEEDED);
}

/* ---- answers ---- */

static void finish_oldest(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;
	const struct request *request = request_at(requester, 0);
	struct completion completion = { .kind = (enum work_kind)request->kind, .tag = request->tag };

	if (++requester->head == requester->capacity)
		requester->head = 0;
	queue->transport->busy_queues -= !--requester->count;
	if (requester->next)
		requester->next--;
	if (!request->silent && !request->probe)
		soft_complete(queue->endpoint, &completion, 0);
}

/*
 * Everything before psn is acknowledged. False if a READ whose responses have not all come stands before it: they were
 * lost then.
 */
static bool acknowledge(struct soft_queue *queue, uint32_t psn)
{
	struct requester *requester = &queue->requester;
	uint32_t before = requester->oldest;

	while (psn_before(requester->oldest, psn)) {
		const struct request *request = request_at(requester, 0);
		uint32_t end = psn_add(request->psn, request->packets);

		if (request->kind == WORK_READ)
			break;
		if (psn_before(psn, end)) {
			requester->oldest = psn;
			break;
		}
		requester->oldest = end;
		finish_oldest(queue);
	}
	if (requester->oldest != before)
		recovery_progress(queue, before);
	return !psn_before(requester->oldest, psn);
}

/* The work under way that a PSN belongs to. */
static const struct request *find(struct requester *requester, uint32_t psn)
{
	for (uint32_t behind = 0; behind < requester->count; behind++) {
		const struct request *request = request_at(requester, behind);

		if (psn_before(psn, psn_add(request->psn, request->packets)))
			return request;
	}
	return NULL;
}

static void take_response(struct soft_queue *queue, const struct packet *packet)
{
	struct requester *requester = &queue->requester;
	const struct request *request = find(requester, packet->psn);
	uint32_t before, index;
	size_t offset, rest;

	if (!request || request->kind != WORK_READ)
		return;
	index = (packet->psn - request->psn) & PSN_MASK;
	offset = (size_t)index * queue->path.mtu;
	rest = request->length - offset;
	if (packet->length != (rest < queue->path.mtu ? rest : queue->path.mtu))
		return;
	/* It acknowledges what was asked before it. */
	if (!acknowledge(queue, packet->psn)) {
		recovery_passed(queue);
		return;
	}
	if (packet->length)
		bytes_copy(request->memory + offset, packet->payload, packet->length);
	before = requester->oldest;
	requester->oldest = psn_add(requester->oldest, 1);
	if (slice_rest(requester, request, index) == 1 && requester->reads &&
	    !psn_before(requester->cursor, requester->oldest))
		requester->reads--;
	if (index + 1 == request->packets)
		finish_oldest(queue);
	recovery_progress(queue, before);
}

static void take_not_ready(struct soft_queue *queue, const struct packet *packet)
{
	struct requester *requester = &queue->requester;

	if (!acknowledge(queue, packet->psn)) {
		recovery_passed(queue);
		return;
	}
	if (requester->waits || requester->cursor == requester->oldest)
		return;
	if (queue->rnr_retry_count != FOR_EVER && requester->not_ready >= queue->rnr_retry_count) {
		fail_oldest(queue, COMPLETION_RNR_EXCEEDED, RAW_RNR_EXCEEDED);
		return;
	}
	recovery_wait(queue, rnr_delay(syndrome_value(packet->acknowledgement.syndrome)));
}

static void take_refusal(struct soft_queue *queue, const struct packet *packet)
{
	struct requester *requester = &queue->requester;
	const struct request *request = find(requester, packet->psn);

	if (!request)
		return;
	/* What stands before it was carried out. */
	acknowledge(queue, packet->psn);
	switch (syndrome_value(packet->acknowledgement.syndrome)) {
	case NAK_SEQUENCE:
		recovery_told(queue);
		break;
	case NAK_INVALID_REQUEST:
		fail(queue, request, COMPLETION_REMOTE_REQUEST, RAW_REMOTE_REQUEST);
		break;
	case NAK_REMOTE_ACCESS:
		fail(queue, request, COMPLETION_REMOTE_ACCESS, RAW_REMOTE_ACCESS);
		break;
	case NAK_REMOTE_OPERATION:
		fail(queue, request, COMPLETION_REMOTE_OPERATION, RAW_REMOTE_OPERATION);
		break;
	default:
		break;
	}
}

void requester_receive(struct soft_queue *queue, const struct packet *packet)
{
	struct requester *requester = &queue->requester;

	/* Only what is under way can be answered. */
	if (psn_before(packet->psn, requester->oldest) || !psn_before(packet->psn, requester->sent))
		return;
	queue_heard(queue);
	if (opcode_form(packet->opcode) & FORM_READ)
		take_response(queue, packet);
	else
		switch (syndrome_kind(packet->acknowledgement.syndrome)) {
		case SYNDROME_ACK:
			if (!acknowledge(queue, psn_add(packet->psn, 1)))
				recovery_passed(queue);
			break;
		case SYNDROME_RNR:
			take_not_ready(queue, packet);
			break;
		case SYNDROME_NAK:
			take_refusal(queue, packet);
			break;
		default:
			break;
		}
	requester_transmit(queue);
}
