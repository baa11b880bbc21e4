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
 * What is lost shows in three ways: the peer says so (a sequence NAK: at once, for one PSN), a READ response or an
 * acknowledgement passes something missing (the same), or nothing comes (the time-out, which follows the measured round
 * trips and doubles). Losses shrink the window and round trips without them let it grow, as in TCP.
 */
#include <string.h>

#include "core/clock.h"
#include "transport/soft/delivery.h"
#include "transport/soft/queue.h"

enum {
	WINDOW_FIRST = 32,
	WINDOW_LEAST = 4,     /* after losses that the peer told; only silence makes it smaller */
	WINDOW_MOST = 1024,   /* packets */
	WINDOW_NOT_READY = 8, /* after the peer had no receive: most of more would be dropped */
	ASK_MOST = 32,	      /* packets between two requests for an acknowledgement */
	READ_SLICE = 8,	      /* packets of a READ request */
	READ_SLICE_FEW = 32,  /* the same with a peer that takes few READs at once */
	READS_FEW = 8,
	READ_WINDOW_LEAST = 2 * READ_SLICE, /* the second request shows that the first was lost */
	TRIES = 4,	     /* in each of the retry_count rounds, which all fail before the peer is given up */
	FOR_EVER = 7,	     /* as an RNR retry count */
	TIMEOUTS_MOST = 200, /* counted */
	DOUBLINGS_MOST = 10,
	TIMEOUTS_RANDOM = 5, /* in a row, that a bad network may have; more need patience */
	/* Completion statuses of verbs. */
	RAW_REMOTE_REQUEST = 9,
	RAW_REMOTE_ACCESS = 10,
	RAW_REMOTE_OPERATION = 11,
	RAW_RETRY_EXCEEDED = 12,
	RAW_RNR_EXCEEDED = 13,
};

/* Before anything was measured; peers that must be scheduled first are slower than any wire. */
#define TIMEOUT_FIRST	(40 * CLOCK_NS_PER_MS)
#define TIMEOUT_LEAST	(2 * CLOCK_NS_PER_MS)
#define TIMEOUT_LONGEST (64 * CLOCK_NS_PER_MS) /* unless a longer one was agreed on */
#define VARIATION_LEAST (250 * CLOCK_NS_PER_US)

void requester_connect(struct soft_queue *queue, const struct soft_agreement *agreement)
{
	struct requester *requester = &queue->requester;
	size_t most = soft_socket_window(queue->path.socket) / queue->path.mtu;

	requester->oldest = agreement->first_psn_sent & PSN_MASK;
	requester->cursor = requester->oldest;
	requester->sent = requester->oldest;
	requester->end = requester->oldest;
	requester->window_most = most > WINDOW_MOST ? WINDOW_MOST : most < WINDOW_LEAST ? WINDOW_LEAST : (uint32_t)most;
	requester->threshold = requester->window_most;
	requester->window = requester->window_most < WINDOW_FIRST ? requester->window_most : WINDOW_FIRST;
	requester->reads_most =
		agreement->reads_out > SOFT_READS_AT_ONCE ? SOFT_READS_AT_ONCE : (uint8_t)agreement->reads_out;
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
	request->has_immediate = work->has_immediate && work->kind == WORK_SEND;
}

void requester_probe(struct soft_queue *queue)
{
	struct request *request = push(queue, 0);

	request->kind = WORK_WRITE;
	request->probe = true;
	requester_transmit(queue);
}

/* ---- time ---- */

static void alarmed(void *owner);

/* The alarm may come too early, and finds a later deadline then: cheaper than to move it with every packet. */
static void set_deadline(struct soft_queue *queue, int64_t deadline)
{
	struct requester *requester = &queue->requester;
	int64_t wait = deadline - queue_now(queue);

	requester->deadline = deadline;
	if (!deadline || (requester->alarm && requester->alarm <= deadline))
		return;
	requester->alarm = deadline;
	loop_timer_start(queue->transport->base.loop, &queue->timer, wait > 0 ? wait : 0, alarmed, queue);
}

static void expect_answer(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;
	int64_t longest = queue->ack_timeout / TRIES;
	int64_t timeout = TIMEOUT_FIRST;
	int64_t margin = 4 * requester->variation;

	if (!queue->ack_timeout) {
		requester->deadline = 0;
		return;
	}
	if (requester->round_trip)
		timeout = requester->round_trip + (margin > VARIATION_LEAST ? margin : VARIATION_LEAST);
	if (timeout > queue->ack_timeout)
		timeout = queue->ack_timeout;
	if (timeout < TIMEOUT_LEAST)
		timeout = TIMEOUT_LEAST;
	if (longest < TIMEOUT_LONGEST)
		longest = TIMEOUT_LONGEST;
	/* The first again may as well have been lost by chance. */
	if (requester->timeouts > 1)
		timeout <<= requester->timeouts < DOUBLINGS_MOST ? requester->timeouts - 1 : DOUBLINGS_MOST;
	if (requester->timeouts && timeout > longest)
		timeout = longest;
	set_deadline(queue, queue_now(queue) + timeout);
}

/* As TCP does it: RFC 6298. */
static void measure(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;
	int64_t taken = queue_now(queue) - requester->timed_at;
	int64_t error = taken - requester->round_trip;

	requester->timing = false;
	if (taken <= 0)
		taken = 1;
	if (!requester->round_trip) {
		requester->round_trip = taken;
		requester->variation = taken / 2;
		return;
	}
	requester->variation += ((error < 0 ? -error : error) - requester->variation) / 4;
	requester->round_trip += error / 8;
	if (requester->round_trip <= 0)
		requester->round_trip = 1;
}

/* ---- sending ---- */

static const uint8_t opcodes[][4] = {
	/* middle, first, last, only */
	[WORK_SEND] = { OPCODE_SEND_MIDDLE, OPCODE_SEND_FIRST, OPCODE_SEND_LAST, OPCODE_SEND_ONLY },
	[WORK_WRITE] = { OPCODE_WRITE_MIDDLE, OPCODE_WRITE_FIRST, OPCODE_WRITE_LAST, OPCODE_WRITE_ONLY },
};

static uint32_t window_of(const struct requester *requester)
{
	return requester->not_ready && requester->window > WINDOW_NOT_READY ? WINDOW_NOT_READY : requester->window;
}

static uint32_t under_way(const struct requester *requester)
{
	return (requester->cursor - requester->oldest) & PSN_MASK;
}

/* The first packet of its time that was never sent before is timed. */
static void time_packet(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;

	if (requester->timing || requester->cursor != requester->sent)
		return;
	requester->timing = true;
	requester->timed_psn = requester->cursor;
	requester->timed_at = queue_now(queue);
}

/* These send what a packet of a work needs, or return false if that must wait. */

static bool send_packet(struct soft_queue *queue, const struct request *request, uint32_t index)
{
	struct requester *requester = &queue->requester;
	uint32_t window = window_of(requester);
	uint32_t ask_at = window / 4 < ASK_MOST ? window / 4 : ASK_MOST;
	size_t offset = (size_t)index * queue->path.mtu;
	bool last = index + 1 == request->packets;
	struct packet packet = {
		.opcode = opcodes[request->kind][(last ? 2 : 0) + (index ? 0 : 1)],
		.psn = requester->cursor,
		.remote = { .address = request->remote_address, .key = request->remote_key, .length = request->length },
		.immediate = request->immediate,
		.length = last ? request->length - offset : queue->path.mtu,
	};

	if (under_way(requester) >= window)
		return false;
	if (packet.length)
		packet.payload = request->memory + offset;
	if (last && request->has_immediate)
		packet.opcode++;
	requester->unasked++;
	/* An acknowledgement must come before the window is used up. */
	if (last || requester->unasked >= ask_at || under_way(requester) + 1 >= window) {
		packet.ack_request = true;
		requester->unasked = 0;
		time_packet(queue);
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
	uint32_t window = window_of(requester);
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
	if (under_way(requester) && under_way(requester) + packets > window &&
	    under_way(requester) + packets > READ_WINDOW_LEAST)
		return false;
	time_packet(queue);
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
		expect_answer(queue);
}

/* ---- losses ---- */

static void go_back(struct requester *requester)
{
	requester->cursor = requester->oldest;
	requester->next = 0;
	requester->reads = 0;
	requester->unasked = 0;
	requester->timing = false;
}

/* Pays for a loss with a part of the window, once for all that was under way when it happened. */
static void shrink(struct requester *requester)
{
	uint32_t window = requester->window - requester->window * 3 / 10;

	if (requester->recovering)
		return;
	requester->recovering = true;
	requester->recovered = requester->sent;
	requester->window = window < WINDOW_LEAST ? WINDOW_LEAST : window;
	requester->threshold = requester->window;
	requester->gained = 0;
}

/*
 * The oldest packet, or what it asked for, is missing. The news of one loss may come many times, and it takes a while
 * before what is sent now can show: news of the same PSN do not count until then.
 */
static void send_again(struct soft_queue *queue, int64_t while_old)
{
	struct requester *requester = &queue->requester;
	int64_t now = queue_now(queue);

	if (requester->waits || requester->cursor == requester->oldest ||
	    (requester->resent == requester->oldest && requester->resent_at && now - requester->resent_at < while_old))
		return;
	requester->resent = requester->oldest;
	requester->resent_at = now;
	shrink(requester);
	go_back(requester);
}

/* News of a missing PSN are old for as long as they may have been on their way when it was sent again. */
static int64_t almost_round_trip(const struct requester *requester)
{
	return requester->round_trip ? requester->round_trip - requester->round_trip / 8 : TIMEOUT_LEAST;
}

/* Those that come just once per loss only have to be told from copies of themselves. */
static int64_t half_round_trip(const struct requester *requester)
{
	return requester->round_trip ? requester->round_trip / 2 : TIMEOUT_LEAST;
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

static bool is_given_up(struct soft_queue *queue)
{
	const struct requester *requester = &queue->requester;
	int64_t rounds = queue->retry_count + 1;

	return requester->timeouts > TRIES * rounds &&
	       queue_now(queue) - requester->quiet_since >= rounds * queue->ack_timeout;
}

static void time_out(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;

	if (requester->timeouts < TIMEOUTS_MOST)
		requester->timeouts++;
	if (is_given_up(queue)) {
		fail_oldest(queue, COMPLETION_RETRY_EXCEEDED, RAW_RETRY_EXCEEDED);
		return;
	}
	requester->recovering = false;
	shrink(requester);
	if (requester->timeouts > TIMEOUTS_RANDOM)
		requester->window = 1;
	requester->resent = requester->oldest;
	requester->resent_at = queue_now(queue);
	go_back(requester);
	requester_transmit(queue);
	expect_answer(queue);
}

static void alarmed(void *owner)
{
	struct soft_queue *queue = owner;
	struct requester *requester = &queue->requester;

	soft_enter(queue->transport);
	requester->alarm = 0;
	if (!requester->deadline) {
		/* All is answered. */
	} else if (queue_now(queue) < requester->deadline) {
		set_deadline(queue, requester->deadline);
	} else if (requester->waits) {
		requester->waits = false;
		requester->deadline = 0;
		requester_transmit(queue);
	} else {
		time_out(queue);
	}
	soft_leave(queue->transport);
}

/* ---- answers ---- */

static void grow(struct requester *requester, uint32_t packets)
{
	if (requester->window < requester->threshold) {
		requester->window += packets;
	} else {
		requester->gained += packets;
		if (requester->gained >= requester->window) {
			requester->gained = 0;
			requester->window++;
		}
	}
	if (requester->window > requester->window_most)
		requester->window = requester->window_most;
}

/* The oldest PSN has moved on from where it was. */
static void progress(struct soft_queue *queue, uint32_t before)
{
	struct requester *requester = &queue->requester;
	uint32_t packets = (requester->oldest - before) & PSN_MASK;

	if (requester->timing && psn_before(requester->timed_psn, requester->oldest))
		measure(queue);
	/* A window that is not used says nothing. */
	if (2 * ((requester->cursor - before) & PSN_MASK) >= requester->window)
		grow(requester, packets);
	/* Late answers may be for packets that were to be sent again. */
	if (psn_before(requester->cursor, requester->oldest))
		go_back(requester);
	if (requester->recovering && !psn_before(requester->oldest, requester->recovered))
		requester->recovering = false;
	requester->timeouts = 0;
	requester->not_ready = 0;
	requester->quiet_since = queue_now(queue);
	if (requester->waits)
		return;
	if (requester->cursor == requester->oldest)
		requester->deadline = 0;
	else
		expect_answer(queue);
}

static void finish_oldest(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;
	const struct request *request = request_at(requester, 0);
	struct completion completion = { .kind = (enum work_kind)request->kind, .tag = request->tag };

	if (++requester->head == requester->capacity)
		requester->head = 0;
	requester->count--;
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
		progress(queue, before);
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
		send_again(queue, almost_round_trip(requester));
		return;
	}
	if (packet->length)
		memcpy(request->memory + offset, packet->payload, packet->length);
	before = requester->oldest;
	requester->oldest = psn_add(requester->oldest, 1);
	if (slice_rest(requester, request, index) == 1 && requester->reads &&
	    !psn_before(requester->cursor, requester->oldest))
		requester->reads--;
	if (index + 1 == request->packets)
		finish_oldest(queue);
	progress(queue, before);
}

static void take_not_ready(struct soft_queue *queue, const struct packet *packet)
{
	struct requester *requester = &queue->requester;

	if (!acknowledge(queue, packet->psn)) {
		send_again(queue, almost_round_trip(requester));
		return;
	}
	if (requester->waits || requester->cursor == requester->oldest)
		return;
	if (queue->rnr_retry_count != FOR_EVER && requester->not_ready >= queue->rnr_retry_count) {
		fail_oldest(queue, COMPLETION_RNR_EXCEEDED, RAW_RNR_EXCEEDED);
		return;
	}
	if (requester->not_ready < FOR_EVER)
		requester->not_ready++;
	requester->timeouts = 0;
	requester->quiet_since = queue_now(queue);
	go_back(requester);
	requester->waits = true;
	set_deadline(queue, queue_now(queue) + rnr_delay(syndrome_value(packet->acknowledgement.syndrome)));
}

static void take_refusal(struct soft_queue *queue, const struct packet *packet)
{
	struct requester *requester = &queue->requester;
	const struct request *request = find(requester, packet->psn);

	if (!request)
		return;
	switch (syndrome_value(packet->acknowledgement.syndrome)) {
	case NAK_SEQUENCE:
		acknowledge(queue, packet->psn);
		send_again(queue, half_round_trip(requester));
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
				send_again(queue, almost_round_trip(requester));
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
