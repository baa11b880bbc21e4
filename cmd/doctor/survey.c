/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/doctor/survey.h"

#include <stdlib.h>
#include <string.h>

/* "4: ACTIVE" is "ACTIVE". */
static void drop_number(char *text)
{
	const char *colon = strstr(text, ": ");

	if (colon)
		memmove(text, colon + 2, strlen(colon + 2) + 1);
}

static bool is_mapped(const uint8_t bytes[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(bytes, prefix, sizeof(prefix));
}

/* False for an empty entry, or one that is no GID. */
static bool parse_gid(const char *text, bool ethernet, struct address *address)
{
	static const uint8_t none[8];

	/* An empty entry may have the prefix of its port. */
	if (!address_parse(text, ADDRESS_FORMAT_GID, address) || !memcmp(address->bytes + 8, none, sizeof(none)))
		return false;
	if (!ethernet)
		return true;
	address->family = ADDRESS_IP6;
	if (is_mapped(address->bytes)) {
		address->family = ADDRESS_IP4;
		memmove(address->bytes, address->bytes + 12, 4);
		memset(address->bytes + 4, 0, 12);
	}
	return true;
}

static void read_gid(const char *folder, unsigned index, struct port *port)
{
	bool ethernet = !strcmp(port->link_layer, "Ethernet");
	struct gid gid = { .index = index };
	char path[MACHINE_PATH_SIZE];
	char text[MACHINE_NAME_SIZE];

	machine_line(machine_path(path, folder, "gids/%u", index), text, sizeof(text));
	if (!parse_gid(text, ethernet, &gid.address))
		return;
	if (port->gid_count == SURVEY_GIDS_MOST) {
		port->gids_left_out++;
		return;
	}
	machine_line(machine_path(path, folder, "gid_attrs/types/%u", index), gid.type, sizeof(gid.type));
	machine_name(machine_path(path, folder, "gid_attrs/ndevs/%u", index), gid.netdev, sizeof(gid.netdev));
	port->gids[port->gid_count++] = gid;
}

static void read_port(const char *folder, struct port *port)
{
	char path[MACHINE_PATH_SIZE];

	machine_line(machine_path(path, folder, "state"), port->state, sizeof(port->state));
	port->active = !strncmp(port->state, "4:", 2);
	port->initialising = !strncmp(port->state, "2:", 2);
	drop_number(port->state);
	machine_line(machine_path(path, folder, "phys_state"), port->physical_state, sizeof(port->physical_state));
	drop_number(port->physical_state);
	machine_line(machine_path(path, folder, "link_layer"), port->link_layer, sizeof(port->link_layer));
	machine_line(machine_path(path, folder, "rate"), port->rate, sizeof(port->rate));
	for (unsigned i = 0; i < SURVEY_GID_TABLE_MOST && machine_has(machine_path(path, folder, "gids/%u", i)); i++)
		read_gid(folder, i, port);
}

/* The ports of a device have numbers from 1 on; a switch has one of number 0. */
static void read_ports(const char *folder, struct device *device)
{
	char path[MACHINE_PATH_SIZE];

	for (unsigned number = 0; number <= SURVEY_PORTS_MOST; number++) {
		struct port *port = &device->ports[device->port_count];

		if (!machine_has(machine_path(path, folder, "ports/%u", number)))
			continue;
		device->ports_left_out = device->port_count == SURVEY_PORTS_MOST;
		if (device->ports_left_out)
			break;
		port->number = number;
		read_port(path, port);
		device->port_count++;
	}
	machine_path(path, folder, "ports/%u", SURVEY_PORTS_MOST + 1);
	device->ports_left_out |= machine_has(path);
}

/* The file of uverbs is numbered by itself. */
static void find_verbs(const char *root, struct device *device)
{
	char path[MACHINE_PATH_SIZE];
	char name[MACHINE_NAME_SIZE];
	struct names names = machine_names(machine_path(path, root, "sys/class/infiniband_verbs"));

	for (size_t i = 0; i < names.count && !*device->verbs; i++) {
		machine_path(path, root, "sys/class/infiniband_verbs/%s/ibdev", names.name[i]);
		if (machine_name(path, name, sizeof(name)) && !strcmp(name, device->name))
			strcpy(device->verbs, names.name[i]);
	}
	machine_names_free(&names);
}

/* soft-RoCE names its interface itself; a device in software may seem to sit on the card of its interface. */
static void find_driver(const char *folder, struct device *device)
{
	char path[MACHINE_PATH_SIZE];
	char type[MACHINE_NAME_SIZE];
	struct names netdevs;

	if (machine_name(machine_path(path, folder, "parent"), device->netdev, sizeof(device->netdev))) {
		device->driver = &driver_rxe;
		return;
	}
	netdevs = machine_names(machine_path(path, folder, "device/net"));
	if (netdevs.count)
		strcpy(device->netdev, netdevs.name[0]);
	machine_names_free(&netdevs);
	if (machine_link(machine_path(path, folder, "device/driver"), device->card))
		device->driver = driver_of_card(device->card);
	machine_line(machine_path(path, folder, "node_type"), type, sizeof(type));
	if (!device->driver && strstr(type, "RNIC"))
		device->driver = &driver_siw;
}

static struct device *read_device(const char *root, const char *name)
{
	struct device *device = calloc(1, sizeof(*device));
	char folder[MACHINE_PATH_SIZE];
	char path[MACHINE_PATH_SIZE];

	if (!device)
		return NULL;
	snprintf(device->name, sizeof(device->name), "%s", name);
	machine_path(folder, root, "sys/class/infiniband/%s", name);
	machine_line(machine_path(path, folder, "fw_ver"), device->firmware, sizeof(device->firmware));
	find_driver(folder, device);
	find_verbs(root, device);
	read_ports(folder, device);
	for (unsigned i = 0; i < device->port_count && !*device->netdev; i++)
		strcpy(device->netdev, device->ports[i].gids[0].netdev);
	return device;
}

struct device *survey_read(const char *root)
{
	char path[MACHINE_PATH_SIZE];
	struct names names = machine_names(machine_path(path, root, "sys/class/infiniband"));
	struct device *first = NULL;
	struct device **end = &first;

	for (size_t i = 0; i < names.count && i < SURVEY_DEVICES_MOST; i++) {
		*end = read_device(root, names.name[i]);
		if (!*end)
			break;
		end = &(*end)->next;
	}
	machine_names_free(&names);
	return first;
}

void survey_free(struct device *devices)
{
	while (devices) {
		struct device *next = devices->next;

		free(devices);
		devices = next;
	}
}

struct device *survey_find(struct device *devices, const char *name)
{
	while (devices && strcmp(devices->name, name))
		devices = devices->next;
	return devices;
}

const struct gid *survey_gid(const struct port *port, const struct address *address)
{
	const struct gid *found = NULL;

	for (unsigned i = 0; i < port->gid_count; i++) {
		const struct gid *gid = &port->gids[i];

		if (gid->address.family != address->family || memcmp(gid->address.bytes, address->bytes, 16))
			continue;
		if (!found || strstr(gid->type, "v2"))
			found = gid;
	}
	return found;
}
