/* SPDX-License-Identifier: BSD-2-Clause */
/* rping's wire format, the choice of the ping size, and printing of received bytes. */
#include "cmd/rping/protocol.h"

#include "test/unit/stock_ping.h"
#include "test/unit/unit.h"

TEST(advertisement_has_the_stock_format)
{
	static const uint8_t wire[ADVERTISEMENT_SIZE] = { 0x00, 0x00, 0x7f, 0x12, 0x34, 0x56, 0x78, 0x9a,
							  0x00, 0x00, 0x0b, 0xcd, 0x00, 0x00, 0x00, 0x40 };
	struct advertisement advertisement = { .address = 0x7f123456789a, .key = 0xbcd, .size = 64 };
	struct advertisement read;
	uint8_t written[ADVERTISEMENT_SIZE];

	advertisement_write(&advertisement, written);
	assert_memory_equal(written, wire, sizeof(wire));
	advertisement_read(wire, &read);
	assert_true(read.address == advertisement.address);
	assert_int_equal(read.key, advertisement.key);
	assert_int_equal(read.size, advertisement.size);
}

TEST(number_is_never_negative)
{
	assert_int_equal(ping_number(0), 0);
	assert_int_equal(ping_number(INT32_MAX), INT32_MAX);
	assert_int_equal(ping_number((uint64_t)INT32_MAX + 1), 0);
	assert_int_equal(ping_number(UINT64_C(1) << 40 | 7), 7);
}

static void assert_prints(const void *ping, size_t size, const char *wanted)
{
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	assert_non_null(stream);
	ping_print(&(struct output){ .stream = stream }, "ping data", ping, size);
	assert_int_equal(fclose(stream), 0);
	assert_int_equal(length, strlen(wanted));
	assert_memory_equal(text, wanted, length);
	free(text);
}

TEST(ping_is_printed_like_stock_tools)
{
	uint8_t ping[64];

	stock_ping(ping, sizeof(ping), 0);
	assert_prints(ping, sizeof(ping),
		      "ping data: rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr\n");
	stock_ping(ping, 32, 2);
	assert_prints(ping, 32, "ping data: rdma-ping-2: CDEFGHIJKLMNOPQRST\n");
}

TEST(unprintable_bytes_are_replaced)
{
	assert_prints("", 1, "ping data: \n");
	assert_prints("no end", 6, "ping data: no end\n");
	assert_prints("one\0two", 8, "ping data: one\n");
	assert_prints("a\x1b[2Jb\n\x7f\xff\x80!", 12,
		      "ping data: a?[2Jb???"
		      "?!\n");
	assert_prints("\r\n", 3, "ping data: ??\n");
}
