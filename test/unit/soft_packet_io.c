/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/unit/soft_packet_io.wrap */
/* Send and receive batches of packet_io.c with GSO and GRO, and the receive window of a socket buffer. */
#include "test/unit/unit.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "transport/soft/base/queue.h"
#include "transport/soft/cm/cm.h"
#include "transport/soft/qp/qp.h"
#include "transport/soft/soft.h"
#include "transport/soft/wire/mad.h"

enum {
	WIRE_MAX = 131072,
	PACKETS_MAX = 64,
	HEADERS = 16, /* BTH of a middle packet, and ICRC */
};

/* The bytes that one end sent, and the packets that the other end received. */
struct packet_io {
	uint8_t bytes[WIRE_MAX];
	size_t length, segment, messages;
	struct sockaddr_storage from;
	int control_type, control_size; /* control message of the receiver; type 0: none */
	int flags;
	bool received;
	unsigned flood; /* empty messages that the socket still has */
	uint32_t psn[PACKETS_MAX];
	uint8_t first[PACKETS_MAX]; /* first byte of the payload */
	size_t lengths[PACKETS_MAX], count;
	unsigned solved; /* packets with another identification than expected */
	uint32_t dropped;
	unsigned failing[16]; /* for each call, the number of messages at its end that fail; 0: none */
	size_t turn;
	int error;
	int icmp_error;	    /* in the socket error queue; 0: none */
	unsigned icmp_more; /* of them */
	bool reported;	    /* by a receive */
	int pending;	    /* the socket error: the next receive fails with it; 0: none */
	int unreachable;
	unsigned mads;
};

static struct packet_io *packet_io;

int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	unsigned failing = packet_io->turn < LENGTH(packet_io->failing) ? packet_io->failing[packet_io->turn++] : 0;

	if (failing && failing >= count) {
		errno = packet_io->error;
		return -1;
	}
	count -= failing;
	for (unsigned index = 0; index < count; index++) {
		struct msghdr *header = &messages[index].msg_hdr;
		struct cmsghdr *row = CMSG_FIRSTHDR(header);
		uint16_t segment = 0;

		if (row && row->cmsg_level == IPPROTO_UDP && row->cmsg_type == UDP_SEGMENT)
			memcpy(&segment, CMSG_DATA(row), sizeof(segment));
		packet_io->segment = segment;
		packet_io->messages++;
		for (size_t element = 0; element < header->msg_iovlen; element++) {
			assert_true(packet_io->length + header->msg_iov[element].iov_len <= WIRE_MAX);
			memcpy(packet_io->bytes + packet_io->length, header->msg_iov[element].iov_base,
			       header->msg_iov[element].iov_len);
			packet_io->length += header->msg_iov[element].iov_len;
		}
	}
	return (int)count;
}

int __wrap_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
	struct msghdr *header = &messages[0].msg_hdr;
	struct cmsghdr *row = header->msg_control;

	assert_true(count > 0 && header->msg_iov[0].iov_len >= packet_io->length);
	errno = packet_io->reported ? EAGAIN : packet_io->icmp_error;
	if (packet_io->pending) {
		errno = packet_io->pending;
		packet_io->pending = 0;
		return -1;
	}
	if (packet_io->flood) {
		count = count < packet_io->flood ? count : packet_io->flood;
		packet_io->flood -= count;
		return (int)count;
	}
	if (packet_io->received)
		return -1;
	packet_io->received = true;
	memcpy(header->msg_iov[0].iov_base, packet_io->bytes, packet_io->length);
	memcpy(header->msg_name, &packet_io->from, sizeof(packet_io->from));
	messages[0].msg_len = (unsigned)packet_io->length;
	header->msg_flags = packet_io->flags;
	assert_true(header->msg_controllen >= CMSG_SPACE(sizeof(int)));
	header->msg_controllen = packet_io->control_type ? CMSG_SPACE(sizeof(int)) : 0;
	row->cmsg_level = IPPROTO_UDP;
	row->cmsg_type = packet_io->control_type;
	row->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(row), &packet_io->control_size, sizeof(int));
	return 1;
}

bool __wrap_soft_qp_is_peer(struct soft_transport *transport, const struct soft_socket *socket,
			    const struct address *from, uint32_t qpn)
{
	return true;
}

void __wrap_soft_qp_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
			    const struct packet *packet)
{
	assert_int_equal(socket->address.bytes[3], 2);
	assert_true(packet_io->count < PACKETS_MAX);
	packet_io->psn[packet_io->count] = packet->psn;
	packet_io->first[packet_io->count] = packet->payload[0];
	packet_io->lengths[packet_io->count++] = packet->length;
}

uint32_t __real_icrc_solve(const struct icrc_table *table, uint32_t difference, size_t bytes);
uint32_t __wrap_icrc_solve(const struct icrc_table *table, uint32_t difference, size_t bytes)
{
	packet_io->solved++;
	return __real_icrc_solve(table, difference, bytes);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *header, int flags)
{
	struct sock_extended_err error = { .ee_errno = (uint32_t)packet_io->icmp_error, .ee_info = 1280 };
	struct cmsghdr *row = header->msg_control;

	assert_int_equal(flags, MSG_ERRQUEUE | MSG_DONTWAIT);
	if (!packet_io->icmp_error)
		return -1;
	if (packet_io->icmp_more)
		packet_io->icmp_more--;
	else
		packet_io->icmp_error = 0;
	memcpy(header->msg_name, &packet_io->from, sizeof(packet_io->from));
	row->cmsg_level = IPPROTO_IP;
	row->cmsg_type = IP_RECVERR;
	row->cmsg_len = CMSG_LEN(sizeof(error));
	memcpy(CMSG_DATA(row), &error, sizeof(error));
	header->msg_controllen = CMSG_SPACE(sizeof(error));
	return 0;
}

void __wrap_soft_cm_unreachable(struct soft_transport *transport, const struct soft_socket *socket,
				const struct soft_icmp *icmp, const uint8_t *quoted, size_t length)
{
	packet_io->unreachable = icmp->error;
}

void __wrap_soft_cm_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
			    const uint8_t *bytes, size_t length, bool damaged)
{
	assert_int_equal(length, MAD_SIZE);
	packet_io->mads++;
}

uint32_t __real_soft_socket_dropped(const struct soft_socket *socket);
uint32_t __wrap_soft_socket_dropped(const struct soft_socket *socket)
{
	return packet_io ? packet_io->dropped : __real_soft_socket_dropped(socket);
}

int64_t __wrap_loop_stood_still(const struct loop *loop)
{
	return 0;
}

void __wrap_loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
			     void *context)
{
}

/* Host 1 sends to host 2. */
static struct end {
	struct soft_transport transport;
	struct soft_socket socket;
} sender, receiver;

static void end_open(struct end *end, uint8_t host)
{
	static const struct log log = { .name = "test" };

	memset(end, 0, sizeof(*end));
	end->transport.base.log = &log;
	icrc_prepare(&end->transport.icrc);
	end->transport.packet_io = soft_packet_io_open();
	end->transport.queue = soft_queue_open(&end->transport);
	end->transport.qps = soft_qp_table_open(&end->transport);
	assert_true(end->transport.packet_io && end->transport.queue && end->transport.qps);
	end->socket.transport = &end->transport;
	end->socket.fd = -1;
	end->socket.port = UDP_PORT_ROCE;
	end->socket.address = (struct address){ .family = ADDRESS_IP4, .bytes = { 127, 0, 0, host } };
}

static void end_close(struct end *end)
{
	soft_qp_table_close(end->transport.qps);
	soft_queue_close(end->transport.queue);
	soft_packet_io_close(end->transport.packet_io);
}

/* Clears the sent packets. */
static struct soft_path path_to(uint8_t first, uint8_t last)
{
	packet_io->messages = packet_io->length = packet_io->turn = 0;
	return (struct soft_path){
		.socket = &sender.socket,
		.local = sender.socket.address,
		.peer = { .family = ADDRESS_IP4, .bytes = { first, 0, 0, last } },
		.mtu = PACKET_PAYLOAD_MAX,
	};
}

/* The payload's first byte is the PSN's. */
static void transmit(const struct soft_path *path, uint8_t opcode, uint32_t psn, size_t length)
{
	static uint8_t payloads[256][PACKET_PAYLOAD_MAX];
	struct packet packet = {
		.opcode = opcode,
		.pkey = PACKET_PKEY,
		.destination = 77,
		.psn = psn,
		.payload = payloads[psn & 0xff],
		.length = length,
	};

	payloads[psn & 0xff][0] = (uint8_t)psn;
	soft_transmit(path->socket->transport, path, &packet);
}

/* Each of the next calls of sendmmsg(2) fails with the error, for as many messages at its end. */
static void let_fail(int error, unsigned calls, unsigned messages)
{
	packet_io->error = error;
	for (unsigned call = 0; call < LENGTH(packet_io->failing); call++)
		packet_io->failing[call] = call < calls ? messages : 0;
}

/* Four full packets and a shorter last one. */
enum {
	SENT = 5,
	FULL = 1024,
	SHORT = 100,
};

static int set_up(void **state)
{
	struct soft_path path;

	packet_io = calloc(1, sizeof(*packet_io));
	if (!packet_io)
		return -1;
	end_open(&sender, 1);
	end_open(&receiver, 2);
	path = path_to(127, 2);
	for (uint32_t index = 0; index < SENT - 1; index++)
		transmit(&path, OPCODE_SEND_MIDDLE, 1000 + index, FULL);
	transmit(&path, OPCODE_SEND_LAST, 1000 + SENT - 1, SHORT);
	soft_flush(&sender.transport);
	path.local.port = UDP_PORT_ROCE;
	address_to_socket(&path.local, &packet_io->from);
	return 0;
}

static int tear_down(void **state)
{
	end_close(&sender);
	end_close(&receiver);
	free(packet_io);
	packet_io = NULL;
	return 0;
}

static void receive_all(void)
{
	packet_io->received = false;
	packet_io->count = 0;
	soft_packet_io_readable(&receiver.socket);
}

/* Receives all as the kernel coalesces it. Fails if other packets arrive than the first ones, without a damaged one. */
static void assert_received(int control_type, int control_size, size_t first, size_t damaged)
{
	size_t received = 0;

	packet_io->control_type = control_type;
	packet_io->control_size = control_size;
	packet_io->bytes[damaged * (FULL + HEADERS) + 40] ^= 4;
	receive_all();
	packet_io->bytes[damaged * (FULL + HEADERS) + 40] ^= 4;
	for (size_t index = 0; index < first; index++) {
		if (index == damaged)
			continue;
		assert_true(received < packet_io->count);
		assert_int_equal(packet_io->psn[received], 1000 + index);
		assert_int_equal(packet_io->first[received], (1000 + index) & 0xff);
		assert_int_equal(packet_io->lengths[received], index == SENT - 1 ? SHORT : FULL);
		received++;
	}
	assert_int_equal(packet_io->count, received);
}

/* The packets are sent as one GSO message, each with its own ICRC, and arrive as one GRO message. Only a damaged packet
 * is dropped. Without UDP_GRO the kernel delivers packets one by one. */
TEST(coalesced_packets_are_split, set_up, tear_down)
{
	enum {
		SEGMENT = FULL + HEADERS
	};
	/*
	 * Segment sizes that the kernel never reports: no packet is delivered, and no byte beyond the message is read.
	 */
	static const int sizes[] = { -1, 0, 1, 3, 15, 16, FULL, SEGMENT + 1, WIRE_MAX, 1 << 30 };

	assert_int_equal(packet_io->messages, 1);
	assert_int_equal(packet_io->segment, SEGMENT);
	assert_int_equal(packet_io->length, (SENT - 1) * SEGMENT + SHORT + HEADERS);
	assert_received(UDP_GRO, SEGMENT, SENT, SENT);
	assert_int_equal(packet_io->solved, 0); /* their identifications follow each other, as expected */
	for (size_t damaged = 0; damaged < SENT; damaged++)
		assert_received(UDP_GRO, SEGMENT, SENT, damaged);
	packet_io->bytes[1] ^= 1; /* the version: it is no packet, so it is not a damaged one */
	assert_received(UDP_GRO, SEGMENT, SENT, 0);
	packet_io->bytes[1] ^= 1;
	assert_int_equal(receiver.transport.counts[SOFT_DAMAGED].increase, SENT);
	for (size_t index = 0; index < LENGTH(sizes); index++)
		assert_received(UDP_GRO, sizes[index], 0, SENT);
	assert_received(UDP_SEGMENT, SEGMENT, 0, SENT);
	packet_io->flags = MSG_TRUNC;
	assert_received(UDP_GRO, SEGMENT, 0, SENT);
	packet_io->flags = 0;
	packet_io->length = SEGMENT;
	assert_received(0, 0, 1, SENT);
}

TEST(flood_leaves_turns_to_other_sockets, set_up, tear_down)
{
	packet_io->flood = 300;
	for (unsigned turn = 1; turn <= 2; turn++) {
		soft_packet_io_readable(&receiver.socket);
		assert_int_equal(packet_io->flood, 300 - turn * 128);
		/* Timeouts send no more packets than were read. */
		for (unsigned resends = 0; resends < 128; resends++)
			assert_true(soft_may_resend(&receiver.socket));
		assert_false(soft_may_resend(&receiver.socket));
	}
	soft_packet_io_readable(&receiver.socket);
	for (unsigned resends = 0; resends < 1000; resends++)
		assert_true(soft_may_resend(&receiver.socket));
}

/* Each REP to a forged address may bring an ICMP error. */
TEST(icmp_error_delays_no_packets, set_up, tear_down)
{
	packet_io->flood = 100;
	packet_io->pending = ECONNREFUSED;
	soft_packet_io_readable(&receiver.socket);
	assert_int_equal(packet_io->flood, 0);
}

TEST(pollers_read_sockets_with_queue_pairs, set_up, tear_down)
{
	struct soft_transport *transport = receiver.socket.transport;

	transport->sockets = &receiver.socket;
	packet_io->flood = 300;
	assert_false(soft_packet_io_poll(transport));
	assert_int_equal(packet_io->flood, 300);
	receiver.socket.users = 1;
	assert_true(soft_packet_io_poll(transport));
	assert_int_equal(packet_io->flood, 299);
	transport->sockets = NULL;
}

/* ---- management datagrams ---- */

TEST(management_datagrams, set_up, tear_down)
{
	static const struct {
		uint8_t opcode;
		uint32_t key;
		bool received;
	} rows[] = {
		{ OPCODE_DATAGRAM, MAD_QKEY, true },
		{ OPCODE_DATAGRAM, MAD_QKEY + 1, false },
		{ OPCODE_DATAGRAM_IMMEDIATE, MAD_QKEY, false },
		{ OPCODE_SEND_ONLY, MAD_QKEY, false },
	};
	static const uint8_t mad[MAD_SIZE];

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct packet packet = {
			.opcode = rows[row].opcode,
			.pkey = PACKET_PKEY,
			.destination = MAD_QPN,
			.datagram = { .key = rows[row].key, .source = MAD_QPN },
			.payload = mad,
			.length = MAD_SIZE,
		};
		struct soft_path path = path_to(127, 2);

		soft_transmit(&sender.transport, &path, &packet);
		soft_flush(&sender.transport);
		packet_io->mads = 0;
		receive_all();
		assert_int_equal(packet_io->mads, rows[row].received);
		assert_int_equal(packet_io->count, 0);
	}
}

/* EMSGSIZE is recorded by the socket, and is not reported as unreachable. */
TEST(icmp_errors, set_up, tear_down)
{
	static const int errors[] = { EHOSTUNREACH, EMSGSIZE };

	for (size_t index = 0; index < LENGTH(errors); index++) {
		packet_io->received = true;
		packet_io->unreachable = 0;
		packet_io->icmp_error = errors[index];
		soft_packet_io_readable(&receiver.socket);
		assert_int_equal(receiver.socket.path_mtu, errors[index] == EMSGSIZE ? 1280 : 0);
		assert_int_equal(packet_io->unreachable, errors[index] == EMSGSIZE ? 0 : errors[index]);
	}
}

/* A receive reports the first only. */
TEST(flood_of_icmp_errors_leaves_turns, set_up, tear_down)
{
	unsigned turns = 0;

	packet_io->received = true;
	packet_io->icmp_error = EHOSTUNREACH;
	packet_io->icmp_more = 300;
	for (; packet_io->icmp_error; turns++) {
		soft_packet_io_readable(&receiver.socket);
		packet_io->reported = true;
	}
	assert_in_range(turns, 3, 300);
}

/* ---- send errors ---- */

enum {
	DATAGRAMS = 6
};

/* Sends alternately from two queue pairs: one message per datagram. Returns the send error recorded in the socket. */
static int send_datagrams(struct soft_unsent unsent[2])
{
	struct soft_path path = path_to(239, 3);

	sender.socket.send_error = 0;
	unsent[0] = unsent[1] = (struct soft_unsent){ 0 };
	for (uint32_t index = 0; index < DATAGRAMS; index++) {
		path.unsent = &unsent[index & 1];
		transmit(&path, OPCODE_DATAGRAM, index, FULL);
	}
	soft_flush(&sender.transport);
	return sender.socket.send_error;
}

/* After a failed datagram the later ones of its queue pair are not sent. The other queue pair is not affected. */
TEST(failed_datagram_is_counted, set_up, tear_down)
{
	static const struct {
		int error;
		unsigned calls, failing; /* failing messages in each of those sendmmsg(2) calls */
		size_t messages;	 /* that are sent */
		uint32_t unsent[2];
		int unsent_error, socket_error;
	} rows[] = {
		{ 0, 0, 0, DATAGRAMS, { 0, 0 }, 0, 0 },
		/* The third datagram fails: a few ICMP errors of earlier packets, which anybody can forge, or always.
		 * The later send succeeds. */
		{ EPERM, 4, 4, DATAGRAMS, { 0, 0 }, 0, 0 },
		{ EPERM, 9, 4, 4, { 2, 0 }, EPERM, 0 },
		/* All fail because the socket buffer is full, or the interface queue. */
		{ EAGAIN, 1, 6, 0, { 3, 3 }, 0, 0 },
		{ ENOBUFS, 1, 6, 0, { 3, 3 }, 0, ENOBUFS },
	};
	struct soft_unsent unsent[2];

	for (size_t row = 0; row < LENGTH(rows); row++) {
		let_fail(rows[row].error, rows[row].calls, rows[row].failing);
		if (rows[row].failing == DATAGRAMS)
			packet_io->failing[1] = 1;
		assert_int_equal(send_datagrams(unsent), rows[row].socket_error);
		assert_int_equal(packet_io->messages, rows[row].messages);
		assert_int_equal(unsent[0].count, rows[row].unsent[0]);
		assert_int_equal(unsent[1].count, rows[row].unsent[1]);
		assert_int_equal(unsent[0].error, rows[row].unsent_error);
		assert_int_equal(unsent[1].error, 0);
	}
}

/* Packets with different addresses or types of service are not sent in one message. */
TEST(gso_message_limits, set_up, tear_down)
{
	static const struct {
		uint32_t count, length;
		uint8_t type_of_service, last_host;
		size_t messages;
	} rows[] = {
		{ 4, FULL, 0, 2, 1 },
		{ 4, FULL, 8, 2, 4 },		     /* every second packet has that type of service */
		{ 4, FULL, 0, 3, 4 },		     /* every second packet goes to that host */
		{ 20, PACKET_PAYLOAD_MAX, 0, 2, 2 }, /* longer than an IP packet */
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct soft_path path = path_to(10, 2);

		for (uint32_t index = 0; index < rows[row].count; index++) {
			path.peer.bytes[3] = index & 1 ? rows[row].last_host : 2;
			path.type_of_service = index & 1 ? rows[row].type_of_service : 0;
			transmit(&path, OPCODE_SEND_ONLY, index, rows[row].length);
		}
		soft_flush(&sender.transport);
		assert_int_equal(packet_io->messages, rows[row].messages);
	}
}

/* This host's refusal remains the cause of a silence until an equally long packet is sent. */
TEST(refusal_of_long_packets_outlives_short_ones, set_up, tear_down)
{
	static const struct {
		size_t length;
		int error, recorded;
	} rows[] = {
		{ FULL, EMSGSIZE, EMSGSIZE }, { SHORT, 0, EMSGSIZE }, { SHORT, EAGAIN, EMSGSIZE }, { FULL, 0, 0 }
	};
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct soft_path path = path_to(10, 2);

		let_fail(rows[row].error, rows[row].error ? UINT32_MAX : 0, 1);
		transmit(&path, OPCODE_SEND_ONLY, 0, rows[row].length);
		soft_flush(&sender.transport);
		assert_int_equal(sender.socket.send_error, rows[row].recorded);
	}
}

/*
 * An interface that refuses segmented messages (EIO) gets no more of them, because each would have to be sent twice.
 * Other refusals concern one path.
 */
TEST(segmentation_ends_for_its_interface_only, set_up, tear_down)
{
	for (int interface = 0; interface < 2; interface++) {
		struct soft_socket other;

		end_close(&sender);
		end_open(&sender, 1);
		other = sender.socket;
		for (uint8_t turn = 0; turn < 3; turn++) {
			struct soft_path path = path_to(10, turn);

			if (turn == 2)
				path.socket = &other;
			let_fail(interface ? EIO : EINVAL, turn ? 0 : 8, 1);
			for (unsigned count = 0; count < 2; count++)
				transmit(&path, OPCODE_SEND_MIDDLE, 0, FULL);
			soft_flush(&sender.transport);
			/* Packets sent singly have their own errors: the descriptor is invalid. */
			assert_int_equal(path.socket->send_error, turn ? 0 : EBADF);
			assert_int_equal(packet_io->messages, !turn ? 0 : turn == 1 && interface ? 2 : 1);
		}
	}
}

/* ---- buffers ---- */

/* Compares with the kernel's accounting, for the default buffer of an unprivileged process. */
TEST(window_fits_socket_buffer)
{
	static const uint8_t bytes[4096 + HEADERS];
	int size = 212992;

	for (size_t payload = 256; payload <= 4096; payload *= 2) {
		struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		struct soft_socket target = { .fd = socket(AF_INET, SOCK_DGRAM, 0) };
		socklen_t length = sizeof(address), size_length = sizeof(size);
		int source = socket(AF_INET, SOCK_DGRAM, 0), held = 0;
		size_t window;

		assert_true(target.fd >= 0 && source >= 0);
		assert_int_equal(setsockopt(target.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
		assert_int_equal(getsockopt(target.fd, SOL_SOCKET, SO_RCVBUF, &held, &size_length), 0);
		assert_int_equal(bind(target.fd, (struct sockaddr *)&address, sizeof(address)), 0);
		assert_int_equal(getsockname(target.fd, (struct sockaddr *)&address, &length), 0);
		target.buffer = (size_t)held;
		window = soft_socket_window(&target, payload);
		assert_true(window >= 16);
		for (size_t sent = 0; sent < window; sent++)
			sendto(source, bytes, payload + HEADERS, 0, (struct sockaddr *)&address, sizeof(address));
		assert_int_equal(soft_socket_dropped(&target), 0);
		for (size_t sent = 0; sent < 4 * window; sent++)
			sendto(source, bytes, payload + HEADERS, 0, (struct sockaddr *)&address, sizeof(address));
		assert_true(soft_socket_dropped(&target) > 0);
		close(source);
		close(target.fd);
	}
}

static void ignore_completion(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	assert_int_equal(completion->status, COMPLETION_RETRY_EXCEEDED);
}

TEST(timeout_reports_local_drops, set_up, tear_down)
{
	static const struct endpoint_handlers handlers = { .completion = ignore_completion };
	struct soft_endpoint endpoint = { .base = { .kind = ENDPOINT_CONNECTION, .state = ENDPOINT_ESTABLISHED } };

	receiver.transport.base.backend = &soft_backend;
	endpoint.base.transport = &receiver.transport.base;
	endpoint.base.handlers = &handlers;
	endpoint.path.socket = &receiver.socket;
	for (unsigned turn = 0; turn < 3; turn++) {
		const char *text = receiver.transport.base.error.cause;

		packet_io->dropped = turn ? 7 : 0;
		receiver.socket.path_mtu = turn == 2 ? 1280 : 0;
		soft_callback_begin(&receiver.transport);
		soft_complete(&endpoint, WORK_SEND, 0, 0)->status = COMPLETION_RETRY_EXCEEDED;
		soft_callback_end(&receiver.transport);
		assert_non_null(strstr(text, "send failed: the peer does not answer, retries exceeded"));
		assert_int_equal(strstr(text, "; 7 packets dropped: this socket's receive buffer was full") != NULL,
				 turn == 1);
		assert_int_equal(strstr(text, "; ICMP: packets too long for the path (1280), reduce the MTU to 1024") !=
					 NULL,
				 turn == 2);
	}
}
