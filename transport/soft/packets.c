/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets in and out, in batches: one system call takes or sends many.
 *
 * Out: soft_transmit() writes headers and ICRC, points at the payload, and soft_flush() hands all of it over. Packets
 * of one size to one peer in a row share a message (UDP_SEGMENT), which the kernel cuts up as late as it can. It counts
 * the IPv4 identification of the pieces up from 0, and the ICRC of each covers its own.
 *
 * In: a packet whose ICRC is wrong is dropped before anything else is looked at.
 */
#include "transport/soft/packets.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "transport/soft/delivery.h"
#include "transport/soft/mad.h"
#include "transport/soft/queue.h"
#include "transport/soft/socket.h"

enum {
	RECEIVE_BATCH = 32,
	RECEIVE_ROUNDS = 8,   /* batches in one turn of the loop: a flood must not starve the timers */
	RECEIVE_SIZE = 4352,  /* the longest packet: 4,096 bytes of payload and all headers */
	SEND_BATCH = 64,      /* packets queued */
	SEGMENTS_MOST = 64,   /* of one message: UDP_MAX_SEGMENTS of Linux */
	MESSAGE_MOST = 65000, /* bytes of one message, below what an IP packet holds */
	TRAILER_MOST = 3 + 4, /* pad and ICRC */
	PEERS = 256	      /* remembered, by a hash of the address: a power of two */
};

/* What is the same for all packets to and from a peer. */
struct peer {
	const struct soft_socket *socket; /* NULL: free */
	struct address address;
	struct icrc_flow out;
	struct icrc_flow in;
	uint16_t in_port; /* the flow in is for packets from this port of the peer's */
	bool in_known;
	struct icrc_judge judge;
	struct sockaddr_storage to;
	socklen_t to_length;
};

struct outgoing {
	uint8_t header[PACKET_HEADER_MOST];
	uint8_t trailer[TRAILER_MOST];
};

struct message {
	struct sockaddr_storage to;
	uint8_t control[CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(int))];
	size_t first_element;
	size_t elements;
	size_t segment; /* bytes of each packet but perhaps the last */
	size_t bytes;
	uint16_t packets;
	uint8_t type_of_service;
	socklen_t to_length;
	bool closed; /* its last packet was shorter than the others */
};

struct soft_wire {
	struct peer peers[PEERS];
	/* out */
	struct soft_socket *socket; /* of the packets queued */
	struct outgoing outgoing[SEND_BATCH];
	struct iovec elements[3 * SEND_BATCH];
	struct message messages[SEND_BATCH];
	struct mmsghdr headers[SEND_BATCH];
	size_t packets, element_count, message_count;
	bool no_segmentation; /* the kernel or the device refused it */
	/* in */
	uint8_t buffers[RECEIVE_BATCH][RECEIVE_SIZE];
	struct iovec in_elements[RECEIVE_BATCH];
	struct sockaddr_storage in_from[RECEIVE_BATCH];
	struct mmsghdr in_headers[RECEIVE_BATCH];
	int64_t now; /* of the batch at hand */
};

struct soft_wire *soft_wire_open(void)
{
	return calloc(1, sizeof(struct soft_wire));
}

void soft_wire_close(struct soft_wire *wire)
{
	free(wire);
}

/* ---- peers ---- */

/* The entry of a peer, made anew if another one was there: an eviction costs a few hundred bytes of copying. */
static struct peer *peer_of(struct soft_wire *wire, const struct soft_socket *socket, const struct address *address)
{
	uint32_t hash = (uint32_t)((uintptr_t)socket >> 4);
	struct peer *peer;
	struct address to = *address;

	for (size_t index = 0; index < sizeof(address->bytes); index++)
		hash = hash * 31 + address->bytes[index];
	peer = &wire->peers[(hash ^ hash >> 16) & (PEERS - 1)];
	if (peer->socket == socket && address_same_host(&peer->address, address))
		return peer;
	memset(peer, 0, sizeof(*peer));
	peer->socket = socket;
	peer->address = *address;
	icrc_flow_prepare(&peer->out, address->family == ADDRESS_IP4 ? ICRC_IP4 : ICRC_IP6, socket->address.bytes,
			  address->bytes, PACKET_PORT, PACKET_PORT);
	to.port = PACKET_PORT;
	peer->to_length = (socklen_t)address_to_socket(&to, &peer->to);
	return peer;
}

/* ---- out ---- */

void soft_flush(struct soft_transport *transport)
{
	struct soft_wire *wire = transport->wire;
	size_t sent = 0;

	while (sent < wire->message_count) {
		int count = sendmmsg(wire->socket->fd, wire->headers + sent, (unsigned)(wire->message_count - sent),
				     MSG_DONTWAIT);

		if (count > 0) {
			sent += (size_t)count;
			continue;
		}
		wire->socket->failed |= errno != EINTR && errno != EAGAIN;
		/* What the path reported of earlier packets comes back here first; this one has not been tried. */
		if (errno == ECONNREFUSED || errno == EINTR)
			continue;
		if ((errno == EINVAL || errno == EIO) && wire->messages[sent].packets > 1)
			wire->no_segmentation = true;
		/* The packet is lost, as any may be: the sender's queue repeats it. */
		sent++;
	}
	wire->packets = wire->element_count = wire->message_count = 0;
}

/* Appends the packet to the last message if that is to the same peer and of the same size, else begins a new one. */
static struct message *message_for(struct soft_wire *wire, const struct soft_path *path, const struct peer *peer,
				   size_t size)
{
	struct message *message = wire->message_count ? &wire->messages[wire->message_count - 1] : NULL;

	if (message && !memcmp(&message->to, &peer->to, peer->to_length) && !message->closed &&
	    !wire->no_segmentation && message->type_of_service == path->type_of_service && size <= message->segment &&
	    message->packets < SEGMENTS_MOST && message->bytes + size <= MESSAGE_MOST)
		return message;
	message = &wire->messages[wire->message_count++];
	*message = (struct message){
		.to = peer->to, /* not the entry, in which another peer may be by the time of the next packet */
		.to_length = peer->to_length,
		.first_element = wire->element_count,
		.segment = size,
		.type_of_service = path->type_of_service,
	};
	return message;
}

static void add_control(struct msghdr *header, struct message *message, int level, int type, const void *value,
			size_t size)
{
	struct cmsghdr *control;
	size_t used = header->msg_controllen;

	header->msg_control = message->control;
	header->msg_controllen = sizeof(message->control);
	control = (struct cmsghdr *)(void *)(message->control + used);
	control->cmsg_level = level;
	control->cmsg_type = type;
	control->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(control), value, size);
	header->msg_controllen = used + CMSG_SPACE(size);
}

/* The header of a message as it stands; written again with every packet that joins it. */
static void describe(struct soft_wire *wire, struct message *message)
{
	struct msghdr *header = &wire->headers[wire->message_count - 1].msg_hdr;
	uint16_t segment = (uint16_t)message->segment;
	int type_of_service = message->type_of_service;
	bool four = message->to.ss_family == AF_INET;

	*header = (struct msghdr){
		.msg_name = &message->to,
		.msg_namelen = message->to_length,
		.msg_iov = wire->elements + message->first_element,
		.msg_iovlen = message->elements,
	};
	if (message->packets > 1)
		add_control(header, message, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	if (type_of_service)
		add_control(header, message, four ? IPPROTO_IP : IPPROTO_IPV6, four ? IP_TOS : IPV6_TCLASS,
			    &type_of_service, sizeof(type_of_service));
}

static void add_element(struct soft_wire *wire, struct message *message, const void *bytes, size_t length)
{
	if (!length)
		return;
	wire->elements[wire->element_count++] =
		(struct iovec){ .iov_base = (void *)(uintptr_t)bytes, .iov_len = length };
	message->elements++;
	message->bytes += length;
}

void soft_transmit(struct soft_transport *transport, const struct soft_path *path, const struct packet *packet)
{
	struct soft_wire *wire = transport->wire;
	size_t pad = packet_pad(packet->length);
	struct outgoing *outgoing;
	struct message *message;
	struct peer *peer;
	struct icrc_mark mark = { 0 };
	size_t header_length, size;
	uint32_t icrc;

	if (wire->packets == SEND_BATCH || (wire->packets && wire->socket != path->socket))
		soft_flush(transport);
	peer = peer_of(wire, path->socket, &path->peer);
	wire->socket = path->socket;
	outgoing = &wire->outgoing[wire->packets];
	header_length = packet_write(packet, outgoing->header);
	if (!header_length)
		return;
	wire->packets++;
	size = header_length + packet->length + pad + ICRC_SIZE;
	message = message_for(wire, path, peer, size);
	mark.identification = message->packets;
	icrc = icrc_of(&transport->icrc, &peer->out, mark, outgoing->header, header_length, packet->payload,
		       packet->length, pad);
	memset(outgoing->trailer, 0, pad);
	icrc_store(outgoing->trailer + pad, icrc);
	message->packets++;
	message->closed = size < message->segment;
	add_element(wire, message, outgoing->header, header_length);
	add_element(wire, message, packet->payload, packet->length);
	add_element(wire, message, outgoing->trailer, pad + ICRC_SIZE);
	describe(wire, message);
	soft_stir(transport);
}

/* ---- in ---- */

static void take_packet(struct soft_socket *socket, const struct sockaddr_storage *source, const uint8_t *bytes,
			size_t length)
{
	struct soft_transport *transport = socket->transport;
	struct soft_wire *wire = transport->wire;
	struct icrc_mark mark;
	struct address from;
	struct packet packet;
	struct peer *peer;
	enum icrc_verdict verdict;
	uint16_t port;

	if (!address_from_socket(source, &from))
		return;
	port = from.port;
	from.port = 0;
	peer = peer_of(wire, socket, &from);
	if (!peer->in_known) {
		icrc_flow_prepare(&peer->in, from.family == ADDRESS_IP4 ? ICRC_IP4 : ICRC_IP6, from.bytes,
				  socket->address.bytes, port, PACKET_PORT);
		peer->in_known = true;
	} else if (peer->in_port != port) {
		icrc_flow_set_source_port(&peer->in, port);
	}
	peer->in_port = port;
	verdict = icrc_check(&transport->icrc, &peer->in, bytes, length, &mark);
	if (!icrc_judge_accepts(&peer->judge, verdict, mark, wire->now) || !packet_parse(bytes, length, &packet))
		return;
	if (socket->group)
		soft_queue_receive_group(transport, &from, &socket->address, &packet);
	else if (packet.destination == MAD_QUEUE_NUMBER && packet.opcode == OPCODE_DATAGRAM &&
		 packet.datagram.key == MAD_QUEUE_KEY)
		soft_manager_receive(transport, socket, &from, packet.payload, packet.length);
	else if (packet.destination != MAD_QUEUE_NUMBER)
		soft_queue_receive(transport, socket, &from, &packet);
}

/* An ICMP error that came back for something we sent, and quotes some of it. */
static bool take_error(struct soft_socket *socket)
{
	union {
		struct cmsghdr header;
		uint8_t bytes[256];
	} control;
	struct sockaddr_storage to;
	uint8_t quoted[64]; /* headers */
	struct iovec element = { .iov_base = quoted, .iov_len = sizeof(quoted) };
	struct msghdr header = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = &element,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct address peer;
	ssize_t length = recvmsg(socket->fd, &header, MSG_ERRQUEUE | MSG_DONTWAIT);

	if (length < 0)
		return false;
	for (struct cmsghdr *row = CMSG_FIRSTHDR(&header); row; row = CMSG_NXTHDR(&header, row)) {
		struct sock_extended_err error;

		if (!(row->cmsg_level == IPPROTO_IP && row->cmsg_type == IP_RECVERR) &&
		    !(row->cmsg_level == IPPROTO_IPV6 && row->cmsg_type == IPV6_RECVERR))
			continue;
		memcpy(&error, CMSG_DATA(row), sizeof(error));
		if (error.ee_errno == ECONNREFUSED && address_from_socket(&to, &peer))
			soft_manager_unreachable(socket->transport, socket, &peer, quoted, (size_t)length);
	}
	return true;
}

static int take_batch(struct soft_socket *socket, struct soft_wire *wire)
{
	int count;

	for (size_t index = 0; index < RECEIVE_BATCH; index++) {
		wire->in_elements[index] = (struct iovec){ wire->buffers[index], RECEIVE_SIZE };
		wire->in_headers[index].msg_hdr = (struct msghdr){
			.msg_name = &wire->in_from[index],
			.msg_namelen = sizeof(wire->in_from[index]),
			.msg_iov = &wire->in_elements[index],
			.msg_iovlen = 1,
		};
	}
	count = recvmmsg(socket->fd, wire->in_headers, RECEIVE_BATCH, MSG_DONTWAIT, NULL);
	if (count <= 0)
		return count;
	wire->now = clock_now();
	for (int index = 0; index < count; index++)
		if (!(wire->in_headers[index].msg_hdr.msg_flags & MSG_TRUNC))
			take_packet(socket, &wire->in_from[index], wire->buffers[index],
				    wire->in_headers[index].msg_len);
	return count;
}

/* No handler of a command runs before soft_leave(), so that the socket outlives the rounds. */
void soft_packets_readable(void *owner)
{
	struct soft_socket *socket = owner;
	struct soft_transport *transport = socket->transport;

	soft_enter(transport);
	for (int round = 0; round < RECEIVE_ROUNDS; round++) {
		int count = take_batch(socket, transport->wire);

		/* The one that tells of an error clears it, so that sending may have told; the queue of errors stays.
		 */
		if (socket->failed || (count < 0 && errno != EAGAIN && errno != EINTR))
			while (take_error(socket))
				;
		socket->failed = false;
		if (count < RECEIVE_BATCH)
			break;
	}
	soft_leave(transport);
}
