/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that a command calls during its run, except run.c's. */
#include "cmd/run.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void environment_report_error(const struct environment *environment)
{
	if (!environment->transport)
		return;
	log_report(&environment->log, &environment->transport->error);
	error_clear(&environment->transport->error);
}

void environment_record_outcome(struct environment *environment, enum outcome outcome)
{
	if (!outcome)
		return;
	environment_report_error(environment);
	if (!environment->outcome)
		environment->outcome = outcome;
}

void environment_print(const struct environment *environment, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	output_line(environment->output, format, list);
	va_end(list);
}

void *environment_allocate(const struct environment *environment, size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		log_error(&environment->log, NULL, "out of memory");
	return memory;
}

static void __attribute__((format(printf, 4, 0))) format_result(const struct environment *environment,
								char text[RESULT_SIZE], const char *device,
								const char *format, va_list list)
{
	const struct transport *transport = environment->transport;
	size_t length = strlen(log_text_list(text, RESULT_SIZE, format, list));

	if (transport)
		log_text(text + length, RESULT_SIZE - length, " (%s%s%s)", transport_name(transport),
			 device ? ", " : "", device ? device : "");
}

static void print_result(const struct environment *environment, bool failed, const char *text)
{
	environment_print(environment, "%s: %s%s", environment->log.name, failed ? "FAILED: " : "", text);
}

void environment_print_result(struct environment *environment, enum outcome outcome, const char *device,
			      const char *format, ...)
{
	char text[RESULT_SIZE];
	va_list list;

	va_start(list, format);
	format_result(environment, text, device, format, list);
	va_end(list);
	print_result(environment, outcome, text);
}

void environment_finish(struct environment *environment, enum outcome outcome, const char *device, const char *format,
			...)
{
	va_list list;

	if (environment->ended)
		return;
	environment->ended = true;
	loop_timer_stop(&environment->waiting);
	environment_record_outcome(environment, outcome);
	va_start(list, format);
	format_result(environment, environment->verdict, device, format, list);
	va_end(list);
	loop_stop(environment->loop);
}

bool environment_wait(struct environment *environment)
{
	if (!environment->ended && !loop_run(environment->loop)) {
		log_error(&environment->log, "event loop", "the kernel refuses to watch a descriptor");
		environment_finish(environment, OUTCOME_INTERNAL, NULL, "the event loop failed");
	}
	return !environment->ended;
}

void environment_print_verdict(const struct environment *environment)
{
	if (!environment->ended)
		return;
	print_result(environment, environment->outcome, environment->verdict);
	if (environment->command->prints_status)
		environment_print(environment, "return status %d", (int)environment->outcome);
}
