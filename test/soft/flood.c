/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flood KIND TARGET CLIENT PORT RATE SECONDS: a hostile sender for the soft transport at 127.x.x.x. Every packet has a
 * good ICRC; those under the name of CLIENT come from its very address, as a stranger who forges addresses can do.
 * Prints how many packets were sent.
 *
 *   requests   REQs that a listener on PORT would grant, from 200 addresses where nobody is
 *   messages   the other messages of the connection manager, under the name of CLIENT, with numbers guessed
 *   packets    requests, READs, acknowledgements and refusals of connections, as well
 *   routers    ICMP messages that TARGET's packets to CLIENT are longer than 576 bytes, from this host; for root
 *
 * RATE: packets a second; 0 for as many as go.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "core/clock.h"
#include "transport/soft/base/number.h"
#include "transport/soft/base/state.h"
#include "transport/soft/wire/bytes.h"
#include "transport/soft/wire/mad.h"
#include "transport/soft/wire/packet.h"

enum {
	STRANGERS = 200,
	PACKET_MAX = 512,
	TICK_MS = 10,
};

struct sender {
	int fd;
	struct address address;
	struct icrc_flow flow;
};

struct flood {
	struct icrc_table icrc;
	struct address target;
	struct sockaddr_storage to;
	socklen_t to_length;
	uint16_t port;
	struct sender senders[STRANGERS]; /* all are CLIENT where its name is used */
	unsigned sender_count;
	unsigned long sent;
};

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void open_sender(struct flood *flood, const struct address *address)
{
	struct sender *sender = &flood->senders[flood->sender_count++];
	struct sockaddr_storage from;
	struct sockaddr_in *bound = (struct sockaddr_in *)(void *)&from;
	socklen_t length = (socklen_t)address_to_socket(address, &from);
	int never = IP_PMTUDISC_DO;

	sender->address = *address;
	sender->fd = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
	if (sender->fd < 0 || setsockopt(sender->fd, IPPROTO_IP, IP_MTU_DISCOVER, &never, sizeof(never)) ||
	    bind(sender->fd, (struct sockaddr *)&from, length) ||
	    getsockname(sender->fd, (struct sockaddr *)&from, &length))
		die("flood: socket");
	icrc_flow_prepare(&sender->flow, ICRC_IP4, address->bytes, flood->target.bytes, ntohs(bound->sin_port),
			  PACKET_PORT);
}

static void say(struct flood *flood, const struct sender *sender, struct packet *packet)
{
	uint8_t bytes[PACKET_MAX];
	size_t length = packet_write(packet, bytes);
	size_t pad = packet_pad(packet->length);
	uint32_t icrc =
		icrc_compute(&flood->icrc, &sender->flow, 0, bytes, length, packet->payload, packet->length, pad);

	if (packet->length)
		memcpy(bytes + length, packet->payload, packet->length);
	memset(bytes + length + packet->length, 0, pad);
	length += packet->length + pad;
	icrc_store(bytes + length, icrc);
	length += ICRC_SIZE;
	/* An error is what came back for an earlier one: nobody is there. */
	if (sendto(sender->fd, bytes, length, 0, (struct sockaddr *)&flood->to, flood->to_length) == (ssize_t)length)
		flood->sent++;
}

static void say_message(struct flood *flood, const struct sender *sender, const struct mad *mad)
{
	uint8_t bytes[MAD_SIZE];
	struct packet packet = {
		.opcode = OPCODE_DATAGRAM,
		.pkey = PACKET_PKEY,
		.destination = MAD_QPN,
		.datagram = { .key = MAD_QKEY, .source = MAD_QPN },
		.payload = bytes,
		.length = MAD_SIZE,
	};

	mad_write(mad, bytes);
	say(flood, sender, &packet);
}

static void map(const struct address *address, uint8_t gid[MAD_GID_SIZE])
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, address->bytes, 4);
}

static void say_request(struct flood *flood, uint64_t die)
{
	const struct sender *sender = &flood->senders[die % flood->sender_count];
	struct mad_address address = { .version = 4, .port = 40000 };
	uint8_t private_data[MAD_REQ_PRIVATE] = { 0 };
	struct mad mad = {
		.kind = MAD_REQ,
		.transaction = die,
		.local_id = (uint32_t)die | 1,
		.req = {
			.service_id = mad_service_id(PORT_SPACE_TCP, flood->port),
			.ca_guid = soft_random(),
			.qpn = (uint32_t)(die & 0xfffff) + 2,
			.responder_resources = 4,
			.initiator_depth = 4,
			.remote_response_timeout = 20,
			.transport = MAD_TRANSPORT_RC,
			.local_response_timeout = 20,
			.retry_count = 7,
			.pkey = PACKET_PKEY,
			.path_mtu = 3,
			.rnr_retry_count = 7,
			.max_cm_retries = 15,
			.path = { .local_lid = 0xffff, .remote_lid = 0xffff, .packet_rate = 3, .hop_limit = 64,
				  .ack_timeout = 18 },
		},
		.private_data = private_data,
		.private_length = sizeof(private_data),
	};

	memcpy(address.source, sender->address.bytes, sizeof(address.source));
	memcpy(address.destination, flood->target.bytes, sizeof(address.destination));
	mad_address_write(&address, private_data);
	map(&sender->address, mad.req.path.local_gid);
	map(&flood->target, mad.req.path.remote_gid);
	say_message(flood, sender, &mad);
}

static void say_other_message(struct flood *flood, uint64_t die)
{
	static const enum mad_kind kinds[] = { MAD_MRA, MAD_REJ, MAD_REP, MAD_RTU, MAD_DREQ, MAD_DREP };
	struct mad mad = {
		.kind = kinds[die % (sizeof(kinds) / sizeof(kinds[0]))],
		.transaction = soft_random(),
		.local_id = (uint32_t)soft_random(),
		.remote_id = (uint32_t)(die >> 32),
	};

	if (mad.kind == MAD_REP)
		mad.rep = (struct mad_rep){ .qpn = 77, .ca_guid = soft_random() };
	if (mad.kind == MAD_DREQ)
		mad.dreq.remote_qpn = (uint32_t)soft_random() & PSN_MASK;
	if (mad.kind == MAD_REJ)
		mad.rej = (struct mad_rej){ .answered = MAD_ANSWERED_OTHER, .reason = REJECTED_BY_CONSUMER };
	say_message(flood, &flood->senders[0], &mad);
}

static void say_packet(struct flood *flood, uint64_t die)
{
	static const uint8_t opcodes[] = { OPCODE_SEND_ONLY, OPCODE_WRITE_ONLY, OPCODE_READ_REQUEST,
					   OPCODE_ACKNOWLEDGE };
	static const uint8_t data[64];
	struct packet packet = {
		.opcode = opcodes[die % sizeof(opcodes)],
		.ack_request = true,
		.pkey = PACKET_PKEY,
		.destination = (uint32_t)(die >> 8) & PSN_MASK,
		.psn = (uint32_t)(die >> 32) & PSN_MASK,
		.remote = { .address = soft_random(), .key = (uint32_t)soft_random(), .length = 64 },
		.acknowledgement = { .syndrome = (uint8_t)(die >> 56) },
		.payload = data,
	};

	packet.length = packet.opcode == OPCODE_SEND_ONLY || packet.opcode == OPCODE_WRITE_ONLY ? sizeof(data) : 0;
	say(flood, &flood->senders[0], &packet);
}

static void say_too_long(struct flood *flood, uint64_t die)
{
	enum {
		IP = 8, /* what is quoted of the packet that was too long, behind the ICMP header */
		UDP = IP + 20,
		SIZE = UDP + 8,
	};
	uint8_t bytes[SIZE] = { 3, 4, [6] = 576 >> 8, 576 & 0xff, [IP] = 0x45, [IP + 8] = 64, IPPROTO_UDP };
	uint32_t sum = 0;

	bytes_write(bytes + IP + 2, 2, 1100);
	memcpy(bytes + IP + 12, flood->target.bytes, 4);
	memcpy(bytes + IP + 16, flood->senders[0].address.bytes, 4);
	bytes_write(bytes + UDP, 2, PACKET_PORT);
	bytes_write(bytes + UDP + 2, 2, PACKET_PORT);
	for (unsigned i = 0; i < SIZE; i += 2)
		sum += (uint32_t)bytes_read(bytes + i, 2);
	bytes_write(bytes + 2, 2, ~(sum + (sum >> 16)));
	if (sendto(flood->senders[0].fd, bytes, SIZE, 0, (struct sockaddr *)&flood->to, flood->to_length) == SIZE)
		flood->sent++;
}

static void open_strangers(struct flood *flood, const struct address *client)
{
	struct address address = { .family = ADDRESS_IP4, .bytes = { 127, 66 } };

	for (unsigned count = 0; count < STRANGERS; count++) {
		address.bytes[3] = (uint8_t)(count + 1);
		open_sender(flood, &address);
	}
}

static void open_router(struct flood *flood, const struct address *client)
{
	flood->senders[0] = (struct sender){ .fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), .address = *client };
	if (flood->senders[0].fd < 0)
		die("flood: socket");
}

static const struct kind_row {
	const char *name;
	void (*say)(struct flood *flood, uint64_t die);
	void (*open)(struct flood *flood, const struct address *client);
} kinds[] = {
	{ "requests", say_request, open_strangers },
	{ "messages", say_other_message, open_sender },
	{ "packets", say_packet, open_sender },
	{ "routers", say_too_long, open_router },
};

static void run(struct flood *flood, const struct kind_row *kind, unsigned long rate, int64_t end)
{
	int64_t began = clock_now(), now = began;

	while (now < end) {
		unsigned long due = rate ? (unsigned long)(now - began) / 1000 * rate / 1000000 : flood->sent + 64;

		while (flood->sent < due && clock_now() < end)
			kind->say(flood, soft_random());
		if (rate)
			nanosleep(&(struct timespec){ .tv_nsec = TICK_MS * CLOCK_NS_PER_MS }, NULL);
		now = clock_now();
	}
}

int main(int argc, char **argv)
{
	static struct flood flood;
	const struct kind_row *kind = kinds;
	struct address client;

	while (argc == 7 && kind < kinds + sizeof(kinds) / sizeof(kinds[0]) && strcmp(kind->name, argv[1]) != 0)
		kind++;
	if (argc != 7 || kind == kinds + sizeof(kinds) / sizeof(kinds[0]) ||
	    !address_parse(argv[2], ADDRESS_FORMAT_IP4, &flood.target) ||
	    !address_parse(argv[3], ADDRESS_FORMAT_IP4, &client)) {
		fprintf(stderr, "usage: flood requests|messages|packets|routers TARGET CLIENT PORT RATE SECONDS\n");
		return 2;
	}
	icrc_prepare(&flood.icrc);
	flood.port = (uint16_t)strtoul(argv[4], NULL, 10);
	flood.target.port = PACKET_PORT;
	flood.to_length = (socklen_t)address_to_socket(&flood.target, &flood.to);
	kind->open(&flood, &client);
	run(&flood, kind, strtoul(argv[5], NULL, 10), clock_now() + strtol(argv[6], NULL, 10) * CLOCK_NS_PER_S);
	printf("%lu\n", flood.sent);
	return 0;
}
