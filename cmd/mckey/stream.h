/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one receiving queue knows of one sending queue: how many datagrams came, and, if they are numbered, which. The
 * memory is the same for ten datagrams and for two thousand million: the highest number and a window of bits below it.
 */
#ifndef CMD_MCKEY_STREAM_H
#define CMD_MCKEY_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/mckey/datagram.h"

enum {
	STREAM_WINDOW = 256 /* how far behind the highest number a datagram is still told from a repeated one */
};

/* Zeroed memory is a stream of which nothing came. */
struct stream {
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
	uint64_t seen[STREAM_WINDOW / 64]; /* bit 0: highest, bit 1: the number below, ... */
};

/* Counts a datagram; mark is NULL if it has none. Returns false if it brought nothing new: repeated or late. */
bool stream_count(struct stream *stream, const struct datagram_mark *mark);

/* What came of what was sent, repetitions aside. */
uint64_t stream_arrived(const struct stream *stream);

/*
 * Below, expected is how many the sender is to send; DATAGRAM_OPEN if only that itself can say.
 *
 * True once expected datagrams came, or all that the sender says it sends.
 */
bool stream_complete(const struct stream *stream, uint64_t expected);

/* How many did not come of those between the ones that came. */
uint64_t stream_gaps(const struct stream *stream);

/* How many datagrams did not come of the expected ones, and of those between the ones that came. */
uint64_t stream_missing(const struct stream *stream, uint64_t expected);

/* How many were not intact. A datagram without a mark among numbered ones had its mark damaged. */
uint64_t stream_damaged(const struct stream *stream);

/* Nothing is missing or wrong, and the sender was not told another -C than expected, as far as it says. */
bool stream_good(const struct stream *stream, uint64_t expected);

#endif
