/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 packets: what is in the UDP payload, from the base transport header to the invariant CRC.
 *
 *   +-----+----------------------------+---------+-----+------+
 *   | BTH | RETH | AETH | DETH | imm.  | payload | pad | ICRC |   numbers in network order, but the ICRC
 *   | 12  |  16  |  4   |  8   |  4    |  0 ...  | 0-3 |  4   |   (icrc.h)
 *   +-----+----------------------------+---------+-----+------+
 *
 * Which of the extension headers are there follows from the opcode.
 */
#ifndef TRANSPORT_SOFT_WIRE_PACKET_H
#define TRANSPORT_SOFT_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PACKET_PORT = 4791,	   /* the UDP destination port; the source port means nothing */
	PACKET_PKEY = 0xffff,	   /* the default partition, full member: the only one on RoCE */
	PACKET_ICRC_SIZE = 4,	   /* behind payload and pad */
	PACKET_BASE_SIZE = 12,	   /* the base transport header */
	PACKET_HEADER_MOST = 32,   /* with RETH and immediate */
	PACKET_OVERHEAD_MOST = 84, /* what an interface's MTU must hold besides the payload: IPv6, UDP, headers, ICRC */
	PACKET_PAYLOAD_MOST = 4096, /* the largest path MTU */
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
	OPCODE_UNKNOWN_FIRST = 0x13, /* requests of a connection that are reserved or not carried out here: atomics, */
	OPCODE_UNKNOWN_LAST = 0x1f,  /* invalidation, flushing */
	OPCODE_DATAGRAM = 0x64,
	OPCODE_DATAGRAM_IMMEDIATE = 0x65,
};

/* What a packet of some opcode is and carries. */
enum opcode_form {
	/* Extension headers, in their order on the wire. */
	FORM_DATAGRAM = 1 << 0,	       /* DETH, 8 bytes */
	FORM_REMOTE = 1 << 1,	       /* RETH, 16 bytes */
	FORM_ACKNOWLEDGEMENT = 1 << 2, /* AETH, 4 bytes */
	FORM_IMMEDIATE = 1 << 3,       /* immediate data, 4 bytes */
	FORM_PAYLOAD = 1 << 4,	       /* payload may follow */
	/* Where it stands in its message. */
	FORM_FIRST = 1 << 5, /* the message begins */
	FORM_LAST = 1 << 6,  /* the message ends; else the payload fills the path MTU */
	/* Whose business it is. */
	FORM_SEND = 1 << 7, /* of the responder: a receive is used up */
	FORM_WRITE = 1 << 8,
	FORM_READ = 1 << 9,
	FORM_RESPONSE = 1 << 10, /* of the requester */
	FORM_UNKNOWN = 1 << 11,	 /* of the responder, which refuses it; its headers count as payload */
};

/* The enum opcode_form bits of an opcode; 0 if it is no request of RC's, and no other that this program speaks. */
unsigned opcode_form(uint8_t opcode);

/* Only the parts that the opcode's form names mean anything; after packet_parse() the others are 0. */
struct packet {
	uint8_t opcode; /* enum opcode */
	bool solicited; /* the receiver's program wants to be woken */
	bool ack_request;
	uint8_t pad; /* bytes of zeros between payload and ICRC, 0-3; packet_write() takes packet_pad(length) instead */
	uint16_t pkey;
	uint32_t destination; /* queue pair number, 24 bits */
	uint32_t psn;	      /* packet sequence number, 24 bits */
	struct {
		uint64_t address; /* of the peer's memory */
		uint32_t key;
		uint32_t length; /* of the whole message, bytes */
	} remote;
	struct {
		uint8_t syndrome; /* see below */
		uint32_t msn;	  /* requests completed so far, 24 bits */
	} acknowledgement;
	struct {
		uint32_t key;	 /* must be that of the receiving queue */
		uint32_t source; /* queue pair number of the sender, 24 bits */
	} datagram;
	uint32_t immediate;	/* host order */
	const uint8_t *payload; /* into the bytes that were parsed; packet_write() does not look at it */
	size_t length;		/* of payload without pad, bytes */
};

/*
 * Reads a UDP payload with its ICRC, which is not checked here. Returns false if that cannot be a packet: another
 * header version, an unknown opcode, too short for its headers, a length that is no multiple of 4, payload where none
 * may be, or a pad that is longer than the payload or inside a message.
 */
bool packet_parse(const uint8_t *bytes, size_t length, struct packet *packet);

/*
 * Writes the headers of a packet with packet->length bytes of payload; the sender puts payload, pad and ICRC behind
 * them. Returns their length, 0 if the opcode is unknown.
 */
size_t packet_write(const struct packet *packet, uint8_t header[PACKET_HEADER_MOST]);

/* The bytes of pad that a payload of that length needs. */
static inline uint8_t packet_pad(size_t length)
{
	return (uint8_t)(-length & 3);
}

/*
 * Packet sequence numbers, queue pair numbers and message sequence numbers have 24 bits and wrap. Of two sequence
 * numbers the one that is less than half a turn ahead is the later one.
 */
#define PSN_MASK UINT32_C(0xffffff)
#define PSN_HALF UINT32_C(0x800000)

static inline uint32_t psn_add(uint32_t psn, uint32_t count)
{
	return (psn + count) & PSN_MASK;
}

/* How far psn is ahead of other: -2^23 to 2^23 - 1. */
static inline int32_t psn_difference(uint32_t psn, uint32_t other)
{
	int32_t ahead = (int32_t)((psn - other) & PSN_MASK);

	return ahead < (int32_t)PSN_HALF ? ahead : ahead - 0x1000000;
}

static inline bool psn_before(uint32_t psn, uint32_t other)
{
	return psn_difference(psn, other) < 0;
}

/* The syndrome of an acknowledgement: a kind in the upper three bits, a value in the lower five. */
enum syndrome_kind {
	SYNDROME_ACK = 0, /* value: flow-control credits as a code */
	SYNDROME_RNR = 1, /* receiver not ready: no receive posted; value: rnr_delay() code to wait */
	SYNDROME_NAK = 3, /* value: enum nak_code */
};

enum {
	CREDITS_UNLIMITED = 0x1f, /* the sender need not count; anything less can stall a NIC that does */
};

enum nak_code {
	NAK_SEQUENCE = 0, /* a packet is missing: send from the acknowledgement's PSN on */
	NAK_INVALID_REQUEST = 1,
	NAK_REMOTE_ACCESS = 2,
	NAK_REMOTE_OPERATION = 3,
};

/* An enum syndrome_kind, or another number up to 7 for what is reserved. */
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

/* How long the code (its lower five bits) of an RNR NAK asks to wait, in nanoseconds: 10 us (1) to 655.36 ms (0). */
int64_t rnr_delay(uint8_t code);

/* Path MTU: codes 1 to 5 are 256 to 4096 bytes. mtu_bytes() is 0 for any other code. */
unsigned mtu_bytes(unsigned code);

/* The code of the largest path MTU of at most that many bytes of payload; 0 if there are less than 256. */
unsigned mtu_code(size_t bytes);

#endif
