/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairing heap: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap: a new form of self-adjusting heap" (1986). */
#include "core/timers.h"

#include <stddef.h>

static bool is_earlier(const struct timer *one, const struct timer *other)
{
	return one->at != other->at ? one->at < other->at : one->number < other->number;
}

/* Returns the earlier of two heaps, or the only one, with the other as its first child. */
static struct timer *meld(struct timer *one, struct timer *other)
{
	struct timer *later = other;

	if (!one || !other)
		return one ? one : other;
	if (is_earlier(other, one)) {
		later = one;
		one = other;
	}
	later->next = one->child;
	if (later->next)
		later->next->link = &later->next;
	later->link = &one->child;
	one->child = later;
	return one;
}

static void set_first(struct timers *timers, struct timer *first)
{
	timers->first = first;
	if (!first)
		return;
	first->link = &timers->first;
	first->next = NULL;
}

/* Merges siblings in pairs, then the pairs: so the heap stays flat enough for O(log n) per timer. */
static struct timer *meld_siblings(struct timer *rest)
{
	struct timer *pairs = NULL, *all = NULL;

	while (rest) {
		struct timer *one = rest, *other = one->next, *pair;

		rest = other ? other->next : NULL;
		pair = meld(one, other);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct timer *pair = pairs;

		pairs = pair->next;
		all = meld(all, pair);
	}
	return all;
}

void timers_start(struct timers *timers, struct timer *timer, int64_t at)
{
	*timer = (struct timer){ .at = at, .number = ++timers->started };
	set_first(timers, meld(timers->first, timer));
}

void timers_stop(struct timers *timers, struct timer *timer)
{
	if (!timer->link)
		return;
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	timer->link = NULL;
	set_first(timers, meld(timers->first, meld_siblings(timer->child)));
}
