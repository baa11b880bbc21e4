/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "core/clock.h"
#include "test/network/vectors.h"
#include "transport/soft/net/icrc_state.h"

enum {
	BASE_SIZE = 12,
	RESERVED = 4, /* the byte of the BTH that the ICRC excludes */
};

static void crc_check_value(void **state)
{
	struct icrc_table table;

	(void)state;
	icrc_prepare_plain(&table);
	assert_string_equal(icrc_method(&table), "a table");
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

static void all_methods_agree(void **state)
{
	struct icrc_table plain, fast;
	uint8_t *bytes = malloc(5000);

	(void)state;
	assert_non_null(bytes);
	icrc_prepare_plain(&plain);
	icrc_prepare(&fast);
	print_message("# fast method: %s\n", icrc_method(&fast));
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
	/* The end of an allocation: no byte beyond it is read. */
	for (size_t length = 0; length < 200; length++)
		assert_int_equal(icrc_update(&fast, 0, bytes + 5000 - length, length),
				 crc_by_bit(0, bytes + 5000 - length, length));
	free(bytes);
}

static void captured_packets_are_valid(void **state)
{
	struct icrc_table table;

	(void)state;
	icrc_prepare(&table);
	for (size_t i = 0; i < VECTORS; i++) {
		struct vector_datagram datagram;
		enum icrc_result result;
		struct icrc_ip_id ip_id = { 0 };

		vector_open(vector_at(i), &datagram);
		result = icrc_check(&table, &datagram.flow, datagram.bytes, datagram.length, &ip_id);
		assert_int_equal(result, datagram.flow.family == ICRC_IP4 ? ICRC_SOLVED : ICRC_GOOD);
		assert_int_equal(ip_id.identification, datagram.ip_id.identification);
		assert_int_equal(ip_id.may_fragment, datagram.ip_id.may_fragment);
	}
}

static void captured_icrcs_are_reproduced(void **state)
{
	struct icrc_table table;

	(void)state;
	icrc_prepare(&table);
	for (size_t i = 0; i < VECTORS; i++) {
		struct vector_datagram datagram;
		struct packet packet;
		uint8_t icrc[ICRC_SIZE];

		vector_open(vector_at(i), &datagram);
		assert_true(packet_parse(datagram.bytes, datagram.length, &packet));
		icrc_store(icrc, icrc_compute(&table, &datagram.flow, datagram.ip_id, datagram.bytes,
					      (size_t)(packet.payload - datagram.bytes), packet.payload, packet.length,
					      packet.pad));
		assert_memory_equal(icrc, datagram.bytes + datagram.length - ICRC_SIZE, ICRC_SIZE);
	}
}

/* Each single-bit error is detected: over IPv6 by the ICRC, over IPv4 by the ICRC or by the identification state,
 * because a wrong solution (1 in 2^15) is far from the expected one. */
static void single_bit_errors_are_detected(void **state)
{
	struct icrc_table table;
	unsigned solved = 0;

	(void)state;
	icrc_prepare(&table);
	for (size_t i = 0; i < VECTORS; i++) {
		struct vector_datagram datagram;
		uint8_t bytes[2048];

		vector_open(vector_at(i), &datagram);
		memcpy(bytes, datagram.bytes, datagram.length);
		for (size_t bit = 0; bit < datagram.length * 8; bit++) {
			struct icrc_state pair = { .known = true, .last = datagram.ip_id };
			struct icrc_ip_id ip_id = { 0 };
			enum icrc_result result;

			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			result = icrc_check(&table, &datagram.flow, bytes, datagram.length, &ip_id);
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (bit / 8 == RESERVED) {
				assert_int_not_equal(result, ICRC_BAD);
				assert_int_equal(ip_id.identification, datagram.ip_id.identification);
				continue;
			}
			solved += result == ICRC_SOLVED;
			assert_false(icrc_state_accepts(&pair, result, ip_id, 0));
		}
	}
	print_message("# solved, checked by the state: %u\n", solved);
	assert_in_range(solved, 0, 20);
}

static void header_errors_are_detected(void **state)
{
	struct icrc_table table;

	(void)state;
	icrc_prepare(&table);
	for (size_t i = 0; i < VECTORS; i++) {
		struct vector_datagram datagram;
		struct icrc_ip_id ip_id = { 0 };

		vector_open(vector_at(i), &datagram);
		for (size_t byte = 0; byte < sizeof(datagram.flow.header); byte++) {
			struct icrc_state pair = { .known = true, .last = datagram.ip_id };
			struct icrc_flow flow = datagram.flow;
			enum icrc_result result;

			flow.header[byte] ^= 0x10;
			ip_id = (struct icrc_ip_id){ 0 };
			result = icrc_check(&table, &flow, datagram.bytes, datagram.length, &ip_id);
			/* Lengths, identification and DF are not part of the flow; an IPv4 flow is shorter than the
			 * buffer. */
			if (flow.family == ICRC_IP4 ? (byte >= 2 && byte <= 6) || byte == 24 || byte == 25 || byte >= 28
						    : byte == 4 || byte == 5 || byte == 44 || byte == 45) {
				assert_int_not_equal(result, ICRC_BAD);
				continue;
			}
			assert_false(icrc_state_accepts(&pair, result, ip_id, 0));
		}
		icrc_flow_set_source_port(&datagram.flow, 1);
		assert_int_equal(icrc_check(&table, &datagram.flow, datagram.bytes, datagram.length, &ip_id), ICRC_BAD);
	}
}

static void prepare_flow(struct icrc_flow *flow)
{
	static const uint8_t source[] = { 192, 0, 2, 1 }, destination[] = { 192, 0, 2, 77 };

	icrc_flow_prepare(flow, ICRC_IP4, source, destination, 50000, 4791);
}

/* Whatever identification is expected. With the right one nothing is left to solve. */
static void all_identifications_are_solved(void **state)
{
	static const uint8_t header[BASE_SIZE] = { 4, 0x40, 0xff, 0xff, 0, 0, 0, 17, 0x80, 1, 2, 3 };
	uint8_t bytes[BASE_SIZE + 8 + ICRC_SIZE] = { 0 };
	struct icrc_table table;
	struct icrc_flow flow;

	(void)state;
	icrc_prepare(&table);
	prepare_flow(&flow);
	memcpy(bytes, header, sizeof(header));
	memcpy(bytes + BASE_SIZE, "payload", 7);
	for (unsigned round = 0; round < 0x20000; round++) {
		struct icrc_ip_id wanted = { .identification = (uint16_t)round, .may_fragment = round >> 16 };
		struct icrc_ip_id ip_id = { .identification = (uint16_t)(3 * round), .may_fragment = round & 1 };
		uint32_t icrc = icrc_compute(&table, &flow, wanted, bytes, BASE_SIZE, bytes + BASE_SIZE, 7, 1);

		icrc_store(bytes + BASE_SIZE + 8, icrc);
		assert_int_equal(icrc_check(&table, &flow, bytes, sizeof(bytes), &ip_id),
				 (round & 0x7fff) || round >> 16 ? ICRC_SOLVED : ICRC_GOOD);
		assert_int_equal(ip_id.identification, wanted.identification);
		assert_int_equal(ip_id.may_fragment, wanted.may_fragment);
		assert_int_equal(icrc_check(&table, &flow, bytes, sizeof(bytes), &ip_id), ICRC_GOOD);
	}
}

static void all_lengths_are_solved(void **state)
{
	uint8_t *bytes = calloc(1, ICRC_DATAGRAM_MAX + 4);
	struct icrc_table table;
	struct icrc_flow flow;
	struct icrc_ip_id ip_id = { 0 };

	(void)state;
	assert_non_null(bytes);
	icrc_prepare(&table);
	prepare_flow(&flow);
	for (size_t length = BASE_SIZE + ICRC_SIZE; length <= ICRC_DATAGRAM_MAX; length++) {
		struct icrc_ip_id wanted = { .identification = (uint16_t)(length * 2654435761u),
					     .may_fragment = length & 1 };
		uint32_t icrc;

		bytes[length % 4000] = (uint8_t)length;
		icrc = icrc_compute(&table, &flow, wanted, bytes, BASE_SIZE, bytes + BASE_SIZE,
				    length - BASE_SIZE - ICRC_SIZE, 0);
		icrc_store(bytes + length - ICRC_SIZE, icrc);
		assert_int_equal(icrc_check(&table, &flow, bytes, length, &ip_id), ICRC_SOLVED);
		assert_int_equal(ip_id.identification, wanted.identification);
		assert_int_equal(ip_id.may_fragment, wanted.may_fragment);
	}
	for (size_t length = 0; length < BASE_SIZE + ICRC_SIZE; length++)
		assert_int_equal(icrc_check(&table, &flow, bytes, length, &ip_id), ICRC_BAD);
	assert_int_equal(icrc_check(&table, &flow, bytes, ICRC_DATAGRAM_MAX + 1, &ip_id), ICRC_BAD);
	assert_int_equal(icrc_check(&table, &flow, bytes, 65535, &ip_id), ICRC_BAD);
	free(bytes);
}

static void random_bytes_are_invalid(void **state)
{
	struct icrc_table table;
	struct icrc_flow flow;
	unsigned solved = 0;

	(void)state;
	icrc_prepare(&table);
	prepare_flow(&flow);
	srandom(3);
	for (unsigned round = 0; round < 30000; round++) {
		size_t length = (size_t)random() % 200;
		uint8_t *bytes = malloc(length ? length : 1);
		enum icrc_result result;
		struct icrc_ip_id ip_id = { 0 };

		assert_non_null(bytes);
		for (size_t i = 0; i < length; i++)
			bytes[i] = (uint8_t)random();
		result = icrc_check(&table, &flow, bytes, length, &ip_id);
		assert_int_not_equal(result, ICRC_GOOD);
		solved += result == ICRC_SOLVED;
		free(bytes);
	}
	assert_in_range(solved, 0, 8);
}

static bool accepts(struct icrc_state *pair, uint16_t identification, int64_t now)
{
	struct icrc_ip_id ip_id = { .identification = identification };

	return icrc_state_accepts(pair, ICRC_SOLVED, ip_id, now);
}

static void state_follows_sequence(void **state)
{
	struct icrc_state pair = { 0 };

	(void)state;
	assert_true(accepts(&pair, 65000, 0)); /* the first one is accepted */
	assert_true(accepts(&pair, 65000, 0));
	assert_true(accepts(&pair, 65001, 0));
	assert_true(accepts(&pair, 65501, 0));
	assert_true(accepts(&pair, 300, 0));		/* wraps around */
	assert_true(accepts(&pair, 64000, 0) == false); /* too old */
	assert_true(accepts(&pair, 250, 0));		/* reordered */
	assert_true(accepts(&pair, 65500, 0));		/* reordered by more */
	assert_true(accepts(&pair, 301, 0));
}

static void state_accepts_zero_and_rejects_invalid(void **state)
{
	struct icrc_state pair = { 0 };
	struct icrc_ip_id zero = { 0 };

	(void)state;
	assert_true(icrc_state_accepts(&pair, ICRC_GOOD, zero, 0));
	assert_false(icrc_state_accepts(&pair, ICRC_BAD, zero, 0));
	assert_true(accepts(&pair, 30000, 0));
	assert_true(icrc_state_accepts(&pair, ICRC_GOOD, zero, 0));
	assert_true(icrc_state_accepts(&pair, ICRC_SOLVED, (struct icrc_ip_id){ .may_fragment = true }, 0));
	assert_false(icrc_state_accepts(&pair, ICRC_BAD, (struct icrc_ip_id){ .identification = 30001 }, 0));
	/* Packets with another DF have their own sequence. */
	assert_false(icrc_state_accepts(&pair, ICRC_SOLVED,
					(struct icrc_ip_id){ .identification = 30001, .may_fragment = true }, 0));
	assert_true(accepts(&pair, 30001, 0));
}

static void state_rejects_single_jump(void **state)
{
	struct icrc_state pair = { 0 };
	uint16_t identification = 100;

	(void)state;
	/* Every twentieth packet is followed by a corrupted one, whose solution is far away. */
	for (unsigned round = 0; round < 20000; round++) {
		assert_true(accepts(&pair, identification++, 0));
		if (round % 20 == 0)
			assert_false(accepts(&pair, (uint16_t)(identification + 20000), 0));
	}
}

static void state_follows_confirmed_jump(void **state)
{
	struct icrc_state pair = { 0 };

	(void)state;
	assert_true(accepts(&pair, 100, 0));
	assert_false(accepts(&pair, 40000, 0));
	assert_true(accepts(&pair, 40001, 0));
	assert_true(accepts(&pair, 40002, 0));
	assert_false(accepts(&pair, 101, 0));
	assert_true(accepts(&pair, 40003, 0));
}

/* Linux advances the identification with time: by up to 3,000 in three idle seconds. */
static void state_allows_advance_in_idle_time(void **state)
{
	struct icrc_state pair = { 0 };

	(void)state;
	assert_true(accepts(&pair, 100, 0));
	assert_false(accepts(&pair, 3100, CLOCK_NS_PER_S));
	assert_true(accepts(&pair, 101, CLOCK_NS_PER_S));
	assert_true(accepts(&pair, 3101, 4 * CLOCK_NS_PER_S));
	assert_false(accepts(&pair, 101, 5 * CLOCK_NS_PER_S));
	/* After a minute any identification is accepted. */
	assert_true(accepts(&pair, 45000, 66 * CLOCK_NS_PER_S + 4 * CLOCK_NS_PER_S));
	assert_true(accepts(&pair, 45001, 70 * CLOCK_NS_PER_S));
	/* A clock that stands still or goes back is no idle time. */
	assert_false(accepts(&pair, 60000, 0));
}

/* The segments of one GSO send count from 0, and those of the next as well. */
static void state_follows_gso_segments(void **state)
{
	struct icrc_state pair = { 0 };

	(void)state;
	for (unsigned round = 0; round < 100; round++) {
		for (uint16_t segment = 0; segment < 64; segment++)
			assert_true(accepts(&pair, segment, round));
	}
}

/* A peer with random identifications is accepted after three packets. */
static void state_accepts_random_sequence(void **state)
{
	struct icrc_state pair = { 0 };
	uint16_t identification = 7;
	unsigned rejected = 0;

	(void)state;
	for (unsigned round = 0; round < 10000; round++) {
		rejected += !accepts(&pair, identification, 0);
		identification = (uint16_t)(identification * 25173u + 13849u);
	}
	assert_in_range(rejected, 1, 5);
}

/* Two hosts behind one NAT address, or a device with one sequence per queue pair: both sequences are accepted. */
static void state_accepts_two_sequences(void **state)
{
	struct icrc_state pair = { 0 };
	unsigned rejected = 0;

	(void)state;
	for (uint16_t round = 0; round < 10000; round++) {
		rejected += !accepts(&pair, (uint16_t)(100 + round), 0);
		rejected += !accepts(&pair, (uint16_t)(40000 + round), 0);
	}
	assert_in_range(rejected, 1, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_check_value),
		cmocka_unit_test(all_methods_agree),
		cmocka_unit_test(captured_packets_are_valid),
		cmocka_unit_test(captured_icrcs_are_reproduced),
		cmocka_unit_test(single_bit_errors_are_detected),
		cmocka_unit_test(header_errors_are_detected),
		cmocka_unit_test(all_identifications_are_solved),
		cmocka_unit_test(all_lengths_are_solved),
		cmocka_unit_test(random_bytes_are_invalid),
		cmocka_unit_test(state_follows_sequence),
		cmocka_unit_test(state_accepts_zero_and_rejects_invalid),
		cmocka_unit_test(state_rejects_single_jump),
		cmocka_unit_test(state_follows_confirmed_jump),
		cmocka_unit_test(state_allows_advance_in_idle_time),
		cmocka_unit_test(state_follows_gso_segments),
		cmocka_unit_test(state_accepts_random_sequence),
		cmocka_unit_test(state_accepts_two_sequences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
