/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The private data that this program sends with connect, accept and reject. The hello lets the ends agree on sizes and
 * counts before data moves. A stock peer ignores it and sends none. A hostile peer may send any bytes.
 *
 *   0       4         5      6     8          12            16      24           28       32 bytes
 *   | magic | version | tool | run | capacity | connections | count | connection | window |  numbers in network order
 *
 * Magic, version and tool keep their places in all versions. A peer of another version is treated as a stock tool;
 * builds that accept any version have another magic.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/run.h"

enum {
	/*
	 * Version of the hello, mckey's mark, and the payloads (core/payload.h). It changes only with the program's
	 * major version, so that within one all builds understand each other: unit/cmd_hello has the list.
	 */
	HELLO_VERSION = 2,
	HELLO_SIZE = 32,
};

enum hello_tool {
	HELLO_RPING = 1,
	HELLO_UCMATOSE = 2,
};

/* As on the wire, except for byte order. hello_write() sets magic and version. */
struct hello {
	uint32_t magic;
	uint8_t version;
	uint8_t tool; /* enum hello_tool */
	union {
		uint16_t run;	   /* ucmatose: identifies a client, the same in all its connections; older peers: 0 */
		uint16_t udp_port; /* rping client with --paths: UDP source port of both ends' packets; else 0 */
	};
	uint32_t capacity;    /* rping: the maximum size of a ping; ucmatose: the size of a message */
	uint32_t connections; /* ucmatose: -c; else 0 */
	uint64_t count;	      /* ucmatose: -C; rping client: number of pings, 0 for no limit */
	uint32_t connection;  /* ucmatose: index of the connection, from 0; the seed of its payload depends on it */
	uint32_t window;      /* ucmatose: messages that may be sent before the first grant; else 0 */
};

void hello_write(const struct hello *hello, uint8_t bytes[HELLO_SIZE]);

/*
 * Parses private data of any length, with or without padding. bytes may be NULL. Returns false if it is not a hello of
 * that tool and this version; then *hello is arbitrary. A peer of another version is treated as a stock one, because
 * its payload may differ.
 */
bool hello_read(const uint8_t *bytes, size_t length, enum hello_tool tool, struct hello *hello);

/*
 * Explains a non-stock peer that hello_read() does not accept. Another tool, of any version, is an error: returns
 * OUTCOME_FAILED. Another version is a hint. end: the peer's role, "server" or "client".
 */
enum outcome hello_check(const struct log *log, const char *end, const struct endpoint *endpoint,
			 const struct endpoint_event *event, enum hello_tool tool);

/* The private data of a server's rejection; HELLO_REFUSED without a cause. */
#define HELLO_BUSY    "busy with another client"
#define HELLO_REFUSED "refused"
#define HELLO_FULL    "all -c connections are taken"

/*
 * The error of a rejected request is ERROR_BUSY if the private data is HELLO_BUSY or HELLO_FULL. Data in another format
 * is another service's, such as NVMe over Fabrics: adds a hint.
 */
void hello_explain_rejection(const struct endpoint_event *event, struct error *error);

/*
 * Whether the request is another of our tools', of any version, which a server cannot serve. Then rejects it, with a
 * rate-limited line here and the reason for the client.
 */
bool request_is_foreign(const struct run *run, const struct endpoint_event *event, enum hello_tool tool);

/*
 * The request cannot be accepted: reports the error, rejects the request with its cause, which our clients print, and
 * destroys the request's endpoint.
 */
void request_refuse(const struct run *run, struct endpoint *request);
