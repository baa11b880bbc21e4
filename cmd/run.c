/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/daemon.h"
#include "cmd/signals.h"
#include "core/host.h"
#include "core/interface.h"
#include "core/privileges.h"
#include "core/units.h"

/* Limit of an orderly shutdown after the deadline: a working peer answers within this time. */
#define SHUTDOWN_AT_DEADLINE (250 * CLOCK_NS_PER_MS)
/* Added to --timeout, so that a shutdown step that times out first can report the silent peer. */
#define SHUTDOWN_MARGIN (250 * CLOCK_NS_PER_MS)

struct run {
	struct common_options *options;
	void *state;
	enum interruption interruption; /* 0: none */
	struct environment environment;
	struct errors errors;
	struct loop_signal signals[SIGNALS];
	struct loop_timer shutdown; /* limits the time of an orderly shutdown */
	struct reporting reporting;
};

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

/* --prometheus's directory may belong to another user. */
static unsigned kept_privileges(const struct common_options *options)
{
	const struct reporting_options *reporting = &options->reporting;

	return WITH_REPORT && reporting->prometheus && !reporting_is_metrics(reporting) ? PRIVILEGE_FILES : 0;
}

void environment_drop_privileges(const struct environment *environment, unsigned kept)
{
	const struct common_options *options = environment->to_set_up;

	/* doctor and selftest may use another transport than the options'. */
	if (options && !transport_opens_devices(environment->transport ? transport_name(environment->transport)
								       : common_transport(options)))
		privileges_drop(&environment->log, kept | kept_privileges(options));
}

static void set_up_once(struct environment *environment)
{
	if (WITH_REPORT && environment->to_set_up && environment->reporting)
		reporting_ready(environment->reporting);
	environment_drop_privileges(environment, 0);
	environment->to_set_up = NULL;
}

/* The working directory of a background server: it writes a relative --prometheus until its end. */
static const char *folder_of(const struct environment *environment)
{
	const char *file = WITH_REPORT && environment->reporting ? environment->reporting->prometheus : NULL;

	return file && *file != '/' ? "." : "/";
}

/* Until a server receives something, the kernel may be dropping its client's packets. */
static void check_drops(void *context)
{
	struct environment *environment = context;
	const struct network_counter *counter = transport_network(environment->transport);
	char text[DROPS_SIZE];

	while (counter && !counter->increase)
		counter = counter->next;
	if (counter)
		return;
	if (drops_since(&environment->transport->drops, text))
		log_hint(&environment->log, "%s", text);
	else /* less often with time: an idle server sleeps */
		loop_timer_start(environment->loop, &environment->waiting, clock_now() - environment->begun,
				 check_drops, environment);
}

/* Drops privileges before the ready line, because its readers connect. */
bool environment_ready(struct environment *environment, const struct address *address, const char *line)
{
	enum outcome outcome = OUTCOME_OK;

	set_up_once(environment);
	if (line)
		print_ready(environment, address, line);
	if (WITH_EXTRAS && line && environment->daemon) {
		environment_print(environment, "%ld", (long)getpid());
		outcome = output_is_lost(environment->output)
				  ? OUTCOME_INTERNAL
				  : daemon_ready(&environment->log, environment->daemon, folder_of(environment));
	}
	if (outcome)
		environment_finish(environment, outcome, NULL, "set-up did not complete");
	if (HAS_CHILD_RUNS && line && environment->child) {
		environment->ready = *address;
		loop_stop(environment->loop);
	} else if (WITH_EXTRAS && line && environment->transport &&
		   !transport_opens_devices(transport_name(environment->transport))) {
		loop_timer_start(environment->loop, &environment->waiting, CLOCK_NS_PER_S, check_drops, environment);
	}
	return !outcome;
}

/* Debian's /etc/hosts gives the host's own name a loopback address. A number, and "localhost", are meant. */
static void hint_unreachable(const struct environment *environment, const struct endpoint *listener, const char *host,
			     bool names_addresses)
{
	bool devices = transport_opens_devices(transport_name(listener->transport));
	const struct address *local = &listener->local;
	char text[ADDRESS_TEXT_SIZE], why[ROUTE_CAUSE_SIZE];
	struct address address;
	struct error error;

	if (host && address_is_loopback(local) && !strstr(host, "localhost") &&
	    !address_parse(host, ADDRESS_FORMAT_ANY, &address))
		log_hint(&environment->log, "%s is %s (/etc/hosts), which only this host reaches", host,
			 address_host(local, text));
	else if (address_is_loopback(local) && devices)
		log_hint(&environment->log, "over verbs a loopback address means all devices: any client may connect");
	else if (!devices && route_cause_port(local, why))
		log_hint(&environment->log, "%s", why);
	else if (!devices && !address_is_any(local) && !route_leads_here(local, true))
		log_hint(&environment->log, "no client can connect yet: %s is not an address of this host (%s)",
			 address_host(local, text),
			 route_is_broadcast(local) ? "a broadcast address here" : "ip_nonlocal_bind");
	else if (!devices && address_is_any(local) && route_ip6_is_off(local, why))
		log_hint(&environment->log, "%s", why);
	/* The kernel's listener on 0.0.0.0 serves both families. */
	else if (!devices && local->family == ADDRESS_IP4 && address_is_any(local) && interface_has_ip6_only())
		log_hint(&environment->log, "no client can connect yet: this host has IPv6 addresses only, add --ipv6");
	else if (!(devices && names_addresses) && !endpoint_is_reachable(listener)) {
		host_no_address(&error);
		if (listener->options.path->interface || listener->options.path->device)
			error_set(&error, NULL, "no address of this host matches the given device or interface");
		log_hint(&environment->log, "no client can connect yet: %s%s%s", error.cause, *error.hint ? "; " : "",
			 error.hint);
	}
}

bool environment_listens(struct environment *environment, const struct endpoint *listener, const char *host,
			 const char *name, const char *word)
{
	char address[ADDRESS_TEXT_SIZE], local[ENDPOINT_ADDRESSES_SIZE], line[512];

	log_text(line, sizeof(line), "%s: %s on %s%s", name, word, address_text(&listener->local, address),
		 endpoint_local_addresses(listener, local));
	if (WITH_EXTRAS)
		hint_unreachable(environment, listener, host, *local);
	return environment_ready(environment, &listener->local, line);
}

/* ---- help ---- */

/* Prints the lines after the name, the first with a prefix, the others aligned below. */
static void print_lines(const char *lines, const char *prefix, const char *name, struct output *output)
{
	int indent = (int)strlen(prefix);

	while (*lines) {
		size_t length = strcspn(lines, "\n");

		output_print(output, "%*s%s %.*s\n", indent, prefix, name, (int)length, lines);
		prefix = "";
		lines += length + (lines[length] == '\n');
	}
}

void command_help(const struct command *command, const char *name, bool brief, struct output *output)
{
	print_lines(command->synopsis, "Usage: ", name, output);
	if (WITH_HELP)
		output_print(output, "\n%s - %s\n", command->name, command->summary);
	options_help(command->options, brief, output);
	if (!brief || !WITH_HELP)
		return;
	output_print(output, "\nExamples:\n");
	print_lines(command->examples, "  ", name, output);
}

/* ---- the run ---- */

/* Ends the run instead of the command. */
static void abort_run(struct run *run)
{
	environment_finish(&run->environment, OUTCOME_FAILED, NULL, "shutdown did not complete");
}

static void shutdown_timeout(void *context)
{
	struct run *run = context;
	char limit[UNITS_TEXT_SIZE];

	if (run->environment.ended)
		return;
	if (run->interruption == INTERRUPTION_SIGNAL)
		log_error(&run->environment.log, NULL, "shutdown exceeded --timeout (%s)",
			  units_limit(run->options->timeout, limit));
	abort_run(run);
}

static void interrupt(struct run *run, enum interruption interruption, int64_t limit)
{
	run->interruption = interruption;
	loop_timer_start(run->environment.loop, &run->shutdown, limit, shutdown_timeout, run);
	run->environment.command->interrupt(run->state, interruption);
}

/* The watchdog expires later than the loop's limits for shutdown and clean-up. */
static int64_t watchdog_limit(const struct run *run)
{
	return 2 * run->options->timeout + CLOCK_NS_PER_S;
}

static void signal_received(void *context)
{
	struct run *run = context;

	if (run->interruption || run->environment.ended)
		return;
	if (!WITH_CAUSES) {
		signals_release(run->signals);
		watchdog_start(watchdog_limit(run));
	}
	output_end_echo(run->environment.output);
	if (WITH_EXTRAS && signals_out_of_time())
		log_hint(&run->environment.log, "the limit of processor time is reached (ulimit -t)");
	interrupt(run, INTERRUPTION_SIGNAL, run->options->timeout + SHUTDOWN_MARGIN);
}

/* The phases have ended. Ends a run outside any phase, such as a server that waits for a client. */
static void deadline_expired(void *context)
{
	struct run *run = context;
	char text[LOOP_PHASE_TEXT_SIZE];

	if (run->environment.ended)
		return;
	log_error(&run->environment.log, NULL, "%s", loop_phase_text(run->environment.loop, 0, text));
	loop_deadline_stop(run->environment.loop);
	environment_record_outcome(&run->environment, OUTCOME_FAILED);
	/* A signal has already started the shutdown: it gets no more time. */
	if (run->interruption)
		abort_run(run);
	else
		interrupt(run, INTERRUPTION_DEADLINE, SHUTDOWN_AT_DEADLINE);
}

/* The transport is open and the loop exists. */
static enum outcome run_loop(struct run *run)
{
	struct environment *environment = &run->environment;
	const struct command *command = environment->command;
	enum outcome outcome = OUTCOME_OK;

	if (run->options->deadline) {
		loop_deadline_start(environment->loop, run->options->deadline, deadline_expired, run);
		watchdog_start(run->options->deadline + watchdog_limit(run));
	}
	if (command->is_open_ended && command->is_open_ended(run->options))
		signal(SIGPIPE, SIG_DFL);
	signals_catch(environment->loop, run->signals, watchdog_limit(run), signal_received, run);
	if (WITH_REPORT)
		outcome = reporting_begin(&run->reporting);
	if (outcome == OUTCOME_OK)
		outcome = command->start(environment, run->options, &run->state);
	if (outcome)
		return outcome;
	if (WITH_REPORT)
		outcome = reporting_start(&run->reporting, run->state);
	if (outcome)
		return outcome;
	if (HAS_CHILD_RUNS && environment->command->run) {
		environment->command->run(run->state);
		return OUTCOME_OK;
	}
	/* Over soft this process parses packets from now on. Further connection attempts, and groups, open sockets. */
	environment_drop_privileges(environment, PRIVILEGE_BUFFERS);
	environment_wait(environment);
	return OUTCOME_OK;
}

static enum outcome run_open_transport(struct run *run)
{
	struct environment *environment = &run->environment;
	const char *name = common_transport(run->options);
	enum outcome outcome = OUTCOME_OK;
	struct error error;

	if (WITH_EXTRAS || WITH_SOFT)
		outcome = common_check_path(environment, run->options);
	if (outcome)
		return outcome;
	/* The kernel's RDMA refuses a process whose credentials have changed since it opened the device. */
	if (transport_opens_devices(name))
		privileges_drop(&environment->log, PRIVILEGE_PORTS | kept_privileges(run->options));
	outcome = common_open(run->options, name, environment, &error);
	if (outcome)
		log_report(&environment->log, &error);
	else if (WITH_EXTRAS)
		outcome = transport_check_path(environment->transport, &run->options->path);
	return outcome;
}

/* Standard output has one form only. */
static enum outcome discard_lines(struct run *run)
{
	const struct reporting_options *options = &run->options->reporting;
	bool reports = WITH_REPORT && (options->json || options->json_stream || reporting_is_metrics(options));

	if (!(reports || options->quiet) || output_discard(run->environment.output))
		return OUTCOME_OK;
	log_errno(&run->environment.log, "/dev/null", errno, "opening");
	return OUTCOME_INTERNAL;
}

/* From the options to the end of the loop. */
static enum outcome run_command(struct run *run)
{
	struct environment *environment = &run->environment;
	const struct command *command = environment->command;
	enum outcome outcome = environment->outcome;

	if (WITH_REPORT)
		outcome = reporting_choose(&run->reporting, environment, run->options);
	if (!outcome && EXTRA(run->options->daemon))
		outcome = daemon_begin(&environment->log, &environment->daemon);
	if (!outcome)
		outcome = discard_lines(run);
	if (!outcome && command->check)
		outcome = command->check(environment, run->options);
	if (!outcome && EXTRA(command->read))
		outcome = command->read(environment, run->options);
	if (outcome)
		return outcome;
	environment->loop = loop_create();
	if (!environment->loop) {
		log_errno(&environment->log, NULL, errno, "creating the event loop");
		return OUTCOME_INTERNAL;
	}
	if (!HAS_CHILD_RUNS || !command->chooses_transport)
		outcome = run_open_transport(run);
	return outcome ? outcome : run_loop(run);
}

/*
 * Summary and verdict come before the clean-up, which may block. The JSON object is printed last: a process that ends
 * in the clean-up prints none, because its exit code differs. Returns the outcome in verdict and object.
 */
static enum outcome end_run(struct run *run)
{
	struct environment *environment = &run->environment;
	enum outcome outcome;
	char *object = NULL;

	if (environment->ended && output_is_lost(environment->output)) {
		const struct error lost = { .object = "standard output", .cause = "write failed" };

		/* command_end() prints it: main() also has one for a run that has not begun. */
		if (WITH_REPORT)
			log_keep(&environment->log, &lost);
		environment_record_outcome(environment, OUTCOME_INTERNAL);
	}
	if (WITH_EXTRAS && environment->outcome == OUTCOME_FAILED && environment->loop &&
	    (run->interruption == INTERRUPTION_DEADLINE || loop_deadline_passed(environment->loop)) &&
	    environment->command->is_open_ended && environment->command->is_open_ended(run->options))
		log_hint(&environment->log, "--duration ends a run at a given time with a normal verdict");
	if (WITH_REPORT)
		object = reporting_end(&run->reporting);
	outcome = environment->outcome;
	environment_print_verdict(environment);
	if (!TRANSPORT_CLEANS_UP)
		return outcome;
	if (run->state)
		environment->command->stop(run->state);
	if (environment->loop) {
		loop_deadline_stop(environment->loop);
		loop_timer_stop(&run->shutdown);
		signals_release(run->signals);
		transport_close(environment->transport);
		loop_destroy(environment->loop);
	}
	if (object)
		fputs(object, stdout);
	free(object);
	return outcome;
}

/* A program that passes --json parses the output even if another argument is invalid. */
static bool is_given(const char *option, int argc, char *const *argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], option))
			return true;
	return false;
}

enum outcome command_run(const struct command *command, const char *name, int argc, char *const *argv,
			 struct output *output)
{
	struct common_options *options = common_options_create(command->options_size);
	struct run run = {
		.options = options,
		.environment = {
			.command = command,
			.log = { .name = name, .errors = &run.errors },
			.output = output,
			.begun = clock_now(),
			.to_set_up = options,
		},
	};
	struct environment *environment = &run.environment;
	enum outcome outcome;

	fatal_exit_name(name);
	if (!options) {
		log_errno(&environment->log, NULL, ENOMEM, "starting");
		return OUTCOME_INTERNAL;
	}
	outcome = options_parse(command->options, &environment->log, argc, argv, options, &environment->given);
	environment->log.debug = options->debug;
	if (WITH_REPORT && outcome) {
		options->reporting.json |= is_given("--json", argc, argv);
		options->reporting.json_stream |= is_given("--json-stream", argc, argv);
	}
	environment_record_outcome(environment, outcome);
	if (!outcome && (options->help || options->usage)) {
		command_help(command, name, WITH_HELP && options->usage, output);
	} else if (!outcome && options->version) {
		output_print(output, "%s (rdmatest) %s\n", command->name, RDMATEST_VERSION RDMATEST_COMMIT);
	} else {
		environment_record_outcome(environment, run_command(&run));
		outcome = end_run(&run);
	}
	if (WITH_EXTRAS)
		free(environment->input);
	free(options);
	return outcome;
}

enum outcome command_end(const struct log *log, struct output *output, enum outcome outcome)
{
	int error = output_close(output);

	if (!error)
		return outcome;
	log_errno(log, "standard output", error, "write failed");
	return outcome ? outcome : OUTCOME_INTERNAL;
}
