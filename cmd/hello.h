/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What our own tools tell each other in the connect and accept data of the connection manager, so that the two ends
 * agree on sizes and counts before data moves. A stock peer ignores it and sends none; a hostile one may send anything.
 *
 *   0       4         5      6     8          12            16      24           28       32 bytes
 *   | magic | version | tool | run | capacity | connections | count | connection | window |  numbers in network order
 */
#ifndef CMD_HELLO_H
#define CMD_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HELLO_SIZE = 32
};

enum hello_tool {
	HELLO_RPING = 1,
	HELLO_UCMATOSE = 2,
};

struct hello {
	enum hello_tool tool;
	uint32_t capacity;    /* rping: the longest ping taken; ucmatose: bytes of each message */
	uint32_t connections; /* ucmatose: -c; else 0 */
	uint64_t count;	      /* ucmatose: -C; rping's client: the pings it will ask for, 0 for no end */
	uint32_t connection;  /* ucmatose: which of the connections this is, from 0; the seed of its payload */
	uint32_t window;      /* ucmatose: messages that may be sent ahead of the first grant; else 0 */
	uint16_t run;	      /* ucmatose: the same in all connections of a client; 0 of rping and of older peers */
};

void hello_write(const struct hello *hello, uint8_t bytes[HELLO_SIZE]);

/*
 * Reads private data of any length (bytes may be NULL), which may carry padding behind the hello. Returns false if it
 * is not a hello for that tool; a later version's hello begins with the same fields and is read as this one.
 */
bool hello_read(const uint8_t *bytes, size_t length, enum hello_tool tool, struct hello *hello);

#endif
