/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <sys/utsname.h>

#include "cmd/doctor/doctor.h"
#include "core/units.h"

enum {
	LIST_SIZE = 160,
	INDEX_LINES_MOST = 1 << 16,
};

/* What is needed, and where it shows also if it is built into the kernel. */
static const struct {
	char module[10];
	char sign[29];
} modules[] = {
	{ "ib_core", "sys/class/infiniband" },
	{ "ib_uverbs", "sys/class/infiniband_verbs" },
	{ "rdma_cm", "sys/class/misc/rdma_cm" },
	{ "rdma_ucm", "sys/class/misc/rdma_cm" },
};

static void append(char list[LIST_SIZE], const char *separator, const char *word)
{
	size_t used = strlen(list);

	snprintf(list + used, LIST_SIZE - used, "%s%s", used ? separator : "", word);
}

static bool has_module(const char *root, const char *module)
{

	return sysfs_has("%s/sys/module/%s", root, module);
}

/* modules.dep and modules.builtin have a file's path in front of each line. */
static bool is_indexed(const char *root, const char *index, const char *module)
{
	char path[SYSFS_PATH_SIZE];
	char file[SYSFS_NAME_SIZE];
	char line[SYSFS_PATH_SIZE];
	struct utsname names;
	FILE *stream = NULL;
	bool found = false;

	if (!uname(&names))
		stream = sysfs_open(sysfs_path(path, "%s/lib/modules/%s/%s", root, names.release, index));
	if (!stream)
		return false;
	snprintf(file, sizeof(file), "/%s.ko", module);
	for (unsigned i = 0; i < INDEX_LINES_MOST && !found && fgets(line, sizeof(line), stream); i++)
		found = strstr(line, file);
	fclose(stream);
	return found;
}

bool kernel_may_have(const char *root, const char *module)
{
	return !sysfs_has("%s/sys/module", root) || has_module(root, module) ||
	       is_indexed(root, "modules.dep", module) || is_indexed(root, "modules.builtin", module);
}

static void tell_missing(struct findings *findings, const char *root, enum finding_status failure, const char *missing,
			 bool some_loaded)
{
	bool some = some_loaded;
	struct utsname names;

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		some = some || kernel_may_have(root, modules[i].module);
	if (some || uname(&names))
		finding_add(findings, failure, "modules", finding_remedy(findings, "modprobe -a %s", missing),
			    "not loaded: %s", missing);
	else
		finding_add(findings, failure, "modules",
			    "a kernel that has them; in a container, on its host: modprobe rdma_ucm",
			    "no RDMA modules for this kernel: none loaded, none under /lib/modules/%s", names.release);
}

static void check_modules(struct findings *findings, const char *root, enum finding_status failure)
{
	char loaded[LIST_SIZE] = "";
	char missing[LIST_SIZE] = "";

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		if (sysfs_has("%s/%s", root, modules[i].sign) || has_module(root, modules[i].module))
			append(loaded, ", ", modules[i].module);
		else
			append(missing, " ", modules[i].module);
	}
	for (unsigned i = 0; i < DRIVER_CARDS + 2; i++)
		if (has_module(root, driver_table[i].module) && !strstr(loaded, driver_table[i].module))
			append(loaded, ", ", driver_table[i].module);
	if (*loaded)
		finding_add(findings, FINDING_OK, "modules", NULL, "%s", loaded);
	if (*missing)
		tell_missing(findings, root, failure, missing, *loaded);
}

static void check_namespaces(struct findings *findings, const char *root, const struct device *devices)
{
	char mode[SYSFS_NAME_SIZE];

	if (!sysfs_line(mode, sizeof(mode), "%s/sys/module/ib_core/parameters/netns_mode", root))
		return;
	if (*mode == 'Y')
		finding_add(findings, FINDING_OK, "netns", NULL,
			    "shared: every network namespace sees every RDMA device");
	else if (devices)
		finding_add(findings, FINDING_OK, "netns", NULL,
			    "exclusive: this network namespace sees its own RDMA devices only");
	else
		finding_add(findings, FINDING_WARN, "netns", "where the device is: rdma dev set DEVICE netns NAME",
			    "exclusive, and this network namespace has been given no RDMA device");
}

/* Cards of one driver that have no RDMA device here. */
struct idle {
	unsigned count;
	char first[SYSFS_NAME_SIZE];
};

static void tell_idle(struct findings *findings, const char *root, const struct driver *row, const struct idle *idle)
{
	const char *remedy = "rdma dev show; devlink dev param show (or another network namespace has it)";
	bool loaded = has_module(root, row->module);

	if (!idle->count || (loaded && !row->always))
		return;
	if (!loaded)
		remedy = finding_remedy(findings, "modprobe %s", row->module);
	finding_add(findings, FINDING_WARN, "card", remedy, "%u card%s of %s without an RDMA device (%s%s), %s is %s",
		    idle->count, units_plural(idle->count), row->card, idle->first, idle->count == 1 ? "" : " ...",
		    row->module, loaded ? "loaded" : "not loaded");
}

/* A Mellanox card for networks has RDMA whatever its model. */
static bool is_driverless(const char *folder)
{
	char vendor[SYSFS_NAME_SIZE];
	char class[SYSFS_NAME_SIZE];

	sysfs_line(vendor, sizeof(vendor), "%s/vendor", folder);
	sysfs_line(class, sizeof(class), "%s/class", folder);
	return !strcmp(vendor, "0x15b3") && !strncmp(class, "0x02", 4);
}

static void check_cards(struct findings *findings, const char *root)
{
	char path[SYSFS_PATH_SIZE];
	struct idle idle[DRIVER_CARDS] = { { 0 } };
	char folder[SYSFS_PATH_SIZE];
	char card[SYSFS_NAME_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "%s/sys/bus/pci/devices", root));

	for (size_t i = 0; i < names.count; i++) {
		const struct driver *row;

		sysfs_path(folder, "%s/sys/bus/pci/devices/%s", root, names.name[i]);
		if (!sysfs_link(card, "%s/driver", folder) && is_driverless(folder))
			finding_add(findings, FINDING_WARN, "card", "modprobe mlx5_core (of old cards mlx4_core)",
				    "%s is a Mellanox card without a driver", names.name[i]);
		row = driver_of_card(card);
		if (!row || sysfs_has("%s/infiniband", folder))
			continue;
		if (!idle[row - driver_table].count++)
			strcpy(idle[row - driver_table].first, names.name[i]);
	}
	sysfs_names_free(&names);
	for (unsigned i = 0; i < DRIVER_CARDS; i++)
		tell_idle(findings, root, &driver_table[i], &idle[i]);
}

void kernel_check(struct findings *findings, const char *root, const struct device *devices,
		  enum finding_status failure)
{
	struct utsname names;

	if (!uname(&names))
		finding_add(findings, FINDING_OK, "kernel", NULL, "%s %s on %s", names.sysname, names.release,
			    names.machine);
	/* Without a device nothing is expected to be loaded. */
	check_modules(findings, root, devices ? failure : FINDING_WARN);
	check_namespaces(findings, root, devices);
	check_cards(findings, root);
}
