/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/mckey/window.h"

#include <string.h>

enum {
	WORD_BITS = 64,
	WORDS = WINDOW_SIZE / WORD_BITS,
};

static void window_shift(struct window *window, uint64_t distance)
{
	uint64_t words = distance / WORD_BITS, bits = distance % WORD_BITS;

	if (distance >= WINDOW_SIZE) {
		memset(window->seen, 0, sizeof(window->seen));
		return;
	}
	for (size_t i = WORDS; i-- > 0;) {
		uint64_t word = i >= words ? window->seen[i - words] << bits : 0;

		if (bits && i > words)
			word |= window->seen[i - words - 1] >> (WORD_BITS - bits);
		window->seen[i] = word;
	}
}

/* distance: below the highest number. Returns false if the bit was set. */
static bool window_set_bit(struct window *window, uint64_t distance)
{
	uint64_t bit = UINT64_C(1) << (distance % WORD_BITS);
	uint64_t *word = &window->seen[distance / WORD_BITS];

	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

static bool count_number(struct window *window, uint64_t sequence)
{
	if (!window->numbered) {
		window->lowest = window->highest = sequence;
	} else if (sequence > window->highest) {
		window_shift(window, sequence - window->highest);
		window->highest = sequence;
	} else if (window->highest - sequence >= WINDOW_SIZE) {
		window->late++;
		return false;
	}
	if (!window_set_bit(window, window->highest - sequence)) {
		window->repeated++;
		return false;
	}
	if (sequence < window->highest)
		window->out_of_order++;
	if (sequence < window->lowest)
		window->lowest = sequence;
	window->numbered++;
	return true;
}

bool window_count(struct window *window, const struct datagram_mark *mark)
{
	if (!mark) {
		window->unmarked++;
		return true;
	}
	window->total = mark->total;
	return count_number(window, mark->sequence);
}

uint64_t window_arrived(const struct window *window)
{
	return window->numbered + window->unmarked;
}

/* The lesser of expected and what the sender announces. */
static uint64_t expected_total(const struct window *window, uint64_t expected)
{
	return window->numbered && window->total < expected ? window->total : expected;
}

bool window_complete(const struct window *window, uint64_t expected)
{
	return window_arrived(window) >= expected_total(window, expected);
}

uint64_t window_gaps(const struct window *window)
{
	uint64_t arrived = window_arrived(window);

	/* A datagram with a damaged mark has an unknown number: it fills a gap. */
	if (!window->numbered || window->highest - window->lowest < arrived)
		return 0;
	return window->highest - window->lowest + 1 - arrived;
}

uint64_t window_missing(const struct window *window, uint64_t expected)
{
	uint64_t arrived = window_arrived(window), gaps = window_gaps(window), shortfall = 0;

	expected = expected_total(window, expected);
	if (expected > arrived)
		shortfall = expected - arrived;
	return gaps > shortfall ? gaps : shortfall;
}

uint64_t window_damaged(const struct window *window)
{
	return window->damaged + (window->numbered ? window->unmarked : 0);
}

bool window_good(const struct window *window, uint64_t expected)
{
	return !window_missing(window, expected) && !window_damaged(window) && !window->wrong_length &&
	       (!window->numbered || window->total == expected);
}
