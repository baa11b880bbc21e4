/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel, and its limits for this process: modules, namespaces, device files, locked memory. */
#include <string.h>
#include <sys/utsname.h>

#include "cmd/doctor/doctor.h"

/*
 * Whether ib_uverbs was loaded after rdma_cm; the last loaded module is the first in the list. The kernel notifies
 * modules of a device's removal in the reverse order.
 */
static bool is_verbs_last(const char *root)
{
	char line[SYSFS_PATH_SIZE];
	FILE *list = fopen(sysfs_path(line, "%s/proc/modules", root), "re");
	bool verbs = false, cm = false;

	while (list && !cm && fgets(line, sizeof(line), list)) {
		verbs = verbs || !strncmp(line, "ib_uverbs ", 10);
		cm = !strncmp(line, "rdma_cm ", 8);
	}
	if (list)
		fclose(list);
	return verbs && cm;
}

/* Card drivers take a device from its users; software drivers wait for them. */
static void check_order(struct doctor *doctor)
{
	const struct device *device = doctor->devices;

	while (device && strcmp(device->driver, "rdma_rxe") != 0 && strcmp(device->driver, "siw") != 0)
		device = device->next;
	if (device && is_verbs_last(doctor->host.root))
		finding_add(doctor, FINDING_WARN, "modules",
			    "ib_uverbs was loaded after rdma_cm: removing %s waits for its users, which are not "
			    "notified\n%s",
			    device->name, remedy_find(PROBLEM_MODULE_ORDER, doctor->host.facts, NULL, NULL).text);
}

static void check_namespaces(struct doctor *doctor)
{
	bool exclusive = doctor->host.facts & FACT_EXCLUSIVE;

	if (sysfs_has("%s" HOST_NETNS_MODE, doctor->host.root))
		finding_add(doctor, exclusive && !doctor->devices ? FINDING_WARN : FINDING_READ, "netns", "%s",
			    exclusive ? "exclusive: this network namespace sees only its own RDMA devices"
				      : "shared: every network namespace sees every RDMA device");
}

void kernel_unusable(struct host *host, const char *name)
{
	struct device *device = devices_find(doctor_of(host)->devices, name);

	if (device)
		device->cannot_be_opened = true;
}

static void check_memory(struct doctor *doctor)
{
	char text[HOST_MEMORY_SIZE];
	struct remedy remedy;

	if (host_memory_is_limited(text, &remedy))
		finding_add(doctor, FINDING_WARN, "memlock", "%s\n%s", text, remedy.text);
	else
		finding_add(doctor, FINDING_READ, "memlock", "any amount of memory may be locked");
}

void kernel_check(struct doctor *doctor)
{
	struct utsname names;

	if (!uname(&names))
		finding_add(doctor, FINDING_READ, "kernel", "%s %s on %s", names.sysname, names.release, names.machine);
	host_find_modules(&doctor->host);
	check_order(doctor);
	check_namespaces(doctor);
	doctor->findings.new_group = true;
	host_find_devices(&doctor->host);
	host_find_manager(&doctor->host);
	check_memory(doctor);
}
