/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/soft/wire/mad.h"

#include <string.h>
#include <sys/param.h>

#include "transport/soft/wire/bytes.h"

enum {
	HEADER_SIZE = 24,
	BASE_VERSION = 1,
	CLASS_CM = 7, /* communication management */
	CLASS_VERSION = 2,
	METHOD_SEND = 3,
	TRANSACTION = 8,
	ATTRIBUTE_ID = 16,
	INFORMATION = HEADER_SIZE + 12, /* of a REJ */
};

/* Bytes of private data, which ends the MAD. */
static const uint8_t private_sizes[] = {
	[MAD_REQ - MAD_REQ] = MAD_REQ_PRIVATE,
	[MAD_MRA - MAD_REQ] = 222,
	[MAD_REJ - MAD_REQ] = 148,
	[MAD_REP - MAD_REQ] = MAD_REP_PRIVATE,
	[MAD_RTU - MAD_REQ] = 224,
	[MAD_DREQ - MAD_REQ] = 220,
	[MAD_DREP - MAD_REQ] = 224,
	[MAD_SIDR_REQ - MAD_REQ] = 216,
	[MAD_SIDR_REP - MAD_REQ] = 136,
};

/*
 * One row per field. byte and bit are as in the tables of IBTA volume 1, chapter 12: byte from the end of the header,
 * bit 0 the highest. A field of more than 64 bits is an array of bytes.
 */
struct field {
	uint16_t kinds; /* bit mask: KIND() */
	uint8_t byte;
	uint8_t bit;
	uint8_t bits;
	uint8_t size;
	uint16_t offset; /* in struct mad */
};

#define KIND(name)			     (1u << (MAD_##name - MAD_REQ))
#define FIELD(kinds, byte, bit, bits, value) { kinds, byte, bit, bits, SIZE(value), offsetof(struct mad, value) }
/* field_parse() writes 4 or 8 bytes, or an array: another size does not compile. */
#define SIZE(value)    (uint8_t)(sizeof(MEMBER(value)) + 0 * sizeof(char[sizeof(MEMBER(value)) % 4 ? -1 : 1]))
#define MEMBER(value)  (((struct mad *)NULL)->value)
#define EVERY_KIND     0xffff
#define WITH_REMOTE_ID (EVERY_KIND & ~(KIND(REQ) | KIND(SIDR_REQ) | KIND(SIDR_REP)))

/* clang-format off */
static const struct field fields[] = {
	FIELD(EVERY_KIND, 0, 0, 32, local_id),
	FIELD(WITH_REMOTE_ID, 4, 0, 32, remote_id),

	FIELD(KIND(REQ), 8, 0, 64, req.service_id),
	FIELD(KIND(REQ), 16, 0, 64, req.ca_guid),
	FIELD(KIND(REQ), 32, 0, 24, req.qpn),
	FIELD(KIND(REQ), 35, 0, 8, req.responder_resources),
	FIELD(KIND(REQ), 39, 0, 8, req.initiator_depth),
	FIELD(KIND(REQ), 43, 0, 5, req.remote_response_timeout),
	FIELD(KIND(REQ), 43, 5, 2, req.transport),
	FIELD(KIND(REQ), 44, 0, 24, req.starting_psn),
	FIELD(KIND(REQ), 47, 0, 5, req.local_response_timeout),
	FIELD(KIND(REQ), 47, 5, 3, req.retry_count),
	FIELD(KIND(REQ), 48, 0, 16, req.pkey),
	FIELD(KIND(REQ), 50, 0, 4, req.path_mtu),
	FIELD(KIND(REQ), 50, 5, 3, req.rnr_retry_count),
	FIELD(KIND(REQ), 51, 0, 4, req.max_cm_retries),
	FIELD(KIND(REQ), 52, 0, 16, req.path.local_lid),
	FIELD(KIND(REQ), 54, 0, 16, req.path.remote_lid),
	FIELD(KIND(REQ), 56, 0, 128, req.path.local_gid),
	FIELD(KIND(REQ), 72, 0, 128, req.path.remote_gid),
	FIELD(KIND(REQ), 91, 2, 6, req.path.packet_rate),
	FIELD(KIND(REQ), 92, 0, 8, req.path.traffic_class),
	FIELD(KIND(REQ), 93, 0, 8, req.path.hop_limit),
	FIELD(KIND(REQ), 95, 0, 5, req.path.ack_timeout),

	FIELD(KIND(MRA), 8, 0, 2, mra.answered),
	FIELD(KIND(MRA), 9, 0, 5, mra.service_timeout),

	FIELD(KIND(REJ), 8, 0, 2, rej.answered),
	FIELD(KIND(REJ), 9, 0, 7, rej.information_length),
	FIELD(KIND(REJ), 10, 0, 16, rej.reason),

	FIELD(KIND(REP), 12, 0, 24, rep.qpn),
	FIELD(KIND(REP), 20, 0, 24, rep.starting_psn),
	FIELD(KIND(REP), 24, 0, 8, rep.responder_resources),
	FIELD(KIND(REP), 25, 0, 8, rep.initiator_depth),
	FIELD(KIND(REP), 26, 0, 5, rep.target_ack_delay),
	FIELD(KIND(REP), 27, 0, 3, rep.rnr_retry_count),
	FIELD(KIND(REP), 28, 0, 64, rep.ca_guid),

	FIELD(KIND(DREQ), 8, 0, 24, dreq.remote_qpn),
	FIELD(KIND(DREQ), 12, 0, 32, dreq.mark),
	FIELD(KIND(DREQ), 17, 0, 24, dreq.acked_psn),

	FIELD(KIND(SIDR_REP), 4, 0, 8, status),
};
/* clang-format on */

enum {
	FIELD_COUNT = sizeof(fields) / sizeof(fields[0])
};

/* Returns the number of bytes that hold the field's bits. */
static size_t field_size(const struct field *field)
{
	return (field->bit + field->bits + 7u) / 8;
}

static unsigned field_shift(const struct field *field)
{
	return (unsigned)field_size(field) * 8 - field->bit - field->bits;
}

static uint64_t field_mask(const struct field *field)
{
	return UINT64_MAX >> (64 - field->bits);
}

static void field_parse(const struct field *field, const uint8_t *bytes, struct mad *mad)
{
	void *member = (uint8_t *)mad + field->offset;
	uint64_t value;

	bytes += HEADER_SIZE + field->byte;
	if (field->bits > 64) {
		memcpy(member, bytes, field->size);
		return;
	}
	value = bytes_read(bytes, field_size(field)) >> field_shift(field) & field_mask(field);
	if (field->size == sizeof(uint64_t))
		*(uint64_t *)member = value;
	else
		*(uint32_t *)member = (uint32_t)value;
}

static void field_write(const struct field *field, const struct mad *mad, uint8_t *bytes)
{
	const void *member = (const uint8_t *)mad + field->offset;
	size_t size = field_size(field);
	uint64_t value;

	bytes += HEADER_SIZE + field->byte;
	if (field->bits > 64) {
		memcpy(bytes, member, field->size);
		return;
	}
	value = field->size == sizeof(uint64_t) ? *(const uint64_t *)member : *(const uint32_t *)member;
	/* Its bytes are shared with other fields. */
	bytes_write(bytes, size, bytes_read(bytes, size) | (value & field_mask(field)) << field_shift(field));
}

bool mad_parse(const uint8_t *bytes, size_t length, struct mad *mad)
{
	unsigned kind;

	if (length != MAD_SIZE || bytes[0] != BASE_VERSION || bytes[1] != CLASS_CM || bytes[2] != CLASS_VERSION ||
	    bytes[3] != METHOD_SEND)
		return false;
	kind = (unsigned)bytes_read(bytes + ATTRIBUTE_ID, 2);
	if (kind < MAD_REQ || kind > MAD_SIDR_REP)
		return false;

	memset(mad, 0, sizeof(*mad));
	mad->kind = kind;
	mad->transaction = bytes_read(bytes + TRANSACTION, 8);
	mad->private_length = private_sizes[kind - MAD_REQ];
	mad->private_data = bytes + MAD_SIZE - mad->private_length;
	for (unsigned i = 0; i < FIELD_COUNT; i++) {
		if (fields[i].kinds & 1u << (kind - MAD_REQ))
			field_parse(&fields[i], bytes, mad);
	}
	if (kind == MAD_REJ) {
		mad->rej.information = bytes + INFORMATION;
		if (mad->rej.information_length > MAD_INFORMATION_MAX)
			mad->rej.information_length = MAD_INFORMATION_MAX;
	}
	return true;
}

void mad_write(const struct mad *mad, uint8_t bytes[MAD_SIZE])
{
	size_t private_size = private_sizes[mad->kind - MAD_REQ];

	memset(bytes, 0, MAD_SIZE);
	bytes[0] = BASE_VERSION;
	bytes[1] = CLASS_CM;
	bytes[2] = CLASS_VERSION;
	bytes[3] = METHOD_SEND;
	bytes_write(bytes + TRANSACTION, 8, mad->transaction);
	bytes_write(bytes + ATTRIBUTE_ID, 2, mad->kind);
	for (unsigned i = 0; i < FIELD_COUNT; i++) {
		if (fields[i].kinds & 1u << (mad->kind - MAD_REQ))
			field_write(&fields[i], mad, bytes);
	}
	if (mad->kind == MAD_REJ && mad->rej.information)
		memcpy(bytes + INFORMATION, mad->rej.information,
		       MIN(mad->rej.information_length, MAD_INFORMATION_MAX));
	if (mad->private_data)
		memcpy(bytes + MAD_SIZE - private_size, mad->private_data, MIN(mad->private_length, private_size));
}

/* Offsets in the private data of a REQ (IBTA annex A11), bytes. */
enum {
	ADDRESS_VERSION = 0,
	ADDRESS_PORT = 2,
	ADDRESS_SOURCE = 4,
	ADDRESS_DESTINATION = 20,
	ADDRESS_IP4 = 12, /* an IPv4 address is in the last four of 16 bytes */
};

bool mad_address_parse(const uint8_t *private_data, size_t length, struct mad_address *address)
{
	unsigned version;
	size_t skip;

	if (length < MAD_ADDRESS_SIZE || private_data[0] != ADDRESS_VERSION)
		return false;
	version = private_data[1] >> 4;
	if (version != 4 && version != 6)
		return false;
	skip = version == 4 ? ADDRESS_IP4 : 0;
	memset(address, 0, sizeof(*address));
	address->version = (uint8_t)version;
	address->port = (uint16_t)bytes_read(private_data + ADDRESS_PORT, 2);
	memcpy(address->source, private_data + ADDRESS_SOURCE + skip, 16 - skip);
	memcpy(address->destination, private_data + ADDRESS_DESTINATION + skip, 16 - skip);
	return true;
}

void mad_address_write(const struct mad_address *address, uint8_t private_data[MAD_ADDRESS_SIZE])
{
	size_t skip = address->version == 4 ? ADDRESS_IP4 : 0;

	memset(private_data, 0, MAD_ADDRESS_SIZE);
	private_data[0] = ADDRESS_VERSION;
	private_data[1] = (uint8_t)(address->version << 4);
	bytes_write(private_data + ADDRESS_PORT, 2, address->port);
	memcpy(private_data + ADDRESS_SOURCE + skip, address->source, 16 - skip);
	memcpy(private_data + ADDRESS_DESTINATION + skip, address->destination, 16 - skip);
}

bool mad_service_split(uint64_t service_id, uint16_t *port_space, uint16_t *port)
{
	if (service_id >> 32)
		return false;
	*port_space = (uint16_t)(service_id >> 16);
	*port = (uint16_t)service_id;
	return true;
}
