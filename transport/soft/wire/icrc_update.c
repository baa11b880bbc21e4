/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of CRC-32 in the usual reflected representation: the highest bit of a 32-bit word is the coefficient
 * of x^0, so the lowest byte is the first on the wire, and multiplying by x is a right shift. P is the polynomial, of
 * degree 32. It has a constant term, so x has an inverse modulo P.
 */
#include "transport/soft/wire/icrc.h"

#include <string.h>

#include "core/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#define POLYNOMIAL UINT32_C(0xedb88320) /* P without x^32 */
#define ONE	   UINT32_C(0x80000000) /* x^0 */
#define ALL_ONES   UINT32_C(0xffffffff)

static uint32_t gf_multiply_x(uint32_t value)
{
	return value >> 1 ^ (POLYNOMIAL & -(value & 1));
}

static uint32_t gf_divide_x(uint32_t value)
{
	return value & ONE ? (value ^ POLYNOMIAL) << 1 | 1 : value << 1;
}

static uint32_t gf_multiply(uint32_t one, uint32_t other)
{
	uint32_t product = 0;

	for (unsigned i = 0; i < 32; i++) {
		product ^= other & -(one >> 31);
		one <<= 1;
		other = gf_multiply_x(other);
	}
	return product;
}

static uint64_t load_little_endian(const uint8_t *bytes)
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
		uint64_t word = load_little_endian(bytes);
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
 * Carry-less multiplication folds a block of 128 bits onto a later one: it multiplies the two halves by powers of x.
 * Four lanes keep the multiplier busy. The last block has the CRC of the whole, which the table computes.
 *
 * The constants are x^(d + 32) and x^(d - 32) mod P, each shifted left by one, for a distance d of 512 bits (the lanes)
 * and of 128 (a block): the product of reflected numbers is off by one bit, and a 32-bit remainder is at x^32 of a
 * 64-bit word.
 */
static const uint64_t folds[] = { 0x154442bd4, 0x1c6e41596, 0x1751997d0, 0x0ccaa009e };

enum {
	BLOCK = 16,
	WIDE = 64,
	LANES = 4,
};

__attribute__((target("pclmul,sse2"))) static inline __m128i fold(__m128i block, __m128i onto, __m128i factors)
{
	return _mm_xor_si128(onto, _mm_xor_si128(_mm_clmulepi64_si128(block, factors, 0x00),
						 _mm_clmulepi64_si128(block, factors, 0x11)));
}

__attribute__((target("pclmul,sse2"))) static inline __m128i load_block(const void *bytes)
{
	return _mm_loadu_si128(bytes);
}

__attribute__((target("pclmul,sse2"))) static uint32_t update_pclmul(const struct icrc_table *table, uint32_t crc,
								     const uint8_t *bytes, size_t length)
{
	__m128i first, second, third, fourth, factors;
	uint8_t rest[BLOCK];

	if (length < BLOCK * LANES)
		return update_table(table, crc, bytes, length);
	first = _mm_xor_si128(load_block(bytes), _mm_cvtsi32_si128((int)crc));
	second = load_block(bytes + BLOCK);
	third = load_block(bytes + BLOCK * 2);
	fourth = load_block(bytes + BLOCK * 3);

	/* Not an array: with -Os it would be in memory. */
	factors = load_block(folds);
	while ((length -= BLOCK * LANES) >= BLOCK * LANES) {
		bytes += BLOCK * LANES;
		first = fold(first, load_block(bytes), factors);
		second = fold(second, load_block(bytes + BLOCK), factors);
		third = fold(third, load_block(bytes + BLOCK * 2), factors);
		fourth = fold(fourth, load_block(bytes + BLOCK * 3), factors);
	}
	factors = load_block(folds + 2);
	fourth = fold(fold(fold(first, second, factors), third, factors), fourth, factors);
	for (bytes += BLOCK * LANES; length >= BLOCK; length -= BLOCK, bytes += BLOCK)
		fourth = fold(fourth, load_block(bytes), factors);

	_mm_storeu_si128((void *)rest, fourth);
	crc = update_table(table, 0, rest, BLOCK);
	return update_table(table, crc, bytes, length);
}

/* The same in lanes of 512 bits, at a distance d of 2048. The last four blocks have the CRC of the whole. */
static const uint64_t wide_folds[] = { 0x11542778a, 0x1322d1430 };

#define WIDE_CODE __attribute__((target("avx512f,vpclmulqdq,pclmul")))
#define XOR_OF_3  0x96 /* a ternary operation by its truth table */

WIDE_CODE static inline __m512i fold_wide(__m512i lane, const uint8_t *onto, __m512i factors)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(lane, factors, 0x00),
					 _mm512_clmulepi64_epi128(lane, factors, 0x11), _mm512_loadu_si512(onto),
					 XOR_OF_3);
}

WIDE_CODE static uint32_t update_vpclmul(const struct icrc_table *table, uint32_t crc, const uint8_t *bytes,
					 size_t length)
{
	__m512i first, second, third, fourth, factors;
	uint8_t rest[WIDE * LANES];

	/* The rest costs as much as some 500 bytes. */
	if (length < 3 * sizeof(rest))
		return update_pclmul(table, crc, bytes, length);
	first = _mm512_xor_si512(_mm512_loadu_si512(bytes), _mm512_maskz_set1_epi32(1, (int)crc));
	second = _mm512_loadu_si512(bytes + WIDE);
	third = _mm512_loadu_si512(bytes + WIDE * 2);
	fourth = _mm512_loadu_si512(bytes + WIDE * 3);
	factors = _mm512_broadcast_i32x4(load_block(wide_folds));
	for (bytes += sizeof(rest); (length -= sizeof(rest)) >= sizeof(rest); bytes += sizeof(rest)) {
		first = fold_wide(first, bytes, factors);
		second = fold_wide(second, bytes + WIDE, factors);
		third = fold_wide(third, bytes + WIDE * 2, factors);
		fourth = fold_wide(fourth, bytes + WIDE * 3, factors);
	}
	_mm512_storeu_si512(rest, first);
	_mm512_storeu_si512(rest + WIDE, second);
	_mm512_storeu_si512(rest + WIDE * 2, third);
	_mm512_storeu_si512(rest + WIDE * 3, fourth);
	/* Bits in the upper halves slow other code on Intel's CPUs. With -Os the compiler does not insert this. */
	_mm256_zeroupper();

	crc = update_pclmul(table, 0, rest, sizeof(rest));
	return update_pclmul(table, crc, bytes, length);
}

/* cpuid, because __builtin_cpu_supports() adds 4 KiB. */
static bool has_pclmul(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_PCLMUL);
}

#define STATES_SAVED 0xe6 /* in XCR0: SSE, AVX, and three of AVX-512 */

/* The instruction needs a kernel that saves its registers. */
static bool has_vpclmul(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	return (a & STATES_SAVED) == STATES_SAVED && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX512F) &&
	       (c & bit_VPCLMULQDQ);
}

icrc_updater *icrc_find_updater(enum icrc_instruction instruction)
{
	switch (instruction) {
	case ICRC_VPCLMULQDQ:
		return has_pclmul() && has_vpclmul() ? update_vpclmul : NULL;
	case ICRC_PCLMULQDQ:
		return has_pclmul() ? update_pclmul : NULL;
	default:
		return NULL;
	}
}

#elif defined(__aarch64__) && defined(__linux__)
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif

static uint32_t update_crc32x(const struct icrc_table *table, uint32_t crc, const uint8_t *bytes, size_t length)
{
	for (; length >= 8; length -= 8, bytes += 8)
		__asm__(".arch_extension crc\n\tcrc32x %w0, %w0, %x1" : "+r"(crc) : "r"(load_little_endian(bytes)));
	return update_table(table, crc, bytes, length);
}

icrc_updater *icrc_find_updater(enum icrc_instruction instruction)
{
	return instruction == ICRC_CRC32X && getauxval(AT_HWCAP) & HWCAP_CRC32 ? update_crc32x : NULL;
}

#else

icrc_updater *icrc_find_updater(enum icrc_instruction instruction)
{
	(void)instruction;
	return NULL;
}

#endif

void icrc_prepare_plain(struct icrc_table *table)
{
	static const uint8_t ones[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	uint32_t inverse = ONE;

	memset(table, 0, sizeof(*table));
	table->update = update_table;
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (unsigned bit = 0; bit < 8; bit++)
			crc = gf_multiply_x(crc);
		table->slices[0][byte] = crc;
	}
	for (unsigned i = 1; i < 8; i++) {
		for (unsigned byte = 0; byte < 256; byte++) {
			uint32_t crc = table->slices[i - 1][byte];

			table->slices[i][byte] = crc >> 8 ^ table->slices[0][crc & 0xff];
		}
	}
	for (unsigned i = 0; i < ICRC_INVERSE_STEP; i++) {
		table->inverse_bytes[i] = inverse;
		for (unsigned bit = 0; bit < 8; bit++)
			inverse = gf_divide_x(inverse);
	}
	table->inverse_blocks[0] = ONE;
	for (unsigned i = 1; i < ICRC_INVERSE_END / ICRC_INVERSE_STEP; i++)
		table->inverse_blocks[i] = gf_multiply(table->inverse_blocks[i - 1], inverse);
	table->initial = update_table(table, ALL_ONES, ones, sizeof(ones));
}

/* Nanoseconds, the minimum of a few attempts: the scheduler may interrupt one. */
static int64_t icrc_measure(const struct icrc_table *table, icrc_updater *update)
{
	int64_t shortest = INT64_MAX;

	for (unsigned attempt = 0; attempt < 4; attempt++) {
		int64_t initial = clock_now(), taken;

		update(table, 0, (const uint8_t *)table->slices, 2048);
		taken = clock_now() - initial;
		if (taken < shortest)
			shortest = taken;
	}
	return shortest;
}

/*
 * An emulated CPU also has the instruction, but may be ten times slower with it than with the table. Two instructions
 * are not compared: powering up the widest registers may take longer than the measurement.
 */
void icrc_prepare(struct icrc_table *table)
{
	icrc_prepare_plain(table);
	for (enum icrc_instruction i = 0; i < ICRC_INSTRUCTIONS && table->update == update_table; i++) {
		icrc_updater *update = icrc_find_updater(i);

		if (update && icrc_measure(table, update) <= icrc_measure(table, update_table))
			table->update = update;
	}
}

uint32_t icrc_update(const struct icrc_table *table, uint32_t crc, const void *bytes, size_t length)
{
	return table->update(table, crc, bytes, length);
}

uint32_t icrc_solve(const struct icrc_table *table, uint32_t difference, size_t bytes)
{
	return gf_multiply(gf_multiply(difference, table->inverse_bytes[bytes % ICRC_INVERSE_STEP]),
			   table->inverse_blocks[bytes / ICRC_INVERSE_STEP % (ICRC_INVERSE_END / ICRC_INVERSE_STEP)]);
}
