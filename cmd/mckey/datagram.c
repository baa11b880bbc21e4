/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/mckey/mckey.h"

#include <arpa/inet.h>
#include <string.h>

#include "cmd/hello.h"

enum {
	IP4_HEADER = 20,
	IP4_SOURCE = IP4_HEADER + 12,
	IP4_VERSION_AND_LENGTH = 0x45,
	GRH_SOURCE = 8,
	MAPPED = 0xffff, /* 0.0.255.255 */
};

/* The mark's words. */
enum {
	MAGIC,
	VERSION,
	SEQUENCE,
	TOTAL,
	CHECKSUM,
	WORDS
};

/* The checksum, FNV-1a of the words before it, the size and the QP number, detects heap garbage and stale buffers. */
static void mark_write(uint8_t *memory, size_t size, uint32_t qpn, const struct datagram_mark *mark)
{
	uint32_t words[WORDS + 1] = {
		[MAGIC] = htonl(0x726d636b), /* "rmck" */
		[VERSION] = htonl(HELLO_VERSION << 24),
		[SEQUENCE] = htonl(mark->sequence),
		[TOTAL] = htonl(mark->total),
		[CHECKSUM] = htonl((uint32_t)size),
		[WORDS] = htonl(qpn),
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

bool datagram_read(const uint8_t *memory, size_t size, const uint8_t *pattern, uint32_t qpn, struct datagram_mark *mark,
		   struct payload_difference *difference)
{
	uint32_t words[WORDS], expected[WORDS];

	mark->total = 0;
	if (size < DATAGRAM_MARK_SIZE)
		return true;
	memcpy(words, memory, sizeof(words));
	mark->sequence = ntohl(words[SEQUENCE]);
	mark->total = ntohl(words[TOTAL]);
	mark_write((uint8_t *)expected, size, qpn, mark);
	if (memcmp(expected, words, sizeof(words)) != 0 || mark->sequence >= mark->total) {
		mark->total = 0;
		return true;
	}
	size -= DATAGRAM_MARK_SIZE;
	if (payload_equal(pattern + payload_pattern_offset(size, qpn, mark->sequence), memory + DATAGRAM_MARK_SIZE,
			  size, difference))
		return true;
	difference->position += DATAGRAM_MARK_SIZE;
	return false;
}

/*
 * The 20 bytes in front of an IPv4 header are undefined and may look like a GRH. At the place of an IPv4 header's
 * source, the GRH of a datagram to an IPv4 group has the end of a mapped address's prefix: no host has the address
 * 0.0.255.255.
 */
void datagram_source(const uint8_t header[DATAGRAM_HEADER_SIZE], bool may_be_ip4, struct address *source)
{
	uint32_t ip4;

	memcpy(&ip4, header + IP4_SOURCE, sizeof(ip4));
	if (may_be_ip4 && header[IP4_HEADER] == IP4_VERSION_AND_LENGTH && ip4 != htonl(MAPPED)) {
		source->family = ADDRESS_IP4;
		memcpy(source->bytes, &ip4, sizeof(ip4));
	} else if (header[0] >> 4 == 6) {
		source->family = ADDRESS_IP6;
		memcpy(source->bytes, header + GRH_SOURCE, sizeof(source->bytes));
	}
}
