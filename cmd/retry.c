/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/retry.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/units.h"

#define PAUSE (100 * CLOCK_NS_PER_MS)

struct held_error {
	struct error error;
	bool absent;
};

void retry_begin(struct retry *retry, int64_t time)
{
	retry->time = time;
	if (time && !retry->until)
		retry->until = clock_now() + time;
}

bool retry_hold(struct retry *retry, const struct error *error)
{
	if (!retry->until)
		return false;
	if (retry->paused)
		retry->count = 0;
	retry->paused = false;
	if (!retry->errors)
		retry->errors = calloc(ADDRESS_RESOLVE_MOST, sizeof(*retry->errors));
	if (!retry->errors || retry->count == ADDRESS_RESOLVE_MOST)
		return false;
	retry->errors[retry->count++] = (struct held_error){ .error = *error };
	return true;
}

bool retry_holds(const struct retry *retry)
{
	return retry->until && retry->count;
}

void retry_absent(struct retry *retry)
{
	retry->absent = true;
	if (retry->count)
		retry->errors[retry->count - 1].absent = true;
}

bool retry_again(struct retry *retry, struct loop *loop, loop_callback *callback, void *owner)
{
	int64_t left = retry->until - clock_now();

	/* The last try is when the time is over. */
	if (!retry->absent || left <= 0)
		return false;
	retry->absent = false;
	retry->paused = true;
	loop_timer_start(loop, &retry->pause, left < PAUSE ? left : PAUSE, callback, owner);
	return true;
}

const struct error *retry_error(const struct retry *retry)
{
	const struct held_error *found = NULL;

	for (size_t i = 0; i < retry->count; i++)
		if (!found || !found->absent || retry->errors[i].absent)
			found = &retry->errors[i];
	return found ? &found->error : NULL;
}

void retry_give_up(struct retry *retry, const struct log *log)
{
	bool in_vain = retry->absent && retry->count && clock_now() >= retry->until;

	retry_stop(retry);
	for (size_t i = 0; i < retry->count; i++)
		log_report(log, &retry->errors[i].error);
	if (in_vain)
		log_hint(log, "the server was waited for %g s (--wait-server)", units_seconds(retry->time));
	retry_end(retry);
}

void retry_stop(struct retry *retry)
{
	loop_timer_stop(&retry->pause);
	retry->until = 0;
}

void retry_hint(struct retry *retry, const struct log *log, const char *object)
{
	const struct error *error = retry_error(retry);
	char text[ERROR_TEXT_SIZE];

	if (error)
		log_hint(log, "%s was waited for: %s", object, error_text(error, text));
	retry_end(retry);
}

void retry_end(struct retry *retry)
{
	retry_stop(retry);
	free(retry->errors);
	retry->errors = NULL;
	retry->count = 0;
}
