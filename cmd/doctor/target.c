/* SPDX-License-Identifier: BSD-2-Clause */
/* The route to ADDRESS, as the transport resolves it for a connection. */
#include <string.h>

#include "cmd/doctor/doctor.h"

/* For packets from the local address, if there is one; those of a device, by its interface. */
static void see_route(const struct doctor *doctor, const struct endpoint *target, struct error *error)
{
	char peer[ADDRESS_TEXT_SIZE], local[ADDRESS_TEXT_SIZE], interface[IF_NAMESIZE] = "";
	bool given = !address_is_any(&target->local);

	if (given && doctor->verbs_selected)
		interface_of(&target->local, interface);
	error_hint(error, "see ip route get %s%s%s%s%s", address_host(&target->peer, peer), given ? " from " : "",
		   given ? address_host(&target->local, local) : "", *interface ? " oif " : "", interface);
}

static void no_route(struct doctor *doctor)
{
	const struct address *last;
	struct error *error = &doctor->probe.errors.first;
	char host[ADDRESS_TEXT_SIZE];

	if (!doctor->resolver.count) {
		if (!*doctor->lookup_error.hint)
			error_hint(&doctor->lookup_error, "see getent ahosts %s", doctor->lookup_error.object);
		finding_add_error(doctor, FINDING_FAIL, "route", &doctor->lookup_error);
		return;
	}
	last = &doctor->resolver.addresses[doctor->resolver.count - 1];
	address_host(last, host);
	if (error->kind == ERROR_HELD) {
		finding_add(doctor, FINDING_FAIL, "route", "to %s: not tried: %s\n%s", host, error->cause, error->hint);
		return;
	}
	ping_blame(doctor, last, "route", error);
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

/* The MTU of soft's route, or of the device's port: route.c knows it if an address leads to the port. */
static uint32_t find_mtu(const struct doctor *doctor, const struct endpoint *target)
{
	const struct device *device = devices_find(doctor->devices, target->domain->device);
	uint32_t mtu = target->max_datagram;

	for (unsigned i = 0; device && i < device->port_count && !mtu; i++)
		mtu = device->ports[i].mtu;
	return mtu;
}

static void add_route(struct doctor *doctor, const struct endpoint *target)
{
	const struct device *device = devices_find(doctor->devices, target->domain->device);
	const struct gid *gid = find_gid(doctor, target);
	char peer[ADDRESS_TEXT_SIZE];
	char local[ADDRESS_TEXT_SIZE];
	char gid_text[2 * SYSFS_TEXT_SIZE] = "", other[ROUTE_CAUSE_SIZE];
	bool diverted = route_diverted(&target->local, &target->peer, other);
	struct path path;

	doctor->silent = device && error_is_set(&device->silence) && !device->may_work;
	if (doctor->verbs_selected) {
		interface_of(&target->local, doctor->netdev);
	} else {
		endpoint_path(target, &path);
		strcpy(doctor->netdev, path.interface);
	}
	if (gid)
		log_text(gid_text, sizeof(gid_text), ", GID %u (%s)", gid->index, gid->type);
	finding_add(doctor, diverted ? FINDING_WARN : FINDING_OK, "route", "to %s from %s%s%s, by %s%s%s%s%s",
		    address_host(&target->peer, peer), address_host(&target->local, local),
		    *doctor->netdev ? " on " : "", doctor->netdev, target->domain->device, gid_text,
		    diverted ? ", though " : "", other, diverted ? " is in its network\n" ROUTE_DIVERTED_HINT : "");
	if (!doctor->verbs_selected) {
		soft_warn_card(doctor, doctor->netdev);
		if (WITH_EXTRAS && route_misses_card(&target->local, &target->peer, other))
			finding_add(doctor, FINDING_WARN, "route", "%s", other);
	}
	if (!doctor->verbs_selected && !diverted && route_strays(&target->local, &target->peer, other))
		finding_add(doctor, FINDING_WARN, "route", "%s\n" ROUTE_STRAYS_HINT, other);
	if (!address_is_loopback(&target->peer) && route_leads_here(&target->peer, false))
		finding_add(doctor, FINDING_READ, "route", "%s is an address of this host: nothing leaves it", peer);
}

static enum outcome resolve_target(struct doctor *doctor, struct address *address)
{
	struct channel *channel = doctor->verbs_selected ? doctor->verbs_channel : doctor->soft_channel;
	const struct address *source = doctor->source.addresses;
	struct endpoint *target = NULL;
	enum outcome outcome;

	probe_begin(doctor);
	address->port = (uint16_t)doctor->options->port;
	outcome = probe_create(doctor, ENDPOINT_CONNECTION, channel, PORT_SPACE_TCP, &doctor->options->common.path,
			       &target);
	if (!outcome && WITH_EXTRAS)
		paths_trace(doctor, target, address);
	if (!outcome)
		outcome = endpoint_resolve(target, source->family ? source : NULL, address);
	if (!outcome)
		outcome = probe_wait(doctor, EVENT_ROUTE_RESOLVED);
	if (outcome) {
		probe_failed(doctor, doctor->run->transport);
		if (target && doctor->probe.errors.first.kind != ERROR_HELD)
			see_route(doctor, target, &doctor->probe.errors.first);
	} else {
		/* The path options may have chosen another one than the route. */
		doctor->local = target->local;
		doctor->local.port = 0;
		doctor->fabric = target->domain->fabric;
		doctor->mtu = find_mtu(doctor, target);
		add_route(doctor, target);
	}
	endpoint_destroy(target);
	return outcome;
}

/* If the peer's requests are dropped, both ends only see silence. */
static void check_filter(struct doctor *doctor, const struct address *peer)
{
	struct interface_address dropped;
	char from[ADDRESS_TEXT_SIZE], to[ADDRESS_TEXT_SIZE];

	if (route_is_filtered(doctor->source.addresses, peer, &dropped))
		finding_add(doctor, FINDING_WARN, "route",
			    "this host drops packets from %s to %s on %s: rp_filter is strict, and the route back "
			    "differs\nsysctl -w net/ipv4/conf/%s/rp_filter=2",
			    address_host(peer, from), address_host(&dropped.address, to), dropped.name, dropped.name);
}

void target_lookup(struct doctor *doctor)
{
	const struct doctor_options *options = doctor->options;
	struct resolver *resolver = &doctor->resolver, *source = &doctor->source;
	enum outcome outcome = OUTCOME_OK;

	probe_begin(doctor);
	if (options->source) {
		resolver_start(source, &doctor->probe.log, options->source, ADDRESS_FORMAT_ANY, 0);
		outcome = lookup_finish(source, doctor->run, &options->common, ADDRESS_NONE);
	}
	if (!outcome) {
		resolver_start(resolver, &doctor->probe.log, options->address, ADDRESS_FORMAT_ANY, 0);
		lookup_finish(resolver, doctor->run, &options->common, source->addresses->family);
	}
	doctor->lookup_error = doctor->probe.errors.first;
}

/* before: the entry before the pings. The kernel replaces a wrong one after some seconds, unless it is permanent. */
static void report_entry(struct doctor *doctor, const struct address *address, const char *before)
{
	char now[ROUTE_CAUSE_SIZE];

	if (!route_entry(&doctor->local, address, now))
		return;
	if (*before && strncmp(now, before, strcspn(before, "(")) != 0)
		finding_add(doctor, FINDING_WARN, "neigh", "%s, before the pings: %s", now, before);
	else if (doctor->unanswered)
		finding_add(doctor, FINDING_READ, "neigh", "%s", now);
}

/* Tries the addresses of a name until one has a route. The finding has the error of the last one. */
void target_check(struct doctor *doctor)
{
	enum outcome outcome = OUTCOME_NO_CONNECTION;
	struct address *address = NULL;
	char entry[ROUTE_CAUSE_SIZE] = "";
	size_t tried = 0;

	doctor->findings.new_group = true;
	if (!doctor->run->transport) {
		finding_add(doctor, FINDING_WARN, "route", "to %s: not checked, see above", doctor->options->address);
		return;
	}
	while (outcome && tried < doctor->resolver.count && !doctor->run->ended) {
		address = &doctor->resolver.addresses[tried++];
		outcome = resolve_target(doctor, address);
	}
	if (tried)
		check_filter(doctor, address);
	if (outcome)
		no_route(doctor);
	else if (WITH_EXTRAS)
		route_entry(&doctor->local, address, entry);
	if (!outcome && COMMAND_rping)
		ping_check(doctor, address);
	if (WITH_EXTRAS && tried && address->family == ADDRESS_IP4 && (outcome || doctor->unanswered) &&
	    !loop_deadline_passed(doctor->run->loop))
		trace_links(doctor, address);
	if (!outcome && WITH_EXTRAS) {
		report_entry(doctor, address, entry);
		paths_check(doctor);
	}
}
