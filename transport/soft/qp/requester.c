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
#include "transport/soft/qp/requester.h"

#include "transport/soft/delivery.h"
#include "transport/soft/qp/recovery.h"
#include "transport/soft/wire/bytes.h"

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

void requester_connect(struct soft_qp *qp, const struct soft_agreement *agreement)
{
	struct requester *requester = &qp->requester;

	requester->unacked_psn = agreement->sq_psn & PSN_MASK;
	requester->next_psn = requester->unacked_psn;
	requester->highest_psn = requester->unacked_psn;
	requester->end_psn = requester->unacked_psn;
	recovery_connect(qp);
	requester->reads_max =
		agreement->reads_out > SOFT_READS_AT_ONCE ? SOFT_READS_AT_ONCE : (uint8_t)agreement->reads_out;
	qp->endpoint->base.no_reads = !requester->reads_max;
	requester->read_slice = requester->reads_max < READS_FEW ? READ_SLICE_FEW : READ_SLICE;
	if (requester->read_slice > requester->cwnd_max)
		requester->read_slice = requester->cwnd_max;
}

/* The work that many places behind the oldest. */
static struct request *request_at(struct requester *requester, uint32_t behind)
{
	uint32_t place = requester->head + behind;

	return &requester->ring[place < requester->capacity ? place : place - requester->capacity];
}

static struct request *push(struct soft_qp *qp, uint32_t length)
{
	struct requester *requester = &qp->requester;
	struct request *request = request_at(requester, requester->count++);

	qp->transport->busy_qps += requester->count == 1;
	*request = (struct request){
		.length = length,
		.psn = requester->end_psn,
		.packets = qp_packets(qp, length),
	};
	requester->end_psn = psn_add(requester->end_psn, request->packets);
	return request;
}

void requester_post(struct soft_qp *qp, const struct work *work)
{
	struct request *request = push(qp, work->length);

	request->memory = work->region->memory + work->offset;
	request->remote_address = work->remote_address;
	request->remote_key = work->remote_key;
	request->tag = work->tag;
	request->immediate = work->immediate;
	request->kind = (uint8_t)work->kind;
	request->silent = work->silent;
	request->has_immediate = work->has_immediate;
}

void requester_probe(struct soft_qp *qp)
{
	struct request *request = push(qp, 0);

	request->kind = WORK_WRITE;
	request->probe = true;
	requester_transmit(qp);
}

/* ---- sending ---- */

static const uint8_t opcodes[][4] = {
	/* middle, first, last, only */
	[WORK_SEND] = { OPCODE_SEND_MIDDLE, OPCODE_SEND_FIRST, OPCODE_SEND_LAST, OPCODE_SEND_ONLY },
	[WORK_WRITE] = { OPCODE_WRITE_MIDDLE, OPCODE_WRITE_FIRST, OPCODE_WRITE_LAST, OPCODE_WRITE_ONLY },
};

static uint32_t under_way(const struct requester *requester)
{
	return (requester->next_psn - requester->unacked_psn) & PSN_MASK;
}

/* Nothing under way asks for an acknowledgement, and nothing else makes room: one more packet may go, which asks. */
static bool is_unanswered(const struct requester *requester)
{
	return requester->since_ack_request >= under_way(requester);
}

/* These send what a packet of a work needs, or return false if that must wait. */

static bool send_packet(struct soft_qp *qp, const struct request *request, uint32_t index)
{
	struct requester *requester = &qp->requester;
	uint32_t window = recovery_window(qp);
	uint32_t ask_at = window / 4 < ASK_MOST ? window / 4 : ASK_MOST;
	size_t offset = (size_t)index * qp->path.mtu;
	bool last = index + 1 == request->packets;
	bool again = psn_before(requester->next_psn, requester->highest_psn);
	struct packet packet = {
		.opcode = opcodes[request->kind][(last ? 2 : 0) + (index ? 0 : 1)],
		.solicited = last && request->kind == WORK_SEND,
		.psn = requester->next_psn,
		.remote = { .address = request->remote_address, .key = request->remote_key, .length = request->length },
		.immediate = request->immediate,
		.length = last ? request->length - offset : qp->path.mtu,
	};

	if (under_way(requester) >= window && !is_unanswered(requester))
		return false;
	if (packet.length)
		packet.payload = request->memory + offset;
	if (last && request->has_immediate)
		packet.opcode++;
	if (!requester->since_ack_request++)
		requester->since_ack_request_at = qp_now(qp);
	/*
	 * An acknowledgement must come before the window is used up. Work that is not reported can wait for that of
	 * later work; if there is none, recovery.c sends it again, and then it asks.
	 */
	if ((last && (!request->silent || again || recovery_wants_ack(qp))) || requester->since_ack_request >= ask_at ||
	    under_way(requester) + 1 >= window) {
		packet.ack_request = true;
		requester->since_ack_request = 0;
		recovery_sent(qp);
	}
	qp_send(qp, &packet);
	requester->next_psn = psn_add(requester->next_psn, 1);
	return true;
}

/* The packets from one of a READ up to the end of its slice. */
static uint32_t slice_rest(const struct requester *requester, const struct request *request, uint32_t index)
{
	uint32_t rest = requester->read_slice - index % requester->read_slice;

	return rest < request->packets - index ? rest : request->packets - index;
}

/* Asks for the rest of a slice. */
static bool send_read(struct soft_qp *qp, const struct request *request, uint32_t index)
{
	struct requester *requester = &qp->requester;
	uint32_t packets = slice_rest(requester, request, index);
	uint32_t window = recovery_window(qp);
	uint32_t offset = index * qp->path.mtu;
	uint32_t rest = request->length - offset;
	struct packet packet = {
		.opcode = OPCODE_READ_REQUEST,
		.psn = requester->next_psn,
		.ack_request = true,
		.remote = { .address = request->remote_address + offset,
			    .key = request->remote_key,
			    .length = rest < packets * qp->path.mtu ? rest : packets * qp->path.mtu },
	};

	if (requester->outstanding_reads >= requester->reads_max)
		return false;
	if (!is_unanswered(requester) && under_way(requester) + packets > window &&
	    under_way(requester) + packets > READ_WINDOW_LEAST)
		return false;
	recovery_sent(qp);
	qp_send(qp, &packet);
	requester->outstanding_reads++;
	requester->since_ack_request = 0;
	requester->next_psn = psn_add(requester->next_psn, packets);
	return true;
}

void requester_transmit(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	bool was_idle = requester->next_psn == requester->unacked_psn;

	if (qp->state != QP_RTS || requester->rnr_waiting)
		return;
	while (requester->next_request < requester->count) {
		const struct request *request = request_at(requester, requester->next_request);
		uint32_t index = (requester->next_psn - request->psn) & PSN_MASK;

		if (!(request->kind == WORK_READ ? send_read : send_packet)(qp, request, index))
			break;
		if (psn_before(requester->highest_psn, requester->next_psn))
			requester->highest_psn = requester->next_psn;
		if (((requester->next_psn - request->psn) & PSN_MASK) == request->packets)
			requester->next_request++;
	}
	if (requester->next_psn == requester->unacked_psn)
		return;
	if (was_idle && !requester->timeouts)
		requester->unanswered_since = qp_now(qp);
	if (!requester->deadline)
		recovery_arm(qp);
}

static void fail(struct soft_qp *qp, const struct request *request, enum completion_status status, unsigned raw)
{
	if (request->probe)
		qp_fail_connection(qp, "the peer does not answer", "completion status", (int)raw);
	else
		qp_fail_work(qp, (enum work_kind)request->kind, request->tag, status, raw);
}

/* The probe only speaks if there is no work that can. */
static void fail_oldest(struct soft_qp *qp, enum completion_status status, unsigned raw)
{
	struct requester *requester = &qp->requester;
	const struct request *request = request_at(requester, 0);

	if (request->probe && requester->count > 1)
		request = request_at(requester, 1);
	fail(qp, request, status, raw);
}

void requester_retries_exhausted(struct soft_qp *qp)
{
	fail_oldest(qp, COMPLETION_RETRY_EXCEEDED, RAW_RETRY_EXCEEDED);
}

/* ---- answers ---- */

static void finish_oldest(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	const struct request *request = request_at(requester, 0);
	struct completion completion = { .kind = (enum work_kind)request->kind, .tag = request->tag };

	if (++requester->head == requester->capacity)
		requester->head = 0;
	qp->transport->busy_qps -= !--requester->count;
	if (requester->next_request)
		requester->next_request--;
	if (!request->silent && !request->probe)
		soft_complete(qp->endpoint, &completion, 0);
}

/*
 * Everything before psn is acknowledged. False if a READ whose responses have not all come stands before it: they were
 * lost then.
 */
static bool acknowledge(struct soft_qp *qp, uint32_t psn)
{
	struct requester *requester = &qp->requester;
	uint32_t before = requester->unacked_psn;

	while (psn_before(requester->unacked_psn, psn)) {
		const struct request *request = request_at(requester, 0);
		uint32_t end = psn_add(request->psn, request->packets);

		if (request->kind == WORK_READ)
			break;
		if (psn_before(psn, end)) {
			requester->unacked_psn = psn;
			break;
		}
		requester->unacked_psn = end;
		finish_oldest(qp);
	}
	if (requester->unacked_psn != before)
		recovery_progress(qp, before);
	return !psn_before(requester->unacked_psn, psn);
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

static void take_response(struct soft_qp *qp, const struct packet *packet)
{
	struct requester *requester = &qp->requester;
	const struct request *request = find(requester, packet->psn);
	uint32_t before, index;
	size_t offset, rest;

	if (!request || request->kind != WORK_READ)
		return;
	index = (packet->psn - request->psn) & PSN_MASK;
	offset = (size_t)index * qp->path.mtu;
	rest = request->length - offset;
	if (packet->length != (rest < qp->path.mtu ? rest : qp->path.mtu))
		return;
	/* It acknowledges what was asked before it. */
	if (!acknowledge(qp, packet->psn)) {
		recovery_implied_nak(qp);
		return;
	}
	if (packet->length)
		bytes_copy(request->memory + offset, packet->payload, packet->length);
	before = requester->unacked_psn;
	requester->unacked_psn = psn_add(requester->unacked_psn, 1);
	if (slice_rest(requester, request, index) == 1 && requester->outstanding_reads &&
	    !psn_before(requester->next_psn, requester->unacked_psn))
		requester->outstanding_reads--;
	if (index + 1 == request->packets)
		finish_oldest(qp);
	recovery_progress(qp, before);
}

static void take_not_ready(struct soft_qp *qp, const struct packet *packet)
{
	struct requester *requester = &qp->requester;

	if (!acknowledge(qp, packet->psn)) {
		recovery_implied_nak(qp);
		return;
	}
	if (requester->rnr_waiting || requester->next_psn == requester->unacked_psn)
		return;
	if (qp->rnr_retry_count != FOR_EVER && requester->rnr_naks >= qp->rnr_retry_count) {
		fail_oldest(qp, COMPLETION_RNR_EXCEEDED, RAW_RNR_EXCEEDED);
		return;
	}
	recovery_rnr(qp, rnr_delay(syndrome_value(packet->acknowledgement.syndrome)));
}

static void take_refusal(struct soft_qp *qp, const struct packet *packet)
{
	struct requester *requester = &qp->requester;
	const struct request *request = find(requester, packet->psn);

	if (!request)
		return;
	/* What stands before it was carried out. */
	acknowledge(qp, packet->psn);
	switch (syndrome_value(packet->acknowledgement.syndrome)) {
	case NAK_SEQUENCE:
		recovery_nak(qp);
		break;
	case NAK_INVALID_REQUEST:
		fail(qp, request, COMPLETION_REMOTE_REQUEST, RAW_REMOTE_REQUEST);
		break;
	case NAK_REMOTE_ACCESS:
		fail(qp, request, COMPLETION_REMOTE_ACCESS, RAW_REMOTE_ACCESS);
		break;
	case NAK_REMOTE_OPERATION:
		fail(qp, request, COMPLETION_REMOTE_OPERATION, RAW_REMOTE_OPERATION);
		break;
	default:
		break;
	}
}

void requester_receive(struct soft_qp *qp, const struct packet *packet)
{
	struct requester *requester = &qp->requester;

	/* Only what is under way can be answered. */
	if (psn_before(packet->psn, requester->unacked_psn) || !psn_before(packet->psn, requester->highest_psn))
		return;
	qp_packet_received(qp);
	if (opcode_form(packet->opcode) & FORM_READ)
		take_response(qp, packet);
	else
		switch (syndrome_kind(packet->acknowledgement.syndrome)) {
		case SYNDROME_ACK:
			if (!acknowledge(qp, psn_add(packet->psn, 1)))
				recovery_implied_nak(qp);
			break;
		case SYNDROME_RNR:
			take_not_ready(qp, packet);
			break;
		case SYNDROME_NAK:
			take_refusal(qp, packet);
			break;
		default:
			break;
		}
	requester_transmit(qp);
}
