/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/mckey/stream.h"

#include <string.h>

enum {
	WORD_BITS = 64,
	WORDS = STREAM_WINDOW / WORD_BITS,
};

static void window_shift(struct stream *stream, uint64_t distance)
{
	uint64_t words = distance / WORD_BITS, bits = distance % WORD_BITS;

	if (distance >= STREAM_WINDOW) {
		memset(stream->seen, 0, sizeof(stream->seen));
		return;
	}
	for (size_t i = WORDS; i-- > 0;) {
		uint64_t word = i >= words ? stream->seen[i - words] << bits : 0;

		if (bits && i > words)
			word |= stream->seen[i - words - 1] >> (WORD_BITS - bits);
		stream->seen[i] = word;
	}
}

/* Returns false if that number was seen already. */
static bool window_mark(struct stream *stream, uint64_t distance)
{
	uint64_t bit = UINT64_C(1) << (distance % WORD_BITS);
	uint64_t *word = &stream->seen[distance / WORD_BITS];

	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

static bool count_number(struct stream *stream, uint64_t sequence)
{
	if (!stream->numbered) {
		stream->lowest = stream->highest = sequence;
	} else if (sequence > stream->highest) {
		window_shift(stream, sequence - stream->highest);
		stream->highest = sequence;
	} else if (stream->highest - sequence >= STREAM_WINDOW) {
		stream->late++;
		return false;
	}
	if (!window_mark(stream, stream->highest - sequence)) {
		stream->repeated++;
		return false;
	}
	if (sequence < stream->highest)
		stream->out_of_order++;
	if (sequence < stream->lowest)
		stream->lowest = sequence;
	stream->numbered++;
	return true;
}

bool stream_count(struct stream *stream, const struct datagram_mark *mark)
{
	if (!mark) {
		stream->plain++;
		return true;
	}
	/* The last one may overtake others. */
	if (!stream->numbered || mark->total < stream->total)
		stream->total = mark->total;
	/* With --duration only the last one has a total, which nobody asked for. */
	if (mark->total != DATAGRAM_OPEN && mark->sequence + 1 < mark->total)
		stream->count = mark->total;
	return count_number(stream, mark->sequence);
}

uint64_t stream_arrived(const struct stream *stream)
{
	return stream->numbered + stream->plain;
}

/* How many are to come in all, as far as that is known. */
static uint64_t due(const struct stream *stream, uint64_t expected)
{
	return stream->numbered && stream->total < expected ? stream->total : expected;
}

bool stream_complete(const struct stream *stream, uint64_t expected)
{
	expected = due(stream, expected);
	return expected != DATAGRAM_OPEN && stream_arrived(stream) >= expected;
}

uint64_t stream_gaps(const struct stream *stream)
{
	uint64_t arrived = stream_arrived(stream);

	/* A datagram with a damaged mark fills one of the gaps. */
	if (!stream->numbered || stream->highest - stream->lowest < arrived)
		return 0;
	return stream->highest - stream->lowest + 1 - arrived;
}

uint64_t stream_missing(const struct stream *stream, uint64_t expected)
{
	uint64_t arrived = stream_arrived(stream), gaps = stream_gaps(stream), short_of = 0;

	expected = due(stream, expected);
	if (expected != DATAGRAM_OPEN && expected > arrived)
		short_of = expected - arrived;
	return gaps > short_of ? gaps : short_of;
}

uint64_t stream_damaged(const struct stream *stream)
{
	return stream->damaged + (stream->numbered ? stream->plain : 0);
}

bool stream_good(const struct stream *stream, uint64_t expected)
{
	return !stream_missing(stream, expected) && !stream_damaged(stream) && !stream->wrong_length &&
	       (expected == DATAGRAM_OPEN || due(stream, expected) == expected) && stream->count <= expected;
}
