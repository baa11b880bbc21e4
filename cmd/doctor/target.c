/* SPDX-License-Identifier: BSD-2-Clause */
/* The way to an address, as a connection would go it, and a ping if somebody answers there. */
#include <inttypes.h>
#include <string.h>

#include "cmd/doctor/doctor.h"
#include "cmd/table.h"

static void no_route(struct doctor *doctor)
{
	/* The way must lead out of the interface of a device; a name must have an address first. */
	probe_report(doctor, FINDING_FAIL, "route",
		     finding_remedy(&doctor->findings, "see %s %s",
				    doctor->target_count ? "ip route get" : "getent ahosts", doctor->options->address));
	doctor_target_known(doctor);
}

/* Such a host can be reached, which is all that matters here. */
static bool is_without_server(const struct error *error)
{
	return strstr(error->cause, "nobody listens there") || strstr(error->cause, "nothing holds UDP port");
}

/* Nobody has answered, not even to refuse: on RoCE that is a UDP port, on iWARP the TCP port of the server itself. */
static const char *remedy_of_silence(struct doctor *doctor)
{
	static const char *const signs[] = { "timed out", "no answer in time", "does not answer" };
	const struct error *error = &doctor->probe.error;
	bool silent = false;

	for (size_t i = 0; !strcmp(error->phase, "connecting") && i < sizeof(signs) / sizeof(signs[0]); i++)
		silent = silent || strstr(error->cause, signs[i]);
	if (!silent || doctor->fabric == FABRIC_INFINIBAND)
		return silent ? "is that host up? if so, there: rdmatest doctor" : NULL;
	if (doctor->fabric == FABRIC_IWARP)
		return finding_remedy(&doctor->findings,
				      "is that host up? if so, firewalls there and between must let TCP port %" PRId64
				      " pass",
				      doctor->options->port);
	return "is that host up? if so, firewalls there and between must let UDP port 4791 (RoCE v2) pass";
}

static void tell_ping(struct doctor *doctor)
{
	const struct child_run *ping = &doctor->ping;
	struct findings *findings = &doctor->findings;
	size_t length;
	const char *verdict = child_run_verdict(ping, &length);

	if (!ping->environment.outcome)
		finding_add(findings, FINDING_OK, "ping", NULL, "%.*s", (int)length, verdict);
	else if (is_without_server(&doctor->probe.error))
		probe_report(doctor, FINDING_WARN, "ping",
			     finding_remedy(findings, "there: rdmatest rping -s -p %" PRId64 "%s",
					    doctor->options->port, doctor->soft ? " --transport soft" : ""));
	else
		probe_report(doctor, FINDING_FAIL, "ping", remedy_of_silence(doctor));
	doctor_target_known(doctor);
}

static void ping_over(struct child_run *ping)
{
	tell_ping(ping->context);
}

static void ping(struct doctor *doctor, const struct address *address)
{
	struct environment outer = *doctor->environment;
	struct child_run_values *arguments = &doctor->arguments;

	probe_begin(doctor);
	outer.log = doctor->probe.log;
	outer.transport = doctor->environment->transport;
	address_host(address, arguments->address);
	snprintf(arguments->port, sizeof(arguments->port), "%" PRId64, doctor->options->port);
	snprintf(arguments->timeout, sizeof(arguments->timeout), "%" PRId64 "ns", doctor->options->common.timeout);
	doctor->ping.ended = ping_over;
	doctor->ping.context = doctor;
	child_run_start(&doctor->ping, &outer, &rping_command, "ping", "-c -V -C 1 -a @address -p @port", arguments);
	if (!doctor->ping.running)
		tell_ping(doctor);
}

/* The GID of that address at any port of the device. */
static const struct gid *find_gid(const struct doctor *doctor, const struct endpoint *target)
{
	const struct device *device = survey_find(doctor->devices, target->domain->device);
	const struct gid *gid = NULL;

	for (unsigned i = 0; device && i < device->port_count && !gid; i++)
		gid = survey_gid(&device->ports[i], &target->local);
	return gid;
}

static void tell_route(struct doctor *doctor, const struct endpoint *target)
{
	const struct gid *gid = find_gid(doctor, target);
	char peer[ADDRESS_TEXT_SIZE];
	char local[ADDRESS_TEXT_SIZE];
	char netdev[SYSFS_NAME_SIZE];
	char by[SYSFS_NAME_SIZE] = "";

	route_interface(&target->local, netdev);
	if (gid)
		snprintf(by, sizeof(by), ", GID %u (%s)", gid->index, gid->type);
	finding_add(&doctor->findings, FINDING_OK, "route", NULL, "to %s from %s%s%s, by %s%s",
		    address_host(&target->peer, peer), address_host(&target->local, local), *netdev ? " on " : "",
		    netdev, target->domain->device, by);
}

static void resolve_next(struct doctor *doctor);

static void target_event(void *owner, struct endpoint *target, const struct endpoint_event *event)
{
	struct doctor *doctor = owner;
	struct address address = target->peer;
	bool resolved = event->kind == EVENT_ROUTE_RESOLVED;

	if (event->kind == EVENT_ADDRESS_RESOLVED)
		return;
	if (resolved) {
		doctor->fabric = target->domain->fabric;
		tell_route(doctor, target);
	}
	doctor->target = NULL;
	endpoint_destroy(target);
	if (resolved)
		ping(doctor, &address);
	else
		resolve_next(doctor);
}

static enum outcome resolve(struct doctor *doctor, struct address *address)
{
	static const struct endpoint_handlers handlers = { .event = target_event };
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

/* The first address of a name that has a route will do; otherwise the last one tells why not. */
static void resolve_next(struct doctor *doctor)
{
	while (doctor->target_next < doctor->target_count) {
		probe_begin(doctor);
		if (!resolve(doctor, &doctor->targets[doctor->target_next++]))
			return;
		target_stop(doctor);
	}
	no_route(doctor);
}

static void addresses_found(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct doctor *doctor = owner;

	(void)outcome;
	memcpy(doctor->targets, addresses, count * sizeof(*addresses));
	doctor->target_count = count;
	resolve_next(doctor);
}

void target_check(struct doctor *doctor)
{
	const char *address = doctor->options->address;

	doctor->findings.group_over = true;
	if (!doctor->environment->transport) {
		finding_add(&doctor->findings, FINDING_WARN, "route", NULL, "to %s: not looked for, see above",
			    address);
		doctor_target_known(doctor);
		return;
	}
	probe_begin(doctor);
	resolver_start(&doctor->resolver, doctor->environment->loop, &doctor->probe.log, address, ADDRESS_FORMAT_ANY,
		       doctor->options->common.timeout, addresses_found, doctor);
}

void target_stop(struct doctor *doctor)
{
	resolver_stop(&doctor->resolver);
	endpoint_destroy(doctor->target);
	doctor->target = NULL;
}
