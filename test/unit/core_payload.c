/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "core/payload.h"

/* The bytes of the first and second ping of the stock tool, of 40 bytes. */
static void ping_matches_stock_rping(void **state)
{
	uint8_t memory[40];

	(void)state;
	payload_ping_fill(memory, sizeof(memory), 0);
	assert_memory_equal(memory, "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ", sizeof(memory));
	payload_ping_fill(memory, sizeof(memory), 1);
	assert_memory_equal(memory, "rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[", sizeof(memory));
}

static void ping_ramp_wraps(void **state)
{
	uint8_t memory[100];

	(void)state;
	/* 'A' to 'z' are 58 letters: ping 57 starts with 'z', and ping 58 with 'A' again. */
	payload_ping_fill(memory, 20, 57);
	assert_memory_equal(memory, "rdma-ping-57: zABCD", 20);
	payload_ping_fill(memory, 20, 58);
	assert_memory_equal(memory, "rdma-ping-58: ABCDE", 20);
	payload_ping_fill(memory, sizeof(memory), 0);
	assert_memory_equal(memory + 13 + 57, "zAB", 3);
}

static void ping_of_any_size(void **state)
{
	uint8_t memory[64];

	(void)state;
	for (size_t size = 0; size <= 40; size++) {
		memset(memory, 0xee, sizeof(memory));
		payload_ping_fill(memory, size, UINT32_MAX);
		if (size)
			assert_int_equal(memory[size - 1], 0);
		assert_int_equal(memory[size], 0xee);
	}
	payload_ping_fill(memory, 6, 3);
	assert_memory_equal(memory, "rdma-", 6);
}

static void difference_is_found(void **state)
{
	const uint8_t one[] = { 1, 2, 3, 4 };
	const uint8_t other[] = { 1, 2, 9, 9 };
	struct payload_difference difference = { 0 };

	(void)state;
	assert_true(payload_equal(one, one, sizeof(one), &difference));
	assert_true(payload_equal(one, other, 2, &difference));
	assert_true(payload_equal(one, other, 0, &difference));
	assert_false(payload_equal(one, other, sizeof(one), &difference));
	assert_int_equal(difference.position, 2);
	assert_int_equal(difference.expected, 3);
	assert_int_equal(difference.found, 9);
}

static void pattern_is_verified(void **state)
{
	static const size_t sizes[] = { 0, 1, 7, 8, 9, 4095, 4096 };
	static uint8_t memory[4097];
	struct payload_difference difference;

	(void)state;
	for (size_t i = 0; i < LENGTH(sizes); i++) {
		memset(memory, 0xee, sizeof(memory));
		payload_pattern_fill(memory, sizes[i], 3, 4);
		assert_int_equal(memory[sizes[i]], 0xee);
		assert_true(payload_pattern_check(memory, sizes[i], 3, 4, &difference));
	}
	for (size_t position = 0; position < 4096; position += 91) {
		payload_pattern_fill(memory, 4096, 3, 4);
		memory[position] ^= 0x10;
		assert_false(payload_pattern_check(memory, 4096, 3, 4, &difference));
		assert_int_equal(difference.position, position);
		assert_int_equal(difference.found, memory[position]);
		assert_int_equal(difference.expected, memory[position] ^ 0x10);
	}
}

static void pattern_differs_between_messages(void **state)
{
	uint8_t memory[64];
	struct payload_difference difference;

	(void)state;
	payload_pattern_fill(memory, sizeof(memory), 3, 4);
	assert_false(payload_pattern_check(memory, sizeof(memory), 4, 3, &difference));
	assert_false(payload_pattern_check(memory, sizeof(memory), 3, 5, &difference));
	assert_false(payload_pattern_check(memory, sizeof(memory), 2, 4, &difference));
	assert_false(payload_pattern_check(memory + 8, 56, 3, 4, &difference));
}

/* The pattern must not change between versions. Another implementation has made these bytes. */
static void pattern_never_changes(void **state)
{
	static const uint8_t first[] = { 0xbf, 0xd4, 0x3c, 0xff, 0x26, 0x82, 0x21, 0x48 };
	static const uint8_t another[] = { 0xec, 0x9b, 0x5c, 0xd5, 0xee, 0xcb, 0xeb, 0x29,
					   0x22, 0xbd, 0xe4, 0x8d, 0xe8, 0xc6, 0x8c, 0x8e };
	uint8_t memory[16];

	(void)state;
	payload_pattern_fill(memory, sizeof(first), 0, 0);
	assert_memory_equal(memory, first, sizeof(first));
	payload_pattern_fill(memory, sizeof(another), 7, 9);
	assert_memory_equal(memory, another, sizeof(another));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ping_matches_stock_rping), cmocka_unit_test(ping_ramp_wraps),
		cmocka_unit_test(ping_of_any_size),	    cmocka_unit_test(difference_is_found),
		cmocka_unit_test(pattern_is_verified),	    cmocka_unit_test(pattern_differs_between_messages),
		cmocka_unit_test(pattern_never_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
