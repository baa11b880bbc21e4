/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/protocol.h"

#include <endian.h>
#include <string.h>

/* On the wire and in memory the members are the same, without padding. */
_Static_assert(sizeof(struct advertisement) == ADVERTISEMENT_SIZE, "an advertisement has no padding");

/* From the order of the host to that of the network, and back. */
static struct advertisement in_order(const struct advertisement *advertisement)
{
	return (struct advertisement){
		.address = htobe64(advertisement->address),
		.key = htobe32(advertisement->key),
		.size = htobe32(advertisement->size),
	};
}

void advertisement_write(const struct advertisement *advertisement, uint8_t bytes[ADVERTISEMENT_SIZE])
{
	struct advertisement wire = in_order(advertisement);

	memcpy(bytes, &wire, sizeof(wire));
}

void advertisement_read(const uint8_t bytes[ADVERTISEMENT_SIZE], struct advertisement *advertisement)
{
	struct advertisement wire;

	memcpy(&wire, bytes, sizeof(wire));
	*advertisement = in_order(&wire);
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

void ping_print(FILE *stream, const char *label, const uint8_t *ping, size_t size)
{
	fprintf(stream, "%s: ", label);
	for (const uint8_t *end = ping + size; ping < end && *ping; ping++)
		fputc(*ping >= ' ' && *ping <= '~' ? *ping : '?', stream);
	fputc('\n', stream);
}
