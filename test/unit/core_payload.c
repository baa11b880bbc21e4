/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "core/payload.h"
#include "test/unit/stock_ping.h"

/* ---- the ping ---- */

/* The bytes of the first and second ping of the stock tool, of 40 bytes. */
TEST(ping_matches_stock_rping)
{
	uint8_t memory[40 + PAYLOAD_RAMP];
	size_t offset;

	payload_ramp_write(memory, 40);
	offset = payload_ping_write(memory, 40, 0, 0);
	assert_memory_equal(memory + offset, "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ", 40);
	offset = payload_ping_write(memory, 40, 1, offset);
	assert_memory_equal(memory + offset, "rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[", 40);
	/* 'A' to 'z' are 58 letters: ping 57 starts with 'z', and ping 58 with 'A' again. */
	offset = payload_ping_write(memory, 40, 57, offset);
	assert_memory_equal(memory + offset, "rdma-ping-57: zABCDEFGHIJKLMNOPQRSTUVWX", 40);
	offset = payload_ping_write(memory, 40, 58, offset);
	assert_memory_equal(memory + offset, "rdma-ping-58: ABCDEFGHIJKLMNOPQRSTUVWXY", 40);
}

/* One after the other in the same memory, which is exactly as long as needed. */
static void write_pings(size_t size, const uint32_t *numbers, size_t count)
{
	uint8_t *memory = malloc(size + PAYLOAD_RAMP), *stock = malloc(size);
	struct payload_difference difference;
	size_t offset = 0;

	assert_true(memory && stock);
	payload_ramp_write(memory, size);
	for (size_t i = 0; i < count; i++) {
		offset = payload_ping_write(memory, size, numbers[i], offset);
		assert_in_range(offset, 0, PAYLOAD_RAMP - 1);
		stock_ping(stock, size, numbers[i]);
		assert_memory_equal(memory + offset, stock, size);
		assert_true(payload_ping_check(stock, size, numbers[i], &difference));
	}
	free(memory);
	free(stock);
}

TEST(pings_of_all_sizes_and_numbers_are_stock_pings)
{
	static const size_t large[] = { 4095, 4096, 4097, 65535, 65536, 65537, 1 << 20 };
	static const uint32_t far[] = { 998,	   999, 1000, 1001,	  9999999,   10000000,
					INT32_MAX, 0,	1,    UINT32_MAX, 123456789, 99 };
	uint32_t numbers[130];

	for (uint32_t i = 0; i < LENGTH(numbers); i++)
		numbers[i] = i;
	for (size_t size = 1; size <= 300; size++) {
		write_pings(size, numbers, LENGTH(numbers));
		write_pings(size, far, LENGTH(far));
	}
	for (size_t i = 0; i < LENGTH(large); i++) {
		write_pings(large[i], numbers, i < 3 ? LENGTH(numbers) : 3);
		write_pings(large[i], far, i < 3 ? LENGTH(far) : 3);
	}
}

static void assert_ping_differs(uint8_t *ping, size_t size, uint32_t number, size_t position)
{
	struct payload_difference difference;
	uint8_t expected = ping[position];

	ping[position] ^= 1;
	assert_false(payload_ping_check(ping, size, number, &difference));
	assert_int_equal(difference.position, position);
	assert_int_equal(difference.expected, expected);
	assert_int_equal(difference.found, expected ^ 1);
	ping[position] = expected;
}

TEST(each_wrong_byte_of_a_ping_is_found)
{
	static uint8_t ping[65536];
	struct payload_difference difference;

	for (size_t size = 1; size <= 300; size++) {
		stock_ping(ping, size, 57);
		for (size_t position = 0; position < size; position++)
			assert_ping_differs(ping, size, 57, position);
	}
	stock_ping(ping, sizeof(ping), 1234);
	for (size_t position = 0; position < sizeof(ping); position += 211)
		assert_ping_differs(ping, sizeof(ping), 1234, position);
	assert_ping_differs(ping, sizeof(ping), 1234, sizeof(ping) - 1);
	/* From some byte on, the ramp is one letter further: a part of another ping. */
	memset(ping + 40000, 0, sizeof(ping) - 40000);
	stock_ping(ping + 40000 - 17, sizeof(ping) - 40000 + 17, 1235);
	stock_ping(ping, 40000, 1234);
	assert_false(payload_ping_check(ping, sizeof(ping), 1234, &difference));
	assert_in_range(difference.position, 39999, 40000);
}

TEST(each_ping_differs_from_the_others)
{
	uint8_t ping[100];
	struct payload_difference difference;

	for (uint32_t number = 0; number < 120; number++) {
		stock_ping(ping, sizeof(ping), number);
		for (uint32_t other = 0; other < 120; other++)
			assert_int_equal(payload_ping_check(ping, sizeof(ping), other, &difference), number == other);
	}
}

/* ---- the pattern ---- */

/* The sequence, twice, compared with itself at each offset. */
static uint8_t pattern[2 * PAYLOAD_PATTERN];

TEST(difference_is_found_behind_the_first_period)
{
	static const size_t sizes[] = { PAYLOAD_PATTERN, PAYLOAD_PATTERN + 1, 2 * PAYLOAD_PATTERN + 5, 200000 };
	static uint8_t expected[200000 + PAYLOAD_PATTERN], found[200000];
	struct payload_difference difference;

	payload_pattern_write(expected, 200000);
	for (size_t i = 0; i < LENGTH(sizes); i++) {
		memcpy(found, expected + 777, sizes[i]);
		assert_true(payload_equal(expected + 777, found, sizes[i], &difference));
		for (size_t position = sizes[i] - 1; position > 5000; position -= 4999) {
			found[position] ^= 1;
			assert_false(payload_equal(expected + 777, found, sizes[i], &difference));
			assert_int_equal(difference.position, position);
			found[position] ^= 1;
		}
	}
	/* A wrong byte in each period, as if the message repeated itself wrongly. */
	for (size_t position = 100; position < sizes[2]; position += PAYLOAD_PATTERN)
		found[position] ^= 1;
	assert_false(payload_equal(expected + 777, found, sizes[2], &difference));
	assert_int_equal(difference.position, 100);
}

TEST(difference_is_found)
{
	static const size_t sizes[] = { 1, 7, 8, 9, 15, 16, 17, 100, 4095, 4096, 4097 };
	uint8_t found[4097];
	struct payload_difference difference;

	payload_pattern_write(pattern, PAYLOAD_PATTERN);
	assert_true(payload_equal(pattern, found, 0, &difference));
	for (size_t i = 0; i < LENGTH(sizes); i++)
		for (size_t position = 0; position < sizes[i]; position++) {
			memcpy(found, pattern + 9, sizes[i]);
			assert_true(payload_equal(pattern + 9, found, sizes[i], &difference));
			found[position] ^= 0x10;
			found[sizes[i] - 1] ^= position + 1 < sizes[i];
			assert_false(payload_equal(pattern + 9, found, sizes[i], &difference));
			assert_int_equal(difference.position, position);
			assert_int_equal(difference.expected, pattern[9 + position]);
			assert_int_equal(difference.found, found[position]);
		}
}

/*
 * A byte from another connection, message or place with another offset differs, except 255 of 65,535, and never are two
 * neighbours equal: so bytes of any other packet, block or message are detected.
 */
TEST(other_offset_is_found_everywhere)
{
	payload_pattern_write(pattern, PAYLOAD_PATTERN);
	for (size_t distance = 1; distance < PAYLOAD_PATTERN; distance += distance < 5000 ? 1 : 97) {
		size_t same = 0, neighbours = 0;

		for (size_t i = 0; i < PAYLOAD_PATTERN; i++) {
			bool is_same = pattern[i] == pattern[i + distance];

			same += is_same;
			neighbours += is_same && pattern[i + 1] == pattern[(i + 1 + distance) % PAYLOAD_PATTERN];
		}
		assert_int_equal(same, 255);
		assert_int_equal(neighbours, 0);
	}
}

/*
 * A packet or block from another message of the connection, another connection, the other direction, or both: equal
 * bytes are far from this place, or not in the message at all.
 */
TEST(messages_have_other_offsets)
{
	static const struct {
		size_t size, pattern, far;
	} kinds[] = {
		{ 4 * PAYLOAD_SHORT, PAYLOAD_PATTERN, 21504 },
		{ PAYLOAD_SHORT, PAYLOAD_SHORT_PATTERN, PAYLOAD_SHORT },
	};

	for (size_t i = 0; i < LENGTH(kinds); i++) {
		static bool taken[PAYLOAD_PATTERN];
		size_t size = kinds[i].size, period = kinds[i].pattern, one = payload_pattern_offset(size, 1000, 1000);

		assert_int_equal(payload_pattern_size(size), size + period);
		for (uint32_t number = 0; number < period; number++) {
			size_t offset = payload_pattern_offset(size, 3, 4000000000 + number);

			assert_in_range(offset, 0, period - 1);
			assert_false(taken[offset]);
			taken[offset] = true;
		}
		for (uint32_t seed = 0; seed < period; seed++) {
			size_t offset = payload_pattern_offset(size, 4000000000 + seed, 7);

			assert_true(taken[offset]);
			taken[offset] = false;
		}
		for (uint32_t seed = 0; seed <= 8; seed++)
			for (uint32_t number = 0; number <= 128; number++)
				for (size_t place = 0; (seed || number != 64) && place < kinds[i].far; place += 256) {
					size_t other = payload_pattern_offset(size, 1000 + seed, 936 + number);

					assert_int_not_equal((one + place) % period, other);
					assert_int_not_equal((other + place) % period, one);
				}
	}
}

/*
 * A change of the pattern is a new version of cmd/hello.h and of mckey's mark. The values are from another
 * implementation.
 */
TEST(pattern_never_changes)
{
	static const uint8_t first[] = { 0x01, 0x00, 0x02, 0x02, 0x06, 0x02, 0x0e, 0x0a, 0x16, 0x02, 0x2e, 0x2a };
	static const uint8_t another[] = { 0x56, 0xa3, 0x0f, 0xce, 0xd0, 0xcb, 0xec, 0xfd,
					   0xa2, 0xdf, 0x1c, 0x25, 0x1d, 0x57, 0x6d, 0xc3 };

	payload_pattern_write(pattern, PAYLOAD_PATTERN);
	assert_memory_equal(pattern, first, sizeof(first));
	assert_memory_equal(pattern + PAYLOAD_PATTERN, first, sizeof(first));
	assert_memory_equal(pattern + payload_pattern_offset(PAYLOAD_PATTERN, 7, 9), another, sizeof(another));
}
