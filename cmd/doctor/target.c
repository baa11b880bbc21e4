/* SPDX-License-Identifier: BSD-2-Clause */
/* The route to ADDRESS, as the transport resolves it for a connection, and a ping. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/child_run.h"
#include "cmd/doctor/doctor.h"

enum {
	FIRST_SIZE = 100,   /* of the pings: the default of rping */
	PACKETS = 4,	    /* of the path MTU, in the longest ping */
	MTU_UNKNOWN = 1024, /* what it is then taken for */
};

static void no_route(struct doctor *doctor)
{
	bool known = doctor->resolver.count;
	struct error *error = known ? &doctor->probe.errors.first : &doctor->lookup_error;

	/* Without look-ups the error asks for a numeric address. */
	if (WITH_NAMES || known)
		error_hint(error, "see %s %s", known ? "ip route get" : "getent ahosts", doctor->options->address);
	finding_add_error(doctor, FINDING_FAIL, "route", error);
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

static void ping_target(struct doctor *doctor, const struct address *address)
{
	struct child_run ping = { .running = false };
	struct environment parent = *doctor->environment;
	const struct error *error = &doctor->probe.errors.first;
	char arguments[CHILD_RUN_ARGUMENTS_SIZE], host[ADDRESS_TEXT_SIZE];
	unsigned answered;
	int length;

	probe_begin(doctor);
	parent.log = doctor->probe.log;
	/* The default size, then up to several packets; a stock server gets only that size. */
	length = snprintf(arguments, sizeof(arguments), "-c -V -C 1 -a %s -p %" PRId64, address_host(address, host),
			  doctor->options->port);
	if (WITH_REPORT)
		log_text(arguments + length, sizeof(arguments) - (size_t)length, " -S 0-%" PRIu32,
			 PACKETS * doctor->mtu);
	child_run_start(&ping, &parent, &rping_command, "ping", doctor->options->common.timeout, arguments);
	while (child_run_goes_on(&ping) && environment_wait(doctor->environment))
		;
	child_run_stop(&ping);
	answered = (unsigned)strtoul(ping.environment.verdict, NULL, 10);
	if (error->kind == ERROR_NO_REPLY)
		hint_at_firewall(doctor);
	if (!ping.environment.outcome)
		finding_add(doctor, FINDING_OK, "ping", "%s", ping.environment.verdict);
	else if (answered)
		add_lost_size(doctor, answered);
	else /* a host without a listener can be reached */
		finding_add_error(doctor, error->kind == ERROR_NO_LISTENER ? FINDING_WARN : FINDING_FAIL, "ping",
				  error);
	child_run_free(&ping);
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
		log_text(gid_text, sizeof(gid_text), ", GID %u (%s)", gid->index, gid->type);
	finding_add(doctor, FINDING_OK, "route", "to %s from %s%s%s, by %s%s", address_host(&target->peer, peer),
		    address_host(&target->local, local), *netdev ? " on " : "", netdev, target->domain->device,
		    gid_text);
}

static enum outcome resolve_target(struct doctor *doctor, struct address *address)
{
	struct channel *channel = doctor->verbs_selected ? doctor->verbs_channel : doctor->soft_channel;
	struct endpoint *target = NULL;
	enum outcome outcome;

	probe_begin(doctor);
	address->port = (uint16_t)doctor->options->port;
	outcome = probe_create(doctor, ENDPOINT_CONNECTION, channel, PORT_SPACE_TCP, &target);
	if (!outcome)
		outcome = endpoint_resolve(target, NULL, address);
	if (!outcome)
		outcome = probe_wait(doctor, EVENT_ROUTE_RESOLVED);
	if (outcome) {
		probe_failed(doctor, doctor->environment->transport);
	} else {
		doctor->fabric = target->domain->fabric;
		doctor->mtu = find_mtu(doctor, target);
		add_route(doctor, target);
	}
	endpoint_destroy(target);
	return outcome;
}

void target_lookup(struct doctor *doctor)
{
	struct resolver *resolver = &doctor->resolver;

	probe_begin(doctor);
	resolver_start(resolver, &doctor->probe.log, doctor->options->address, ADDRESS_FORMAT_ANY, 0);
	lookup_finish(resolver, doctor->environment, &doctor->options->common, ADDRESS_NONE);
	doctor->lookup_error = doctor->probe.errors.first;
}

/* Tries the addresses of a name until one has a route. The finding has the error of the last one. */
void target_check(struct doctor *doctor)
{
	enum outcome outcome = OUTCOME_NO_CONNECTION;
	size_t tried = 0;

	doctor->findings.new_group = true;
	if (!doctor->environment->transport) {
		finding_add(doctor, FINDING_WARN, "route", "to %s: not checked, see above", doctor->options->address);
		return;
	}
	while (outcome && tried < doctor->resolver.count && !doctor->environment->ended)
		outcome = resolve_target(doctor, &doctor->resolver.addresses[tried++]);
	if (outcome)
		no_route(doctor);
	else if (COMMAND_rping)
		ping_target(doctor, &doctor->resolver.addresses[tried - 1]);
}
