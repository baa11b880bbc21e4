/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* Connected queue pairs on a simulated network: transfers, throughput, retransmission, failure. */
#include <errno.h>

#include "test/network/qp_run.h"
#include "transport/soft/qp/qp.h"
#include "transport/soft/wire/mad.h"

/* ---- seeded runs ---- */

static void run_seed(uint64_t seed, unsigned loss, unsigned other, size_t works)
{
	static const uint32_t mtus[] = { 256, 512, 1024, 2048, 4096 };
	struct qp_run *run = qp_run_new(seed);

	network->loss = loss;
	network->repeat = network->reorder = network->damage = other;
	run->attr = (struct qp_attr){
		.mtu = mtus[network_below(LENGTH(mtus))],
		.depth = 1 + network_below(20),
		.psn = { network_below(2) ? network_below(PSN_MASK + 1) : PSN_MASK - network_below(60),
			 network_below(PSN_MASK + 1) },
		.reads = 1 + network_below(16),
		.ack_timeout = 14 + network_below(6),
	};
	if (!network_below(4))
		testbed.window = (4 + network_below(16)) * run->attr.mtu;
	qp_run_plan_randomly(run, works);
	qp_run_all(run);
	qp_run_end(run);
}

/* Losses, and repeated, reordered and damaged packets of each, in a thousand. */
TEST(seeded_runs)
{
	static const struct {
		unsigned loss, other, count;
	} rows[] = { { 0, 0, 40 }, { 10, 10, 100 }, { 50, 50, 100 }, { 200, 50, 100 }, { 0, 200, 60 } };

	for (size_t row = 0; row < LENGTH(rows); row++)
		for (unsigned seed = 0; seed < seeds(rows[row].count); seed++) {
			if (getenv("SOFT_QUEUE_TRACE"))
				fprintf(stderr, "row %zu: seed %u\n", row, seed);
			run_seed(seed * 1000 + rows[row].loss, rows[row].loss, rows[row].other, 30);
		}
}

/* ---- speed in virtual time ---- */

/* Returns MB/s of work requests in one direction. The line has 10 Gbit/s, the round trip time is about 30 us. */
static double throughput(enum work_kind kind, uint32_t length, size_t works, unsigned loss)
{
	struct qp_run *run = qp_run_new(loss + 1);
	double megabytes;

	network->loss = loss;
	for (size_t index = 0; index < works; index++)
		qp_run_add(run, 0, (struct plan){ .kind = kind, .length = length });
	qp_run_all(run);
	megabytes = (double)length * (double)works / 1e6 / ((double)run->taken / 1e9);
	qp_run_end(run);
	return megabytes;
}

TEST(throughput_with_loss)
{
	/* The line has 1,250 MB/s. The measured rates are well above these limits. */
	static const struct {
		enum work_kind kind;
		unsigned loss;
		double least;
	} rows[] = {
		{ WORK_SEND, 0, 1100 }, { WORK_SEND, 10, 300 }, { WORK_SEND, 50, 80 }, { WORK_SEND, 200, 2 },
		{ WORK_READ, 0, 1100 }, { WORK_READ, 10, 250 }, { WORK_READ, 50, 80 }, { WORK_READ, 200, 2 },
	};

	for (size_t index = 0; index < LENGTH(rows); index++)
		assert_true(throughput(rows[index].kind, 65536, is_valgrind() ? 8 : 128, rows[index].loss) >=
			    (is_valgrind() ? 0 : rows[index].least));
}

/* ---- counters ---- */

static uint64_t counted(enum soft_count count)
{
	return testbed.hosts[0].transport->counts[count].increase + testbed.hosts[1].transport->counts[count].increase;
}

/* Those of the network: zero without a loss. With losses all except damage, late and repeated responses, and missing
 * receives. */
TEST(losses_are_counted)
{
	for (unsigned loss = 0; loss <= 50; loss += 50) {
		struct qp_run *run = qp_run_new(loss + 1);

		network->loss = loss;
		for (size_t index = 0; index < 64; index++)
			qp_run_add(run, 0, (struct plan){ .kind = index % 2 ? WORK_READ : WORK_SEND, .length = 65536 });
		qp_run_all(run);
		for (enum soft_count count = 0; count < SOFT_SEND_DROPS; count++) {
			bool of_loss = count != SOFT_DAMAGED && count != SOFT_STRAY && count != SOFT_LATE &&
				       count != SOFT_REPEATED_REQS && count != SOFT_RESPONSES_TWICE &&
				       count != SOFT_RNR_NAKS && count != SOFT_RNR_NAKS_SENT;

			assert_int_equal(counted(count) > 0, loss && of_loss);
		}
		/* Some are lost, and each gap has one. */
		assert_true(counted(SOFT_SEQUENCE_NAKS) <= counted(SOFT_SEQUENCE_NAKS_SENT));
		assert_true(counted(SOFT_SEQUENCE_NAKS_SENT) <= counted(SOFT_OUT_OF_SEQUENCE));
		qp_run_end(run);
	}
}

/* ---- one lost packet ---- */

static unsigned packets_sent, packet_to_drop; /* counted from 1; 0: none */
static int64_t outage;			      /* nanoseconds without arrivals from the dropped packet on */
static int64_t outage_end;
static unsigned dropped; /* its enum opcode_form */

static bool drop_some(struct network *where, const struct host *from, struct packet *packet)
{
	if (++packets_sent == packet_to_drop) {
		dropped = opcode_form(packet->opcode);
		outage_end = where->now + outage;
		return false;
	}
	return where->now >= outage_end;
}

/*
 * Returns the virtual nanoseconds of some messages, of which the first measure the round trip. A lost request or READ
 * response is counted at the requester, a request also at the responder; a lost ACK nowhere.
 */
static int64_t run_with_drop(unsigned drop)
{
	static const struct plan plans[] = {
		{ .kind = WORK_SEND, .length = 64 },	{ .kind = WORK_SEND, .length = 64 },
		{ .kind = WORK_READ, .length = 65536 }, { .kind = WORK_WRITE, .length = 65536 },
		{ .kind = WORK_READ, .length = 64 },	{ .kind = WORK_WRITE, .length = 64 },
	};
	struct qp_run *run = qp_run_new(1);
	int64_t taken;
	uint64_t known;

	testbed.tap = drop_some;
	packets_sent = 0;
	packet_to_drop = drop;
	outage_end = dropped = 0;
	run->attr = (struct qp_attr){ .mtu = 1024, .depth = 1, .ack_timeout = 18 };
	for (size_t index = 0; index < LENGTH(plans); index++)
		qp_run_add(run, 0, plans[index]);
	qp_run_all(run);
	taken = run->taken;
	known = counted(SOFT_SEQUENCE_NAKS) + counted(SOFT_IMPLIED_NAKS);
	if (!outage || !(dropped & FORM_RESPONSE))
		assert_int_equal(known > 0, drop && (!(dropped & FORM_RESPONSE) || (dropped & FORM_READ)));
	assert_int_equal(counted(SOFT_OUT_OF_SEQUENCE) > 0, counted(SOFT_SEQUENCE_NAKS) > 0);
	assert_int_equal(counted(SOFT_LATE), 0);
	qp_run_end(run);
	return taken;
}

/* Also the loss of a last packet: an acknowledgement, a READ or its last response, without a later packet. */
TEST(one_loss_is_known_and_costs_milliseconds)
{
	int64_t lossless = run_with_drop(0);
	unsigned packets = packets_sent;

	for (unsigned drop = 3; drop <= packets; drop++)
		assert_in_range(run_with_drop(drop) - lossless, 0, 3 * CLOCK_NS_PER_MS);
}

/*
 * The probe is lost, too, and the packets of further timeouts. The READ that they resend may hide its lost response.
 */
TEST(outage_is_known)
{
	unsigned packets;

	run_with_drop(0);
	packets = packets_sent;
	for (outage = CLOCK_NS_PER_MS; outage <= 256 * CLOCK_NS_PER_MS; outage *= 2)
		for (unsigned drop = 3; drop <= packets; drop++)
			assert_in_range(run_with_drop(drop), outage, 3 * outage + 10 * CLOCK_NS_PER_MS);
	outage = 0;
}

/* ---- a peer that is busy for a while ---- */

static unsigned requests, retransmitted;
static uint32_t psn_after_all;

static bool count_retransmissions(struct network *where, const struct host *from, struct packet *packet)
{
	if (from != &testbed.hosts[0] || !(opcode_form(packet->opcode) & FORM_SEND))
		return true;
	if (requests++ && psn_before(packet->psn, psn_after_all))
		retransmitted++;
	else
		psn_after_all = psn_add(packet->psn, 1);
	where->read_delay = requests >= 500 && requests < 540 ? 50 * CLOCK_NS_PER_MS : 5 * CLOCK_NS_PER_US;
	return true;
}

/* Sends 100 messages with at most that many outstanding, and counts retransmissions. Returns the duration. */
static int64_t run_counted(bool (*tap)(struct network *, const struct host *, struct packet *), uint32_t depth,
			   uint32_t length)
{
	struct qp_run *run = qp_run_new(1);
	int64_t taken;

	testbed.tap = tap;
	requests = retransmitted = 0;
	run->attr.ack_timeout = 19;
	run->attr.depth = depth;
	for (size_t index = 0; index < 100; index++)
		qp_run_add(run, 0, (struct plan){ .kind = WORK_SEND, .length = length });
	qp_run_all(run);
	taken = run->taken;
	for (enum soft_count count = 0; count < SOFT_SENT; count++)
		if (count != SOFT_DUPLICATES && count != SOFT_TIMEOUTS && count != SOFT_LATE && count != SOFT_RESENT)
			assert_int_equal(counted(count), 0);
	qp_run_end(run);
	return taken;
}

/* One or two packets at a time, after doubled waits. None is taken for a loss. */
TEST(busy_peer_gets_few_retransmissions)
{
	assert_true(run_counted(count_retransmissions, 16, 10000) >= 50 * CLOCK_NS_PER_MS);
	assert_int_equal(requests, 1000 + retransmitted);
	assert_in_range(retransmitted, 1, 12);
}

/* ---- a peer that becomes slow, as with thousands of other connections ---- */

static bool delay_after_50_requests(struct network *where, const struct host *from, struct packet *packet)
{
	count_retransmissions(where, from, packet);
	where->read_delay = requests < 50 ? 5 * CLOCK_NS_PER_US : 200 * CLOCK_NS_PER_MS;
	return true;
}

/* With one work request at a time each ACK comes after a retransmission, and is no RTT sample (Karn). */
TEST(timeout_adapts_to_slow_peer)
{
	run_counted(delay_after_50_requests, 1, 100);
	assert_in_range(retransmitted, 1, 15);
}

/* srtt is at least 1 ns: 0 means not measured. */
TEST(srtt_is_at_least_1_ns)
{
	struct qp_run *run = qp_run_of_sends(10, 0, 7);

	network->delay = network->byte_time = network->read_delay = 0;
	qp_run_begin(run);
	qp_run_wait(run);
	assert_int_equal(qp_of(&run->pair, 0)->requester.srtt, 1);
	qp_run_check_end(run);
	qp_run_end(run);
}

/* ---- RNR NAK ---- */

TEST(rnr_retry_7_is_infinite)
{
	struct qp_run *run = qp_run_of_sends(10, 7, 7);
	uint64_t sent;

	qp_run_begin(run);
	assert_false(network_run(4 * CLOCK_NS_PER_S));
	/* The requester sends one packet at least every 5 ms. */
	sent = network->sent;
	assert_false(network_run(1 * CLOCK_NS_PER_S));
	assert_in_range(network->sent - sent, 300, 450);
	assert_int_equal(run->directions[0].finished, 3);
	run->held_receives = 0;
	qp_run_post_receives(run, 0);
	run->taken = network->now;
	assert_true(network_run(CLOCK_NS_PER_S));
	assert_true(network->now - run->taken < 20 * CLOCK_NS_PER_MS);
	qp_run_check_end(run);
	qp_run_end(run);
}

/* ---- a dead peer ---- */

/* Probes use no work request and no receive, and few packets. They are retransmitted in time, also if the agreed ACK
 * timeout is infinite, or hours. */
TEST(idle_connection_is_probed)
{
	for (unsigned turn = 0; turn < 3; turn++) {
		struct qp_run *run = qp_run_of_sends(2, 0, 7);
		uint64_t sent;

		qp_run_begin(run);
		assert_true(network_run(CLOCK_NS_PER_S));
		if (turn) {
			qp_of(&run->pair, 0)->ack_timeout = turn == 1 ? 0 : mad_timeout(31);
			network->loss = 200;
		}
		sent = network->sent;
		assert_false(network_run(60 * CLOCK_NS_PER_S));
		assert_in_range(network->sent - sent, 10, 80);
		assert_int_equal(testbed.hosts[0].failures + testbed.hosts[1].failures, 0);
		testbed.hosts[1].dead = true;
		assert_false(network_run((turn ? 60 : 20) * CLOCK_NS_PER_S));
		assert_int_equal(testbed.hosts[0].failures, 1);
		assert_string_equal(testbed.hosts[0].failure, "the peer does not answer");
		qp_run_end(run);
	}
}

/* The probe is outstanding when the command posts: the failure is reported as the completion of the work request. */
TEST(work_behind_probe_fails)
{
	struct qp_run *run = qp_run_of_sends(2, 0, 7);

	run->may_fail = true;
	qp_run_prepare(run);
	testbed.hosts[1].dead = true;
	soft_qp_probe(qp_of(&run->pair, 0));
	soft_qp_probe(qp_of(&run->pair, 0));
	qp_run_post(run, 0);
	assert_true(network_run(60 * CLOCK_NS_PER_S));
	assert_int_equal(run->failed_status, COMPLETION_RETRY_EXCEEDED);
	assert_int_equal(testbed.hosts[0].failures, 0);
	qp_run_end(run);
}

/* After an ICMP error a probe is sent. If the peer responds, the connection stays, and the error is cleared. */
TEST(suspected_peer_responds)
{
	struct qp_run *run = qp_run_of_sends(2, 0, 7);
	uint64_t sent;

	network->loss = 200;
	qp_run_begin(run);
	assert_true(network_run(CLOCK_NS_PER_S));
	for (unsigned count = 0; count < 20; count++) {
		sent = network->sent;
		qp_of(&run->pair, 0)->endpoint->icmp.error = EHOSTUNREACH;
		soft_qp_suspect(qp_of(&run->pair, 0));
		soft_qp_suspect(qp_of(&run->pair, 0));
		hosts_flush();
		assert_true(network->sent > sent);
		assert_false(network_run(3 * CLOCK_NS_PER_S));
		assert_int_equal(qp_of(&run->pair, 0)->endpoint->icmp.error, 0);
	}
	assert_int_equal(testbed.hosts[0].failures + testbed.hosts[1].failures, 0);
	qp_run_end(run);
}

/* Calls soft_qp_suspect() as the callback of a socket does, with a new time stamp. */
static void suspect(struct soft_qp *qp)
{
	soft_qp_batch_end(qp->transport);
	soft_qp_suspect(qp);
	soft_qp_batch_end(qp->transport);
}

static bool drop_requests(struct network *where, const struct host *from, struct packet *packet)
{
	return from != &testbed.hosts[0] || (opcode_form(packet->opcode) & FORM_RESPONSE);
}

/* After the peer responds, work without a timeout waits again without limit, and the timeouts counted while it was
 * suspected are cleared. */
TEST(suspected_peer_sends_packets, NULL, bench_close)
{
	struct counter counter = { .wanted = 2 };
	struct soft_qp *qp, *other;
	struct work work;

	bench_open(4);
	qp = qp_of(&bench.pair, 0);
	other = qp_of(&bench.pair, 1);
	testbed.completed = count_completions;
	testbed.context = &counter;
	qp->ack_timeout = 0;
	qp->retry_limit = 0;
	other->probe_interval = 3600 * CLOCK_NS_PER_S;
	work = work_to(WORK_WRITE, bench.local, bench.region, 100);
	assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
	bench_run();
	assert_int_equal(counter.good, 1);

	testbed.tap = drop_requests;
	assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
	for (unsigned round = 0; round < 2; round++) {
		network_run(10 * CLOCK_NS_PER_S);
		suspect(qp);
		for (unsigned wait = 0; wait < 40 && qp->requester.consecutive_timeouts < 4; wait++)
			network_run(10 * CLOCK_NS_PER_MS);
		assert_int_equal(qp->requester.consecutive_timeouts, 4);
		soft_qp_probe(other);
	}
	network_run(10 * CLOCK_NS_PER_S);
	testbed.tap = NULL;
	suspect(qp);
	assert_true(network_run(CLOCK_NS_PER_S));
	assert_int_equal(testbed.hosts[0].failures + testbed.hosts[1].failures, 0);
}

TEST(suspected_peer_is_dead)
{
	/* 0: idle, 1: work with retransmission, 2: work without a timeout, 3: the peer has no receive, 4: old work
	 * without retries. */
	for (unsigned way = 0; way < 5; way++) {
		struct qp_run *run = qp_run_of_sends(2, way == 3 ? 2 : 0, 7);
		struct soft_qp *qp = qp_of(&run->pair, 0);

		run->may_fail = true;
		if (!way || way == 3)
			qp_run_begin(run);
		else
			qp_run_prepare(run);
		network_run(CLOCK_NS_PER_S / 10);
		testbed.hosts[1].dead = true;
		qp->ack_timeout = way == 2 || way == 4 ? 0 : CLOCK_NS_PER_S * 4;
		if (way == 1 || way == 2 || way == 4)
			qp_run_post(run, 0);
		if (way == 4) {
			qp->retry_limit = 0;
			network_run(10 * CLOCK_NS_PER_S);
		}
		/* The ICMP error is the peer's, or a router's. */
		qp->endpoint->icmp = (struct soft_icmp){ .error = ECONNREFUSED,
							 .peer = testbed.hosts[1].address,
							 .from = testbed.hosts[way != 3].address };
		suspect(qp);
		network_run(CLOCK_NS_PER_S * 9 / 10);
		assert_int_equal(testbed.hosts[0].failures, 0);
		network_run(CLOCK_NS_PER_S * 7 / 10);
		assert_int_equal(testbed.hosts[0].failures, 1);
		assert_string_equal(
			testbed.hosts[0].failure,
			way == 3
				? "connection lost: a firewall or router on the way rejects UDP port 4791"
				: "connection lost: the peer's process has ended, or a firewall rejects UDP port 4791");
		qp_run_end(run);
	}
}

/* The same while many other connections are unresponsive, and their probes are limited. */
TEST(suspected_peers_among_many_are_dead)
{
	enum {
		PAIRS = 2000,
		SUSPECTED = 50
	};
	struct pair *pairs = calloc(PAIRS, sizeof(*pairs));
	struct qp_attr attr = { .depth = 1, .ack_timeout = 20 };

	assert_non_null(pairs);
	qp_open(1);
	for (size_t index = 0; index < PAIRS; index++) {
		pair_open(&pairs[index], &attr);
		soft_qp_drain(qp_of(&pairs[index], 1));
	}
	testbed.hosts[1].dead = true;
	network_run(CLOCK_NS_PER_S * 6 / 10);
	soft_qp_batch_end(testbed.hosts[0].transport);
	for (size_t index = 0; index < PAIRS; index += PAIRS / SUSPECTED)
		soft_qp_suspect(qp_of(&pairs[index], 0));
	network_run(CLOCK_NS_PER_S * 9 / 10);
	assert_int_equal(testbed.hosts[0].failures, 0);
	network_run(CLOCK_NS_PER_S * 7 / 10);
	assert_int_equal(testbed.hosts[0].failures, SUSPECTED);
	for (size_t index = 0; index < PAIRS; index++)
		pair_close(&pairs[index]);
	qp_close();
	free(pairs);
}

/* ---- requests and responses ---- */

TEST(invalid_responses_are_dropped)
{
	struct qp_run *run = qp_run_of_sends(8, 8, 7);
	struct packet packet = { .pkey = PACKET_PKEY };

	qp_run_begin(run);
	network_run(CLOCK_NS_PER_MS);
	packet.destination = qp_of(&run->pair, 0)->by_qpn.key;
	for (uint32_t psn = 0; psn <= PSN_MASK; psn += 4093) {
		if (psn < 100)
			continue;
		packet.opcode = (uint8_t)(OPCODE_READ_RESPONSE_FIRST + psn % 5);
		packet.psn = psn;
		packet.acknowledgement.syndrome = (uint8_t)psn;
		host_send_packet(&testbed.hosts[1], &testbed.hosts[0], &packet);
		network_run(CLOCK_NS_PER_US * 10);
	}
	/* Within the window, but not requested. */
	packet.opcode = OPCODE_READ_RESPONSE_ONLY;
	packet.psn = 0;
	host_send_packet(&testbed.hosts[1], &testbed.hosts[0], &packet);
	packet.opcode = OPCODE_ACKNOWLEDGE;
	packet.acknowledgement.syndrome = 0x5f;
	host_send_packet(&testbed.hosts[1], &testbed.hosts[0], &packet);
	packet.acknowledgement.syndrome = syndrome_make(SYNDROME_NAK, 9);
	host_send_packet(&testbed.hosts[1], &testbed.hosts[0], &packet);
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(run->directions[0].finished, 0);
	run->held_receives = 0;
	qp_run_post_receives(run, 0);
	assert_true(network_run(CLOCK_NS_PER_S));
	qp_run_check_end(run);
	qp_run_end(run);
}

/* ---- several queue pairs ---- */

enum {
	PAIRS_MAX = 256
};

/* Each of many pairs WRITEs length bytes as often as its depth. Ends with the last completion. */
static void write_on_pairs(size_t pairs, uint32_t length, struct qp_attr attr)
{
	static struct pair opened[PAIRS_MAX];
	struct region *source = region_of(0, length, 0), *target = region_of(1, length, REGION_REMOTE_WRITE);
	const struct work work = work_to(WORK_WRITE, source, target, length);
	struct counter counter = { .wanted = pairs * attr.depth };

	testbed.completed = count_completions;
	testbed.context = &counter;
	for (size_t index = 0; index < pairs; index++) {
		struct qp_attr own = attr;

		pair_open(&opened[index], &own);
		for (unsigned count = 0; count < attr.depth; count++)
			assert_int_equal(soft_qp_post(qp_of(&opened[index], 0), &work, 1), OUTCOME_OK);
	}
	assert_true(network_run(60 * CLOCK_NS_PER_S));
	for (size_t index = 0; index < pairs; index++)
		pair_close(&opened[index]);
	soft_region_destroy(source);
	soft_region_destroy(target);
}

/* Returns the number of packets dropped because the receiver's socket buffer was full. */
static uint64_t overflow_of_senders(size_t count_of_pairs)
{
	uint64_t overflowed;
	int64_t began;

	qp_open(3);
	network->receive_buffer = 212992;
	network->packet_time = 2 * CLOCK_NS_PER_US;
	testbed.window = network->receive_buffer / 2;
	began = network->now;
	write_on_pairs(count_of_pairs, 16384, (struct qp_attr){ .depth = is_valgrind() ? 1 : 16 });
	assert_true(network->now - began < CLOCK_NS_PER_S);
	overflowed = network->overflowed;
	qp_close();
	return overflowed;
}

/* The sum of the minimum windows exceeds the receiver's socket buffer. */
TEST(many_senders_complete)
{
	uint64_t overflowed = overflow_of_senders(64);

	assert_true(overflowed || is_valgrind());
}

/* One of them alone could fill the socket buffer. */
TEST(busy_senders_share_window)
{
	assert_int_equal(overflow_of_senders(20), 0);
	assert_int_equal(overflow_of_senders(2), 0);
}

static size_t requests_sent;
static size_t request_to_drop; /* number of the request in sending order, from 1; 0: none */
static int64_t probed_at;

static bool count_requests(struct network *where, const struct host *from, struct packet *packet)
{
	if (from != &testbed.hosts[0])
		return true;
	if (!packet->length && !probed_at)
		probed_at = clock_now();
	return ++requests_sent != request_to_drop;
}

/* Many queue pairs keep a slow network busy for longer than the ACK timeout of any of them. Returns the nanoseconds
 * from the probe to the last completion. */
static int64_t run_backlog(size_t drop)
{
	enum {
		WORKS = 4
	};
	int64_t remaining;

	qp_open(3);
	request_to_drop = drop;
	network->byte_time = 5000000; /* picoseconds: half a millisecond for each packet */
	testbed.tap = count_requests;
	requests_sent = 0;
	probed_at = 0;
	write_on_pairs(PAIRS_MAX, 64, (struct qp_attr){ .depth = WORKS, .ack_timeout = 18 });
	remaining = clock_now() - probed_at;
	/* A probe, and retransmissions: the lost packet, and those after it in its queue pair. */
	assert_in_range(requests_sent, PAIRS_MAX * WORKS + (drop ? 2 : 0), PAIRS_MAX * WORKS + (drop ? 2 + WORKS : 0));
	qp_close();
	return remaining;
}

TEST(backlog_is_not_a_loss)
{
	run_backlog(0);
}

/* ACKs for later packets of other queue pairs prove the loss long before the backlog is sent. */
TEST(loss_in_backlog_is_detected)
{
	assert_true(run_backlog(100) > 200 * CLOCK_NS_PER_MS);
}
