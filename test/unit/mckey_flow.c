/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrivals from each sender, by datagram number. */
#include "unit.h"

#include "cmd/mckey/mckey.h"

/* One sender at one member. */
struct bench {
	struct senders senders;
	struct sender *sender;
};

static struct bench *bench_create(uint32_t members)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	bench->sender = calloc(1, sizeof(*bench->sender) + members * sizeof(struct flow));
	assert_non_null(bench->sender);
	bench->senders.members = members;
	sender_add(&bench->senders, bench->sender);
	return bench;
}

static void bench_destroy(struct bench *bench)
{
	free(bench->sender);
	free(bench);
}

static bool number(struct bench *bench, uint32_t sequence)
{
	return flow_count(&bench->sender->flows[0], bench->sender,
			  &(struct datagram_mark){ .sequence = sequence, .total = UINT32_MAX }, false);
}

static uint64_t lost(const struct bench *bench, uint64_t expected)
{
	return senders_counts(&bench->senders, expected).lost;
}

TEST(out_of_order_and_repeated_are_distinguished)
{
	struct bench *bench = bench_create(1);
	struct counts *counts = &bench->sender->counts;

	assert_true(number(bench, 1));
	assert_true(number(bench, 0));
	assert_int_equal(counts->out_of_order, 1);
	assert_false(number(bench, 0));
	assert_false(number(bench, 1));
	assert_int_equal(counts->duplicated, 2);
	assert_true(number(bench, 65));
	assert_false(number(bench, 1));
	assert_true(number(bench, 64));
	assert_false(number(bench, 64));
	assert_true(number(bench, 200));
	assert_false(number(bench, 65));
	assert_false(number(bench, 0));
	assert_int_equal(counts->duplicated, 6);
	assert_int_equal(counts->received, 5);
	assert_true(number(bench, 0 + FLOW_WINDOW));
	assert_false(number(bench, 0)); /* too late to be told from a duplicate */
	assert_true(number(bench, 999));
	assert_true(number(bench, 999 - FLOW_WINDOW + 1));
	assert_false(number(bench, 999 - FLOW_WINDOW));
	assert_int_equal(counts->duplicated, 8);
	bench_destroy(bench);
}

/* Every number in the order of each stride, against a plain table. */
TEST(counts_agree_with_a_table)
{
	for (uint32_t stride = 1; stride < 251; stride += 2) {
		struct bench *bench = bench_create(1);
		bool came[256] = { false };
		uint64_t different = 0, behind = 0;
		uint32_t highest = 0;

		for (uint32_t i = 0; i < 512; i++) {
			uint32_t sequence = (i + stride) * stride % 251;

			assert_int_equal(number(bench, sequence), !came[sequence]);
			different += !came[sequence];
			behind += !came[sequence] && different > 1 && sequence < highest;
			came[sequence] = true;
			highest = sequence > highest ? sequence : highest;
			assert_int_equal(lost(bench, 0), highest + 1 - different);
			assert_int_equal(lost(bench, 256), 256 - different);
			assert_int_equal(bench->sender->counts.out_of_order, behind);
		}
		assert_int_equal(bench->sender->counts.received, different);
		assert_int_equal(bench->sender->counts.duplicated, 512 - different);
		bench_destroy(bench);
	}
}

/* Also the highest: the window moves by any distance. */
TEST(window_moves_by_any_distance)
{
	for (uint32_t distance = 1; distance < 3 * FLOW_WINDOW; distance++) {
		struct bench *bench = bench_create(1);

		for (uint32_t i = 0; i < FLOW_WINDOW; i++)
			assert_true(number(bench, i));
		assert_true(number(bench, FLOW_WINDOW - 1 + distance));
		for (uint32_t i = distance; i < FLOW_WINDOW - 1 + distance; i++)
			assert_int_equal(number(bench, i), i >= FLOW_WINDOW);
		bench_destroy(bench);
	}
}

TEST(senders_differ_by_qpn_and_address)
{
	static struct sender one = { .qpn = 17, .address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 } } };
	static struct sender two = { .qpn = 17, .address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 } } };
	static struct sender three = { .qpn = 18, .address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 } } };
	static struct sender *const senders[] = { &one, &two, &three };
	static const struct sender unknown = { .qpn = 5 };
	struct senders *table = calloc(1, sizeof(*table));
	struct address nowhere = { .family = ADDRESS_NONE };
	char text[SENDER_NAME_SIZE];

	assert_non_null(table);
	assert_null(sender_find(table, 17, &one.address));
	for (size_t i = 0; i < LENGTH(senders); i++)
		sender_add(table, senders[i]);
	for (size_t i = 0; i < 3 * LENGTH(senders); i++) {
		const struct sender *wanted = senders[i * 2 % LENGTH(senders)];

		assert_ptr_equal(sender_find(table, wanted->qpn, &wanted->address), wanted);
	}
	assert_null(sender_find(table, 18, &two.address));
	assert_null(sender_find(table, 17, &nowhere));
	assert_string_equal(sender_name(&one, text), "QP 17 at 10.0.0.1");
	assert_string_equal(sender_name(&unknown, text), "QP 5");
	free(table);
}
