/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of Linux 6.1 rxe between two virtual machines, captured on the receiving interface while the stock tools of
 * rdma-core 44 ran. Whole IP packets; the addresses are 10.0.0.1, 10.0.0.2, fd00::1, fd00::2 and 239.1.1.4. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "transport/soft/wire/icrc.h"
#include "transport/soft/wire/packet.h"

enum {
	VECTORS = 29
};

struct vector {
	const char *name;
	/* Bytes in hexadecimal; zN. is N zeros, and rN. goes on with the ramp of a ping, from A behind z, for N bytes.
	 */
	const char *text;
	struct packet packet; /* as another decoder shows it, without the payload pointer */
	const uint8_t *bytes;
	size_t length;
};

/* Unpacks such a text. Returns the number of bytes; bytes: for them, or NULL. */
size_t vector_unpack(const char *text, uint8_t *bytes);
/* index: less than VECTORS. */
const struct vector *vector_at(size_t index);
/* Returns NULL if there is no vector of that name. */
const struct vector *vector_named(const char *name);

/* The IP and UDP headers of a vector, and its UDP payload. */
struct vector_datagram {
	struct icrc_flow flow;
	uint16_t identification;
	bool may_fragment;
	const uint8_t *bytes;
	size_t length;
};

void vector_open(const struct vector *vector, struct vector_datagram *datagram);
