/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/hello.h"

#include <endian.h>
#include <string.h>

enum {
	HELLO_MAGIC = (int)0xd8726474,	   /* 0xd8, "rdt" */
	HELLO_MAGIC_OLD = (int)0xd7726474, /* of builds that accept any version */
};

_Static_assert(sizeof(struct hello) == HELLO_SIZE, "the hello on the wire has no padding");

/* Converts numbers between host and network order. */
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

static const char *tool_name(unsigned tool)
{
	return tool == HELLO_RPING ? "rping" : tool == HELLO_UCMATOSE ? "ucmatose" : "another tool";
}

/* Whether it is one of our tools', of any version. */
static bool is_ours(const struct hello *hello)
{
	return hello->magic == (uint32_t)HELLO_MAGIC || hello->magic == (uint32_t)HELLO_MAGIC_OLD;
}

enum outcome hello_check(const struct log *log, const char *end, const struct endpoint *endpoint,
			 const struct endpoint_event *event, enum hello_tool tool)
{
	struct hello hello = { 0 };

	if (!WITH_DIAGNOSTICS || hello_read(event->private_data, event->private_length, tool, &hello) ||
	    !is_ours(&hello))
		return OUTCOME_OK;
	if (hello.tool != tool) {
		log_error(log, endpoint->name, "the %s is %s, not %s", end, tool_name(hello.tool), tool_name(tool));
		return OUTCOME_FAILED;
	}
	log_hint(log, "%s: the %s is another version of rdmatest: treated as a stock tool", endpoint->name, end);
	return OUTCOME_OK;
}

static bool begins_with(const struct endpoint_event *event, const char *text)
{
	return event->private_length >= strlen(text) && !memcmp(event->private_data, text, strlen(text));
}

/* Another program's data: neither our servers' text, nor a hello, nor stock servers' zeros. */
static bool is_foreign(const struct endpoint_event *event)
{
	struct hello hello = { 0 };
	size_t zeros = 0;

	while (zeros < event->private_length && !event->private_data[zeros])
		zeros++;
	hello_read(event->private_data, event->private_length, HELLO_RPING, &hello);
	return zeros < event->private_length && (*event->private_data < ' ' || *event->private_data > '~') &&
	       !is_ours(&hello);
}

void hello_explain_rejection(const struct endpoint_event *event, struct error *error)
{
	if (!WITH_DIAGNOSTICS)
		return;
	if (begins_with(event, HELLO_BUSY) || begins_with(event, HELLO_FULL))
		error->kind = ERROR_BUSY;
	if (is_foreign(event))
		error_hint(error, "another RDMA service listens there: its answer has an unknown format");
}

bool request_is_foreign(const struct run *run, const struct endpoint_event *event, enum hello_tool tool)
{
	struct transport *transport = run->transport;
	struct hello hello = { 0 };
	char text[PRIVATE_DATA_MAX];

	if (!WITH_DIAGNOSTICS || hello_read(event->private_data, event->private_length, tool, &hello) ||
	    !is_ours(&hello) || hello.tool == tool)
		return false;
	error_failure(&transport->error, &(struct failure){ .object = event->request->name, .phase = "rejected" },
		      "the client is %s, not %s", tool_name(hello.tool), tool_name(tool));
	if (!log_allows(&transport->request_log_limit))
		error_clear(&transport->error);
	run_report_error(run);
	log_text(text, sizeof(text), "the server is %s, not %s", tool_name(tool), tool_name(hello.tool));
	endpoint_reject(event->request, text, strlen(text));
	return true;
}

void request_refuse(const struct run *run, struct endpoint *request)
{
	const char *reason = HELLO_REFUSED;
	char text[PRIVATE_DATA_MAX];

	run_report_error(run);
	if (WITH_DIAGNOSTICS)
		reason = log_text(text, sizeof(text), "%s", run->log.errors->last.cause);
	endpoint_reject(request, reason, strlen(reason));
}
