/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/protocol.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* The members are the same on the wire and in memory, without padding. */
_Static_assert(sizeof(struct advertisement) == ADVERTISEMENT_SIZE, "an advertisement has no padding");

/* Converts between host and network order. */
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

void ping_print(struct output *output, const char *label, const uint8_t *ping, size_t size)
{
	char *text = calloc(1, size + 1);

	for (size_t i = 0; text && i < size && ping[i]; i++)
		text[i] = ping[i] >= ' ' && ping[i] <= '~' ? (char)ping[i] : '?';
	output_print(output, "%s: %s\n", label, text ? text : "out of memory");
	free(text);
}
