/* SPDX-License-Identifier: BSD-2-Clause */
/* The keyed permutation and random numbers: QPNs, communication identifiers, keys must be unpredictable. */
#include "test/unit/unit.h"

#include "transport/soft/base/number.h"

TEST(permutation_is_unique)
{
	static bool seen[1 << 16];
	struct soft_number_keys keys;

	soft_number_init_keys(&keys);
	for (uint32_t count = 0; count < LENGTH(seen); count++) {
		uint32_t number = soft_number_permute(&keys, 8, count);

		assert_true(number < LENGTH(seen));
		assert_false(seen[number]);
		seen[number] = true;
	}
}

/* Each input bit inverts each output bit in half of all cases. */
TEST(permutation_mixes_bits)
{
	enum {
		TRIES = 4000,
		HALF_BITS = 12,
		BITS = 2 * HALF_BITS
	};
	struct soft_number_keys keys;

	soft_number_init_keys(&keys);
	for (unsigned in = 0; in < BITS; in++) {
		unsigned inverted[BITS] = { 0 };

		for (unsigned attempt = 0; attempt < TRIES; attempt++) {
			uint32_t count = (uint32_t)soft_random();
			uint32_t change = soft_number_permute(&keys, HALF_BITS, count) ^
					  soft_number_permute(&keys, HALF_BITS, count ^ 1u << in);

			for (unsigned out = 0; out < BITS; out++)
				inverted[out] += change >> out & 1;
		}
		/* The limit is eight standard deviations. */
		for (unsigned out = 0; out < BITS; out++)
			assert_in_range(inverted[out], TRIES / 2 - 256, TRIES / 2 + 256);
	}
}

TEST(permutation_depends_on_keys)
{
	struct soft_number_keys one, other;
	unsigned same = 0;

	soft_number_init_keys(&one);
	soft_number_init_keys(&other);
	for (uint32_t count = 0; count < 1000; count++)
		same += soft_number_permute(&one, 12, count) == soft_number_permute(&other, 12, count);
	assert_in_range(same, 0, 2);
}

/* Each bit is set in about half of 1,000 values. */
TEST(random_bits_are_balanced)
{
	unsigned set[64] = { 0 };

	for (unsigned attempt = 0; attempt < 1000; attempt++) {
		uint64_t value = soft_random();

		for (unsigned bit = 0; bit < 64; bit++)
			set[bit] += (unsigned)(value >> bit & 1);
	}
	for (unsigned bit = 0; bit < 64; bit++)
		assert_in_range(set[bit], 500 - 128, 500 + 128);
}
