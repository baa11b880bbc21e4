/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "cmd/doctor/doctor.h"

static void check_provider(struct findings *findings, const char *root, const struct device *device,
			   enum finding_status failure)
{
	const char *remedy = "Debian: apt install ibverbs-providers; Fedora: dnf install libibverbs";
	const char *provider = device->driver ? device->driver->provider : NULL;
	char file[SYSFS_NAME_SIZE];

	if (!WITH_VERBS)
		return;
	if (!provider) {
		finding_add(findings, FINDING_WARN, "provider", NULL, "%s: no library is known for its driver%s%s",
			    device->name, *device->card ? " " : "", device->card);
		return;
	}
	switch (provider_find(root, provider, file)) {
	case PROVIDER_UNKNOWN:
		break;
	case PROVIDER_FOUND:
		finding_add(findings, FINDING_OK, "provider", NULL, "%s: %s", device->name, file);
		break;
	case PROVIDER_NO_LIBRARY:
		finding_add(findings, failure, "provider", remedy, "%s: libibverbs has no lib%s-rdmav*.so for it",
			    device->name, provider);
		break;
	case PROVIDER_NO_FILE:
		finding_add(findings, failure, "provider", remedy,
			    "%s: libibverbs looks for its library only with /etc/libibverbs.d/%s.driver", device->name,
			    provider);
		break;
	}
}

static const char *remedy_of_port(struct findings *findings, const struct device *device, const struct port *port)
{
	if (!strcmp(port->link_layer, "InfiniBand"))
		return port->initialising ? "start a subnet manager in the fabric: opensm" : "look at cable and switch";
	if (*device->netdev)
		return finding_remedy(findings, "ip link set %s up (or look at cable and switch)", device->netdev);
	return "bring its network interface up";
}

static void check_port(struct findings *findings, const struct device *device, const struct port *port)
{
	char mtu[SURVEY_WORD_SIZE] = "";

	if (port->mtu)
		snprintf(mtu, sizeof(mtu), ", MTU %u", port->mtu);
	finding_add(findings, port->active ? FINDING_OK : FINDING_WARN, "port",
		    port->active ? NULL : remedy_of_port(findings, device, port), "%s/%u: %s, %s, %s%s, %s",
		    device->name, port->number, port->state, port->physical_state, port->link_layer, mtu, port->rate);
}

static void check_gids(struct findings *findings, const struct device *device, const struct port *port)
{
	char host[ADDRESS_TEXT_SIZE];

	for (unsigned i = 0; i < port->gid_count; i++) {
		const struct gid *gid = &port->gids[i];

		finding_add(findings, FINDING_OK, "gid", NULL, "%s/%u: %2u  %-10s %s%s%s", device->name, port->number,
			    gid->index, gid->type, gid->netdev, *gid->netdev ? "  " : "",
			    address_host(&gid->address, host));
	}
	if (port->gids_left_out)
		finding_add(findings, FINDING_OK, "gid", NULL, "%s/%u: and %u more", device->name, port->number,
			    port->gids_left_out);
}

static void check_device(struct findings *findings, const struct device *device, enum finding_status failure)
{
	const char *driver = device->driver ? device->driver->module : *device->card ? device->card : "unknown";

	finding_add(findings, FINDING_OK, "device", NULL, "%s: driver %s%s%s%s%s%s", device->name, driver,
		    *device->netdev ? ", on " : "", device->netdev, *device->firmware ? ", firmware " : "",
		    device->firmware, device->ports_left_out ? ", and more ports than these" : "");
	if (!*device->verbs)
		finding_add(findings, failure, "device", "modprobe ib_uverbs",
			    "%s: there is no file of it for programs (uverbs)", device->name);
}

void devices_check(struct findings *findings, const char *root, const struct device *devices,
		   enum finding_status failure)
{
	for (const struct device *device = devices; device; device = device->next) {
		findings->group_over = true;
		check_device(findings, device, failure);
		check_provider(findings, root, device, failure);
		for (unsigned i = 0; i < device->port_count; i++) {
			check_port(findings, device, &device->ports[i]);
			check_gids(findings, device, &device->ports[i]);
		}
	}
}
