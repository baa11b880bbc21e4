/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sequence window: which datagrams of one sending QP arrived at one receiving QP. Its size does not depend on the
 * number of datagrams: it has the highest sequence number and a bit for each of the WINDOW_SIZE numbers below it.
 */
#ifndef CMD_MCKEY_WINDOW_H
#define CMD_MCKEY_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/mckey/datagram.h"

enum {
	WINDOW_SIZE = 256 /* how far behind the highest number a datagram is still told from a repeated one */
};

/* Zeroed memory is a stream of which nothing came. */
struct window {
	uint64_t plain;	       /* without a mark */
	uint64_t numbered;     /* different numbers that came */
	uint64_t repeated;     /* numbers that came again */
	uint64_t late;	       /* too far behind to tell whether they are repeated; they count as nothing else */
	uint64_t out_of_order; /* of numbered: came after a higher one */
	uint64_t wrong_length;
	uint64_t damaged;
	uint64_t total; /* that the sender sends, as its marks say; DATAGRAM_OPEN until it does */
	uint64_t count; /* -C of the sender, as marks before its last one say; 0 until they do */
	uint64_t lowest;
	uint64_t highest;
	uint64_t seen[WINDOW_SIZE / 64]; /* bit 0: highest, bit 1: the number below, ... */
};

/* Counts a datagram; mark is NULL if it has none. Returns false if it brought nothing new: repeated or late. */
bool window_count(struct window *window, const struct datagram_mark *mark);

/* What came of what was sent, repetitions aside. */
uint64_t window_arrived(const struct window *window);

/*
 * Below, expected is how many the sender is to send; DATAGRAM_OPEN if only that itself can say.
 *
 * True once expected datagrams came, or all that the sender says it sends.
 */
bool window_complete(const struct window *window, uint64_t expected);

/* How many did not come of those between the ones that came. */
uint64_t window_gaps(const struct window *window);

/* How many datagrams did not come of the expected ones, and of those between the ones that came. */
uint64_t window_missing(const struct window *window, uint64_t expected);

/* How many were not intact. A datagram without a mark among numbered ones had its mark damaged. */
uint64_t window_damaged(const struct window *window);

/* Nothing is missing or wrong, and the sender was not told another -C than expected, as far as it says. */
bool window_good(const struct window *window, uint64_t expected);

#endif
