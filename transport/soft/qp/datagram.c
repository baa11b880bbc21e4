/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams to and from multicast groups. Nothing is acknowledged: a send completes when the kernel has accepted it,
 * and a datagram without a posted receive is dropped.
 */
#include "transport/soft/qp/datagram.h"

#include <string.h>

#include "core/clock.h"
#include "transport/soft/base/queue.h"
#include "transport/soft/net/packet_io.h"

enum {
	MULTICAST_QPN = 0xffffff,
	/* The header before a received datagram. */
	IP4_SIZE = 20,
	IP6_SIZE = 40,
	UDP_SIZE = 8,
	PROTOCOL_UDP = 17,
	HOP_LIMIT = 64, /* the socket does not report the packet's own */
	DONT_FRAGMENT = 0x40,
	DATAGRAM_EXTENSION = 8,
	IMMEDIATE_EXTENSION = 4,
};

_Static_assert((int)IP6_SIZE == (int)DATAGRAM_HEADER_SIZE, "an IPv6 header has the size of a global route header");

/* ---- send ---- */

void datagram_post(struct soft_qp *qp, const struct work *work)
{
	struct requester *requester = &qp->requester;
	uint32_t slot = requester->head + requester->count++;

	if (slot >= requester->capacity)
		slot -= requester->capacity;
	requester->ring[slot] = (struct request){
		.memory = work->region->memory + work->offset,
		.length = work->length,
		.tag = work->tag,
		.immediate = work->immediate,
		.kind = WORK_SEND,
		.unsignalled = work->unsignalled,
		.has_immediate = work->has_immediate,
	};
}

static void datagram_send(struct soft_qp *qp, const struct request *request)
{
	struct packet packet = {
		.opcode = request->has_immediate ? OPCODE_DATAGRAM_IMMEDIATE : OPCODE_DATAGRAM,
		.solicited = true,
		.pkey = PACKET_PKEY,
		.pad = packet_pad(request->length),
		.destination = MULTICAST_QPN,
		.psn = qp->requester.next_psn,
		.datagram = { .key = qp->qkey, .source = soft_qp_qpn(qp) },
		.immediate = request->immediate,
		.payload = request->memory,
		.length = request->length,
	};

	qp->requester.next_psn = psn_add(qp->requester.next_psn, 1);
	if (!qp->drop_sends)
		soft_transmit(qp->transport, &qp->path, &packet);
}

/* Before datagrams for which the socket had no buffer space are sent again. */
#define SEND_RETRY_INTERVAL CLOCK_NS_PER_MS

/* After soft_flush(), the kernel has accepted all datagrams but the last unsent.count. */
static void complete_datagrams(void *context)
{
	struct soft_qp *qp = context;
	struct requester *requester = &qp->requester;
	struct soft_unsent unsent;

	soft_callback_begin(qp->transport);
	soft_flush(qp->transport);
	unsent = qp->unsent;
	qp->unsent.count = 0;
	for (; qp->sent_datagrams > unsent.count; qp->sent_datagrams--) {
		const struct request *request = &requester->ring[requester->head];
		struct completion completion = { .kind = WORK_SEND, .tag = request->tag };

		if (++requester->head == requester->capacity)
			requester->head = 0;
		requester->count--;
		if (!request->unsignalled)
			soft_complete(qp->endpoint, &completion, 0);
	}
	qp->sent_datagrams = 0;
	if (!unsent.count)
		datagram_transmit(qp);
	else if (unsent.error)
		qp_fail_work(qp, WORK_SEND, requester->ring[requester->head].tag, COMPLETION_OTHER,
			     (unsigned)unsent.error);
	else
		loop_timer_start(qp->transport->base.loop, &qp->timer, SEND_RETRY_INTERVAL, complete_datagrams, qp);
	soft_callback_end(qp->transport);
}

void datagram_transmit(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	size_t share;

	/* Receives may be posted before the path is known. */
	if (!requester->count)
		return;
	share = soft_socket_window(qp->path.socket, requester->ring[requester->head].length);
	while (qp->sent_datagrams < requester->count && qp->sent_datagrams < share)
		datagram_send(qp, &requester->ring[(requester->head + qp->sent_datagrams++) % requester->capacity]);
	if (qp->sent_datagrams)
		loop_timer_start(qp->transport->base.loop, &qp->timer, 0, complete_datagrams, qp);
}

/* ---- receive ---- */

static uint16_t ip4_checksum(const uint8_t header[IP4_SIZE])
{
	uint32_t sum = 0;

	for (size_t index = 0; index < IP4_SIZE; index += 2)
		sum += (uint32_t)header[index] << 8 | header[index + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void put16(uint8_t bytes[2], size_t value)
{
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
}

/* The socket reports no IP header, only addresses and length. An IPv4 header is the last 20 of the 40 bytes. */
static void write_grh(uint8_t header[DATAGRAM_HEADER_SIZE], const struct address *from, const struct address *to,
		      const struct packet *packet)
{
	bool immediate = opcode_form(packet->opcode) & FORM_IMMEDIATE;
	size_t length = UDP_SIZE + PACKET_BASE_SIZE + DATAGRAM_EXTENSION +
			(immediate ? (size_t)IMMEDIATE_EXTENSION : 0) + packet->length + packet_pad(packet->length) +
			PACKET_ICRC_SIZE;
	uint8_t *ip4 = header + DATAGRAM_HEADER_SIZE - IP4_SIZE;

	memset(header, 0, DATAGRAM_HEADER_SIZE);
	if (from->family == ADDRESS_IP6) {
		header[0] = 0x60;
		put16(header + 4, length);
		header[6] = PROTOCOL_UDP;
		header[7] = HOP_LIMIT;
		memcpy(header + 8, from->bytes, 16);
		memcpy(header + 24, to->bytes, 16);
		return;
	}
	ip4[0] = 0x45;
	put16(ip4 + 2, IP4_SIZE + length);
	ip4[6] = DONT_FRAGMENT;
	ip4[8] = HOP_LIMIT;
	ip4[9] = PROTOCOL_UDP;
	memcpy(ip4 + 12, from->bytes, 4);
	memcpy(ip4 + 16, to->bytes, 4);
	put16(ip4 + 10, ip4_checksum(ip4));
}

void datagram_receive(struct soft_qp *qp, const struct address *from, const struct address *to,
		      const struct packet *packet)
{
	struct responder *responder = &qp->responder;
	const struct receive *receive = &responder->ring[responder->head];
	struct completion completion = {
		.kind = WORK_RECEIVE,
		.length = (uint32_t)packet->length,
		.has_immediate = opcode_form(packet->opcode) & FORM_IMMEDIATE,
		.immediate = packet->immediate,
		.source_qpn = packet->datagram.source,
	};

	if (packet->datagram.key != qp->qkey || !responder->count ||
	    packet->length + DATAGRAM_HEADER_SIZE > receive->length)
		return;
	write_grh(receive->memory, from, to, packet);
	if (packet->length)
		memcpy(receive->memory + DATAGRAM_HEADER_SIZE, packet->payload, packet->length);
	completion.tag = receive->tag;
	if (++responder->head == responder->capacity)
		responder->head = 0;
	responder->count--;
	soft_complete(qp->endpoint, &completion, 0);
}
