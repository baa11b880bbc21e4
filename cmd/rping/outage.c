/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/outage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "core/units.h"

/* When the outage ends without a connection; INT64_MAX: never. A sent ping has used its slot. */
static int64_t last_moment(const struct target *target)
{
	int64_t until = target->until ? target->until : INT64_MAX, period = target->peer.options->interval, last;
	uint64_t left = target_pings_left(target) - (target->sent_at != 0);

	if (!period || __builtin_mul_overflow(left, period, &last) || __builtin_add_overflow(last, target->slot, &last))
		return until;
	return MIN(until, last);
}

bool outage_begin(struct target *target, const struct error *error, loop_callback *expired)
{
	struct run *run = target->peer.run;
	const struct rping_options *options = target->peer.options;
	char text[ERROR_TEXT_SIZE];
	int64_t now = clock_now(), last;

	if (target->peer.ending || loop_deadline_passed(run->loop))
		return false;
	if (target->gone_at)
		return true;
	target->gone_at = target->sent_at ? target->sent_at : now;
	target->lost_before = target->counts.lost;
	target->cause = strdup(error_text(error, text));
	if (options->duration && !target->until)
		target->until = now + options->duration;
	if (options->interval && (!target->slot || target->slot == TARGET_HELD))
		target->slot = now;
	last = last_moment(target);
	if (last != INT64_MAX)
		loop_timer_start(run->loop, &target->gone, last - now, expired, target);
	run_print(run, "%s: %s %s: connecting again", run->log.name, target->peer.name,
		  target->peer.pings ? "is gone" : "does not answer yet");
	return true;
}

static void report_outage(const struct target *target, int64_t length, uint64_t lost)
{
	struct report *record = run_begin_record(target->peer.run, "outage");

	if (!record)
		return;
	report_text(record, "target", target->peer.name);
	report_time(record, "from", target->gone_at - target->peer.run->begun);
	report_time(record, "length", length);
	report_count(record, "lost", lost);
	report_text(record, "cause", target->cause);
	report_close(record);
}

void outage_end(struct target *target, bool connected)
{
	struct run *run = target->peer.run;
	struct ping_counts *counts = &target->counts;
	int64_t period = target->peer.options->interval, now = clock_now(), length = now - target->gone_at, last;
	char time[UNITS_TEXT_SIZE];
	uint64_t missed, lost;

	if (!target->gone_at)
		return;
	loop_timer_stop(&target->gone);
	/* The current slot's ping is sent now, if there is a connection. */
	last = target->until ? MIN(now, target->until - 1) : now;
	missed = period && last >= target->slot ? (uint64_t)((last - target->slot) / period) + !connected : 0;
	missed = MIN(missed, target_pings_left(target));
	counts->sent += missed;
	counts->lost += missed;
	lost = counts->lost - target->lost_before;
	counts->outages++;
	counts->outage += length;
	if (connected)
		run_print(run, "%s: %s %s after %s: %" PRIu64 " ping%s lost", run->log.name, target->peer.name,
			  target->peer.pings ? "is back" : "answers", units_time(length, time), lost,
			  units_plural(lost));
	report_outage(target, length, lost);
	free(target->cause);
	target->cause = NULL;
	target->gone_at = 0;
}

void outage_add_verdict(struct run *run, const struct ping_counts *counts)
{
	char time[UNITS_TEXT_SIZE];

	if (!counts->outages)
		return;
	/* Packets were lost in the outage: no other path or class would have saved them. */
	run->transport->untried = 0;
	log_add(run->verdict, RESULT_SIZE, "; ", "%" PRIu64 " lost in %" PRIu64 " outage%s of %s", counts->lost,
		counts->outages, units_plural(counts->outages), units_time(counts->outage, time));
}
