/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC that ends every RoCEv2 packet (IBTA annex A17): a CRC-32 over the IP and UDP headers, with the
 * fields that routers change set to ones, and the UDP payload before it.
 *
 * A UDP socket does not show the IP header of a received packet. All of it is known except the IPv4 identification,
 * which icrc_check() solves for: one of 2^15 damaged packets has a solution.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ICRC_SIZE = 4, /* bytes at the end of the UDP payload, little-endian */
	ICRC_INVERSE_STEP = 64,
	ICRC_INVERSE_END = 8192,
	ICRC_DATAGRAM_MAX = 8000 /* bytes of the longest UDP payload that is checked, with ICRC */
};

/* The faster ones first. */
enum icrc_instruction {
	ICRC_VPCLMULQDQ,
	ICRC_PCLMULQDQ,
	ICRC_CRC32X,
	ICRC_INSTRUCTIONS
};

struct icrc_table;
typedef uint32_t icrc_updater(const struct icrc_table *table, uint32_t crc, const uint8_t *bytes, size_t length);

/* Constant after icrc_prepare(). */
struct icrc_table {
	icrc_updater *update;
	uint32_t slices[8][256];		   /* CRC of a byte followed by 0 to 7 zeros */
	uint32_t initial;			   /* CRC of the 8 bytes of ones before the IP header */
	uint32_t inverse_bytes[ICRC_INVERSE_STEP]; /* x^(-8 n) ... */
	uint32_t inverse_blocks[ICRC_INVERSE_END / ICRC_INVERSE_STEP]; /* ... and x^(-8 * 64 n) mod P */
};

void icrc_prepare(struct icrc_table *table);

/* Uses the table only; for tests. */
void icrc_prepare_plain(struct icrc_table *table);

/* NULL if this CPU or kernel lacks the instruction. For tests. */
icrc_updater *icrc_find_updater(enum icrc_instruction instruction);

/* CRC-32 without the initial and final complement. Any length and alignment. */
uint32_t icrc_update(const struct icrc_table *table, uint32_t crc, const void *bytes, size_t length);

/*
 * Returns the change of 4 message bytes, first byte in the lowest, that changes the CRC by difference. bytes: from the
 * first of them to the end of the message, less than ICRC_INVERSE_END.
 */
uint32_t icrc_solve(const struct icrc_table *table, uint32_t difference, size_t bytes);

enum icrc_family {
	ICRC_IP4 = 4,
	ICRC_IP6 = 6,
};

/* The IP and UDP headers of packets from one address to another, with the masked fields set to ones. */
struct icrc_flow {
	enum icrc_family family;
	uint8_t header[48];
};

/* Addresses: 4 or 16 bytes, network order. Ports: host order. */
void icrc_flow_prepare(struct icrc_flow *flow, enum icrc_family family, const uint8_t *source,
		       const uint8_t *destination, uint16_t source_port, uint16_t destination_port);

/*
 * Returns the ICRC of a packet to send, for icrc_store(). header: from packet_write(). pad: 0 to 3 bytes of zeros after
 * the payload. identification: IPv4's; 0 with IP_MTU_DISCOVER=PROBE; UDP_SEGMENT numbers its segments from 0.
 */
uint32_t icrc_compute(const struct icrc_table *table, const struct icrc_flow *flow, uint16_t identification,
		      const uint8_t *header, size_t header_length, const uint8_t *payload, size_t payload_length,
		      size_t pad);

void icrc_store(uint8_t bytes[ICRC_SIZE], uint32_t icrc);

/*
 * Checks a received UDP payload with its ICRC. *identification: the expected IPv4 identification, for which all 32 bits
 * are checked; on return the packet's.
 */
bool icrc_check(const struct icrc_table *table, const struct icrc_flow *flow, const uint8_t *bytes, size_t length,
		uint16_t *identification);
