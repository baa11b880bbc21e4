/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that a command calls during its run, except command.c's. */
#include "cmd/command.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void run_report_error(const struct run *run)
{
	if (!run->transport)
		return;
	log_report(&run->log, &run->transport->error);
	error_clear(&run->transport->error);
}

void run_record_outcome(struct run *run, enum outcome outcome)
{
	if (!outcome)
		return;
	run_report_error(run);
	if (!run->outcome)
		run->outcome = outcome;
}

void run_print(const struct run *run, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	output_line(run->output, format, list);
	va_end(list);
}

void run_print_help(struct output *output, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	output_line(output, format, list);
	va_end(list);
}

void *run_allocate(const struct run *run, size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		log_error(&run->log, NULL, "out of memory");
	return memory;
}

static void __attribute__((format(printf, 4, 0))) format_result(const struct run *run, char text[RESULT_SIZE],
								const char *device, const char *format, va_list list)
{
	const struct transport *transport = run->transport;
	size_t length = strlen(log_text_list(text, RESULT_SIZE, format, list));

	if (transport)
		log_text(text + length, RESULT_SIZE - length, " (%s%s%s)", transport_name(transport),
			 device ? ", " : "", device ? device : "");
}

static void print_result(const struct run *run, bool failed, const char *text)
{
	run_print(run, "%s: %s%s", run->log.name, failed ? "FAILED: " : "", text);
}

void run_print_result(struct run *run, enum outcome outcome, const char *device, const char *format, ...)
{
	char text[RESULT_SIZE];
	va_list list;

	va_start(list, format);
	format_result(run, text, device, format, list);
	va_end(list);
	print_result(run, outcome, text);
}

void run_finish(struct run *run, enum outcome outcome, const char *device, const char *format, ...)
{
	va_list list;

	if (run->ended)
		return;
	run->ended = true;
	loop_timer_stop(&run->waiting);
	run_record_outcome(run, outcome);
	va_start(list, format);
	format_result(run, run->verdict, device, format, list);
	va_end(list);
	loop_stop(run->loop);
}

bool run_wait(struct run *run)
{
	if (!run->ended && !loop_run(run->loop)) {
		log_error(&run->log, "event loop", "the kernel refuses to watch a descriptor");
		run_finish(run, OUTCOME_INTERNAL, NULL, "the event loop failed");
	}
	return !run->ended;
}

void run_print_verdict(const struct run *run)
{
	if (!run->ended)
		return;
	print_result(run, run->outcome, run->verdict);
	if (run->command->prints_status)
		run_print(run, "return status %d", (int)run->outcome);
}
