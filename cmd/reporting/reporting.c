/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/reporting/reporting.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/output.h"
#include "cmd/run.h"
#include "cmd/signals.h"

#define PROMETHEUS_INTERVAL (15 * CLOCK_NS_PER_S)
#define ROW_DELAY_MAX	    (20 * CLOCK_NS_PER_MS)

void reporting_add_head(struct reporting *reporting)
{
	const struct transport *transport = reporting->environment->transport;
	struct report *report = &reporting->report;

	report_text(report, "command", reporting->environment->command->name);
	report_text(report, "version", RDMATEST_VERSION);
	report_text(report, "transport", transport ? transport_name(transport) : NULL);
	report_time(report, "duration", clock_now() - reporting->started);
}

void reporting_add_figures(struct reporting *reporting, bool of_interval)
{
	struct figures figures;

	if (!reporting->state || !reporting->environment->command->figures)
		return;
	figures = reporting->environment->command->figures(reporting->state);
	figures_report(&reporting->report, figures.rows, figures.values, of_interval ? figures.before : NULL);
}

void reporting_add_verdict(struct reporting *reporting)
{
	enum outcome outcome = reporting->environment->outcome;

	report_text(&reporting->report, "verdict", outcome ? "fail" : "pass");
	report_count(&reporting->report, "exit_code", (uint64_t)outcome);
}

static void error_reported(void *context, const struct error *error)
{
	struct reporting *reporting = context;

	if (reporting->form->error)
		reporting->form->error(reporting, error);
}

/* A program that passes --json parses the output even if another argument is invalid. */
static const struct reporting_form *form_of_arguments(int argc, char *const *argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (!strcmp(argv[i], "--json"))
			return &reporting_json;
		if (!strcmp(argv[i], "--json-stream"))
			return &reporting_json_stream;
	}
	return &reporting_text;
}

void reporting_prepare(struct reporting *reporting, struct environment *environment, int argc, char *const *argv)
{
	reporting->environment = environment;
	reporting->started = clock_now();
	environment->reporting = reporting;
	environment->log.reported = error_reported;
	environment->log.context = reporting;
	reporting->form = form_of_arguments(argc, argv);
}

enum outcome reporting_choose(struct reporting *reporting, const struct common_options *common)
{
	struct environment *environment = reporting->environment;
	const struct reporting_options *options = reporting->options = &common->reporting;
	const struct command *command = environment->command;
	enum live live = command->live ? command->live(common) : LIVE_ROWS;
	bool is_text = !options->json && !options->json_stream;

	reporting->prometheus = options->prometheus;
	reporting->report.buckets = options->histogram;
	reporting->form = options->json ? &reporting_json : is_text ? &reporting_text : &reporting_json_stream;
	if (options->interval && (options->json || options->quiet) && !options->prometheus) {
		log_error(&environment->log, "--interval-report", "%s prints no intervals",
			  options->quiet ? "--quiet" : "--json");
		log_hint(&environment->log, "--json-stream and --prometheus report them");
		return OUTCOME_USAGE;
	}
	is_text = is_text && !options->quiet;
	if (live == LIVE_STEPS || (is_text && !options->interval && command->figures && isatty(STDOUT_FILENO)))
		environment->live = live;
	reporting->report.of_steps = environment->live == LIVE_STEPS;
	return is_text ? OUTCOME_OK : output_discard(&environment->output, &environment->log);
}

/* Returns 0 for none. */
static int64_t reported_length(const struct reporting *reporting)
{
	return reporting->environment->live == LIVE_ROWS ? CLOCK_NS_PER_S : reporting->options->interval;
}

static int64_t interval_length(const struct reporting *reporting)
{
	int64_t length = reported_length(reporting);

	return length || !reporting->prometheus || reporting->report.of_steps ? length : PROMETHEUS_INTERVAL;
}

static void report_interval(struct reporting *reporting)
{
	bool wanted = reported_length(reporting) || reporting->report.of_steps;

	if (wanted && reporting->form->interval && !reporting->options->quiet)
		reporting->form->interval(reporting);
}

void reporting_begin_interval(struct reporting *reporting)
{
	if (!reporting)
		return;
	reporting->interval_open = true;
	reporting->report.interval_began = clock_now();
	if (reporting->environment->command->figures)
		figures_copy(reporting->environment->command->figures(reporting->state));
}

void reporting_end_interval(struct reporting *reporting)
{
	if (!reporting)
		return;
	report_interval(reporting);
	reporting_write_prometheus(reporting);
	reporting->interval_open = false;
}

static void interval_over(void *context)
{
	struct reporting *reporting = context;
	int64_t length, now;

	/* The run has ended in the same iteration of the loop: reporting_end() reports this interval. */
	if (reporting->environment->ended)
		return;
	reporting_end_interval(reporting);
	length = interval_length(reporting);
	/* Without --interval-report, intervals end when the file of --prometheus cannot be written. */
	if (!length)
		return;
	reporting_begin_interval(reporting);
	now = reporting->report.interval_began;
	/* Intervals keep their schedule; missed ones are skipped. */
	reporting->interval_due += length;
	if (reporting->interval_due <= now)
		reporting->interval_due = now + length;
	loop_timer_start(reporting->environment->loop, &reporting->interval, reporting->interval_due - now,
			 interval_over, reporting);
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
	if (reporting->form == &reporting_text)
		length += length < 10 * ROW_DELAY_MAX ? length / 10 : ROW_DELAY_MAX;
	reporting->interval_due = clock_now() + length;
	loop_timer_start(reporting->environment->loop, &reporting->interval, length, interval_over, reporting);
}

/* Ctrl-\ on the terminal. */
static void quit_received(void *context)
{
	reporting_print_current(context);
}

enum outcome reporting_begin(struct reporting *reporting)
{
	if (reporting->form->start)
		reporting->form->start(reporting);
	reporting->interval_open = !reporting->report.of_steps;
	reporting->report.interval_began = clock_now();
	if (!signals_ignored(SIGQUIT))
		loop_signal_start(reporting->environment->loop, &reporting->quit, SIGQUIT, quit_received, reporting);
	reporting_write_prometheus(reporting);
	start_interval(reporting);
	return reporting->environment->outcome;
}

void reporting_start(struct reporting *reporting, void *state)
{
	reporting->state = state;
	reporting_write_prometheus(reporting);
}

void reporting_set_up(struct reporting *reporting)
{
	if (reporting->state && !reporting->rows && reporting->form == &reporting_text)
		start_interval(reporting);
}

/* Reports the time from the last complete interval to the end of the run, so that the intervals add up to the run. */
static void report_rest(struct reporting *reporting)
{
	/* A rate over less than 1/50 of an interval is meaningless. */
	reporting->report.without_rates =
		clock_now() - reporting->report.interval_began < reported_length(reporting) / 50;
	report_interval(reporting);
	reporting->report.without_rates = false;
}

/* In text, where the verdict is the last line, a run in which no data moved ends with it alone. */
static bool has_end(const struct reporting *reporting)
{
	return reporting->form != &reporting_text ||
	       (reporting->state && reporting->environment->command->figures &&
		reporting->environment->command->figures(reporting->state).summarised);
}

void reporting_end(struct reporting *reporting)
{
	bool writes;

	if (reporting->ended)
		return;
	reporting->ended = true;
	writes = has_end(reporting);
	loop_signal_stop(&reporting->quit);
	loop_timer_stop(&reporting->interval);
	if (writes && reporting->state && reporting->interval_open)
		report_rest(reporting);
	/*
	 * Before the verdict, which fails if the file cannot be written. A usage error must not replace the file of an
	 * earlier run.
	 */
	if (reporting->state || reporting->environment->outcome != OUTCOME_USAGE)
		reporting_write_prometheus(reporting);
	if (writes)
		reporting->form->end(reporting);
	/* Saved, because errors until reporting_close() use reporting->report for their records. */
	reporting->last = reporting->report;
	reporting->state = NULL;
}

static void print_last(struct reporting *reporting)
{
	reporting->report = reporting->last;
	reporting->form->close(reporting);
	if (reporting->last.stream == stdout)
		return;
	fclose(reporting->last.stream);
	fputs(reporting->text ? reporting->text : "", stdout);
	fflush(stdout);
	free(reporting->text);
}

void reporting_close(struct reporting *reporting)
{
	/* For an error before the run. */
	if (reporting->environment->outcome)
		reporting_end(reporting);
	if (reporting->ended && reporting->form->close)
		print_last(reporting);
	reporting->environment->log.reported = NULL;
}
