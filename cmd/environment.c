/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/daemon.h"
#include "cmd/output.h"
#include "core/privileges.h"

void environment_print(const struct environment *environment, const char *format, ...)
{
	FILE *output = environment->output;
	va_list list;

	va_start(list, format);
	vfprintf(output, format, list);
	va_end(list);
	fputc('\n', output);
}

void *environment_allocate(const struct environment *environment, size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		log_error(&environment->log, NULL, "out of memory");
	return memory;
}

/* ---- the end ---- */

static void __attribute__((format(printf, 4, 0))) format_result(const struct environment *environment,
								char text[RESULT_SIZE], const char *device,
								const char *format, va_list list)
{
	const struct transport *transport = environment->transport;
	int length = vsnprintf(text, RESULT_SIZE, format, list);

	if (transport && length >= 0 && length < RESULT_SIZE)
		snprintf(text + length, (size_t)(RESULT_SIZE - length), " (%s%s%s)", transport_name(transport),
			 device ? ", " : "", device ? device : "");
}

static void print_result(const struct environment *environment, bool failed, const char *text)
{
	environment_print(environment, "%s: %s%s", environment->log.name, failed ? "FAILED: " : "", text);
}

void environment_print_result(const struct environment *environment, bool failed, const char *device,
			      const char *format, ...)
{
	char text[RESULT_SIZE];
	va_list list;

	va_start(list, format);
	format_result(environment, text, device, format, list);
	va_end(list);
	print_result(environment, failed, text);
}

void environment_finish(struct environment *environment, enum outcome outcome, const char *device, const char *format,
			...)
{
	va_list list;

	if (environment->ended)
		return;
	environment->ended = true;
	environment_record_outcome(environment, outcome);
	va_start(list, format);
	format_result(environment, environment->verdict, device, format, list);
	va_end(list);
	if (HAS_CHILD_RUNS && environment->finished)
		environment->finished(environment->context);
	else
		loop_stop(environment->loop);
}

void environment_print_verdict(const struct environment *environment)
{
	if (!environment->ended)
		return;
	print_result(environment, environment->outcome, environment->verdict);
	if (environment->command->prints_status)
		environment_print(environment, "return status %d", (int)environment->outcome);
}

/* ---- set up ---- */

static void print_ready(struct environment *environment, const struct address *address, const char *line)
{
	struct report *record = environment_begin_record(environment, "ready");
	char host[ADDRESS_TEXT_SIZE];

	if (record) {
		report_text(record, "address", address_host(address, host));
		report_count(record, "port", address->port);
		report_close(record);
	}
	environment_print(environment, "%s", line);
}

static void set_up_once(struct environment *environment)
{
	const struct common_options *options = environment->to_set_up;

	environment->to_set_up = NULL;
	if (!options)
		return;
	if (WITH_REPORT && environment->reporting)
		reporting_set_up(environment->reporting);
	if (!transport_opens_devices(common_transport(options)))
		privileges_drop(&environment->log, common_privileges(options));
}

/* Privileges are dropped before the ready line: whoever reads it connects. */
bool environment_setup_done(struct environment *environment, const struct address *address, const char *line)
{
	enum outcome outcome = OUTCOME_OK;

	set_up_once(environment);
	if (line)
		print_ready(environment, address, line);
	if (WITH_EXTRAS && line && environment->daemon) {
		environment_print(environment, "%ld", (long)getpid());
		outcome = output_is_lost() ? OUTCOME_INTERNAL : daemon_ready(environment->daemon);
	}
	if (outcome)
		environment_finish(environment, outcome, NULL, "set-up did not complete");
	else if (HAS_CHILD_RUNS && line && environment->ready)
		environment->ready(environment->context);
	return !outcome;
}

/* Debian's /etc/hosts gives the host's own name a loopback address. A number, and "localhost", are meant. */
static void hint_unreachable(const struct environment *environment, const struct endpoint *listener, const char *host)
{
	char text[ADDRESS_TEXT_SIZE];
	struct address address;

	if (host && address_is_loopback(&listener->local) && !strstr(host, "localhost") &&
	    !address_parse(host, ADDRESS_FORMAT_ANY, &address))
		log_hint(&environment->log, "%s is %s (/etc/hosts), which only this host reaches", host,
			 address_host(&listener->local, text));
	else if (!endpoint_is_reachable(listener))
		log_hint(&environment->log, "no client can connect yet: no address of this host has an RDMA device");
}

bool environment_listens(struct environment *environment, const struct endpoint *listener, const char *host,
			 const char *name, const char *word)
{
	char address[ADDRESS_TEXT_SIZE], local[ENDPOINT_ADDRESSES_SIZE], line[512];

	snprintf(line, sizeof(line), "%s: %s on %s%s", name, word, address_text(&listener->local, address),
		 endpoint_local_addresses(listener, local));
	if (WITH_EXTRAS)
		hint_unreachable(environment, listener, host);
	return environment_setup_done(environment, &listener->local, line);
}
