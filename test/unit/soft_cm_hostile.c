/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* Messages to the connection manager that are forged, cut short or changed. */
#include "test/network/cm.h"
#include "transport/soft/net/packet_io.h"

static const enum mad_kind answer_kinds[] = { MAD_MRA, MAD_REJ, MAD_REP, MAD_RTU, MAD_DREQ, MAD_DREP };

/* Links in every state, the two hosts deaf to each other from here on. All messages seen lie in world.seen. */
static void make_every_state(struct party *kept[10])
{
	struct party *passive;

	kept[0] = connect_pair(&passive);
	kept[1] = passive;
	kept[2] = connect_pair(&passive); /* DREQ sent */
	kept[3] = passive;
	kept[4] = connect_pair(&passive); /* ended */
	kept[5] = passive;
	do_disconnect(kept[4]);
	network_run(CLOCK_NS_PER_MS);
	world.requested = NULL;
	kept[6] = connect_one();
	network_run(CLOCK_NS_PER_MS);
	kept[7] = guest(); /* REQ received */
	world.allowed = no_reply;
	world.requested = do_accept;
	kept[8] = connect_one();
	network_run(CLOCK_NS_PER_MS);
	kept[9] = guest(); /* REP sent */
	world.requested = do_reject;
	do_forget(connect_one());
	network_run(CLOCK_NS_PER_MS);
	world.allowed = nothing_at_all;
	do_disconnect(kept[2]);
	world_flush();
	assert_int_equal(state_of(kept[0]), CM_ESTABLISHED);
	assert_int_equal(state_of(kept[1]), CM_ESTABLISHED);
	assert_int_equal(state_of(kept[2]), CM_DREQ_SENT);
	assert_int_equal(state_of(kept[3]), CM_ESTABLISHED);
	assert_int_equal(state_of(kept[4]), CM_TIMEWAIT);
	assert_int_equal(state_of(kept[5]), CM_TIMEWAIT);
	assert_int_equal(state_of(kept[6]), CM_REQ_SENT);
	assert_int_equal(state_of(kept[7]), CM_REQ_RECEIVED);
	assert_int_equal(state_of(kept[8]), CM_REQ_SENT);
	assert_int_equal(state_of(kept[9]), CM_REP_SENT);
}

/* A message of every kind for a link in every state: none may change anything. */
static void try_all(void (*attempt)(struct party *target, const struct host *peer, struct mad *mad))
{
	struct party *kept[10];
	uint64_t before;

	make_every_state(kept);
	before = fingerprint();
	for (unsigned i = 0; i < LENGTH(kept); i++)
		for (unsigned kind = 0; kind < LENGTH(answer_kinds); kind++) {
			const struct host *peer = &world.hosts[kept[i]->host == &world.hosts[0]];
			struct mad mad = mad_forge(answer_kinds[kind], kept[i], peer);

			attempt(kept[i], peer, &mad);
			assert_int_equal(fingerprint(), before);
		}
}

static void say_from_elsewhere(struct party *target, const struct host *peer, struct mad *mad)
{
	(void)peer;
	world_inject(&world.hosts[2], target->host, mad);
}

static void test_wrong_source(void **state)
{
	uint64_t before;

	(void)state;
	try_all(say_from_elsewhere);
	before = fingerprint();
	/* The requests too: another host repeats what it has overheard. */
	for (size_t i = 0; i < world.seen_count && i < LENGTH(world.seen); i++) {
		struct flight flight = world.seen[i];

		flight.from = world.hosts[2].address;
		if (!address_same_host(&flight.to, &flight.from))
			world_arrive(&flight);
		world_flush();
		assert_int_equal(fingerprint(), before);
	}
	forget_all();
}

static void say_to_another_address(struct party *target, const struct host *peer, struct mad *mad)
{
	uint8_t bytes[MAD_SIZE];

	mad_write(mad, bytes);
	soft_cm_receive(target->host->transport, target->host->other, &peer->address, bytes, MAD_SIZE, &icrc_good);
	world_flush();
}

/* The peer itself, but to another of our addresses than that of the connection. */
static void test_wrong_destination(void **state)
{
	(void)state;
	try_all(say_to_another_address);
	forget_all();
}

static void say_with_other_identifiers(struct party *target, const struct host *peer, struct mad *mad)
{
	mad->remote_id ^= 1;
	world_inject(peer, target->host, mad);
	mad->remote_id ^= 1;
	mad->local_id ^= 1;
	if (target->endpoint.cm_id->peer_known)
		world_inject(peer, target->host, mad);
	mad->local_id ^= 1;
	if (mad->kind == MAD_DREQ) {
		mad->dreq.remote_qpn ^= 1;
		world_inject(peer, target->host, mad);
	}
}

static void test_wrong_identifiers(void **state)
{
	(void)state;
	try_all(say_with_other_identifiers);
	forget_all();
}

/*
 * A peer that gave up waiting may not know our identifier, and names its own with its GUID, which every user of its
 * host can know. That counts only as long as it may not have heard ours.
 */
static void test_time_out_without_our_identifier(void **state)
{
	struct party *kept[10];
	unsigned ended = 0;

	(void)state;
	make_every_state(kept);
	for (unsigned i = 0; i < LENGTH(kept); i++) {
		const struct host *peer = &world.hosts[kept[i]->host == &world.hosts[0]];
		struct mad mad = mad_forge(MAD_REJ, kept[i], peer);
		enum cm_state before = state_of(kept[i]);
		bool counts = before == CM_REQ_RECEIVED || before == CM_REP_SENT;
		uint64_t all = fingerprint();
		uint8_t guid[8];

		bytes_write(guid, sizeof(guid), peer->transport->guid);
		mad.rej.information = guid;
		mad.rej.reason = MAD_REASON_TIMEOUT;
		mad.remote_id = 0;
		world_inject(peer, kept[i]->host, &mad);
		assert_int_equal(fingerprint() != all, counts);
		if (counts)
			assert_int_equal(state_of(kept[i]), CM_TIMEWAIT);
		ended += counts;
	}
	assert_int_equal(ended, 2);
	forget_all();
}

/* What does not say whether an identifier exists: the same answer to a right one from elsewhere and to a wrong one. */
static void test_no_oracle(void **state)
{
	struct party *active, *passive;
	struct mad mad, right, wrong;

	(void)state;
	active = connect_pair(&passive);
	for (unsigned kind = 0; kind < LENGTH(answer_kinds); kind++) {
		uint64_t flown = network->sent, answered;

		mad = mad_forge(answer_kinds[kind], active, &world.hosts[2]);
		world_inject(&world.hosts[2], active->host, &mad);
		answered = network->sent - flown;
		if (answered)
			mad_of_flight(&world.seen[(world.seen_count - 1) % LENGTH(world.seen)], &right);
		mad.remote_id ^= 0x10101;
		world_inject(&world.hosts[2], active->host, &mad);
		assert_int_equal(network->sent - flown, 2 * answered);
		if (!answered)
			continue;
		mad_of_flight(&world.seen[(world.seen_count - 1) % LENGTH(world.seen)], &wrong);
		assert_int_equal(right.kind, wrong.kind);
		assert_int_equal(right.transaction, wrong.transaction);
		assert_int_equal(right.local_id ^ 0x10101, wrong.local_id);
	}
	forget_all();
}

/* Services of datagrams and other paths are not there, and whoever asks is told, whether it names a connection or not.
 */
static void test_unsupported(void **state)
{
	static const struct {
		enum mad_kind kind, answer;
		uint8_t status;
	} rows[] = { { MAD_SIDR_REQ, MAD_SIDR_REP, 1 }, { MAD_LAP, MAD_APR, 2 } };
	struct party *active, *passive;
	uint64_t before;

	(void)state;
	active = connect_pair(&passive);
	before = fingerprint();
	for (size_t row = 0; row < LENGTH(rows); row++)
		for (uint32_t wrong = 0; wrong < 2; wrong++) {
			struct mad answer, mad = { .kind = rows[row].kind,
						   .transaction = 0x1234567,
						   .local_id = active->endpoint.cm_id->remote_id,
						   .remote_id = active->endpoint.cm_id->local_id ^ wrong };
			uint64_t sent = network->sent;

			world_inject(&world.hosts[1], &world.hosts[0], &mad);
			assert_int_equal(network->sent - sent, 1);
			assert_non_null(last_of(rows[row].answer, &world.hosts[0], &answer));
			assert_int_equal(answer.transaction, 0x1234567);
			assert_int_equal(answer.status, rows[row].status);
			if (rows[row].kind == MAD_LAP) {
				assert_int_equal(answer.local_id, mad.remote_id);
				assert_int_equal(answer.remote_id, mad.local_id);
			} else {
				assert_int_equal(answer.local_id, mad.local_id);
			}
			/* Which nobody here asked for. */
			world_inject(&world.hosts[1], &world.hosts[0], &answer);
			assert_int_equal(network->sent - sent, 1);
			assert_int_equal(fingerprint(), before);
		}
	forget_all();
}

/* Of the messages in a peer's name those count that have a link, and no REQ: anybody may say one. */
static void test_identifications_of_strangers(void **state)
{
	struct party *kept[10];
	struct icrc_state pair = { .known = true, .last.identification = 100 }, before = pair;
	struct icrc_pending pending = { .state = &pair, .result = ICRC_SOLVED, .ip_id.identification = 101 };
	unsigned requests = 0, heard = 0;

	(void)state;
	make_every_state(kept);
	for (unsigned i = 0; i < LENGTH(kept); i++)
		for (unsigned kind = 0; kind < LENGTH(answer_kinds); kind++) {
			struct host *host = kept[i]->host;
			const struct host *peer = &world.hosts[host == &world.hosts[0]];
			struct mad mad = mad_forge(answer_kinds[kind], kept[i], peer);
			uint8_t bytes[MAD_SIZE];

			mad.remote_id ^= 0x10101;
			mad_write(&mad, bytes);
			soft_cm_receive(host->transport, host->socket, &peer->address, bytes, MAD_SIZE, &pending);
			world_flush();
			assert_memory_equal(&pair, &before, sizeof(pair));
		}
	for (size_t i = 0; i < world.seen_count && i < LENGTH(world.seen); i++) {
		struct host *host = host_at(&world.seen[i].to);
		struct mad mad;

		mad_of_flight(&world.seen[i], &mad);
		if (mad.kind != MAD_REQ)
			continue;
		soft_cm_receive(host->transport, host->socket, &world.seen[i].from, world.seen[i].bytes, MAD_SIZE,
				&pending);
		assert_memory_equal(&pair, &before, sizeof(pair));
		requests++;
	}
	assert_true(requests > 0);
	for (unsigned i = 0; i < LENGTH(kept); i++) {
		const struct host *peer = &world.hosts[kept[i]->host == &world.hosts[0]];
		struct mad mad = mad_forge(MAD_MRA, kept[i], peer);
		uint8_t bytes[MAD_SIZE];

		pair = before;
		mad_write(&mad, bytes);
		soft_cm_receive(kept[i]->host->transport, kept[i]->host->socket, &peer->address, bytes, MAD_SIZE,
				&pending);
		heard += pair.last.identification == 101;
	}
	assert_true(heard > 0);
	forget_all();
}

static void test_truncated(void **state)
{
	struct party *kept[10];
	uint64_t before, sent;
	size_t count;

	(void)state;
	make_every_state(kept);
	sent = network->sent;
	count = world.seen_count < LENGTH(world.seen) ? world.seen_count : LENGTH(world.seen);
	before = fingerprint();
	for (size_t i = 0; i < count; i++)
		for (size_t length = 0; length < MAD_SIZE; length++) {
			struct host *host = host_at(&world.seen[i].to);
			uint8_t *bytes = malloc(length + 1);

			assert_non_null(bytes);
			memcpy(bytes, world.seen[i].bytes, length);
			soft_cm_receive(host->transport, host->socket, &world.seen[i].from, bytes, length, &icrc_good);
			free(bytes);
			soft_flush(host->transport);
			assert_int_equal(network->sent, sent);
		}
	assert_int_equal(fingerprint(), before);
	forget_all();
}

static void test_random_bytes(void **state)
{
	struct party *kept[10];
	uint64_t before;

	(void)state;
	make_every_state(kept);
	before = fingerprint();
	for (unsigned i = 0; i < 30000; i++) {
		struct flight flight = { world.hosts[i % 3].address, world.hosts[i / 3 % 2].address, { 0 } };
		static const uint8_t header[8] = { 1, 7, 2, 3 };

		for (unsigned byte = 0; byte < MAD_SIZE; byte += 8) {
			uint64_t word = network_random();

			memcpy(flight.bytes + byte, &word, 8);
		}
		/* Most of them with a header that is right, so that they get somewhere. */
		if (i % 8) {
			memcpy(flight.bytes, header, sizeof(header));
			flight.bytes[16] = 0;
			flight.bytes[17] = (uint8_t)(0x10 + network_random() % 8);
		}
		world_arrive(&flight);
	}
	assert_int_equal(fingerprint(), before);
	forget_all();
}

/* Bytes changed in messages that do count: anything may happen, but nothing breaks, and nothing stays. */
static void test_changed_bytes(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		struct party *kept[10];
		struct flight seen[LENGTH(world.seen)];
		size_t count;

		world.allowed = NULL;
		make_every_state(kept);
		memcpy(seen, world.seen, sizeof(seen));
		count = world.seen_count < LENGTH(seen) ? world.seen_count : LENGTH(seen);
		for (unsigned i = 0; i < 200; i++) {
			struct flight flight = seen[network_random() % count];

			for (unsigned changes = (unsigned)network_random() % 3 + 1; changes; changes--)
				flight.bytes[network_random() % 20 ? 24 + network_random() % 100
								   : network_random() % MAD_SIZE] =
					(uint8_t)network_random();
			world_arrive(&flight);
			world_flush();
		}
		world.allowed = NULL;
		network_run(2 * CLOCK_NS_PER_S);
		forget_all();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_wrong_source),
		WORLD_TEST(test_wrong_destination),
		WORLD_TEST(test_wrong_identifiers),
		WORLD_TEST(test_time_out_without_our_identifier),
		WORLD_TEST(test_unsupported),
		WORLD_TEST(test_no_oracle),
		WORLD_TEST(test_identifications_of_strangers),
		WORLD_TEST(test_truncated),
		WORLD_TEST(test_random_bytes),
		WORLD_TEST(test_changed_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
