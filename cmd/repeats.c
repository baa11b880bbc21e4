/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/repeats.h"

#include <string.h>

static void report_first(const struct log *log, const struct error *error)
{
	struct repeats *repeats = log->context;
	const struct error *last = &repeats->last;

	repeats->omitted = !strcmp(error->object, last->object) && !strcmp(error->phase, last->phase) &&
			   !strcmp(error->cause, last->cause) && !strcmp(error->code, last->code);
	if (repeats->omitted)
		return;
	repeats->last = *error;
	log_report(repeats->of, error);
}

static void hint_first(const struct log *log, const char *text)
{
	const struct repeats *repeats = log->context;

	if (!repeats->omitted)
		log_hint(repeats->of, "%s", text);
}

static const struct log_sink sink = { .error = report_first, .hint = hint_first };

void repeats_initialise(struct repeats *repeats, const struct log *of)
{
	*repeats = (struct repeats){ .log = *of, .of = of };
	repeats->log.sink = &sink;
	repeats->log.context = repeats;
}
