/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The local addresses that lead to an RDMA device. The RDMA CM resolves each of them, as it does for a connection. The
 * GID table is no source: on InfiniBand and iWARP it holds no IP addresses.
 */
#include <string.h>

#include "cmd/doctor/doctor.h"

enum {
	PROBE_REGION_SIZE = 64 << 10 /* bytes */
};

void route_interface(const struct address *address, char name[SYSFS_TEXT_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = interface_addresses(list);

	*name = 0;
	for (size_t i = 0; i < count && !*name; i++)
		if (address_same_host(&list[i].address, address))
			log_text(name, SYSFS_TEXT_SIZE, "%s", list[i].name);
}

/* Every interface has a link-local address, the last in the list: it counts where it is the only one. */
static void add_address(struct device *device, const struct address *address)
{
	size_t used = strlen(device->addresses);
	char host[ADDRESS_TEXT_SIZE];

	if (device->address_count && address_is_link_local(address))
		return;
	address_host(address, host);
	device->address_count++;
	if (used + strlen(host) + sizeof(", , ...") <= sizeof(device->addresses))
		log_text(device->addresses + used, sizeof(device->addresses) - used, "%s%s", used ? ", " : "", host);
	else if (!strstr(device->addresses, "..."))
		strcpy(device->addresses + used, ", ...");
}

static void try_registration(struct device *device, struct domain *domain)
{
	struct region *region;

	error_clear(&device->memory);
	if (region_create(domain, PROBE_REGION_SIZE, REGION_LOCAL, &region)) {
		device->memory = domain->transport->error;
		error_clear(&domain->transport->error);
	} else {
		region_destroy(region);
	}
}

static void route_found(struct doctor *doctor, const struct endpoint *route)
{
	struct device *device = devices_need(&doctor->devices, route->domain->device);
	const struct gid *gid;
	struct path path;

	if (!device || device->elsewhere)
		return;
	if (!device->address_count)
		try_registration(device, route->domain);
	add_address(device, &route->peer);
	endpoint_path(route, &path);
	for (unsigned i = 0; i < device->port_count; i++) {
		struct port *port = &device->ports[i];

		if (port->number != path.port)
			continue;
		port->mtu = path.mtu;
		gid = devices_gid(port, &route->peer); /* none on InfiniBand and iWARP */
		if (gid && strstr(gid->type, "v2"))
			device->roce_v2 = true;
		else if (gid)
			device->v1 = port;
		if (!*port->netdev)
			route_interface(&route->peer, port->netdev);
	}
}

/* In the UDP port space, because a group's endpoint reports the MTU. It sends nothing. */
static void try_route(struct doctor *doctor, const struct address *address)
{
	struct endpoint *route = NULL;
	enum outcome outcome;

	probe_begin(doctor);
	outcome = probe_create(doctor, ENDPOINT_GROUP, doctor->verbs_channel, PORT_SPACE_UDP, &route);
	if (!outcome)
		outcome = endpoint_resolve(route, NULL, address);
	if (!outcome)
		outcome = probe_wait(doctor, EVENT_ADDRESS_RESOLVED);
	if (!outcome)
		route_found(doctor, route);
	/* It is a finding, and not also an error of the run. */
	probe_failed(doctor, doctor->verbs);
	if (outcome && outcome != OUTCOME_NO_CONNECTION && !error_is_set(&doctor->verbs_error))
		doctor->verbs_error = doctor->probe.errors.first;
	endpoint_destroy(route);
}

void route_check(struct doctor *doctor)
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = interface_addresses(list);

	if (count == INTERFACE_ADDRESSES_MAX)
		finding_add(doctor, FINDING_WARN, "address", "only the first %d addresses of this host are checked",
			    INTERFACE_ADDRESSES_MAX);
	for (size_t i = 0; i < count && !doctor->environment->ended; i++)
		if (!list[i].loopback)
			try_route(doctor, &list[i].address);
}

static void report_no_address(struct doctor *doctor, const struct device *device)
{
	const struct port *port = device->port_count ? device->ports : NULL;
	struct remedy remedy;

	for (unsigned i = 0; i < device->port_count && !port->active; i++)
		if (device->ports[i].active)
			port = &device->ports[i];
	remedy = remedy_find(PROBLEM_ADDRESS,
			     doctor->host.facts | devices_facts(doctor->host.root, device, port) |
				     (doctor->usable ? FACT_USABLE : 0),
			     port ? port->netdev : NULL, NULL);
	finding_add(doctor, doctor->host.failure, "address", "no address of this host leads to %s%s", device->name,
		    remedy.text);
}

static void warn_v1(struct doctor *doctor, const struct device *device, const char *text)
{
	const struct port *port = device->v1;
	struct error error = { .object = "" };

	error_set(&error, NULL, "%s RoCE v1: no router forwards it, and both ends must use it", text);
	for (unsigned i = 0; i < port->gid_count; i++)
		if (strstr(port->gids[i].type, "v2"))
			error_hint(&error, "cma_roce_mode -d %s -p %u -m 2", device->name, port->number);
	finding_add_error(doctor, FINDING_WARN, "address", &error);
}

void route_report(struct doctor *doctor)
{
	for (const struct device *device = doctor->devices; device; device = device->next) {
		char text[256];

		log_text(text, sizeof(text), "%s %s to %s%s", device->addresses,
			 device->address_count == 1 ? "leads" : "lead", device->name,
			 device->v1	   ? " over"
			 : device->roce_v2 ? " over RoCE v2"
					   : "");
		if (device->v1)
			warn_v1(doctor, device, text);
		else if (device->address_count)
			finding_add(doctor, FINDING_OK, "address", "%s", text);
		else if (!device->cannot_be_opened && !device->elsewhere)
			report_no_address(doctor, device);
	}
}
