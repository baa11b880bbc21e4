/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/patience.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/quantity.h"

#define PAUSE (100 * CLOCK_NS_PER_MS)

void patience_try(struct patience *patience, int64_t time)
{
	patience->time = time;
	if (time && !patience->until)
		patience->until = clock_now() + time;
}

bool patience_hold(struct patience *patience, const char *text)
{
	if (!patience->until)
		return false;
	free(patience->error);
	patience->error = strdup(text);
	return patience->error;
}

bool patience_again(struct patience *patience, struct loop *loop, const struct log *log, const char *object,
		    bool absent, loop_callback *callback, void *owner)
{
	int64_t left = patience->until - clock_now();
	char *error = patience->error;

	/* The last try is when the time is over. */
	if (absent && left > 0) {
		loop_timer_start(loop, &patience->pause, left < PAUSE ? left : PAUSE, callback, owner);
		return true;
	}
	patience->until = 0;
	patience->error = NULL;
	if (error)
		log_error(log, object, "%s", error);
	if (error && absent)
		log_hint(log, "the server was waited for %g s (--wait-server)", quantity_seconds(patience->time));
	free(error);
	return false;
}

void patience_stop(struct patience *patience)
{
	loop_timer_stop(&patience->pause);
	patience->until = 0;
}

void patience_tell(struct patience *patience, const struct log *log, const char *object)
{
	if (patience->error)
		log_hint(log, "%s was waited for: %s", object, patience->error);
	patience_end(patience);
}

void patience_end(struct patience *patience)
{
	patience_stop(patience);
	free(patience->error);
	patience->error = NULL;
}
