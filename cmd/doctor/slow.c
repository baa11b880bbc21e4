/* SPDX-License-Identifier: BSD-2-Clause */
/* Causes of slow runs without a failure, from /sys: a card's place in this host, and the processors. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/doctor/doctor.h"

/* Gbit/s. Up to 5 GT/s the encoding takes a fifth of the bits. A virtual function has no link: "Unknown", "0". */
static unsigned long read_pcie(const struct doctor *doctor, const struct device *device, const char *which,
			       char text[2 * SYSFS_TEXT_SIZE])
{
	char speed[SYSFS_TEXT_SIZE], width[SYSFS_TEXT_SIZE];
	unsigned long rate;

	sysfs_line(speed, "%s/sys/class/infiniband/%s/device/%s_link_speed", doctor->host.root, device->name, which);
	sysfs_line(width, "%s/sys/class/infiniband/%s/device/%s_link_width", doctor->host.root, device->name, which);
	rate = strtoul(speed, NULL, 10);
	rate = (rate == 5 ? 4 : rate) * strtoul(width, NULL, 10);
	if (strstr(speed, " PCIe"))
		*strstr(speed, " PCIe") = 0;
	log_text(text, 2 * SYSFS_TEXT_SIZE, "%s x%s (%lu Gbit/s)", speed, width, rate);
	return rate;
}

/*
 * A card may support more than its ports need, or less: each of two functions has a part of some cards' link. No file
 * has the most that a port can do, but few cards have a link of more than twice that.
 */
static void check_link(struct doctor *doctor, const struct device *device)
{
	char now[2 * SYSFS_TEXT_SIZE], most[2 * SYSFS_TEXT_SIZE];
	unsigned long rate = read_pcie(doctor, device, "current", now), ports = 0;
	unsigned long limit = read_pcie(doctor, device, "max", most);

	for (unsigned i = 0; i < device->port_count; i++)
		if (device->ports[i].active)
			ports += strtoul(device->ports[i].rate, NULL, 10);
	if (ports && rate / 2 > ports)
		finding_add(
			doctor, FINDING_READ, "pcie",
			"%s: PCIe link %s, its ports have %lu: if the card can do more, a cable or switch limits it",
			device->name, now, ports);
	if (!rate || !limit || rate >= (limit > ports ? limit : ports))
		return;
	finding_add(doctor, rate < ports && rate < limit ? FINDING_WARN : FINDING_READ, "pcie",
		    "%s: PCIe link %s, of %s that the card can do%s%s", device->name, now, most,
		    rate < ports ? "; its ports are faster" : "",
		    rate >= limit  ? ": another PCIe function of the card may share them"
		    : rate < ports ? "\nuse another slot; or reseat the card, and check the slot's BIOS settings"
				   : "");
}

/* Whether the list, "0-15,32-47", has one of the set. True for an empty list. */
static bool has_processor(const char *list, const cpu_set_t *set)
{
	bool found = *list < '0' || *list > '9';

	while (!found && *list >= '0' && *list <= '9') {
		char *end;
		size_t from = strtoul(list, &end, 10), to = *end == '-' ? strtoul(end + 1, &end, 10) : from;

		for (; !found && from <= to && from < CPU_SETSIZE; from++)
			found = CPU_ISSET(from, set);
		list = *end == ',' ? end + 1 : end;
	}
	return found;
}

static void check_node(struct doctor *doctor, const struct device *device, const cpu_set_t *set)
{
	char node[SYSFS_TEXT_SIZE], list[SYSFS_PATH_SIZE], *end;

	if (!sysfs_name(node, "%s/sys/class/infiniband/%s/device/numa_node", doctor->host.root, device->name))
		return;
	sysfs_path(list, "%s/sys/devices/system/node/node%s/cpulist", doctor->host.root, node);
	end = sysfs_find(list, "\n"); /* if the line fits */
	if (!end || has_processor(list, set))
		return;
	*end = 0;
	finding_add(doctor, FINDING_WARN, "numa",
		    "%s is on NUMA node %s, but this process may not use its processors\n"
		    "taskset -c %s PROGRAM; in a job or container, assign it processors of that node",
		    device->name, node, list);
}

/*
 * This governor sets the lowest frequency. In the active modes of intel_pstate and amd-pstate a governor of the same
 * name follows the load: Linux's Documentation/admin-guide/pm.
 */
static void check_frequency(struct doctor *doctor, const cpu_set_t *set)
{
	static const char *const names[] = { "scaling_governor", "scaling_driver", "scaling_cur_freq",
					     "cpuinfo_max_freq" };
	char texts[4][SYSFS_TEXT_SIZE];
	unsigned long now, most;
	size_t processor = 0;

	while (processor < CPU_SETSIZE && !CPU_ISSET(processor, set))
		processor++;
	for (int i = 0; i < 4; i++)
		if (!sysfs_line(texts[i], "%s/sys/devices/system/cpu/cpu%zu/cpufreq/%s", doctor->host.root, processor,
				names[i]))
			return;
	now = strtoul(texts[2], NULL, 10) / 1000;
	most = strtoul(texts[3], NULL, 10) / 1000;
	if (!strcmp(texts[0], "powersave") && strcmp(texts[1], "intel_pstate") != 0 && !strstr(texts[1], "-epp") &&
	    now < most / 4 * 3)
		finding_add(doctor, FINDING_WARN, "cpu",
			    "processor %zu runs at %lu of %lu MHz: its governor is powersave\n"
			    "as root, on the host: cpupower frequency-set -g performance",
			    processor, now, most);
}

void slow_check(struct doctor *doctor)
{
	cpu_set_t set;
	bool known = !sched_getaffinity(0, sizeof(set), &set);
	uint64_t before = findings_count(&doctor->findings);

	for (const struct device *device = doctor->devices; device; device = device->next) {
		check_link(doctor, device);
		if (known)
			check_node(doctor, device, &set);
	}
	if (known)
		check_frequency(doctor, &set);
	doctor->findings.new_group |= findings_count(&doctor->findings) > before;
}
