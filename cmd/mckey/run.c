/* SPDX-License-Identifier: BSD-2-Clause */
/* The phases of a run, from the first join to the last leave, and its result lines. */
#include <stdarg.h>
#include <stdio.h>

#include "cmd/mckey/mckey.h"

/* Until the subnet manager has set up the group in every switch. The stock tool waits as long. */
#define PAUSE_INFINIBAND (3 * CLOCK_NS_PER_S)
/* Until a receiver that starts at the same time has joined; IGMP snooping then forwards the group at once. */
#define PAUSE_ROCE (100 * CLOCK_NS_PER_MS)

void run_print(const struct mckey_run *run, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vfprintf(environment_output(run->environment), format, list);
	va_end(list);
	fputc('\n', environment_output(run->environment));
}

static struct verdict verdict_of(const struct mckey_run *run)
{
	struct verdict verdict = { .has_figures = run->has_figures };

	for (size_t i = 0; i < run->member_count && !verdict.device; i++)
		if (run->members[i].endpoint && run->members[i].endpoint->domain)
			verdict.device = run->members[i].endpoint->domain->device;
	return verdict;
}

void run_print_result(const struct mckey_run *run, const char *format, ...)
{
	const struct verdict verdict = verdict_of(run);
	char text[MCKEY_VERDICT_SIZE];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	environment_print_result(run->environment, false, &verdict, "%s", text);
}

void run_set_verdict(struct mckey_run *run, bool has_figures, const char *format, ...)
{
	va_list list;

	run->has_figures = has_figures;
	va_start(list, format);
	vsnprintf(run->verdict, sizeof(run->verdict), format, list);
	va_end(list);
}

void run_hint(struct mckey_run *run, const char *text)
{
	if (!run->hinted)
		log_hint(run->log, "%s", text);
	run->hinted = true;
}

static void print_joins(struct mckey_run *run)
{
	bool join_only = run->joins && !run->joins_pending && !run->count;

	if (run->join_failures && run->member_count > 1)
		log_error(run->log, run->group_text, "%zu of %zu connections did not join", run->join_failures,
			  run->member_count);
	if (run->phase > RUN_JOINING)
		return;
	run_set_verdict(run, join_only, "%zu of %zu connection%s joined%s", run->joins, run->member_count,
			units_plural(run->member_count), join_only ? ", no datagrams requested" : "");
}

static void leave_group(void *context)
{
	struct mckey_run *run = context;
	const struct verdict verdict = verdict_of(run);

	for (size_t i = 0; i < run->member_count; i++)
		environment_note(run->environment, member_leave(&run->members[i]));
	run_print(run, "test complete");
	environment_finish(run->environment, OUTCOME_OK, &verdict, "%s", run->verdict);
}

void run_end(struct mckey_run *run, enum outcome outcome)
{
	if (run->phase == RUN_ENDING)
		return;
	environment_note(run->environment, outcome);
	resolver_stop(&run->resolver);
	loop_timer_stop(&run->pace);
	loop_timer_stop(&run->duration_timer);
	loop_timer_stop(&run->idle);
	loop_timer_stop(&run->grace);
	run->ended = true;
	print_joins(run);
	if (run->phase == RUN_SENDING || run->phase == RUN_PAUSING)
		sender_print(run);
	else if (run->phase == RUN_RECEIVING)
		statistics_print(run);
	run->phase = RUN_ENDING;
	for (size_t i = 0; i < run->member_count; i++)
		if (run->members[i].endpoint)
			run->members[i].endpoint->done = true;
	loop_timer_start(run->environment->loop, &run->step, 0, leave_group, run);
}

static void run_pause_over(void *context)
{
	sender_start(context);
}

static int64_t pause_time(const struct mckey_run *run)
{
	if (run->options->pause != PAUSE_AUTO)
		return run->options->pause;
	for (size_t i = 0; i < run->member_count; i++)
		if (run->members[i].state == MEMBER_JOINED)
			return run->members[i].endpoint->domain->fabric == FABRIC_INFINIBAND ? PAUSE_INFINIBAND
											     : PAUSE_ROCE;
	return 0;
}

void run_member_changed(struct mckey_run *run)
{
	if (run->phase == RUN_SENDING) {
		sender_check_end(run);
	} else if (run->phase == RUN_RECEIVING) {
		receiver_check_end(run);
	} else if (run->joins_pending) {
		return;
	} else if (!run->joined || !run->count) {
		run_end(run, OUTCOME_OK);
	} else if (!run->options->sender) {
		receiver_start(run);
	} else if (run->phase == RUN_JOINING) {
		run->phase = RUN_PAUSING;
		loop_timer_start(run->environment->loop, &run->step, pause_time(run), run_pause_over, run);
	}
}

void run_join(struct mckey_run *run)
{
	run->phase = RUN_JOINING;
	run_print(run, "mckey: joining");
	for (size_t i = 0; i < run->member_count && run->phase == RUN_JOINING; i++)
		member_start(&run->members[i]);
}
