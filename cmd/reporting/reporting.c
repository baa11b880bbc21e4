/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/reporting/reporting.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/signals.h"

#define PROMETHEUS_INTERVAL (15 * CLOCK_NS_PER_S)

void reporting_add_head(struct reporting *reporting)
{
	const struct transport *transport = reporting->environment->transport;
	struct report *report = &reporting->report;

	report_text(report, "command", reporting->command->name);
	report_text(report, "version", RDMATEST_VERSION);
	report_text(report, "transport", transport ? transport_name(transport) : NULL);
	report_time(report, "duration", clock_now() - reporting->started);
}

void reporting_add_figures(struct reporting *reporting, enum report_span span)
{
	if (reporting->state && reporting->command->report)
		reporting->command->report(reporting->state, &reporting->report, span);
}

void reporting_add_verdict(struct reporting *reporting)
{
	enum outcome outcome = reporting->environment->outcome;

	report_text(&reporting->report, "verdict", outcome ? "fail" : "pass");
	report_count(&reporting->report, "exit_code", (uint64_t)outcome);
}

/* ---- errors: recorded, and printed ---- */

void reporting_record_error(struct reporting *reporting, const char *part, const struct error *error)
{
	const struct kept_error not_kept = { .error = *error, .part = part };
	const struct kept_error *last;

	if (!reporting)
		return;
	last = reporting->errors.last;
	errors_add(&reporting->errors, part, error);
	if (reporting->form->error)
		reporting->form->error(reporting, reporting->errors.last != last ? reporting->errors.last : &not_kept);
}

void reporting_record_hint(struct reporting *reporting, const char *text)
{
	if (reporting)
		errors_add_hint(&reporting->errors, text);
}

static void report_error(const struct log *log, const struct error *error)
{
	reporting_clear(log->context);
	reporting_record_error(log->context, log->part, error);
	log_print_error(log, error);
}

static void report_hint(const struct log *log, const char *text)
{
	reporting_clear(log->context);
	reporting_record_hint(log->context, text);
	log_print_hint(log, text);
}

static const struct log_sink sink = { .error = report_error, .hint = report_hint };

static void use_form(struct reporting *reporting, const struct reporting_form *form)
{
	reporting->form = form;
	fatal_exit_prints_json(form->json);
}

void reporting_prepare(struct reporting *reporting, struct environment *environment, const struct command *command,
		       int argc, char *const *argv)
{
	reporting->environment = environment;
	reporting->command = command;
	reporting->started = clock_now();
	environment->reporting = reporting;
	environment->log.sink = &sink;
	environment->log.context = reporting;
	use_form(reporting, reporting_asked_form(argc, argv));
}

void reporting_choose(struct reporting *reporting, const struct reporting_options *options)
{
	reporting->options = options;
	reporting->prometheus = options->prometheus;
	reporting->report.buckets = options->histogram;
	use_form(reporting, reporting_chosen_form(options));
	if (reporting->form != &reporting_text || options->quiet)
		reporting->nowhere = fopen("/dev/null", "we");
	if (reporting->nowhere)
		reporting->environment->output = reporting->nowhere;
}

static int64_t interval_length(const struct reporting *reporting)
{
	if (reporting->options->interval)
		return reporting->options->interval;
	return reporting->prometheus ? PROMETHEUS_INTERVAL : 0;
}

static void report_interval(struct reporting *reporting)
{
	if (reporting->options->interval && reporting->form->interval && !reporting->options->quiet)
		reporting->form->interval(reporting);
}

/* What was left of it when the run ended, so that the intervals make up the whole. */
static void report_last_interval(struct reporting *reporting)
{
	/* It may be due in the same turn of the loop. */
	loop_timer_stop(&reporting->interval);
	if (reporting->state && !reporting->last_reported) {
		/* Of a moment behind the last beat a rate says nothing. */
		reporting->report.without_rates =
			clock_now() - reporting->interval_started < reporting->options->interval / 50;
		report_interval(reporting);
		reporting->report.without_rates = false;
	}
	reporting->last_reported = true;
}

static void interval_over(void *owner)
{
	struct reporting *reporting = owner;
	int64_t length, now;

	/* Due in the same turn of the loop as the end: what there is to say of it is said there. */
	if (reporting->environment->ended)
		return;
	report_interval(reporting);
	reporting_write_prometheus(reporting);
	length = interval_length(reporting);
	if (reporting->command->interval_over)
		reporting->command->interval_over(reporting->state);
	reporting->interval_started = now = clock_now();
	/* The file was all that the intervals were for, and could not be written. */
	if (!length)
		return;
	/* On the same beat, unless one was missed. */
	reporting->interval_due += length;
	if (reporting->interval_due <= now)
		reporting->interval_due = now + length;
	loop_timer_start(reporting->environment->loop, &reporting->interval, reporting->interval_due - now,
			 interval_over, reporting);
}

/* Ctrl-\ on the terminal. */
static void asked(void *owner)
{
	reporting_say_so_far(owner);
}

enum outcome reporting_announce(struct reporting *reporting)
{
	if (reporting->form->start)
		reporting->form->start(reporting);
	reporting_write_prometheus(reporting);
	return reporting->environment->outcome;
}

void reporting_start(struct reporting *reporting, void *state)
{
	struct loop *loop = reporting->environment->loop;
	int64_t length = interval_length(reporting);

	reporting->state = state;
	reporting->interval_started = clock_now();
	reporting->interval_due = reporting->interval_started + length;
	loop_signal_start(loop, &reporting->quit, SIGQUIT, asked, reporting);
	if (length)
		loop_timer_start(loop, &reporting->interval, length, interval_over, reporting);
	reporting_start_progress(reporting);
}

void reporting_summary(struct reporting *reporting)
{
	if (!reporting || reporting->summarised || !reporting->state)
		return;
	reporting_clear(reporting);
	report_last_interval(reporting);
	reporting->summarised = true;
	if (reporting->form->summary)
		reporting->form->summary(reporting);
}

void reporting_finish(struct reporting *reporting)
{
	if (reporting->finished)
		return;
	reporting->finished = true;
	loop_timer_stop(&reporting->progress);
	loop_signal_stop(&reporting->quit);
	reporting_clear(reporting);
	/* For a person the verdict is the last line: who had anything to show has shown it before. */
	if (reporting->form == &reporting_text)
		loop_timer_stop(&reporting->interval);
	else
		report_last_interval(reporting);
	/* A bad command line is no run, whose figures would take the place of another one's. */
	if (reporting->state || reporting->environment->outcome != OUTCOME_USAGE)
		reporting_write_prometheus(reporting);
	if (reporting->form->finish) {
		FILE *stream = open_memstream(&reporting->text, &reporting->text_length);

		reporting->last.stream = stream ? stream : stdout;
		reporting->form->finish(reporting);
	}
	/* Errors may come yet, with records of their own. */
	reporting->last = reporting->report;
	reporting->state = NULL;
}

void reporting_conclude(struct reporting *reporting)
{
	if (!reporting->finished || !reporting->form->conclude)
		return;
	reporting->report = reporting->last;
	reporting->form->conclude(reporting);
	fatal_exit_prints_json(false);
	if (reporting->last.stream == stdout)
		return;
	fclose(reporting->last.stream);
	fputs(reporting->text ? reporting->text : "", stdout);
	fflush(stdout);
	free(reporting->text);
}

void reporting_free(struct reporting *reporting)
{
	reporting->environment->log.sink = NULL;
	errors_free(&reporting->errors);
	if (reporting->nowhere)
		fclose(reporting->nowhere);
}
