/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers: QPNs, communication identifiers, keys must be unpredictable. */
#include "test/unit/unit.h"

#include "transport/soft/base/number.h"

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
