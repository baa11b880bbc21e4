/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams to and from multicast groups. Nothing is acknowledged: a send completes when the kernel has accepted it,
 * and a datagram without a posted receive is dropped.
 */
#include "transport/soft/qp/qp_internal.h"

#include <string.h>

#include "core/clock.h"
#include "transport/soft/base/queue.h"
#include "transport/soft/wire/bytes.h"

enum {
	/* The header before a received datagram. */
	IP4_SIZE = 20,
	IP6_SIZE = 40,
	UDP_SIZE = 8,
	PROTOCOL_UDP = 17,
	DATAGRAM_EXTENSION = 8,
	IMMEDIATE_EXTENSION = 4,
};

_Static_assert((int)IP6_SIZE == (int)DATAGRAM_HEADER_SIZE, "an IPv6 header has the size of a global route header");

/* ---- send ---- */

static void datagram_send(struct soft_qp *qp, const struct request *request)
{
	struct packet packet = {
		.opcode = request->has_immediate ? OPCODE_DATAGRAM_IMMEDIATE : OPCODE_DATAGRAM,
		.solicited = true,
		.pkey = PACKET_PKEY,
		.destination = GROUP_QPN,
		.psn = qp->requester.next_psn,
		.datagram = { .key = qp->qkey, .source = qp->by_qpn.key },
		.immediate = request->immediate,
		.payload = request->memory,
		.length = request->length,
	};

	qp->requester.next_psn = psn_add(qp->requester.next_psn, 1);
	if (!qp->drop_sends)
		soft_transmit(qp->transport, &qp->endpoint->path, &packet);
}

/* Before datagrams for which the socket had no buffer space are sent again. */
#define SEND_RETRY_INTERVAL CLOCK_NS_PER_MS

/* After soft_flush(), the kernel has accepted all datagrams but the last unsent.count. */
static void complete_datagrams(void *context)
{
	struct soft_qp *qp = context;
	struct soft_unsent unsent;

	soft_callback_begin(qp->transport);
	soft_flush(qp->transport);
	unsent = qp->unsent;
	qp->unsent.count = 0;
	qp->awaits_buffer = false;
	for (; qp->sent_datagrams > unsent.count; qp->sent_datagrams--)
		requester_complete_oldest(qp);
	qp->sent_datagrams = 0;
	if (!unsent.count)
		datagram_transmit(qp);
	else if (unsent.error)
		qp_fail_work(qp, WORK_SEND, qp_request_at(&qp->requester, 0)->tag, COMPLETION_OTHER, unsent.error);
	else {
		qp->awaits_buffer = true;
		loop_timer_start(qp->transport->base.loop, &qp->timer, SEND_RETRY_INTERVAL, complete_datagrams, qp);
	}
	soft_callback_end(qp->transport);
}

void datagram_transmit(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	size_t share;

	/* Receives may be posted before the path is known. */
	if (!requester->ring.count || qp->awaits_buffer)
		return;
	share = soft_socket_window(qp->endpoint->path.socket, qp_request_at(requester, 0)->length);
	while (qp->sent_datagrams < requester->ring.count && qp->sent_datagrams < share)
		datagram_send(qp, qp_request_at(requester, qp->sent_datagrams++));
	if (qp->sent_datagrams)
		loop_timer_start(qp->transport->base.loop, &qp->timer, 0, complete_datagrams, qp);
}

/* ---- receive ---- */

/*
 * The socket reports no IP header, only addresses and length: the other fields are 0. An IPv4 header is the last 20 of
 * the 40 bytes.
 */
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
		bytes_write(header + 4, 2, length);
		header[6] = PROTOCOL_UDP;
		memcpy(header + 8, from->bytes, 16);
		memcpy(header + 24, to->bytes, 16);
		return;
	}
	ip4[0] = 0x45;
	bytes_write(ip4 + 2, 2, IP4_SIZE + length);
	ip4[9] = PROTOCOL_UDP;
	memcpy(ip4 + 12, from->bytes, 4);
	memcpy(ip4 + 16, to->bytes, 4);
}

void datagram_receive(struct soft_qp *qp, const struct address *from, const struct address *to,
		      const struct packet *packet)
{
	struct responder *responder = &qp->responder;
	const struct receive *receive = qp_oldest_receive(responder);

	if (packet->datagram.key != qp->qkey || !responder->ring.count ||
	    packet->length + DATAGRAM_HEADER_SIZE > receive->length)
		return;
	write_grh(receive->memory, from, to, packet);
	if (packet->length)
		memcpy(receive->memory + DATAGRAM_HEADER_SIZE, packet->payload, packet->length);
	responder_complete_receive(qp, packet, (uint32_t)packet->length);
}
