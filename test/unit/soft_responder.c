/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* The rules that a queue pair of a connection holds its peer and its command to, packet by packet. */
#include "test/network/qp.h"

/* The acknowledgements that host 1 says. */
static unsigned said_sequence, said_invalid, said_access, said_rnr, said_good, said_data;
static uint32_t said_psn, said_msn, acked_psn;

static bool listen_to_answers(struct network *where, const struct host *from, struct packet *packet)
{
	(void)where;
	if (from != &testbed.hosts[1])
		return true;
	said_psn = packet->psn;
	said_msn = packet->acknowledgement.msn;
	if (packet->opcode != OPCODE_ACKNOWLEDGE) {
		said_data++;
		return true;
	}
	switch (syndrome_kind(packet->acknowledgement.syndrome)) {
	case SYNDROME_ACK:
		assert_int_equal(packet->acknowledgement.syndrome, CREDITS_UNLIMITED);
		said_good++;
		acked_psn = packet->psn;
		break;
	case SYNDROME_RNR:
		said_rnr++;
		break;
	default:
		said_sequence += syndrome_value(packet->acknowledgement.syndrome) == NAK_SEQUENCE;
		said_invalid += syndrome_value(packet->acknowledgement.syndrome) == NAK_INVALID_REQUEST;
		said_access += syndrome_value(packet->acknowledgement.syndrome) == NAK_REMOTE_ACCESS;
		break;
	}
	return true;
}

static unsigned length_errors, other_errors;

static void count_errors(void *owner, struct host *host, const struct told *told)
{
	(void)owner;
	if (told->completion.status == COMPLETION_LENGTH && host == &testbed.hosts[1])
		length_errors++;
	else if (told->completion.status != COMPLETION_OK)
		other_errors += told->completion.status == COMPLETION_REMOTE_REQUEST;
}

static void rules_open(struct bench *bench, unsigned reads)
{
	bench_open(bench, reads);
	testbed.tap = listen_to_answers;
	said_sequence = said_invalid = said_access = said_rnr = said_good = said_data = 0;
	length_errors = other_errors = 0;
	testbed.completed = count_errors;
}

static void longer_than_the_receive(void **state)
{
	(void)state;
	for (uint32_t length = 1; length < 5000; length += 700) {
		struct bench bench;
		struct work receive = { .kind = WORK_RECEIVE, .length = length - 1 };
		struct work send = { .kind = WORK_SEND, .length = length };
		struct region *source;

		rules_open(&bench, 4);
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
		bench_close(&bench);
	}
}

static void wrong_orders_are_refused(void **state)
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

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct bench bench;
		struct work receive = { .kind = WORK_RECEIVE, .length = 60000 };
		size_t count = 0;

		rules_open(&bench, 4);
		receive.region = bench.region;
		assert_int_equal(soft_qp_post(bench.pair.ends[1].qp, &receive, 1), OUTCOME_OK);
		while (count < 3 && rows[row].lengths[count]) {
			bench_say(&bench, rows[row].opcodes[count], bench.psn + (uint32_t)count,
				  rows[row].lengths[count]);
			count++;
		}
		if (count < 3 && rows[row].opcodes[count])
			bench_say(&bench, rows[row].opcodes[count], bench.psn + (uint32_t)count, 0);
		bench_run();
		if (said_invalid != 1)
			fail_msg("row %zu: %u refusals", row, said_invalid);
		assert_int_equal(said_sequence + said_access + said_rnr, 0);
		assert_int_equal(testbed.hosts[1].failures, 1);
		/* Another try gets the same answer, and only that. */
		bench_say(&bench, OPCODE_SEND_ONLY, bench.psn + (uint32_t)count, 4);
		bench_say(&bench, OPCODE_SEND_ONLY, bench.psn + (uint32_t)count + 1, 4);
		bench_run();
		assert_int_equal(said_invalid, 2);
		assert_int_equal(testbed.hosts[1].failures, 1);
		bench_close(&bench);
	}
}

/* In its turn; else it is passed over, as it says nothing of what it would be a gap in or a repeat of. */
static void unknown_operations_are_refused(void **state)
{
	(void)state;
	for (unsigned opcode = 0x12; opcode < 0x20; opcode++) {
		for (size_t length = 0; length <= 28; length += 28) {
			bool request = opcode != 0x12; /* the answer to an atomic operation, for which nobody asked */
			struct bench bench;
			struct packet packet;
			uint8_t bytes[NETWORK_FRAME_MOST] = { 0 };
			size_t header;

			rules_open(&bench, 4);
			packet = bench_packet(&bench, OPCODE_SEND_ONLY, bench.psn + 1, length);
			header = packet_write(&packet, bytes);
			bytes[0] = (uint8_t)opcode;
			host_send(&testbed.hosts[0], &testbed.hosts[1], bytes, header + length);
			packet.psn = bench.psn - 1;
			packet_write(&packet, bytes);
			bytes[0] = (uint8_t)opcode;
			host_send(&testbed.hosts[0], &testbed.hosts[1], bytes, header + length);
			bench_run();
			assert_int_equal(said_invalid + said_sequence + said_access + said_rnr + said_good, 0);
			assert_int_equal(testbed.hosts[1].failures, 0);

			packet.psn = bench.psn;
			packet_write(&packet, bytes);
			bytes[0] = (uint8_t)opcode;
			for (unsigned time = 1; time <= 2; time++) {
				host_send(&testbed.hosts[0], &testbed.hosts[1], bytes, header + length);
				bench_run();
				assert_int_equal(said_invalid, request ? time : 0);
			}
			assert_int_equal(testbed.hosts[1].failures, request ? 1 : 0);
			assert_int_equal(said_sequence + said_access + said_rnr + said_good, 0);
			if (request)
				assert_int_equal(said_psn, bench.psn);
			bench_close(&bench);
		}
	}
}

static void write_is_held_to_its_length(void **state)
{
	struct bench bench;
	struct packet packet;

	(void)state;
	for (unsigned turn = 0; turn < 3; turn++) {
		rules_open(&bench, 4);
		packet = bench_packet(&bench, OPCODE_WRITE_FIRST, 100, 1024);
		packet.remote.length = turn == 0 ? 1000 : turn == 1 ? 1500 : 2000;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		if (turn)
			bench_say(&bench, turn == 1 ? OPCODE_WRITE_MIDDLE : OPCODE_WRITE_LAST, 101,
				  turn == 1 ? 1024 : 900);
		bench_run();
		assert_int_equal(said_invalid, 1);
		assert_int_equal(bench.region->memory[turn ? 1024 : 0], 1);
		bench_close(&bench);
	}
}

static void reads_beyond_the_agreement(void **state)
{
	struct bench bench;

	(void)state;
	rules_open(&bench, 0);
	bench_say(&bench, OPCODE_READ_REQUEST, 100, 16);
	bench_run();
	assert_int_equal(said_invalid, 1);
	assert_int_equal(said_data, 0);
	bench_close(&bench);

	rules_open(&bench, 2);
	for (uint32_t read = 0; read < 3; read++)
		bench_say(&bench, OPCODE_READ_REQUEST, 100 + read * 64, 65536);
	bench_run();
	assert_int_equal(said_invalid, 1);
	/* The first two are answered all the same. */
	assert_int_equal(said_data, 128);
	bench_close(&bench);

	/* One after the other is no crime. */
	rules_open(&bench, 1);
	for (uint32_t read = 0; read < 3; read++) {
		bench_say(&bench, OPCODE_READ_REQUEST, 100 + read * 64, 65536);
		bench_run();
	}
	assert_int_equal(said_data, 192);
	assert_int_equal(said_invalid, 0);
	bench_close(&bench);
}

/* No message is longer than 1 GiB, whatever memory there is: PSNs would not tell its packets from repeated ones. */
static void messages_beyond_the_limit(void **state)
{
	static const uint8_t opcodes[] = { OPCODE_WRITE_FIRST, OPCODE_READ_REQUEST };

	(void)state;
	for (unsigned turn = 0; turn < 3; turn++) {
		struct bench bench;
		struct packet packet;

		rules_open(&bench, 4);
		bench.region->length = (size_t)3 << 30; /* which there is not: nothing may touch it */
		packet = bench_packet(&bench, opcodes[turn % 2], 100, turn % 2 ? 0 : 1024);
		packet.remote.length = (1u << 30) + (turn < 2);
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		bench_run();
		assert_int_equal(said_access, turn < 2);
		assert_int_equal(said_data, 0);
		assert_int_equal(bench.region->memory[0], turn < 2);
		assert_int_equal(testbed.hosts[1].failures, turn < 2);
		bench_close(&bench);
	}
}

/* That packet arrives, and nothing is carried out, said or counted. */
static void check_changes_nothing(struct bench *bench, const struct packet *packet)
{
	struct soft_qp *qp = qp_of(&bench->pair, 1);
	struct soft_qp before = *qp;
	unsigned said = said_good + said_sequence + said_data + said_invalid + said_access + said_rnr;
	unsigned heard = testbed.hosts[1].heard;
	struct host *host = &testbed.hosts[1];

	soft_qp_receive(host->transport, host->socket, &testbed.hosts[0].address, packet, &icrc_good);
	assert_memory_equal(&before, qp, sizeof(before));
	soft_qp_batch_end(host->transport);
	hosts_flush();
	assert_int_equal(said_good + said_sequence + said_data + said_invalid + said_access + said_rnr, said);
	assert_int_equal(testbed.hosts[1].heard, heard);
	assert_int_equal(testbed.hosts[1].failures, 0);
}

static void say_read(struct bench *bench, uint32_t psn, uint32_t offset, uint32_t length)
{
	struct packet packet = bench_packet(bench, OPCODE_READ_REQUEST, psn, length);

	packet.remote.address += offset;
	packet.pad = 0;
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	bench_run();
}

/*
 * What is no part of a READ that is remembered is no repeat of one: else keys could be tried one after the other, or
 * one forged packet could end a connection.
 */
static void repeats_are_parts_of_a_read(void **state)
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
	struct bench bench;

	(void)state;
	rules_open(&bench, 4);
	bench_say(&bench, OPCODE_WRITE_ONLY, 100, 16);
	bench_say(&bench, OPCODE_WRITE_ONLY, 101, 16);
	say_read(&bench, 102, 0, 3000);
	bench_say(&bench, OPCODE_WRITE_ONLY, 105, 16);
	say_read(&bench, 106, 0, 16);
	say_read(&bench, 107, 0, 0);
	bench_say(&bench, OPCODE_WRITE_ONLY, 108, 16);
	bench_run();
	assert_int_equal(said_data, 5);
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct packet packet = bench_packet(&bench, OPCODE_READ_REQUEST, rows[row].psn, rows[row].length);

		packet.remote.key += rows[row].key;
		packet.remote.address += rows[row].offset;
		check_changes_nothing(&bench, &packet);
	}
	say_read(&bench, 102, 0, 3000);
	assert_int_equal(said_data, 8);
	say_read(&bench, 103, 1024, 1976);
	assert_int_equal(said_data, 10);
	assert_int_equal(said_psn, 104);
	say_read(&bench, 103, 1024, 1024);
	assert_int_equal(said_data, 11);
	assert_int_equal(said_psn, 103);
	say_read(&bench, 107, 0, 0);
	assert_int_equal(said_data, 12);
	bench_close(&bench);
}

/* As many READs are remembered as the peer may have under way: it has the responses of all before them. */
static void old_reads_are_forgotten(void **state)
{
	struct bench bench;
	struct packet packet;

	(void)state;
	rules_open(&bench, 3);
	for (uint32_t psn = 100; psn < 109; psn++)
		say_read(&bench, psn, 0, 16);
	for (uint32_t psn = 100; psn < 106; psn++) {
		packet = bench_packet(&bench, OPCODE_READ_REQUEST, psn, 16);
		check_changes_nothing(&bench, &packet);
	}
	for (uint32_t psn = 106; psn < 109; psn++) {
		said_data = 0;
		say_read(&bench, psn, 0, 16);
		assert_int_equal(said_data, 1);
	}
	bench_close(&bench);
}

/* Its memory is gone since: the peer is refused, as for a new READ. */
static void repeats_need_their_memory(void **state)
{
	struct bench bench;
	struct region *gone;
	struct packet packet;

	(void)state;
	rules_open(&bench, 4);
	gone = region_of(1, 100, REGION_REMOTE_READ);
	packet = bench_packet(&bench, OPCODE_READ_REQUEST, 100, 16);
	packet.remote.key = gone->remote_key;
	packet.remote.address = (uintptr_t)gone->memory;
	packet.pad = 0;
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	bench_run();
	assert_int_equal(said_data, 1);
	soft_region_destroy(gone);
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	bench_run();
	assert_int_equal(said_data, 1);
	assert_int_equal(said_access, 1);
	assert_int_equal(said_psn, 100);
	assert_int_equal(testbed.hosts[1].failures, 1);
	bench_close(&bench);
}

/*
 * What a process at that address still sends on a connection of one that is gone, whose queue pair had the same number
 * by chance: no repeats of ours, however few of those there were.
 */
static void what_never_was_is_no_repeat(void **state)
{
	static const uint32_t behind[] = { 2, 1000, 0x700000 };
	struct bench bench;

	(void)state;
	rules_open(&bench, 4);
	bench_say(&bench, OPCODE_READ_REQUEST, 100, 16);
	bench_run();
	assert_int_equal(said_data, 1);
	for (size_t i = 0; i < LENGTH(behind); i++) {
		struct packet packet =
			bench_packet(&bench, OPCODE_READ_REQUEST, psn_add(101, PSN_MASK + 1 - behind[i]), 16);

		packet.pad = 0;
		packet.remote.key++;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		bench_say(&bench, OPCODE_WRITE_ONLY, packet.psn, 16);
		bench_run();
	}
	assert_int_equal(said_data, 1);
	assert_int_equal(said_good + said_access + said_sequence, 0);
	assert_int_equal(testbed.hosts[1].failures, 0);
	bench_say(&bench, OPCODE_READ_REQUEST, 100, 16);
	bench_run();
	assert_int_equal(said_data, 2);
	bench_close(&bench);
}

/* Packets of the peer's address that do not know where the connection is: nothing is carried out, said or counted. */
static void other_sequence_numbers_are_not_heard(void **state)
{
	static const uint8_t opcodes[] = { OPCODE_WRITE_ONLY, OPCODE_READ_REQUEST, OPCODE_SEND_ONLY, OPCODE_ACKNOWLEDGE,
					   OPCODE_READ_RESPONSE_ONLY };
	struct bench bench;
	struct soft_qp *qp, before;

	(void)state;
	rules_open(&bench, 4);
	qp = bench.pair.ends[1].qp;
	before = *qp;
	for (size_t opcode = 0; opcode < LENGTH(opcodes); opcode++)
		for (uint32_t ahead = PSN_AHEAD_MAX + 1; ahead <= PSN_MASK; ahead += 99991) {
			struct packet packet =
				bench_packet(&bench, opcodes[opcode], psn_add(bench.psn, ahead), opcode < 3 ? 16 : 0);
			struct host *host = &testbed.hosts[1];

			soft_qp_receive(host->transport, host->socket, &testbed.hosts[0].address, &packet, &icrc_good);
		}
	assert_memory_equal(&before, qp, sizeof(before));
	assert_int_equal(testbed.hosts[1].heard, 0);
	assert_int_equal(bench.region->memory[0], 1);
	bench_run();
	assert_int_equal(said_good + said_sequence + said_data + said_invalid + said_access, 0);
	bench_close(&bench);
}

static void gaps_are_told_once(void **state)
{
	struct bench bench;

	(void)state;
	rules_open(&bench, 4);
	for (uint32_t psn = 101; psn < 110; psn++) {
		struct packet packet = bench_packet(&bench, OPCODE_WRITE_ONLY, psn, 16);

		packet.ack_request = false;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		network_run(CLOCK_NS_PER_MS);
	}
	assert_int_equal(said_sequence, 1);
	assert_int_equal(said_psn, 100);
	/* What comes again, and still without the missing one. */
	bench_say(&bench, OPCODE_WRITE_ONLY, 101, 16);
	bench_run();
	assert_int_equal(said_sequence, 2);
	assert_int_equal(said_good, 0);
	/* Far beyond, or from before the connection: none of this connection's. */
	bench_say(&bench, OPCODE_WRITE_ONLY, 0x700000, 16);
	bench_say(&bench, OPCODE_WRITE_ONLY, 90, 16);
	bench_run();
	assert_int_equal(said_sequence + said_good, 2);
	assert_int_equal(bench.region->memory[0], 1);
	bench_say(&bench, OPCODE_WRITE_ONLY, 100, 16);
	bench_run();
	assert_int_equal(said_good, 1);
	assert_int_equal(said_psn, 100);
	assert_int_equal(bench.region->memory[0], 0);
	bench_close(&bench);
}

/* The peer asks before its window ends, and is told again; but not for each question. */
static void gaps_are_told_again_if_asked(void **state)
{
	struct bench bench;

	(void)state;
	rules_open(&bench, 4);
	for (uint32_t psn = 101; psn < 120; psn++) {
		struct packet packet = bench_packet(&bench, OPCODE_WRITE_ONLY, psn, 16);

		packet.ack_request = psn % 4 == 0;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		network_run(CLOCK_NS_PER_MS);
		/* At once, and at the first two questions. */
		assert_int_equal(said_sequence, psn < 104 ? 1 : psn < 108 ? 2 : 3);
		assert_int_equal(said_good, 0);
	}
	bench_close(&bench);
}

/* Each gap behind some progress: the kernel's soft-RoCE goes back once, and again only after an acknowledgement. */
static void gaps_come_with_an_acknowledgement(void **state)
{
	static const uint32_t missing[] = { 102, 105, 106 };
	struct bench bench;
	unsigned index = 0;

	(void)state;
	rules_open(&bench, 4);
	for (uint32_t psn = 100; psn < 110; psn++) {
		struct packet packet = bench_packet(&bench, OPCODE_WRITE_ONLY, psn, 16);
		bool is_missing = index < LENGTH(missing) && psn == missing[index];

		packet.psn += is_missing;
		packet.ack_request = false;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		network_run(CLOCK_NS_PER_MS);
		if (!is_missing)
			continue;
		index++;
		assert_int_equal(said_good, index);
		assert_int_equal(said_sequence, index);
		assert_int_equal(said_psn, psn);
		/* It comes now. */
		packet.psn = psn;
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	}
	assert_int_equal(index, LENGTH(missing));
	bench_close(&bench);
}

static void acknowledgements_are_coalesced(void **state)
{
	struct bench bench;

	(void)state;
	rules_open(&bench, 4);
	network->wake_time = CLOCK_NS_PER_MS;
	for (uint32_t psn = 100; psn < 150; psn++)
		bench_say(&bench, OPCODE_WRITE_ONLY, psn, 16);
	bench_run();
	assert_int_equal(said_good, 1);
	assert_int_equal(said_psn, 149);
	/* Behind a READ that is in front of it. */
	bench_say(&bench, OPCODE_READ_REQUEST, 150, 65536);
	bench_say(&bench, OPCODE_WRITE_ONLY, 214, 16);
	bench_run();
	assert_int_equal(said_data, 64);
	assert_int_equal(said_good, 2);
	assert_int_equal(said_psn, 214);
	/* Repeated ones: the READ is answered from where it was asked, nothing is written. */
	memset(bench.region->memory, 5, 16);
	bench_say(&bench, OPCODE_WRITE_ONLY, 120, 16);
	bench_run();
	assert_int_equal(said_good, 3);
	assert_int_equal(said_psn, 214);
	assert_int_equal(bench.region->memory[0], 5);
	say_read(&bench, 210, 60 * 1024, 4096);
	assert_int_equal(said_data, 68);
	bench_close(&bench);
}

/*
 * To a requester the PSN of a READ in an ACK is the READ's response. So an ACK names the last SEND or WRITE, whatever
 * is behind it, and there is none where there were only READs.
 */
static void acknowledgements_name_no_read(void **state)
{
	struct bench bench;

	(void)state;
	rules_open(&bench, 4);
	bench_say(&bench, OPCODE_READ_REQUEST, 100, 3000);
	bench_say(&bench, OPCODE_READ_REQUEST, 104, 16);
	bench_run();
	assert_int_equal(said_data, 3);
	assert_int_equal(said_sequence, 1);
	bench_say(&bench, OPCODE_READ_REQUEST, 103, 16);
	bench_say(&bench, OPCODE_WRITE_ONLY, 102, 16);
	bench_run();
	soft_qp_stop(bench.pair.ends[1].qp);
	hosts_flush();
	bench_run();
	assert_int_equal(said_good, 0);
	bench_close(&bench);

	rules_open(&bench, 4);
	bench_say(&bench, OPCODE_WRITE_ONLY, 100, 16);
	bench_say(&bench, OPCODE_READ_REQUEST, 101, 3000);
	bench_run();
	/* The response of the READ says enough. */
	assert_int_equal(said_data, 3);
	bench_say(&bench, OPCODE_WRITE_ONLY, 100, 16);
	bench_run();
	assert_int_equal(acked_psn, 100);
	assert_int_equal(said_psn, 100);
	said_good = 0;
	bench_say(&bench, OPCODE_WRITE_ONLY, 105, 16);
	bench_run();
	assert_int_equal(said_sequence, 1);
	assert_int_equal(said_psn, 104);
	assert_int_equal(said_good, 0);
	/* No WRITE had that PSN. */
	bench_say(&bench, OPCODE_WRITE_ONLY, 102, 16);
	bench_run();
	assert_int_equal(said_good, 0);
	soft_qp_stop(bench.pair.ends[1].qp);
	hosts_flush();
	assert_true(said_good > 0);
	assert_int_equal(acked_psn, 100);
	/* Where it left, too. */
	said_good = 0;
	bench_say(&bench, OPCODE_WRITE_ONLY, 102, 16);
	bench_run();
	assert_int_equal(said_good, 0);
	bench_close(&bench);
}

/* An answer says how many messages were finished, however many packets they have. */
static void messages_are_counted(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t length, messages;
	} rows[] = {
		{ OPCODE_WRITE_ONLY, 16, 1 },	{ OPCODE_WRITE_FIRST, 1024, 1 },  { OPCODE_WRITE_MIDDLE, 1024, 1 },
		{ OPCODE_WRITE_LAST, 1024, 2 }, { OPCODE_READ_REQUEST, 3000, 3 }, { OPCODE_WRITE_ONLY, 0, 4 },
	};
	struct bench bench;
	uint32_t psn = 100;

	(void)state;
	rules_open(&bench, 4);
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct packet packet = bench_packet(&bench, rows[row].opcode, psn, rows[row].length);

		if (rows[row].opcode == OPCODE_WRITE_FIRST)
			packet.remote.length = 3072;
		packet.pad = packet_pad(packet.length);
		host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		bench_run();
		assert_int_equal(said_msn, rows[row].messages);
		psn += rows[row].opcode == OPCODE_READ_REQUEST ? 3 : 1;
		assert_int_equal(said_psn, psn - 1);
	}
	bench_close(&bench);
}

static void keep_completion(void *owner, struct host *host, const struct told *told)
{
	struct completion *kept = owner;

	(void)host;
	*kept = told->completion;
}

/* Of host 0: packets of SENDs, and those that asked for an acknowledgement. */
static unsigned sends, asked;

static bool listen_to_both(struct network *where, const struct host *from, struct packet *packet)
{
	if (from == &testbed.hosts[0] && packet->opcode == OPCODE_SEND_ONLY) {
		sends++;
		asked += packet->ack_request;
	}
	return listen_to_answers(where, from, packet);
}

static void send_one(struct bench *bench, const struct work *work)
{
	struct work receive = { .kind = WORK_RECEIVE, .region = bench->region, .offset = 100, .length = 100 };

	assert_int_equal(soft_qp_post(qp_of(&bench->pair, 1), &receive, 1), OUTCOME_OK);
	assert_int_equal(soft_qp_post(qp_of(&bench->pair, 0), work, 1), OUTCOME_OK);
	hosts_flush();
}

/*
 * Work that is not reported needs no answer of its own: that of later work covers it. Alone, it asks after a while; and
 * where there was a pause, or none asked for long, it asks at once.
 */
static void silent_work_does_not_ask(void **state)
{
	struct bench bench;
	struct work silent = { .kind = WORK_SEND, .length = 20, .silent = true };
	struct work reported = { .kind = WORK_SEND, .length = 20 };
	const struct requester *requester;
	uint32_t window;

	(void)state;
	rules_open(&bench, 4);
	testbed.tap = listen_to_both;
	sends = asked = 0;
	requester = &qp_of(&bench.pair, 0)->requester;
	silent.region = reported.region = bench.region;
	for (sends = 0; sends < 64;) {
		send_one(&bench, &silent);
		network_run(CLOCK_NS_PER_MS);
	}
	assert_int_equal(asked, 64);

	sends = asked = 0;
	send_one(&bench, &silent);
	send_one(&bench, &reported);
	assert_true(soft_qp_has_unacked_work(qp_of(&bench.pair, 0)));
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(sends, 2);
	assert_int_equal(asked, 1);
	assert_int_equal(said_good, 1 + 64);
	assert_int_equal(requester->count, 0);

	/* They come too slowly to be answered together in time. */
	send_one(&bench, &silent);
	network_run(5 * CLOCK_NS_PER_MS);
	send_one(&bench, &silent);
	network_run(5 * CLOCK_NS_PER_MS);
	assert_int_equal(asked, 1);
	send_one(&bench, &silent);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(asked, 2);
	assert_int_equal(requester->count, 0);

	window = requester->cwnd;
	send_one(&bench, &silent);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(asked, 2);
	assert_int_equal(requester->count, 1);
	/* A peer that leaves now need not wait for it. */
	assert_false(soft_qp_has_unacked_work(qp_of(&bench.pair, 0)));
	network_run(200 * CLOCK_NS_PER_MS);
	assert_int_equal(sends, 7);
	assert_int_equal(asked, 3);
	assert_int_equal(requester->count, 0);
	/* It was no loss. */
	assert_int_equal(requester->cwnd, window);

	send_one(&bench, &silent);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(sends, 8);
	assert_int_equal(asked, 4);
	assert_int_equal(requester->count, 0);
	bench_close(&bench);
}

/*
 * While work that has not asked is under way, others become busy and leave a window that is already full: nothing that
 * would make room is on its way then, unless one more goes, and asks.
 */
static void a_smaller_window_waits_for_no_silence(void **state)
{
	struct bench bench;
	struct work silent = { .kind = WORK_SEND, .length = 20, .silent = true };
	struct work reads = { .kind = WORK_READ, .length = 8 * 1024 };
	struct requester *requester;

	(void)state;
	for (unsigned reading = 0; reading < 2; reading++) {
		rules_open(&bench, 16);
		testbed.tap = listen_to_both;
		requester = &qp_of(&bench.pair, 0)->requester;
		silent.region = reads.region = bench.region;
		reads.remote_address = (uintptr_t)bench.region->memory;
		reads.remote_key = bench.region->remote_key;
		requester->cwnd = 64;
		for (sends = 0; sends < 64;) {
			send_one(&bench, &silent);
			network_run(CLOCK_NS_PER_MS);
		}
		for (sends = asked = 0; sends < 12;)
			send_one(&bench, &silent);
		assert_int_equal(asked, 0);
		assert_int_equal(requester->count, 12);

		testbed.hosts[0].transport->busy_qps += 1000;
		if (reading)
			assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), &reads, 1), OUTCOME_OK);
		else
			send_one(&bench, &silent);
		network_run(CLOCK_NS_PER_MS);
		assert_int_equal(requester->count, 0);
		assert_int_equal(sends, 12 + !reading);
		bench_close(&bench);
	}
}

/* WRITEs with immediate take a receive; our own commands never send them. */
static void write_with_immediate(void **state)
{
	struct bench bench;
	struct work receive = { .kind = WORK_RECEIVE };
	struct completion taken = { .length = 1 };

	(void)state;
	rules_open(&bench, 4);
	receive.region = bench.region;
	testbed.completed = keep_completion;
	testbed.owner = &taken;
	bench_say(&bench, OPCODE_WRITE_ONLY_IMMEDIATE, 100, 16);
	bench_run();
	assert_int_equal(said_rnr, 1);
	assert_int_equal(said_psn, 100);
	assert_int_equal(bench.region->memory[0], 1);
	assert_int_equal(soft_qp_post(bench.pair.ends[1].qp, &receive, 1), OUTCOME_OK);
	bench_say(&bench, OPCODE_WRITE_ONLY_IMMEDIATE, 100, 16);
	bench_run();
	assert_int_equal(said_good, 1);
	assert_int_equal(bench.region->memory[0], 0);
	/* Nothing is in the receive, which has no room for what was written. */
	assert_int_equal(taken.kind, WORK_RECEIVE);
	assert_int_equal(taken.length, 0);
	assert_true(taken.has_immediate);
	bench_close(&bench);
}

static void strangers_are_not_heard(void **state)
{
	struct bench bench;
	struct packet packet;
	struct address stranger = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 3 } }, another_port;
	struct host *host;

	(void)state;
	rules_open(&bench, 4);
	host = &testbed.hosts[1];
	packet = bench_packet(&bench, OPCODE_WRITE_ONLY, 100, 16);
	soft_qp_receive(host->transport, host->socket, &stranger, &packet, &icrc_good);
	soft_qp_receive(host->transport, testbed.hosts[0].socket, &testbed.hosts[0].address, &packet, &icrc_good);
	packet.pkey = 0x1234;
	soft_qp_receive(host->transport, host->socket, &testbed.hosts[0].address, &packet, &icrc_good);
	packet.pkey = PACKET_PKEY;
	packet.opcode = OPCODE_DATAGRAM;
	soft_qp_receive(host->transport, host->socket, &testbed.hosts[0].address, &packet, &icrc_good);
	soft_qp_batch_end(host->transport);
	hosts_flush();
	assert_int_equal(host->heard, 0);
	assert_int_equal(said_good + said_sequence, 0);
	assert_int_equal(bench.region->memory[0], 1);
	/* The peer's address counts, from whatever port. */
	packet.opcode = OPCODE_WRITE_ONLY;
	another_port = testbed.hosts[0].address;
	another_port.port ^= 1;
	soft_qp_receive(host->transport, host->socket, &another_port, &packet, &icrc_good);
	soft_qp_batch_end(host->transport);
	hosts_flush();
	assert_int_equal(host->heard, 1);
	assert_int_equal(said_good, 1);
	bench_close(&bench);
}

/* A packet whose identification is that many steps ahead of 100. */
static void arrive_marked(struct bench *bench, struct icrc_state *pair, const struct address *from, uint16_t ahead,
			  uint32_t destination)
{
	struct packet packet = bench_packet(bench, OPCODE_WRITE_ONLY, 100, 16);
	struct icrc_pending pending = { .state = pair,
					.result = ICRC_SOLVED,
					.ip_id.identification = (uint16_t)(100 + ahead) };

	packet.destination = destination;
	soft_qp_receive(testbed.hosts[1].transport, testbed.hosts[1].socket, from, &packet, &pending);
}

/* Whoever sends in a peer's name cannot have the peer's own packets refused. */
static void strangers_do_not_change_the_icrc_state(void **state)
{
	struct icrc_state pair = { .known = true, .last.identification = 100 }, before = pair;
	const struct address *peer;
	struct address stranger = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 3 } };
	struct bench bench;
	uint32_t number;

	(void)state;
	rules_open(&bench, 4);
	peer = &testbed.hosts[0].address;
	number = bench_packet(&bench, OPCODE_WRITE_ONLY, 100, 16).destination;
	for (uint16_t ahead = 0; ahead < 40000; ahead += 100) {
		arrive_marked(&bench, &pair, peer, ahead, number + 1);
		arrive_marked(&bench, &pair, &stranger, ahead, number);
	}
	assert_memory_equal(&pair, &before, sizeof(pair));
	assert_int_equal(testbed.hosts[1].heard, 0);
	/* The peer's own do count, and one that is damaged is found. */
	arrive_marked(&bench, &pair, peer, 20000, number);
	assert_int_equal(testbed.hosts[1].heard, 0);
	assert_true(pair.suspected);
	arrive_marked(&bench, &pair, peer, 1, number);
	assert_int_equal(testbed.hosts[1].heard, 1);
	assert_int_equal(pair.last.identification, 101);
	bench_close(&bench);
}

/* Whoever left takes nothing new, but still says that it has what comes again: its last words may have been lost. */
static void who_left_still_acknowledges(void **state)
{
	struct bench bench;
	unsigned last_words;

	(void)state;
	rules_open(&bench, 4);
	bench_say(&bench, OPCODE_WRITE_ONLY, 100, 16);
	bench_run();
	soft_qp_stop(bench.pair.ends[1].qp);
	hosts_flush();
	last_words = said_good;
	assert_in_range(last_words, 2, 4);
	memset(bench.region->memory, 5, 16);
	for (unsigned repeat = 1; repeat < 4; repeat++) {
		bench_say(&bench, OPCODE_WRITE_ONLY, 100, 16);
		bench_run();
		assert_int_equal(said_good, last_words + repeat);
		assert_int_equal(said_psn, 100);
		soft_qp_stop(bench.pair.ends[1].qp);
	}
	said_good = 0;
	bench_say(&bench, OPCODE_WRITE_ONLY, 101, 16);
	bench_say(&bench, OPCODE_WRITE_ONLY, 103, 16);
	bench_say(&bench, OPCODE_READ_REQUEST, 101, 16);
	bench_run();
	assert_int_equal(said_good + said_sequence + said_data + said_invalid, 0);
	assert_int_equal(bench.region->memory[0], 5);
	assert_int_equal(testbed.hosts[1].failures, 0);
	bench_close(&bench);
}

static void numbers_come_once(void **state)
{
	enum {
		COUNT = 20000
	};
	static uint8_t seen[(PSN_MASK + 1) / 8];
	struct soft_endpoint endpoint;

	(void)state;
	qp_open(5);
	memset(seen, 0, sizeof(seen));
	for (unsigned count = 0; count < (is_valgrind() ? 500u : (unsigned)COUNT); count++) {
		uint32_t number;

		endpoint_prepare(&endpoint, &testbed.hosts[0], ENDPOINT_CONNECTION, 1, 1);
		number = soft_qp_qpn(endpoint.qp);
		assert_in_range(number, 2, 0xfffffe);
		assert_false(seen[number / 8] & 1 << number % 8);
		seen[number / 8] |= (uint8_t)(1 << number % 8);
		soft_qp_destroy(endpoint.qp);
	}
	qp_close();
}

/* Each bit of a key is set in about half of them, and no two regions have the same. */
static void keys_cannot_be_guessed(void **state)
{
	enum {
		COUNT = 1000,
		BITS = 32
	};
	struct region *regions[COUNT];
	unsigned set[BITS] = { 0 };

	(void)state;
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

/* The command leaves in the call-back that brings it the last message: its peer still learns that it arrived. */
static void leave_at_the_last_message(void *owner, struct host *host, const struct told *told)
{
	struct counted *counted = owner;

	if (told->completion.kind == WORK_RECEIVE)
		soft_qp_stop(told->endpoint->qp);
	else if (host == &testbed.hosts[0])
		counted->good += told->completion.status == COMPLETION_OK;
}

static void last_message_is_acknowledged(void **state)
{
	struct bench bench;
	struct counted counted = { .wanted = 1 };
	struct work receive = { .kind = WORK_RECEIVE, .length = 100 };
	struct work send = { .kind = WORK_SEND, .length = 100 };
	struct region *source;

	(void)state;
	rules_open(&bench, 4);
	source = region_of(0, 100, 0);
	receive.region = bench.region;
	send.region = source;
	testbed.completed = leave_at_the_last_message;
	testbed.owner = &counted;
	assert_int_equal(soft_qp_post(bench.pair.ends[1].qp, &receive, 1), OUTCOME_OK);
	assert_int_equal(soft_qp_post(bench.pair.ends[0].qp, &send, 1), OUTCOME_OK);
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(counted.good, 1);
	soft_region_destroy(source);
	bench_close(&bench);
}

/* ---- what cannot be posted ---- */

static void what_cannot_be_posted(void **state)
{
	struct bench bench;
	struct soft_endpoint fresh;
	struct region *large;
	struct work work = { .kind = WORK_SEND };
	struct soft_qp *qp;

	(void)state;
	rules_open(&bench, 0);
	testbed.hosts[0].dead = true;
	qp = bench.pair.ends[0].qp;
	large = region_of(0, SOFT_LONGEST_MESSAGE + 1, 0);
	work.region = large;
	work.length = SOFT_LONGEST_MESSAGE + 1;
	assert_int_equal(post_silently(qp, &work), OUTCOME_INTERNAL);
	work = (struct work){ .kind = WORK_RECEIVE, .region = large, .length = 1 };
	for (unsigned count = 0; count < 16; count++)
		assert_int_equal(post_silently(qp, &work), OUTCOME_OK);
	assert_int_equal(post_silently(qp, &work), OUTCOME_INTERNAL);
	/* The probe takes no place of the command's. */
	work.kind = WORK_SEND;
	soft_qp_probe(qp);
	for (unsigned count = 0; count < 16; count++)
		assert_int_equal(post_silently(qp, &work), OUTCOME_OK);
	assert_int_equal(post_silently(qp, &work), OUTCOME_INTERNAL);
	soft_qp_stop(qp);
	assert_int_equal(post_silently(qp, &work), OUTCOME_OK);

	endpoint_prepare(&fresh, &testbed.hosts[0], ENDPOINT_CONNECTION, 1, 1);
	assert_int_equal(post_silently(fresh.qp, &work), OUTCOME_INTERNAL);
	work.kind = WORK_RECEIVE;
	assert_int_equal(post_silently(fresh.qp, &work), OUTCOME_OK);
	soft_qp_destroy(fresh.qp);
	soft_region_destroy(large);
	bench_close(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(longer_than_the_receive),
		cmocka_unit_test(wrong_orders_are_refused),
		cmocka_unit_test(unknown_operations_are_refused),
		cmocka_unit_test(write_is_held_to_its_length),
		cmocka_unit_test(reads_beyond_the_agreement),
		cmocka_unit_test(messages_beyond_the_limit),
		cmocka_unit_test(repeats_are_parts_of_a_read),
		cmocka_unit_test(old_reads_are_forgotten),
		cmocka_unit_test(repeats_need_their_memory),
		cmocka_unit_test(what_never_was_is_no_repeat),
		cmocka_unit_test(other_sequence_numbers_are_not_heard),
		cmocka_unit_test(gaps_are_told_once),
		cmocka_unit_test(gaps_are_told_again_if_asked),
		cmocka_unit_test(gaps_come_with_an_acknowledgement),
		cmocka_unit_test(acknowledgements_are_coalesced),
		cmocka_unit_test(acknowledgements_name_no_read),
		cmocka_unit_test(messages_are_counted),
		cmocka_unit_test(write_with_immediate),
		cmocka_unit_test(strangers_are_not_heard),
		cmocka_unit_test(strangers_do_not_change_the_icrc_state),
		cmocka_unit_test(who_left_still_acknowledges),
		cmocka_unit_test(numbers_come_once),
		cmocka_unit_test(keys_cannot_be_guessed),
		cmocka_unit_test(last_message_is_acknowledged),
		cmocka_unit_test(what_cannot_be_posted),
		cmocka_unit_test(silent_work_does_not_ask),
		cmocka_unit_test(a_smaller_window_waits_for_no_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
