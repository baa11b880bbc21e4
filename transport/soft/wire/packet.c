/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/soft/wire/packet.h"

#include "transport/soft/wire/bytes.h"

enum {
	VERSION = 0,
	/* The second byte: flags, pad count, version. */
	SOLICITED = 0x80,
	MIGRATED = 0x40, /* MigReq: NICs expect it, soft-RoCE does not set it; ignored on receipt */
	PAD_SHIFT = 4,
	PAD_MASK = 3,
	VERSION_MASK = 0x0f,
	/* The byte before the PSN. */
	ACK_REQUEST = 0x80,
	DATAGRAM_SIZE = 8,
	REMOTE_SIZE = 16,
	ACKNOWLEDGEMENT_SIZE = 4,
	IMMEDIATE_SIZE = 4,
};

enum {
	OPCODE_END = OPCODE_DATAGRAM_IMMEDIATE + 1,
	FIRST = FORM_FIRST | FORM_PAYLOAD,
	MIDDLE = FORM_PAYLOAD,
	LAST = FORM_LAST | FORM_PAYLOAD,
	ONLY = FORM_FIRST | FORM_LAST | FORM_PAYLOAD,
	RESPONSE = FORM_READ | FORM_RESPONSE,
};

/* clang-format off */
/* enum opcode_form; 0: unknown, or see opcode_form() */
static const uint16_t opcodes[OPCODE_END] = {
	[OPCODE_SEND_FIRST]           = FORM_SEND | FIRST,
	[OPCODE_SEND_MIDDLE]          = FORM_SEND | MIDDLE,
	[OPCODE_SEND_LAST]            = FORM_SEND | LAST,
	[OPCODE_SEND_LAST_IMMEDIATE]  = FORM_SEND | LAST | FORM_IMMEDIATE,
	[OPCODE_SEND_ONLY]            = FORM_SEND | ONLY,
	[OPCODE_SEND_ONLY_IMMEDIATE]  = FORM_SEND | ONLY | FORM_IMMEDIATE,
	[OPCODE_WRITE_FIRST]          = FORM_WRITE | FIRST | FORM_REMOTE,
	[OPCODE_WRITE_MIDDLE]         = FORM_WRITE | MIDDLE,
	[OPCODE_WRITE_LAST]           = FORM_WRITE | LAST,
	[OPCODE_WRITE_LAST_IMMEDIATE] = FORM_WRITE | LAST | FORM_IMMEDIATE,
	[OPCODE_WRITE_ONLY]           = FORM_WRITE | ONLY | FORM_REMOTE,
	[OPCODE_WRITE_ONLY_IMMEDIATE] = FORM_WRITE | ONLY | FORM_REMOTE | FORM_IMMEDIATE,
	[OPCODE_READ_REQUEST]         = FORM_READ | FORM_FIRST | FORM_LAST | FORM_REMOTE,
	[OPCODE_READ_RESPONSE_FIRST]  = RESPONSE | FIRST | FORM_ACKNOWLEDGEMENT,
	[OPCODE_READ_RESPONSE_MIDDLE] = RESPONSE | MIDDLE,
	[OPCODE_READ_RESPONSE_LAST]   = RESPONSE | LAST | FORM_ACKNOWLEDGEMENT,
	[OPCODE_READ_RESPONSE_ONLY]   = RESPONSE | ONLY | FORM_ACKNOWLEDGEMENT,
	[OPCODE_ACKNOWLEDGE]          = FORM_RESPONSE | FORM_FIRST | FORM_LAST | FORM_ACKNOWLEDGEMENT,
	[OPCODE_DATAGRAM]             = FORM_SEND | ONLY | FORM_DATAGRAM,
	[OPCODE_DATAGRAM_IMMEDIATE]   = FORM_SEND | ONLY | FORM_DATAGRAM | FORM_IMMEDIATE,
};
/* clang-format on */

unsigned opcode_form(uint8_t opcode)
{
	if (opcode >= OPCODE_UNKNOWN_FIRST && opcode <= OPCODE_UNKNOWN_LAST)
		return FORM_UNKNOWN | ONLY;
	return opcode < OPCODE_END ? opcodes[opcode] : 0;
}

static size_t header_length(unsigned form)
{
	return PACKET_BASE_SIZE + (form & FORM_DATAGRAM ? DATAGRAM_SIZE : 0u) +
	       (form & FORM_REMOTE ? REMOTE_SIZE : 0u) + (form & FORM_ACKNOWLEDGEMENT ? ACKNOWLEDGEMENT_SIZE : 0u) +
	       (form & FORM_IMMEDIATE ? IMMEDIATE_SIZE : 0u);
}

bool packet_parse(const uint8_t *bytes, size_t length, struct packet *packet)
{
	unsigned form;
	size_t header;

	if (length < PACKET_BASE_SIZE + PACKET_ICRC_SIZE || length % 4)
		return false;
	form = opcode_form(bytes[0]);
	header = header_length(form);
	if (!form || (bytes[1] & VERSION_MASK) != VERSION || length < header + PACKET_ICRC_SIZE)
		return false;
	*packet = (struct packet){
		.opcode = bytes[0],
		.solicited = bytes[1] & SOLICITED,
		.ack_request = bytes[8] & ACK_REQUEST,
		.pad = bytes[1] >> PAD_SHIFT & PAD_MASK,
		.pkey = (uint16_t)bytes_read(bytes + 2, 2),
		.destination = (uint32_t)bytes_read(bytes + 5, 3),
		.psn = (uint32_t)bytes_read(bytes + 9, 3),
		.payload = bytes + header,
		.length = length - header - PACKET_ICRC_SIZE,
	};
	if (packet->pad > packet->length || (packet->pad && !(form & FORM_LAST)))
		return false;
	packet->length -= packet->pad;
	if (packet->length && !(form & FORM_PAYLOAD))
		return false;

	bytes += PACKET_BASE_SIZE;
	if (form & FORM_DATAGRAM) {
		packet->datagram.key = (uint32_t)bytes_read(bytes, 4);
		packet->datagram.source = (uint32_t)bytes_read(bytes + 5, 3);
		bytes += DATAGRAM_SIZE;
	}
	if (form & FORM_REMOTE) {
		packet->remote.address = bytes_read(bytes, 8);
		packet->remote.key = (uint32_t)bytes_read(bytes + 8, 4);
		packet->remote.length = (uint32_t)bytes_read(bytes + 12, 4);
		bytes += REMOTE_SIZE;
	}
	if (form & FORM_ACKNOWLEDGEMENT) {
		packet->acknowledgement.syndrome = bytes[0];
		packet->acknowledgement.msn = (uint32_t)bytes_read(bytes + 1, 3);
		bytes += ACKNOWLEDGEMENT_SIZE;
	}
	if (form & FORM_IMMEDIATE)
		packet->immediate = (uint32_t)bytes_read(bytes, 4);
	return true;
}

size_t packet_write(const struct packet *packet, uint8_t header[PACKET_HEADER_MAX])
{
	unsigned form = opcode_form(packet->opcode);
	uint8_t *next = header + PACKET_BASE_SIZE;

	if (!form)
		return 0;
	header[0] = packet->opcode;
	header[1] = (uint8_t)((packet->solicited ? SOLICITED : 0) | MIGRATED | packet_pad(packet->length) << PAD_SHIFT |
			      VERSION);
	bytes_write(header + 2, 2, packet->pkey);
	bytes_write(header + 4, 4, packet->destination & PSN_MASK);
	bytes_write(header + 8, 4, packet->psn & PSN_MASK);
	if (packet->ack_request)
		header[8] = ACK_REQUEST;

	if (form & FORM_DATAGRAM) {
		bytes_write(next, 4, packet->datagram.key);
		bytes_write(next + 4, 4, packet->datagram.source & PSN_MASK);
		next += DATAGRAM_SIZE;
	}
	if (form & FORM_REMOTE) {
		bytes_write(next, 8, packet->remote.address);
		bytes_write(next + 8, 4, packet->remote.key);
		bytes_write(next + 12, 4, packet->remote.length);
		next += REMOTE_SIZE;
	}
	if (form & FORM_ACKNOWLEDGEMENT) {
		bytes_write(next, 4, packet->acknowledgement.msn & PSN_MASK);
		next[0] = packet->acknowledgement.syndrome;
		next += ACKNOWLEDGEMENT_SIZE;
	}
	if (form & FORM_IMMEDIATE) {
		bytes_write(next, 4, packet->immediate);
		next += IMMEDIATE_SIZE;
	}
	return (size_t)(next - header);
}

/* IBTA volume 1, table 45: 655.36 ms, 10, 20, 30, 40, 60, 80, 120, 160 us and so on to 491.52 ms. */
int64_t rnr_delay(uint8_t code)
{
	code &= 31;
	if (code < 3)
		return code ? 10000 * code : 655360000;
	return (code & 1 ? INT64_C(30000) : INT64_C(40000)) << (code - 3) / 2;
}

enum {
	MTU_CODE_MAX = 5
};

unsigned mtu_bytes(unsigned code)
{
	return code >= 1 && code <= MTU_CODE_MAX ? 128u << code : 0;
}

unsigned mtu_code(size_t bytes)
{
	unsigned code = MTU_CODE_MAX;

	while (code && mtu_bytes(code) > bytes)
		code--;
	return code;
}
