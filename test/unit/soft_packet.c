/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "core/clock.h"
#include "test/network/vectors.h"

enum {
	MIGRATED = 0x40 /* MigReq: Linux rxe clears it, soft sets it */
};

static void assert_packets_equal(const struct packet *one, const struct packet *other)
{
	assert_int_equal(one->opcode, other->opcode);
	assert_int_equal(one->solicited, other->solicited);
	assert_int_equal(one->ack_request, other->ack_request);
	assert_int_equal(one->pad, other->pad);
	assert_int_equal(one->pkey, other->pkey);
	assert_int_equal(one->destination, other->destination);
	assert_int_equal(one->psn, other->psn);
	assert_true(one->remote.address == other->remote.address);
	assert_int_equal(one->remote.key, other->remote.key);
	assert_int_equal(one->remote.length, other->remote.length);
	assert_int_equal(one->acknowledgement.syndrome, other->acknowledgement.syndrome);
	assert_int_equal(one->acknowledgement.msn, other->acknowledgement.msn);
	assert_int_equal(one->datagram.key, other->datagram.key);
	assert_int_equal(one->datagram.source, other->datagram.source);
	assert_int_equal(one->immediate, other->immediate);
	assert_int_equal(one->length, other->length);
}

TEST(captured_packets_are_parsed_and_reproduced)
{
	for (size_t i = 0; i < VECTORS; i++) {
		struct vector_datagram datagram;
		uint8_t header[PACKET_HEADER_MAX];
		struct packet packet;
		size_t length;

		vector_open(vector_at(i), &datagram);
		assert_true(packet_parse(datagram.bytes, datagram.length, &packet));
		assert_packets_equal(&packet, &vector_at(i)->packet);
		assert_ptr_equal(packet.payload + packet.length + packet.pad + PACKET_ICRC_SIZE,
				 datagram.bytes + datagram.length);
		packet.pad = 0; /* computed from the length */
		length = packet_write(&packet, header);
		assert_ptr_equal(datagram.bytes + length, packet.payload);
		assert_int_equal(header[1], datagram.bytes[1] | MIGRATED);
		header[1] = datagram.bytes[1];
		assert_memory_equal(header, datagram.bytes, length);
	}
}

/* The rest is payload, pad and ICRC. */
TEST(malformed_packets_are_rejected)
{
	static const struct {
		uint8_t opcode, flags; /* pad and header version */
		size_t rest;
		bool valid;
		size_t length; /* of the payload */
	} rows[] = {
		{ OPCODE_SEND_ONLY, 0, 4 + 4, true, 4 },	{ OPCODE_SEND_ONLY, 0x30, 4 + 4, true, 1 },
		{ OPCODE_SEND_ONLY, 0x30, 4, false, 0 },	{ OPCODE_SEND_ONLY, 0, 4, true, 0 },
		{ OPCODE_SEND_ONLY, 0, 4 + 1, false, 0 },	{ OPCODE_SEND_ONLY, 0, 4 + 2, false, 0 },
		{ OPCODE_SEND_ONLY, 0, 4 + 3, false, 0 },	{ OPCODE_WRITE_MIDDLE, 0, 8 + 4, true, 8 },
		{ OPCODE_WRITE_MIDDLE, 0x10, 8 + 4, false, 0 }, { OPCODE_READ_REQUEST, 0, 4, true, 0 },
		{ OPCODE_READ_REQUEST, 0, 4 + 4, false, 0 },	{ OPCODE_ACKNOWLEDGE, 0, 4, true, 0 },
		{ OPCODE_ACKNOWLEDGE, 0, 4 + 4, false, 0 },
	};

	for (size_t row = 0; row < LENGTH(rows); row++)
		for (uint8_t version = 0; version < 16; version++) {
			struct packet packet = { .opcode = rows[row].opcode, .pkey = PACKET_PKEY };
			uint8_t bytes[64] = { 0 };
			size_t header = packet_write(&packet, bytes);

			bytes[1] = rows[row].flags | version;
			assert_int_equal(packet_parse(bytes, header + rows[row].rest, &packet),
					 rows[row].valid && !version);
			if (rows[row].valid && !version)
				assert_int_equal(packet.length, rows[row].length);
		}
}

/* Header length of each opcode, by IBTA; 0: not supported. All bytes after a reserved RC request's BTH are payload. */
static size_t header_length_of(unsigned opcode)
{
	static const uint8_t lengths[] = { 12, 12, 12, 16, 12, 16, 28, 12, 12, 16, 28, 32, 28, 16, 12, 16, 16, 16, 0 };

	if (opcode < LENGTH(lengths))
		return lengths[opcode];
	return opcode <= 0x1f ? 12 : opcode == 0x64 ? 20 : opcode == 0x65 ? 24 : 0;
}

TEST(headers_of_all_opcodes)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		struct packet packet = {
			.opcode = (uint8_t)opcode,
			.pkey = 0x1234,
			.destination = 0xabcdef,
			.psn = 0xfedcba,
			.remote = { UINT64_C(0x123456789abcdef0), 0x87654321, 0xfffffff0 },
			.acknowledgement = { 0x7f, 0xc0ffee },
			.datagram = { 0xdeadbeef, 0xbeefed },
			.immediate = 0xfeedface,
			.solicited = opcode & 1,
			.ack_request = opcode & 2,
		};
		uint8_t bytes[PACKET_HEADER_MAX + PACKET_ICRC_SIZE];
		struct packet parsed;
		size_t length = packet_write(&packet, bytes);

		assert_int_equal(length, header_length_of(opcode));
		assert_int_equal(!opcode_form(packet.opcode), !length);
		if (!length) {
			memset(bytes, 0, sizeof(bytes));
			bytes[0] = packet.opcode;
			assert_false(packet_parse(bytes, sizeof(bytes), &parsed));
			continue;
		}
		memset(bytes + length, 0, PACKET_ICRC_SIZE);
		for (size_t cut = 0; cut < length + PACKET_ICRC_SIZE; cut++)
			assert_false(packet_parse(bytes, cut, &parsed));
		assert_true(packet_parse(bytes, length + PACKET_ICRC_SIZE, &parsed));
		/* Fields without a header in this opcode are 0. */
		if (!(opcode_form(packet.opcode) & FORM_REMOTE))
			memset(&packet.remote, 0, sizeof(packet.remote));
		if (!(opcode_form(packet.opcode) & FORM_ACKNOWLEDGEMENT))
			memset(&packet.acknowledgement, 0, sizeof(packet.acknowledgement));
		if (!(opcode_form(packet.opcode) & FORM_DATAGRAM))
			memset(&packet.datagram, 0, sizeof(packet.datagram));
		if (!(opcode_form(packet.opcode) & FORM_IMMEDIATE))
			packet.immediate = 0;
		assert_packets_equal(&parsed, &packet);
	}
}

TEST(values_are_cut_to_field_width)
{
	struct packet packet = {
		.opcode = OPCODE_DATAGRAM,
		.destination = UINT32_MAX,
		.psn = UINT32_MAX,
		.datagram = { .source = UINT32_MAX },
		.length = 1,
	};
	uint8_t bytes[PACKET_HEADER_MAX];

	assert_int_equal(packet_write(&packet, bytes), 20);
	assert_int_equal(bytes[1], MIGRATED | 0x30);
	assert_int_equal(bytes[4], 0);
	assert_int_equal(bytes[8], 0);
	assert_int_equal(bytes[16], 0);
	packet.opcode = OPCODE_ACKNOWLEDGE;
	packet.acknowledgement.syndrome = 0x60;
	packet.acknowledgement.msn = UINT32_MAX;
	packet_write(&packet, bytes);
	assert_int_equal(bytes[12], 0x60);
}

TEST(pad_to_multiple_of_4)
{
	for (size_t length = 0; length < 100; length++) {
		assert_true(packet_pad(length) < 4);
		assert_int_equal((length + packet_pad(length)) % 4, 0);
	}
}

TEST(psns_wrap)
{
	assert_int_equal(psn_add(0xffffff, 1), 0);
	assert_int_equal(psn_add(0xfffffe, 5), 3);
	assert_int_equal(psn_add(3, (uint32_t)-5), 0xfffffe);
	assert_int_equal(psn_difference(0, 0xffffff), 1);
	assert_int_equal(psn_difference(0xffffff, 0), -1);
	assert_int_equal(psn_difference(5, 5), 0);
	assert_int_equal(psn_difference(0x7fffff, 0), 0x7fffff);
	assert_int_equal(psn_difference(0x800000, 0), -0x800000);
	assert_true(psn_before(0xffffff, 0));
	assert_false(psn_before(0, 0xffffff));
	assert_false(psn_before(7, 7));
	assert_true(psn_before(0, 0x7fffff));
	for (uint32_t psn = 0xfffff0; psn < 0x1000010; psn++) {
		for (uint32_t step = 0; step < 0x7fffff; step += 0x3fff) {
			assert_int_equal(psn_difference(psn_add(psn & PSN_MASK, step), psn & PSN_MASK), step);
			assert_int_equal(psn_difference(psn & PSN_MASK, psn_add(psn & PSN_MASK, step)), -(int)step);
		}
	}
}

TEST(syndrome_kinds_and_values)
{
	assert_int_equal(syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED), 0x1f);
	assert_int_equal(syndrome_make(SYNDROME_RNR, 14), 0x2e);
	assert_int_equal(syndrome_make(SYNDROME_NAK, NAK_SEQUENCE), 0x60);
	assert_int_equal(syndrome_make(SYNDROME_NAK, NAK_REMOTE_OPERATION), 0x63);
	for (unsigned syndrome = 0; syndrome < 128; syndrome++) {
		uint8_t value = syndrome_value((uint8_t)syndrome);

		assert_int_equal(syndrome_make(syndrome_kind((uint8_t)syndrome), value), syndrome);
	}
	/* The most significant bit is reserved: such a syndrome has no valid kind. */
	assert_true(syndrome_kind(0x9f) > SYNDROME_NAK);
}

TEST(rnr_delays)
{
	assert_int_equal(rnr_delay(0), 655360 * CLOCK_NS_PER_US);
	assert_int_equal(rnr_delay(1), 10 * CLOCK_NS_PER_US);
	assert_int_equal(rnr_delay(14), 1280 * CLOCK_NS_PER_US);
	assert_int_equal(rnr_delay(31), 491520 * CLOCK_NS_PER_US);
	assert_int_equal(rnr_delay(32 + 14), rnr_delay(14));
	/* The delay grows with the code. */
	for (uint8_t code = 2; code < 32; code++)
		assert_true(rnr_delay(code) > rnr_delay((uint8_t)(code - 1)));
}

TEST(mtu_codes_and_bytes)
{
	assert_int_equal(mtu_bytes(0), 0);
	assert_int_equal(mtu_bytes(1), 256);
	assert_int_equal(mtu_bytes(3), 1024);
	assert_int_equal(mtu_bytes(5), 4096);
	assert_int_equal(mtu_bytes(6), 0);
	assert_int_equal(mtu_bytes(UINT32_MAX), 0);
	assert_int_equal(mtu_code(0), 0);
	assert_int_equal(mtu_code(255), 0);
	assert_int_equal(mtu_code(256), 1);
	assert_int_equal(mtu_code(1500 - PACKET_OVERHEAD_MAX), 3);
	assert_int_equal(mtu_code(4095), 4);
	assert_int_equal(mtu_code(65536), 5);
}
