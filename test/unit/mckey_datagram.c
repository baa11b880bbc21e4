/* SPDX-License-Identifier: BSD-2-Clause */
/* The mark of a datagram, and the sender's address. */
#include "unit.h"

#include "cmd/mckey/mckey.h"
#include "test/unit/pattern.h"

enum {
	QUEUE = 17,
	SIZE = 100
};

static void assert_unmarked(const uint8_t *memory, size_t size, uint32_t queue)
{
	struct payload_difference difference;
	struct datagram_mark mark;

	assert_true(datagram_read(memory, size, pattern(), queue, &mark, &difference));
	assert_int_equal(mark.total, 0);
}

TEST(written_datagram_is_read_back)
{
	static const size_t sizes[] = { DATAGRAM_MARK_SIZE, DATAGRAM_MARK_SIZE + 1, SIZE, 1024, 4096 };
	struct datagram_mark written = { .sequence = 41, .total = 1000 }, found;
	struct payload_difference difference;
	uint8_t memory[4096];

	for (size_t i = 0; i < LENGTH(sizes); i++) {
		datagram_write(memory, sizes[i], pattern(), QUEUE, &written);
		assert_true(datagram_read(memory, sizes[i], pattern(), QUEUE, &found, &difference));
		assert_int_equal(found.sequence, 41);
		assert_int_equal(found.total, 1000);
	}
}

TEST(mark_has_network_byte_order)
{
	static const uint8_t on_the_wire[DATAGRAM_MARK_SIZE] = {
		'r', 'm', 'c', 'k', 2, 0, 0, 0, 0, 0, 0, 41, 0, 0, 1000 >> 8, 1000 & 0xff, 0x2d, 0xff, 0xfe, 0xcb,
	};
	struct datagram_mark mark = { .sequence = 41, .total = 1000 };
	uint8_t memory[DATAGRAM_MARK_SIZE];

	datagram_write(memory, sizeof(memory), pattern(), QUEUE, &mark);
	assert_memory_equal(memory, on_the_wire, sizeof(memory));
}

TEST(short_datagram_has_no_mark)
{
	struct datagram_mark mark = { .sequence = 0, .total = 1 };
	uint8_t memory[DATAGRAM_MARK_SIZE + 1];

	for (size_t size = 0; size < DATAGRAM_MARK_SIZE; size++) {
		memset(memory, 0xee, sizeof(memory));
		datagram_write(memory, size, pattern(), QUEUE, &mark);
		assert_int_equal(memory[size], 0xee);
		assert_unmarked(memory, size, QUEUE);
	}
}

TEST(mark_depends_on_qpn_length_and_range)
{
	struct datagram_mark mark = { .sequence = 3, .total = 10 };
	uint8_t memory[SIZE];

	datagram_write(memory, SIZE, pattern(), QUEUE, &mark);
	assert_unmarked(memory, SIZE, QUEUE + 1);
	assert_unmarked(memory, SIZE - 1, QUEUE);
	for (size_t byte = 0; byte < DATAGRAM_MARK_SIZE; byte++) {
		datagram_write(memory, SIZE, pattern(), QUEUE, &mark);
		memory[byte] ^= 0x40;
		assert_unmarked(memory, SIZE, QUEUE);
	}
	mark = (struct datagram_mark){ .sequence = 10, .total = 10 };
	datagram_write(memory, SIZE, pattern(), QUEUE, &mark);
	assert_unmarked(memory, SIZE, QUEUE);
}

TEST(position_of_damage_is_found)
{
	struct datagram_mark mark = { .sequence = 3, .total = 10 };
	struct payload_difference difference;
	uint8_t memory[SIZE];

	for (size_t byte = DATAGRAM_MARK_SIZE; byte < SIZE; byte++) {
		datagram_write(memory, SIZE, pattern(), QUEUE, &mark);
		memory[byte] ^= 1;
		assert_false(datagram_read(memory, SIZE, pattern(), QUEUE, &mark, &difference));
		assert_int_equal(difference.position, byte);
		assert_int_equal(difference.found, memory[byte]);
	}
}

TEST(heap_garbage_has_no_mark)
{
	uint8_t memory[SIZE];

	for (unsigned byte = 0; byte < 256; byte++) {
		memset(memory, (int)byte, sizeof(memory));
		assert_unmarked(memory, SIZE, QUEUE);
	}
}

static struct address source_of(const uint8_t header[DATAGRAM_HEADER_SIZE], bool may_be_ip4)
{
	struct address source = { 0 };

	datagram_source(header, may_be_ip4, &source);
	return source;
}

TEST(source_address_is_found)
{
	uint8_t header[DATAGRAM_HEADER_SIZE] = { 0 };
	struct address address;
	char text[ADDRESS_TEXT_SIZE];

	assert_int_equal(source_of(header, true).family, ADDRESS_NONE);

	/* IPv4 as soft-RoCE loops it back: without a checksum. */
	header[20] = 0x45;
	memcpy(header + 32, (const uint8_t[]){ 10, 77, 0, 1, 239, 1, 1, 1 }, 8);
	address = source_of(header, true);
	assert_string_equal(address_host(&address, text), "10.77.0.1");

	/* An apparent GRH in front of it is undefined bytes; in an IPv6 group it is a real one. */
	header[0] = 0x60;
	header[8] = 0xfd;
	assert_int_equal(source_of(header, true).family, ADDRESS_IP4);
	address = source_of(header, false);
	assert_int_equal(address.family, ADDRESS_IP6);
	assert_int_equal(address.bytes[0], 0xfd);

	/* RoCE v1: the GRH of a datagram from 69.0.0.1 to an IPv4 group. */
	memset(header + 8, 0, 32);
	memcpy(header + 18, (const uint8_t[]){ 0xff, 0xff, 0x45, 0, 0, 1 }, 6);
	memcpy(header + 34, (const uint8_t[]){ 0xff, 0xff, 239, 1, 1, 1 }, 6);
	address = source_of(header, true);
	assert_string_equal(address_host(&address, text), "::ffff:69.0.0.1");
}
