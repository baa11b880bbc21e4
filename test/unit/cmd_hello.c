/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "cmd/hello.h"

static const struct hello sample = {
	.tool = HELLO_UCMATOSE,
	.capacity = 0x01020304,
	.connections = 0x05060708,
	.count = 0x1112131415161718,
	.connection = 0x21222324,
	.run = 0x3132,
	.window = 0x41424344,
};

static const uint8_t on_the_wire[HELLO_SIZE] = {
	0xd8, 'r',  'd',  't',	2,    2,    0x31, 0x32, 1,    2,    3,	  4,	5,    6,    7,	  8,
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x41, 0x42, 0x43, 0x44,
};

TEST(wire_form)
{
	uint8_t bytes[HELLO_SIZE];

	hello_write(&sample, bytes);
	assert_memory_equal(bytes, on_the_wire, sizeof(bytes));
}

TEST(read_back)
{
	struct hello hello;

	assert_true(hello_read(on_the_wire, sizeof(on_the_wire), HELLO_UCMATOSE, &hello));
	assert_int_equal(hello.tool, sample.tool);
	assert_int_equal(hello.capacity, sample.capacity);
	assert_int_equal(hello.connections, sample.connections);
	assert_true(hello.count == sample.count);
	assert_int_equal(hello.connection, sample.connection);
	assert_int_equal(hello.run, sample.run);
	assert_int_equal(hello.window, sample.window);
}

/* InfiniBand pads private data with zeros: 56 bytes in a request, 196 in a reply. */
TEST(padding_is_ignored)
{
	uint8_t padded[196] = { 0 };
	struct hello hello;

	memcpy(padded, on_the_wire, sizeof(on_the_wire));
	assert_true(hello_read(padded, 56, HELLO_UCMATOSE, &hello));
	assert_true(hello_read(padded, sizeof(padded), HELLO_UCMATOSE, &hello));
	assert_int_equal(hello.count, sample.count);
}

TEST(other_data_is_rejected)
{
	uint8_t bytes[56] = { 0 };
	struct hello hello;

	assert_false(hello_read(NULL, 0, HELLO_UCMATOSE, &hello));
	assert_false(hello_read(NULL, 56, HELLO_UCMATOSE, &hello));
	assert_false(hello_read(bytes, sizeof(bytes), HELLO_UCMATOSE, &hello));
	for (size_t length = 0; length < sizeof(on_the_wire); length++) {
		/* A copy of exactly that length, so that a sanitizer detects a read beyond it. */
		uint8_t *cut = malloc(length + !length);

		memcpy(cut, on_the_wire, length);
		assert_false(hello_read(cut, length, HELLO_UCMATOSE, &hello));
		free(cut);
	}
	assert_false(hello_read(on_the_wire, sizeof(on_the_wire), HELLO_RPING, &hello));
	memcpy(bytes, on_the_wire, sizeof(on_the_wire));
	bytes[3] ^= 1;
	assert_false(hello_read(bytes, sizeof(bytes), HELLO_UCMATOSE, &hello));
	bytes[3] ^= 1;
	assert_true(hello_read(bytes, sizeof(bytes), HELLO_UCMATOSE, &hello));
}

/* One row per major version of the program, within which the formats stay. Rows never change. */
static const struct {
	const char *program;
	unsigned formats;
} formats_of[] = { { "1.", 2 } };

TEST(version_of_the_program)
{
	const size_t last = sizeof(formats_of) / sizeof(formats_of[0]) - 1;

	assert_memory_equal(RDMATEST_VERSION, formats_of[last].program, strlen(formats_of[last].program));
	assert_int_equal(HELLO_VERSION, formats_of[last].formats);
	assert_int_equal(on_the_wire[4], HELLO_VERSION);
}

/* hello_check()'s result for a changed server hello. */
static const char *said_of(uint8_t magic, uint8_t version, uint8_t tool, enum outcome expected)
{
	static struct errors errors;
	const struct log log = { .name = "rping", .silent = true, .errors = &errors };
	const struct endpoint endpoint = { .name = "10.0.0.1:7471" };
	uint8_t bytes[HELLO_SIZE];

	errors = (struct errors){ .count = 1, .last.cause = "what the hint is added to" };
	memcpy(bytes, on_the_wire, sizeof(on_the_wire));
	bytes[0] = magic;
	bytes[4] = version;
	bytes[5] = tool;
	assert_int_equal(hello_check(&log, "server", &endpoint,
				     &(struct endpoint_event){ .private_data = bytes, .private_length = sizeof(bytes) },
				     HELLO_UCMATOSE),
			 expected);
	return expected ? errors.last.cause : errors.last.hint;
}

TEST(foreign_peers_are_explained)
{
	const char *other = "10.0.0.1:7471: the server is another version of rdmatest: treated as a stock tool";

	assert_string_equal(said_of(0xd8, HELLO_VERSION, HELLO_UCMATOSE, OUTCOME_OK), "");
	assert_string_equal(said_of('?', HELLO_VERSION, HELLO_UCMATOSE, OUTCOME_OK), "");
	assert_string_equal(said_of(0xd8, HELLO_VERSION + 1, HELLO_UCMATOSE, OUTCOME_OK), other);
	assert_string_equal(said_of(0xd7, 1, HELLO_UCMATOSE, OUTCOME_OK), other);
	assert_string_equal(said_of(0xd7, 2, HELLO_UCMATOSE, OUTCOME_OK), other);
	assert_string_equal(said_of(0xd7, 1, HELLO_RPING, OUTCOME_FAILED), "the server is rping, not ucmatose");
	assert_string_equal(said_of(0xd8, HELLO_VERSION, 77, OUTCOME_FAILED),
			    "the server is another tool, not ucmatose");
}

/* A server's rejection data, and the client's reaction. */
TEST(rejections)
{
	static const struct {
		const char *data;
		size_t length;
		enum error_kind kind;
		bool foreign;
	} rows[] = {
		{ NULL, 0, ERROR_OTHER, false },
		{ "\0\0\0\0\0\0\0", 8, ERROR_OTHER, false },
		{ HELLO_BUSY, sizeof(HELLO_BUSY), ERROR_BUSY, false },
		{ HELLO_FULL "\0\0\0", sizeof(HELLO_FULL), ERROR_BUSY, false },
		{ "out of memory", 13, ERROR_OTHER, false },
		{ (const char *)on_the_wire, sizeof(on_the_wire), ERROR_OTHER, false },
		{ "\0\0\2\0\0\0\0", 8, ERROR_OTHER, true }, /* nvmet: format 0, status "invalid format" */
		{ "\xc2\0\0\0\0\1", 6, ERROR_OTHER, true }, /* SRP */
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct error error = { .cause = "refused by the peer" };

		hello_explain_rejection(&(struct endpoint_event){ .private_data = (const uint8_t *)rows[row].data,
								  .private_length = rows[row].length },
					&error);
		assert_int_equal(error.kind, rows[row].kind);
		assert_int_equal(!strncmp(error.hint, "another RDMA service listens there", 34), rows[row].foreign);
	}
}

/* The payload of another version has another pattern: its bytes must not be compared with this one's. */
TEST(other_version_is_no_hello)
{
	uint8_t bytes[HELLO_SIZE];
	struct hello hello;

	memcpy(bytes, on_the_wire, sizeof(on_the_wire));
	for (unsigned version = 0; version <= UINT8_MAX; version++) {
		bytes[4] = (uint8_t)version;
		assert_int_equal(hello_read(bytes, sizeof(bytes), HELLO_UCMATOSE, &hello), version == on_the_wire[4]);
	}
}
