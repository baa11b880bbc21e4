/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/command.h"

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
/* Added to --timeout, so that a shutdown step's own timeout comes first, and names the silent peer. */
#define SHUTDOWN_MARGIN (250 * CLOCK_NS_PER_MS)
/* A person sees after this time why a shutdown takes longer. */
#define SHUTDOWN_SILENT CLOCK_NS_PER_S

struct invocation {
	struct common_options *options;
	void *state;
	enum interruption interruption; /* 0: none */
	struct run run;
	struct errors errors;
	struct loop_signal signals[SIGNALS];
	struct loop_timer shutdown; /* limits the time of an orderly shutdown */
	struct reporting reporting;
};

/* ---- set up ---- */

static void print_ready(struct run *run, const struct address *address, const char *line)
{
	struct report *record = run_begin_record(run, "ready");
	char host[ADDRESS_TEXT_SIZE];

	if (record) {
		report_text(record, "address", address_host(address, host));
		report_count(record, "port", address->port);
		report_close(record);
	}
	run_print(run, "%s", line);
}

/* --prometheus's directory may belong to another user. */
static unsigned kept_privileges(const struct common_options *options)
{
	const struct reporting_options *reporting = &options->reporting;

	return WITH_REPORT && reporting->prometheus && !reporting_is_metrics(reporting) ? PRIVILEGE_FILES : 0;
}

void run_drop_privileges(const struct run *run, unsigned kept)
{
	const struct common_options *options = run->to_set_up;

	/* doctor and selftest may use another transport than the options'. */
	if (options &&
	    !transport_opens_devices(run->transport ? transport_name(run->transport) : common_transport(options)))
		privileges_drop(&run->log, kept | kept_privileges(options));
}

static void set_up_once(struct run *run)
{
	if (WITH_REPORT && run->to_set_up && run->reporting)
		reporting_ready(run->reporting);
	run_drop_privileges(run, 0);
	run->to_set_up = NULL;
}

/* The working directory of a background server: it writes a relative --prometheus until its end. */
static const char *folder_of(const struct run *run)
{
	const char *file = WITH_REPORT && run->reporting ? run->reporting->prometheus : NULL;

	return file && *file != '/' ? "." : "/";
}

/* Until a server receives something, the kernel may be dropping its client's packets. */
static void check_drops(void *context)
{
	struct run *run = context;
	const struct network_counter *counter = transport_counters(run->transport);
	char text[DROPS_SIZE];

	while (counter && !counter->increase)
		counter = counter->next;
	if (counter)
		return;
	if (drops_since(&run->transport->drops, text))
		log_hint(&run->log, "%s", text);
	else /* less often with time: an idle server sleeps */
		loop_timer_start(run->loop, &run->waiting, clock_now() - run->begun, check_drops, run);
}

/* Drops privileges before the ready line, because its readers connect. */
bool run_setup_done(struct run *run, const struct address *address, const char *line)
{
	enum outcome outcome = OUTCOME_OK;

	set_up_once(run);
	if (line)
		print_ready(run, address, line);
	if (WITH_EXTRAS && line && run->daemon) {
		run_print(run, "%ld", (long)getpid());
		outcome = output_is_lost(run->output) ? OUTCOME_INTERNAL
						      : daemon_ready(&run->log, run->daemon, folder_of(run));
	}
	if (outcome)
		run_finish(run, outcome, NULL, "set-up did not complete");
	if (HAS_CHILD_RUNS && line && run->child) {
		run->ready = *address;
		loop_stop(run->loop);
	} else if (WITH_EXTRAS && line && run->transport && !transport_opens_devices(transport_name(run->transport))) {
		loop_timer_start(run->loop, &run->waiting, CLOCK_NS_PER_S, check_drops, run);
	}
	return !outcome;
}

/* Debian's /etc/hosts gives the host's own name a loopback address. A number, or "localhost", is intentional. */
static void hint_unreachable(const struct run *run, const struct endpoint *listener, const char *host,
			     bool names_addresses)
{
	bool devices = transport_opens_devices(transport_name(listener->transport));
	const struct address *local = &listener->local;
	char text[ADDRESS_TEXT_SIZE], why[ROUTE_CAUSE_SIZE];
	struct address address;
	struct error error;

	if (host && address_is_loopback(local) && !strstr(host, "localhost") &&
	    !address_parse(host, ADDRESS_FORMAT_ANY, &address))
		log_hint(&run->log, "%s is %s (/etc/hosts), which only this host reaches", host,
			 address_host(local, text));
	else if (address_is_loopback(local) && devices)
		log_hint(&run->log, "over verbs a loopback address means all devices: any client may connect");
	else if (!devices && route_cause_port(local, why))
		log_hint(&run->log, "%s", why);
	else if (!devices && !address_is_any(local) && !route_leads_here(local, true))
		log_hint(&run->log, "no client can connect yet: %s is not an address of this host (%s)",
			 address_host(local, text),
			 route_is_broadcast(local) ? "a broadcast address here" : "ip_nonlocal_bind");
	else if (!devices && address_is_any(local) && route_ip6_is_off(local, why))
		log_hint(&run->log, "%s", why);
	/* The kernel's listener on 0.0.0.0 serves both families. */
	else if (!devices && local->family == ADDRESS_IP4 && address_is_any(local) && interface_has_ip6_only())
		log_hint(&run->log, "no client can connect yet: this host has IPv6 addresses only, add --ipv6");
	else if (!(devices && names_addresses) && !endpoint_is_reachable(listener, &error)) {
		log_hint(&run->log, "no client can connect yet: %s%s%s", error.cause, *error.hint ? "; " : "",
			 error.hint);
	} else if (!devices && names_addresses && route_is_alone(why)) {
		log_hint(&run->log, "only this host can connect: %s", why);
	}
}

bool run_listens(struct run *run, const struct endpoint *listener, const char *host, const char *name, const char *word)
{
	char address[ADDRESS_TEXT_SIZE], local[ENDPOINT_ADDRESSES_SIZE], line[512];

	log_text(line, sizeof(line), "%s: %s on %s%s", name, word, address_text(&listener->local, address),
		 endpoint_local_addresses(listener, local));
	if (WITH_EXTRAS)
		hint_unreachable(run, listener, host, *local);
	return run_setup_done(run, &listener->local, line);
}

/* ---- help ---- */

/* Prints the lines after the name, the first with a prefix, the others aligned below. */
static void print_lines(const char *lines, const char *prefix, const char *name, struct output *output)
{
	int indent = (int)strlen(prefix);

	while (*lines) {
		size_t length = strcspn(lines, "\n");

		run_print_help(output, "%*s%s %.*s", indent, prefix, name, (int)length, lines);
		prefix = "";
		lines += length + (lines[length] == '\n');
	}
}

void command_help(const struct command *command, const char *name, bool brief, struct output *output)
{
	print_lines(command->synopsis, "Usage: ", name, output);
	if (WITH_HELP) {
		output_print(output, "\n");
		run_print_help(output, "%s - %s", command->name, command->summary);
	}
	options_help(command->options, brief, output);
	if (!brief || !WITH_HELP)
		return;
	output_print(output, "\nExamples:\n");
	print_lines(command->examples, "  ", name, output);
}

/* ---- the run ---- */

/* Ends the run instead of the command. */
static void abort_run(struct invocation *invocation)
{
	run_finish(&invocation->run, OUTCOME_FAILED, NULL, "shutdown did not complete");
}

static void shutdown_timeout(void *context)
{
	struct invocation *invocation = context;
	char limit[UNITS_TEXT_SIZE];

	if (invocation->run.ended)
		return;
	if (invocation->interruption == INTERRUPTION_SIGNAL)
		log_error(&invocation->run.log, NULL, "shutdown exceeded --timeout (%s)",
			  units_duration(invocation->options->timeout, limit));
	abort_run(invocation);
}

static void interrupt(struct invocation *invocation, enum interruption interruption, int64_t limit)
{
	invocation->interruption = interruption;
	loop_timer_start(invocation->run.loop, &invocation->shutdown, limit, shutdown_timeout, invocation);
	invocation->run.command->interrupt(invocation->state, interruption);
}

static void shutdown_takes_longer(void *context)
{
	struct invocation *invocation = context;
	int64_t timeout = invocation->options->timeout;
	char limit[UNITS_TEXT_SIZE];

	if (invocation->run.ended)
		return;
	log_hint(&invocation->run.log, "ending, which may wait for peers for %s; Ctrl-C again ends at once",
		 units_duration(timeout, limit));
	loop_timer_start(invocation->run.loop, &invocation->shutdown, timeout + SHUTDOWN_MARGIN - SHUTDOWN_SILENT,
			 shutdown_timeout, invocation);
}

/* Later than the shutdown's limit, with as long again for the clean-up. */
static int64_t watchdog_limit(const struct invocation *invocation)
{
	return 2 * invocation->options->timeout + CLOCK_NS_PER_S;
}

static void signal_received(void *context)
{
	struct invocation *invocation = context;

	if (invocation->interruption || invocation->run.ended)
		return;
	if (!WITH_DIAGNOSTICS) {
		signals_release(invocation->signals);
		watchdog_start(watchdog_limit(invocation));
	}
	output_end_echo(invocation->run.output);
	if (WITH_EXTRAS && signals_out_of_time())
		log_hint(&invocation->run.log, "the limit of processor time is reached (ulimit -t)");
	interrupt(invocation, INTERRUPTION_SIGNAL, invocation->options->timeout + SHUTDOWN_MARGIN);
	if (run_live(&invocation->run) >= LIVE_ROWS && invocation->options->timeout > SHUTDOWN_SILENT)
		loop_timer_start(invocation->run.loop, &invocation->shutdown, SHUTDOWN_SILENT, shutdown_takes_longer,
				 invocation);
}

/* Called after the phases that the deadline ends. Ends a run that is in none, such as a server waiting for a client. */
static void deadline_expired(void *context)
{
	struct invocation *invocation = context;
	char text[LOOP_PHASE_TEXT_SIZE];

	if (invocation->run.ended)
		return;
	log_error(&invocation->run.log, NULL, "%s", loop_phase_text(invocation->run.loop, 0, text));
	loop_deadline_stop(invocation->run.loop);
	run_record_outcome(&invocation->run, OUTCOME_FAILED);
	/* A signal has already started the shutdown: it gets no more time. */
	if (invocation->interruption)
		abort_run(invocation);
	else
		interrupt(invocation, INTERRUPTION_DEADLINE, SHUTDOWN_AT_DEADLINE);
}

/* The transport is open and the loop exists. */
static enum outcome run_loop(struct invocation *invocation)
{
	struct run *run = &invocation->run;
	const struct command *command = run->command;
	enum outcome outcome = OUTCOME_OK;

	if (invocation->options->deadline) {
		loop_deadline_start(run->loop, invocation->options->deadline, deadline_expired, invocation);
		watchdog_start(invocation->options->deadline + watchdog_limit(invocation));
	}
	if (command->is_open_ended && command->is_open_ended(invocation->options))
		signal(SIGPIPE, SIG_DFL);
	signals_catch(run->loop, invocation->signals, watchdog_limit(invocation), signal_received, invocation);
	if (WITH_REPORT)
		outcome = reporting_begin(&invocation->reporting);
	if (outcome == OUTCOME_OK)
		outcome = command->start(run, invocation->options, &invocation->state);
	if (outcome)
		return outcome;
	if (WITH_REPORT)
		outcome = reporting_start(&invocation->reporting, invocation->state);
	if (outcome)
		return outcome;
	if (HAS_CHILD_RUNS && run->command->run) {
		run->command->run(invocation->state);
		return OUTCOME_OK;
	}
	/* Over soft this process parses packets from now on. Further connection attempts, and groups, open sockets. */
	run_drop_privileges(run, PRIVILEGE_BUFFERS);
	run_wait(run);
	return OUTCOME_OK;
}

static enum outcome run_open_transport(struct invocation *invocation)
{
	struct run *run = &invocation->run;
	const char *name = common_transport(invocation->options);
	enum outcome outcome = OUTCOME_OK;
	struct error error;

	if (WITH_EXTRAS || WITH_SOFT)
		outcome = common_check_path(run, invocation->options);
	if (outcome)
		return outcome;
	/* The kernel's RDMA refuses a process whose credentials have changed since it opened the device. */
	if (transport_opens_devices(name))
		privileges_drop(&run->log, PRIVILEGE_PORTS | kept_privileges(invocation->options));
	outcome = common_open(invocation->options, name, run, &error);
	if (outcome)
		log_report(&run->log, &error);
	else if (WITH_EXTRAS)
		outcome = transport_check_path(run->transport, &invocation->options->path);
	return outcome;
}

/* Standard output has one form only. */
static enum outcome discard_lines(struct invocation *invocation)
{
	const struct reporting_options *options = &invocation->options->reporting;
	bool reports = WITH_REPORT && (options->json || options->json_stream || reporting_is_metrics(options));

	if (!(reports || options->quiet) || output_discard(invocation->run.output))
		return OUTCOME_OK;
	log_errno(&invocation->run.log, "/dev/null", errno, "opening");
	return OUTCOME_INTERNAL;
}

/* From the options to the end of the loop. */
static enum outcome run_command(struct invocation *invocation)
{
	struct run *run = &invocation->run;
	const struct command *command = run->command;
	enum outcome outcome = run->outcome;

	if (WITH_REPORT)
		outcome = reporting_choose(&invocation->reporting, run, invocation->options);
	if (!outcome && EXTRA(invocation->options->daemon))
		outcome = daemon_begin(&run->log, &run->daemon);
	if (!outcome)
		outcome = discard_lines(invocation);
	if (!outcome && command->check)
		outcome = command->check(run, invocation->options);
	if (!outcome && EXTRA(command->read))
		outcome = command->read(run, invocation->options);
	if (outcome)
		return outcome;
	run->loop = loop_create();
	if (!run->loop) {
		log_errno(&run->log, NULL, errno, "creating the event loop");
		return OUTCOME_INTERNAL;
	}
	if (!HAS_CHILD_RUNS || !command->chooses_transport)
		outcome = run_open_transport(invocation);
	return outcome ? outcome : run_loop(invocation);
}

/*
 * Summary and verdict come before the clean-up, which may block. The JSON object is printed last: a process that ends
 * in the clean-up prints none, because its exit code differs. Returns the outcome in verdict and object.
 */
static enum outcome end_run(struct invocation *invocation)
{
	struct run *run = &invocation->run;
	enum outcome outcome;
	char *object = NULL;

	if (run->ended && output_is_lost(run->output)) {
		const struct error lost = { .object = "standard output", .cause = "write failed" };

		/* command_end() prints it: main() also has one for a run that has not begun. */
		if (WITH_REPORT)
			log_keep(&run->log, &lost);
		run_record_outcome(run, OUTCOME_INTERNAL);
	}
	if (WITH_EXTRAS && run->outcome == OUTCOME_FAILED && run->loop &&
	    (invocation->interruption == INTERRUPTION_DEADLINE || loop_deadline_passed(run->loop)) &&
	    run->command->is_open_ended && run->command->is_open_ended(invocation->options))
		log_hint(&run->log, "--duration ends a run at a given time with a normal verdict");
	if (WITH_REPORT)
		object = reporting_end(&invocation->reporting);
	outcome = run->outcome;
	run_print_verdict(run);
	if (!TRANSPORT_CLEANS_UP)
		return outcome;
	if (invocation->state)
		run->command->stop(invocation->state);
	if (run->loop) {
		loop_deadline_stop(run->loop);
		loop_timer_stop(&invocation->shutdown);
		signals_release(invocation->signals);
		transport_close(run->transport);
		loop_destroy(run->loop);
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
	struct invocation invocation = {
		.options = options,
		.run = {
			.command = command,
			.log = { .name = name, .errors = &invocation.errors },
			.output = output,
			.begun = clock_now(),
			.to_set_up = options,
		},
	};
	struct run *run = &invocation.run;
	enum outcome outcome;

	fatal_exit_name(name);
	if (!options) {
		log_errno(&run->log, NULL, ENOMEM, "starting");
		return OUTCOME_INTERNAL;
	}
	outcome = options_parse(command->options, &run->log, argc, argv, options, &run->given);
	run->log.debug = options->debug;
	if (WITH_REPORT && outcome) {
		options->reporting.json |= is_given("--json", argc, argv);
		options->reporting.json_stream |= is_given("--json-stream", argc, argv);
	}
	run_record_outcome(run, outcome);
	if (!outcome && (options->help || options->usage)) {
		command_help(command, name, WITH_HELP && options->usage, output);
	} else if (!outcome && options->version) {
		output_print(output, "%s (rdmatest) %s\n", command->name, RDMATEST_VERSION RDMATEST_COMMIT);
	} else {
		run_record_outcome(run, run_command(&invocation));
		outcome = end_run(&invocation);
	}
	if (WITH_EXTRAS)
		free(run->input);
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
