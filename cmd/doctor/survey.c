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
	char text[SYSFS_NAME_SIZE];

	sysfs_line(text, sizeof(text), "%s/gids/%u", folder, index);
	if (!parse_gid(text, ethernet, &gid.address))
		return;
	if (port->gid_count == SURVEY_GIDS_MOST) {
		port->gids_left_out++;
		return;
	}
	sysfs_line(gid.type, sizeof(gid.type), "%s/gid_attrs/types/%u", folder, index);
	sysfs_name(gid.netdev, sizeof(gid.netdev), "%s/gid_attrs/ndevs/%u", folder, index);
	port->gids[port->gid_count++] = gid;
}

static void read_port(const char *folder, struct port *port)
{

	sysfs_line(port->state, sizeof(port->state), "%s/state", folder);
	port->active = !strncmp(port->state, "4:", 2);
	port->initialising = !strncmp(port->state, "2:", 2);
	drop_number(port->state);
	sysfs_line(port->physical_state, sizeof(port->physical_state), "%s/phys_state", folder);
	drop_number(port->physical_state);
	sysfs_line(port->link_layer, sizeof(port->link_layer), "%s/link_layer", folder);
	sysfs_line(port->rate, sizeof(port->rate), "%s/rate", folder);
	for (unsigned i = 0; i < SURVEY_GID_TABLE_MOST && sysfs_has("%s/gids/%u", folder, i); i++)
		read_gid(folder, i, port);
}

/* The ports of a device have numbers from 1 on; a switch has one of number 0. */
static void read_ports(const char *folder, struct device *device)
{
	for (unsigned number = 0; number <= SURVEY_PORTS_MOST + 1; number++) {
		struct port *port = &device->ports[device->port_count];
		char path[SYSFS_PATH_SIZE];

		sysfs_path(path, "%s/ports/%u", folder, number);
		if (!sysfs_has("%s", path))
			continue;
		device->ports_left_out = device->port_count == SURVEY_PORTS_MOST;
		if (device->ports_left_out)
			break;
		port->number = number;
		read_port(path, port);
		device->port_count++;
	}
}

/* The file of uverbs is numbered by itself. */
static void find_verbs(const char *root, struct device *device)
{
	char path[SYSFS_PATH_SIZE];
	char name[SYSFS_NAME_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "%s/sys/class/infiniband_verbs", root));

	for (size_t i = 0; i < names.count && !*device->verbs; i++) {
		sysfs_name(name, sizeof(name), "%s/sys/class/infiniband_verbs/%s/ibdev", root, names.name[i]);
		if (!strcmp(name, device->name))
			strcpy(device->verbs, names.name[i]);
	}
	sysfs_names_free(&names);
}

/* soft-RoCE names its interface itself; a device in software may seem to sit on the card of its interface. */
static void find_driver(const char *folder, struct device *device)
{
	char path[SYSFS_PATH_SIZE];
	char type[SYSFS_NAME_SIZE];
	struct names netdevs;

	if (sysfs_name(device->netdev, sizeof(device->netdev), "%s/parent", folder)) {
		device->driver = driver_rxe;
		return;
	}
	netdevs = sysfs_names(sysfs_path(path, "%s/device/net", folder));
	if (netdevs.count)
		strcpy(device->netdev, netdevs.name[0]);
	sysfs_names_free(&netdevs);
	if (sysfs_link(device->card, "%s/device/driver", folder))
		device->driver = driver_of_card(device->card);
	sysfs_line(type, sizeof(type), "%s/node_type", folder);
	if (!device->driver && strstr(type, "RNIC"))
		device->driver = driver_siw;
}

static struct device *read_device(const char *root, const char *name)
{
	struct device *device = calloc(1, sizeof(*device));
	char folder[SYSFS_PATH_SIZE];

	if (!device)
		return NULL;
	snprintf(device->name, sizeof(device->name), "%s", name);
	sysfs_path(folder, "%s/sys/class/infiniband/%s", root, name);
	sysfs_line(device->firmware, sizeof(device->firmware), "%s/fw_ver", folder);
	find_driver(folder, device);
	find_verbs(root, device);
	read_ports(folder, device);
	for (unsigned i = 0; i < device->port_count && !*device->netdev; i++)
		strcpy(device->netdev, device->ports[i].gids[0].netdev);
	return device;
}

struct device *survey_read(const char *root)
{
	char path[SYSFS_PATH_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "%s/sys/class/infiniband", root));
	struct device *first = NULL;
	struct device **end = &first;

	for (size_t i = 0; i < names.count && i < SURVEY_DEVICES_MOST; i++) {
		*end = read_device(root, names.name[i]);
		if (!*end)
			break;
		end = &(*end)->next;
	}
	sysfs_names_free(&names);
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
