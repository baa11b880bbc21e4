/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC that ends every RoCEv2 packet: a CRC-32 over the IP and UDP headers, with the fields that routers
 * change set to ones, and all of the UDP payload before it.
 *
 * A program with a UDP socket never sees the IP header of what it receives, but can say how it looks, all but the
 * identification (IPv4 only) that the sender gave it. That is solved for (icrc.c tells how) and then judged: a solution
 * alone is a check of 15 bits, too weak for a network that corrupts.
 */
#ifndef TRANSPORT_SOFT_ICRC_H
#define TRANSPORT_SOFT_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ICRC_SIZE = 4, /* bytes at the end of the UDP payload, the lowest first */
	ICRC_BACK_STEP = 64,
	ICRC_BACK_END = 8192,
	ICRC_DATAGRAM_MOST = 8000 /* the longest UDP payload that is checked, with ICRC; packets are far shorter */
};

struct icrc_table;
typedef uint32_t icrc_updater(const struct icrc_table *table, uint32_t crc, const uint8_t *bytes, size_t length);

/* Computed once by icrc_prepare(), then constant. */
struct icrc_table {
	icrc_updater *update;
	uint32_t slices[8][256];	     /* what a byte adds that 0 to 7 others follow */
	uint64_t folds[4];		     /* constants of the carry-less multiplication */
	uint32_t begin;			     /* the CRC of the eight bytes of ones before every IP header */
	uint32_t back_bytes[ICRC_BACK_STEP]; /* x^(-8 n) ... */
	uint32_t back_blocks[ICRC_BACK_END / ICRC_BACK_STEP]; /* ... and x^(-8 * 64 n), modulo the polynomial */
};

void icrc_prepare(struct icrc_table *table);

/* "a table", or the instruction that does it faster on this machine. */
const char *icrc_way(const struct icrc_table *table);

/* The same with the table alone, for comparison. */
void icrc_prepare_plain(struct icrc_table *table);

/* CRC-32 without its initial and final complement: those are the caller's. Any length and alignment. */
uint32_t icrc_update(const struct icrc_table *table, uint32_t crc, const void *bytes, size_t length);

/*
 * A change of 4 bytes, the first of which stands bytes before the end of what was added up, changed the CRC by
 * difference: returns that change, its first byte in the lowest. bytes is less than ICRC_BACK_END.
 */
uint32_t icrc_back(const struct icrc_table *table, uint32_t difference, size_t bytes);

enum icrc_family {
	ICRC_IP4 = 4,
	ICRC_IP6 = 6,
};

/* The IP and UDP headers of packets from one address to another, as the CRC sees them. */
struct icrc_flow {
	enum icrc_family family;
	uint8_t header[48];
};

/* Addresses of 4 or 16 bytes in network order, ports in host order. Cheap: a hundred bytes are copied. */
void icrc_flow_prepare(struct icrc_flow *flow, enum icrc_family family, const uint8_t *source,
		       const uint8_t *destination, uint16_t source_port, uint16_t destination_port);

/* For the next packet of a peer that sends from several ports. */
void icrc_flow_set_source_port(struct icrc_flow *flow, uint16_t port);

/* What a sender put into the fields of the IPv4 header that its receiver cannot see. Of no meaning with IPv6. */
struct icrc_mark {
	uint16_t identification;
	bool may_fragment; /* the DF flag is off */
};

/*
 * The ICRC of a packet to send, to be stored with icrc_store(). header: its length bytes from packet_write(), behind
 * which payload and pad bytes of zeros (0 to 3) follow. { 0 } is the mark of a packet of a socket with
 * IP_MTU_DISCOVER=PROBE; the segments of a UDP_SEGMENT send count the identification up from 0.
 */
uint32_t icrc_of(const struct icrc_table *table, const struct icrc_flow *flow, struct icrc_mark mark,
		 const uint8_t *header, size_t header_length, const uint8_t *payload, size_t payload_length,
		 size_t pad);

void icrc_store(uint8_t bytes[ICRC_SIZE], uint32_t icrc);

enum icrc_verdict {
	ICRC_BAD = 0,
	ICRC_GOOD,   /* identification 0 and DF, or IPv6: all 32 bits agree */
	ICRC_SOLVED, /* good if the mark is what the sender has used: ask icrc_judge_accepts() */
};

/* Checks a UDP payload with its ICRC that came from the flow's source. Fills *mark unless the verdict is ICRC_BAD. */
enum icrc_verdict icrc_check(const struct icrc_table *table, const struct icrc_flow *flow, const uint8_t *bytes,
			     size_t length, struct icrc_mark *mark);

#endif
