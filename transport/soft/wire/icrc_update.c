/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of CRC-32, in the usual reflected representation: the highest bit of a word of 32 is the coefficient
 * of x^0, so that the lowest byte is the first on the wire, and multiplying by x is a shift to the right. P is the
 * polynomial, of degree 32 and with a constant term, so that x has an inverse modulo P.
 */
#include "transport/soft/wire/icrc.h"

#include <string.h>

#include "core/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <wmmintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#define POLYNOMIAL UINT32_C(0xedb88320) /* P without x^32 */
#define ONE	   UINT32_C(0x80000000) /* x^0 */
#define ALL_ONES   UINT32_C(0xffffffff)

static uint32_t times_x(uint32_t value)
{
	return value >> 1 ^ (POLYNOMIAL & -(value & 1));
}

static uint32_t by_x(uint32_t value)
{
	return value & ONE ? (value ^ POLYNOMIAL) << 1 | 1 : value << 1;
}

static uint32_t times(uint32_t one, uint32_t other)
{
	uint32_t product = 0;

	for (unsigned i = 0; i < 32; i++) {
		product ^= other & -(one >> 31);
		one <<= 1;
		other = times_x(other);
	}
	return product;
}

static uint64_t little(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value = __builtin_bswap64(value);
#endif
	return value;
}

static uint32_t update_table(const struct icrc_table *table, uint32_t crc, const uint8_t *bytes, size_t length)
{
	const uint32_t(*slices)[256] = table->slices;

	for (; length >= 8; length -= 8, bytes += 8) {
		uint64_t word = little(bytes);
		uint32_t low = (uint32_t)word ^ crc, high = (uint32_t)(word >> 32);

		crc = slices[7][low & 0xff] ^ slices[6][low >> 8 & 0xff] ^ slices[5][low >> 16 & 0xff] ^
		      slices[4][low >> 24] ^ slices[3][high & 0xff] ^ slices[2][high >> 8 & 0xff] ^
		      slices[1][high >> 16 & 0xff] ^ slices[0][high >> 24];
	}
	while (length--)
		crc = crc >> 8 ^ slices[0][(crc ^ *bytes++) & 0xff];
	return crc;
}

#if defined(__x86_64__)
/*
 * Carry-less multiplication: a block of 128 bits is "folded" onto one that lies some bits further on, by multiplying
 * its two halves with the powers of x in between. Four blocks side by side keep the multiplier busy. What is left over
 * at the end has the CRC of the whole, and is left to the table.
 *
 * The instruction's product of reflected numbers lies one bit off, and a remainder of 32 bits stands at x^32 in a word
 * of 64: hence the shift by one and the exponents less 32 in fold_constants().
 */
enum {
	BLOCK = 16,
	LANES = 4,
};

static uint32_t power_of_x(unsigned exponent)
{
	uint32_t power = ONE;

	while (exponent--)
		power = times_x(power);
	return power;
}

static void fold_constants(uint64_t folds[4])
{
	static const unsigned distances[] = { BLOCK * LANES * 8, BLOCK * 8 };

	for (unsigned i = 0; i < 2; i++) {
		folds[2 * i] = (uint64_t)power_of_x(distances[i] + 32) << 1;
		folds[2 * i + 1] = (uint64_t)power_of_x(distances[i] - 32) << 1;
	}
}

__attribute__((target("pclmul,sse2"))) static inline __m128i fold(__m128i block, __m128i onto, __m128i factors)
{
	return _mm_xor_si128(onto, _mm_xor_si128(_mm_clmulepi64_si128(block, factors, 0x00),
						 _mm_clmulepi64_si128(block, factors, 0x11)));
}

__attribute__((target("pclmul,sse2"))) static inline __m128i load(const void *bytes)
{
	return _mm_loadu_si128(bytes);
}

__attribute__((target("pclmul,sse2"))) static uint32_t update_multiply(const struct icrc_table *table, uint32_t crc,
								       const uint8_t *bytes, size_t length)
{
	__m128i first, second, third, fourth, factors;
	uint8_t rest[BLOCK];

	if (length < BLOCK * LANES)
		return update_table(table, crc, bytes, length);
	first = _mm_xor_si128(load(bytes), _mm_cvtsi32_si128((int)crc));
	second = load(bytes + BLOCK);
	third = load(bytes + BLOCK * 2);
	fourth = load(bytes + BLOCK * 3);

	/* Four names, because an array would lie in memory when this is compiled for size. */
	factors = load(table->folds);
	while ((length -= BLOCK * LANES) >= BLOCK * LANES) {
		bytes += BLOCK * LANES;
		first = fold(first, load(bytes), factors);
		second = fold(second, load(bytes + BLOCK), factors);
		third = fold(third, load(bytes + BLOCK * 2), factors);
		fourth = fold(fourth, load(bytes + BLOCK * 3), factors);
	}
	factors = load(table->folds + 2);
	fourth = fold(fold(fold(first, second, factors), third, factors), fourth, factors);
	for (bytes += BLOCK * LANES; length >= BLOCK; length -= BLOCK, bytes += BLOCK)
		fourth = fold(fourth, load(bytes), factors);

	_mm_storeu_si128((void *)rest, fourth);
	crc = update_table(table, 0, rest, BLOCK);
	return update_table(table, crc, bytes, length);
}

/* Asked of the processor itself: the compiler's own list of what it can do takes 4 KiB. */
static bool can_multiply(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_PCLMUL);
}

static icrc_updater *instruction(struct icrc_table *table)
{
	fold_constants(table->folds);
	return can_multiply() ? update_multiply : NULL;
}

#elif defined(__aarch64__) && defined(__linux__)
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif

static uint32_t update_instruction(const struct icrc_table *table, uint32_t crc, const uint8_t *bytes, size_t length)
{
	for (; length >= 8; length -= 8, bytes += 8)
		__asm__(".arch_extension crc\n\tcrc32x %w0, %w0, %x1" : "+r"(crc) : "r"(little(bytes)));
	return update_table(table, crc, bytes, length);
}

static icrc_updater *instruction(struct icrc_table *table)
{
	(void)table;
	return getauxval(AT_HWCAP) & HWCAP_CRC32 ? update_instruction : NULL;
}

#else

static icrc_updater *instruction(struct icrc_table *table)
{
	(void)table;
	return NULL;
}

#endif

void icrc_prepare_plain(struct icrc_table *table)
{
	static const uint8_t ones[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	uint32_t back = ONE;

	memset(table, 0, sizeof(*table));
	table->update = update_table;
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (unsigned bit = 0; bit < 8; bit++)
			crc = times_x(crc);
		table->slices[0][byte] = crc;
	}
	for (unsigned i = 1; i < 8; i++) {
		for (unsigned byte = 0; byte < 256; byte++) {
			uint32_t crc = table->slices[i - 1][byte];

			table->slices[i][byte] = crc >> 8 ^ table->slices[0][crc & 0xff];
		}
	}
	for (unsigned i = 0; i < ICRC_BACK_STEP; i++) {
		table->back_bytes[i] = back;
		for (unsigned bit = 0; bit < 8; bit++)
			back = by_x(back);
	}
	table->back_blocks[0] = ONE;
	for (unsigned i = 1; i < ICRC_BACK_END / ICRC_BACK_STEP; i++)
		table->back_blocks[i] = times(table->back_blocks[i - 1], back);
	table->begin = update_table(table, ALL_ONES, ones, sizeof(ones));
}

/* The shortest of a few attempts, as the machine may turn to something else during one: nanoseconds. */
static int64_t time_taken(const struct icrc_table *table, icrc_updater *update)
{
	int64_t shortest = INT64_MAX;

	for (unsigned attempt = 0; attempt < 4; attempt++) {
		int64_t begin = clock_now(), taken;

		update(table, 0, (const uint8_t *)table->slices, 2048);
		taken = clock_now() - begin;
		if (taken < shortest)
			shortest = taken;
	}
	return shortest;
}

/* An emulated processor has the instruction too, and may take ten times as long over it as with the table. */
void icrc_prepare(struct icrc_table *table)
{
	icrc_updater *update;

	icrc_prepare_plain(table);
	update = instruction(table);
	if (update && time_taken(table, update) <= time_taken(table, table->update))
		table->update = update;
}

const char *icrc_way(const struct icrc_table *table)
{
	if (table->update == update_table)
		return "a table";
#if defined(__x86_64__)
	return "pclmulqdq";
#else
	return "crc32x";
#endif
}

uint32_t icrc_update(const struct icrc_table *table, uint32_t crc, const void *bytes, size_t length)
{
	return table->update(table, crc, bytes, length);
}

uint32_t icrc_back(const struct icrc_table *table, uint32_t difference, size_t bytes)
{
	return times(times(difference, table->back_bytes[bytes % ICRC_BACK_STEP]),
		     table->back_blocks[bytes / ICRC_BACK_STEP % (ICRC_BACK_END / ICRC_BACK_STEP)]);
}
