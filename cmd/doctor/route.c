/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The local addresses that lead to an RDMA device. The RDMA CM resolves each, as for a connection, and it is pinged.
 * The GID table cannot be used: on InfiniBand and iWARP it has no IP addresses.
 */
#include <string.h>
#include <sys/param.h>

#include "cmd/doctor/doctor.h"

#define NO_INTERFACE ": no interface of it is in this network namespace"

enum {
	REGION_LARGE = 16 << 20, /* bytes that many programs register at once */
	REGION_SMALL = 64 << 10, /* and a short ping */
	SILENCES_MAX = 16
};

static void add_address(struct device *device, const char *host)
{
	size_t used = strlen(device->addresses);

	device->address_count++;
	if (used + strlen(host) + sizeof(", , ...") <= sizeof(device->addresses))
		log_text(device->addresses + used, sizeof(device->addresses) - used, "%s%s", used ? ", " : "", host);
	else if (!strstr(device->addresses, "..."))
		strcpy(device->addresses + used, ", ...");
}

/* Linux's soft-RoCE sends only through its own interface, but delivers packets for itself locally. */
static bool is_own_interface(const struct device *device, const char *interface)
{
	const char *own = device->ports->netdev;

	return !devices_is_rxe(device) || !*own || !strcmp(own, interface);
}

/*
 * Every interface has a link-local address, the last in the list, which only counts if it is the only one. After an
 * address without an answer, no other of its interface is tried, and the next time limit is halved: together they take
 * less than --timeout.
 */
static void try_ping(struct doctor *doctor, struct device *device, const struct address *address)
{
	char host[ADDRESS_TEXT_SIZE], interface[SYSFS_TEXT_SIZE];
	int64_t timeout = doctor->options->common.timeout >> (1 + doctor->silences);
	enum outcome outcome;

	interface_of(address, interface);
	address_host(address, host);
	if ((device->address_count && address_is_link_local(address)) ||
	    (error_is_set(&device->silence) && !strcmp(device->silent, interface)))
		return;
	outcome = probe_itself(doctor, doctor->verbs, address, MAX(timeout, CLOCK_NS_PER_MS));
	doctor->silences += outcome && doctor->silences < SILENCES_MAX;
	/* A card may be unable to send to itself. */
	device->may_work |= !outcome || (outcome == OUTCOME_NO_CONNECTION && !devices_is_rxe(device) &&
					 strcmp(device->driver, "siw") != 0);
	if (!outcome && is_own_interface(device, interface)) {
		add_address(device, host);
		device->link_local = address_is_link_local(address);
	} else if (!error_is_set(&device->silence)) {
		device->silence = doctor->probe.errors.first;
		if (!outcome)
			error_set(&device->silence, NULL,
				  "soft-RoCE sends to other hosts by its own interface %s, not by %s",
				  device->ports->netdev, interface);
		strcpy(device->silence.object, host);
		strcpy(device->silent, interface);
		device->within_host = !outcome;
	}
}

/* On failure sets device->memory. */
static bool may_register(struct device *device, struct domain *domain, size_t length)
{
	struct region *region;

	error_clear(&device->memory);
	if (!region_create(domain, length, REGION_LOCAL, &region)) {
		region_destroy(region);
		return true;
	}
	device->memory = domain->transport->error;
	error_clear(&domain->transport->error);
	return false;
}

/* A limit of locked memory below that has its own finding. */
static void try_registration(struct device *device, struct domain *domain)
{
	struct error large;

	device->registers = may_register(device, domain, REGION_LARGE);
	if (device->registers)
		return;
	large = device->memory;
	device->registers = may_register(device, domain, REGION_SMALL);
	if (!device->registers || !host_memory_allows(REGION_LARGE))
		return;
	device->memory = large;
	strcpy(device->memory.phase, "registering 16 MiB of memory");
}

/* Returns the device, NULL: none usable. */
static struct device *route_found(struct doctor *doctor, const struct endpoint *route)
{
	struct device *device = devices_need(&doctor->devices, route->domain->device);
	const struct gid *gid;
	struct path path;

	if (!device || device->elsewhere)
		return NULL;
	if (!device->registers)
		try_registration(device, route->domain);
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
			interface_of(&route->peer, port->netdev);
	}
	return device->registers ? device : NULL;
}

/* In the UDP port space, because a group's endpoint reports the MTU. It sends no packet. */
static void try_route(struct doctor *doctor, const struct address *address)
{
	struct endpoint *route = NULL;
	struct device *device = NULL;
	enum outcome outcome;

	probe_begin(doctor);
	outcome = probe_create(doctor, ENDPOINT_GROUP, doctor->verbs_channel, PORT_SPACE_UDP, NULL, &route);
	if (!outcome)
		outcome = endpoint_resolve(route, NULL, address);
	if (!outcome)
		outcome = probe_wait(doctor, EVENT_ADDRESS_RESOLVED);
	if (!outcome)
		device = route_found(doctor, route);
	/* A finding, not also an error of the run. */
	probe_failed(doctor, doctor->verbs);
	if (outcome && outcome != OUTCOME_NO_CONNECTION && !error_is_set(&doctor->verbs_error))
		doctor->verbs_error = doctor->probe.errors.first;
	endpoint_destroy(route);
	if (device)
		try_ping(doctor, device, address);
}

void route_check(struct doctor *doctor)
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = interface_addresses(list);

	if (count == INTERFACE_ADDRESSES_MAX)
		finding_add(doctor, FINDING_WARN, "address", "only the first %d addresses of this host are checked",
			    INTERFACE_ADDRESSES_MAX);
	for (size_t i = 0; i < count && !doctor->run->ended; i++)
		if (!list[i].loopback)
			try_route(doctor, &list[i].address);
}

/* In /sys a card's folder "net" has only this network namespace's interfaces. */
static bool has_no_interface(const struct doctor *doctor, const struct device *device)
{
	char path[SYSFS_PATH_SIZE];
	struct names names =
		sysfs_names(sysfs_path(path, "%s/sys/class/infiniband/%s/device/net", doctor->host.root, device->name));
	bool none = !names.count && !strcmp(device->ports->link_layer, "Ethernet") && !*device->ports->netdev &&
		    sysfs_has("%s/sys/class/infiniband/%s/device", doctor->host.root, device->name);

	sysfs_names_free(&names);
	return none;
}

static void report_no_address(struct doctor *doctor, const struct device *device)
{
	const struct port *port = device->port_count ? device->ports : NULL;
	struct port at = { .number = 0 };
	struct remedy remedy;
	struct error mode;
	const char *text;

	for (unsigned i = 0; i < device->port_count && !port->active; i++)
		if (device->ports[i].active)
			port = &device->ports[i];
	if (port)
		at = *port;
	/* A bond has its ports' addresses. */
	if (*device->bond)
		strcpy(at.netdev, device->bond);
	remedy = remedy_find(PROBLEM_ADDRESS,
			     doctor->host.facts | host_device_facts(doctor->host.root, device->name) |
				     devices_facts(&at) | (doctor->usable ? FACT_USABLE : 0),
			     at.netdev, NULL);
	text = remedy.text;
	if (!*text && port && has_no_interface(doctor, device))
		text = doctor->host.facts & FACT_CONTAINER ? NO_INTERFACE
			       "\nstart the container with --network host, or give it an interface of the "
			       "card (SR-IOV, macvlan)"
							   : NO_INTERFACE;
	else if (!*text && port && !port->gid_count)
		text = ": its port has no GID, so RoCE is off\n"
		       "devlink dev eswitch show: mode legacy, not switchdev; devlink dev param show: enable_roce true";
	if (!*text && port && devices_lacks_mode(device, port, &mode)) {
		log_text(mode.object, sizeof(mode.object), "no address of this host leads to %s", device->name);
		finding_add_error(doctor, doctor->host.failure, "address", &mode);
		return;
	}
	finding_add(doctor, doctor->host.failure, "address", "no address of this host leads to %s%s", device->name,
		    text);
}

static void warn_v1(struct doctor *doctor, const struct device *device, const char *text)
{
	const struct port *port = device->v1;
	struct error error = { .object = "" };

	error_set(&error, NULL, "%s RoCE v1: no router forwards it, and both ends must use it", text);
	for (unsigned i = 0; i < port->gid_count; i++)
		if (strstr(port->gids[i].type, "v2"))
			error_hint(&error, HOST_ROCE_MODE("%s", "%u", "RoCE v2"), device->name, device->name,
				   port->number);
	error_hint(&error, "on hosts with v2: " HOST_ROCE_MODE("DEVICE", "1", "IB/RoCE v1"));
	finding_add_error(doctor, FINDING_WARN, "address", &error);
}

/* Soft-RoCE whose own interface was down while a connection ended sends nothing until it is made again. */
static void report_silence(struct doctor *doctor, const struct device *device)
{
	enum finding_status status = device->may_work ? FINDING_WARN : doctor->host.failure;
	const char *suffix = device->within_host ? " within this host" : ", but does not reach itself";
	struct error error = device->silence;

	if (!device->within_host && device->may_work && !device->address_count) {
		status = FINDING_READ;
		suffix = ": not tried, this device does not reach itself";
	}
	log_text(error.object, sizeof(error.object), "%s leads to %s%s", device->silence.object, device->name, suffix);
	*error.hint = '\0';
	if (!device->within_host && devices_is_rxe(device) && is_own_interface(device, device->silent))
		error_hint(&error, "rdma link delete %s; rdma link add %s type rxe netdev %s", device->name,
			   device->name, device->silent);
	finding_add_error(doctor, status, "address", &error);
}

static void report_reached(struct doctor *doctor, const struct device *device)
{
	unsigned facts = devices_facts(device->ports);
	char text[256];

	log_text(text, sizeof(text), "%s %s to %s%s", device->addresses, device->address_count == 1 ? "leads" : "lead",
		 device->name,
		 device->v1	   ? " over"
		 : device->roce_v2 ? " over RoCE v2"
				   : "");
	if (device->v1)
		warn_v1(doctor, device, text);
	else if (device->link_local && facts & FACT_VRF)
		finding_add(doctor, FINDING_WARN, "address", "%s; other addresses of %s do not: it belongs to a VRF",
			    text, device->ports->netdev);
	else if (device->link_local && (facts & (FACT_HERE | FACT_ADDRESS)) == FACT_HERE)
		finding_add(doctor, FINDING_WARN, "address",
			    "%s, for this link only: %s has no other address\n"
			    "a client needs its own interface: %.*s%%INTERFACE%s%s",
			    text, device->ports->netdev, (int)strcspn(device->addresses, "%"), device->addresses,
			    doctor->host.facts & FACT_ADMIN ? "; or here: ip address add ADDRESS/BITS dev " : "",
			    doctor->host.facts & FACT_ADMIN ? device->ports->netdev : "");
	else
		finding_add(doctor, FINDING_PINGED, "address", "%s", text);
}

void route_report(struct doctor *doctor)
{
	for (const struct device *device = doctor->devices; device; device = device->next) {
		if (device->address_count)
			report_reached(doctor, device);
		if (error_is_set(&device->silence))
			report_silence(doctor, device);
		else if (!device->address_count && !error_is_set(&device->memory) && !device->cannot_be_opened &&
			 !device->elsewhere)
			report_no_address(doctor, device);
	}
}
