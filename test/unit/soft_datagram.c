/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* Datagrams to multicast groups on a simulated network. */
#include "test/network/qp.h"
#include "transport/soft/qp/qp.h"

enum {
	KEY = 0x01234567
};

static struct address group;

static struct {
	struct soft_endpoint ends[2];
	struct region *regions[2];
	struct completion received[64], sent[64];
	size_t received_count, sent_count;
} datagrams;

static void datagram_completed(void *context, struct host *host, const struct reported *reported)
{
	if (reported->completion.kind == WORK_RECEIVE)
		datagrams.received[datagrams.received_count++] = reported->completion;
	else
		datagrams.sent[datagrams.sent_count++] = reported->completion;
}

/* Sets the destination of an end. */
static void set_destination(size_t end, const struct address *to, uint32_t key)
{
	const struct host *host = &testbed.hosts[end];
	struct soft_path *path = &datagrams.ends[end].path;

	*path = (struct soft_path){ .socket = host->socket, .local = host->address, .peer = *to };
	assert_int_equal(soft_path_route(host->transport, path), 0);
	path->mtu = 1024;
	soft_qp_join(datagrams.ends[end].qp, key);
}

static struct soft_socket *join(size_t end, const struct address *to)
{
	const struct host *host = &testbed.hosts[end];
	struct soft_path path = { .socket = host->socket, .local = host->socket->address, .peer = *to };
	struct soft_socket *socket;

	assert_int_equal(soft_path_route(host->transport, &path), 0);
	assert_int_equal(
		soft_group_socket_join(&(struct endpoint){ .transport = &host->transport->base }, &path, &socket),
		OUTCOME_OK);
	return socket;
}

static void datagrams_open(enum address_family family)
{
	memset(&datagrams, 0, sizeof(datagrams));
	qp_open(1);
	group = (struct address){ .family = ADDRESS_IP4, .bytes = { 239, 1, 2, 3 } };
	if (family == ADDRESS_IP6) {
		group = (struct address){ .family = ADDRESS_IP6, .bytes = { 0xff, 0x15, [15] = 9 } };
		for (size_t end = 0; end < 2; end++)
			qp_set_address(&testbed.hosts[end],
				       &(struct address){ .family = ADDRESS_IP6,
							  .bytes = { 0xfd, [15] = (uint8_t)(end + 1) } });
	}
	for (size_t end = 0; end < 2; end++) {
		endpoint_prepare(&datagrams.ends[end], &testbed.hosts[end], ENDPOINT_GROUP, 16, 16);
		datagrams.ends[end].group_socket = join(end, &group);
		datagrams.regions[end] = region_of(end, 65536, 0);
		set_destination(end, &group, KEY);
	}
	testbed.completed = datagram_completed;
}

static int set_up(void **state)
{
	datagrams_open(ADDRESS_IP4);
	return 0;
}

static int tear_down(void **state)
{
	for (size_t end = 0; end < 2; end++) {
		soft_qp_destroy(datagrams.ends[end].qp);
		soft_region_destroy(datagrams.regions[end]);
	}
	qp_close();
	return 0;
}

static void datagram_post_one(size_t end, enum work_kind kind, uint32_t tag, uint32_t length)
{
	struct work work = { .kind = kind,
			     .tag = tag,
			     .region = datagrams.regions[end],
			     .offset = (size_t)tag * 2048,
			     .length = length,
			     .has_immediate = tag & 1,
			     .immediate = tag + 1000 };

	assert_int_equal(soft_qp_post(datagrams.ends[end].qp, &work, 1), OUTCOME_OK);
}

static void send_one(uint32_t length)
{
	datagram_post_one(0, WORK_SEND, 0, length);
	network_run(CLOCK_NS_PER_MS);
}

TEST(datagrams_arrive, set_up, tear_down)
{
	static const uint32_t lengths[] = { 0, 1, 4, 7, 100, 1024 };
	const uint8_t *header;

	for (enum address_family family = ADDRESS_IP4; family <= ADDRESS_IP6; family++) {
		tear_down(NULL);
		datagrams_open(family);
		memset(datagrams.regions[0]->memory, 0x77, 65536);
		for (uint32_t tag = 0; tag < LENGTH(lengths); tag++) {
			datagram_post_one(1, WORK_RECEIVE, tag, DATAGRAM_HEADER_SIZE + lengths[tag]);
			datagram_post_one(0, WORK_SEND, tag, lengths[tag]);
		}
		assert_int_equal(datagrams.sent_count, 0);
		network_run(CLOCK_NS_PER_S);
		assert_int_equal(datagrams.sent_count, LENGTH(lengths));
		assert_int_equal(datagrams.received_count, LENGTH(lengths));
		for (uint32_t tag = 0; tag < LENGTH(lengths); tag++) {
			const struct completion *completion = &datagrams.received[tag];

			assert_int_equal(datagrams.sent[tag].tag, tag);
			assert_int_equal(completion->tag, tag);
			assert_int_equal(completion->length, lengths[tag]);
			assert_int_equal(completion->has_immediate, tag & 1);
			assert_int_equal(completion->immediate, tag & 1 ? tag + 1000 : 0);
			assert_int_equal(completion->source_qpn, datagrams.ends[0].qp->by_qpn.key);
			header = datagrams.regions[1]->memory + (size_t)tag * 2048;
			if (lengths[tag])
				assert_memory_equal(header + 40, datagrams.regions[0]->memory, lengths[tag]);
			assert_int_equal(header[40 + lengths[tag]], 0);
			if (family == ADDRESS_IP6) {
				assert_int_equal(header[0], 0x60);
				assert_memory_equal(header + 8, testbed.hosts[0].address.bytes, 16);
				assert_memory_equal(header + 24, group.bytes, 16);
			} else {
				assert_int_equal(header[0], 0);
				assert_int_equal(header[20], 0x45);
				assert_memory_equal(header + 32, testbed.hosts[0].address.bytes, 4);
				assert_memory_equal(header + 36, group.bytes, 4);
				assert_int_equal(header[22] << 8 | header[23],
						 52 + (tag & 1 ? 4u : 0u) + ((lengths[tag] + 3) & ~3u));
			}
		}
	}
}

TEST(undeliverable_datagrams_are_dropped, set_up, tear_down)
{
	struct address other = { .family = ADDRESS_IP4, .bytes = { 239, 1, 2, 4 } };
	struct soft_socket *socket;

	join(1, &other);
	/* Dropped: no receive; a receive that is too short, which stays posted; another qkey; another group; after
	 * leaving. */
	send_one(100);
	datagram_post_one(1, WORK_RECEIVE, 0, 139);
	send_one(100);
	assert_int_equal(datagrams.received_count, 0);
	set_destination(0, &group, 5);
	send_one(99);
	set_destination(0, &other, KEY);
	send_one(99);
	set_destination(0, &group, KEY);
	socket = datagrams.ends[1].group_socket;
	datagrams.ends[1].group_socket = NULL;
	send_one(99);
	assert_int_equal(datagrams.received_count, 0);
	datagrams.ends[1].group_socket = socket;
	send_one(99);
	assert_int_equal(datagrams.received_count, 1);
	assert_int_equal(datagrams.sent_count, 6);
}

/* It is for a queue pair of that number only, though it was sent to the group's address. */
TEST(another_destination_queue_pair_is_dropped, set_up, tear_down)
{
	struct packet packet = { .opcode = OPCODE_DATAGRAM, .pkey = PACKET_PKEY, .datagram = { .key = KEY } };

	datagram_post_one(1, WORK_RECEIVE, 0, DATAGRAM_HEADER_SIZE);
	for (unsigned arrives = 0; arrives < 2; arrives++) {
		packet.destination = arrives ? GROUP_QPN : datagrams.ends[1].qp->by_qpn.key;
		soft_qp_receive_group(testbed.hosts[1].transport, datagrams.ends[1].group_socket,
				      &testbed.hosts[0].address, &packet);
		network_run(CLOCK_NS_PER_MS);
		assert_int_equal(datagrams.received_count, arrives);
	}
}

/* Membership is per interface: each interface joins and receives separately. */
TEST(membership_is_per_interface, set_up, tear_down)
{
	struct host *host = &testbed.hosts[1];
	struct address there = { .family = ADDRESS_IP4, .bytes = { 10, 0, 1, 1 } };
	struct address third = { .family = ADDRESS_IP4, .bytes = { 10, 0, 1, 2 } };
	struct soft_socket *first, *second;

	first = datagrams.ends[1].group_socket;
	assert_ptr_equal(join(1, &group), first);
	host->socket = stack_socket(host->transport, &there);
	second = join(1, &group);
	assert_ptr_not_equal(second, first);
	host->socket = stack_socket(host->transport, &third);
	assert_ptr_equal(join(1, &group), second);
	datagram_post_one(1, WORK_RECEIVE, 0, 140);
	datagram_post_one(1, WORK_RECEIVE, 1, 140);
	send_one(100);
	assert_int_equal(datagrams.received_count, 1);
}

/* The loopback interface returns all multicast packets, whatever IP_MULTICAST_LOOP is: with no_loopback they are not
 * sent. */
TEST(no_loopback_on_loopback_interface, set_up, tear_down)
{
	for (unsigned turn = 0; turn < 4; turn++) {
		struct host *host = &testbed.hosts[0];
		bool loopback = turn & 1, wanted = turn & 2;
		uint64_t sent = network->sent;

		qp_set_address(host, &(struct address){ .family = ADDRESS_IP4,
							.bytes = { loopback ? 127 : 10, 0, 0, (uint8_t)(9 + turn) } });
		datagrams.ends[0].base.options.no_loopback = !wanted;
		set_destination(0, &group, KEY);
		send_one(100);
		assert_int_equal(datagrams.sent_count, turn + 1);
		assert_int_equal(network->sent - sent, !loopback || wanted);
	}
}

/* A burst longer than the socket window is sent in several turns and completes in sequence. */
TEST(burst_exceeds_socket_window, set_up, tear_down)
{
	testbed.window = 3000;
	for (uint32_t tag = 0; tag < 16; tag++)
		datagram_post_one(0, WORK_SEND, tag, 1000);
	hosts_flush();
	assert_in_range(network->sent, 3, 4);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(datagrams.sent_count, 16);
	assert_int_equal(network->sent, 16);
	for (uint32_t tag = 0; tag < 16; tag++)
		assert_int_equal(datagrams.sent[tag].tag, tag);
}

/* Packets that the socket rejected for lack of buffer are sent again later. If sending fails, the work request and
 * the queue pair fail. */
TEST(unsent_datagrams_are_resent_or_fail, set_up, tear_down)
{
	for (uint32_t tag = 0; tag < 8; tag++)
		datagram_post_one(0, WORK_SEND, tag, 100);
	hosts_flush();
	datagrams.ends[0].qp->unsent = (struct soft_unsent){ .count = 3 };
	network_run(CLOCK_NS_PER_MS / 2);
	assert_int_equal(datagrams.sent_count, 5);
	/* A new one waits with them. */
	datagram_post_one(0, WORK_SEND, 8, 100);
	network_run(CLOCK_NS_PER_MS / 4);
	assert_int_equal(network->sent, 8);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(datagrams.sent_count, 9);
	assert_int_equal(network->sent, 8 + 3 + 1);
	for (uint32_t tag = 0; tag < 9; tag++)
		assert_int_equal(datagrams.sent[tag].tag, tag);

	for (uint32_t tag = 0; tag < 8; tag++)
		datagram_post_one(0, WORK_SEND, tag, 100);
	hosts_flush();
	datagrams.ends[0].qp->unsent = (struct soft_unsent){ .count = 3, .error = 1 };
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(datagrams.sent_count, 9 + 6);
	assert_int_equal(datagrams.sent[13].status, COMPLETION_OK);
	assert_int_equal(datagrams.sent[14].status, COMPLETION_OTHER);
	assert_int_equal(datagrams.sent[14].tag, 5);
	send_one(100);
	assert_int_equal(datagrams.sent_count, 9 + 6);
}
