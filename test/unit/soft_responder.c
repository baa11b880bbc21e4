/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/*
 * The responder of a connected queue pair: checks of requests, ACKs and NAKs, repeated requests. Most tests are
 * scripts, whose steps are separated by ';':
 *
 *   reads N              opens the bench: host 0 may have N READs outstanding
 *   OPCODE PSN [LENGTH]  host 0 sends that request, of 16 bytes if no length is named. PSN 100-109: those of a batch,
 *                        100..109: each in a batch of its own. Then quiet (without AckReq), key+N and at+N (to the
 *                        key and the address), of N (length of the whole message)
 *   ignored OPCODE ...   the request arrives, changes nothing, and gets no response
 *   receive N            host 1 posts a receive of N bytes; so act stop, destroy (the region), fill N (its first bytes)
 *   memory AT N          the region has that byte; so check failed N (connections), msn N, last-ack PSN, received N
 *   ... = RESPONSES      those of host 1 since the last step with a '=', each with its PSN: A ACK, R RNR NAK, NAKs for
 *                        S sequence, I invalid request, X access; D READ responses, of the PSNs from-to
 */
#include "test/network/qp.h"

enum {
	RESPONSES_SIZE = 256,
};

static char responses[RESPONSES_SIZE];
static uint32_t data_psn;     /* the next READ response in the record's last word */
static unsigned sent_of[128]; /* responses by letter */
static uint32_t sent_psn, sent_msn;
static struct completion received;

static char letter_of(const struct packet *packet)
{
	static const char naks[] = "SIXO";
	uint8_t syndrome = packet->acknowledgement.syndrome;

	if (packet->opcode != OPCODE_ACKNOWLEDGE)
		return 'D';
	if (syndrome_kind(syndrome) == SYNDROME_NAK)
		return naks[syndrome_value(syndrome)];
	if (syndrome_kind(syndrome) == SYNDROME_ACK)
		assert_int_equal(syndrome, CREDITS_UNLIMITED);
	return syndrome_kind(syndrome) == SYNDROME_RNR ? 'R' : 'A';
}

static bool record_responses(struct network *where, const struct host *from, struct packet *packet)
{
	size_t length = strlen(responses);
	char letter = letter_of(packet);

	if (from != &testbed.hosts[1])
		return true;
	sent_of[(unsigned)letter]++;
	sent_psn = packet->psn;
	sent_msn = packet->acknowledgement.msn;
	if (letter == 'D' && data_psn && packet->psn == data_psn && strrchr(responses, ' ') &&
	    strrchr(responses, ' ')[1] == 'D') {
		char *range = strchr(strrchr(responses, ' '), '-');

		length = range ? (size_t)(range - responses) : length;
		snprintf(responses + length, sizeof(responses) - length, "-%u", packet->psn);
	} else {
		snprintf(responses + length, sizeof(responses) - length, " %c%u", letter, packet->psn);
	}
	data_psn = letter == 'D' ? packet->psn + 1 : 0;
	return true;
}

static void save_completion(void *context, struct host *host, const struct reported *reported)
{
	if (host == &testbed.hosts[1])
		received = reported->completion;
}

static void responder_open(unsigned reads)
{
	bench_open(reads);
	testbed.tap = record_responses;
	testbed.completed = save_completion;
	memset(responses, 0, sizeof(responses));
	memset(sent_of, 0, sizeof(sent_of));
	received = (struct completion){ 0 };
}

/* Delivers the packet. Fails if it changes the queue pair or causes a response. */
static void assert_ignored(const struct packet *packet, struct soft_socket *socket, const struct address *from)
{
	struct soft_qp *qp = qp_of(&bench.pair, 1);
	struct soft_qp before = *qp;
	struct host *host = &testbed.hosts[1];
	unsigned cm_packets = host->cm_packets;
	size_t length = strlen(responses);

	soft_qp_receive(host->transport, socket, from, packet);
	assert_memory_equal(&before, qp, sizeof(before));
	soft_qp_batch_end(host->transport);
	hosts_flush();
	assert_int_equal(strlen(responses), length);
	assert_int_equal(host->cm_packets, cm_packets);
	assert_int_equal(host->failures, 0);
}

static void send_requests(uint8_t opcode, const char *text, bool ignored)
{
	uint32_t length = 16, of = UINT32_MAX, first, last;
	struct packet packet = bench_packet(opcode, 0, 0);
	char *words = strdup(text), *rest = words, *word = strsep(&rest, " ");
	bool each;

	first = last = (uint32_t)strtoul(word, &word, 10);
	each = *word == '.';
	if (*word)
		last = (uint32_t)strtoul(word + strspn(word, ".-"), NULL, 10);
	while ((word = strsep(&rest, " ")))
		if (!strcmp(word, "quiet"))
			packet.ack_request = false;
		else if (!strncmp(word, "key+", 4))
			packet.remote.key += (uint32_t)strtoul(word + 4, NULL, 10);
		else if (!strncmp(word, "at+", 3))
			packet.remote.address += strtoull(word + 3, NULL, 10);
		else if (!strcmp(word, "of"))
			of = (uint32_t)strtoul(strsep(&rest, " "), NULL, 10);
		else if (strspn(word, "0123456789") == strlen(word))
			length = (uint32_t)strtoul(word, NULL, 10);
		else
			fail_msg("there is no %s in %s", word, text);
	packet.remote.length = of == UINT32_MAX ? length : of;
	packet.length = opcode == OPCODE_READ_REQUEST || opcode == OPCODE_ACKNOWLEDGE ? 0 : length;
	for (packet.psn = first; packet.psn <= last; packet.psn++) {
		if (ignored)
			assert_ignored(&packet, testbed.hosts[1].socket, &testbed.hosts[0].address);
		else
			host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
		if (each)
			network_run(CLOCK_NS_PER_MS);
	}
	free(words);
}

static const struct {
	const char *name;
	uint8_t opcode;
} opcodes[] = {
	{ "send", OPCODE_SEND_ONLY },
	{ "send-first", OPCODE_SEND_FIRST },
	{ "send-middle", OPCODE_SEND_MIDDLE },
	{ "send-last", OPCODE_SEND_LAST },
	{ "write", OPCODE_WRITE_ONLY },
	{ "write-first", OPCODE_WRITE_FIRST },
	{ "write-middle", OPCODE_WRITE_MIDDLE },
	{ "write-last", OPCODE_WRITE_LAST },
	{ "write-immediate", OPCODE_WRITE_ONLY_IMMEDIATE },
	{ "read", OPCODE_READ_REQUEST },
	{ "ack", OPCODE_ACKNOWLEDGE },
	{ "response", OPCODE_READ_RESPONSE_ONLY },
};

static void post_receive(uint32_t length)
{
	struct work receive = { .kind = WORK_RECEIVE, .region = bench.region, .length = length };

	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 1), &receive, 1), OUTCOME_OK);
}

static void act(const char *verb, unsigned long number, unsigned long other)
{
	if (!strcmp(verb, "reads"))
		responder_open((unsigned)number);
	else if (!strcmp(verb, "receive"))
		post_receive((uint32_t)number);
	else if (!strcmp(verb, "stop"))
		soft_qp_drain(qp_of(&bench.pair, 1));
	else if (!strcmp(verb, "destroy"))
		bench_destroy_region();
	else if (!strcmp(verb, "fill"))
		memset(bench.region->memory, (int)number, 16);
	else if (!strcmp(verb, "memory"))
		assert_int_equal(bench.region->memory[number], other);
	else if (!strcmp(verb, "failed"))
		assert_int_equal(testbed.hosts[1].failures, number);
	else if (!strcmp(verb, "msn"))
		assert_int_equal(sent_msn, number);
	else if (!strcmp(verb, "last-ack"))
		assert_int_equal(soft_qp_last_ack(qp_of(&bench.pair, 1)), number);
	else if (!strcmp(verb, "received"))
		assert_int_equal(received.length, number);
	else
		fail_msg("there is no step %s", verb);
}

static void step(char *text)
{
	char *expected = strchr(text, '='), *end;
	char verb[20] = "", shown[RESPONSES_SIZE];
	unsigned long number = 0, other = 0;
	bool ignored;
	int at = 0;

	if (expected)
		*expected++ = 0;
	for (end = text + strlen(text); end > text && end[-1] == ' ';)
		*--end = 0;
	text += strspn(text, " ");
	ignored = !strncmp(text, "ignored ", 8);
	sscanf(text += ignored ? 8 : 0, "%19s %n%lu %lu", verb, &at, &number, &other);
	for (size_t index = 0; at && index < LENGTH(opcodes); index++)
		if (!strcmp(verb, opcodes[index].name)) {
			send_requests(opcodes[index].opcode, text + at, ignored);
			*verb = 0;
		}
	if (*verb)
		act(verb, number, other);
	if (!expected)
		return;
	hosts_flush();
	bench_run();
	strcpy(shown, responses);
	memset(responses, 0, sizeof(responses));
	if (strcmp(shown, expected) != 0)
		fail_msg("%s %s: the responses are%s, not%s", verb, text, shown, expected);
}

static void script(const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;

	while ((word = strsep(&rest, ";")))
		step(word);
	free(copy);
}

TEST(send_longer_than_receive_fails, NULL, bench_close)
{
	for (uint32_t length = 1; length < 5000; length += 700) {
		responder_open(4);
		post_receive(length - 1);
		bench_post(WORK_SEND, length);
		bench_run();
		assert_int_equal(received.status, COMPLETION_LENGTH);
		assert_int_equal(testbed.hosts[0].failures + testbed.hosts[1].failures, 0);
		assert_int_equal(bench.region->memory[length - 1], 1);
	}
}

/* The last packet is refused each time it arrives; a later one gets no response. */
TEST(opcode_sequence_errors_are_rejected, NULL, bench_close)
{
	static const char *const rows[] = {
		"send-middle 100 1024",
		"send-last 100 1024",
		"write-middle 100 1024",
		"write-last 100 4",
		"write-first 100 1024; write 101 4",
		"write-first 100 1024; send 101 4",
		"write-first 100 1024; read 101 4",
		"send-first 100 1024; write-last 101 4",
		"send-first 100 1024; send-first 101 1024",
		"send-first 100 1024; send-last 101 0",
		"send-first 100 512",
		"send-first 100 2048",
		"send 100 2048",
		"write 100 1028",
		"send-first 100 1024; send-middle 101 1024; send-middle 102 1020",
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		unsigned last = 100;
		char text[64];

		script("reads 4; receive 60000");
		for (const char *at = rows[row]; (at = strchr(at, ';')); at++)
			last++;
		script(rows[row]);
		bench_run();
		assert_int_equal(sent_of['I'], 1);
		assert_int_equal(sent_psn, last);
		*responses = 0;
		snprintf(text, sizeof(text), "failed 1; send %u 4; send %u 4 = I%u; failed 1", last, last + 1, last);
		script(text);
	}
}

/* A reserved opcode at the expected PSN gets a NAK; at other PSNs it is dropped without a response. */
TEST(reserved_opcodes_are_rejected, NULL, bench_close)
{
	static const uint32_t psns[] = { 101, 99, 100, 100 };

	for (unsigned opcode = 0x12; opcode < 0x20; opcode++)
		for (size_t length = 0; length <= 28; length += 28) {
			bool request = opcode != 0x12; /* 0x12 is ATOMIC Acknowledge, a response */

			responder_open(4);
			for (size_t index = 0; index < LENGTH(psns); index++) {
				struct packet packet = bench_packet(OPCODE_SEND_ONLY, psns[index], length);
				uint8_t bytes[NETWORK_FRAME_MAX] = { 0 };
				size_t header = packet_write(&packet, bytes);

				bytes[0] = (uint8_t)opcode;
				host_send(&testbed.hosts[0], &testbed.hosts[1], bytes, header + length);
				script(request && psns[index] == 100 ? "= I100; failed 1" : "=; failed 0");
			}
		}
}

TEST(write_length_is_checked, NULL, bench_close)
{
	script("reads 4; write-first 100 1024 of 1000 = I100; memory 0 1");
	script("reads 4; write-first 100 1024 of 1500; write-middle 101 1024 = I101; memory 1024 1");
	script("reads 4; write-first 100 1024 of 2000; write-last 101 900 = I101; memory 1024 1");
}

TEST(reads_beyond_limit_are_rejected, NULL, bench_close)
{
	script("reads 0; read 100 16 = I100");
	/* The first two READs are executed. */
	script("reads 2; read 100 65536; read 164 65536; read 228 65536 = D100-227 I228");
	script("reads 1; read 100 65536 = D100-163; read 164 65536 = D164-227; read 228 65536 = D228-291");
}

static void deliver(struct pair *pair, uint8_t opcode, uint32_t psn, size_t length)
{
	struct packet packet = bench_packet(opcode, psn, length);

	packet.destination = qp_of(pair, 1)->by_qpn.key;
	soft_qp_receive(testbed.hosts[1].transport, testbed.hosts[1].socket, &testbed.hosts[0].address, &packet);
}

/* A turn of the loop sends 64 responses of a connection, and all of another one with fewer. */
TEST(reads_leave_turns_to_other_connections, NULL, bench_close)
{
	struct pair other;

	responder_open(4);
	pair_open(&other, &bench.attr);
	for (uint32_t read = 0; read < 3; read++)
		deliver(&bench.pair, OPCODE_READ_REQUEST, 100 + read * 64, 65536);
	deliver(&other, OPCODE_READ_REQUEST, 100, 16);
	for (unsigned turn = 1; turn <= 3; turn++) {
		soft_qp_batch_end(testbed.hosts[1].transport);
		hosts_flush();
		assert_int_equal(sent_of['D'], turn * 64 + 1);
	}
	pair_close(&other);
}

/* Messages are limited to 1 GiB: with more packets, PSNs do not distinguish new from repeated packets. */
TEST(messages_above_1_gib_are_rejected, NULL, bench_close)
{
	static const char *const scripts[] = {
		"write-first 100 1024 of 1073741825 = X100; memory 0 1; failed 1",
		"read 100 16 of 1073741825 = X100; failed 1",
		"write-first 100 1024 of 1073741824 = A100; memory 0 0; failed 0",
	};

	for (size_t row = 0; row < LENGTH(scripts); row++) {
		responder_open(4);
		bench.region->length = (size_t)3 << 30; /* not allocated: the test fails if it is accessed */
		script(scripts[row]);
	}
}

/* A repeated READ must lie within a responder resource: otherwise a sender could probe keys, or end the connection with
 * one forged packet. */
TEST(repeated_read_must_match_resource, NULL, bench_close)
{
	script("reads 4; write 100; write 101 = A101; read 102 3000 = D102-104; write 105 = A105;"
	       "read 106 = D106; read 107 0 = D107; write 108 = A108;"
	       "ignored read 102 3000 key+1; ignored read 102 3000 at+1; ignored read 102 3000 at+4294967295;"
	       "ignored read 102 3001; ignored read 102 0; ignored read 103 1976; ignored read 103 1977 at+1024;"
	       "ignored read 104 953 at+2048; ignored read 101 3000; ignored read 100; ignored read 106 16 key+1;"
	       "ignored read 107 0 key+1; ignored read 107 1; ignored read 107 1073741824; ignored read 105 16 at+3072;"
	       "read 102 3000 = D102-104; read 103 1976 at+1024 = D103-104; read 103 1024 at+1024 = D103;"
	       "read 107 0 = D107");
}

/* The responder keeps a resource for each READ that the peer may have outstanding. The peer has the responses of all
 * earlier READs. */
TEST(old_read_resources_are_dropped, NULL, bench_close)
{
	script("reads 3; read 100..108 = D100-108; ignored read 100-105; read 106..108 = D106-108");
}

/* The connection ends, and the queue pair accepts no more requests. */
TEST(access_errors_change_no_memory, NULL, bench_close)
{
	static const struct {
		const char *request;
		unsigned access; /* 0: all */
	} rows[] = {
		{ "read 100", REGION_REMOTE_WRITE },
		{ "write 100", REGION_REMOTE_READ },
		{ "read 100 5000 key+1", 0 },
		{ "write 100 1024 key+1", 0 },
		{ "read 100 5000 at+60537", 0 }, /* one byte more than the region */
		{ "write 100 1024 at+64513", 0 },
		{ "read 100 1 at+65536", 0 },
		{ "write 100 1 at+65536", 0 },
		{ "read 100 5000 at+18446744073709551615", 0 },
		{ "write 100 1024 at+18446744073709551615", 0 },
		{ "read 100 5000 at+18446744073709543615", 0 },
		{ "write-first 100 1024 of 65537", 0 },
	};
	static uint8_t before[65536];

	memset(before, 1, sizeof(before));
	for (size_t row = 0; row < LENGTH(rows); row++) {
		responder_open(4);
		if (rows[row].access)
			((struct soft_region *)bench.region)->access = rows[row].access;
		script(rows[row].request);
		script("= X100; failed 1; write 100; write 101; read 101 = X100; failed 1");
		assert_memory_equal(bench.region->memory, before, sizeof(before));
	}
}

/* A destroyed region is inaccessible at once: for new and repeated READs, and for the rest of unfinished ones. */
TEST(destroyed_region_is_inaccessible, NULL, bench_close)
{
	script("reads 4; read 100 = D100; destroy; read 100 = X100; failed 1");
	script("reads 4; write-first 100 1024 of 2048 = A100; destroy; write-last 101 1024 = X101; failed 1");
	responder_open(4);
	deliver(&bench.pair, OPCODE_READ_REQUEST, 100, 65536);
	deliver(&bench.pair, OPCODE_READ_REQUEST, 164, 65536);
	soft_qp_batch_end(testbed.hosts[1].transport);
	script("destroy = D100-163 X164; failed 1");
}

/* A new process can have the address of an exited one and, by chance, the same QPN. The old peer's packets do not count
 * as duplicates if their PSNs precede the connection's first PSN. */
TEST(psns_before_connection_are_dropped, NULL, bench_close)
{
	script("reads 4; read 100 = D100; read 99 16 key+1; write 99; read 16776317 16 key+1; write 16776317;"
	       "read 9437285 16 key+1; write 9437285 =; failed 0; read 100 = D100");
}

/* A packet from the peer with a PSN outside the receive window is dropped without a response. */
TEST(psns_outside_window_are_dropped, NULL, bench_close)
{
	static const char *const names[] = { "write", "read", "send", "ack", "response" };
	char text[64];

	script("reads 4");
	for (size_t name = 0; name < LENGTH(names); name++)
		for (uint32_t ahead = PSN_AHEAD_MAX + 1; ahead <= PSN_MASK; ahead += 99991) {
			snprintf(text, sizeof(text), "ignored %s %u", names[name], psn_add(bench.psn, ahead));
			script(text);
		}
	script("memory 0 1 =");
}

/* A packet resent after the same gap gets another NAK, but not PSNs too far ahead, or before the first. */
TEST(gap_gets_one_nak, NULL, bench_close)
{
	script("reads 4; write 101..109 quiet = S100; write 101 = S100; write 7340032; write 90 =; memory 0 1;"
	       "write 100 = A100; memory 0 0");
}

/* A packet with AckReq behind a gap gets the NAK again, at most twice. */
TEST(ack_request_repeats_nak, NULL, bench_close)
{
	script("reads 4; write 101..103 quiet = S100; write 104 = S100; write 105..107 quiet =; write 108 = S100;"
	       "write 109..111 quiet; write 112; write 113..115 quiet; write 116 =");
}

/* Packets behind an RNR NAK are not reported as a gap, nor counted as one. */
TEST(no_nak_behind_rnr_nak, NULL, bench_close)
{
	const struct network_counter *counts;

	script("reads 4; send 100 8 = R100; send 101-102 8 =");
	counts = testbed.hosts[1].transport->counts;
	assert_int_equal(counts[SOFT_RNR_NAKS_SENT].increase, 1);
	assert_int_equal(counts[SOFT_OUT_OF_SEQUENCE].increase, 0);
	script("reads 4; write 100 = A100; write 102 = S101");
	assert_int_equal(testbed.hosts[1].transport->counts[SOFT_OUT_OF_SEQUENCE].increase, 1);
}

/* The receive comes late, the SEND comes again, and the RNR NAK is not sent yet. */
static void receive_late(void)
{
	script("reads 4");
	deliver(&bench.pair, OPCODE_SEND_ONLY, 100, 16);
	script("receive 16");
	deliver(&bench.pair, OPCODE_SEND_ONLY, 100, 16);
}

/* The next gap gets a NAK, also in the same batch. */
TEST(rnr_nak_of_an_executed_send_is_not_sent, NULL, bench_close)
{
	receive_late();
	soft_qp_batch_end(testbed.hosts[1].transport);
	script("= A100; received 16; write 102 = S101");
	receive_late();
	deliver(&bench.pair, OPCODE_SEND_ONLY, 102, 16);
	soft_qp_batch_end(testbed.hosts[1].transport);
	script("= A100 S101");
	assert_int_equal(testbed.hosts[1].transport->counts[SOFT_OUT_OF_SEQUENCE].increase, 1);
}

/* A READ requested again from its middle lacks a sent response. Its first response may merely be late. */
TEST(resumed_reads_are_counted, NULL, bench_close)
{
	const struct network_counter *counts;

	script("reads 4; read 100 3000 = D100-102; read 103 = D103; read 100 3000 = D100-102; read 103 = D103");
	counts = testbed.hosts[1].transport->counts;
	assert_int_equal(counts[SOFT_DUPLICATES].increase, 2);
	assert_int_equal(counts[SOFT_RESUMED_READS].increase, 0);
	script("read 101 1976 at+1024 = D101-102; read 102 952 at+2048 = D102");
	assert_int_equal(counts[SOFT_RESUMED_READS].increase, 2);
}

/* The missing packet arrives in the same batch, after a later one. The next gap gets a NAK. */
TEST(gap_closed_in_batch_gets_no_nak, NULL, bench_close)
{
	script("reads 4; write 101; write 100; write 101 = A101; write 103 = S102");
}

/* Each repetition of the invalid request gets a NAK; earlier requests get no response. A stopped queue pair sends no
 * ACK. */
TEST(nak_repeats_for_invalid_request_only, NULL, bench_close)
{
	script("reads 4; write 100 = A100; write-middle 101 1024 = I101; write 100 =; write-middle 101 1024 = I101;"
	       "stop =; last-ack 100");
}

/* A fatal NAK behind more READ responses than a turn sends: a stopped queue pair sends it before the DREQ, which ends
 * the peer's requests without a cause. */
TEST(stopped_qp_sends_its_fatal_nak, NULL, bench_close)
{
	responder_open(4);
	deliver(&bench.pair, OPCODE_READ_REQUEST, 100, 65536);
	deliver(&bench.pair, OPCODE_READ_REQUEST, 164, 65536);
	deliver(&bench.pair, OPCODE_WRITE_MIDDLE, 228, 1024);
	script("stop; failed 1");
	hosts_flush();
	assert_int_equal(sent_of['D'], 64);
	assert_int_equal(sent_of['I'], 1);
	script("= D100-163 I228; write-middle 228 1024 = I228; failed 1");
	assert_int_equal(qp_of(&bench.pair, 1)->state, QP_DRAINING);
}

/* Linux rxe retransmits once per NAK, and again only after an ACK: each NAK follows an ACK. */
TEST(nak_follows_ack, NULL, bench_close)
{
	script("reads 4; write 100..101 quiet; write 103 quiet = A101 S102; write 102..104 quiet;"
	       "write 106 quiet = A104 S105; write 105 quiet; write 107 quiet = A105 S106");
}

/*
 * In a batch. A WRITE after a READ: the ACK follows the READ response. Duplicates: the READ is executed again from its
 * PSN, the WRITE is not.
 */
TEST(acks_are_coalesced, NULL, bench_close)
{
	responder_open(4);
	network->read_delay = CLOCK_NS_PER_MS;
	script("write 100-149 = A149; read 150 65536; write 214 = D150-213 A214; fill 5; write 120 = A214; memory 0 5;"
	       "read 210 4096 at+61440 = D210-213");
}

/* A requester takes an ACK with the PSN of a READ for the READ response. An ACK carries the PSN of the last SEND or
 * WRITE, also after the queue pair has stopped. If there were only READs, no ACK is sent. */
TEST(ack_never_carries_psn_of_read, NULL, bench_close)
{
	script("reads 4; read 100 3000; read 104 = D100-102 S103; read 103; write 102 = D103; stop =");
	/* The READ response implicitly acknowledges the WRITE; PSN 102 belongs to the READ. */
	script("reads 4; write 100; read 101 3000 = D101-103; write 100 = A100; write 105 = S104; write 102 =;"
	       "stop = A100 A100 A100 A100 A100; write 102 =");
}

TEST(zero_length_needs_no_key, NULL, bench_close)
{
	script("reads 4; read 100 0 key+1 = D100; write 101 0 key+1 = A101; failed 0");
}

/* The MSN of a response counts completed messages, not packets. */
TEST(msn_counts_messages, NULL, bench_close)
{
	script("reads 4; write 100 = A100; msn 1; write-first 101 1024 of 3072 = A101; msn 1;"
	       "write-middle 102 1024 = A102; msn 1; write-last 103 1024 = A103; msn 2; read 104 3000 = D104-106; msn "
	       "3;"
	       "write 107 0 = A107; msn 4");
}

/* A WRITE with immediate consumes a receive, of length 0: the data goes to the remote region. No command of ours sends
 * it. */
TEST(write_with_immediate_consumes_receive, NULL, bench_close)
{
	script("reads 4; write-immediate 100 = R100; memory 0 1; receive 0; write-immediate 100 = A100; memory 0 0");
	assert_int_equal(received.kind, WORK_RECEIVE);
	assert_int_equal(received.length, 0);
	assert_true(received.has_immediate);
}

/* The last ACK is sent twice when the queue pair stops, and five times after losses. Then new requests are dropped, and
 * duplicates acknowledged: its last ACK may be lost. */
TEST(stopped_qp_acknowledges_duplicates, NULL, bench_close)
{
	static const char *const scripts[] = { "stop = A100 A100",
					       "write 100 = A100; stop = A100 A100 A100 A100 A100" };

	for (size_t row = 0; row < LENGTH(scripts); row++) {
		script("reads 4; write 100 = A100");
		script(scripts[row]);
		script("last-ack 100; fill 5; write 100 = A100; stop; write 100 = A100; read 100 =; write 101; write "
		       "103;"
		       "read 101 =; memory 0 5; failed 0");
	}
}

/* Host 0's SEND packets, and those with AckReq. */
static unsigned send_packets, ack_requests;

static bool count_requests_and_responses(struct network *where, const struct host *from, struct packet *packet)
{
	if (from == &testbed.hosts[0] && packet->opcode == OPCODE_SEND_ONLY) {
		send_packets++;
		ack_requests += packet->ack_request;
	}
	return record_responses(where, from, packet);
}

static void send_one(const struct work *work)
{
	struct work receive = { .kind = WORK_RECEIVE, .region = bench.region, .offset = 100, .length = 100 };

	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 1), &receive, 1), OUTCOME_OK);
	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), work, 1), OUTCOME_OK);
	hosts_flush();
}

/* Unsignalled work requests do not set AckReq: the ACK of a later work request covers them. If none follows, that of
 * the timeout's probe does. After a pause the next ones set AckReq at once. */
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
	assert_int_equal(sent_of['A'], 1 + 64);
	assert_int_equal(requester->ring.count, 0);

	window = requester->cwnd;
	send_one(&silent);
	network_run(CLOCK_NS_PER_MS / 2);
	assert_int_equal(ack_requests, 1);
	assert_int_equal(requester->ring.count, 1);
	/* A disconnecting queue pair does not wait for unsignalled work. */
	assert_false(soft_qp_has_signalled_work(qp_of(&bench.pair, 0)));
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(send_packets, 3);
	assert_int_equal(ack_requests, 1);
	assert_int_equal(requester->ring.count, 0);
	/* The congestion window is not reduced. */
	assert_int_equal(requester->cwnd, window);

	send_one(&silent);
	network_run(CLOCK_NS_PER_MS / 2);
	assert_int_equal(send_packets, 4);
	assert_int_equal(ack_requests, 2);
	assert_int_equal(requester->ring.count, 0);
}

/* The share of the window shrinks while packets without AckReq fill it. One more packet, with AckReq, is sent so that
 * an ACK opens the window. */
TEST(reduced_window_requests_ack, NULL, bench_close)
{
	struct work silent = { .kind = WORK_SEND, .length = 20, .unsignalled = true };
	struct work reads;
	struct requester *requester;

	for (unsigned reading = 0; reading < 2; reading++) {
		responder_open(16);
		testbed.tap = count_requests_and_responses;
		requester = &qp_of(&bench.pair, 0)->requester;
		silent.region = bench.region;
		reads = work_to(WORK_READ, bench.region, bench.region, 8 * 1024);
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

TEST(packets_of_other_senders_are_dropped, NULL, bench_close)
{
	const struct address other = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 3 } };
	struct address peer;
	struct packet packet;

	responder_open(4);
	peer = testbed.hosts[0].address;
	packet = bench_packet(OPCODE_WRITE_ONLY, 100, 16);
	assert_ignored(&packet, testbed.hosts[1].socket, &other);
	assert_ignored(&packet, testbed.hosts[0].socket, &peer);
	packet.pkey = 0x1234;
	assert_ignored(&packet, testbed.hosts[1].socket, &peer);
	packet.pkey = PACKET_PKEY;
	packet.opcode = OPCODE_DATAGRAM;
	assert_ignored(&packet, testbed.hosts[1].socket, &peer);
	script("memory 0 1");
	/* Packets from any UDP source port of the peer are accepted. */
	packet.opcode = OPCODE_WRITE_ONLY;
	peer.port ^= 1;
	soft_qp_receive(testbed.hosts[1].transport, testbed.hosts[1].socket, &peer, &packet);
	soft_qp_batch_end(testbed.hosts[1].transport);
	script("= A100");
	assert_int_equal(testbed.hosts[1].cm_packets, 1);
}

/* The server has not accepted yet. Afterwards they are valid before the RTU, and stand for it. */
TEST(packets_before_the_answer_are_dropped, NULL, bench_close)
{
	struct packet packet;

	responder_open(4);
	packet = bench_packet(OPCODE_WRITE_ONLY, 100, 16);
	qp_of(&bench.pair, 1)->state = QP_INIT;
	assert_ignored(&packet, testbed.hosts[1].socket, &testbed.hosts[0].address);
	qp_of(&bench.pair, 1)->state = QP_RTR;
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	script("= A100");
	assert_int_equal(testbed.hosts[1].cm_packets, 1);
}

/* A region belongs to the process, as with verbs to the protection domain. */
TEST(key_is_valid_on_any_connection, NULL, bench_close)
{
	struct packet packet;
	struct pair other;

	responder_open(4);
	pair_open(&other, &bench.attr);
	packet = bench_packet(OPCODE_WRITE_ONLY, 100, 32);
	packet.destination = qp_of(&other, 1)->by_qpn.key;
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	script("write 100 = A100 A100; memory 31 0; memory 32 1");
	pair_close(&other);
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

/* An address is the region's own, and does not reveal the process's memory addresses. */
TEST(region_addresses_are_none_of_the_process)
{
	struct region *region;

	qp_open(1);
	region = region_of(0, 4096, REGION_REMOTE_READ);
	assert_true(region->remote_address == (uint64_t)region->remote_key << 32);
	soft_region_destroy(region);
	qp_close();
}

/* The command stops the queue pair in the callback of the last message. The peer gets the ACK. */
static void stop_at_receive(void *context, struct host *host, const struct reported *reported)
{
	if (reported->completion.kind == WORK_RECEIVE)
		soft_qp_drain(reported->endpoint->qp);
	else if (host == &testbed.hosts[0])
		received = reported->completion;
}

TEST(qp_stopped_in_callback_sends_ack, NULL, bench_close)
{
	responder_open(4);
	testbed.completed = stop_at_receive;
	post_receive(100);
	bench_post(WORK_SEND, 100);
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(received.tag, 77);
	assert_int_equal(received.status, COMPLETION_OK);
}

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
	soft_qp_drain(qp);
	assert_int_equal(post_captured(qp, &work), OUTCOME_OK);

	endpoint_prepare(&fresh, &testbed.hosts[0], ENDPOINT_CONNECTION, 1, 1);
	work.kind = WORK_RECEIVE;
	assert_int_equal(post_captured(fresh.qp, &work), OUTCOME_OK);
	soft_qp_destroy(fresh.qp);
	soft_region_destroy(region);
}
