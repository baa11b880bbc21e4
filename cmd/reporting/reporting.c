/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/reporting/reporting.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/signals.h"

#define PROMETHEUS_INTERVAL (15 * CLOCK_NS_PER_S)
#define ROW_DELAY_MAX	    (20 * CLOCK_NS_PER_MS)

enum outcome reporting_choose(struct reporting *reporting, struct run *run, const struct common_options *common)
{
	const struct reporting_options *options = &common->reporting;
	const struct command *command = run->command;
	enum live live = command->live ? command->live(common) : LIVE_ROWS;
	enum outcome outcome;
	bool for_person;

	run->reporting = reporting;
	reporting->run = run;
	reporting->options = options;
	reporting->figures = command->figures;
	reporting->prometheus = options->prometheus;
	reporting->report.buckets = options->histogram;
	if (options->json || options->json_stream)
		reporting_json_begin(reporting);
	if (options->json_stream) {
		run->log.reported = reporting_json_error;
		run->log.context = reporting;
		/* An error in the arguments. */
		if (run->log.errors->count)
			reporting_json_error(reporting, &run->log.errors->first);
	}
	if (run->outcome)
		return run->outcome;
	outcome = WITH_EXTRAS ? reporting_expect_parse(reporting) : OUTCOME_OK;
	if (outcome)
		return outcome;
	if (reporting_is_metrics(options) && !reporting_is_text(reporting)) {
		log_error(&run->log, NULL, "--prometheus - and %s are mutually exclusive",
			  options->json ? "--json" : "--json-stream");
		return OUTCOME_USAGE;
	}
	if (options->interval && (options->json || options->quiet) && !options->prometheus) {
		log_error(&run->log, "--interval-report", "%s prints no intervals",
			  options->quiet ? "--quiet" : "--json");
		log_hint(&run->log, "--json-stream and --prometheus report them");
		return OUTCOME_USAGE;
	}
	/* Events were requested, so a log gets them, too. */
	for_person = reporting_is_text(reporting) && !options->quiet && (live == LIVE_EVENTS || isatty(STDOUT_FILENO));
	if (live == LIVE_STEPS || (for_person && !options->interval && reporting->figures))
		reporting->live = live;
	reporting->report.of_steps = reporting->live == LIVE_STEPS;
	reporting->length = reporting->live == LIVE_ROWS ? CLOCK_NS_PER_S : options->interval;
	return OUTCOME_OK;
}

static void report_interval(struct reporting *reporting)
{
	if (reporting->options->quiet || !(reporting->length || reporting->report.of_steps))
		return;
	if (reporting_is_text(reporting))
		reporting_text_interval(reporting);
	else
		reporting_json_interval(reporting);
}

void reporting_begin_interval(struct reporting *reporting)
{
	if (!reporting)
		return;
	reporting->interval_open = true;
	reporting->report.interval_began = clock_now();
	figures_copy(reporting_figures(reporting));
}

void reporting_end_interval(struct reporting *reporting)
{
	if (!reporting)
		return;
	reporting->report.interval_ended = clock_now();
	report_interval(reporting);
	reporting_write_prometheus(reporting);
	reporting->interval_open = false;
}

/* Returns 0 if nothing is reported or written during the run. */
static int64_t interval_length(const struct reporting *reporting)
{
	bool only_written = !reporting->length && reporting->prometheus && !reporting->report.of_steps;

	return only_written ? PROMETHEUS_INTERVAL : reporting->length;
}

static void interval_over(void *context)
{
	struct reporting *reporting = context;
	int64_t length, now;

	/* The run has ended in the same iteration of the loop: reporting_end() reports this interval. */
	if (reporting->run->ended)
		return;
	reporting_end_interval(reporting);
	length = interval_length(reporting);
	reporting_begin_interval(reporting);
	now = reporting->report.interval_began;
	/* Nothing has been counted while the row was written. */
	reporting->report.interval_began = reporting->report.interval_ended;
	/* Intervals keep their schedule; missed ones are skipped. */
	reporting->interval_due += length;
	if (reporting->interval_due <= now)
		reporting->interval_due = now + length;
	loop_timer_start(reporting->run->loop, &reporting->interval, reporting->interval_due - now, interval_over,
			 reporting);
}

/*
 * In text the first interval is a tenth longer, at most by ROW_DELAY_MAX: a run of whole intervals ends a moment after
 * they do, and this moment is part of the last row.
 */
static void start_interval(struct reporting *reporting)
{
	int64_t length = interval_length(reporting);

	if (!length)
		return;
	if (reporting_is_text(reporting))
		length += length < 10 * ROW_DELAY_MAX ? length / 10 : ROW_DELAY_MAX;
	reporting->interval_due = clock_now() + length;
	loop_timer_start(reporting->run->loop, &reporting->interval, length, interval_over, reporting);
}

/* Ctrl-\ on the terminal. */
static void quit_received(void *context)
{
	reporting_print_current(context);
}

enum outcome reporting_begin(struct reporting *reporting)
{
	if (reporting->options->json_stream)
		reporting_json_start(reporting);
	reporting->interval_open = !reporting->report.of_steps;
	reporting->report.interval_began = clock_now();
	if (!signals_ignored(SIGQUIT))
		loop_signal_start(reporting->run->loop, &reporting->quit, SIGQUIT, quit_received, reporting);
	reporting_write_prometheus(reporting);
	start_interval(reporting);
	return reporting->run->outcome;
}

enum outcome reporting_start(struct reporting *reporting, void *state)
{
	reporting->state = state;
	reporting_write_prometheus(reporting);
	return WITH_EXTRAS ? reporting_expect_check(reporting) : OUTCOME_OK;
}

void reporting_ready(struct reporting *reporting)
{
	if (reporting->state && !reporting->rows && reporting_is_text(reporting))
		start_interval(reporting);
}

/* In text, a run in which no data moved prints only the verdict. */
static bool summarises(const struct reporting *reporting)
{
	return !reporting_is_text(reporting) || reporting_figures(reporting).summarised;
}

/* The time since the last complete interval counts as one, so that intervals add up to the run. */
void reporting_end_last_interval(struct reporting *reporting)
{
	struct report *report;

	if (!reporting || !reporting->state || !reporting->interval_open || !summarises(reporting))
		return;
	report = &reporting->report;
	/* A rate over less than 1/50 of an interval is meaningless. */
	report->interval_ended = clock_now();
	report->without_rates = report->interval_ended - report->interval_began < reporting->length / 50;
	reporting->last_interval = true;
	report_interval(reporting);
	report->without_rates = reporting->interval_open = false;
}

char *reporting_end(struct reporting *reporting)
{
	reporting->ends = true;
	loop_signal_stop(&reporting->quit);
	loop_timer_stop(&reporting->interval);
	reporting_end_last_interval(reporting);
	if (WITH_EXTRAS)
		reporting_expect_judge(reporting);
	/*
	 * Before the verdict, which fails if the file cannot be written. A usage error must not replace an earlier
	 * run's file.
	 */
	if (reporting->state || reporting->run->outcome != OUTCOME_USAGE)
		reporting_write_prometheus(reporting);
	/* Failures from here on cannot change the outcome. */
	reporting->run->log.reported = NULL;
	free(reporting->expect);
	if (!reporting_is_text(reporting))
		return reporting_json_summary(reporting);
	if (summarises(reporting))
		reporting_text_summary(reporting);
	return NULL;
}
