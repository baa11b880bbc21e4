/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester of a connection: go-back-N within the congestion window.
 *
 *      complete | outstanding, at most the window | not sent, or to be sent again |       -> PSN
 *            unacked_psn                       next_psn                        end_psn
 *
 * Each posted request owns its PSNs, so the PSN alone determines what to send again. A READ owns one PSN for each
 * response packet. A long READ is requested in slices with fixed ends: a repeated request asks for the rest of one
 * that the responder remembers, and finds by PSN.
 *
 * recovery.c decides when to send again, and the size of the window.
 */
#include "transport/soft/qp/qp_internal.h"

#include "transport/soft/base/queue.h"
#include "transport/soft/wire/bytes.h"

enum {
	ACK_INTERVAL_MAX = 32, /* packets from one AckReq to the next */
	READ_SLICE = 8,	       /* response packets of a READ request */
	READ_SLICE_LONG = 32,  /* if reads_max is less than READS_FEW */
	READS_FEW = 8,
	READ_WINDOW_MIN = 2 * READ_SLICE, /* two requests: the response to the second shows that the first was lost */
	RNR_RETRY_INFINITE = 7,
};

void requester_connect(struct soft_qp *qp, const struct soft_agreement *agreement)
{
	struct requester *requester = &qp->requester;

	requester->unacked_psn = agreement->sq_psn;
	requester->next_psn = requester->unacked_psn;
	requester->highest_psn = requester->ambiguous_psn = requester->unacked_psn;
	requester->end_psn = requester->once_psn = requester->unacked_psn;
	recovery_connect(qp);
	requester->reads_max =
		agreement->reads_out > SOFT_READS_AT_ONCE ? SOFT_READS_AT_ONCE : (uint8_t)agreement->reads_out;
	qp->endpoint->base.no_reads = !requester->reads_max;
	requester->read_slice = requester->reads_max < READS_FEW ? READ_SLICE_LONG : READ_SLICE;
	if (requester->read_slice > requester->cwnd_max)
		requester->read_slice = requester->cwnd_max;
}

static struct request *push_request(struct soft_qp *qp, uint32_t length)
{
	struct requester *requester = &qp->requester;
	struct request *request = &requester->requests[soft_ring_push(&requester->ring)];

	qp->transport->busy_qps += requester->ring.count == 1;
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
	struct request *request = push_request(qp, work->length);

	request->memory = work->region->memory + work->offset;
	request->remote_address = work->remote_address;
	request->remote_key = work->remote_key;
	request->tag = work->tag;
	request->immediate = work->immediate;
	request->kind = (uint8_t)work->kind;
	request->unsignalled = work->unsignalled;
	request->has_immediate = work->has_immediate;
}

void requester_probe(struct soft_qp *qp)
{
	struct request *request = push_request(qp, 0);

	request->kind = WORK_WRITE;
	request->probe = qp->requester.probing = true;
	requester_transmit(qp);
}

/* ---- sending ---- */

static const uint8_t opcodes[][4] = {
	/* middle, first, last, only */
	[WORK_SEND] = { OPCODE_SEND_MIDDLE, OPCODE_SEND_FIRST, OPCODE_SEND_LAST, OPCODE_SEND_ONLY },
	[WORK_WRITE] = { OPCODE_WRITE_MIDDLE, OPCODE_WRITE_FIRST, OPCODE_WRITE_LAST, OPCODE_WRITE_ONLY },
};

static uint32_t outstanding(const struct requester *requester)
{
	return (requester->next_psn - requester->unacked_psn) & PSN_MASK;
}

/* Sends the packet of that index. */
static void transmit_packet(struct soft_qp *qp, const struct request *request, uint32_t index, bool ack_request)
{
	size_t offset = (size_t)index * qp->endpoint->path.mtu;
	bool last = index + 1 == request->packets;
	struct packet packet = {
		.opcode = opcodes[request->kind][(last ? 2 : 0) + (index ? 0 : 1)],
		.solicited = last && request->kind == WORK_SEND,
		.ack_request = ack_request,
		.psn = psn_add(request->psn, index),
		.remote = { .address = request->remote_address, .key = request->remote_key, .length = request->length },
		.immediate = request->immediate,
		.length = last ? request->length - offset : qp->endpoint->path.mtu,
	};

	if (packet.length)
		packet.payload = request->memory + offset;
	if (last && request->has_immediate)
		packet.opcode++;
	if (ack_request)
		recovery_sent(qp, packet.psn);
	qp_send(qp, &packet);
}

/* The packets of a READ from index to the end of its slice. */
static uint32_t slice_rest(const struct requester *requester, const struct request *request, uint32_t index)
{
	uint32_t rest = requester->read_slice - index % requester->read_slice;

	return rest < request->packets - index ? rest : request->packets - index;
}

/* Requests that many response packets. */
static void transmit_read(struct soft_qp *qp, const struct request *request, uint32_t index, uint32_t packets)
{
	uint32_t offset = index * qp->endpoint->path.mtu, length = packets * qp->endpoint->path.mtu;
	uint32_t rest = request->length - offset;
	struct packet packet = {
		.opcode = OPCODE_READ_REQUEST,
		.psn = psn_add(request->psn, index),
		.ack_request = true,
		.remote = { .address = request->remote_address + offset,
			    .key = request->remote_key,
			    .length = rest < length ? rest : length },
	};

	recovery_sent(qp, packet.psn);
	qp_send(qp, &packet);
}

/* No outstanding packet has AckReq, so no reply would open the window: allow one more packet, with AckReq. */
static bool lacks_ack_request(const struct requester *requester)
{
	return requester->packets_since_ack_request >= outstanding(requester);
}

/*
 * Both functions send from next_psn on, which is the packet of that index. They return how many packets that are; 0 if
 * it must wait for the window, or for an earlier READ.
 */

static uint32_t send_packet(struct soft_qp *qp, const struct request *request, uint32_t index)
{
	struct requester *requester = &qp->requester;
	uint32_t window = recovery_window(qp);
	uint32_t ack_interval = window / 4 < ACK_INTERVAL_MAX ? window / 4 : ACK_INTERVAL_MAX;
	bool last = index + 1 == request->packets;
	bool resent = psn_before(requester->next_psn, requester->highest_psn);

	if (outstanding(requester) >= window && !lacks_ack_request(requester))
		return 0;
	requester->packets_since_ack_request++;
	/*
	 * An acknowledgement must come before the window is full. Unsignalled work leaves AckReq to later work. If none
	 * follows, the timeout's probe has it.
	 */
	transmit_packet(qp, request, index,
			(last && (!request->unsignalled || resent || recovery_wants_ack(qp))) ||
				requester->packets_since_ack_request >= ack_interval ||
				outstanding(requester) + 1 >= window);
	return 1;
}

/* Requests the rest of the slice. */
static uint32_t send_read(struct soft_qp *qp, const struct request *request, uint32_t index)
{
	struct requester *requester = &qp->requester;
	uint32_t packets = slice_rest(requester, request, index);
	uint32_t after = outstanding(requester) + packets;

	if (requester->outstanding_reads >= requester->reads_max)
		return 0;
	/*
	 * The first READ takes its whole slice, even if the window, which busy queue pairs share, is smaller. Slices of
	 * the share's size lose fewer packets in the receive buffer, but usually cost more in round trips.
	 */
	if (!lacks_ack_request(requester) && after > recovery_window(qp) && after > READ_WINDOW_MIN)
		return 0;
	requester->outstanding_reads++;
	transmit_read(qp, request, index, packets);
	return packets;
}

static void send_allowed(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	uint32_t old_next_psn = requester->next_psn;

	if (qp->state != QP_RTS || requester->rnr_waiting)
		return;
	while (requester->next_request < requester->ring.count) {
		const struct request *request = qp_request_at(requester, requester->next_request);
		uint32_t index = (requester->next_psn - request->psn) & PSN_MASK;
		uint32_t packets = (request->kind == WORK_READ ? send_read : send_packet)(qp, request, index);

		if (!packets)
			break;
		requester->next_psn = psn_add(requester->next_psn, packets);
		if (psn_before(requester->highest_psn, requester->next_psn))
			requester->highest_psn = requester->next_psn;
		else
			soft_count(qp->transport, SOFT_RESENT);
		if (index + packets == request->packets)
			requester->next_request++;
	}
	if (requester->next_psn == old_next_psn)
		return;
	if (old_next_psn == requester->unacked_psn && !requester->consecutive_timeouts)
		requester->unanswered_since = qp_now(qp);
	recovery_arm(qp);
}

static void requester_timer_expired(void *context);

/* The timer may expire before a later deadline and is then restarted: cheaper than a restart for each packet. */
static void requester_start_timer(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;

	if (qp->state != QP_RTS || !requester->deadline ||
	    (requester->timer_at && requester->timer_at <= requester->deadline))
		return;
	requester->timer_at = requester->deadline;
	loop_timer_start(qp->transport->base.loop, &qp->timer, requester->deadline - qp_now(qp),
			 requester_timer_expired, qp);
}

void requester_transmit(struct soft_qp *qp)
{
	send_allowed(qp);
	requester_start_timer(qp);
}

static void requester_fail(struct soft_qp *qp, const struct request *request, enum completion_status status)
{
	if (request->probe)
		qp_fail_connection(qp,
				   status == COMPLETION_RETRY_EXCEEDED ? "the peer does not answer"
								       : "the peer refused a keepalive message",
				   COMPLETION_CODE_NAME, (int)status);
	else
		qp_fail_work(qp, (enum work_kind)request->kind, request->tag, status, 0);
}

/* A probe's failure is reported as that of the work posted after it, if any. */
static void fail_oldest(struct soft_qp *qp, enum completion_status status)
{
	struct requester *requester = &qp->requester;
	const struct request *request = qp_request_at(requester, 0);

	if (request->probe && requester->ring.count > 1)
		request = qp_request_at(requester, 1);
	requester_fail(qp, request, status);
}

/* ---- replies ---- */

void requester_complete_oldest(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	const struct request *request = qp_request_at(requester, 0);

	soft_ring_pop(&requester->ring);
	requester->probing &= !request->probe;
	qp->transport->busy_qps -= !requester->ring.count;
	if (requester->next_request)
		requester->next_request--;
	if (!request->unsignalled && !request->probe)
		soft_complete(qp->endpoint, (enum work_kind)request->kind, request->tag, 0);
}

/* Everything before psn is acknowledged. False if a READ before it lacks responses, which are then lost. */
static bool ack_requests(struct soft_qp *qp, uint32_t psn)
{
	struct requester *requester = &qp->requester;
	uint32_t old_unacked_psn = requester->unacked_psn;

	while (psn_before(requester->unacked_psn, psn)) {
		const struct request *request = qp_request_at(requester, 0);
		uint32_t end = psn_add(request->psn, request->packets);

		if (request->kind == WORK_READ)
			break;
		if (psn_before(psn, end)) {
			requester->unacked_psn = psn;
			break;
		}
		requester->unacked_psn = end;
		requester_complete_oldest(qp);
	}
	if (requester->unacked_psn != old_unacked_psn)
		recovery_progress(qp, old_unacked_psn);
	return !psn_before(requester->unacked_psn, psn);
}

/* The request that owns a PSN, which must not be before unacked_psn. */
static const struct request *find_request(struct requester *requester, uint32_t psn)
{
	for (uint32_t index = 0; index < requester->ring.count; index++) {
		const struct request *request = qp_request_at(requester, index);

		if (psn_before(psn, psn_add(request->psn, request->packets)))
			return request;
	}
	return NULL;
}

static void read_response_received(struct soft_qp *qp, const struct packet *packet)
{
	struct requester *requester = &qp->requester;
	const struct request *request = find_request(requester, packet->psn);
	uint32_t old_unacked_psn, index;
	size_t offset, rest;

	if (!request || request->kind != WORK_READ)
		return;
	index = (packet->psn - request->psn) & PSN_MASK;
	offset = (size_t)index * qp->endpoint->path.mtu;
	rest = request->length - offset;
	if (packet->length != (rest < qp->endpoint->path.mtu ? rest : qp->endpoint->path.mtu))
		return;
	/* A READ response acknowledges all earlier requests. */
	if (!ack_requests(qp, packet->psn)) {
		recovery_implied_nak(qp);
		return;
	}
	if (packet->length)
		bytes_copy(request->memory + offset, packet->payload, packet->length);
	old_unacked_psn = requester->unacked_psn;
	requester->unacked_psn = psn_add(requester->unacked_psn, 1);
	if (slice_rest(requester, request, index) == 1 && requester->outstanding_reads &&
	    !psn_before(requester->next_psn, requester->unacked_psn))
		requester->outstanding_reads--;
	if (index + 1 == request->packets)
		requester_complete_oldest(qp);
	recovery_progress(qp, old_unacked_psn);
}

static void rnr_nak_received(struct soft_qp *qp, const struct packet *packet)
{
	struct requester *requester = &qp->requester;

	if (!ack_requests(qp, packet->psn)) {
		recovery_implied_nak(qp);
		return;
	}
	if (requester->rnr_waiting || requester->next_psn == requester->unacked_psn)
		return;
	if (qp->rnr_retry_limit != RNR_RETRY_INFINITE && requester->rnr_naks >= qp->rnr_retry_limit) {
		fail_oldest(qp, COMPLETION_RNR_EXCEEDED);
		return;
	}
	recovery_rnr(qp, rnr_delay(syndrome_value(packet->acknowledgement.syndrome)));
}

static void nak_received(struct soft_qp *qp, const struct packet *packet)
{
	struct requester *requester = &qp->requester;
	const struct request *request = find_request(requester, packet->psn);

	if (!request)
		return;
	/* A NAK acknowledges all earlier requests. */
	ack_requests(qp, packet->psn);
	switch (syndrome_value(packet->acknowledgement.syndrome)) {
	case NAK_SEQUENCE:
		recovery_nak(qp);
		break;
	case NAK_INVALID_REQUEST:
		requester_fail(qp, request, COMPLETION_REMOTE_REQUEST);
		break;
	case NAK_REMOTE_ACCESS:
		requester_fail(qp, request, COMPLETION_REMOTE_ACCESS);
		break;
	case NAK_REMOTE_OPERATION:
		requester_fail(qp, request, COMPLETION_REMOTE_OPERATION);
		break;
	default:
		break;
	}
}

void requester_receive(struct soft_qp *qp, const struct packet *packet)
{
	struct requester *requester = &qp->requester;

	/* Not the PSN of an outstanding packet. */
	if (psn_before(packet->psn, requester->unacked_psn) || !psn_before(packet->psn, requester->highest_psn)) {
		/* An ACK proves nothing here: a stopping queue pair resends its last one. */
		if (opcode_form(packet->opcode) & FORM_READ && psn_before(packet->psn, requester->unacked_psn) &&
		    !psn_before(packet->psn, requester->once_psn))
			soft_count(qp->transport, SOFT_RESPONSES_TWICE);
		return;
	}
	qp_valid_packet(qp);
	if (opcode_form(packet->opcode) & FORM_READ)
		read_response_received(qp, packet);
	else
		switch (syndrome_kind(packet->acknowledgement.syndrome)) {
		case SYNDROME_ACK:
			if (!ack_requests(qp, psn_add(packet->psn, 1)))
				recovery_implied_nak(qp);
			break;
		case SYNDROME_RNR:
			rnr_nak_received(qp, packet);
			break;
		case SYNDROME_NAK:
			nak_received(qp, packet);
			break;
		default:
			break;
		}
	requester_transmit(qp);
}

/* ---- timeouts ---- */

/*
 * Resends an outstanding packet with AckReq, whatever the window; for a READ the unanswered rest of its slice. Returns
 * its first PSN.
 */
static uint32_t requester_resend(struct soft_qp *qp, uint32_t psn)
{
	struct requester *requester = &qp->requester;
	const struct request *request = find_request(requester, psn);
	uint32_t index = (psn - request->psn) & PSN_MASK;

	/* A reply may answer either transmission: none of what is outstanding now is timed (Karn). */
	requester->rtt_timing = false;
	requester->ambiguous_psn = requester->next_psn;
	requester->once_psn = requester->highest_psn;
	requester->rtt_sent_at = qp_now(qp);
	soft_count(qp->transport, SOFT_RESENT);
	if (request->kind == WORK_READ) {
		index -= index % requester->read_slice;
		if (psn_before(psn_add(request->psn, index), requester->unacked_psn))
			index = (requester->unacked_psn - request->psn) & PSN_MASK;
		transmit_read(qp, request, index, slice_rest(requester, request, index));
	} else {
		transmit_packet(qp, request, index, true);
	}
	return psn_add(request->psn, index);
}

/* The probe is timed, and needs no room in the window. */
static void send_timeout_probe(struct soft_qp *qp)
{
	qp->requester.rtt_timing = false;
	qp->requester.packets_since_ack_request = PSN_MASK;
	requester_probe(qp);
}

/* A timeout's packets, as the top of recovery.c describes. */
static void resend_some(struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;
	uint32_t last_psn = psn_add(requester->next_psn, PSN_MASK);
	bool first_timeout = requester->consecutive_timeouts == 1;
	bool even_timeout = requester->consecutive_timeouts % 2 == 0;
	bool all_sent = requester->next_psn == requester->end_psn;

	if (first_timeout && all_sent && !requester->probing)
		send_timeout_probe(qp);
	else if (requester_resend(qp, last_psn) != requester->unacked_psn && even_timeout)
		requester_resend(qp, requester->unacked_psn);
}

static void deadline_exceeded(struct soft_qp *qp)
{
	switch (recovery_timed_out(qp)) {
	case RECOVERY_WAITS:
		break;
	case RECOVERY_RESENDS:
		resend_some(qp);
		break;
	case RECOVERY_FAILS:
		fail_oldest(qp, COMPLETION_RETRY_EXCEEDED);
		break;
	}
}

static void requester_timer_expired(void *context)
{
	struct soft_qp *qp = context;
	struct requester *requester = &qp->requester;

	soft_callback_begin(qp->transport);
	requester->timer_at = 0;
	if (requester->deadline && qp_now(qp) >= requester->deadline) {
		if (requester->rnr_waiting) {
			requester->rnr_waiting = false;
			requester->deadline = 0;
			send_allowed(qp);
		} else {
			deadline_exceeded(qp);
		}
	}
	requester_start_timer(qp);
	soft_callback_end(qp->transport);
}

void requester_suspect(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;

	if (requester->deadline)
		return;
	requester->consecutive_timeouts = 0;
	requester->unanswered_since = qp_now(qp);
	recovery_arm(qp);
	requester_start_timer(qp);
}
