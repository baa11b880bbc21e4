/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor: checks everything that a connection needs, changes nothing, and names the command that fixes a problem.
 */
#include "cmd/doctor/doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/host.h"
#include "cmd/table.h"
#include "core/units.h"

enum {
	LOOPBACK_TRIED = 16, /* 127.0.0.1 and following */
};

/* clang-format off */
static const struct option options_table[] = {
	OPTION_ROW(OPTION_TEXT, 'a', "address", struct doctor_options, address, "ADDRESS", "", "",
		   OPTION_HELP("Also check the route to another host and ping it; -a is optional"),
		   .operand = OPERAND, .needed_by = FOR_ANOTHER, .brief = true),
	OPTION_ROW(OPTION_INTEGER, 'p', "port", struct doctor_options, port, "PORT", "1 to 65535", "7174",
		   OPTION_HELP("Port of the rping server to ping"), .tags = FOR_ANOTHER, .brief = true),
	TRANSPORT_OPTION(struct doctor_options, TRANSPORT_DEFAULT),
	DEBUG_OPTION(struct doctor_options, 'd'),
	OPTION_REST(common_option_table),
};
/* clang-format on */

static void doctor_finish(struct doctor *doctor)
{
	struct environment *environment = doctor->environment;
	const struct findings *findings = &doctor->findings;
	uint64_t warnings = findings->counts[FINDING_WARN];
	uint64_t failures = findings->counts[FINDING_FAIL];
	bool no_device = doctor->verbs_failure == FINDING_FAIL && !doctor->usable;
	enum outcome outcome = no_device ? OUTCOME_NO_DEVICE : failures ? OUTCOME_FAILED : OUTCOME_OK;
	char count[64], more[64] = "";

	environment_record_outcome(environment, outcome);
	if (environment->outcome)
		snprintf(count, sizeof(count), "%" PRIu64 " of", failures);
	else
		snprintf(count, sizeof(count), "ok:");
	if (warnings)
		snprintf(more, sizeof(more), ", %" PRIu64 " warning%s", warnings, units_plural(warnings));
	fputc('\n', environment->output);
	environment_finish(environment, outcome, &(struct verdict){ .device = NULL }, "%s %" PRIu64 " findings%s%s",
			   count, findings_count(findings), more, no_device ? "; no usable RDMA device" : "");
}

/* Begins a probe, opens a transport and creates a channel. */
static enum outcome open_transport(struct doctor *doctor, const char *name, struct transport **transport,
				   struct channel **channel)
{
	enum outcome outcome;

	finding_begin_probe(doctor);
	outcome = transport_open(name, doctor->environment->loop, &doctor->probe.log, transport);
	if (!outcome)
		outcome = channel_create(*transport, channel);
	if (!outcome)
		return OUTCOME_OK;
	transport_close(*transport);
	*transport = NULL;
	return outcome;
}

/* Finds a free loopback address: each soft process needs its own. */
static enum outcome listen_on_loopback(struct channel *channel, struct address *address)
{
	static const struct endpoint_handlers handlers = { 0 };
	const struct endpoint_options options = {
		.port_space = PORT_SPACE_TCP,
	};
	struct endpoint *listener;
	enum outcome outcome = OUTCOME_FAILED;

	for (uint8_t last = 1; outcome && last <= LOOPBACK_TRIED; last++) {
		*address = (struct address){ .family = ADDRESS_IP4, .bytes = { 127, 0, 0, last } };
		outcome = endpoint_create(ENDPOINT_LISTENER, channel, &options, &handlers, NULL, &listener);
		if (outcome)
			break;
		outcome = endpoint_listen(listener, address);
		endpoint_destroy(listener);
	}
	return outcome;
}

static void check_soft(struct doctor *doctor)
{
	struct transport *soft;
	struct channel *channel;
	struct address address;
	char host[ADDRESS_TEXT_SIZE];
	enum outcome outcome = open_transport(doctor, "soft", &soft, &channel);

	/* soft is not built in. */
	if (outcome == OUTCOME_USAGE)
		return;
	if (!outcome)
		outcome = listen_on_loopback(channel, &address);
	if (outcome)
		finding_add_probe(doctor, doctor->soft_failure, "soft");
	else
		finding_add(doctor, FINDING_OK, "soft", "--transport soft works at %s and needs no RDMA device",
			    address_host(&address, host));
	if (outcome || doctor->soft_failure != FINDING_FAIL) {
		transport_close(soft);
		return;
	}
	doctor->environment->transport = doctor->soft = soft;
	doctor->soft_channel = channel;
}

static bool has_usable_device(const struct doctor *doctor)
{
	for (const struct device *device = doctor->devices; device; device = device->next) {
		if (device->address_count)
			return true;
		/* mckey -M and ucmatose -f gid need no IP address. */
		for (unsigned i = 0; i < device->port_count; i++)
			if (device->ports[i].active && !strcmp(device->ports[i].link_layer, "InfiniBand"))
				return true;
	}
	return false;
}

static void check_remaining(struct doctor *doctor)
{
	doctor->usable = doctor->verbs && has_usable_device(doctor);
	devices_check(doctor);
	if (doctor->verbs) {
		doctor->findings.new_group = true;
		route_report(doctor);
	}
	doctor->findings.new_group = true;
	if (!udp_check(doctor))
		check_soft(doctor);
	if (doctor->options->address)
		target_check(doctor, doctor_finish);
	else
		doctor_finish(doctor);
}

/* The hint of verbs is to create a device of rdma_rxe. Replaces it if this kernel has no rdma_rxe. */
static void correct_hint(struct doctor *doctor)
{
	struct probe *probe = &doctor->probe;
	const char *device = "install an RDMA card, or a kernel with rdma_rxe or siw";

	if (doctor->devices || kernel_may_have(doctor->root, "rdma_rxe"))
		return;
	if (kernel_may_have(doctor->root, "siw"))
		device = "software device: rdma link add siw0 type siw netdev INTERFACE";
	log_text(probe->hint, sizeof(probe->hint), "%s%s", device,
		 WITH_SOFT ? "; without a device: --transport soft" : "");
}

/* explained: earlier findings name the cause of a failure, which then adds none. */
static bool open_verbs(struct doctor *doctor, bool explained)
{
	enum outcome outcome = open_transport(doctor, "verbs", &doctor->verbs, &doctor->verbs_channel);

	if (outcome && outcome != OUTCOME_USAGE && !explained) {
		correct_hint(doctor);
		finding_add_probe(doctor, doctor->verbs_failure, "verbs");
	}
	if (!outcome && doctor->verbs_failure == FINDING_FAIL)
		doctor->environment->transport = doctor->verbs;
	return !outcome;
}

static void doctor_begin(void *context)
{
	struct doctor *doctor = context;
	uint64_t *failures = &doctor->findings.counts[doctor->verbs_failure];
	uint64_t before;

	doctor->devices = devices_read(doctor->root);
	before = *failures;
	kernel_check(doctor);
	doctor->findings.new_group = true;
	kernel_check_files(doctor);
	kernel_check_memory(doctor);
	if (open_verbs(doctor, doctor->devices && *failures > before))
		route_check(doctor, check_remaining);
	else
		check_remaining(doctor);
}

static enum outcome doctor_check(struct environment *environment, const void *all_options)
{
	const struct doctor_options *options = all_options;
	const struct log *log = &environment->log;
	struct address address = { 0 };

	if (!options->address)
		return OUTCOME_OK;
	address_parse(options->address, ADDRESS_FORMAT_IP, &address);
	if (host_check(log, "-a, --address", options->address, &address, "-p", false))
		return OUTCOME_USAGE;
	if (!address.family || !address_is_any(&address))
		return OUTCOME_OK;
	log_error(log, "-a, --address", "'%s' is not a host address", options->address);
	return OUTCOME_USAGE;
}

/* A problem of the selected transport is a failure, of the other one a warning. */
static enum outcome set_failure_statuses(struct doctor *doctor)
{
	struct environment *environment = doctor->environment;
	struct transport *transport;
	enum outcome outcome = transport_open(common_transport(&doctor->options->common), environment->loop,
					      &environment->log, &transport);
	bool soft;

	if (outcome)
		return outcome;
	soft = !transport_opens_devices(transport_name(transport));
	transport_close(transport);
	doctor->verbs_failure = soft ? FINDING_WARN : FINDING_FAIL;
	doctor->soft_failure = soft ? FINDING_FAIL : FINDING_WARN;
	return OUTCOME_OK;
}

static enum outcome doctor_start(struct environment *environment, const void *options, void **state)
{
	struct doctor *doctor = environment_allocate(environment, 1, sizeof(*doctor));
	enum outcome outcome;

	*state = NULL;
	if (!doctor)
		return OUTCOME_INTERNAL;
	doctor->environment = environment;
	doctor->options = options;
	doctor->name = doctor->options->address;
	doctor->root = "";
	outcome = set_failure_statuses(doctor);
	if (outcome) {
		free(doctor);
		return outcome;
	}
	loop_timer_start(environment->loop, &doctor->step, 0, doctor_begin, doctor);
	*state = doctor;
	return OUTCOME_OK;
}

static void stop_all(struct doctor *doctor)
{
	loop_timer_stop(&doctor->step);
	route_stop(doctor);
	target_stop(doctor);
	child_run_stop(&doctor->ping);
}

static void doctor_interrupt(void *state, enum interruption reason)
{
	struct doctor *doctor = state;
	struct environment *environment = doctor->environment;

	stop_all(doctor);
	if (reason != INTERRUPTION_DEADLINE)
		log_error(&environment->log, NULL, "ended early, after %" PRIu64 " findings",
			  findings_count(&doctor->findings));
	environment_record_outcome(environment, OUTCOME_FAILED);
	doctor_finish(doctor);
}

static const struct figure doctor_figures[] = {
	FIGURE(TEXT, "target", struct doctor, name, .flags = FIGURE_LABEL),
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

	stop_all(doctor);
	child_run_free(&doctor->ping);
	transport_close(doctor->verbs);
	transport_close(doctor->soft);
	doctor->environment->transport = NULL;
	devices_free(doctor->devices);
	findings_free(&doctor->findings);
	free(doctor);
}

const struct command doctor_command = {
	.name = "doctor",
	.summary = "check the RDMA set-up of this host, and the route to ADDRESS",
	.synopsis = "[ADDRESS] [-p PORT] [-d] [--transport " TRANSPORT_NAMES "]\n",
	.examples = OPTION_EXAMPLES("                            # this host\n"
				    "192.0.2.7                   # also its route and rping server\n"
				    "--json                      # for programs\n"),
	.options = options_table,
	.options_size = sizeof(struct doctor_options),
	.chooses_transport = true,
	.check = doctor_check,
	.start = doctor_start,
	.interrupt = doctor_interrupt,
	.figures = WITH_REPORT ? doctor_figures_update : NULL,
	.stop = doctor_stop,
};
