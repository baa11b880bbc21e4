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

static const char *device(const struct mckey_run *run)
{
	for (size_t i = 0; i < run->member_count; i++)
		if (run->members[i].endpoint && run->members[i].endpoint->domain)
			return run->members[i].endpoint->domain->device;
	return "no device";
}

static void __attribute__((format(printf, 3, 0))) print_result(const struct mckey_run *run, const char *prefix,
							       const char *format, va_list list)
{
	FILE *output = environment_output(run->environment);

	fprintf(output, "%s: %s", run->log->name, prefix);
	vfprintf(output, format, list);
	fprintf(output, " (%s, %s)\n", transport_name(run->environment->transport), device(run));
}

void run_print_result(const struct mckey_run *run, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	print_result(run, "", format, list);
	va_end(list);
}

void run_print_verdict(const struct mckey_run *run, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	print_result(run, run->environment->outcome ? "FAILED: " : "", format, list);
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
	if (join_only)
		environment_summary(run->environment);
	run_print_verdict(run, "%zu of %zu connection%s joined%s", run->joins, run->member_count,
			  units_plural(run->member_count), join_only ? ", no datagrams requested" : "");
}

static void leave_group(void *context)
{
	struct mckey_run *run = context;

	for (size_t i = 0; i < run->member_count; i++)
		environment_note(run->environment, member_leave(&run->members[i]));
	run_print(run, "test complete");
	run_print(run, "return status %d", run->environment->outcome);
	environment_finish(run->environment, OUTCOME_OK);
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
