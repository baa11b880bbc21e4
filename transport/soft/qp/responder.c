/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder of a connection. It executes requests in PSN order:
 *
 *   before epsn   a recent duplicate: acknowledged again, not executed again; for a READ, the responses are sent again
 *   epsn          checked against the incomplete message and the memory region, then executed or refused
 *   beyond epsn   dropped, with a sequence NAK: a packet is missing
 *
 * Replies wait for the end of the batch of received packets, because one ACK covers all earlier requests, and for the
 * responses of earlier READs. READ responses are limited for each turn of the loop, so that a peer that reads megabytes
 * does not delay others.
 *
 * An invalid request ends the connection with a fatal NAK, which is sent again for each later request.
 */
#include "transport/soft/qp/qp_internal.h"

#include "transport/soft/base/queue.h"
#include "transport/soft/wire/bytes.h"

enum {
	RESPONSES_PER_TURN = 64,    /* READ responses of a queue pair */
	MESSAGE_SIZE_MAX = 1 << 30, /* its packets take less than half of the PSNs at any MTU */
	RNR_TIMER_CODE = 6,	    /* 0.08 ms: usually a receive is posted soon */
	GAP_NAK_REPEATS = 2,	    /* for packets with AckReq beyond the gap */
	FINAL_ACKS = 2,
	FINAL_ACKS_AFTER_LOSS = 5,
};

void responder_connect(struct soft_qp *qp, const struct soft_agreement *agreement)
{
	struct responder *responder = &qp->responder;

	responder->epsn = agreement->rq_psn;
	responder->acked_psn = psn_add(responder->epsn, PSN_MASK);
	responder->reads_max =
		agreement->reads_in > SOFT_READS_AT_ONCE ? SOFT_READS_AT_ONCE : (uint8_t)agreement->reads_in;
}

static void schedule_ack(struct soft_qp *qp)
{
	qp->responder.ack_due = true;
	qp_schedule_reply(qp);
}

/* It will name epsn. */
static void schedule_nak(struct soft_qp *qp, enum syndrome_kind kind, unsigned value)
{
	qp->responder.nak_due = true;
	qp->responder.syndrome = syndrome_make(kind, (uint8_t)value);
	qp_schedule_reply(qp);
}

static void fatal_nak(struct soft_qp *qp, enum nak_code code, const char *cause)
{
	qp->responder.fatal = true;
	qp->responder.cause = cause;
	schedule_nak(qp, SYNDROME_NAK, code);
}

/* ---- packets with the expected PSN ---- */

static void schedule_rnr_nak(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;

	/* Later packets need no sequence NAK: after the RNR NAK the peer resends them. */
	responder->gap = true;
	responder->gap_last_psn = responder->epsn;
	responder->gap_naks_left = 0;
	schedule_nak(qp, SYNDROME_RNR, RNR_TIMER_CODE);
}

static bool may_access(struct soft_qp *qp, const struct packet *packet, unsigned access)
{
	return soft_region_find(qp->transport, packet->remote.key, packet->remote.address, packet->remote.length,
				access);
}

void responder_complete_receive(struct soft_qp *qp, const struct packet *packet, uint32_t length)
{
	struct completion *completion =
		soft_complete(qp->endpoint, WORK_RECEIVE, qp_oldest_receive(&qp->responder)->tag, 0);

	completion->length = length;
	completion->has_immediate = opcode_form(packet->opcode) & FORM_IMMEDIATE;
	completion->immediate = packet->immediate;
	completion->source_qpn = packet->datagram.source;
	soft_ring_pop(&qp->responder.ring);
}

/* These three return false if they refuse the packet. */

static bool execute_send(struct soft_qp *qp, const struct packet *packet, unsigned form)
{
	struct responder *responder = &qp->responder;
	const struct receive *receive = qp_oldest_receive(responder);

	if (!responder->ring.count) {
		schedule_rnr_nak(qp);
		return false;
	}
	if (form & FORM_FIRST)
		responder->offset = 0;
	if (packet->length > receive->length - responder->offset) {
		fatal_nak(qp, NAK_INVALID_REQUEST, NULL);
		return false;
	}
	if (packet->length)
		bytes_copy(receive->memory + responder->offset, packet->payload, packet->length);
	responder->offset += (uint32_t)packet->length;
	if (form & FORM_LAST)
		responder_complete_receive(qp, packet, responder->offset);
	return true;
}

static bool execute_write(struct soft_qp *qp, const struct packet *packet, unsigned form)
{
	struct responder *responder = &qp->responder;
	uint8_t *target;

	if ((form & FORM_IMMEDIATE) && !responder->ring.count) {
		schedule_rnr_nak(qp);
		return false;
	}
	if (form & FORM_FIRST) {
		if (packet->remote.length > MESSAGE_SIZE_MAX || !may_access(qp, packet, REGION_REMOTE_WRITE)) {
			fatal_nak(qp, NAK_REMOTE_ACCESS,
				  "the peer sent an RDMA WRITE to memory that it may not access");
			return false;
		}
		responder->write.address = packet->remote.address;
		responder->write.key = packet->remote.key;
		responder->write.bytes_left = packet->remote.length;
	}
	if (packet->length > responder->write.bytes_left ||
	    ((form & FORM_LAST) && packet->length != responder->write.bytes_left)) {
		fatal_nak(qp, NAK_INVALID_REQUEST, "the peer sent an RDMA WRITE of another length than announced");
		return false;
	}
	/* For each packet: the region may have been destroyed since the first. */
	target = soft_region_find(qp->transport, responder->write.key, responder->write.address, packet->length,
				  REGION_REMOTE_WRITE);
	if (!target) {
		fatal_nak(qp, NAK_REMOTE_ACCESS, "the peer sent an RDMA WRITE to memory that was deregistered");
		return false;
	}
	if (packet->length)
		bytes_copy(target, packet->payload, packet->length);
	responder->write.address += packet->length;
	responder->write.bytes_left -= (uint32_t)packet->length;
	if (form & FORM_IMMEDIATE)
		responder_complete_receive(qp, packet, 0);
	return true;
}

static bool execute_read(struct soft_qp *qp, const struct packet *packet)
{
	struct responder *responder = &qp->responder;
	struct resource *resource = &responder->resources[responder->oldest];

	if (!responder->reads_max || resource->state == RESOURCE_NEW) {
		fatal_nak(qp, NAK_INVALID_REQUEST, "the peer exceeded the negotiated number of outstanding RDMA READs");
		return false;
	}
	if (packet->remote.length > MESSAGE_SIZE_MAX || !may_access(qp, packet, REGION_REMOTE_READ)) {
		fatal_nak(qp, NAK_REMOTE_ACCESS, "the peer sent an RDMA READ of memory that it may not access");
		return false;
	}
	/* A peer within its limit has the oldest's responses, and needs no repetition. */
	if (resource->state != RESOURCE_REPEATED)
		responder->resources_due++;
	responder->msn = psn_add(responder->msn, 1);
	*resource = (struct resource){
		.address = packet->remote.address,
		.key = packet->remote.key,
		.length = packet->remote.length,
		.psn = packet->psn,
		.msn = responder->msn,
		.next_psn = packet->psn,
		.bytes_left = packet->remote.length,
		.state = RESOURCE_NEW,
	};
	responder->oldest = (uint8_t)((responder->oldest + 1) % responder->reads_max);
	qp_schedule_reply(qp);
	return true;
}

/* Refuses a READ from that PSN on, after earlier responses may have been sent. */
static void refuse_read(struct soft_qp *qp, uint32_t psn, const char *cause)
{
	qp->responder.epsn = psn;
	qp->responder.resources_due = 0;
	fatal_nak(qp, NAK_REMOTE_ACCESS, cause);
}

/* True if the packet may follow the previous one, and has a valid length for its position in the message. */
static bool is_sequence_valid(const struct soft_qp *qp, const struct packet *packet, unsigned form)
{
	unsigned incomplete = qp->responder.message_form;

	if (form & FORM_FIRST ? incomplete : incomplete != (form & (FORM_SEND | FORM_WRITE)))
		return false;
	if (form & FORM_READ)
		return true;
	if (!(form & FORM_LAST))
		return packet->length == qp->endpoint->path.mtu;
	return packet->length <= qp->endpoint->path.mtu && (packet->length || (form & FORM_FIRST));
}

/* At most PSN_HALF: a PSN further back compares as ahead. */
static uint32_t saturating_add(uint32_t count, uint32_t more)
{
	return more < PSN_HALF - count ? count + more : PSN_HALF;
}

static void execute(struct soft_qp *qp, const struct packet *packet, unsigned form)
{
	struct responder *responder = &qp->responder;
	uint32_t packets = 1;

	if (form & FORM_UNKNOWN) {
		fatal_nak(qp, NAK_INVALID_REQUEST, "the peer sent an unknown opcode");
		return;
	}
	if (!is_sequence_valid(qp, packet, form)) {
		fatal_nak(qp, NAK_INVALID_REQUEST, "the peer sent a packet that does not fit the message before it");
		return;
	}
	if (form & FORM_READ) {
		if (!execute_read(qp, packet))
			return;
		packets = qp_packets(qp, packet->remote.length);
		responder->trailing_read_psns = saturating_add(responder->trailing_read_psns, packets);
		/* The READ response acknowledges all earlier requests. */
		responder->ack_due = false;
	} else {
		if (!(form & FORM_SEND ? execute_send : execute_write)(qp, packet, form))
			return;
		responder->message_form = form & FORM_LAST ? 0 : (uint16_t)(form & (FORM_SEND | FORM_WRITE));
		if (form & FORM_LAST)
			responder->msn = psn_add(responder->msn, 1);
		if (packet->ack_request)
			schedule_ack(qp);
		responder->trailing_read_psns = 0;
	}
	responder->psns_received = saturating_add(responder->psns_received, packets);
	responder->epsn = psn_add(responder->epsn, packets);
	/* A NAK that is still due will name the new epsn, unless each packet dropped since has been executed, too. */
	if (!responder->nak_due) {
		responder->gap = false;
	} else if (psn_before(responder->gap_last_psn, responder->epsn)) {
		responder->gap = responder->nak_due = false;
		responder->ack_due = true;
	}
}

/* ---- packets with any other PSN ---- */

/*
 * The READ that the packet duplicates: same key, and a part of its range at the part's PSN. Any other is dropped (IBTA
 * 9.9.3, class D), so a peer cannot try keys here.
 */
static struct resource *find_resource(struct soft_qp *qp, const struct packet *packet)
{
	struct responder *responder = &qp->responder;

	for (unsigned slot = 0; slot < responder->reads_max; slot++) {
		struct resource *resource = &responder->resources[slot];
		uint32_t index = (packet->psn - resource->psn) & PSN_MASK;
		uint32_t offset = index * qp->endpoint->path.mtu;

		if (resource->state != RESOURCE_FREE && index < qp_packets(qp, resource->length) &&
		    packet->remote.key == resource->key && packet->remote.address == resource->address + offset &&
		    packet->remote.length <= resource->length - offset && !packet->remote.length == !resource->length)
			return resource;
	}
	return NULL;
}

/*
 * A duplicate READ, from the first missing response on. Responses that are still due restart there. They precede later
 * READs' responses, which the peer would not accept yet.
 */
static void repeat_responses(struct soft_qp *qp, struct resource *resource, const struct packet *packet)
{
	bool due = resource->state != RESOURCE_SENT;

	/* The first missing response was not sent yet. */
	if (due && !psn_before(packet->psn, resource->next_psn))
		return;
	if (packet->psn != resource->psn)
		soft_count(qp->transport, SOFT_RESUMED_READS);
	if (!due) {
		resource->state = RESOURCE_REPEATED;
		qp->responder.resources_due++;
	}
	resource->next_psn = packet->psn;
	resource->bytes_left = packet->remote.length;
	resource->first_sent = false;
	qp_schedule_reply(qp);
}

/* Repeats the reply to a duplicate; resource: a READ's. */
static void reply_again(struct soft_qp *qp, struct resource *resource, const struct packet *packet)
{
	soft_count(qp->transport, SOFT_DUPLICATES);
	if (resource)
		repeat_responses(qp, resource, packet);
	else
		schedule_ack(qp);
}

/*
 * A packet is missing. The peer gets one NAK for it, and another one if it went back without success: only then do its
 * PSNs not increase. The NAK may be lost too: it is repeated GAP_NAK_REPEATS times for packets with AckReq, which the
 * peer sends before its window is full.
 */
static void packet_beyond_gap(struct soft_qp *qp, const struct packet *packet)
{
	struct responder *responder = &qp->responder;
	bool awaits_receive = responder->gap && syndrome_kind(responder->syndrome) == SYNDROME_RNR;
	bool first = !responder->gap || !psn_before(responder->gap_last_psn, packet->psn);
	bool repeats = packet->ack_request && responder->gap_naks_left;

	/* After an RNR NAK no packet is lost. */
	if (!awaits_receive)
		soft_count(qp->transport, SOFT_OUT_OF_SEQUENCE);
	responder->gap = true;
	responder->gap_last_psn = packet->psn;
	if (responder->nak_due || !(first || repeats))
		return;
	if (first)
		responder->gap_naks_left = GAP_NAK_REPEATS;
	else
		responder->gap_naks_left--;
	schedule_nak(qp, SYNDROME_NAK, NAK_SEQUENCE);
}

/*
 * The PSN of the last executed packet of a SEND or WRITE. An ACK names no later PSN: a requester would take it for a
 * READ's response, without the data (IBTA 9.7.5.1.2).
 */
static uint32_t ackable_psn(const struct responder *responder)
{
	return psn_add(responder->epsn, PSN_MASK - responder->trailing_read_psns);
}

/* False if only READs were executed. */
static bool has_ackable_psn(const struct responder *responder)
{
	return responder->trailing_read_psns < responder->psns_received;
}

/* Acknowledges a duplicate SEND or WRITE again (IBTA C9-105) if one with that or a later PSN was executed. */
static bool is_duplicate(const struct responder *responder, const struct packet *packet, unsigned form)
{
	return !(form & FORM_READ) && has_ackable_psn(responder) && !psn_before(ackable_psn(responder), packet->psn);
}

void responder_receive(struct soft_qp *qp, const struct packet *packet)
{
	struct responder *responder = &qp->responder;
	int32_t ahead = psn_difference(packet->psn, responder->epsn);
	unsigned form = opcode_form(packet->opcode);
	struct resource *resource = NULL;

	if (ahead > PSN_AHEAD_MAX || -ahead > (int32_t)responder->psns_received)
		return;
	if (responder->fatal) {
		if (ahead >= 0 && !responder->nak_due) {
			responder->nak_due = true;
			qp_schedule_reply(qp);
		}
		return;
	}
	/* An unknown opcode is refused only with epsn. */
	if (ahead && (form & FORM_UNKNOWN))
		return;
	if (ahead < 0 && (form & FORM_READ))
		resource = find_resource(qp, packet);
	if (ahead < 0 && !resource && !is_duplicate(responder, packet, form))
		return;
	if (qp->state == QP_DRAINING) {
		if (ahead < 0 && !resource)
			schedule_ack(qp);
		return;
	}
	qp_valid_packet(qp);
	responder->loss_seen |= ahead != 0;
	if (!ahead)
		execute(qp, packet, form);
	else if (ahead > 0)
		packet_beyond_gap(qp, packet);
	else
		reply_again(qp, resource, packet);
}

/* ---- replies ---- */

static void send_acknowledge(struct soft_qp *qp, uint32_t psn, uint8_t syndrome)
{
	struct packet packet = {
		.opcode = OPCODE_ACKNOWLEDGE,
		.psn = psn,
		.acknowledgement = { .syndrome = syndrome, .msn = qp->responder.msn },
	};

	qp_send(qp, &packet);
}

/* False if the region was destroyed. */
static bool send_response(struct soft_qp *qp, struct resource *resource)
{
	uint32_t mtu = qp->endpoint->path.mtu;
	bool last = resource->bytes_left <= mtu;
	struct packet packet = {
		.psn = resource->next_psn,
		.acknowledgement = { .syndrome = syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED), .msn = resource->msn },
		.length = last ? resource->bytes_left : mtu,
	};
	uint32_t offset = ((resource->next_psn - resource->psn) & PSN_MASK) * mtu;

	packet.payload = soft_region_find(qp->transport, resource->key, resource->address + offset, packet.length,
					  REGION_REMOTE_READ);
	if (!packet.payload)
		return false;
	if (resource->first_sent)
		packet.opcode = last ? OPCODE_READ_RESPONSE_LAST : OPCODE_READ_RESPONSE_MIDDLE;
	else
		packet.opcode = last ? OPCODE_READ_RESPONSE_ONLY : OPCODE_READ_RESPONSE_FIRST;
	qp_send(qp, &packet);
	resource->first_sent = true;
	resource->bytes_left -= (uint32_t)packet.length;
	resource->next_psn = psn_add(resource->next_psn, 1);
	if (last) {
		resource->state = RESOURCE_SENT;
		qp->responder.resources_due--;
	}
	return true;
}

/* In PSN order. False if some are left for the next turn. */
static bool send_responses(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;
	unsigned count = 0;

	for (unsigned slot = responder->oldest; responder->resources_due; slot = (slot + 1) % responder->reads_max) {
		struct resource *resource = &responder->resources[slot];

		for (; resource->state == RESOURCE_NEW || resource->state == RESOURCE_REPEATED; count++) {
			if (count == RESPONSES_PER_TURN)
				return false;
			if (!send_response(qp, resource)) {
				refuse_read(qp, resource->next_psn,
					    "the peer sent an RDMA READ of memory that was deregistered");
				return true;
			}
		}
	}
	return true;
}

static void report_fatal(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;

	responder->fatal_reported = true;
	if (responder->cause)
		qp_fail_connection(qp, responder->cause, "NAK", syndrome_value(responder->syndrome));
	else
		qp_fail_work(qp, WORK_RECEIVE, qp_oldest_receive(responder)->tag, COMPLETION_LENGTH, 0);
	qp->state = QP_NAK_SENT;
}

static void send_ack(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;

	if (!has_ackable_psn(responder))
		return;
	responder->acked_psn = ackable_psn(responder);
	send_acknowledge(qp, responder->acked_psn, syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED));
}

/*
 * A NAK acknowledges all earlier requests, too. But the kernel's soft-RoCE acts on one NAK only until an ACK comes:
 * without it, a second gap in a message would wait for its timeout.
 */
static void send_nak(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;

	if (responder->syndrome == syndrome_make(SYNDROME_NAK, NAK_SEQUENCE)) {
		soft_count(qp->transport, SOFT_SEQUENCE_NAKS_SENT);
		qp->endpoint->base.losses.back += WITH_EXTRAS;
		if (responder->acked_psn != ackable_psn(responder))
			send_ack(qp);
	} else if (!responder->fatal) {
		soft_count(qp->transport, SOFT_RNR_NAKS_SENT);
	}
	send_acknowledge(qp, responder->epsn, responder->syndrome);
}

bool responder_reply(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;

	if (!send_responses(qp))
		return false;
	if (responder->nak_due)
		send_nak(qp);
	else if (responder->ack_due)
		send_ack(qp);
	responder->nak_due = false;
	responder->ack_due = false;
	if (responder->fatal && !responder->fatal_reported)
		report_fatal(qp);
	return true;
}

uint32_t soft_qp_last_ack(const struct soft_qp *qp)
{
	return ackable_psn(&qp->responder);
}

/*
 * The DREQ that follows names the last ACK to an rdmatest peer. A kernel's QP may enter the error state with the DREQ,
 * and then repeats nothing that QP_DRAINING could acknowledge: several ACKs make a total loss unlikely.
 */
void responder_drain(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;
	unsigned acks = responder->loss_seen ? FINAL_ACKS_AFTER_LOSS : FINAL_ACKS;

	/* The DREQ would overtake a fatal NAK that waits for READ responses, so these end here. */
	if (qp->scheduled.list && !responder_reply(qp) && responder->fatal) {
		responder->resources_due = 0;
		responder_reply(qp);
	}
	if (!responder->resources_due && !responder->fatal)
		while (acks--)
			send_ack(qp);
}
