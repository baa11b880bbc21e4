/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One system call sends or receives a batch of packets.
 *
 * Sending: soft_transmit() writes headers and ICRC and refers to the payload; soft_flush() sends. Consecutive packets
 * of one size to one peer share a message (UDP_SEGMENT). The kernel numbers their IPv4 identifications from 0, which
 * the ICRCs cover.
 *
 * Receiving: a packet whose ICRC is wrong with every IPv4 identification is damaged.
 */
#include "transport/soft/net/socket.h"

#include <time.h> /* linux/errqueue.h needs struct timespec */

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#include "transport/soft/base/queue.h"

enum {
	RECEIVE_BATCH = 8,
	RECEIVE_ROUNDS = 16,  /* batches per loop iteration: a flood must not delay the timers */
	RECEIVE_SIZE = 65536, /* bytes of the longest UDP_GRO message */
	SEND_BATCH = 64,      /* packets queued */
	SEGMENTS_MAX = 64,    /* per message: Linux's UDP_MAX_SEGMENTS */
	MESSAGE_MAX = 65000,  /* bytes of a message, less than the longest IP packet */
	TRAILER_MAX = 3 + 4,  /* pad and ICRC */
	SEND_TRIES = 8,	      /* for a message that this host seems to refuse */
	COPIED_MAX = 128,     /* payload bytes: copying is faster than another iovec */
};

struct message {
	struct address peer;
	struct icrc_flow flow;
	struct sockaddr_storage to;
	uint8_t control[CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(int))];
	size_t first_element;
	uint16_t elements;
	size_t segment; /* bytes of each packet; the last may be shorter */
	size_t bytes;
	uint16_t packets;
	uint8_t type_of_service;
	struct soft_unsent *unsent;
	socklen_t to_length;
	bool closed; /* the last packet is shorter than a segment */
};

struct soft_packet_io {
	/* out */
	struct soft_socket *socket; /* of the queued packets */
	/* Headers, copied payloads and trailers of the queued packets. */
	uint8_t bytes[SEND_BATCH * (PACKET_HEADER_MAX + COPIED_MAX + TRAILER_MAX)];
	size_t bytes_used;
	struct iovec elements[3 * SEND_BATCH];
	struct message messages[SEND_BATCH];
	struct mmsghdr headers[SEND_BATCH];
	size_t packets, element_count, message_count;
	/* in */
	uint8_t buffers[RECEIVE_BATCH][RECEIVE_SIZE];
	struct iovec in_elements[RECEIVE_BATCH];
	struct sockaddr_storage in_from[RECEIVE_BATCH];
	uint8_t in_control[RECEIVE_BATCH][CMSG_SPACE(sizeof(int))];
	struct mmsghdr in_headers[RECEIVE_BATCH];
};

/* recvmmsg() overwrites these with the lengths used. */
static void reset_lengths(struct msghdr *header)
{
	header->msg_namelen = sizeof(struct sockaddr_storage);
	header->msg_controllen = CMSG_SPACE(sizeof(int));
}

struct soft_packet_io *soft_packet_io_open(void)
{
	struct soft_packet_io *packet_io = calloc(1, sizeof(*packet_io));

	for (size_t index = 0; packet_io && index < RECEIVE_BATCH; index++) {
		packet_io->in_elements[index] = (struct iovec){ packet_io->buffers[index], RECEIVE_SIZE };
		packet_io->in_headers[index].msg_hdr = (struct msghdr){
			.msg_name = &packet_io->in_from[index],
			.msg_iov = &packet_io->in_elements[index],
			.msg_iovlen = 1,
			.msg_control = packet_io->in_control[index],
		};
		reset_lengths(&packet_io->in_headers[index].msg_hdr);
	}
	return packet_io;
}

void soft_packet_io_close(struct soft_packet_io *packet_io)
{
	free(packet_io);
}

/* ---- out ---- */

static void prepare_flow(struct icrc_flow *flow, const struct address *from, const struct address *to, uint16_t port)
{
	icrc_flow_prepare(flow, from->family == ADDRESS_IP4 ? ICRC_IP4 : ICRC_IP6, from->bytes, to->bytes, port,
			  UDP_PORT_ROCE);
}

/* Returns the message that a packet of that size joins: the last one if it fits, else a new one. */
static struct message *get_message(struct soft_packet_io *packet_io, const struct soft_path *path, size_t size)
{
	struct message *message = packet_io->message_count ? &packet_io->messages[packet_io->message_count - 1] : NULL;

	if (message && address_same_host(&message->peer, &path->peer) && !message->closed &&
	    !packet_io->socket->no_segmentation && message->type_of_service == path->type_of_service &&
	    message->unsent == path->unsent && size <= message->segment && message->packets < SEGMENTS_MAX &&
	    message->bytes + size <= MESSAGE_MAX)
		return message;
	message = &packet_io->messages[packet_io->message_count++];
	*message = (struct message){
		.peer = path->peer,
		.first_element = packet_io->element_count,
		.segment = size,
		.type_of_service = path->type_of_service,
		.unsent = path->unsent,
	};
	message->peer.port = UDP_PORT_ROCE;
	message->to_length = (socklen_t)address_to_socket(&message->peer, &message->to);
	prepare_flow(&message->flow, &path->socket->address, &path->peer, packet_io->socket->port);
	return message;
}

/* C libraries differ in the types of msg_controllen and cmsg_len; both take a socklen_t without a warning. */
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
	control->cmsg_len = (socklen_t)CMSG_LEN(size);
	memcpy(CMSG_DATA(control), value, size);
	header->msg_controllen = (socklen_t)(used + CMSG_SPACE(size));
}

static void fill_header(struct soft_packet_io *packet_io, struct message *message, struct msghdr *header)
{
	uint16_t segment = (uint16_t)message->segment;
	int type_of_service = message->type_of_service;
	bool four = message->to.ss_family == AF_INET;

	*header = (struct msghdr){
		.msg_name = &message->to,
		.msg_namelen = message->to_length,
		.msg_iov = packet_io->elements + message->first_element,
		.msg_iovlen = message->elements,
	};
	if (message->packets > 1)
		add_control(header, message, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	if (type_of_service)
		add_control(header, message, four ? IPPROTO_IP : IPPROTO_IPV6, four ? IP_TOS : IPV6_TCLASS,
			    &type_of_service, sizeof(type_of_service));
}

/* Copies size bytes from the elements and advances *element and *offset. */
static void copy_segment(const struct iovec **element, size_t *offset, uint8_t *packet, size_t size)
{
	while (size) {
		size_t rest = (*element)->iov_len - *offset;
		size_t length = size < rest ? size : rest;

		memcpy(packet, (const uint8_t *)(*element)->iov_base + *offset, length);
		packet += length;
		size -= length;
		*offset += length;
		if (*offset == (*element)->iov_len) {
			(*element)++;
			*offset = 0;
		}
	}
}

/* The last packets of the message were not sent. A reliable queue pair retransmits them; a datagram is counted. */
static void count_unsent(const struct message *message, size_t packets, int error)
{
	struct soft_unsent *unsent = message->unsent;

	if (!unsent)
		return;
	if (!unsent->count)
		unsent->error = error == EAGAIN || error == ENOBUFS ? 0 : error;
	unsent->count += (uint32_t)packets;
}

/* Returns how many messages from first on may be sent: none may overtake an unsent datagram of its queue pair. */
static unsigned count_sendable(const struct soft_packet_io *packet_io, size_t first)
{
	size_t end = first;

	while (end < packet_io->message_count &&
	       !(packet_io->messages[end].unsent && packet_io->messages[end].unsent->count))
		end++;
	return (unsigned)(end - first);
}

/*
 * Whether a failed call may merely have reported an earlier packet's ICMP error, which anybody can forge, without
 * sending. A refusal by this host itself recurs each time.
 */
static bool may_be_pending(int error, unsigned *tries)
{
	return error == ECONNREFUSED || error == EINTR ||
	       (error != EAGAIN && error != ENOBUFS && ++*tries < SEND_TRIES);
}

/* A short packet does not show which length passes: ACKs and CM messages pass. EAGAIN is not an error. */
static void record_send(struct soft_socket *socket, int error, size_t size)
{
	if (error && error != EAGAIN) {
		socket->send_error = error;
		socket->refused = size;
	} else if (!error && size >= socket->refused) {
		socket->send_error = 0;
	}
}

/*
 * UDP_SEGMENT fails on an interface without checksum offload (EIO), or because the packets are too long for the path
 * (EINVAL); sent singly they then get the true error. A single packet has identification 0, so its ICRC is computed
 * again.
 */
static void send_one_by_one(struct soft_transport *transport, struct message *message)
{
	struct soft_packet_io *packet_io = transport->packet_io;
	const struct iovec *element = &packet_io->elements[message->first_element];
	uint8_t packet[PACKET_HEADER_MAX + PACKET_PAYLOAD_MAX + TRAILER_MAX];
	struct iovec whole = { .iov_base = packet };
	size_t offset = 0, size;
	struct msghdr header;

	message->packets = 1;
	fill_header(packet_io, message, &header);
	header.msg_iov = &whole;
	header.msg_iovlen = 1;
	for (size_t left = message->bytes; left; left -= size) {
		unsigned tries = 0;
		ssize_t sent;

		size = left < message->segment ? left : message->segment;
		copy_segment(&element, &offset, packet, size);
		icrc_store(packet + size - ICRC_SIZE,
			   icrc_compute(&transport->icrc, &message->flow, 0, packet, size - ICRC_SIZE, NULL, 0, 0));
		whole.iov_len = size;
		do
			sent = sendmsg(packet_io->socket->fd, &header, MSG_DONTWAIT);
		while (sent < 0 && may_be_pending(errno, &tries));
		record_send(packet_io->socket, sent < 0 ? errno : 0, size);
		if (sent < 0 && message->unsent) {
			count_unsent(message, (left + message->segment - 1) / message->segment, errno);
			return;
		}
	}
}

void soft_flush(struct soft_transport *transport)
{
	struct soft_packet_io *packet_io = transport->packet_io;
	unsigned tries = 0;
	size_t sent = 0;

	for (size_t index = 0; index < packet_io->message_count; index++)
		fill_header(packet_io, &packet_io->messages[index], &packet_io->headers[index].msg_hdr);
	while (sent < packet_io->message_count) {
		struct message *message = &packet_io->messages[sent];
		unsigned ready = count_sendable(packet_io, sent);
		int count = ready ? sendmmsg(packet_io->socket->fd, packet_io->headers + sent, ready, MSG_DONTWAIT) : 0;

		if (!ready) {
			count_unsent(message, message->packets, 0);
			sent++;
			continue;
		}
		if (count > 0) {
			/* A pending ICMP error may have ended the batch; the kernel reports it only once. */
			packet_io->socket->errors_queued |= (unsigned)count < ready;
			for (; count; count--)
				record_send(packet_io->socket, 0, packet_io->messages[sent++].segment);
			tries = 0;
			continue;
		}
		packet_io->socket->errors_queued |= errno != EINTR && errno != EAGAIN;
		if (may_be_pending(errno, &tries))
			continue;
		tries = 0;
		record_send(packet_io->socket, errno, message->segment);
		/* What waits for buffer space, as datagrams do, is sent later. */
		if (WITH_REPORT && errno == ENOBUFS && !message->unsent)
			transport->counts[SOFT_SEND_DROPS].increase += message->packets;
		if ((errno == EINVAL || errno == EIO) && message->packets > 1) {
			packet_io->socket->no_segmentation |= errno == EIO;
			send_one_by_one(transport, message);
		} else {
			count_unsent(message, message->packets, errno);
		}
		sent++;
	}
	if (WITH_REPORT)
		transport->counts[SOFT_SENT].increase += packet_io->packets;
	packet_io->packets = packet_io->element_count = packet_io->message_count = packet_io->bytes_used = 0;
}

/* Extends the last element if the bytes follow it in memory: each element costs the kernel time. */
static void add_element(struct soft_packet_io *packet_io, struct message *message, const void *bytes, size_t length)
{
	struct iovec *last = message->elements ? &packet_io->elements[packet_io->element_count - 1] : NULL;

	message->bytes += length;
	if (last && (uint8_t *)last->iov_base + last->iov_len == bytes) {
		last->iov_len += length;
		return;
	}
	packet_io->elements[packet_io->element_count++] =
		(struct iovec){ .iov_base = (void *)(uintptr_t)bytes, .iov_len = length };
	message->elements++;
}

void soft_transmit(struct soft_transport *transport, const struct soft_path *path, const struct packet *packet)
{
	struct soft_packet_io *packet_io = transport->packet_io;
	struct soft_socket *sender = soft_path_sender(path);
	size_t pad = packet_pad(packet->length);
	size_t copied = packet->length <= COPIED_MAX ? packet->length : 0;
	uint8_t *header, *trailer;
	struct message *message;
	size_t header_length, size;
	uint32_t icrc;

	if (packet_io->packets == SEND_BATCH || (packet_io->packets && packet_io->socket != sender))
		soft_flush(transport);
	packet_io->socket = sender;
	header = packet_io->bytes + packet_io->bytes_used;
	header_length = packet_write(packet, header);
	if (!header_length)
		return;
	packet_io->packets++;
	size = header_length + packet->length + pad + ICRC_SIZE;
	message = get_message(packet_io, path, size);
	icrc = icrc_compute(&transport->icrc, &message->flow, message->packets, header, header_length, packet->payload,
			    packet->length, pad);
	if (copied)
		memcpy(header + header_length, packet->payload, copied);
	trailer = header + header_length + copied;
	memset(trailer, 0, pad);
	icrc_store(trailer + pad, icrc);
	packet_io->bytes_used += header_length + copied + pad + ICRC_SIZE;
	message->packets++;
	message->closed = size < message->segment;
	add_element(packet_io, message, header, header_length + copied);
	if (!copied && packet->length)
		add_element(packet_io, message, packet->payload, packet->length);
	add_element(packet_io, message, trailer, pad + ICRC_SIZE);
	soft_schedule(transport);
}

/* ---- in ---- */

/* Returns the size of the packets that UDP_GRO merged into a message; 0 if it is one packet. */
static size_t gro_segment_size(struct msghdr *header)
{
	struct cmsghdr *row = CMSG_FIRSTHDR(header);
	int size = 0;

	if (row && row->cmsg_level == IPPROTO_UDP && row->cmsg_type == UDP_GRO &&
	    row->cmsg_len == CMSG_LEN(sizeof(size)))
		memcpy(&size, CMSG_DATA(row), sizeof(size));
	return size > 0 ? (size_t)size : 0;
}

/* The message is one packet, or several of one size of which the last may be shorter. */
static void receive_message(struct soft_socket *socket, struct mmsghdr *message)
{
	struct soft_transport *transport = socket->transport;
	const uint8_t *bytes = message->msg_hdr.msg_iov->iov_base;
	size_t segment = gro_segment_size(&message->msg_hdr), left = message->msg_len;
	uint16_t identification = 0;
	struct icrc_flow flow;
	struct address from;
	struct packet packet;

	if ((message->msg_hdr.msg_flags & MSG_TRUNC) || !address_from_socket(message->msg_hdr.msg_name, &from))
		return;
	prepare_flow(&flow, &from, &socket->address, from.port);
	if (!segment)
		segment = left;
	while (left) {
		size_t length = left < segment ? left : segment;

		bool damaged = !icrc_check(&transport->icrc, &flow, bytes, length, &identification);

		if (packet_parse(bytes, length, &packet))
			soft_handlers.packet(socket, &from, &packet, damaged);
		identification++;
		bytes += length;
		left -= length;
	}
}

/* Reads one ICMP error, which quotes headers of the packet, from the error queue. Returns false if it is empty. */
static bool receive_error(struct soft_socket *socket)
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
	ssize_t length = recvmsg(socket->fd, &header, MSG_ERRQUEUE | MSG_DONTWAIT);
	const struct cmsghdr *row = CMSG_FIRSTHDR(&header);
	struct sock_extended_err error;
	struct soft_icmp icmp;

	if (length < 0)
		return false;
	/* There is no other control message: the socket requests none. */
	if (!row || (row->cmsg_type != IP_RECVERR && row->cmsg_type != IPV6_RECVERR))
		return true;
	memcpy(&error, CMSG_DATA(row), sizeof(error));
	icmp = (struct soft_icmp){ .error = (int)error.ee_errno, .type = error.ee_type, .code = error.ee_code };
	if (row->cmsg_len >= CMSG_LEN(sizeof(error) + sizeof(struct sockaddr_in)))
		address_from_socket(CMSG_DATA(row) + sizeof(error), &icmp.from);
	if (icmp.error == EMSGSIZE)
		socket->path_mtu = error.ee_info;
	else if (address_from_socket(&to, &icmp.peer))
		soft_handlers.icmp(socket->transport, socket, &icmp, quoted, (size_t)length);
	return true;
}

/* Returns whether some may be left. The socket stays readable until all are read. */
static bool receive_errors(struct soft_socket *socket)
{
	unsigned count = 0;

	while (count < RECEIVE_BATCH && receive_error(socket))
		count++;
	return count == RECEIVE_BATCH;
}

/* Receives up to max messages. Returns how many. */
static int receive_batch(struct soft_socket *socket, unsigned max)
{
	struct soft_packet_io *packet_io = socket->transport->packet_io;
	int count = recvmmsg(socket->fd, packet_io->in_headers, max, MSG_DONTWAIT, NULL);
	bool failed = count < 0 && errno != EAGAIN && errno != EINTR;

	/* A call that reported an ICMP error received nothing: further errors must not delay packets. */
	if (failed)
		count = recvmmsg(socket->fd, packet_io->in_headers, max, MSG_DONTWAIT, NULL);
	for (int index = 0; index < count; index++) {
		receive_message(socket, &packet_io->in_headers[index]);
		reset_lengths(&packet_io->in_headers[index].msg_hdr);
	}
	/* The first call that reports a socket error clears it, perhaps a send. The error queue remains. */
	if (failed || socket->errors_queued)
		socket->errors_queued = receive_errors(socket);
	return count > 0 ? count : 0;
}

/* Returns whether a packet was received. */
static bool receive_batches(struct soft_socket *socket)
{
	int count = RECEIVE_BATCH;
	int round = 0;

	for (; round < RECEIVE_ROUNDS && count == RECEIVE_BATCH; round++)
		count = receive_batch(socket, RECEIVE_BATCH);
	socket->unread = count == RECEIVE_BATCH;
	socket->resends = 0;
	return round > 1 || count > 0;
}

bool soft_may_resend(struct soft_socket *socket)
{
	return !socket->unread || socket->resends++ < RECEIVE_ROUNDS * RECEIVE_BATCH;
}

/* The command's handlers run in soft_callback_end(): none can close the socket during the rounds. */
void soft_packet_io_readable(void *context)
{
	struct soft_socket *socket = context;
	struct soft_transport *transport = socket->transport;

	soft_callback_begin(transport);
	receive_batches(socket);
	soft_callback_end(transport);
}

void soft_packet_io_sender_readable(void *context)
{
	struct soft_socket *socket = context;

	soft_callback_begin(socket->transport);
	/* An ICMP error fails one call. */
	for (unsigned count = 0; count < RECEIVE_BATCH; count++)
		if (recv(socket->fd, NULL, 0, MSG_DONTWAIT) < 0 && errno == EAGAIN)
			break;
	receive_errors(socket);
	soft_callback_end(socket->transport);
}

/*
 * After an idle period the first message is usually a request whose sender waits: polling for a second one would delay
 * the reply.
 */
static bool poll_socket(struct soft_socket *socket)
{
	if (socket->streaming)
		socket->streaming = receive_batches(socket);
	else
		socket->streaming = receive_batch(socket, 1) > 0;
	return socket->streaming;
}

bool soft_packet_io_poll(void *context)
{
	struct soft_transport *transport = context;
	bool busy = false;

	soft_callback_begin(transport);
	for (struct soft_socket *socket = transport->sockets; socket && socket->users; socket = socket->next)
		busy |= poll_socket(socket);
	soft_callback_end(transport);
	return busy;
}
