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
	WINDOW_SIZE = 256 /* how far below the highest number a repeated datagram is detected */
};

/* An empty window is zeroed memory. */
struct window {
	uint64_t unmarked;     /* datagrams without a mark */
	uint64_t numbered;     /* distinct sequence numbers */
	uint64_t repeated;     /* duplicates */
	uint64_t late;	       /* below the window: new or duplicate is unknown; counted here only */
	uint64_t out_of_order; /* of numbered: arrived after a higher number */
	uint64_t wrong_length;
	uint64_t damaged;
	uint64_t total; /* -C of the sender; valid if numbered */
	uint64_t lowest;
	uint64_t highest;
	uint64_t seen[WINDOW_SIZE / 64]; /* bit 0: highest, bit 1: the number below, ... */
};

/* Counts a datagram; mark is NULL if it has none. Returns false for a repeated or late one. */
bool window_count(struct window *window, const struct datagram_mark *mark);

/* Datagrams received, without repeated and late ones. */
uint64_t window_arrived(const struct window *window);

/*
 * Below, expected is our -C.
 *
 * Whether as many datagrams have arrived as expected, or as the sender announces if that is less.
 */
bool window_complete(const struct window *window, uint64_t expected);

/* Datagrams missing between the lowest and the highest number. */
uint64_t window_gaps(const struct window *window);

/* Datagrams missing: of the expected ones, or in the gaps, whichever is more. */
uint64_t window_missing(const struct window *window, uint64_t expected);

/* Damaged datagrams. Among numbered datagrams one without a mark has a damaged mark. */
uint64_t window_damaged(const struct window *window);

/*
 * Whether nothing is missing, damaged or of a wrong length, and the sender has our -C.
 */
bool window_good(const struct window *window, uint64_t expected);

#endif
