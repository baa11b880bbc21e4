/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/patience.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/units.h"

#define PAUSE (100 * CLOCK_NS_PER_MS)

void patience_try(struct patience *patience, int64_t time)
{
	patience->time = time;
	if (time && !patience->until)
		patience->until = clock_now() + time;
}

static void forget(struct patience *patience)
{
	while (patience->count) {
		struct held_error *error = &patience->errors[--patience->count];

		free(error->object);
		free(error->text);
	}
}

bool patience_hold(struct patience *patience, const char *object, const char *text)
{
	struct held_error error = { 0 };

	if (!patience->until)
		return false;
	if (patience->pauses)
		forget(patience);
	patience->pauses = false;
	if (!patience->errors)
		patience->errors = calloc(ADDRESS_RESOLVE_MOST, sizeof(*patience->errors));
	if (!patience->errors || patience->count == ADDRESS_RESOLVE_MOST)
		return false;
	error.object = strdup(object);
	error.text = strdup(text);
	if (!error.object || !error.text) {
		free(error.object);
		free(error.text);
		return false;
	}
	patience->errors[patience->count++] = error;
	return true;
}

bool patience_holds(const struct patience *patience)
{
	return patience->until && patience->count;
}

void patience_absent(struct patience *patience)
{
	patience->absent = true;
	if (patience->count)
		patience->errors[patience->count - 1].absent = true;
}

bool patience_again(struct patience *patience, struct loop *loop, loop_callback *callback, void *owner)
{
	int64_t left = patience->until - clock_now();

	/* The last try is when the time is over. */
	if (!patience->absent || left <= 0)
		return false;
	patience->absent = false;
	patience->pauses = true;
	loop_timer_start(loop, &patience->pause, left < PAUSE ? left : PAUSE, callback, owner);
	return true;
}

const char *patience_error(const struct patience *patience)
{
	const struct held_error *counts = NULL;

	for (size_t i = 0; i < patience->count; i++)
		if (!counts || !counts->absent || patience->errors[i].absent)
			counts = &patience->errors[i];
	return counts ? counts->text : NULL;
}

void patience_give_up(struct patience *patience, const struct log *log)
{
	bool in_vain = patience->absent && patience->count && clock_now() >= patience->until;

	patience_stop(patience);
	for (size_t i = 0; i < patience->count; i++)
		log_error(log, patience->errors[i].object, "%s", patience->errors[i].text);
	if (in_vain)
		log_hint(log, "the server was waited for %g s (--wait-server)", units_seconds(patience->time));
	patience_end(patience);
}

void patience_stop(struct patience *patience)
{
	loop_timer_stop(&patience->pause);
	patience->until = 0;
}

void patience_tell(struct patience *patience, const struct log *log, const char *object)
{
	if (patience_error(patience))
		log_hint(log, "%s was waited for: %s", object, patience_error(patience));
	patience_end(patience);
}

void patience_end(struct patience *patience)
{
	patience_stop(patience);
	forget(patience);
	free(patience->errors);
	patience->errors = NULL;
}
