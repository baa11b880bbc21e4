/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/patience.h"

#include <stdio.h>
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

static void forget(struct held_error *error)
{
	free(error->text);
	error->text = NULL;
}

bool patience_hold(struct patience *patience, const char *object, const char *text)
{
	if (!patience->until)
		return false;
	forget(&patience->error);
	snprintf(patience->error.object, sizeof(patience->error.object), "%s", object);
	patience->error.text = strdup(text);
	return patience->error.text;
}

void patience_absent(struct patience *patience)
{
	forget(&patience->nobody);
	patience->nobody = patience->error;
	patience->error.text = NULL;
	patience->absent = true;
}

bool patience_again(struct patience *patience, struct loop *loop, loop_callback *callback, void *owner)
{
	int64_t left = patience->until - clock_now();

	/* The last try is when the time is over. */
	if (!patience->absent || left <= 0)
		return false;
	patience->absent = false;
	loop_timer_start(loop, &patience->pause, left < PAUSE ? left : PAUSE, callback, owner);
	return true;
}

const char *patience_error(const struct patience *patience)
{
	return patience->nobody.text ? patience->nobody.text : patience->error.text;
}

static void tell(const struct held_error *error, const struct log *log)
{
	if (error->text)
		log_error(log, error->object, "%s", error->text);
}

void patience_give_up(struct patience *patience, const struct log *log)
{
	bool in_vain = patience->absent && patience->nobody.text && clock_now() >= patience->until;

	patience_stop(patience);
	if (patience->absent)
		tell(&patience->nobody, log);
	tell(&patience->error, log);
	if (in_vain)
		log_hint(log, "the server was waited for %g s (--wait-server)", quantity_seconds(patience->time));
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
	forget(&patience->nobody);
	forget(&patience->error);
}
