/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/protocol.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "core/units.h"

struct advertisement_wire {
	uint64_t address;
	uint32_t key;
	uint32_t size;
};

_Static_assert(sizeof(struct advertisement_wire) == ADVERTISEMENT_SIZE, "an advertisement has no padding");

void advertisement_write(const struct advertisement *advertisement, uint8_t bytes[ADVERTISEMENT_SIZE])
{
	struct advertisement_wire wire = {
		.address = htobe64(advertisement->address),
		.key = htobe32(advertisement->key),
		.size = htobe32(advertisement->size),
	};

	memcpy(bytes, &wire, sizeof(wire));
}

void advertisement_read(const uint8_t bytes[ADVERTISEMENT_SIZE], struct advertisement *advertisement)
{
	struct advertisement_wire wire;

	memcpy(&wire, bytes, sizeof(wire));
	*advertisement = (struct advertisement){
		.address = be64toh(wire.address),
		.key = be32toh(wire.key),
		.size = be32toh(wire.size),
	};
}

const char *advertisement_fault(const struct advertisement *advertisement, uint32_t minimum, uint32_t maximum)
{
	if (!advertisement->size)
		return "it is empty";
	if (advertisement->size < minimum)
		return "it is smaller than the ping";
	if (advertisement->size > maximum)
		return "it is longer than a ping may be";
	if (advertisement->address > UINT64_MAX - advertisement->size)
		return "it goes beyond the last address";
	return NULL;
}

uint32_t ping_size(uint32_t requested, uint32_t maximum, bool stock_server)
{
	uint32_t usual = stock_server ? PING_SIZE_STOCK : PING_SIZE;

	if (requested)
		return requested <= maximum ? requested : 0;
	return maximum < usual ? maximum : usual;
}

uint32_t ping_number(uint64_t answered)
{
	return (uint32_t)(answered & INT32_MAX);
}

static bool is_printable(uint8_t byte)
{
	return byte >= ' ' && byte <= '~';
}

void ping_print(FILE *stream, const char *label, const uint8_t *ping, size_t size)
{
	const uint8_t *end = memchr(ping, 0, size);
	size_t length = end ? (size_t)(end - ping) : size;
	size_t done = 0;

	fprintf(stream, "%s: ", label);
	while (done < length) {
		size_t run = done;

		while (run < length && is_printable(ping[run]))
			run++;
		fwrite(ping + done, 1, run - done, stream);
		for (; run < length && !is_printable(ping[run]); run++)
			fputc('?', stream);
		done = run;
	}
	fputc('\n', stream);
}

/* ---- errors ---- */

void ping_timed_out(const struct state *state, const struct endpoint *endpoint, uint64_t ping)
{
	char silence[ENDPOINT_TIMEOUT_CAUSE_SIZE], text[LOOP_PHASE_TEXT_SIZE];

	log_cause(state->log, endpoint->name, state_text(state), 0, "%s in ping %" PRIu64 "%s",
		  loop_phase_text(state->loop, state->timeout, text), ping, endpoint_timeout_cause(endpoint, silence));
}

enum outcome ping_out_of_order(const struct state *state, const struct endpoint *endpoint, uint64_t ping)
{
	log_error(state->log, endpoint->name, "ping %" PRIu64 ": a message out of order, while %s", ping,
		  state_text(state));
	return OUTCOME_FAILED;
}

bool ping_verify(const struct state *state, const struct endpoint *endpoint, uint64_t ping, const uint8_t *found,
		 uint32_t size)
{
	struct payload_difference difference;

	if (payload_ping_check(found, size, ping_number(ping), &difference))
		return true;
	log_error(state->log, endpoint->name,
		  "ping %" PRIu64 ": payload differs at byte %zu of %" PRIu32 ": expected 0x%02x, found 0x%02x", ping,
		  difference.position, size, difference.expected, difference.found);
	return false;
}

/* ---- control messages ---- */

static size_t send_offset(uint32_t index)
{
	return (size_t)index * ADVERTISEMENT_SIZE;
}

static size_t receive_offset(uint32_t index)
{
	return send_offset(CONTROL_SENDS + index);
}

enum outcome control_create(struct control *control, struct domain *domain)
{
	return region_create(domain, receive_offset(CONTROL_RECEIVES), REGION_LOCAL, &control->region);
}

void control_destroy(struct control *control)
{
	region_destroy(control->region);
	control->region = NULL;
}

static struct work control_receive_work(const struct control *control, uint32_t index)
{
	return (struct work){
		.kind = WORK_RECEIVE,
		.tag = index,
		.region = control->region,
		.offset = receive_offset(index),
		.length = ADVERTISEMENT_SIZE,
	};
}

enum outcome control_post_receives(struct control *control, struct endpoint *endpoint)
{
	struct work works[CONTROL_RECEIVES];

	for (uint32_t index = 0; index < CONTROL_RECEIVES; index++)
		works[index] = control_receive_work(control, index);
	return endpoint_post(endpoint, works, CONTROL_RECEIVES);
}

enum outcome control_receive(struct control *control, struct endpoint *endpoint, const struct completion *completion,
			     struct advertisement *advertisement)
{
	struct work repost = control_receive_work(control, completion->tag);

	if (completion->length != ADVERTISEMENT_SIZE) {
		log_error(endpoint->transport->log, endpoint->name, "receive: a message of %u bytes instead of %d",
			  completion->length, ADVERTISEMENT_SIZE);
		return OUTCOME_FAILED;
	}
	advertisement_read(control->region->memory + repost.offset, advertisement);
	return endpoint_post(endpoint, &repost, 1);
}

void control_write(struct control *control, uint32_t index, const struct advertisement *advertisement)
{
	advertisement_write(advertisement, control->region->memory + send_offset(index));
}

struct work control_send(const struct control *control, uint32_t index)
{
	return (struct work){
		.kind = WORK_SEND,
		.tag = index,
		.region = control->region,
		.offset = send_offset(index),
		.length = ADVERTISEMENT_SIZE,
	};
}
