/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rping protocol. One ping is this cycle:
 *
 *        client                                     server
 *          |  advertises its source     ---------->   |
 *          |  <== RDMA READ of the source =========   |
 *          |  <----------                  go-ahead   |
 *          |  advertises its sink       ---------->   |
 *          |  === RDMA WRITE of the same bytes ===>   |
 *          |  <----------                  go-ahead   |
 *
 * Sends are unsignalled; the peer's next message proves delivery. The client signals one advertisement in 16 pings,
 * which frees its send queue. After the last go-ahead the client may send nothing for long. Half of --timeout later,
 * and before it disconnects, the server posts a signalled WRITE of length 0. The client does not see it; its
 * acknowledgement confirms delivery of everything before it. Measured with rping -S 64, beside a build that signals
 * each send: 1.12 times the rate over soft, 1.03 times if each end sleeps on its own processor or on soft-RoCE.
 *
 * An advertisement has 16 bytes, in network byte order. A go-ahead has the same size, and its contents are ignored:
 *
 *   0         8     12     16 bytes
 *   | address | key | size |
 *
 * The payload is text that ends in its only 0 byte. A stock server writes back the text up to the 0, ours the
 * advertised size: the same bytes. Our tools add a hello to the stock protocol, in the private data of the connection
 * (cmd/hello.h). It has the maximum ping size of the server.
 */
#ifndef CMD_RPING_PROTOCOL_H
#define CMD_RPING_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/hello.h"
#include "core/payload.h"
#include "core/state.h"
#include "transport/transport.h"

enum {
	PING_SIZE_MAX = 1 << 20,
	PING_SIZE_STOCK_MAX = 65535,
	PING_SIZE = 100,      /* without -S, as in the stock manual page */
	PING_SIZE_STOCK = 64, /* without -S, with a stock server: it fails on more */
};

enum {
	ADVERTISEMENT_SIZE = 16
};

struct advertisement {
	uint64_t address;
	uint32_t key;
	uint32_t size;
};

void advertisement_write(const struct advertisement *advertisement, uint8_t bytes[ADVERTISEMENT_SIZE]);
void advertisement_read(const uint8_t bytes[ADVERTISEMENT_SIZE], struct advertisement *advertisement);

/* Returns the reason why advertised memory cannot be used for minimum to maximum bytes, or NULL if it can. */
const char *advertisement_fault(const struct advertisement *advertisement, uint32_t minimum, uint32_t maximum);

/* Returns the maximum ping size of a device, but not more than maximum. */
static inline uint32_t ping_limit(const struct domain *domain, uint32_t maximum)
{
	return domain->max_message < maximum ? domain->max_message : maximum;
}

/*
 * Returns the ping size of a client. requested is -S, or 0 without it; maximum is that of the server. Returns 0 if it
 * is less than requested.
 */
uint32_t ping_size(uint32_t requested, uint32_t maximum, bool stock_server);

/* Returns the number in the text of the next ping. Stock tools print an int: after INT32_MAX comes 0. */
uint32_t ping_number(uint64_t answered);

/*
 * Prints "<label>: <text>" as one line: the ping up to its 0, or all of size if there is none. The peer wrote the
 * bytes: those that are not printable ASCII are printed as '?'.
 */
void ping_print(FILE *stream, const char *label, const uint8_t *ping, size_t size);

/* ---- errors of either end: object is the peer, ping the number of the ping ---- */

/* A state of the ping took longer than the timeout. */
void ping_timed_out(const struct state *state, const struct endpoint *endpoint, uint64_t ping);
/* The peer sent a message that the state does not expect. Returns OUTCOME_FAILED. */
enum outcome ping_out_of_order(const struct state *state, const struct endpoint *endpoint, uint64_t ping);
/* Compares every byte of a payload. Returns false after it has reported the first difference. */
bool ping_verify(const struct state *state, const struct endpoint *endpoint, uint64_t ping, const uint8_t *found,
		 uint32_t size);

/*
 * The control messages of one connection, in registered memory. The receives are posted before the connection is
 * established, and each is reposted when its message has been read: the peer gets no receiver-not-ready NAK.
 */
enum {
	CONTROL_SENDS = 2,    /* send buffers: the client has two advertisements */
	CONTROL_RECEIVES = 4, /* the protocol needs two */
};

struct control {
	struct region *region; /* NULL before control_create() */
};

enum outcome control_create(struct control *control, struct domain *domain);
/* Does nothing if control_create() was not called. */
void control_destroy(struct control *control);

/* Posts all receives. */
enum outcome control_post_receives(struct control *control, struct endpoint *endpoint);

/* Reads the message of a completed receive and reposts the receive. Fails if the length is not ADVERTISEMENT_SIZE. */
enum outcome control_receive(struct control *control, struct endpoint *endpoint, const struct completion *completion,
			     struct advertisement *advertisement);

/* Sets the contents of send buffer index, initially all zeros. No send of it may be outstanding. */
void control_write(struct control *control, uint32_t index, const struct advertisement *advertisement);

/* Returns the work request that sends buffer index. */
struct work control_send(const struct control *control, uint32_t index);

#endif
