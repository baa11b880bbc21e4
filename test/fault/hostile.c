/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A misbehaving peer for rping and ucmatose, with librdmacm's blocking calls.
 *
 * usage: hostile client|server ADDRESS PORT BEHAVIOUR [TIMES]
 *   leave      connects (or accepts), and exits silently
 *   half       connects, and exits before the answer (client)
 *   refuse     rejects with 56 bytes that are not text (server)
 *   silent     stays connected for a second, and sends nothing
 *   short      sends 3 bytes
 *   long       sends 4,000 bytes
 *   zero       sends an empty advertisement: address 0, key 0, size 0
 *   huge       sends one of 4 GiB
 *   key        sends one with a key that does not exist
 *   flood      sends 64 messages of 16 bytes at once
 *   garbage    has private data that begins like ours and continues at random
 * Exits with 0 after TIMES repetitions, whatever their result.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	BUFFER_SIZE = 4096,
	MESSAGES_MAX = 64,
	PRIVATE_SIZE = 56,
};

/* rping's advertisement on the wire. */
struct advertisement {
	uint64_t address;
	uint32_t key;
	uint32_t size;
} __attribute__((packed));

struct peer {
	const char *behaviour;
	uint8_t data[PRIVATE_SIZE];
	char buffer[BUFFER_SIZE];
};

static bool is(const struct peer *peer, const char *behaviour)
{
	return !strcmp(peer->behaviour, behaviour);
}

static struct ibv_qp_init_attr queue_wanted(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = MESSAGES_MAX, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

/* Sends the behaviour's messages on the connection. */
static void misbehave(struct peer *peer, struct rdma_cm_id *id)
{
	struct advertisement advertisement = { .size = htobe32(64) };
	struct ibv_mr *region;
	struct ibv_wc completion;
	size_t length = sizeof(advertisement);
	int messages = 1;

	if (is(peer, "leave") || is(peer, "garbage"))
		return;
	if (is(peer, "silent")) {
		poll(NULL, 0, 1000);
		return;
	}
	region = rdma_reg_msgs(id, peer->buffer, sizeof(peer->buffer));
	if (!region)
		return;
	if (is(peer, "short"))
		length = 3;
	if (is(peer, "long"))
		length = 4000;
	if (is(peer, "zero"))
		advertisement.size = 0;
	if (is(peer, "huge"))
		advertisement.size = UINT32_MAX;
	if (is(peer, "key")) {
		advertisement.address = htobe64(0x1000);
		advertisement.key = htobe32(0x7fffff17);
	}
	if (is(peer, "flood"))
		messages = MESSAGES_MAX;
	memcpy(peer->buffer, &advertisement, sizeof(advertisement));
	for (int i = 0; i < messages; i++)
		rdma_post_send(id, NULL, peer->buffer, length, region, 0);
	for (int tries = 0; tries < 100 && messages; tries++) {
		int count = ibv_poll_cq(id->send_cq, 1, &completion);

		messages -= count > 0;
		if (count <= 0)
			poll(NULL, 0, 5);
	}
	poll(NULL, 0, 50);
	rdma_dereg_mr(region);
}

static struct rdma_conn_param parameters_of(struct peer *peer)
{
	struct rdma_conn_param parameters = {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7
	};

	if (is(peer, "garbage")) {
		memcpy(peer->data, "\xd7rdt\1", 5);
		peer->data[5] = (uint8_t)(rand() % 4); /* which tool */
		for (size_t i = 6; i < sizeof(peer->data); i++)
			peer->data[i] = (uint8_t)rand();
		parameters.private_data = peer->data;
		parameters.private_data_len = sizeof(peer->data);
	}
	return parameters;
}

/* Blocking, or on a separate channel whose events are ignored. */
static void be_client(struct peer *peer, const struct rdma_addrinfo *where)
{
	struct rdma_event_channel *channel = is(peer, "half") ? rdma_create_event_channel() : NULL;
	struct ibv_qp_init_attr queue = queue_wanted();
	struct rdma_conn_param parameters = parameters_of(peer);
	struct rdma_cm_id *id;

	if (rdma_create_ep(&id, (struct rdma_addrinfo *)(uintptr_t)where, NULL, &queue))
		return;
	if (channel && rdma_migrate_id(id, channel))
		return;
	if (!rdma_connect(id, &parameters) && !channel)
		misbehave(peer, id);
	rdma_destroy_ep(id);
	if (channel)
		rdma_destroy_event_channel(channel);
}

static void be_server(struct peer *peer, struct rdma_cm_id *listener)
{
	struct rdma_conn_param parameters = parameters_of(peer);
	struct rdma_cm_id *id;

	if (rdma_get_request(listener, &id))
		return;
	if (is(peer, "refuse")) {
		memset(peer->data, 0xfe, sizeof(peer->data));
		rdma_reject(id, peer->data, sizeof(peer->data));
	} else if (!rdma_accept(id, &parameters)) {
		misbehave(peer, id);
	}
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *where;
	struct ibv_qp_init_attr queue = queue_wanted();
	struct rdma_cm_id *listener = NULL;
	struct peer peer = { 0 };
	bool server = argc > 1 && !strcmp(argv[1], "server");
	unsigned long times;

	if (argc < 5) {
		fprintf(stderr, "usage: hostile client|server ADDRESS PORT BEHAVIOUR [TIMES]\n");
		return 2;
	}
	peer.behaviour = argv[4];
	times = argc > 5 ? strtoul(argv[5], NULL, 10) : 1;
	hints.ai_flags = server ? RAI_PASSIVE : 0;
	if (rdma_getaddrinfo(argv[2], argv[3], &hints, &where))
		return 1;
	if (server && (rdma_create_ep(&listener, where, NULL, &queue) || rdma_listen(listener, 64)))
		return 1;
	while (times--)
		if (server)
			be_server(&peer, listener);
		else
			be_client(&peer, where);
	if (listener)
		rdma_destroy_ep(listener);
	rdma_freeaddrinfo(where);
	return 0;
}
