/* SPDX-License-Identifier: BSD-2-Clause */
/* The route to ADDRESS, as the transport resolves it for a connection, and a ping. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/doctor/doctor.h"

enum {
	FIRST_SIZE = 100,   /* of the pings: the default of rping */
	PACKETS = 4,	    /* of the path MTU, in the longest ping */
	MTU_UNKNOWN = 1024, /* what it is then taken for */
};

static void no_route(struct doctor *doctor)
{
	const char *command = doctor->resolver.count ? "ip route get" : "getent ahosts";

	/* Without look-ups the error asks for a numeric address. */
	if (WITH_NAMES || doctor->resolver.count)
		error_hint(&doctor->probe.errors.first, "see %s %s", command, doctor->options->address);
	finding_add_error(doctor, FINDING_FAIL, "route", &doctor->probe.errors.first);
	doctor->next(doctor);
}

/*
 * A firewall must accept UDP port 4791 for RoCE, the server's own TCP port for iWARP. The ping itself refers its user
 * to the doctor.
 */
static void hint_at_firewall(struct doctor *doctor)
{
	struct error *error = &doctor->probe.errors.first;
	bool tcp = doctor->fabric == FABRIC_IWARP;

	*error->hint = '\0';
	if (doctor->fabric == FABRIC_INFINIBAND)
		error_hint(error, "check that the host is up, then run there: rdmatest doctor");
	else
		error_hint(error, "check that the host is up and that firewalls accept %s port %" PRId64 "%s",
			   tcp ? "TCP" : "UDP", tcp ? doctor->options->port : 4791, tcp ? "" : " (RoCE v2)");
}

/*
 * Some pings were answered: their sizes are 100 (the default), 128, 256 and so on. A longer packet is lost on the way,
 * or the longest that a device or switch lets through is shorter than the path MTU.
 */
static void add_lost_size(struct doctor *doctor, unsigned answered)
{
	const struct error *error = &doctor->probe.errors.first;
	uint32_t passed = answered == 1 ? FIRST_SIZE : UINT32_C(64) << (answered - 1), lost = UINT32_C(64) << answered;

	finding_add(doctor, FINDING_FAIL, "ping",
		    "pings of up to %" PRIu32 " bytes are answered, of %" PRIu32 " not (path MTU %" PRIu32
		    "): %s\n%s\n%s",
		    passed, lost, doctor->mtu, error->cause,
		    remedy_find(PROBLEM_LENGTH, doctor->facts, NULL, NULL).text, error->code);
}

static void ping_ended(struct child_run *ping)
{
	struct doctor *doctor = ping->context;
	enum error_kind error = doctor->probe.errors.first.kind;
	const char *verdict = ping->environment.verdict;
	unsigned answered = (unsigned)strtoul(verdict, NULL, 10);

	if (error == ERROR_NO_REPLY)
		hint_at_firewall(doctor);
	if (!ping->environment.outcome)
		finding_add(doctor, FINDING_OK, "ping", "%s", verdict);
	else if (answered)
		add_lost_size(doctor, answered);
	else /* a host without a listener can be reached */
		finding_add_error(doctor, error == ERROR_NO_LISTENER ? FINDING_WARN : FINDING_FAIL, "ping",
				  &doctor->probe.errors.first);
	doctor->next(doctor);
}

static void ping_target(struct doctor *doctor, const struct address *address)
{
	struct environment parent = *doctor->environment;
	char arguments[CHILD_RUN_ARGUMENTS_SIZE], host[ADDRESS_TEXT_SIZE];

	finding_begin_probe(doctor);
	parent.log = doctor->probe.log;
	/* The default size, then up to several packets; a stock server gets only that size. */
	snprintf(arguments, sizeof(arguments),
		 WITH_REPORT ? "-c -V -C 1 -a %s -p %" PRId64 " -S 0-%" PRIu32 : "-c -V -C 1 -a %s -p %" PRId64,
		 address_host(address, host), doctor->options->port, PACKETS * doctor->mtu);
	doctor->ping.ended = ping_ended;
	doctor->ping.context = doctor;
	child_run_start(&doctor->ping, &parent, &rping_command, "ping", doctor->options->common.timeout, arguments);
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

/* That of soft's route, or of a port of the device: route.c knows it where an address leads to the port. */
static uint32_t find_mtu(const struct doctor *doctor, const struct endpoint *target)
{
	const struct device *device = devices_find(doctor->devices, target->domain->device);
	uint32_t mtu = target->max_datagram;

	for (unsigned i = 0; device && i < device->port_count && !mtu; i++)
		mtu = device->ports[i].mtu;
	return mtu ? mtu : MTU_UNKNOWN;
}

static void add_route(struct doctor *doctor, const struct endpoint *target)
{
	const struct gid *gid = find_gid(doctor, target);
	char peer[ADDRESS_TEXT_SIZE];
	char local[ADDRESS_TEXT_SIZE];
	char netdev[SYSFS_TEXT_SIZE];
	char gid_text[2 * SYSFS_TEXT_SIZE] = "";

	route_interface(&target->local, netdev);
	if (gid)
		snprintf(gid_text, sizeof(gid_text), ", GID %u (%s)", gid->index, gid->type);
	finding_add(doctor, FINDING_OK, "route", "to %s from %s%s%s, by %s%s", address_host(&target->peer, peer),
		    address_host(&target->local, local), *netdev ? " on " : "", netdev, target->domain->device,
		    gid_text);
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
		doctor->mtu = find_mtu(doctor, target);
		add_route(doctor, target);
	}
	if (!resolved)
		finding_probe_failed(doctor, target->transport);
	doctor->target = NULL;
	endpoint_destroy(target);
	if (!resolved)
		target_resolve_next(doctor);
	else if (COMMAND_rping)
		ping_target(doctor, &address);
	else
		doctor->next(doctor);
}

static enum outcome resolve_target(struct doctor *doctor, struct address *address)
{
	static const struct endpoint_handlers handlers = { .event = target_resolved };
	struct channel *channel = doctor->verbs_selected ? doctor->verbs_channel : doctor->soft_channel;
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
	while (doctor->target_next < doctor->resolver.count) {
		finding_begin_probe(doctor);
		if (!resolve_target(doctor, &doctor->resolver.addresses[doctor->target_next++]))
			return;
		finding_probe_failed(doctor, doctor->environment->transport);
		target_stop(doctor);
	}
	no_route(doctor);
}

void target_lookup(struct doctor *doctor)
{
	struct resolver *resolver = &doctor->resolver;

	finding_begin_probe(doctor);
	resolver_start(resolver, &doctor->probe.log, doctor->options->address, ADDRESS_FORMAT_ANY, 0);
	lookup_finish(resolver, doctor->environment, &doctor->options->common, ADDRESS_NONE);
	doctor->resolver_probe = doctor->probe;
}

void target_check(struct doctor *doctor, doctor_step *next)
{
	const char *address = doctor->options->address;

	doctor->next = next;
	doctor->findings.new_group = true;
	if (!doctor->environment->transport) {
		finding_add(doctor, FINDING_WARN, "route", "to %s: not checked, see above", address);
		doctor->next(doctor);
		return;
	}
	doctor->probe = doctor->resolver_probe;
	target_resolve_next(doctor);
}

void target_stop(struct doctor *doctor)
{
	endpoint_destroy(doctor->target);
	doctor->target = NULL;
}
