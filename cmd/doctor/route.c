/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which local addresses lead to an RDMA device. The connection manager is asked for each: it is what connections ask,
 * and it knows InfiniBand and iWARP too, whose GIDs are no addresses.
 */
#include <string.h>

#include "cmd/doctor/doctor.h"
#include "core/interface.h"

enum {
	TRIAL_REGION = 64 << 10 /* bytes that every use of a device needs */
};

void route_interface(const struct address *address, char name[SYSFS_NAME_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MOST];
	size_t count = interface_addresses(list);

	*name = 0;
	for (size_t i = 0; i < count && !*name; i++)
		if (address_same_host(&list[i].address, address))
			snprintf(name, SYSFS_NAME_SIZE, "%s", list[i].name);
}

/* Every interface has a link-local address, and a device that has no other is of little use. */
static void find_addresses(struct doctor *doctor)
{
	struct interface_address list[INTERFACE_ADDRESSES_MOST];
	size_t count = interface_addresses(list);

	for (size_t i = 0; i < count && doctor->route_count < DOCTOR_ROUTES_MOST; i++)
		if (!list[i].loopback && !address_is_link_local(&list[i].address))
			doctor->routes[doctor->route_count++] = list[i].address;
}

static void note_address(struct device *device, const struct address *address)
{
	size_t used = strlen(device->addresses);
	char host[ADDRESS_TEXT_SIZE];

	address_host(address, host);
	device->address_count++;
	if (!*device->netdev)
		route_interface(address, device->netdev);
	if (used + strlen(host) + sizeof(", , ...") <= sizeof(device->addresses))
		sprintf(device->addresses + used, "%s%s", used ? ", " : "", host);
	else if (!strstr(device->addresses, "..."))
		strcat(device->addresses, ", ...");
}

static void try_memory(struct doctor *doctor, struct domain *domain)
{
	struct region *region;

	probe_begin(doctor);
	if (region_create(domain, TRIAL_REGION, REGION_LOCAL, &region))
		probe_report(doctor, doctor->verbs_failure, "memory", NULL);
	else
		region_destroy(region);
}

static void route_found(struct doctor *doctor, const struct endpoint *route)
{
	struct device *device = survey_find(doctor->devices, route->domain->device);
	struct path path;

	if (!device)
		return;
	if (!device->address_count)
		try_memory(doctor, route->domain);
	note_address(device, &route->peer);
	endpoint_path(route, &path);
	for (unsigned i = 0; i < device->port_count; i++)
		if (device->ports[i].number == path.port)
			device->ports[i].mtu = path.mtu;
}

static void resolve_next(struct doctor *doctor);

static void route_event(void *owner, struct endpoint *route, const struct endpoint_event *event)
{
	struct doctor *doctor = owner;

	if (event->kind == EVENT_ADDRESS_RESOLVED)
		route_found(doctor, route);
	else if (event->outcome == OUTCOME_INTERNAL)
		probe_report(doctor, doctor->verbs_failure, "device", NULL);
	doctor->route = NULL;
	endpoint_destroy(route);
	resolve_next(doctor);
}

static void resolve_next(struct doctor *doctor)
{
	static const struct endpoint_handlers handlers = { .event = route_event };
	/* Of a group, because that learns the MTU; nothing is sent. */
	const struct endpoint_options options = {
		.port_space = PORT_SPACE_UDP,
		.timeout = doctor->options->common.timeout,
	};

	while (doctor->route_next < doctor->route_count) {
		const struct address *address = &doctor->routes[doctor->route_next++];

		probe_begin(doctor);
		if (endpoint_create(ENDPOINT_GROUP, doctor->verbs_channel, &options, &handlers, doctor, &doctor->route))
			continue;
		if (!endpoint_resolve(doctor->route, NULL, address))
			return;
		endpoint_destroy(doctor->route);
		doctor->route = NULL;
	}
	doctor_routes_known(doctor);
}

void route_check(struct doctor *doctor)
{
	find_addresses(doctor);
	resolve_next(doctor);
}

void route_tell(struct doctor *doctor)
{
	enum finding_status status = doctor->usable ? FINDING_WARN : doctor->verbs_failure;
	struct findings *findings = &doctor->findings;

	for (const struct device *device = doctor->devices; device; device = device->next) {
		const char *netdev = *device->netdev ? device->netdev : "NETDEV";

		if (device->address_count)
			finding_add(findings, FINDING_OK, "address", NULL, "%s %s to %s", device->addresses,
				    device->address_count == 1 ? "leads" : "lead", device->name);
		else
			finding_add(findings, status, "address",
				    finding_remedy(findings, "ip link set %s up; ip address add ADDRESS/BITS dev %s",
						   netdev, netdev),
				    "no address of this host leads to %s", device->name);
	}
}

void route_stop(struct doctor *doctor)
{
	endpoint_destroy(doctor->route);
	doctor->route = NULL;
}
