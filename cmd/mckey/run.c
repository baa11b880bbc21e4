/* SPDX-License-Identifier: BSD-2-Clause */
/* The phases of a run, from the first join to the last leave, and what is said about it. */
#include <stdarg.h>
#include <stdio.h>

#include "cmd/mckey/mckey.h"

/* A subnet manager may need seconds until every switch forwards the group, which is what the stock tool waits. */
#define PAUSE_INFINIBAND (3 * CLOCK_NS_PER_S)
/* A switch that snoops IGMP forwards as soon as it has seen the receiver's report; we only let a peer get that far. */
#define PAUSE_ELSEWHERE (100 * CLOCK_NS_PER_MS)

void run_say(const struct mckey_run *run, const char *format, ...)
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

static void __attribute__((format(printf, 3, 0))) tell(const struct mckey_run *run, const char *before,
						       const char *format, va_list list)
{
	FILE *output = environment_output(run->environment);

	fprintf(output, "%s: %s", run->log->name, before);
	vfprintf(output, format, list);
	fprintf(output, " (%s, %s)\n", transport_name(run->environment->transport), device(run));
}

void run_tell(const struct mckey_run *run, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	tell(run, "", format, list);
	va_end(list);
}

void run_verdict(const struct mckey_run *run, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	tell(run, run->environment->outcome ? "FAILED: " : "", format, list);
	va_end(list);
}

void run_hint(struct mckey_run *run, const char *text)
{
	if (!run->hinted)
		log_hint(run->log, "%s", text);
	run->hinted = true;
}

static void report(struct mckey_run *run)
{
	bool through = run->joins && !run->undecided && !run->count;

	if (run->join_failures && run->member_count > 1)
		log_error(run->log, run->group_text, "%zu of %zu connections did not join", run->join_failures,
			  run->member_count);
	if (run->phase > RUN_JOINING)
		return;
	if (through)
		environment_summary(run->environment);
	run_verdict(run, "%zu of %zu connection%s joined%s", run->joins, run->member_count,
		    units_plural(run->member_count), through ? ", no datagrams asked for" : "");
}

static void finish(void *owner)
{
	struct mckey_run *run = owner;

	for (size_t i = 0; i < run->member_count; i++)
		environment_note(run->environment, member_leave(&run->members[i]));
	run_say(run, "test complete");
	run_say(run, "return status %d", run->environment->outcome);
	environment_finish(run->environment, OUTCOME_OK);
}

void run_end(struct mckey_run *run, enum outcome outcome)
{
	if (run->phase == RUN_ENDING)
		return;
	environment_note(run->environment, outcome);
	resolver_stop(&run->resolver);
	loop_timer_stop(&run->pace);
	loop_timer_stop(&run->over);
	loop_timer_stop(&run->idle);
	loop_timer_stop(&run->grace);
	run->ended = true;
	report(run);
	if (run->phase == RUN_SENDING || run->phase == RUN_PAUSING)
		sender_report(run);
	else if (run->phase == RUN_RECEIVING)
		receiver_report(run);
	run->phase = RUN_ENDING;
	for (size_t i = 0; i < run->member_count; i++)
		if (run->members[i].endpoint)
			run->members[i].endpoint->done = true;
	loop_timer_start(run->environment->loop, &run->step, 0, finish, run);
}

static void pause_over(void *owner)
{
	sender_start(owner);
}

static int64_t pause_time(const struct mckey_run *run)
{
	if (run->options->pause != PAUSE_OF_FABRIC)
		return run->options->pause;
	for (size_t i = 0; i < run->member_count; i++)
		if (run->members[i].state == MEMBER_JOINED)
			return run->members[i].endpoint->domain->fabric == FABRIC_INFINIBAND ? PAUSE_INFINIBAND
											     : PAUSE_ELSEWHERE;
	return 0;
}

void run_settled(struct mckey_run *run)
{
	if (run->phase == RUN_SENDING) {
		sender_settled(run);
	} else if (run->phase == RUN_RECEIVING) {
		receiver_settled(run);
	} else if (run->undecided) {
		return;
	} else if (!run->joined || !run->count) {
		run_end(run, OUTCOME_OK);
	} else if (!run->options->sender) {
		receiver_start(run);
	} else if (run->phase == RUN_JOINING) {
		run->phase = RUN_PAUSING;
		loop_timer_start(run->environment->loop, &run->step, pause_time(run), pause_over, run);
	}
}

void run_join(struct mckey_run *run)
{
	run->phase = RUN_JOINING;
	run_say(run, "mckey: joining");
	for (size_t i = 0; i < run->member_count && run->phase == RUN_JOINING; i++)
		member_start(&run->members[i]);
}
