/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/hello.h"

#include <endian.h>
#include <string.h>

enum {
	HELLO_MAGIC = (int)0xd7726474, /* 0xd7, "rdt" */
	/* Says which pattern the payload of ucmatose has (core/payload.h), too. Version 1 had another one. */
	HELLO_VERSION = 2,
};

_Static_assert(sizeof(struct hello) == HELLO_SIZE, "the hello on the wire has no padding");

/* Numbers from host to network order, or back. */
static void change_order(struct hello *hello)
{
	hello->magic = htobe32(hello->magic);
	hello->run = htobe16(hello->run);
	hello->capacity = htobe32(hello->capacity);
	hello->connections = htobe32(hello->connections);
	hello->count = htobe64(hello->count);
	hello->connection = htobe32(hello->connection);
	hello->window = htobe32(hello->window);
}

void hello_write(const struct hello *hello, uint8_t bytes[HELLO_SIZE])
{
	struct hello wire = *hello;

	wire.magic = (uint32_t)HELLO_MAGIC;
	wire.version = HELLO_VERSION;
	change_order(&wire);
	memcpy(bytes, &wire, sizeof(wire));
}

bool hello_read(const uint8_t *bytes, size_t length, enum hello_tool tool, struct hello *hello)
{
	if (!bytes || length < sizeof(*hello))
		return false;
	memcpy(hello, bytes, sizeof(*hello));
	change_order(hello);
	return hello->magic == (uint32_t)HELLO_MAGIC && hello->version == HELLO_VERSION && hello->tool == tool;
}

static bool begins_with(const struct endpoint_event *event, const char *text)
{
	return event->private_length >= strlen(text) && !memcmp(event->private_data, text, strlen(text));
}

void hello_note_busy(const struct endpoint_event *event, struct error *error)
{
	if (WITH_CAUSES && (begins_with(event, HELLO_BUSY) || begins_with(event, HELLO_FULL)))
		error->kind = ERROR_BUSY;
}

void request_refuse(const struct environment *environment, struct endpoint *request)
{
	const char *reason = HELLO_REFUSED;
	char text[PRIVATE_DATA_MAX];

	environment_report_error(environment);
	if (WITH_CAUSES)
		reason = log_text(text, sizeof(text), "%s", environment->log.errors->last.cause);
	endpoint_reject(request, reason, strlen(reason));
}
