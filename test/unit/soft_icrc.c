/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "test/network/vectors.h"
#include "transport/soft/wire/icrc.h"
#include "transport/soft/wire/packet.h"
#include "transport/transport.h"

enum {
	BASE_SIZE = 12,
	RESERVED = 4, /* the byte of the BTH that the ICRC excludes */
};

TEST(crc_check_value)
{
	struct icrc_table table;

	icrc_prepare_plain(&table);
	assert_int_equal(~icrc_update(&table, UINT32_MAX, "123456789", 9), 0xcbf43926);
	assert_int_equal(table.initial, 0xdebb20e3); /* the value in the Linux rxe driver */
	icrc_prepare(&table);
	assert_int_equal(~icrc_update(&table, UINT32_MAX, "123456789", 9), 0xcbf43926);
}

/* CRC-32 bit by bit, as defined. */
static uint32_t crc_by_bit(uint32_t crc, const uint8_t *bytes, size_t length)
{
	while (length--) {
		crc ^= *bytes++;
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

TEST(all_methods_agree)
{
	struct icrc_table plain, fast;
	uint8_t *bytes = malloc(5000);

	assert_non_null(bytes);
	icrc_prepare_plain(&plain);
	icrc_prepare(&fast);
	srandom(2);
	for (size_t i = 0; i < 5000; i++)
		bytes[i] = (uint8_t)random();
	for (size_t length = 0; length <= 5000; length += length < 600 ? 1 : 97) {
		size_t begin = length % 17 < 5000 - length ? length % 17 : 0;
		uint32_t crc = (uint32_t)random();
		uint32_t wanted = crc_by_bit(crc, bytes + begin, length);

		assert_int_equal(icrc_update(&plain, crc, bytes + begin, length), wanted);
		assert_int_equal(icrc_update(&fast, crc, bytes + begin, length), wanted);
		/* The same in two calls. */
		crc = icrc_update(&fast, crc, bytes + begin, length / 3);
		assert_int_equal(icrc_update(&fast, crc, bytes + begin + length / 3, length - length / 3), wanted);
	}
	/* At the end of an allocation: no byte beyond it is read. */
	for (size_t length = 0; length < 200; length++)
		assert_int_equal(icrc_update(&fast, 0, bytes + 5000 - length, length),
				 crc_by_bit(0, bytes + 5000 - length, length));
	free(bytes);
}

#if defined(__x86_64__) || defined(__aarch64__)
/* Of any length at any alignment, and with no byte read beyond the end of the allocation. */
static void compare_with_table(enum icrc_instruction instruction)
{
	enum {
		LONGEST = 8999,
		SPARE = 64
	};
	icrc_updater *update = icrc_find_updater(instruction);
	struct icrc_table table;
	uint8_t *bytes, *end;

	if (!update)
		skip();
	bytes = malloc(LONGEST + SPARE);
	assert_non_null(bytes);
	end = bytes + LONGEST + SPARE;
	icrc_prepare_plain(&table);
	srandom(3);
	for (uint8_t *byte = bytes; byte < end; byte++)
		*byte = (uint8_t)random();
	for (size_t length = 0; length <= LONGEST; length++) {
		const uint8_t *places[] = { bytes + (length * 2 + 1) % SPARE, end - length };
		uint32_t crc = (uint32_t)random();

		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
			assert_int_equal(update(&table, crc, places[i], length),
					 icrc_update(&table, crc, places[i], length));
	}
	free(bytes);
}

#if defined(__x86_64__)
TEST(vpclmulqdq_agrees_with_the_table)
{
	compare_with_table(ICRC_VPCLMULQDQ);
}

TEST(pclmulqdq_agrees_with_the_table)
{
	compare_with_table(ICRC_PCLMULQDQ);
}

#else
TEST(crc32x_agrees_with_the_table)
{
	compare_with_table(ICRC_CRC32X);
}
#endif
#endif

TEST(captured_packets_are_valid_and_reproduced)
{
	struct icrc_table table;

	icrc_prepare(&table);
	for (size_t i = 0; i < VECTORS; i++) {
		struct vector_datagram datagram;
		struct packet packet;
		uint8_t icrc[ICRC_SIZE];
		uint16_t identification = 0;

		vector_open(vector_at(i), &datagram);
		assert_true(icrc_check(&table, &datagram.flow, datagram.bytes, datagram.length, &identification));
		assert_int_equal(identification, datagram.identification);
		if (datagram.may_fragment)
			continue; /* as this end never sends */
		assert_true(packet_parse(datagram.bytes, datagram.length, &packet));
		icrc_store(icrc, icrc_compute(&table, &datagram.flow, datagram.identification, datagram.bytes,
					      (size_t)(packet.payload - datagram.bytes), packet.payload, packet.length,
					      packet.pad));
		assert_memory_equal(icrc, datagram.bytes + datagram.length - ICRC_SIZE, ICRC_SIZE);
	}
}

/* Over IPv6 each single-bit error is detected, over IPv4 all but one of 2^15. */
TEST(single_bit_errors_are_detected)
{
	struct icrc_table table;
	unsigned missed = 0;

	icrc_prepare(&table);
	for (size_t i = 0; i < VECTORS; i++) {
		struct vector_datagram datagram;
		uint8_t bytes[2048];

		vector_open(vector_at(i), &datagram);
		memcpy(bytes, datagram.bytes, datagram.length);
		for (size_t bit = 0; bit < datagram.length * 8; bit++) {
			uint16_t identification = 0;
			bool valid;

			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			valid = icrc_check(&table, &datagram.flow, bytes, datagram.length, &identification);
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_true(valid || bit / 8 != RESERVED);
			missed += valid && bit / 8 != RESERVED;
			assert_true(datagram.flow.family == ICRC_IP4 || valid == (bit / 8 == RESERVED));
		}
	}
	print_message("# missed: %u\n", missed);
	assert_in_range(missed, 0, 20);
}

TEST(header_errors_are_detected)
{
	struct icrc_table table;

	icrc_prepare(&table);
	for (size_t i = 0; i < VECTORS; i++) {
		struct vector_datagram datagram;

		vector_open(vector_at(i), &datagram);
		for (size_t byte = 0; byte < sizeof(datagram.flow.header); byte++) {
			struct icrc_flow flow = datagram.flow;
			uint16_t identification = 0;
			bool valid;

			flow.header[byte] ^= 0x10;
			valid = icrc_check(&table, &flow, datagram.bytes, datagram.length, &identification);
			/* Lengths, identification and DF are not part of the flow; an IPv4 flow is shorter than the
			 * buffer. */
			if (flow.family == ICRC_IP4 ? (byte >= 2 && byte <= 6) || byte == 24 || byte == 25 || byte >= 28
						    : byte == 4 || byte == 5 || byte == 44 || byte == 45)
				assert_true(valid);
			else
				assert_false(valid);
		}
	}
}

/* Every identification and every length, whatever identification is expected. */
TEST(identifications_are_solved)
{
	static const uint8_t source[] = { 192, 0, 2, 1 }, destination[] = { 192, 0, 2, 77 };
	uint8_t *bytes = calloc(1, ICRC_DATAGRAM_MAX + 4);
	struct icrc_table table;
	struct icrc_flow flow;
	uint16_t found;

	assert_non_null(bytes);
	icrc_prepare(&table);
	icrc_flow_prepare(&flow, ICRC_IP4, source, destination, 50000, UDP_PORT_ROCE);
	for (size_t round = 0; round < 0x10000; round++) {
		size_t length = BASE_SIZE + ICRC_SIZE + round % (ICRC_DATAGRAM_MAX + 1 - BASE_SIZE - ICRC_SIZE);

		bytes[round % 4000] = (uint8_t)round;
		icrc_store(bytes + length - ICRC_SIZE,
			   icrc_compute(&table, &flow, (uint16_t)round, bytes, BASE_SIZE, bytes + BASE_SIZE,
					length - BASE_SIZE - ICRC_SIZE, 0));
		found = (uint16_t)(3 * round);
		assert_true(icrc_check(&table, &flow, bytes, length, &found));
		assert_int_equal(found, round);
	}
	for (size_t length = 0; length < BASE_SIZE + ICRC_SIZE; length++)
		assert_false(icrc_check(&table, &flow, bytes, length, &found));
	assert_false(icrc_check(&table, &flow, bytes, ICRC_DATAGRAM_MAX + 1, &found));
	assert_false(icrc_check(&table, &flow, bytes, 65535, &found));
	free(bytes);
}
