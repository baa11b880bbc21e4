/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/doctor/devices.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/doctor/doctor.h"
#include "core/units.h"

/* Makes "ACTIVE" of "4: ACTIVE". */
static void remove_number(char text[SYSFS_TEXT_SIZE])
{
	const char *colon = strstr(text, ": ");

	if (colon)
		memmove(text, colon + 2, strlen(colon + 2) + 1);
}

/* Returns false for an empty entry, and for text that is not a GID. */
static bool parse_gid_entry(const char *text, bool ethernet, struct address *address)
{
	static const uint8_t none[8];

	/* An empty entry may hold the subnet prefix of its port. */
	if (!address_parse(text, ADDRESS_FORMAT_GID, address) || !memcmp(address->bytes + 8, none, sizeof(none)))
		return false;
	if (!ethernet)
		return true;
	address->family = ADDRESS_IP6;
	address_unmap(address);
	return true;
}

static void read_gid(const char *directory, unsigned index, struct port *port)
{
	bool ethernet = !strcmp(port->link_layer, "Ethernet");
	struct gid gid = { .index = index };
	char text[SYSFS_TEXT_SIZE];

	sysfs_line(text, "%s/gids/%u", directory, index);
	if (!parse_gid_entry(text, ethernet, &gid.address))
		return;
	if (port->gid_count == PORT_GIDS_MAX) {
		port->gids_left_out++;
		return;
	}
	sysfs_line(gid.type, "%s/gid_attrs/types/%u", directory, index);
	sysfs_name(gid.netdev, "%s/gid_attrs/ndevs/%u", directory, index);
	port->gids[port->gid_count++] = gid;
}

static void device_read_port(const char *directory, struct port *port)
{
	char lid[SYSFS_TEXT_SIZE], key[SYSFS_TEXT_SIZE];
	unsigned entries = 0;

	if (sysfs_line(key, "%s/pkeys/0", directory))
		port->partition = (uint16_t)strtoul(key, NULL, 16);
	port->managed = sysfs_line(lid, "%s/sm_lid", directory) && strtoul(lid, NULL, 16);
	sysfs_line(port->state, "%s/state", directory);
	sysfs_line(port->physical_state, "%s/phys_state", directory);
	sysfs_line(port->link_layer, "%s/link_layer", directory);
	sysfs_line(port->rate, "%s/rate", directory);
	remove_number(port->state);
	remove_number(port->physical_state);
	port->active = !strcmp(port->state, "ACTIVE");
	for (; entries < PORT_GID_TABLE_MAX && sysfs_has("%s/gids/%u", directory, entries); entries++)
		read_gid(directory, entries, port);
	/* InfiniBand's entries are no addresses of interfaces; iWARP has one entry. */
	port->gids_full = entries > 1 && entries < PORT_GID_TABLE_MAX &&
			  entries == port->gid_count + port->gids_left_out && !strcmp(port->link_layer, "Ethernet");
}

/*
 * Without GIDs, as on InfiniBand, the interface is the card's with that port: dev_port begins with 0. A single-port
 * function may have another number.
 */
static void find_interface(const char *device, struct port *port)
{
	char path[SYSFS_PATH_SIZE], text[SYSFS_TEXT_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "%s/device/net", device));
	bool only = names.count == 1 && !sysfs_has("%s/ports/2", device);

	for (int i = 0; i < names.count && !*port->netdev; i++) {
		const char *name = names.entries[i]->d_name;

		if (only || (sysfs_line(text, "%s/device/net/%s/dev_port", device, name)
				     ? strtoull(text, NULL, 10) + 1 == port->number
				     : names.count == 1))
			strcpy(port->netdev, name);
	}
	sysfs_names_free(&names);
}

/* Ports are numbered from 1; a switch has port 0. */
static void read_ports(const char *root, const char *directory, struct device *device)
{
	for (unsigned number = 0; number <= DEVICE_PORTS_MAX + 1; number++) {
		struct port *port = &device->ports[device->port_count];
		char path[SYSFS_PATH_SIZE];

		sysfs_path(path, "%s/ports/%u", directory, number);
		if (!sysfs_has("%s", path))
			continue;
		device->ports_left_out = device->port_count == DEVICE_PORTS_MAX;
		if (device->ports_left_out)
			break;
		port->number = number;
		device_read_port(path, port);
		/* A device's directory exists only if somebody has made it. */
		sysfs_line(port->roce, "%s/sys/kernel/config/rdma_cm/%s/ports/%u/default_roce_mode", root, device->name,
			   number);
		strcpy(port->netdev, port->gids[0].netdev);
		if (!*port->netdev && !sysfs_name(port->netdev, "%s/parent", directory))
			find_interface(directory, port);
		device->port_count++;
	}
}

/*
 * soft-RoCE has a file "parent" with its interface's name. A software device's "device" may be its interface's card, so
 * "parent" is tried first.
 */
static void find_driver(const char *directory, struct device *device)
{
	char type[SYSFS_TEXT_SIZE];

	sysfs_line(type, "%s/node_type", directory);
	device->iwarp = strstr(type, "RNIC");
	if (sysfs_has("%s/parent", directory))
		strcpy(device->driver, "rdma_rxe");
	else if (!sysfs_link(device->driver, "%s/device/driver", directory) && device->iwarp)
		strcpy(device->driver, "siw");
}

static void find_bond(const char *directory, struct device *device)
{
	char path[SYSFS_PATH_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "%s/device/net", directory));

	for (int i = 0; i < names.count && !*device->bond; i++)
		if (sysfs_has("%s/%s/master/bonding", path, names.entries[i]->d_name))
			sysfs_link(device->bond, "%s/%s/master", path, names.entries[i]->d_name);
	sysfs_names_free(&names);
}

static struct device *read_device(const char *root, const char *name)
{
	struct device *device = calloc(1, sizeof(*device));
	char directory[SYSFS_PATH_SIZE];

	if (!device)
		return NULL;
	strcpy(device->name, name);
	sysfs_path(directory, "%s/sys/class/infiniband/%s", root, name);
	sysfs_line(device->firmware, "%s/fw_ver", directory);
	find_driver(directory, device);
	read_ports(root, directory, device);
	/* Soft-RoCE's "device" may be the card of its interface. */
	if (!devices_is_rxe(device))
		find_bond(directory, device);
	return device;
}

struct device *devices_read(const char *root)
{
	char path[SYSFS_PATH_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "%s/sys/class/infiniband", root));
	struct device *first = NULL;
	struct device **tail = &first;

	for (int i = 0; i < names.count && i < DEVICES_MAX; i++) {
		*tail = read_device(root, names.entries[i]->d_name);
		if (!*tail)
			break;
		tail = &(*tail)->next;
	}
	sysfs_names_free(&names);
	return first;
}

void devices_free(struct device *devices)
{
	while (devices) {
		struct device *next = devices->next;

		free(devices);
		devices = next;
	}
}

bool devices_is_rxe(const struct device *device)
{
	return !strcmp(device->driver, "rdma_rxe");
}

struct device *devices_find(struct device *devices, const char *name)
{
	while (devices && strcmp(devices->name, name))
		devices = devices->next;
	return devices;
}

struct device *devices_need(struct device **devices, const char *name)
{
	struct device *device = devices_find(*devices, name);

	if (device)
		return device;
	device = calloc(1, sizeof(*device));
	if (!device)
		return NULL;
	log_text(device->name, sizeof(device->name), "%s", name);
	device->next = *devices;
	return *devices = device;
}

const struct gid *devices_gid(const struct port *port, const struct address *address)
{
	const struct gid *found = NULL;

	for (unsigned i = 0; i < port->gid_count; i++) {
		const struct gid *gid = &port->gids[i];

		if (gid->address.family != address->family || memcmp(gid->address.bytes, address->bytes, 16))
			continue;
		if (!found || !strcmp(gid->type, *port->roce ? port->roce : "RoCE v2"))
			found = gid;
	}
	return found;
}

bool devices_lacks_mode(const struct device *device, const struct port *port, struct error *error)
{
	bool found = !*port->roce || !port->gid_count || port->gids_left_out;

	for (unsigned i = 0; i < port->gid_count && !found; i++)
		found = !strcmp(port->gids[i].type, port->roce);
	if (found)
		return false;
	error_clear(error);
	error_set(error, NULL, "connections use %s, and no GID has it", port->roce);
	error_hint(error, HOST_ROCE_MODE("%s", "%u", "%s"), device->name, port->gids->type, device->name, port->number);
	return true;
}

/*
 * Whether the interface here is the port's, not another one of that name: the GIDs are its addresses, and one that ends
 * in the last three bytes of its MAC address.
 */
static bool is_interface_of(const struct port *port, const char *name, const struct interface *interface)
{
	struct interface_address *list;
	size_t count = interface_list(name, &list);
	bool known = false, own = !interface->link_length;

	for (unsigned i = 0; i < port->gid_count; i++) {
		const struct gid *gid = &port->gids[i];

		if (strcmp(gid->netdev, name) != 0)
			continue;
		known = true;
		own |= address_is_link_local(&gid->address) &&
		       !memcmp(gid->address.bytes + 13, interface->link_address + 3, 3);
	}
	for (size_t i = 0; i < count && !own; i++)
		own = devices_gid(port, &list[i].address);
	free(list);
	return own || !known;
}

/* This process's routes lack its addresses. In /sys a VRF looks like other masters. */
static bool is_in_vrf(const char *interface)
{
	struct interface_address *list;
	size_t count = interface_list(interface, &list);
	bool found = false;

	for (size_t i = 0; i < count && !found; i++)
		found = !address_is_link_local(&list[i].address) && !route_leads_here(&list[i].address, true);
	free(list);
	return found;
}

static unsigned interface_facts(const struct port *port)
{
	const struct interface interface = interface_read(port->netdev);
	unsigned facts = 0;

	if (!interface.facts)
		return 0;
	if (!is_interface_of(port, port->netdev, &interface))
		return FACT_NAMESAKE;
	facts = FACT_HERE;
	if (interface.facts & INTERFACE_UP)
		facts |= FACT_UP;
	if (interface.facts & INTERFACE_LINK)
		facts |= FACT_LINK;
	if (interface.facts & INTERFACE_ADDRESS)
		facts |= FACT_ADDRESS;
	if (!interface.link_length)
		facts |= FACT_TUNNEL;
	if (is_in_vrf(port->netdev))
		facts |= FACT_VRF;
	return facts;
}

/* InfiniBand only: an Ethernet link with one lane is normal. */
static unsigned port_facts(const struct port *port)
{
	bool init = !strcmp(port->state, "INIT"), armed = !strcmp(port->state, "ARMED");

	return (init && !port->managed ? FACT_UNMANAGED : 0) | (init || armed ? FACT_INACTIVE : 0) |
	       (!strcmp(port->physical_state, "Disabled") ? FACT_DISABLED : 0) |
	       (port->active && (strstr(port->rate, "(1X ") || strstr(port->rate, " SDR)")) ? FACT_SLOW : 0);
}

unsigned devices_facts(const struct port *port)
{
	unsigned facts = 0;

	if (!strcmp(port->link_layer, "InfiniBand"))
		facts |= FACT_INFINIBAND | port_facts(port);
	return facts | (*port->netdev ? interface_facts(port) : 0);
}

/*
 * Soft-RoCE's socket is on the any address: in older kernels in process 1's network namespace while its module is
 * loaded, and its devices work only there; in newer ones in each namespace with a device.
 */
void devices_find_rxe(struct doctor *doctor)
{
	bool held = host_port_is_held(doctor->host.root);

	doctor->rxe_holds_port = host_rxe_holds_port(doctor->host.root);
	for (struct device *device = doctor->devices; device; device = device->next) {
		if (!devices_is_rxe(device) || !device->port_count || !(devices_facts(device->ports) & FACT_HERE))
			continue;
		device->elsewhere = !held && sysfs_has("%s/proc/self/net/udp", doctor->host.root);
	}
}

/* IBTA 10.9.3: bit 15 marks a full member. The connection manager uses the partition of an interface. */
static void check_partition(struct doctor *doctor, const struct device *device, const struct port *port)
{
	char keys[SYSFS_PATH_SIZE], key[SYSFS_TEXT_SIZE], other[256] = "";

	if (port->partition & 0x8000)
		return;
	sysfs_path(keys, "%s/sys/class/infiniband/%s/ports/%u/pkeys", doctor->host.root, device->name, port->number);
	for (unsigned i = 1; *port->netdev && !*other && sysfs_line(key, "%s/%u", keys, i); i++)
		if (strtoul(key, NULL, 16) & 0x8000)
			log_text(other, sizeof(other), "; to use %s: ip link add link %s name %s.%s type ipoib pkey %s",
				 key, port->netdev, port->netdev, key + 2, key);
	finding_add(doctor, FINDING_WARN, "port",
		    "%s/%u: limited member of partition 0x%04x: it reaches only full members\n"
		    "in opensm's partitions.conf: the port's GUID with =full%s",
		    device->name, port->number, port->partition, other);
}

/* A vendor's driver may give all packets one traffic class. */
static void check_class(struct doctor *doctor, const struct device *device, const struct port *port)
{
	char class[SYSFS_TEXT_SIZE];
	unsigned value;

	sysfs_line(class, "%s/sys/class/infiniband/%s/tc/%u/traffic_class", doctor->host.root, device->name,
		   port->number);
	if (sscanf(class, "Global tclass=%u", &value) == 1)
		finding_add(doctor, FINDING_READ, "port",
			    "%s/%u: its driver sends with DSCP %u: %s in tc/%u/traffic_class", device->name,
			    port->number, value >> 2, class, port->number);
}

/* The host's policy decides about a virtual function's link, and no physical state tells it from a missing cable. */
static bool waits_for_host(const struct doctor *doctor, const struct device *device, const struct port *port,
			   unsigned facts)
{
	return !strcmp(port->state, "DOWN") && !(facts & FACT_NO_GUID) && facts & (FACT_INFINIBAND | FACT_UP) &&
	       sysfs_has("%s/sys/class/infiniband/%s/device/physfn", doctor->host.root, device->name);
}

/* What remedy_find() puts for "#": opensm takes a port's GUID, the second half of its first GID. */
static const char *number_of(const struct port *port, unsigned facts, char text[UNITS_TEXT_SIZE])
{
	uint64_t guid;

	if (!(facts & FACT_UNMANAGED))
		return log_text(text, UNITS_TEXT_SIZE, "%u", port->number);
	if (!port->gid_count)
		return "GUID";
	memcpy(&guid, port->gids->address.bytes + 8, sizeof(guid));
	return log_text(text, UNITS_TEXT_SIZE, "0x%016" PRIx64, be64toh(guid));
}

static void check_port(struct doctor *doctor, const struct device *device, const struct port *port)
{
	unsigned facts = doctor->host.facts | host_device_facts(doctor->host.root, device->name) | devices_facts(port);
	bool good = port->active && !(facts & FACT_SLOW);
	struct remedy remedy = { .text = "" };
	char mtu[SYSFS_TEXT_SIZE] = "", number[UNITS_TEXT_SIZE];

	if (port->mtu)
		log_text(mtu, sizeof(mtu), ", MTU %u", port->mtu);
	if (!good)
		remedy = remedy_find(waits_for_host(doctor, device, port, facts) ? PROBLEM_VIRTUAL : PROBLEM_PORT,
				     facts, port->netdev, number_of(port, facts, number));
	finding_add(doctor, good ? FINDING_READ : FINDING_WARN, "port", "%s/%u: %s, %s, %s%s, %s\n%s", device->name,
		    port->number, port->state, port->physical_state, port->link_layer, mtu, port->rate, remedy.text);
	if (facts & FACT_INFINIBAND && port->partition)
		check_partition(doctor, device, port);
}

/*
 * RoCE v2 finds a GID's link-layer address by its IP address: whether the interface is known to lack that. The kernel
 * makes the first GID from the MAC address, whatever the interface's link-local address. Of a card's such GID others
 * derive the MAC address; for soft-RoCE the kernel asks on the link, and only an interface with the address answers.
 */
static bool lacks_address(const struct device *device, const struct port *port, const struct gid *gid)
{
	const struct interface interface = interface_read(gid->netdev);
	const unsigned asked = INTERFACE_UP | INTERFACE_LINK;
	struct address address = gid->address;
	char name[IF_NAMESIZE];

	if (!interface.facts || !is_interface_of(port, gid->netdev, &interface))
		return false;
	if (!address_is_link_local(&address))
		return !interface_of(&address, name);
	address.scope = interface_index(gid->netdev);
	return (interface.facts & asked) == asked &&
	       !(devices_is_rxe(device) ? interface_of(&address, name) : interface.facts & INTERFACE_LINK_LOCAL);
}

static void check_gids(struct doctor *doctor, const struct device *device, const struct port *port)
{
	char host[ADDRESS_TEXT_SIZE], fix[UNITS_TEXT_SIZE];
	const struct gid *routed = NULL; /* the first routable one */
	struct error mode;

	for (unsigned i = 0; i < port->gid_count && !routed; i++)
		if (strstr(port->gids[i].type, "v2") && !address_is_link_local(&port->gids[i].address) &&
		    !lacks_address(device, port, &port->gids[i]))
			routed = &port->gids[i];
	for (unsigned i = 0; i < port->gid_count; i++) {
		const struct gid *gid = &port->gids[i];
		bool compared = routed && strstr(gid->type, "v2"), stale = compared && lacks_address(device, port, gid);

		*fix = 0;
		if (stale)
			log_text(fix, sizeof(fix), "use GID index %u", routed->index);
		finding_add(doctor, stale ? FINDING_WARN : FINDING_READ, "gid", "%s/%u: %2u  %-10s %s%s%s%s\n%s",
			    device->name, port->number, gid->index, gid->type, gid->netdev, *gid->netdev ? "  " : "",
			    address_host(&gid->address, host),
			    stale					       ? ": not an address of its interface"
			    : compared && address_is_link_local(&gid->address) ? " (this link only)"
									       : "",
			    fix);
	}
	if (port->gids_left_out)
		finding_add(doctor, FINDING_READ, "gid", "%s/%u: %u more GID%s", device->name, port->number,
			    port->gids_left_out, units_plural(port->gids_left_out));
	if (port->gids_full)
		finding_add(doctor, FINDING_WARN, "gid",
			    "%s/%u: all %u entries of its table are in use: no further address gets a GID\n"
			    "remove addresses that RDMA does not need (ip address del), then add the missing one again",
			    device->name, port->number, port->gid_count + port->gids_left_out);
	if (devices_lacks_mode(device, port, &mode)) {
		log_text(mode.object, sizeof(mode.object), "%s/%u", device->name, port->number);
		finding_add_error(doctor, FINDING_WARN, "gid", &mode);
	}
}

static void check_device(struct doctor *doctor, const struct device *device)
{
	char interfaces[2 * SYSFS_TEXT_SIZE] = "";

	for (unsigned i = 0; i < device->port_count; i++)
		if (*device->ports[i].netdev)
			log_add(interfaces, sizeof(interfaces), ", ", "%s", device->ports[i].netdev);
	finding_add(doctor, FINDING_READ, "device", "%s: driver %s%s%s%s%s%s", device->name,
		    *device->driver ? device->driver : "unknown", *interfaces ? ", on " : "", interfaces,
		    *device->firmware ? ", firmware " : "", device->firmware,
		    device->ports_left_out ? ", more ports not shown" : "");
	if (device->elsewhere)
		finding_add(doctor, doctor->host.failure, "device",
			    "%s: this kernel's soft-RoCE sends and receives in another network namespace only",
			    device->name);
	if (error_is_set(&device->memory))
		finding_add_error(doctor, device->registers ? FINDING_WARN : doctor->host.failure, "memory",
				  &device->memory);
}

/*
 * With RoCE LAG one device has all ports of the bond. Otherwise the bond's mode or the switch may choose a port whose
 * device does not have the queue pair. On InfiniBand a bond's address leads to the active port's device. iWARP has no
 * RoCE LAG, and soft-iWARP's "device" may be the card of its interface.
 */
static void check_bond(struct doctor *doctor, const struct device *device)
{
	for (const struct device *other = device->next; other; other = other->next)
		if (*device->bond && !strcmp(other->bond, device->bond) && !device->iwarp && !other->iwarp &&
		    !strcmp(device->ports->link_layer, "Ethernet"))
			finding_add(doctor, FINDING_WARN, "port",
				    "%s and %s share %s without RoCE LAG: each works with its own port only, and "
				    "packets for it may arrive at the other\n"
				    "bond both ports of one card, in mode active-backup, balance-xor or 802.3ad; or no "
				    "bond, and an address on each port",
				    device->name, other->name, device->bond);
}

void devices_check(struct doctor *doctor)
{
	for (const struct device *device = doctor->devices; device; device = device->next) {
		doctor->findings.new_group = true;
		check_device(doctor, device);
		check_bond(doctor, device);
		for (unsigned i = 0; i < device->port_count; i++) {
			check_port(doctor, device, &device->ports[i]);
			check_class(doctor, device, &device->ports[i]);
			check_gids(doctor, device, &device->ports[i]);
		}
	}
}
