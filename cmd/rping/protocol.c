/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/protocol.h"

#include <endian.h>
#include <string.h>

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

uint32_t ping_size(uint32_t requested, const struct hello *server)
{
	uint32_t maximum = server ? server->capacity : PING_SIZE_MAX;

	if (requested)
		return requested <= maximum ? requested : 0;
	if (!server)
		return PING_SIZE_STOCK;
	return maximum < PING_SIZE ? maximum : PING_SIZE;
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
			putc('?', stream);
		done = run;
	}
	putc('\n', stream);
}
