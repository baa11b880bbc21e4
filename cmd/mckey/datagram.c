/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/mckey/datagram.h"

#include <arpa/inet.h>
#include <string.h>

enum {
	MAGIC = 0x726d636b, /* "rmck" */
	VERSION = 2,	    /* says which pattern the datagram has, too */

	HIGH_BITS = 24,

	OFFSET_MAGIC = 0,
	OFFSET_VERSION = 4,
	OFFSET_SEQUENCE = 8,
	OFFSET_TOTAL = 12,
	OFFSET_CHECKSUM = 16,

	IP4_HEADER_OFFSET = 20,
	IP4_SOURCE_OFFSET = IP4_HEADER_OFFSET + 12,
	IP4_VERSION_AND_LENGTH = 0x45,
	GRH_SOURCE_OFFSET = 8,
};

static void put32(uint8_t *bytes, uint32_t value)
{
	value = htonl(value);
	memcpy(bytes, &value, sizeof(value));
}

static uint32_t get32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return ntohl(value);
}

/* FNV-1a: detects heap garbage and stale buffers. */
static uint32_t checksum(const uint8_t mark[OFFSET_CHECKSUM], size_t size, uint32_t qpn)
{
	uint8_t covered[OFFSET_CHECKSUM + 8];
	uint32_t sum = 0x811c9dc5;

	memcpy(covered, mark, OFFSET_CHECKSUM);
	put32(covered + OFFSET_CHECKSUM, (uint32_t)size);
	put32(covered + OFFSET_CHECKSUM + 4, qpn);
	for (size_t i = 0; i < sizeof(covered); i++)
		sum = (sum ^ covered[i]) * 0x01000193;
	return sum;
}

void datagram_write(uint8_t *memory, size_t size, const uint8_t *pattern, uint32_t qpn,
		    const struct datagram_mark *mark)
{
	size_t start = 0;

	if (size >= DATAGRAM_MARK_SIZE) {
		memset(memory, 0, DATAGRAM_MARK_SIZE);
		put32(memory + OFFSET_MAGIC, MAGIC);
		put32(memory + OFFSET_VERSION, VERSION << HIGH_BITS | (uint32_t)(mark->sequence >> 32));
		put32(memory + OFFSET_SEQUENCE, (uint32_t)mark->sequence);
		put32(memory + OFFSET_TOTAL, (uint32_t)mark->total);
		put32(memory + OFFSET_CHECKSUM, checksum(memory, size, qpn));
		start = DATAGRAM_MARK_SIZE;
	}
	memcpy(memory + start, pattern + payload_pattern_offset(qpn, (uint32_t)mark->sequence), size - start);
}

static bool mark_read(const uint8_t *memory, size_t size, uint32_t qpn, struct datagram_mark *mark)
{
	uint32_t low, left;
	bool is_open;

	if (size < DATAGRAM_MARK_SIZE || get32(memory + OFFSET_MAGIC) != MAGIC || memory[OFFSET_VERSION] != VERSION ||
	    get32(memory + OFFSET_CHECKSUM) != checksum(memory, size, qpn))
		return false;
	low = get32(memory + OFFSET_SEQUENCE);
	left = get32(memory + OFFSET_TOTAL) - low - 1;
	is_open = get32(memory + OFFSET_TOTAL) == (uint32_t)DATAGRAM_OPEN;
	if (!is_open && left > DATAGRAM_TOTAL_MAX)
		return false;
	mark->sequence = (uint64_t)(get32(memory + OFFSET_VERSION) << (32 - HIGH_BITS) >> (32 - HIGH_BITS)) << 32 | low;
	mark->total = is_open ? DATAGRAM_OPEN : mark->sequence + 1 + left;
	return true;
}

enum datagram_content datagram_read(const uint8_t *memory, size_t size, const uint8_t *pattern, uint32_t qpn,
				    struct datagram_mark *mark, struct payload_difference *difference)
{
	if (!mark_read(memory, size, qpn, mark))
		return DATAGRAM_UNMARKED;
	if (payload_equal(pattern + payload_pattern_offset(qpn, (uint32_t)mark->sequence), memory + DATAGRAM_MARK_SIZE,
			  size - DATAGRAM_MARK_SIZE, difference))
		return DATAGRAM_INTACT;
	difference->position += DATAGRAM_MARK_SIZE;
	return DATAGRAM_DAMAGED;
}

static bool ip4_checksum_fits(const uint8_t *header)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < 20; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return ((sum & 0xffff) + (sum >> 16)) == 0xffff;
}

bool datagram_source(const uint8_t header[DATAGRAM_HEADER_SIZE], struct address *source)
{
	const uint8_t *ip4 = header + IP4_HEADER_OFFSET;
	bool is_version_6 = header[0] >> 4 == 6;

	memset(source, 0, sizeof(*source));
	/*
	 * The 20 bytes in front of an IPv4 header are undefined and may look like a GRH: then the IPv4 checksum
	 * decides. If they cannot be one, it is not checked: soft-RoCE does not fill it in for packets that it loops
	 * back.
	 */
	if (ip4[0] == IP4_VERSION_AND_LENGTH && (!is_version_6 || ip4_checksum_fits(ip4))) {
		source->family = ADDRESS_IP4;
		memcpy(source->bytes, header + IP4_SOURCE_OFFSET, 4);
	} else if (is_version_6) {
		source->family = ADDRESS_IP6;
		memcpy(source->bytes, header + GRH_SOURCE_OFFSET, 16);
	}
	return source->family != ADDRESS_NONE;
}
