/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving half of a connection's queue pair. Packets are taken in the order of their PSNs only:
 *
 *   before the expected one   repeated: never carried out again, just acknowledged, but a READ is answered anew
 *   the expected one          checked against the message it belongs to and the memory it wants, then carried out;
 *                             refused if nobody here knows what it asks for
 *   beyond it                 something is missing, which the peer is told once
 *
 * What is to be said waits for the end of the batch that was received, because one acknowledgement covers all before
 * it; and it never overtakes the responses of an earlier READ. Those go out in slices, so that one peer that asks for
 * megabytes leaves room for the others.
 *
 * A request that is wrong ends the connection: the peer is told why, again for every try of it, and nothing else.
 */
#include "transport/soft/qp/responder.h"

#include "transport/soft/delivery.h"
#include "transport/soft/region.h"
#include "transport/soft/wire/bytes.h"

enum {
	SLICE = 64,		/* READ responses of a queue in one turn */
	LONGEST = 1 << 30,	/* of any message; its packets stay within half of the PSNs at any MTU */
	NOT_READY_CODE = 6,	/* 0.08 ms: receives are usually on their way when a message finds none */
	REMINDERS_MOST = 2,	/* of a gap, when the peer asks */
	PARTING_WORDS = 2,	/* acknowledgements more than are needed ... */
	PARTING_WORDS_MOST = 5, /* ... on a network that is known to lose some */
	RAW_LENGTH = 1,		/* the completion status of verbs */
};

void responder_connect(struct soft_qp *qp, const struct soft_agreement *agreement)
{
	struct responder *responder = &qp->responder;

	responder->epsn = agreement->rq_psn & PSN_MASK;
	responder->acked_psn = psn_add(responder->epsn, PSN_MASK);
	responder->reads_max =
		agreement->reads_in > SOFT_READS_AT_ONCE ? SOFT_READS_AT_ONCE : (uint8_t)agreement->reads_in;
}

static void refuse(struct soft_qp *qp, enum nak_code code, const char *wrong)
{
	struct responder *responder = &qp->responder;

	responder->fatal = true;
	responder->nak_due = true;
	responder->syndrome = syndrome_make(SYNDROME_NAK, (uint8_t)code);
	responder->cause = wrong;
	qp_schedule_reply(qp);
}

/* ---- the expected packet ---- */

static void rnr_naks(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;

	responder->nak_due = true;
	responder->syndrome = syndrome_make(SYNDROME_RNR, NOT_READY_CODE);
	/* What follows it is missing nothing that the peer does not know of. */
	responder->gap = true;
	responder->gap_last_psn = responder->epsn;
	responder->gap_naks_left = 0;
	qp_schedule_reply(qp);
}

static bool reach(struct soft_qp *qp, const struct packet *packet, unsigned access)
{
	return soft_region_find(qp->transport, packet->remote.key, packet->remote.address, packet->remote.length,
				access);
}

static void finish_receive(struct soft_qp *qp, const struct packet *packet, uint32_t length)
{
	struct responder *responder = &qp->responder;
	struct completion completion = {
		.kind = WORK_RECEIVE,
		.tag = responder->ring[responder->head].tag,
		.length = length,
		.has_immediate = opcode_form(packet->opcode) & FORM_IMMEDIATE,
		.immediate = packet->immediate,
	};

	if (++responder->head == responder->capacity)
		responder->head = 0;
	responder->count--;
	soft_complete(qp->endpoint, &completion, 0);
}

/* These three return whether the packet was taken. */

static bool take_send(struct soft_qp *qp, const struct packet *packet, unsigned form)
{
	struct responder *responder = &qp->responder;
	const struct receive *receive = &responder->ring[responder->head];

	if (!responder->count) {
		rnr_naks(qp);
		return false;
	}
	if (form & FORM_FIRST)
		responder->offset = 0;
	if (packet->length > receive->length - responder->offset) {
		refuse(qp, NAK_INVALID_REQUEST, NULL);
		return false;
	}
	if (packet->length)
		bytes_copy(receive->memory + responder->offset, packet->payload, packet->length);
	responder->offset += (uint32_t)packet->length;
	if (form & FORM_LAST)
		finish_receive(qp, packet, responder->offset);
	return true;
}

static bool take_write(struct soft_qp *qp, const struct packet *packet, unsigned form)
{
	struct responder *responder = &qp->responder;
	uint8_t *target;

	if ((form & FORM_IMMEDIATE) && !responder->count) {
		rnr_naks(qp);
		return false;
	}
	if (form & FORM_FIRST) {
		if (packet->remote.length > LONGEST || !reach(qp, packet, REGION_REMOTE_WRITE)) {
			refuse(qp, NAK_REMOTE_ACCESS, "the peer tried to write memory that it has no right to");
			return false;
		}
		responder->write.address = packet->remote.address;
		responder->write.key = packet->remote.key;
		responder->write.bytes_left = packet->remote.length;
	}
	if (packet->length > responder->write.bytes_left ||
	    ((form & FORM_LAST) && packet->length != responder->write.bytes_left)) {
		refuse(qp, NAK_INVALID_REQUEST, "the peer's write is not as long as it said");
		return false;
	}
	/* Looked up for each packet: the region may be gone since the first. */
	target = soft_region_find(qp->transport, responder->write.key, responder->write.address, packet->length,
				  REGION_REMOTE_WRITE);
	if (!target) {
		refuse(qp, NAK_REMOTE_ACCESS, "the peer writes to memory that is gone");
		return false;
	}
	if (packet->length)
		bytes_copy(target, packet->payload, packet->length);
	responder->write.address += packet->length;
	responder->write.bytes_left -= (uint32_t)packet->length;
	if (form & FORM_IMMEDIATE)
		finish_receive(qp, packet, 0);
	return true;
}

static bool take_read(struct soft_qp *qp, const struct packet *packet)
{
	struct responder *responder = &qp->responder;
	struct resource *resource = &responder->resources[responder->oldest];

	if (!responder->reads_max || resource->state == RESOURCE_NEW) {
		refuse(qp, NAK_INVALID_REQUEST, "the peer has more RDMA READs under way than was agreed");
		return false;
	}
	if (packet->remote.length > LONGEST || !reach(qp, packet, REGION_REMOTE_READ)) {
		refuse(qp, NAK_REMOTE_ACCESS, "the peer tried to read memory that it has no right to");
		return false;
	}
	/* A peer that keeps to the agreement has the responses of the oldest: a repeat of it is waited for no more. */
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

/* The peer reads, from that PSN on, what it may not read. */
static void refuse_read(struct soft_qp *qp, uint32_t psn, const char *wrong)
{
	qp->responder.epsn = psn;
	qp->responder.resources_due = 0;
	refuse(qp, NAK_REMOTE_ACCESS, wrong);
}

/* Whether it may follow what came before it, and has the length that its place in the message wants. */
static bool is_in_order(const struct soft_qp *qp, const struct packet *packet, unsigned form)
{
	unsigned under_way = qp->responder.message_form;

	if (form & FORM_FIRST ? under_way : under_way != (form & (FORM_SEND | FORM_WRITE)))
		return false;
	if (form & FORM_READ)
		return true;
	if (!(form & FORM_LAST))
		return packet->length == qp->path.mtu;
	return packet->length <= qp->path.mtu && (packet->length || (form & FORM_FIRST));
}

/* More than half a turn ago is as good as never. */
static uint32_t saturated(uint32_t count, uint32_t more)
{
	return more < PSN_HALF - count ? count + more : PSN_HALF;
}

static void take(struct soft_qp *qp, const struct packet *packet, unsigned form)
{
	struct responder *responder = &qp->responder;
	uint32_t packets = 1;

	if (form & FORM_UNKNOWN) {
		refuse(qp, NAK_INVALID_REQUEST, "the peer asks for an operation that this end does not know");
		return;
	}
	if (!is_in_order(qp, packet, form)) {
		refuse(qp, NAK_INVALID_REQUEST, "the peer's packets make no message");
		return;
	}
	if (form & FORM_READ) {
		if (!take_read(qp, packet))
			return;
		packets = qp_packets(qp, packet->remote.length);
		responder->trailing_read_psns = saturated(responder->trailing_read_psns, packets);
		/* Its response acknowledges what was before it. */
		responder->ack_due = false;
	} else {
		if (!(form & FORM_SEND ? take_send : take_write)(qp, packet, form))
			return;
		responder->message_form = form & FORM_LAST ? 0 : (uint16_t)(form & (FORM_SEND | FORM_WRITE));
		if (form & FORM_LAST)
			responder->msn = psn_add(responder->msn, 1);
		if (packet->ack_request) {
			responder->ack_due = true;
			qp_schedule_reply(qp);
		}
		responder->trailing_read_psns = 0;
	}
	responder->psns_received = saturated(responder->psns_received, packets);
	responder->epsn = psn_add(responder->epsn, packets);
	/* A refusal that has not gone yet will speak of what is missing then. */
	if (!responder->nak_due)
		responder->gap = false;
}

/* ---- any other packet ---- */

/*
 * The READ that a READ repeats: with the same key a part of what that asked for, beginning with the PSN that this part
 * had. Nothing else is a repeat (IBTA 9.9.3, class D: dropped), so that no key can be tried here.
 */
static struct resource *find_resource(struct soft_qp *qp, const struct packet *packet)
{
	struct responder *responder = &qp->responder;

	for (unsigned place = 0; place < responder->reads_max; place++) {
		struct resource *resource = &responder->resources[place];
		uint32_t index = (packet->psn - resource->psn) & PSN_MASK;
		uint32_t offset = index * qp->path.mtu;

		if (resource->state != RESOURCE_FREE && index < qp_packets(qp, resource->length) &&
		    packet->remote.key == resource->key && packet->remote.address == resource->address + offset &&
		    packet->remote.length <= resource->length - offset && !packet->remote.length == !resource->length)
			return resource;
	}
	return NULL;
}

/*
 * A READ again, from wherever the peer misses something. If its responses are still on their way they start anew from
 * there. They come before those of later READs, which the peer does not take before.
 */
static void answer_again(struct soft_qp *qp, struct resource *resource, const struct packet *packet)
{
	bool due = resource->state != RESOURCE_SENT;

	/* What it asks for has not been sent yet. */
	if (due && !psn_before(packet->psn, resource->next_psn))
		return;
	if (!due) {
		resource->state = RESOURCE_REPEATED;
		qp->responder.resources_due++;
	}
	resource->next_psn = packet->psn;
	resource->bytes_left = packet->remote.length;
	resource->first_sent = false;
	qp_schedule_reply(qp);
}

/*
 * Something is missing. The peer is told once; again if it has gone back since without success, which shows in that its
 * PSNs increase until it does; and a few times more when it asks, as it does before its window ends, because what it
 * was told may be lost, too.
 */
static void tell_gap(struct soft_qp *qp, const struct packet *packet)
{
	struct responder *responder = &qp->responder;
	bool known = responder->gap && psn_before(responder->gap_last_psn, packet->psn);

	responder->gap = true;
	responder->gap_last_psn = packet->psn;
	if (responder->nak_due)
		return;
	if (!known)
		responder->gap_naks_left = REMINDERS_MOST;
	else if (!packet->ack_request || !responder->gap_naks_left)
		return;
	else
		responder->gap_naks_left--;
	responder->nak_due = true;
	responder->syndrome = syndrome_make(SYNDROME_NAK, NAK_SEQUENCE);
	qp_schedule_reply(qp);
}

/*
 * The PSN of the last packet of a SEND or WRITE that was carried out. An ACK names no later one: in a READ that stands
 * behind it the ACK would count as the response, without the data (IBTA 9.7.5.1.2).
 */
static uint32_t acked_psn(const struct responder *responder)
{
	return psn_add(responder->epsn, PSN_MASK - responder->trailing_read_psns);
}

/* False if there were only READs. */
static bool has_acked_psn(const struct responder *responder)
{
	return responder->trailing_read_psns < responder->psns_received;
}

/* A SEND or WRITE again is acknowledged again (IBTA C9-105), if there was one with that PSN or behind it. */
static bool is_repeat(const struct responder *responder, const struct packet *packet, unsigned form)
{
	return !(form & FORM_READ) && has_acked_psn(responder) && !psn_before(acked_psn(responder), packet->psn);
}

static void repeat_acknowledgement(struct soft_qp *qp)
{
	qp->responder.ack_due = true;
	qp_schedule_reply(qp);
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
	/* In its turn it will be refused; before and after it says nothing. */
	if (ahead && (form & FORM_UNKNOWN))
		return;
	if (ahead < 0 && (form & FORM_READ))
		resource = find_resource(qp, packet);
	if (ahead < 0 && !resource && !is_repeat(responder, packet, form))
		return;
	if (qp->state == QP_DRAINING) {
		if (ahead < 0 && !resource)
			repeat_acknowledgement(qp);
		return;
	}
	qp_packet_received(qp);
	responder->loss_seen |= ahead != 0;
	if (!ahead) {
		take(qp, packet, form);
	} else if (ahead > 0) {
		tell_gap(qp, packet);
	} else if (resource) {
		answer_again(qp, resource, packet);
	} else {
		repeat_acknowledgement(qp);
	}
}

/* ---- what is said ---- */

static void say(struct soft_qp *qp, uint32_t psn, uint8_t syndrome)
{
	struct packet packet = {
		.opcode = OPCODE_ACKNOWLEDGE,
		.psn = psn,
		.acknowledgement = { .syndrome = syndrome, .msn = qp->responder.msn },
	};

	qp_send(qp, &packet);
}

/* False if the region is gone. */
static bool send_response(struct soft_qp *qp, struct resource *resource)
{
	uint32_t mtu = qp->path.mtu;
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

/* In the order of their PSNs. False if some are left for the next turn. */
static bool send_responses(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;
	unsigned count = 0;

	for (unsigned place = responder->oldest; responder->resources_due; place = (place + 1) % responder->reads_max) {
		struct resource *resource = &responder->resources[place];

		for (; resource->state == RESOURCE_NEW || resource->state == RESOURCE_REPEATED; count++) {
			if (count == SLICE)
				return false;
			if (!send_response(qp, resource)) {
				refuse_read(qp, resource->next_psn, "the peer reads memory that is gone");
				return true;
			}
		}
	}
	return true;
}

/* The connection is at its end, and our own command hears of it. */
static void end(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;

	responder->fatal_reported = true;
	if (responder->cause)
		qp_fail_connection(qp, responder->cause, "NAK", syndrome_value(responder->syndrome));
	else
		qp_fail_work(qp, WORK_RECEIVE, responder->ring[responder->head].tag, COMPLETION_LENGTH, RAW_LENGTH);
	qp->state = QP_NAK_SENT;
}

static void acknowledge(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;

	if (!has_acked_psn(responder))
		return;
	responder->acked_psn = acked_psn(responder);
	say(qp, responder->acked_psn, syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED));
}

/*
 * A NAK acknowledges what came before it, too, but the kernel's soft-RoCE goes back only once until something else
 * does: it would let the second gap of a message wait for its time-out.
 */
static void refuse_expected(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;

	if (responder->syndrome == syndrome_make(SYNDROME_NAK, NAK_SEQUENCE) &&
	    responder->acked_psn != acked_psn(responder))
		acknowledge(qp);
	say(qp, responder->epsn, responder->syndrome);
}

bool responder_reply(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;
	bool gap_closed;

	if (!send_responses(qp))
		return false;
	/* The missing packet came with the same batch, and nothing behind it was dropped. */
	gap_closed = responder->nak_due && !responder->fatal && syndrome_kind(responder->syndrome) == SYNDROME_NAK &&
		     psn_before(responder->gap_last_psn, responder->epsn);
	if (gap_closed) {
		responder->gap = false;
		acknowledge(qp);
	} else if (responder->nak_due) {
		refuse_expected(qp);
	} else if (responder->ack_due) {
		acknowledge(qp);
	}
	responder->nak_due = false;
	responder->ack_due = false;
	if (responder->fatal && !responder->fatal_reported)
		end(qp);
	return true;
}

/*
 * Repeats are still answered after this, but the peer may be gone into its error state with the DREQ that follows: what
 * is said now should arrive.
 */
void responder_drain(struct soft_qp *qp)
{
	struct responder *responder = &qp->responder;
	unsigned words = responder->loss_seen ? PARTING_WORDS_MOST : PARTING_WORDS;

	if (qp->reply_scheduled)
		responder_reply(qp);
	if (!responder->resources_due && !responder->fatal)
		while (words--)
			acknowledge(qp);
}
