/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 packets: the UDP payload, from the base transport header (BTH) to the invariant CRC.
 *
 *   +-----+----------------------------+---------+-----+------+
 *   | BTH | RETH | AETH | DETH | imm.  | payload | pad | ICRC |   network order, but the ICRC
 *   | 12  |  16  |  4   |  8   |  4    |  0 ...  | 0-3 |  4   |   (icrc.h)
 *   +-----+----------------------------+---------+-----+------+
 *
 * The opcode determines the extension headers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PACKET_PKEY = 0xffff,	   /* default partition, full member: the only one on RoCE */
	PACKET_ICRC_SIZE = 4,	   /* after payload and pad */
	PACKET_BASE_SIZE = 12,	   /* BTH */
	PACKET_HEADER_MAX = 32,	   /* with RETH and immediate */
	PACKET_OVERHEAD_MAX = 84,  /* of an interface's MTU: IPv6, UDP, headers, ICRC */
	PACKET_PAYLOAD_MAX = 4096, /* the largest path MTU */
};

enum opcode {
	OPCODE_SEND_FIRST = 0x00,
	OPCODE_SEND_MIDDLE = 0x01,
	OPCODE_SEND_LAST = 0x02,
	OPCODE_SEND_LAST_IMMEDIATE = 0x03,
	OPCODE_SEND_ONLY = 0x04,
	OPCODE_SEND_ONLY_IMMEDIATE = 0x05,
	OPCODE_WRITE_FIRST = 0x06,
	OPCODE_WRITE_MIDDLE = 0x07,
	OPCODE_WRITE_LAST = 0x08,
	OPCODE_WRITE_LAST_IMMEDIATE = 0x09,
	OPCODE_WRITE_ONLY = 0x0a,
	OPCODE_WRITE_ONLY_IMMEDIATE = 0x0b,
	OPCODE_READ_REQUEST = 0x0c,
	OPCODE_READ_RESPONSE_FIRST = 0x0d,
	OPCODE_READ_RESPONSE_MIDDLE = 0x0e,
	OPCODE_READ_RESPONSE_LAST = 0x0f,
	OPCODE_READ_RESPONSE_ONLY = 0x10,
	OPCODE_ACKNOWLEDGE = 0x11,
	OPCODE_UNKNOWN_FIRST = 0x13, /* reserved or unsupported RC requests: atomics, send with invalidate, flush */
	OPCODE_UNKNOWN_LAST = 0x1f,
	OPCODE_DATAGRAM = 0x64,
	OPCODE_DATAGRAM_IMMEDIATE = 0x65,
};

/* The parts of an opcode's packet: bits. */
enum opcode_form {
	/* Extension headers, in their order on the wire. */
	FORM_DATAGRAM = 1 << 0,	       /* DETH, 8 bytes */
	FORM_REMOTE = 1 << 1,	       /* RETH, 16 bytes */
	FORM_ACKNOWLEDGEMENT = 1 << 2, /* AETH, 4 bytes */
	FORM_IMMEDIATE = 1 << 3,       /* immediate data, 4 bytes */
	FORM_PAYLOAD = 1 << 4,	       /* payload may follow */
	/* Position in the message. */
	FORM_FIRST = 1 << 5, /* the message begins */
	FORM_LAST = 1 << 6,  /* the message ends; else the payload is one path MTU */
	/* Operation. */
	FORM_SEND = 1 << 7, /* consumes a receive */
	FORM_WRITE = 1 << 8,
	FORM_READ = 1 << 9,
	FORM_RESPONSE = 1 << 10, /* for the requester; all others are for the responder */
	FORM_UNKNOWN = 1 << 11,	 /* the responder NAKs it; its extension headers count as payload */
};

/* Returns enum opcode_form bits; 0 if the opcode is neither an RC request nor another supported one. */
unsigned opcode_form(uint8_t opcode);

/* Only the parts in the opcode's form are used; packet_parse() sets the others to 0. */
struct packet {
	uint8_t opcode; /* enum opcode */
	bool solicited; /* solicited event */
	bool ack_request;
	uint8_t pad; /* bytes after the payload, 0-3; packet_write() uses packet_pad(length) instead */
	uint16_t pkey;
	uint32_t destination; /* QPN, 24 bits */
	uint32_t psn;	      /* 24 bits */
	struct {
		uint64_t address; /* of the peer's memory */
		uint32_t key;
		uint32_t length; /* of the whole message, bytes */
	} remote;
	struct {
		uint8_t syndrome; /* enum syndrome_kind and value */
		uint32_t msn;	  /* message sequence number: requests completed, 24 bits */
	} acknowledgement;
	struct {
		uint32_t key;	 /* qkey of the receiving QP */
		uint32_t source; /* QPN of the sender, 24 bits */
	} datagram;
	uint32_t immediate;	/* host order */
	const uint8_t *payload; /* points into the parsed bytes; packet_write() ignores it */
	size_t length;		/* of payload without pad, bytes */
};

/*
 * Parses a UDP payload with its ICRC, which icrc_check() checks. Returns false for another header version, an unknown
 * opcode, a length that is too short for the headers or not a multiple of 4, payload with an opcode that has none, or a
 * pad that is longer than the payload or not in a message's last packet.
 */
bool packet_parse(const uint8_t *bytes, size_t length, struct packet *packet);

/* Writes the headers of a packet with packet->length payload bytes. Returns their length; 0: unknown opcode. */
size_t packet_write(const struct packet *packet, uint8_t header[PACKET_HEADER_MAX]);

/* Returns the pad for a payload of length bytes. */
static inline uint8_t packet_pad(size_t length)
{
	return (uint8_t)(-length & 3);
}

/* PSNs, QPNs and MSNs have 24 bits. PSNs wrap: the later of two is less than PSN_HALF ahead. */
#define PSN_MASK UINT32_C(0xffffff)
#define PSN_HALF UINT32_C(0x800000)

enum {
	GROUP_QPN = 0xffffff /* the destination of each multicast datagram: Linux's IB_MULTICAST_QPN */
};

static inline uint32_t psn_add(uint32_t psn, uint32_t count)
{
	return (psn + count) & PSN_MASK;
}

/* Returns psn - other: -2^23 to 2^23 - 1. */
static inline int32_t psn_difference(uint32_t psn, uint32_t other)
{
	int32_t ahead = (int32_t)((psn - other) & PSN_MASK);

	return ahead < (int32_t)PSN_HALF ? ahead : ahead - 0x1000000;
}

static inline bool psn_before(uint32_t psn, uint32_t other)
{
	return psn_difference(psn, other) < 0;
}

/* The upper three bits of the AETH syndrome; the value is in the lower five. */
enum syndrome_kind {
	SYNDROME_ACK = 0, /* value: flow-control credits as a code */
	SYNDROME_RNR = 1, /* receiver not ready: no receive posted; value: rnr_delay() code */
	SYNDROME_NAK = 3, /* value: enum nak_code */
};

enum {
	CREDITS_UNLIMITED = 0x1f, /* fewer could stall a NIC that counts credits */
};

enum nak_code {
	NAK_SEQUENCE = 0, /* a packet is missing: retransmit from the NAK's PSN */
	NAK_INVALID_REQUEST = 1,
	NAK_REMOTE_ACCESS = 2,
	NAK_REMOTE_OPERATION = 3,
};

/* Returns an enum syndrome_kind, or another number up to 7 (reserved). */
static inline unsigned syndrome_kind(uint8_t syndrome)
{
	return syndrome >> 5;
}

static inline uint8_t syndrome_value(uint8_t syndrome)
{
	return syndrome & 0x1f;
}

static inline uint8_t syndrome_make(enum syndrome_kind kind, uint8_t value)
{
	return (uint8_t)((unsigned)kind << 5 | (value & 0x1fu));
}

/* Returns the RNR NAK timer in nanoseconds. code: its lower five bits; 1 is 10 us, 0 is 655.36 ms. */
int64_t rnr_delay(uint8_t code);

/* Path MTU codes 1 to 5 are 256 to 4096 bytes. Returns 0 for any other code. */
unsigned mtu_bytes(unsigned code);

/* Returns the code of the largest path MTU of at most bytes; 0 if less than 256. */
unsigned mtu_code(size_t bytes);
