/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor: checks a connection's requirements, changes nothing, and names the command that fixes a problem. */
#include "cmd/doctor/doctor.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/units.h"

/* clang-format off */
static const struct option options_table[] = {
	OPTION_ROW(OPTION_TEXT, 'a', "address", struct doctor_options, address, "ADDRESS", "", "",
		   OPTION_HELP("Also check the route to ADDRESS, and ping it; -a may be omitted"),
		   .operand = OPERAND, .needed_by = FOR_PATH | FOR_ANOTHER, .brief = true),
	OPTION_ROW(OPTION_INTEGER, 'p', "port", struct doctor_options, port, "PORT", "1 to 65535", "7174",
		   OPTION_HELP("Port of the rping server to ping"), .tags = FOR_ANOTHER, .brief = true),
	OPTION_ROW(OPTION_TEXT, 'I', "source", struct doctor_options, source, "ADDRESS", "", "",
		   OPTION_HELP("Local address to connect from", "chosen by the route"), .tags = FOR_PATH,
		   .section = SECTION_PATH),
#if WITH_EXTRAS
#if WITH_REPORT
	OPTION_ROW(OPTION_INTEGER, 0, "paths", struct doctor_options, paths, "N", "2 to 64", "", /* UDP_SENDERS_MAX */
		   OPTION_HELP("Also ping ADDRESS over N paths at once, and find their routers; the server needs -P",
			       "one path"),
		   .tags = FOR_ANOTHER),
	OPTION_FLAG_ROW(0, "load", struct doctor_options, load,
			OPTION_HELP("Also ping ADDRESS with long messages, at full rate, for a second"),
			.tags = FOR_ANOTHER),
#endif
	OPTION_ROW(OPTION_INTEGER, 0, "udp-port", struct doctor_options, udp_port, "PORT", "1 to 65535", "",
		   OPTION_HELP("Find the routers of the path with this UDP source port", "4791 over soft, else 49152"),
		   .tags = FOR_ANOTHER),
#endif
	TYPE_OF_SERVICE_OPTION(struct doctor_options, 0),
	TRANSPORT_OPTION(struct doctor_options, TRANSPORT_DEFAULT),
	DEBUG_OPTION(struct doctor_options, 'd'),
	OPTION_REST(path_option_table),
};
/* clang-format on */

static bool has_device(const struct doctor *doctor)
{
	const struct device *device = doctor->verbs ? doctor->devices : NULL;

	while (device && !device->may_work)
		device = device->next;
	return device;
}

static void doctor_finish(struct doctor *doctor, bool early)
{
	struct run *run = doctor->run;
	const struct findings *findings = &doctor->findings;
	uint64_t warnings = findings->counts[FINDING_WARN];
	uint64_t failures = findings->counts[FINDING_FAIL];
	bool no_device = doctor->verbs_selected && (doctor->verbs || !early) && !has_device(doctor);
	enum outcome outcome = no_device ? OUTCOME_NO_DEVICE : failures ? OUTCOME_FAILED : OUTCOME_OK;
	char count[64], more[64] = "";

	if (run->ended) /* by an interruption */
		return;
	run_record_outcome(run, outcome);
	if (early)
		log_text(count, sizeof(count), "ended early, after");
	else if (run->outcome)
		log_text(count, sizeof(count), "%" PRIu64 " of", failures);
	else
		log_text(count, sizeof(count), "ok:");
	if (warnings)
		log_text(more, sizeof(more), ", %" PRIu64 " warning%s", warnings, units_plural(warnings));
	run_print(run, "%s", "");
	run_finish(run, outcome, NULL, "%s %" PRIu64 " finding%s%s%s", count, findings_count(findings),
		   units_plural(findings_count(findings)), more, no_device ? "; no usable RDMA device" : "");
}

/* Resolves the local addresses over verbs. */
static void try_verbs(struct doctor *doctor)
{
	enum outcome outcome = probe_open(doctor, "verbs", &doctor->verbs, &doctor->verbs_channel);

	if (outcome) {
		doctor->verbs_error = doctor->probe.errors.first;
		return;
	}
	doctor->run->transport = doctor->verbs;
	route_check(doctor);
	for (const struct device *device = doctor->devices; device; device = device->next)
		doctor->usable |= device->may_work;
	if (doctor->usable)
		doctor->host.failure = FINDING_WARN;
}

static void check_verbs(struct doctor *doctor)
{
	uint64_t *failures, before;

	doctor->devices = devices_read(doctor->host.root);
	devices_find_rxe(doctor);
	try_verbs(doctor);
	failures = &doctor->findings.counts[doctor->host.failure];
	before = *failures;
	kernel_check(doctor);
	/* Earlier findings may name the cause. */
	if (error_is_set(&doctor->verbs_error) || doctor->host.error)
		host_find_none(&doctor->host);
	if (error_is_set(&doctor->verbs_error) && *failures == before)
		finding_add_error(doctor, doctor->host.failure, "verbs", &doctor->verbs_error);
	devices_check(doctor);
	host_find_held(&doctor->host);
	doctor->findings.new_group = true;
	if (doctor->verbs)
		route_report(doctor);
	doctor->findings.new_group = true;
}

static void doctor_run(void *state)
{
	struct doctor *doctor = state;
	char why[ROUTE_CAUSE_SIZE];

	if (doctor->options->address)
		target_lookup(doctor);
	host_read(&doctor->host);
	if (!sysfs_has("%s/proc/self", doctor->host.root)) {
		finding_add(doctor, FINDING_WARN, "proc",
			    "/proc is not mounted: port holders, container limits and modules were not checked\n"
			    "mount -t proc proc /proc");
		doctor->findings.new_group = true;
	}
	if (WITH_VERBS && doctor->verbs_selected)
		check_verbs(doctor);
	slow_check(doctor);
	soft_check(doctor);
	if (WITH_EXTRAS && route_shares_network(why))
		finding_add(doctor, FINDING_WARN, "address", "%s\n" ROUTE_SHARED_HINT, why);
	if (doctor->options->address)
		target_check(doctor);
	doctor_finish(doctor, false);
}

static enum outcome doctor_check(struct run *run, const void *all_options)
{
	const struct doctor_options *options = all_options;
	const struct log *log = &run->log;
	struct address address = { 0 };

	if (common_check_path(run, &options->common))
		return OUTCOME_USAGE;
	if (options->udp_port && options->paths && !transport_opens_devices(common_transport(&options->common))) {
		log_error(log, "--udp-port", "--paths has its own over soft, from %d on", UDP_PORT_FIRST);
		return OUTCOME_USAGE;
	}
	if (options->udp_port + options->paths > UINT16_MAX + 1) {
		log_error(log, "--udp-port", "with --paths %d at most %d", (int)options->paths,
			  (int)(UINT16_MAX + 1 - options->paths));
		return OUTCOME_USAGE;
	}
	if (!options->address)
		return OUTCOME_OK;
	if (peer_check(log, options->source, EXTRA(options->common.path.interface), "-a, --address", options->address))
		return OUTCOME_USAGE;
	address_parse(options->address, ADDRESS_FORMAT_IP, &address);
	if (!address.family || !address_is_any(&address))
		return OUTCOME_OK;
	log_error(log, "-a, --address", "'%s' is not a host address", options->address);
	return OUTCOME_USAGE;
}

/* Opens the selected transport. A problem of verbs is a failure; soft is then an alternative to it. */
static enum outcome doctor_start(struct run *run, const void *options, void **state)
{
	struct doctor *doctor = *state = run_allocate(run, 1, sizeof(*doctor));
	const char *name;
	struct error error;
	enum outcome outcome;

	if (!doctor)
		return OUTCOME_INTERNAL;
	doctor->run = run;
	doctor->options = options;
	doctor->given = run->given;
	doctor->name = doctor->options->address;
	doctor->host = (struct host){
		.root = "", .failure = FINDING_FAIL, .found = finding_found, .unusable = kernel_unusable
	};
	name = common_transport(&doctor->options->common);
	doctor->verbs_selected = transport_opens_devices(name);
	probe_begin(doctor);
	outcome = transport_open(name, run->loop, &doctor->probe.log, &error,
				 doctor->verbs_selected ? &doctor->verbs : &doctor->soft);
	common_hint_transport(&doctor->options->common, outcome, &error);
	if (outcome)
		log_report(&run->log, &error);
	return outcome;
}

static void doctor_interrupt(void *state, enum interruption reason)
{
	struct doctor *doctor = state;
	struct run *run = doctor->run;

	if (reason != INTERRUPTION_DEADLINE)
		log_error(&run->log, NULL, "interrupted");
	run_record_outcome(run, OUTCOME_FAILED);
	doctor_finish(doctor, true);
}

static const struct figure doctor_figures[] = {
	FIGURE(TEXT, "target", struct doctor, name, .flags = FIGURE_LABEL),
	FIGURE(COUNT, "read", struct doctor, findings.counts[FINDING_READ]),
	FIGURE(COUNT, "ok", struct doctor, findings.counts[FINDING_OK]),
	FIGURE(COUNT, "warnings", struct doctor, findings.counts[FINDING_WARN]),
	FIGURE(COUNT, "failures", struct doctor, findings.counts[FINDING_FAIL]),
	FIGURES_OF_CODE(LIST, "findings", struct doctor, findings, findings_report),
	FIGURES_END,
};

static struct figures doctor_figures_update(void *state)
{
	return (struct figures){ .rows = doctor_figures, .values = state };
}

/* The transports use the probe's log: they are closed before doctor is freed. */
static void doctor_stop(void *state)
{
	struct doctor *doctor = state;

	transport_close(doctor->verbs);
	transport_close(doctor->soft);
	doctor->run->transport = NULL;
	free(doctor->paths);
	devices_free(doctor->devices);
	findings_free(&doctor->findings);
	free(doctor);
}

const struct command doctor_command = {
	.name = "doctor",
	.summary = COMMAND_TEXT("check the RDMA set-up of this host, and the route to ADDRESS"),
	.synopsis = "[ADDRESS] [-p PORT] [-d] [--transport " TRANSPORT_NAMES "]\n",
	.examples = COMMAND_TEXT("                            # this host\n"
				 "192.0.2.7                   # also the route there, and pings\n"
				 "--json                      # for programs\n"),
	.options = options_table,
	.options_size = sizeof(struct doctor_options),
	.chooses_transport = true,
	.check = doctor_check,
	.start = doctor_start,
	.run = doctor_run,
	.interrupt = doctor_interrupt,
	.figures = WITH_REPORT ? doctor_figures_update : NULL,
	.stop = doctor_stop,
};
