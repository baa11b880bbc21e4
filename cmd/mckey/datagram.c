/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/mckey/datagram.h"

#include <arpa/inet.h>
#include <string.h>

enum {
	IP4_HEADER_OFFSET = 20,
	IP4_SOURCE_OFFSET = IP4_HEADER_OFFSET + 12,
	IP4_VERSION_AND_LENGTH = 0x45,
	GRH_SOURCE_OFFSET = 8,
};

/* The words of the mark. */
enum {
	MAGIC,
	VERSION,
	SEQUENCE,
	TOTAL,
	CHECKSUM,
	WORDS
};

/* The checksum is FNV-1a of the words before it, the size and the QP number: it detects heap garbage and stale buffers.
 */
static void mark_write(uint8_t *memory, size_t size, uint32_t qpn, const struct datagram_mark *mark)
{
	uint32_t words[WORDS + 1] = {
		[MAGIC] = htonl(0x726d636b),   /* "rmck" */
		[VERSION] = htonl(0x02000000), /* says which pattern the datagram has, too */
		[SEQUENCE] = htonl(mark->sequence), [TOTAL] = htonl(mark->total),
		[CHECKSUM] = htonl((uint32_t)size), [WORDS] = htonl(qpn),
	};
	uint32_t sum = 0x811c9dc5;

	for (size_t i = 0; i < sizeof(words); i++)
		sum = (sum ^ ((const uint8_t *)words)[i]) * 0x01000193;
	words[CHECKSUM] = htonl(sum);
	memcpy(memory, words, DATAGRAM_MARK_SIZE);
}

void datagram_write(uint8_t *memory, size_t size, const uint8_t *pattern, uint32_t qpn,
		    const struct datagram_mark *mark)
{
	size_t start = size < DATAGRAM_MARK_SIZE ? 0 : DATAGRAM_MARK_SIZE;

	if (start)
		mark_write(memory, size, qpn, mark);
	memcpy(memory + start, pattern + payload_pattern_offset(size - start, qpn, mark->sequence), size - start);
}

enum datagram_content datagram_read(const uint8_t *memory, size_t size, const uint8_t *pattern, uint32_t qpn,
				    struct datagram_mark *mark, struct payload_difference *difference)
{
	uint8_t expected[DATAGRAM_MARK_SIZE];
	uint32_t words[WORDS];

	if (size < DATAGRAM_MARK_SIZE)
		return DATAGRAM_UNMARKED;
	memcpy(words, memory, sizeof(words));
	*mark = (struct datagram_mark){ ntohl(words[SEQUENCE]), ntohl(words[TOTAL]) };
	mark_write(expected, size, qpn, mark);
	if (memcmp(expected, memory, sizeof(expected)) != 0 || mark->sequence >= mark->total)
		return DATAGRAM_UNMARKED;
	size -= DATAGRAM_MARK_SIZE;
	if (payload_equal(pattern + payload_pattern_offset(size, qpn, mark->sequence), memory + DATAGRAM_MARK_SIZE,
			  size, difference))
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
