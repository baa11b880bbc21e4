/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of mckey that need no device: the mark of a datagram, the sequence window, the source table. */
#include "unit.h"

#include "cmd/mckey/source.h"
#include "test/unit/pattern.h"

enum {
	QUEUE = 17,
	SIZE = 100
};

static void written_datagram_is_read_back(void **state)
{
	static const size_t sizes[] = { DATAGRAM_MARK_SIZE, DATAGRAM_MARK_SIZE + 1, SIZE, 1024, 4096 };
	struct datagram_mark written = { .sequence = 41, .total = 1000 }, found;
	struct payload_difference difference;
	uint8_t memory[4096];

	(void)state;
	for (size_t i = 0; i < LENGTH(sizes); i++) {
		datagram_write(memory, sizes[i], pattern(), QUEUE, &written);
		assert_int_equal(datagram_read(memory, sizes[i], pattern(), QUEUE, &found, &difference),
				 DATAGRAM_INTACT);
		assert_int_equal(found.sequence, 41);
		assert_int_equal(found.total, 1000);
	}
}

static void short_datagram_has_no_mark(void **state)
{
	struct datagram_mark mark = { .sequence = 0, .total = 1 };
	struct payload_difference difference;
	uint8_t memory[DATAGRAM_MARK_SIZE + 1];

	(void)state;
	for (size_t size = 0; size < DATAGRAM_MARK_SIZE; size++) {
		memset(memory, 0xee, sizeof(memory));
		datagram_write(memory, size, pattern(), QUEUE, &mark);
		assert_int_equal(memory[size], 0xee);
		assert_int_equal(datagram_read(memory, size, pattern(), QUEUE, &mark, &difference), DATAGRAM_UNMARKED);
	}
}

static void mark_depends_on_qpn_length_and_range(void **state)
{
	struct datagram_mark mark = { .sequence = 3, .total = 10 };
	struct payload_difference difference;
	uint8_t memory[SIZE];

	(void)state;
	datagram_write(memory, SIZE, pattern(), QUEUE, &mark);
	assert_int_equal(datagram_read(memory, SIZE, pattern(), QUEUE + 1, &mark, &difference), DATAGRAM_UNMARKED);
	assert_int_equal(datagram_read(memory, SIZE - 1, pattern(), QUEUE, &mark, &difference), DATAGRAM_UNMARKED);
	for (size_t byte = 0; byte < DATAGRAM_MARK_SIZE; byte++) {
		datagram_write(memory, SIZE, pattern(), QUEUE, &mark);
		memory[byte] ^= 0x40;
		assert_int_equal(datagram_read(memory, SIZE, pattern(), QUEUE, &mark, &difference), DATAGRAM_UNMARKED);
	}
	mark = (struct datagram_mark){ .sequence = 10, .total = 10 };
	datagram_write(memory, SIZE, pattern(), QUEUE, &mark);
	assert_int_equal(datagram_read(memory, SIZE, pattern(), QUEUE, &mark, &difference), DATAGRAM_UNMARKED);
}

static void position_of_damage_is_found(void **state)
{
	struct datagram_mark mark = { .sequence = 3, .total = 10 };
	struct payload_difference difference;
	uint8_t memory[SIZE];

	(void)state;
	for (size_t byte = DATAGRAM_MARK_SIZE; byte < SIZE; byte++) {
		datagram_write(memory, SIZE, pattern(), QUEUE, &mark);
		memory[byte] ^= 1;
		assert_int_equal(datagram_read(memory, SIZE, pattern(), QUEUE, &mark, &difference), DATAGRAM_DAMAGED);
		assert_int_equal(difference.position, byte);
		assert_int_equal(difference.found, memory[byte]);
	}
}

static void heap_garbage_has_no_mark(void **state)
{
	uint8_t memory[SIZE];
	struct datagram_mark mark;
	struct payload_difference difference;

	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		memset(memory, (int)byte, sizeof(memory));
		assert_int_equal(datagram_read(memory, SIZE, pattern(), QUEUE, &mark, &difference), DATAGRAM_UNMARKED);
	}
}

static void source_address_is_found(void **state)
{
	uint8_t header[DATAGRAM_HEADER_SIZE] = { 0 };
	struct address address;
	char text[ADDRESS_TEXT_SIZE];

	(void)state;
	assert_false(datagram_source(header, &address));
	assert_int_equal(address.family, ADDRESS_NONE);

	/* IPv4 as soft-RoCE loops it back: without a checksum. */
	header[20] = 0x45;
	memcpy(header + 32, (const uint8_t[]){ 10, 77, 0, 1, 239, 1, 1, 1 }, 8);
	assert_true(datagram_source(header, &address));
	assert_string_equal(address_host(&address, text), "10.77.0.1");

	/* A route header in front of it wins unless the IPv4 checksum fits. */
	header[0] = 0x60;
	header[8] = 0xfd;
	assert_true(datagram_source(header, &address));
	assert_int_equal(address.family, ADDRESS_IP6);
	assert_int_equal(address.bytes[0], 0xfd);
	memcpy(header + 20, (const uint8_t[]){ 0x45, 0,	   0,	0x73, 0, 0, 0x40, 0,   0x40, 0x11,
					       0xb8, 0x61, 192, 168,  0, 1, 192,  168, 0,    199 },
	       20);
	assert_true(datagram_source(header, &address));
	assert_string_equal(address_host(&address, text), "192.168.0.1");
}

static bool number(struct window *window, uint32_t sequence, uint32_t total)
{
	return window_count(window, &(struct datagram_mark){ .sequence = sequence, .total = total });
}

static void complete_sequence_is_good(void **state)
{
	struct window window = { 0 };

	(void)state;
	assert_int_equal(window_missing(&window, 10), 10);
	for (uint32_t i = 0; i < 10; i++) {
		assert_false(window_complete(&window, 10));
		assert_true(number(&window, i, 10));
	}
	assert_true(window_complete(&window, 10));
	assert_true(window_good(&window, 10));
	assert_int_equal(window.out_of_order, 0);
}

static void gap_is_missing(void **state)
{
	struct window window = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		if (i != 3)
			number(&window, i, 20);
	assert_int_equal(window_missing(&window, 20), 1);
	assert_false(window_complete(&window, 20));
	/* Also for a receiver that wanted fewer than the sender sends: it got its ten, but not ten in a row. */
	assert_true(window_complete(&window, 10));
	assert_int_equal(window_missing(&window, 10), 1);
	assert_false(window_good(&window, 10));
}

static void larger_count_of_sender_is_complete_but_not_good(void **state)
{
	struct window window = { 0 };

	(void)state;
	number(&window, 0, 20);
	assert_false(window_complete(&window, 10));
	for (uint32_t i = 1; i < 10; i++)
		number(&window, i, 20);
	assert_true(window_complete(&window, 10));
	assert_int_equal(window_missing(&window, 10), 0);
	assert_false(window_good(&window, 10));
	for (uint32_t i = 10; i < 20; i++)
		number(&window, i, 20);
	assert_false(window_good(&window, 10));
}

static void smaller_count_of_sender_is_complete_but_not_good(void **state)
{
	struct window window = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		number(&window, i, 5);
	assert_true(window_complete(&window, 10));
	assert_int_equal(window_missing(&window, 10), 0);
	assert_false(window_good(&window, 10));
}

static void out_of_order_and_repeated_are_distinguished(void **state)
{
	struct window window = { 0 };

	(void)state;
	assert_true(number(&window, 1, 1000));
	assert_true(number(&window, 0, 1000));
	assert_int_equal(window.out_of_order, 1);
	assert_false(number(&window, 0, 1000));
	assert_false(number(&window, 1, 1000));
	assert_int_equal(window.repeated, 2);
	assert_true(number(&window, 65, 1000));
	assert_false(number(&window, 1, 1000));
	assert_true(number(&window, 64, 1000));
	assert_false(number(&window, 64, 1000));
	assert_true(number(&window, 200, 1000));
	assert_false(number(&window, 65, 1000));
	assert_false(number(&window, 0, 1000));
	assert_int_equal(window.repeated, 6);
	assert_int_equal(window.numbered, 5);
	assert_true(number(&window, 0 + WINDOW_SIZE, 1000));
	assert_false(number(&window, 0, 1000));
	assert_int_equal(window.late, 1);
	assert_true(number(&window, 999, 1000));
	assert_true(number(&window, 999 - WINDOW_SIZE + 1, 1000));
	assert_false(number(&window, 999 - WINDOW_SIZE, 1000));
	assert_int_equal(window.late, 2);
}

/* Every number of a window in every order that a stride makes, the first of them anywhere, against a plain table. */
static void window_agrees_with_a_table(void **state)
{
	(void)state;
	for (uint32_t stride = 1; stride < 251; stride += 2) {
		struct window window = { 0 };
		bool came[256] = { false };
		uint64_t different = 0, behind = 0;
		uint32_t lowest = 255, highest = 0;

		for (uint32_t i = 0; i < 512; i++) {
			uint32_t sequence = (i + stride) * stride % 251;

			assert_int_equal(number(&window, sequence, 256), !came[sequence]);
			different += !came[sequence];
			behind += !came[sequence] && different > 1 && sequence < highest;
			came[sequence] = true;
			lowest = sequence < lowest ? sequence : lowest;
			highest = sequence > highest ? sequence : highest;
			assert_int_equal(window_gaps(&window), highest - lowest + 1 - different);
			assert_int_equal(window_missing(&window, 256), 256 - different);
			assert_int_equal(window.out_of_order, behind);
		}
		assert_int_equal(window.numbered, different);
		assert_int_equal(window.repeated, 512 - different);
		assert_int_equal(window.late, 0);
	}
}

static void datagram_with_damaged_mark_fills_its_gap(void **state)
{
	struct window window = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		if (i == 4)
			window_count(&window, NULL);
		else
			number(&window, i, 10);
	}
	assert_true(window_complete(&window, 10));
	assert_int_equal(window_missing(&window, 10), 0);
	assert_int_equal(window_damaged(&window), 1);
	assert_false(window_good(&window, 10));
}

static void stock_sender_is_counted(void **state)
{
	struct window window = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 9; i++)
		window_count(&window, NULL);
	assert_int_equal(window_missing(&window, 10), 1);
	assert_false(window_complete(&window, 10));
	window_count(&window, NULL);
	assert_true(window_complete(&window, 10));
	assert_true(window_good(&window, 10));
	assert_int_equal(window_damaged(&window), 0);
}

static void sources_differ_by_qpn_and_address(void **state)
{
	struct source_table table = { .windows = 2 };
	struct address here = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 } };
	struct address there = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 } };
	struct source *first = source_find(&table, 17, &here);
	char text[SOURCE_TEXT_SIZE];

	(void)state;
	assert_non_null(first);
	assert_ptr_equal(source_find(&table, 17, &here), first);
	assert_ptr_not_equal(source_find(&table, 17, &there), first);
	assert_ptr_not_equal(source_find(&table, 18, &here), first);
	assert_int_equal(table.count, 3);
	assert_string_equal(source_text(first, text), "QP 17 at 10.0.0.1");
	source_table_clear(&table);
}

/* Enough sources of one QP number, and of one address, that some collide in the index. */
static void colliding_sources_are_distinguished(void **state)
{
	struct source_table *table = calloc(1, sizeof(*table));

	(void)state;
	assert_non_null(table);
	table->windows = 1;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < SOURCES_MAX; i++) {
			struct address address = { .family = ADDRESS_IP4,
						   .bytes = { 10, 0, (uint8_t)(i / 4 / 256), (uint8_t)(i / 4) } };
			struct source *source = source_find(table, i % 4, &address);

			assert_non_null(source);
			assert_int_equal(source->qpn, i % 4);
			assert_true(address_same_host(&source->address, &address));
			assert_int_equal(table->count, round ? SOURCES_MAX : i + 1);
		}
	assert_int_equal(table->unfollowed, 0);
	source_table_clear(table);
	free(table);
}

static void source_table_is_limited(void **state)
{
	struct source_table *table = calloc(1, sizeof(*table));
	struct address address = { .family = ADDRESS_NONE };
	char text[SOURCE_TEXT_SIZE];

	(void)state;
	assert_non_null(table);
	table->windows = 1;
	for (uint32_t i = 0; i < 2 * SOURCES_MAX; i++) {
		struct source *source = source_find(table, i, &address);

		assert_int_equal(source != NULL, i < SOURCES_MAX);
	}
	assert_int_equal(table->unfollowed, SOURCES_MAX);
	for (uint32_t i = 0; i < SOURCES_MAX; i++)
		assert_int_equal(source_find(table, i, &address)->qpn, i);
	assert_string_equal(source_text(table->entries[5], text), "QP 5");
	source_table_clear(table);

	table->windows = SOURCE_WINDOWS_MAX / 4;
	for (uint32_t i = 0; i < 10; i++)
		source_find(table, i, &address);
	assert_int_equal(table->count, 4);
	source_table_clear(table);
	free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_datagram_is_read_back),
		cmocka_unit_test(short_datagram_has_no_mark),
		cmocka_unit_test(mark_depends_on_qpn_length_and_range),
		cmocka_unit_test(position_of_damage_is_found),
		cmocka_unit_test(heap_garbage_has_no_mark),
		cmocka_unit_test(source_address_is_found),
		cmocka_unit_test(complete_sequence_is_good),
		cmocka_unit_test(gap_is_missing),
		cmocka_unit_test(smaller_count_of_sender_is_complete_but_not_good),
		cmocka_unit_test(larger_count_of_sender_is_complete_but_not_good),
		cmocka_unit_test(out_of_order_and_repeated_are_distinguished),
		cmocka_unit_test(window_agrees_with_a_table),
		cmocka_unit_test(datagram_with_damaged_mark_fills_its_gap),
		cmocka_unit_test(stock_sender_is_counted),
		cmocka_unit_test(sources_differ_by_qpn_and_address),
		cmocka_unit_test(colliding_sources_are_distinguished),
		cmocka_unit_test(source_table_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
