/* SPDX-License-Identifier: BSD-2-Clause */
/* The route to ADDRESS, as the transport resolves it for a connection, and a ping. */
#include <inttypes.h>
#include <string.h>

#include "cmd/doctor/doctor.h"
#include "cmd/table.h"

static void no_route(struct doctor *doctor)
{
	struct findings *findings = &doctor->findings;
	const char *command = doctor->target_count ? "ip route get" : "getent ahosts";

	finding_add_probe(findings, FINDING_FAIL, "route",
			  finding_remedy(findings, "see %s %s", command, doctor->options->address));
	doctor->next(doctor);
}

/* NULL if the host has answered. A firewall must accept UDP port 4791 for RoCE, the server's own TCP port for iWARP. */
static const char *no_reply_remedy(struct doctor *doctor)
{
	if (doctor->findings.probe.error.kind != ERROR_NO_REPLY)
		return NULL;
	if (doctor->fabric == FABRIC_INFINIBAND)
		return "check that the host is up, then run there: rdmatest doctor";
	if (doctor->fabric == FABRIC_IWARP)
		return finding_remedy(&doctor->findings,
				      "check that the host is up and that firewalls accept TCP port %" PRId64,
				      doctor->options->port);
	return "check that the host is up and that firewalls accept UDP port 4791 (RoCE v2)";
}

static void ping_ended(struct child_run *ping)
{
	struct doctor *doctor = ping->context;
	struct findings *findings = &doctor->findings;
	size_t length;
	const char *verdict = child_run_verdict(ping, &length);

	if (!ping->environment.outcome)
		finding_add(findings, FINDING_OK, "ping", NULL, "%.*s", (int)length, verdict);
	else if (findings->probe.error.kind == ERROR_NO_LISTENER) /* such a host can be reached */
		finding_add_probe(findings, FINDING_WARN, "ping",
				  finding_remedy(findings, "run there: rdmatest rping -s -p %" PRId64 "%s",
						 doctor->options->port, doctor->soft ? " --transport soft" : ""));
	else
		finding_add_probe(findings, FINDING_FAIL, "ping", no_reply_remedy(doctor));
	doctor->next(doctor);
}

static void ping(struct doctor *doctor, const struct address *address)
{
	struct environment parent = *doctor->environment;
	struct child_run_values *values = &doctor->ping_values;

	finding_begin_probe(&doctor->findings);
	parent.log = doctor->findings.probe.log;
	address_host(address, values->address);
	snprintf(values->port, sizeof(values->port), "%" PRId64, doctor->options->port);
	snprintf(values->timeout, sizeof(values->timeout), "%" PRId64 "ns", doctor->options->common.timeout);
	doctor->ping.ended = ping_ended;
	doctor->ping.context = doctor;
	child_run_start(&doctor->ping, &parent, &rping_command, "ping", "-c -V -C 1 -a @address -p @port", values);
	if (!doctor->ping.running)
		ping_ended(&doctor->ping);
}

/* The GID of the target's local address, from any port of its device. */
static const struct gid *find_gid(const struct doctor *doctor, const struct endpoint *target)
{
	const struct device *device = devices_find(doctor->devices, target->domain->device);
	const struct gid *gid = NULL;

	for (unsigned i = 0; device && i < device->port_count && !gid; i++)
		gid = devices_gid(&device->ports[i], &target->local);
	return gid;
}

static void add_route(struct doctor *doctor, const struct endpoint *target)
{
	const struct gid *gid = find_gid(doctor, target);
	char peer[ADDRESS_TEXT_SIZE];
	char local[ADDRESS_TEXT_SIZE];
	char netdev[SYSFS_NAME_SIZE];
	char gid_text[SYSFS_NAME_SIZE] = "";

	route_interface(&target->local, netdev);
	if (gid)
		snprintf(gid_text, sizeof(gid_text), ", GID %u (%s)", gid->index, gid->type);
	finding_add(&doctor->findings, FINDING_OK, "route", NULL, "to %s from %s%s%s, by %s%s",
		    address_host(&target->peer, peer), address_host(&target->local, local), *netdev ? " on " : "",
		    netdev, target->domain->device, gid_text);
}

static void target_resolve_next(struct doctor *doctor);

static void target_resolved(void *context, struct endpoint *target, const struct endpoint_event *event)
{
	struct doctor *doctor = context;
	struct address address = target->peer;
	bool resolved = event->kind == EVENT_ROUTE_RESOLVED;

	if (event->kind == EVENT_ADDRESS_RESOLVED)
		return;
	if (resolved) {
		doctor->fabric = target->domain->fabric;
		add_route(doctor, target);
	}
	doctor->target = NULL;
	endpoint_destroy(target);
	if (!resolved)
		target_resolve_next(doctor);
	else if (COMMAND_rping)
		ping(doctor, &address);
	else
		doctor->next(doctor);
}

static enum outcome resolve_target(struct doctor *doctor, struct address *address)
{
	static const struct endpoint_handlers handlers = { .event = target_resolved };
	struct channel *channel = doctor->soft ? doctor->soft_channel : doctor->verbs_channel;
	const struct endpoint_options options = {
		.port_space = PORT_SPACE_TCP,
		.timeout = doctor->options->common.timeout,
	};
	enum outcome outcome =
		endpoint_create(ENDPOINT_CONNECTION, channel, &options, &handlers, doctor, &doctor->target);

	address->port = (uint16_t)doctor->options->port;
	if (!outcome)
		outcome = endpoint_resolve(doctor->target, NULL, address);
	return outcome;
}

/* Tries the addresses of a name until one has a route. The finding has the error of the last one. */
static void target_resolve_next(struct doctor *doctor)
{
	while (doctor->target_next < doctor->target_count) {
		finding_begin_probe(&doctor->findings);
		if (!resolve_target(doctor, &doctor->targets[doctor->target_next++]))
			return;
		target_stop(doctor);
	}
	no_route(doctor);
}

static void target_addresses_found(void *context, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct doctor *doctor = context;

	(void)outcome;
	memcpy(doctor->targets, addresses, count * sizeof(*addresses));
	doctor->target_count = count;
	target_resolve_next(doctor);
}

void target_check(struct doctor *doctor, doctor_step *next)
{
	struct findings *findings = &doctor->findings;
	const char *address = doctor->options->address;

	doctor->next = next;
	findings->new_group = true;
	if (!doctor->environment->transport) {
		finding_add(findings, FINDING_WARN, "route", NULL, "to %s: not checked, see above", address);
		doctor->next(doctor);
		return;
	}
	finding_begin_probe(findings);
	resolver_start(&doctor->resolver, doctor->environment->loop, &findings->probe.log, address, ADDRESS_FORMAT_ANY,
		       doctor->options->common.timeout, target_addresses_found, doctor);
}

void target_stop(struct doctor *doctor)
{
	resolver_stop(&doctor->resolver);
	endpoint_destroy(doctor->target);
	doctor->target = NULL;
}
