/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/hello.h"

#include <endian.h>
#include <string.h>

static const uint8_t magic[4] = { 0xd7, 'r', 'd', 't' };

/* Says which pattern the payload of ucmatose has (core/payload.h), too. Version 1 had another one. */
enum {
	HELLO_VERSION = 2
};

struct hello_wire {
	uint8_t magic[4];
	uint8_t version;
	uint8_t tool;
	uint16_t run;
	uint32_t capacity;
	uint32_t connections;
	uint64_t count;
	uint32_t connection;
	uint32_t window;
};

_Static_assert(sizeof(struct hello_wire) == HELLO_SIZE, "the hello on the wire has no padding");

void hello_write(const struct hello *hello, uint8_t bytes[HELLO_SIZE])
{
	struct hello_wire wire = {
		.version = HELLO_VERSION,
		.tool = (uint8_t)hello->tool,
		.run = htobe16(hello->run),
		.capacity = htobe32(hello->capacity),
		.connections = htobe32(hello->connections),
		.count = htobe64(hello->count),
		.connection = htobe32(hello->connection),
		.window = htobe32(hello->window),
	};

	memcpy(wire.magic, magic, sizeof(magic));
	memcpy(bytes, &wire, sizeof(wire));
}

bool hello_read(const uint8_t *bytes, size_t length, enum hello_tool tool, struct hello *hello)
{
	struct hello_wire wire;

	if (!bytes || length < sizeof(wire))
		return false;
	memcpy(&wire, bytes, sizeof(wire));
	if (memcmp(wire.magic, magic, sizeof(magic)) || wire.version != HELLO_VERSION || wire.tool != tool)
		return false;
	*hello = (struct hello){
		.tool = tool,
		.run = be16toh(wire.run),
		.capacity = be32toh(wire.capacity),
		.connections = be32toh(wire.connections),
		.count = be64toh(wire.count),
		.connection = be32toh(wire.connection),
		.window = be32toh(wire.window),
	};
	return true;
}

static bool begins_with(const uint8_t *bytes, size_t length, const char *text)
{
	return bytes && length >= strlen(text) && !memcmp(bytes, text, strlen(text));
}

bool hello_says_busy(const uint8_t *bytes, size_t length)
{
	return begins_with(bytes, length, HELLO_BUSY) || begins_with(bytes, length, HELLO_FULL);
}

enum outcome request_accept(struct environment *environment, struct endpoint *endpoint,
			    enum outcome (*accept)(void *context), void *context)
{
	const struct errors *errors = environment->log.errors;
	enum outcome outcome = accept(context);
	char reason[PRIVATE_DATA_MAX];

	if (!outcome)
		return OUTCOME_OK;
	environment_report_error(environment);
	log_text(reason, sizeof(reason), "%s", WITH_CAUSES ? errors->last.cause : HELLO_REFUSED);
	endpoint_reject(endpoint, reason, strlen(reason));
	return outcome;
}
