/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* The responder of a connected queue pair: checks of requests, ACKs and NAKs, repeated requests. */
#include "test/network/qp.h"

/* Responses that host 1 sent: counts by type, and the fields of the last one. */
static unsigned sent_nak_sequence, sent_nak_invalid, sent_nak_access, sent_rnr_nak, sent_acks, sent_read_responses;
static uint32_t sent_psn, sent_msn, acked_psn;

static bool count_responses(struct network *where, const struct host *from, struct packet *packet)
{
	if (from != &testbed.hosts[1])
		return true;
	sent_psn = packet->psn;
	sent_msn = packet->acknowledgement.msn;
	if (packet->opcode != OPCODE_ACKNOWLEDGE) {
		sent_read_responses++;
		return true;
	}
	switch (syndrome_kind(packet->acknowledgement.syndrome)) {
	case SYNDROME_ACK:
		assert_int_equal(packet->acknowledgement.syndrome, CREDITS_UNLIMITED);
		sent_acks++;
		acked_psn = packet->psn;
		break;
	case SYNDROME_RNR:
		sent_rnr_nak++;
		break;
	default:
		sent_nak_sequence += syndrome_value(packet->acknowledgement.syndrome) == NAK_SEQUENCE;
		sent_nak_invalid += syndrome_value(packet->acknowledgement.syndrome) == NAK_INVALID_REQUEST;
		sent_nak_access += syndrome_value(packet->acknowledgement.syndrome) == NAK_REMOTE_ACCESS;
		break;
	}
	return true;
}

static unsigned length_errors, other_errors;

static void count_errors(void *context, struct host *host, const struct reported *reported)
{
	if (reported->completion.status == COMPLETION_LENGTH && host == &testbed.hosts[1])
		length_errors++;
	else if (reported->completion.status != COMPLETION_OK)
		other_errors += reported->completion.status == COMPLETION_REMOTE_REQUEST;
}

static void responder_open(unsigned reads)
{
	bench_open(reads);
	testbed.tap = count_responses;
	sent_nak_sequence = sent_nak_invalid = sent_nak_access = sent_rnr_nak = sent_acks = sent_read_responses = 0;
	length_errors = other_errors = 0;
	testbed.completed = count_errors;
}

TEST(send_longer_than_receive_fails, NULL, bench_close)
{
	for (uint32_t length = 1; length < 5000; length += 700) {
		struct work receive = { .kind = WORK_RECEIVE, .length = length - 1 };
		struct work send = { .kind = WORK_SEND, .length = length };
		struct region *source;

		responder_open(4);
		source = region_of(0, 5000, 0);
		receive.region = bench.region;
		send.region = source;
		assert_int_equal(soft_qp_post(qp_of(&bench.pair, 1), &receive, 1), OUTCOME_OK);
		assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), &send, 1), OUTCOME_OK);
		bench_run();
		assert_int_equal(length_errors, 1);
		assert_int_equal(other_errors, 1);
		assert_int_equal(testbed.hosts[0].failures + testbed.hosts[1].failures, 0);
		assert_int_equal(bench.region->memory[length - 1], 1);
		soft_region_destroy(source);
	}
}

TEST(opcode_sequence_errors_are_rejected, NULL, bench_close)
{
	static const struct {
		uint8_t opcodes[3];
		uint16_t lengths[3];
	} rows[] = {
		{ { OPCODE_SEND_MIDDLE }, { 1024 } },
		{ { OPCODE_SEND_LAST }, { 1024 } },
		{ { OPCODE_WRITE_MIDDLE }, { 1024 } },
		{ { OPCODE_WRITE_LAST }, { 4 } },
		{ { OPCODE_WRITE_FIRST, OPCODE_WRITE_ONLY }, { 1024, 4 } },
		{ { OPCODE_WRITE_FIRST, OPCODE_SEND_ONLY }, { 1024, 4 } },
		{ { OPCODE_WRITE_FIRST, OPCODE_READ_REQUEST }, { 1024, 4 } },
		{ { OPCODE_SEND_FIRST, OPCODE_WRITE_LAST }, { 1024, 4 } },
		{ { OPCODE_SEND_FIRST, OPCODE_SEND_FIRST }, { 1024, 1024 } },
		{ { OPCODE_SEND_FIRST, OPCODE_SEND_LAST }, { 1024, 0 } },
		{ { OPCODE_SEND_FIRST }, { 512 } },
		{ { OPCODE_SEND_FIRST }, { 2048 } },
		{ { OPCODE_SEND_ONLY }, { 2048 } },
		{ { OPCODE_WRITE_ONLY }, { 1028 } },
		{ { OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_MIDDLE }, { 1024, 1024, 1020 } },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct work receive = { .kind = WORK_RECEIVE, .length = 60000 };
		size_t count = 0;

		responder_open(4);
		receive.region = bench.region;
		assert_int_equal(soft_qp_post(bench.pair.ends[1].qp, &receive, 1), OUTCOME_OK);
		while (count < 3 && rows[row].lengths[count]) {
			bench_send(rows[row].opcodes[count], bench.psn + (uint32_t)count, rows[row].lengths[count]);
			count++;
		}
		if (count < 3 && rows[row].opcodes[count])
			bench_send(rows[row].opcodes[count], bench.psn + (uint32_t)count, 0);
		bench_run();
		if (sent_nak_invalid != 1)
			fail_msg("row %zu: %u refusals", row, sent_nak_invalid);
		assert_int_equal(sent_nak_sequence + sent_nak_access + sent_rnr_nak, 0);
		assert_int_equal(testbed.hosts[1].failures, 1);
		/* A repeated request gets the same NAK; later ones get no response. */
		bench_send(OPCODE_SEND_ONLY, bench.psn + (uint32_t)count, 4);
		bench_send(OPCODE_SEND_ONLY, bench.psn + (uint32_t)count + 1, 4);
		bench_run();
		assert_int_equal(sent_nak_invalid, 2);
		assert_int_equal(testbed.hosts[1].failures, 1);
	}
}

/* A reserved opcode at the expected PSN gets a NAK; at other PSNs it is dropped without a response. */
TEST(reserved_opcodes_are_rejected, NULL, bench_close)
{
	for (unsigned opcode = 0x12; opcode < 0x20; opcode++) {
		for (size_t length = 0; length <= 28; length += 28) {
			bool request = opcode != 0x12; /* 0x12 is ATOMIC Acknowledge, a response */
			struct packet packet;
			uint8_t bytes[NETWORK_FRAME_MAX] = { 0 };
			size_t header;

			responder_open(4);
			packet = bench_packet(OPCODE_SEND_ONLY, bench.psn + 1, length);
			header = packet_write(&packet, bytes);
			bytes[0] = (uint8_t)opcode;
			host_send(&testbed.hosts[0], &testbed.hosts[1], bytes, header + length);
			packet.psn = bench.psn - 1;
			packet_write(&packet, bytes);
			bytes[0] = (uint8_t)opcode;
			host_send(&testbed.hosts[0], &testbed.hosts[1], bytes, header + length);
			bench_run();
			assert_int_equal(
				sent_nak_invalid + sent_nak_sequence + sent_nak_access + sent_rnr_nak + sent_acks, 0);
			assert_int_equal(testbed.hosts[1].failures, 0);

			packet.psn = bench.psn;
			packet_write(&packet, bytes);
			bytes[0] = (uint8_t)opcode;
			for (unsigned time = 1; time <= 2; time++) {
				host_send(&testbed.hosts[0], &testbed.hosts[1], bytes, header + length);
				bench_run();
				assert_int_equal(sent_nak_invalid, request ? time : 0);
			}
			assert_int_equal(testbed.hosts[1].failures, request ? 1 : 0);
			assert_int_equal(sent_nak_sequence + sent_nak_access + sent_rnr_nak + sent_acks, 0);
			if (request)
				assert_int_equal(sent_psn, bench.psn);
		}
	}
}

TEST(write_length_is_checked, NULL, bench_close)
{
	struct packet packet;

	for (unsigned turn = 0; turn < 3; turn++) {
		responder_open(4);
		packet = bench_packet(OPCODE_WRITE_FIRST, 100, 1024);
		packet.remote.length = turn == 0 ? 1000 : turn == 1 ? 1500 : 2000;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		if (turn)
			bench_send(turn == 1 ? OPCODE_WRITE_MIDDLE : OPCODE_WRITE_LAST, 101, turn == 1 ? 1024 : 900);
		bench_run();
		assert_int_equal(sent_nak_invalid, 1);
		assert_int_equal(bench.region->memory[turn ? 1024 : 0], 1);
	}
}

TEST(reads_beyond_limit_are_rejected, NULL, bench_close)
{
	responder_open(0);
	bench_send(OPCODE_READ_REQUEST, 100, 16);
	bench_run();
	assert_int_equal(sent_nak_invalid, 1);
	assert_int_equal(sent_read_responses, 0);

	responder_open(2);
	for (uint32_t read = 0; read < 3; read++)
		bench_send(OPCODE_READ_REQUEST, 100 + read * 64, 65536);
	bench_run();
	assert_int_equal(sent_nak_invalid, 1);
	/* The first two READs are executed. */
	assert_int_equal(sent_read_responses, 128);

	/* Sequential READs do not exceed the limit of one. */
	responder_open(1);
	for (uint32_t read = 0; read < 3; read++) {
		bench_send(OPCODE_READ_REQUEST, 100 + read * 64, 65536);
		bench_run();
	}
	assert_int_equal(sent_read_responses, 192);
	assert_int_equal(sent_nak_invalid, 0);
}

static void deliver_read(struct pair *pair, uint32_t psn, size_t length)
{
	struct packet packet = bench_packet(OPCODE_READ_REQUEST, psn, length);

	packet.destination = qp_of(pair, 1)->by_qpn.key;
	soft_qp_receive(testbed.hosts[1].transport, testbed.hosts[1].socket, &testbed.hosts[0].address, &packet);
}

/* A turn of the loop sends 64 responses of a connection, and all of another that has fewer. */
TEST(reads_leave_turns_to_other_connections, NULL, bench_close)
{
	struct pair other;

	responder_open(4);
	pair_open(&other, &bench.attr);
	for (uint32_t read = 0; read < 3; read++)
		deliver_read(&bench.pair, 100 + read * 64, 65536);
	deliver_read(&other, 100, 16);
	for (unsigned turn = 1; turn <= 3; turn++) {
		soft_qp_batch_end(testbed.hosts[1].transport);
		hosts_flush();
		assert_int_equal(sent_read_responses, turn * 64 + 1);
	}
	pair_close(&other);
}

/* Messages are limited to 1 GiB: with more packets, PSNs do not distinguish new from repeated packets. */
TEST(messages_above_1_gib_are_rejected, NULL, bench_close)
{
	static const uint8_t opcodes[] = { OPCODE_WRITE_FIRST, OPCODE_READ_REQUEST };

	for (unsigned turn = 0; turn < 3; turn++) {
		struct packet packet;

		responder_open(4);
		bench.region->length = (size_t)3 << 30; /* not allocated: the test fails if it is accessed */
		packet = bench_packet(opcodes[turn % 2], 100, turn % 2 ? 0 : 1024);
		packet.remote.length = (1u << 30) + (turn < 2);
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		bench_run();
		assert_int_equal(sent_nak_access, turn < 2);
		assert_int_equal(sent_read_responses, 0);
		assert_int_equal(bench.region->memory[0], turn < 2);
		assert_int_equal(testbed.hosts[1].failures, turn < 2);
	}
}

/* Delivers the packet. Fails if it changes the queue pair or causes a response. */
static void assert_ignored(const struct packet *packet)
{
	struct soft_qp *qp = qp_of(&bench.pair, 1);
	struct soft_qp before = *qp;
	unsigned before_count =
		sent_acks + sent_nak_sequence + sent_read_responses + sent_nak_invalid + sent_nak_access + sent_rnr_nak;
	unsigned cm_packets = testbed.hosts[1].cm_packets;
	struct host *host = &testbed.hosts[1];

	soft_qp_receive(host->transport, host->socket, &testbed.hosts[0].address, packet);
	assert_memory_equal(&before, qp, sizeof(before));
	soft_qp_batch_end(host->transport);
	hosts_flush();
	assert_int_equal(sent_acks + sent_nak_sequence + sent_read_responses + sent_nak_invalid + sent_nak_access +
				 sent_rnr_nak,
			 before_count);
	assert_int_equal(testbed.hosts[1].cm_packets, cm_packets);
	assert_int_equal(testbed.hosts[1].failures, 0);
}

static void send_read(uint32_t psn, uint32_t offset, uint32_t length)
{
	struct packet packet = bench_packet(OPCODE_READ_REQUEST, psn, length);

	packet.remote.address += offset;
	packet.pad = 0;
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	bench_run();
}

/* A repeated READ must lie within a responder resource: otherwise a sender could probe keys, or end the connection with
 * one forged packet. */
TEST(repeated_read_must_match_resource, NULL, bench_close)
{
	static const struct {
		uint32_t psn, key, offset, length;
	} rows[] = {
		{ 102, 1, 0, 3000 },	{ 102, 0, 1, 3000 },	{ 102, 0, 0xffffffff, 3000 },
		{ 102, 0, 0, 3001 },	{ 102, 0, 0, 0 },	{ 103, 0, 0, 1976 },
		{ 103, 0, 1024, 1977 }, { 104, 0, 2048, 953 },	{ 101, 0, 0, 3000 },
		{ 100, 0, 0, 16 },	{ 106, 1, 0, 16 },	{ 107, 1, 0, 0 },
		{ 107, 0, 0, 1 },	{ 107, 0, 0, 1 << 30 }, { 105, 0, 3072, 16 },
	};

	responder_open(4);
	bench_send(OPCODE_WRITE_ONLY, 100, 16);
	bench_send(OPCODE_WRITE_ONLY, 101, 16);
	send_read(102, 0, 3000);
	bench_send(OPCODE_WRITE_ONLY, 105, 16);
	send_read(106, 0, 16);
	send_read(107, 0, 0);
	bench_send(OPCODE_WRITE_ONLY, 108, 16);
	bench_run();
	assert_int_equal(sent_read_responses, 5);
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct packet packet = bench_packet(OPCODE_READ_REQUEST, rows[row].psn, rows[row].length);

		packet.remote.key += rows[row].key;
		packet.remote.address += rows[row].offset;
		assert_ignored(&packet);
	}
	send_read(102, 0, 3000);
	assert_int_equal(sent_read_responses, 8);
	send_read(103, 1024, 1976);
	assert_int_equal(sent_read_responses, 10);
	assert_int_equal(sent_psn, 104);
	send_read(103, 1024, 1024);
	assert_int_equal(sent_read_responses, 11);
	assert_int_equal(sent_psn, 103);
	send_read(107, 0, 0);
	assert_int_equal(sent_read_responses, 12);
}

/* The responder keeps a resource for each READ that the peer may have outstanding. The peer has the responses of all
 * earlier READs. */
TEST(old_read_resources_are_dropped, NULL, bench_close)
{
	struct packet packet;

	responder_open(3);
	for (uint32_t psn = 100; psn < 109; psn++)
		send_read(psn, 0, 16);
	for (uint32_t psn = 100; psn < 106; psn++) {
		packet = bench_packet(OPCODE_READ_REQUEST, psn, 16);
		assert_ignored(&packet);
	}
	for (uint32_t psn = 106; psn < 109; psn++) {
		sent_read_responses = 0;
		send_read(psn, 0, 16);
		assert_int_equal(sent_read_responses, 1);
	}
}

/* A repeated READ of a destroyed region gets a NAK, as a new READ does. */
TEST(repeated_read_of_destroyed_region_fails, NULL, bench_close)
{
	struct region *destroyed;
	struct packet packet;

	responder_open(4);
	destroyed = region_of(1, 100, REGION_REMOTE_READ);
	packet = bench_packet(OPCODE_READ_REQUEST, 100, 16);
	packet.remote.key = destroyed->remote_key;
	packet.remote.address = (uintptr_t)destroyed->memory;
	packet.pad = 0;
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	bench_run();
	assert_int_equal(sent_read_responses, 1);
	soft_region_destroy(destroyed);
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	bench_run();
	assert_int_equal(sent_read_responses, 1);
	assert_int_equal(sent_nak_access, 1);
	assert_int_equal(sent_psn, 100);
	assert_int_equal(testbed.hosts[1].failures, 1);
}

/* A new process can have the address of an exited one and, by chance, the same QPN. The old peer's packets do not count
 * as duplicates if their PSNs precede the connection's first PSN. */
TEST(psns_before_connection_are_dropped, NULL, bench_close)
{
	static const uint32_t behind[] = { 2, 1000, 0x700000 };

	responder_open(4);
	bench_send(OPCODE_READ_REQUEST, 100, 16);
	bench_run();
	assert_int_equal(sent_read_responses, 1);
	for (size_t i = 0; i < LENGTH(behind); i++) {
		struct packet packet = bench_packet(OPCODE_READ_REQUEST, psn_add(101, PSN_MASK + 1 - behind[i]), 16);

		packet.pad = 0;
		packet.remote.key++;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		bench_send(OPCODE_WRITE_ONLY, packet.psn, 16);
		bench_run();
	}
	assert_int_equal(sent_read_responses, 1);
	assert_int_equal(sent_acks + sent_nak_access + sent_nak_sequence, 0);
	assert_int_equal(testbed.hosts[1].failures, 0);
	bench_send(OPCODE_READ_REQUEST, 100, 16);
	bench_run();
	assert_int_equal(sent_read_responses, 2);
}

/* A packet from the peer with a PSN outside the receive window is dropped without a response. */
TEST(psns_outside_window_are_dropped, NULL, bench_close)
{
	static const uint8_t opcodes[] = { OPCODE_WRITE_ONLY, OPCODE_READ_REQUEST, OPCODE_SEND_ONLY, OPCODE_ACKNOWLEDGE,
					   OPCODE_READ_RESPONSE_ONLY };
	struct soft_qp *qp, before;

	responder_open(4);
	qp = bench.pair.ends[1].qp;
	before = *qp;
	for (size_t opcode = 0; opcode < LENGTH(opcodes); opcode++)
		for (uint32_t ahead = PSN_AHEAD_MAX + 1; ahead <= PSN_MASK; ahead += 99991) {
			struct packet packet =
				bench_packet(opcodes[opcode], psn_add(bench.psn, ahead), opcode < 3 ? 16 : 0);
			struct host *host = &testbed.hosts[1];

			soft_qp_receive(host->transport, host->socket, &testbed.hosts[0].address, &packet);
		}
	assert_memory_equal(&before, qp, sizeof(before));
	assert_int_equal(testbed.hosts[1].cm_packets, 0);
	assert_int_equal(bench.region->memory[0], 1);
	bench_run();
	assert_int_equal(sent_acks + sent_nak_sequence + sent_read_responses + sent_nak_invalid + sent_nak_access, 0);
}

TEST(gap_gets_one_nak, NULL, bench_close)
{
	responder_open(4);
	for (uint32_t psn = 101; psn < 110; psn++) {
		struct packet packet = bench_packet(OPCODE_WRITE_ONLY, psn, 16);

		packet.ack_request = false;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		network_run(CLOCK_NS_PER_MS);
	}
	assert_int_equal(sent_nak_sequence, 1);
	assert_int_equal(sent_psn, 100);
	/* A resent packet behind the same gap. */
	bench_send(OPCODE_WRITE_ONLY, 101, 16);
	bench_run();
	assert_int_equal(sent_nak_sequence, 2);
	assert_int_equal(sent_acks, 0);
	/* PSNs too far ahead, or before the first PSN of the connection. */
	bench_send(OPCODE_WRITE_ONLY, 0x700000, 16);
	bench_send(OPCODE_WRITE_ONLY, 90, 16);
	bench_run();
	assert_int_equal(sent_nak_sequence + sent_acks, 2);
	assert_int_equal(bench.region->memory[0], 1);
	bench_send(OPCODE_WRITE_ONLY, 100, 16);
	bench_run();
	assert_int_equal(sent_acks, 1);
	assert_int_equal(sent_psn, 100);
	assert_int_equal(bench.region->memory[0], 0);
}

/* A packet with AckReq behind a gap gets the NAK again, at most twice. */
TEST(ack_request_repeats_nak, NULL, bench_close)
{
	responder_open(4);
	for (uint32_t psn = 101; psn < 120; psn++) {
		struct packet packet = bench_packet(OPCODE_WRITE_ONLY, psn, 16);

		packet.ack_request = psn % 4 == 0;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		network_run(CLOCK_NS_PER_MS);
		/* One NAK at the gap, then one for each of the first two AckReq. */
		assert_int_equal(sent_nak_sequence, psn < 104 ? 1 : psn < 108 ? 2 : 3);
		assert_int_equal(sent_acks, 0);
	}
}

/* Linux rxe retransmits once per NAK, and again only after an ACK: each NAK follows an ACK. */
TEST(nak_follows_ack, NULL, bench_close)
{
	static const uint32_t missing[] = { 102, 105, 106 };
	unsigned index = 0;

	responder_open(4);
	for (uint32_t psn = 100; psn < 110; psn++) {
		struct packet packet = bench_packet(OPCODE_WRITE_ONLY, psn, 16);
		bool is_missing = index < LENGTH(missing) && psn == missing[index];

		packet.psn += is_missing;
		packet.ack_request = false;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		network_run(CLOCK_NS_PER_MS);
		if (!is_missing)
			continue;
		index++;
		assert_int_equal(sent_acks, index);
		assert_int_equal(sent_nak_sequence, index);
		assert_int_equal(sent_psn, psn);
		/* The missing packet. */
		packet.psn = psn;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	}
	assert_int_equal(index, LENGTH(missing));
}

TEST(acks_are_coalesced, NULL, bench_close)
{
	responder_open(4);
	network->read_delay = CLOCK_NS_PER_MS;
	for (uint32_t psn = 100; psn < 150; psn++)
		bench_send(OPCODE_WRITE_ONLY, psn, 16);
	bench_run();
	assert_int_equal(sent_acks, 1);
	assert_int_equal(sent_psn, 149);
	/* A WRITE behind a READ: the ACK follows the READ response. */
	bench_send(OPCODE_READ_REQUEST, 150, 65536);
	bench_send(OPCODE_WRITE_ONLY, 214, 16);
	bench_run();
	assert_int_equal(sent_read_responses, 64);
	assert_int_equal(sent_acks, 2);
	assert_int_equal(sent_psn, 214);
	/* Duplicates: the READ is executed again from its PSN, the WRITE is not. */
	memset(bench.region->memory, 5, 16);
	bench_send(OPCODE_WRITE_ONLY, 120, 16);
	bench_run();
	assert_int_equal(sent_acks, 3);
	assert_int_equal(sent_psn, 214);
	assert_int_equal(bench.region->memory[0], 5);
	send_read(210, 60 * 1024, 4096);
	assert_int_equal(sent_read_responses, 68);
}

/* A requester takes an ACK with the PSN of a READ for the READ response. An ACK carries the PSN of the last SEND or
 * WRITE. If there were only READs, no ACK is sent. */
TEST(ack_never_carries_psn_of_read, NULL, bench_close)
{
	responder_open(4);
	bench_send(OPCODE_READ_REQUEST, 100, 3000);
	bench_send(OPCODE_READ_REQUEST, 104, 16);
	bench_run();
	assert_int_equal(sent_read_responses, 3);
	assert_int_equal(sent_nak_sequence, 1);
	bench_send(OPCODE_READ_REQUEST, 103, 16);
	bench_send(OPCODE_WRITE_ONLY, 102, 16);
	bench_run();
	soft_qp_stop(bench.pair.ends[1].qp);
	hosts_flush();
	bench_run();
	assert_int_equal(sent_acks, 0);

	responder_open(4);
	bench_send(OPCODE_WRITE_ONLY, 100, 16);
	bench_send(OPCODE_READ_REQUEST, 101, 3000);
	bench_run();
	/* The READ response implicitly acknowledges the WRITE. */
	assert_int_equal(sent_read_responses, 3);
	bench_send(OPCODE_WRITE_ONLY, 100, 16);
	bench_run();
	assert_int_equal(acked_psn, 100);
	assert_int_equal(sent_psn, 100);
	sent_acks = 0;
	bench_send(OPCODE_WRITE_ONLY, 105, 16);
	bench_run();
	assert_int_equal(sent_nak_sequence, 1);
	assert_int_equal(sent_psn, 104);
	assert_int_equal(sent_acks, 0);
	/* PSN 102 belongs to the READ. */
	bench_send(OPCODE_WRITE_ONLY, 102, 16);
	bench_run();
	assert_int_equal(sent_acks, 0);
	soft_qp_stop(bench.pair.ends[1].qp);
	hosts_flush();
	assert_true(sent_acks > 0);
	assert_int_equal(acked_psn, 100);
	/* The same after the queue pair has stopped. */
	sent_acks = 0;
	bench_send(OPCODE_WRITE_ONLY, 102, 16);
	bench_run();
	assert_int_equal(sent_acks, 0);
}

/* The MSN of a response counts completed messages, not packets. */
TEST(msn_counts_messages, NULL, bench_close)
{
	static const struct {
		uint8_t opcode;
		uint32_t length, messages;
	} rows[] = {
		{ OPCODE_WRITE_ONLY, 16, 1 },	{ OPCODE_WRITE_FIRST, 1024, 1 },  { OPCODE_WRITE_MIDDLE, 1024, 1 },
		{ OPCODE_WRITE_LAST, 1024, 2 }, { OPCODE_READ_REQUEST, 3000, 3 }, { OPCODE_WRITE_ONLY, 0, 4 },
	};
	uint32_t psn = 100;

	responder_open(4);
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct packet packet = bench_packet(rows[row].opcode, psn, rows[row].length);

		if (rows[row].opcode == OPCODE_WRITE_FIRST)
			packet.remote.length = 3072;
		packet.pad = packet_pad(packet.length);
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		bench_run();
		assert_int_equal(sent_msn, rows[row].messages);
		psn += rows[row].opcode == OPCODE_READ_REQUEST ? 3 : 1;
		assert_int_equal(sent_psn, psn - 1);
	}
}

static void save_completion(void *context, struct host *host, const struct reported *reported)
{
	struct completion *saved = context;

	*saved = reported->completion;
}

/* SEND packets of host 0, and those with AckReq. */
static unsigned send_packets, ack_requests;

static bool count_requests_and_responses(struct network *where, const struct host *from, struct packet *packet)
{
	if (from == &testbed.hosts[0] && packet->opcode == OPCODE_SEND_ONLY) {
		send_packets++;
		ack_requests += packet->ack_request;
	}
	return count_responses(where, from, packet);
}

static void send_one(const struct work *work)
{
	struct work receive = { .kind = WORK_RECEIVE, .region = bench.region, .offset = 100, .length = 100 };

	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 1), &receive, 1), OUTCOME_OK);
	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), work, 1), OUTCOME_OK);
	hosts_flush();
}

/* Unsignalled work requests do not set AckReq: the ACK of a later work request covers them. If none follows,
 * the time-out sends the last one again with AckReq. After a pause the next ones set AckReq at once. */
TEST(unsignalled_work_requests_no_ack, NULL, bench_close)
{
	struct work silent = { .kind = WORK_SEND, .length = 20, .unsignalled = true };
	struct work reported = { .kind = WORK_SEND, .length = 20 };
	const struct requester *requester;
	uint32_t window;

	responder_open(4);
	testbed.tap = count_requests_and_responses;
	send_packets = ack_requests = 0;
	requester = &qp_of(&bench.pair, 0)->requester;
	silent.region = reported.region = bench.region;
	for (send_packets = 0; send_packets < 64;) {
		send_one(&silent);
		network_run(CLOCK_NS_PER_MS / 2);
	}
	assert_int_equal(ack_requests, 64);

	send_packets = ack_requests = 0;
	send_one(&silent);
	send_one(&reported);
	assert_true(soft_qp_has_signalled_work(qp_of(&bench.pair, 0)));
	network_run(CLOCK_NS_PER_MS / 2);
	assert_int_equal(send_packets, 2);
	assert_int_equal(ack_requests, 1);
	assert_int_equal(sent_acks, 1 + 64);
	assert_int_equal(requester->ring.count, 0);

	window = requester->cwnd;
	send_one(&silent);
	network_run(CLOCK_NS_PER_MS / 2);
	assert_int_equal(ack_requests, 1);
	assert_int_equal(requester->ring.count, 1);
	/* A disconnecting queue pair does not wait for unsignalled work. */
	assert_false(soft_qp_has_signalled_work(qp_of(&bench.pair, 0)));
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(send_packets, 4);
	assert_int_equal(ack_requests, 2);
	assert_int_equal(requester->ring.count, 0);
	/* The congestion window is not reduced. */
	assert_int_equal(requester->cwnd, window);

	send_one(&silent);
	network_run(CLOCK_NS_PER_MS / 2);
	assert_int_equal(send_packets, 5);
	assert_int_equal(ack_requests, 3);
	assert_int_equal(requester->ring.count, 0);
}

/* The share of the window shrinks while packets without AckReq fill it. One more packet, with AckReq, is sent so that
 * an ACK opens the window. */
TEST(reduced_window_requests_ack, NULL, bench_close)
{
	struct work silent = { .kind = WORK_SEND, .length = 20, .unsignalled = true };
	struct work reads = { .kind = WORK_READ, .length = 8 * 1024 };
	struct requester *requester;

	for (unsigned reading = 0; reading < 2; reading++) {
		responder_open(16);
		testbed.tap = count_requests_and_responses;
		requester = &qp_of(&bench.pair, 0)->requester;
		silent.region = reads.region = bench.region;
		reads.remote_address = (uintptr_t)bench.region->memory;
		reads.remote_key = bench.region->remote_key;
		requester->cwnd = 64;
		for (send_packets = 0; send_packets < 64;) {
			send_one(&silent);
			network_run(CLOCK_NS_PER_MS / 2);
		}
		for (send_packets = ack_requests = 0; send_packets < 12;)
			send_one(&silent);
		assert_int_equal(ack_requests, 0);
		assert_int_equal(requester->ring.count, 12);

		testbed.hosts[0].transport->busy_qps += 1000;
		if (reading)
			assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), &reads, 1), OUTCOME_OK);
		else
			send_one(&silent);
		network_run(CLOCK_NS_PER_MS);
		assert_int_equal(requester->ring.count, 0);
		assert_int_equal(send_packets, 12 + !reading);
	}
}

/* A WRITE with immediate consumes a receive. No command of ours sends it. */
TEST(write_with_immediate_consumes_receive, NULL, bench_close)
{
	struct work receive = { .kind = WORK_RECEIVE };
	struct completion taken = { .length = 1 };

	responder_open(4);
	receive.region = bench.region;
	testbed.completed = save_completion;
	testbed.context = &taken;
	bench_send(OPCODE_WRITE_ONLY_IMMEDIATE, 100, 16);
	bench_run();
	assert_int_equal(sent_rnr_nak, 1);
	assert_int_equal(sent_psn, 100);
	assert_int_equal(bench.region->memory[0], 1);
	assert_int_equal(soft_qp_post(bench.pair.ends[1].qp, &receive, 1), OUTCOME_OK);
	bench_send(OPCODE_WRITE_ONLY_IMMEDIATE, 100, 16);
	bench_run();
	assert_int_equal(sent_acks, 1);
	assert_int_equal(bench.region->memory[0], 0);
	/* The completion has length 0: the data went to the remote region. */
	assert_int_equal(taken.kind, WORK_RECEIVE);
	assert_int_equal(taken.length, 0);
	assert_true(taken.has_immediate);
}

TEST(packets_of_other_senders_are_dropped, NULL, bench_close)
{
	struct packet packet;
	struct address other_address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 3 } }, another_port;
	struct host *host;

	responder_open(4);
	host = &testbed.hosts[1];
	packet = bench_packet(OPCODE_WRITE_ONLY, 100, 16);
	soft_qp_receive(host->transport, host->socket, &other_address, &packet);
	soft_qp_receive(host->transport, testbed.hosts[0].socket, &testbed.hosts[0].address, &packet);
	packet.pkey = 0x1234;
	soft_qp_receive(host->transport, host->socket, &testbed.hosts[0].address, &packet);
	packet.pkey = PACKET_PKEY;
	packet.opcode = OPCODE_DATAGRAM;
	soft_qp_receive(host->transport, host->socket, &testbed.hosts[0].address, &packet);
	soft_qp_batch_end(host->transport);
	hosts_flush();
	assert_int_equal(host->cm_packets, 0);
	assert_int_equal(sent_acks + sent_nak_sequence, 0);
	assert_int_equal(bench.region->memory[0], 1);
	/* Packets from any UDP source port of the peer are accepted. */
	packet.opcode = OPCODE_WRITE_ONLY;
	another_port = testbed.hosts[0].address;
	another_port.port ^= 1;
	soft_qp_receive(host->transport, host->socket, &another_port, &packet);
	soft_qp_batch_end(host->transport);
	hosts_flush();
	assert_int_equal(host->cm_packets, 1);
	assert_int_equal(sent_acks, 1);
}

/* A region belongs to the process, as with verbs to the protection domain. */
TEST(key_is_valid_on_any_connection, NULL, bench_close)
{
	struct packet packet;
	struct pair other;

	responder_open(4);
	pair_open(&other, &bench.attr);
	bench_send(OPCODE_WRITE_ONLY, 100, 16);
	packet = bench_packet(OPCODE_WRITE_ONLY, 100, 32);
	packet.destination = qp_of(&other, 1)->by_qpn.key;
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	bench_run();
	assert_int_equal(bench.region->memory[31], 0);
	assert_int_equal(bench.region->memory[32], 1);
	assert_int_equal(sent_acks, 2);
	assert_int_equal(sent_nak_access, 0);
	pair_close(&other);
}

/* A stopped queue pair drops new requests, and acknowledges duplicates: its last ACK may be lost. */
TEST(stopped_qp_acknowledges_duplicates, NULL, bench_close)
{
	unsigned final_acks;

	responder_open(4);
	bench_send(OPCODE_WRITE_ONLY, 100, 16);
	bench_run();
	soft_qp_stop(bench.pair.ends[1].qp);
	hosts_flush();
	final_acks = sent_acks;
	assert_in_range(final_acks, 2, 4);
	memset(bench.region->memory, 5, 16);
	for (unsigned repeat = 1; repeat < 4; repeat++) {
		bench_send(OPCODE_WRITE_ONLY, 100, 16);
		bench_run();
		assert_int_equal(sent_acks, final_acks + repeat);
		assert_int_equal(sent_psn, 100);
		soft_qp_stop(bench.pair.ends[1].qp);
	}
	sent_acks = 0;
	bench_send(OPCODE_WRITE_ONLY, 101, 16);
	bench_send(OPCODE_WRITE_ONLY, 103, 16);
	bench_send(OPCODE_READ_REQUEST, 101, 16);
	bench_run();
	assert_int_equal(sent_acks + sent_nak_sequence + sent_read_responses + sent_nak_invalid, 0);
	assert_int_equal(bench.region->memory[0], 5);
	assert_int_equal(testbed.hosts[1].failures, 0);
}

TEST(qpns_are_unique)
{
	enum {
		COUNT = 20000
	};
	static uint8_t seen[(PSN_MASK + 1) / 8];
	struct soft_endpoint endpoint;

	qp_open(5);
	memset(seen, 0, sizeof(seen));
	for (unsigned count = 0; count < (is_valgrind() ? 500u : (unsigned)COUNT); count++) {
		uint32_t number;

		endpoint_prepare(&endpoint, &testbed.hosts[0], ENDPOINT_CONNECTION, 1, 1);
		number = endpoint.qp->by_qpn.key;
		assert_in_range(number, 2, 0xfffffe);
		assert_false(seen[number / 8] & 1 << number % 8);
		seen[number / 8] |= (uint8_t)(1 << number % 8);
		soft_qp_destroy(endpoint.qp);
	}
	qp_close();
}

TEST(queue_pairs_are_limited)
{
	static struct soft_qp *qps[65536];
	struct soft_endpoint endpoint;

	qp_open(1);
	for (size_t index = 0; index < LENGTH(qps); index++) {
		endpoint_prepare(&endpoint, &testbed.hosts[0], ENDPOINT_CONNECTION, 1, 1);
		qps[index] = endpoint.qp;
	}
	assert_int_equal(soft_qp_create(&endpoint.base), OUTCOME_INTERNAL);
	assert_string_equal(endpoint.base.transport->error.cause, "too many queue pairs: the maximum is 65536");
	soft_qp_destroy(qps[0]);
	endpoint_prepare(&endpoint, &testbed.hosts[0], ENDPOINT_CONNECTION, 1, 1);
	qps[0] = endpoint.qp;
	for (size_t index = 0; index < LENGTH(qps); index++)
		soft_qp_destroy(qps[index]);
	qp_close();
}

/* Each bit is set in about half of the keys, and all keys differ. */
TEST(region_keys_are_random)
{
	enum {
		COUNT = 1000,
		BITS = 32
	};
	struct region *regions[COUNT];
	unsigned set[BITS] = { 0 };

	qp_open(1);
	for (unsigned count = 0; count < COUNT; count++) {
		regions[count] = region_of(0, 1, REGION_REMOTE_READ);
		assert_int_not_equal(regions[count]->remote_key, 0);
		for (unsigned bit = 0; bit < BITS; bit++)
			set[bit] += regions[count]->remote_key >> bit & 1;
		for (unsigned other = 0; other < count; other++)
			assert_int_not_equal(regions[count]->remote_key, regions[other]->remote_key);
	}
	for (unsigned bit = 0; bit < BITS; bit++)
		assert_in_range(set[bit], COUNT / 2 - 128, COUNT / 2 + 128);
	for (unsigned count = 0; count < COUNT; count++)
		soft_region_destroy(regions[count]);
	qp_close();
}

/* The command stops the queue pair in the callback of the last message. The peer gets the ACK. */
static void stop_at_receive(void *context, struct host *host, const struct reported *reported)
{
	struct counter *counter = context;

	if (reported->completion.kind == WORK_RECEIVE)
		soft_qp_stop(reported->endpoint->qp);
	else if (host == &testbed.hosts[0])
		counter->good += reported->completion.status == COMPLETION_OK;
}

TEST(qp_stopped_in_callback_sends_ack, NULL, bench_close)
{
	struct counter counter = { .wanted = 1 };
	struct work receive = { .kind = WORK_RECEIVE, .length = 100 };
	struct work send = { .kind = WORK_SEND, .length = 100 };
	struct region *source;

	responder_open(4);
	source = region_of(0, 100, 0);
	receive.region = bench.region;
	send.region = source;
	testbed.completed = stop_at_receive;
	testbed.context = &counter;
	assert_int_equal(soft_qp_post(bench.pair.ends[1].qp, &receive, 1), OUTCOME_OK);
	assert_int_equal(soft_qp_post(bench.pair.ends[0].qp, &send, 1), OUTCOME_OK);
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(counter.good, 1);
	soft_region_destroy(source);
}

/* ---- post errors ---- */

TEST(post_errors, NULL, bench_close)
{
	struct soft_endpoint fresh;
	struct region *region;
	struct work work;
	struct soft_qp *qp;

	responder_open(0);
	testbed.hosts[0].dead = true;
	qp = bench.pair.ends[0].qp;
	region = region_of(0, 1, 0);
	work = (struct work){ .kind = WORK_RECEIVE, .region = region, .length = 1 };
	for (unsigned count = 0; count < 16; count++)
		assert_int_equal(post_captured(qp, &work), OUTCOME_OK);
	assert_int_equal(post_captured(qp, &work), OUTCOME_INTERNAL);
	/* A probe uses no entry of the send queue. */
	work.kind = WORK_SEND;
	soft_qp_probe(qp);
	for (unsigned count = 0; count < 16; count++)
		assert_int_equal(post_captured(qp, &work), OUTCOME_OK);
	assert_int_equal(post_captured(qp, &work), OUTCOME_INTERNAL);
	soft_qp_stop(qp);
	assert_int_equal(post_captured(qp, &work), OUTCOME_OK);

	endpoint_prepare(&fresh, &testbed.hosts[0], ENDPOINT_CONNECTION, 1, 1);
	work.kind = WORK_RECEIVE;
	assert_int_equal(post_captured(fresh.qp, &work), OUTCOME_OK);
	soft_qp_destroy(fresh.qp);
	soft_region_destroy(region);
}
