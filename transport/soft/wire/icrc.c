/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How icrc_check() finds a packet's IPv4 identification.
 *
 * A message is a polynomial over GF(2), its first bit the highest power. Its CRC is, up to constants, the remainder of
 * message * x^32 modulo P, a polynomial of degree 32. It is linear: if two messages of one length differ by D, their
 * CRCs differ by the remainder of D * x^32.
 *
 * The assumed header and the header sent differ only in the 4 bytes of identification, flags and fragment offset. Let
 * d be the difference of these bytes, a polynomial of degree 31 at most, and n the bytes from the first of them to the
 * end of what the CRC covers. Then D * x^32 is d * x^(8 n). P has a constant term, so x has an inverse modulo P, and
 *
 *  *	d = (received CRC - CRC of the assumed header) * x^(-8 n) mod P
 *
 * which icrc_solve() computes. A valid d is any identification, DF or nothing in the byte of flags, and 0 in the last
 * byte: 2^17 of 2^32 values. So a corrupted packet has a valid d with a probability of 2^-15.
 */
#include "transport/soft/wire/icrc.h"

#include <string.h>

#include "transport/soft/wire/bytes.h"

/* Offsets in the headers, bytes. */
enum {
	IP4_SIZE = 20,
	IP4_TYPE_OF_SERVICE = 1,
	IP4_LENGTH = 2,
	IP4_IDENTIFICATION = 4,
	IP4_FLAGS = 6,
	IP4_TIME_TO_LIVE = 8,
	IP4_PROTOCOL = 9,
	IP4_CHECKSUM = 10,
	IP4_SOURCE = 12,
	IP4_DESTINATION = 16,
	IP4_DO_NOT_FRAGMENT = 0x40,

	IP6_SIZE = 40,
	IP6_LENGTH = 4,
	IP6_NEXT = 6,
	IP6_HOP_LIMIT = 7,
	IP6_SOURCE = 8,
	IP6_DESTINATION = 24,

	UDP_SIZE = 8,
	UDP_SOURCE = 0,
	UDP_DESTINATION = 2,
	UDP_LENGTH = 4,
	UDP_CHECKSUM = 6,
	PROTOCOL_UDP = 17,

	BASE_SIZE = 12,
	BASE_RESERVED = 4,
};

static size_t ip_size(const struct icrc_flow *flow)
{
	return flow->family == ICRC_IP4 ? IP4_SIZE : IP6_SIZE;
}

void icrc_flow_prepare(struct icrc_flow *flow, enum icrc_family family, const uint8_t *source,
		       const uint8_t *destination, uint16_t source_port, uint16_t destination_port)
{
	uint8_t *ip = flow->header, *udp;

	memset(flow, 0, sizeof(*flow));
	flow->family = family;
	if (family == ICRC_IP4) {
		ip[0] = 0x45;
		ip[IP4_TYPE_OF_SERVICE] = 0xff;
		ip[IP4_TIME_TO_LIVE] = 0xff;
		ip[IP4_PROTOCOL] = PROTOCOL_UDP;
		memset(ip + IP4_CHECKSUM, 0xff, 2);
		memcpy(ip + IP4_SOURCE, source, 4);
		memcpy(ip + IP4_DESTINATION, destination, 4);
	} else {
		/* Version, traffic class, flow label. */
		memset(ip, 0xff, 4);
		ip[0] = 0x6f;
		ip[IP6_NEXT] = PROTOCOL_UDP;
		ip[IP6_HOP_LIMIT] = 0xff;
		memcpy(ip + IP6_SOURCE, source, 16);
		memcpy(ip + IP6_DESTINATION, destination, 16);
	}
	udp = ip + ip_size(flow);
	bytes_write(udp + UDP_SOURCE, 2, source_port);
	bytes_write(udp + UDP_DESTINATION, 2, destination_port);
	memset(udp + UDP_CHECKSUM, 0xff, 2);
}

/* The CRC up to and including the BTH. length: of the UDP payload with ICRC, bytes. */
static uint32_t icrc_headers(const struct icrc_table *table, const struct icrc_flow *flow, uint16_t identification,
			     size_t length, const uint8_t *base)
{
	uint8_t headers[sizeof(flow->header) + BASE_SIZE];
	size_t size = ip_size(flow);

	memcpy(headers, flow->header, sizeof(flow->header));
	if (flow->family == ICRC_IP4) {
		bytes_write(headers + IP4_LENGTH, 2, IP4_SIZE + UDP_SIZE + length);
		bytes_write(headers + IP4_IDENTIFICATION, 2, identification);
		headers[IP4_FLAGS] = IP4_DO_NOT_FRAGMENT;
	} else {
		bytes_write(headers + IP6_LENGTH, 2, UDP_SIZE + length);
	}
	bytes_write(headers + size + UDP_LENGTH, 2, UDP_SIZE + length);
	size += UDP_SIZE;
	memcpy(headers + size, base, BASE_SIZE);
	headers[size + BASE_RESERVED] = 0xff;
	return icrc_update(table, table->initial, headers, size + BASE_SIZE);
}

uint32_t icrc_compute(const struct icrc_table *table, const struct icrc_flow *flow, uint16_t identification,
		      const uint8_t *header, size_t header_length, const uint8_t *payload, size_t payload_length,
		      size_t pad)
{
	static const uint8_t zeros[3];
	size_t length = header_length + payload_length + pad + ICRC_SIZE;
	uint32_t crc = icrc_headers(table, flow, identification, length, header);

	crc = icrc_update(table, crc, header + BASE_SIZE, header_length - BASE_SIZE);
	if (payload_length)
		crc = icrc_update(table, crc, payload, payload_length);
	return ~icrc_update(table, crc, zeros, pad & 3);
}

void icrc_store(uint8_t bytes[ICRC_SIZE], uint32_t icrc)
{
	for (unsigned i = 0; i < ICRC_SIZE; i++)
		bytes[i] = (uint8_t)(icrc >> (8 * i));
}

static uint32_t load_icrc(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

_Static_assert(IP4_SIZE + UDP_SIZE + ICRC_DATAGRAM_MAX < ICRC_INVERSE_END, "the tables cover the longest packet");

bool icrc_check(const struct icrc_table *table, const struct icrc_flow *flow, const uint8_t *bytes, size_t length,
		uint16_t *identification)
{
	uint32_t crc, difference, solution;

	if (length < BASE_SIZE + ICRC_SIZE || length > ICRC_DATAGRAM_MAX)
		return false;
	crc = icrc_headers(table, flow, *identification, length, bytes);
	crc = icrc_update(table, crc, bytes + BASE_SIZE, length - BASE_SIZE - ICRC_SIZE);
	difference = ~crc ^ load_icrc(bytes + length - ICRC_SIZE);
	if (!difference || flow->family != ICRC_IP4)
		return !difference;
	/* The first two bytes are the identification, the third is DF or 0, the last 0. */
	solution = icrc_solve(table, difference, IP4_SIZE - IP4_IDENTIFICATION + UDP_SIZE + length - ICRC_SIZE);
	*identification ^= (uint16_t)((solution & 0xff) << 8 | (solution >> 8 & 0xff));
	return !(solution >> 16 & ~(uint32_t)IP4_DO_NOT_FRAGMENT);
}
