/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "test/network/vectors.h"
#include "transport/backend.h"
#include "transport/soft/qp/qp_internal.h"
#include "transport/soft/wire/mad.h"

/* The MAD of a vector, or NULL if it is another packet. */
static const uint8_t *mad_of(const struct vector *vector)
{
	struct vector_datagram datagram;
	struct packet packet;

	assert_non_null(vector);
	vector_open(vector, &datagram);
	assert_true(packet_parse(datagram.bytes, datagram.length, &packet));
	if (packet.destination != MAD_QPN)
		return NULL;
	assert_int_equal(packet.length, MAD_SIZE);
	assert_int_equal(packet.datagram.key, MAD_QKEY);
	return packet.payload;
}

static void parse_named(const char *name, struct mad *mad)
{
	assert_true(mad_parse(mad_of(vector_named(name)), MAD_SIZE, mad));
}

static void assert_zero(const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		assert_int_equal(bytes[i], 0);
}

/* The headers that librdmacm puts before private data, and what follows them. */
TEST(captured_private_data)
{
	static const struct mad_address expected = { 6, 0xb150, { 0xfd, [15] = 2 }, { 0xfd, [15] = 1 } };
	struct mad_address address;
	struct mad mad;

	parse_named("req6", &mad);
	assert_true(mad_address_parse(mad.private_data, mad.private_length, &address));
	assert_memory_equal(&address, &expected, sizeof(address));
	assert_zero(mad.private_data + MAD_ADDRESS_SIZE, MAD_REQ_USER_PRIVATE);
	parse_named("rej_consumer4", &mad);
	assert_memory_equal(mad.private_data, "busy with another client", 24);
}

/* Parsing and writing a captured MAD reproduces each byte, except a REQ's unused flow label. */
TEST(captured_mads_are_reproduced)
{
	enum {
		FLOW_LABEL = 24 + 88,
	};
	unsigned kinds = 0, count = 0;

	for (size_t i = 0; i < VECTORS; i++) {
		const uint8_t *bytes = mad_of(vector_at(i));
		uint8_t written[MAD_SIZE];
		struct mad mad;

		if (!bytes)
			continue;
		assert_true(mad_parse(bytes, MAD_SIZE, &mad));
		memset(written, 0xee, sizeof(written));
		mad_write(&mad, written);
		if (mad.kind == MAD_REQ)
			memcpy(written + FLOW_LABEL, bytes + FLOW_LABEL, 3);
		assert_memory_equal(written, bytes, MAD_SIZE);
		kinds |= 1u << (mad.kind - MAD_REQ);
		count++;
		if (mad.kind == MAD_REQ) {
			struct mad_address address;
			uint8_t header[MAD_ADDRESS_SIZE];

			assert_true(mad_address_parse(mad.private_data, mad.private_length, &address));
			mad_address_write(&address, header);
			assert_memory_equal(header, mad.private_data, MAD_ADDRESS_SIZE);
		}
	}
	assert_int_equal(kinds, 0x7f);
	assert_true(count >= 10);
}

TEST(invalid_headers_are_rejected)
{
	const uint8_t *original = mad_of(vector_named("req4"));
	static const uint8_t header[] = { 0, 1, 2, 3, 16, 17 };
	uint8_t bytes[MAD_SIZE];
	struct mad mad;

	for (size_t length = 0; length < MAD_SIZE; length++)
		assert_false(mad_parse(original, length, &mad));
	for (size_t i = 0; i < LENGTH(header); i++)
		for (unsigned value = 0; value < 256; value++) {
			bool kind = header[i] == 17 && value >= MAD_REQ && value <= MAD_SIDR_REP;

			memcpy(bytes, original, MAD_SIZE);
			bytes[header[i]] = (uint8_t)value;
			assert_int_equal(mad_parse(bytes, MAD_SIZE, &mad), kind || value == original[header[i]]);
		}
}

/* IBTA volume 1, 12.6. All fields have different values, unlike in most captured MADs. */
TEST(field_offsets)
{
	static const struct {
		struct mad mad;
		const char *text; /* after the header, as vectors have it */
	} rows[] = {
		{ { .kind = MAD_REQ,
		    .req = { .service_id = UINT64_C(0x0102030405060708),
			     .ca_guid = UINT64_C(0x1112131415161718),
			     .qpn = 0x313233,
			     .responder_resources = 2,
			     .initiator_depth = 3,
			     .remote_response_timeout = 20,
			     .transport = 3,
			     .starting_psn = 0x414243,
			     .local_response_timeout = 18,
			     .retry_count = 5,
			     .pkey = 0xfffe,
			     .path_mtu = 3,
			     .rnr_retry_count = 6,
			     .max_cm_retries = 9,
			     .path = { .local_lid = 0x5152,
				       .remote_lid = 0x5354,
				       .local_gid = { 0x61, [15] = 0x62 },
				       .remote_gid = { 0x63, [15] = 0x64 },
				       .packet_rate = 3,
				       .traffic_class = 0x71,
				       .hop_limit = 64,
				       .ack_timeout = 16 } } },
		  "z8.01020304050607081112131415161718z8.3132330200000003000000a641424395fffe36905152535461z14.62"
		  "63z14.640000000371400080z136." },
		{ { .kind = MAD_REP,
		    .rep = { .qpn = 0x111213,
			     .starting_psn = 0x212223,
			     .responder_resources = 2,
			     .initiator_depth = 3,
			     .target_ack_delay = 15,
			     .rnr_retry_count = 5,
			     .ca_guid = UINT64_C(0x3132333435363738) } },
		  "z12.111213z5.21222300020378a03132333435363738z196." },
		{ { .kind = MAD_MRA, .mra = { .answered = 2, .service_timeout = 20 } }, "z8.80a0z222." },
		{ { .kind = MAD_REJ, .rej = { .answered = 1, .reason = 0x0102 } }, "z8.40000102z220." },
		{ { .kind = MAD_DREQ, .dreq = { .remote_qpn = 0x010203, .mark = 0x04050607, .acked_psn = 0x08090a } },
		  "z8.01020300040506070008090az212." },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		uint8_t expected[MAD_SIZE], bytes[MAD_SIZE], again[MAD_SIZE];
		struct mad parsed;

		assert_int_equal(vector_unpack(rows[row].text, expected), MAD_SIZE - 24);
		mad_write(&rows[row].mad, bytes);
		assert_memory_equal(bytes + 24, expected, MAD_SIZE - 24);
		assert_true(mad_parse(bytes, sizeof(bytes), &parsed));
		mad_write(&parsed, again);
		assert_memory_equal(bytes, again, sizeof(bytes));
	}
}

TEST(long_private_data_is_cut)
{
	uint8_t data[300], bytes[MAD_SIZE];
	struct mad mad = {
		.kind = MAD_REJ,
		.rej = { .information_length = MAD_INFORMATION_MAX, .information = data },
		.private_data = data,
		.private_length = sizeof(data),
	};

	memset(data, 0xff, sizeof(data));
	mad_write(&mad, bytes);
	assert_zero(bytes + 24, 9);
	for (size_t i = 24 + 12; i < MAD_SIZE; i++)
		assert_int_equal(bytes[i], 0xff);
	mad.private_length = 0;
	mad.rej.information_length = MAD_INFORMATION_MAX + 1;
	mad_write(&mad, bytes);
	assert_int_equal(bytes[24 + 12 + MAD_INFORMATION_MAX - 1], 0xff);
	assert_zero(bytes + 24 + 12 + MAD_INFORMATION_MAX, MAD_SIZE - 24 - 12 - MAD_INFORMATION_MAX);
	mad.kind = MAD_DREQ;
	mad.dreq = (struct mad_dreq){ 0 };
	mad.private_length = 5;
	mad.dreq.remote_qpn = UINT32_MAX;
	mad_write(&mad, bytes);
	assert_memory_equal(bytes + 24 + 8, "\xff\xff\xff\0\xff\xff\xff\xff\xff\0", 10);
	assert_zero(bytes + 24 + 17, MAD_SIZE - 24 - 17);
}

TEST(address_headers_are_checked)
{
	uint8_t header[MAD_ADDRESS_SIZE];
	struct mad_address address = { .version = 4, .port = 0x1234, .source = { 1, 2, 3, 4 } }, parsed;

	mad_address_write(&address, header);
	for (size_t length = 0; length < MAD_ADDRESS_SIZE; length++)
		assert_false(mad_address_parse(header, length, &parsed));
	assert_true(mad_address_parse(header, sizeof(header), &parsed));
	assert_memory_equal(&parsed, &address, sizeof(parsed));
	for (unsigned version = 0; version < 16; version++) {
		header[1] = (uint8_t)(version << 4 | 0xf);
		assert_int_equal(mad_address_parse(header, sizeof(header), &parsed), version == 4 || version == 6);
	}
	header[1] = 0x40;
	header[0] = 0x10;
	assert_false(mad_address_parse(header, sizeof(header), &parsed));
}

TEST(service_ids)
{
	uint16_t port_space, port;

	assert_true(mad_service_id(0x0106, 7471) == UINT64_C(0x1061d2f));
	assert_true(mad_service_split(mad_service_id(0x013f, 65535), &port_space, &port));
	assert_int_equal(port_space, 0x013f);
	assert_int_equal(port, 65535);
	for (unsigned bit = 32; bit < 64; bit++)
		assert_false(mad_service_split(UINT64_C(0x1061d2f) | UINT64_C(1) << bit, &port_space, &port));
}

TEST(timeouts)
{
	assert_int_equal(mad_timeout(0), 4096);
	assert_true(mad_timeout(20) == INT64_C(4294967296));
	assert_true(mad_timeout(31) == INT64_C(8796093022208));
	assert_true(mad_timeout(32 + 3) == mad_timeout(3));
}

TEST(all_reject_reasons_have_text)
{
	for (unsigned reason = 0; reason <= UINT16_MAX; reason++)
		assert_true(strlen(rejection_text((int)reason)) > 10);
	assert_string_equal(rejection_text(REJECTED_BY_CONSUMER), "refused by the peer");
}
