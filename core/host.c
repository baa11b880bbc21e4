/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/device_file.h"
#include "core/interface.h"
#include "core/modprobe.h"
#include "core/privileges.h"

#define SOFT_HINT "--transport soft"
#define DEVICES	  "/sys/class/infiniband"
#define VERBS	  "/sys/class/infiniband_verbs"
#define MANAGER	  "/sys/class/misc/rdma_cm"
#define LIMITS	  "/etc/security/limits"

enum {
	CARDS_SIZE = 256
};

/* The modules that every device needs. The folder in /sys also exists if the module is built into the kernel. */
static const struct {
	char module[10], folder[16], entry[17];
} modules[] = {
	{ "ib_core", "/sys/class", "infiniband" },
	{ "ib_uverbs", "/sys/class", "infiniband_verbs" },
	{ "rdma_cm", "/sys/class/misc", "rdma_cm" },
	{ "rdma_ucm", "/sys/class/misc", "rdma_cm" },
};

/*
 * The RDMA modules of cards, by the driver of their PCI function. If a driver also has functions without RDMA, the key
 * is the auxiliary device of those with RDMA, without its number.
 */
static const struct card {
	char driver[12], module[15];
} cards[] = {
	{ "mlx5_core", "mlx5_ib" },	 { "mlx4_core", "mlx4_ib" }, { "ice.roce.", "irdma" },
	{ "ice.iwarp.", "irdma" },	 { "i40e.iwarp.", "irdma" }, { "bnxt_en", "bnxt_re" },
	{ "hns3", "hns-roce-hw-v2" },	 { "cxgb4", "iw_cxgb4" },    { "qede", "qedr" },
	{ "ionic.rdma.", "ionic_rdma" }, { "be2net", "ocrdma" },
};

enum {
	CARDS_COUNT = sizeof(cards) / sizeof(cards[0])
};

void host_add(struct host *host, enum finding_status status, const char *check, const char *format, ...)
{
	char text[sizeof(struct error)], *rest = text;
	struct error error = { .object = "" };
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	log_text(error.object, sizeof(error.object), "%s", check);
	log_text(error.cause, sizeof(error.cause), "%s", strsep(&rest, "\n"));
	if (rest)
		log_text(error.hint, sizeof(error.hint), "%s", strsep(&rest, "\n"));
	if (rest)
		log_text(error.code, sizeof(error.code), "%s", rest);
	host->found(host, status, &error);
}

/* ---- facts ---- */

static bool has_module(const struct host *host, const char *module)
{
	char name[SYSFS_TEXT_SIZE];

	modprobe_name(log_text(name, sizeof(name), "%s", module));
	return sysfs_has("%s/sys/module/%s", host->root, name);
}

/* modules.dep and modules.builtin list modules by path. */
static bool is_indexed(const struct host *host, const char *index, const char *module)
{
	char file[SYSFS_TEXT_SIZE], line[SYSFS_PATH_SIZE];
	struct utsname names;

	log_text(file, sizeof(file), "/%s.ko", module);
	if (uname(&names))
		return false;
	sysfs_path(line, "%s/lib/modules/%s/%s", host->root, names.release, index);
	return sysfs_find(line, file);
}

/*
 * If the kernel was updated, its package may have taken the running one's modules away. Without folders of kernels, as
 * on embedded systems, nothing is known.
 */
static unsigned find_absent(const struct host *host)
{
	char path[SYSFS_PATH_SIZE];
	struct names kernels = sysfs_names(sysfs_path(path, "%s/lib/modules", host->root));
	struct utsname names;
	bool others = false;

	for (int i = 0; i < kernels.count; i++)
		others |= sysfs_has("%s/%s/modules.dep", path, kernels.entries[i]->d_name);
	sysfs_names_free(&kernels);
	if (!uname(&names) && sysfs_has("%s/%s", path, names.release))
		return FACT_ABSENT;
	return others ? FACT_GONE : 0;
}

/* False if this kernel is known to lack the module: it is not loaded, built in or installed. */
static bool may_have(const struct host *host, const char *module)
{
	return !sysfs_has("%s/sys/module", host->root) || has_module(host, module) ||
	       is_indexed(host, "modules.dep", module) || is_indexed(host, "modules.builtin", module);
}

/* Every network namespace has the first file, and only the kernel's own the second. */
static bool is_first_network(const char *root)
{
	return !sysfs_has("%s/proc/sys/net/core/somaxconn", root) ||
	       sysfs_has("%s/proc/sys/net/core/netdev_max_backlog", root);
}

void host_read(struct host *host)
{
	char path[SYSFS_PATH_SIZE], mode[SYSFS_TEXT_SIZE];
	struct names names;

	errno = 0;
	names = sysfs_names(sysfs_path(path, "%s" DEVICES, host->root));
	host->has_devices = names.count;
	host->error = names.count || (errno == ENOENT && sysfs_has("%s/sys/class", host->root)) ? 0 : errno;
	sysfs_names_free(&names);
	host->facts = remedy_facts();
	if (sysfs_line(mode, "%s" HOST_NETNS_MODE, host->root) && *mode != 'Y')
		host->facts |= FACT_EXCLUSIVE;
	if (sysfs_line(mode, "%s/proc/sys/kernel/modules_disabled", host->root) && *mode == '1')
		host->facts |= FACT_SEALED;
	if (!COMMAND_doctor)
		return;
	if (is_first_network(host->root))
		host->facts |= FACT_FIRST_NETWORK;
	if (sysfs_find(sysfs_path(path, "%s/proc/version", host->root), "Ubuntu"))
		host->facts |= FACT_UBUNTU;
	if (may_have(host, "rdma_rxe"))
		host->facts |= FACT_RXE;
	if (may_have(host, "siw"))
		host->facts |= FACT_SIW;
}

/* Below self: a service with ProcSubset=pid has no /proc/net. */
bool host_port_is_held(const char *root)
{
	char line[SYSFS_PATH_SIZE];

	return sysfs_find(sysfs_path(line, "%s/proc/self/net/udp", root), " 00000000:12B7 ");
}

bool host_rxe_holds_port(const char *root)
{
	return sysfs_has("%s/sys/module/rdma_rxe", root) && host_port_is_held(root);
}

/* Soft-RoCE has a file "parent". */
static bool host_has_gid(const char *device, const char *interface)
{
	char type[SYSFS_TEXT_SIZE], netdev[SYSFS_TEXT_SIZE];
	bool found = false;

	for (unsigned i = 0; !found && sysfs_has(DEVICES "/%s/ports/1/gids/%u", device, i); i++)
		found = sysfs_line(type, DEVICES "/%s/ports/1/gid_attrs/types/%u", device, i) && strstr(type, "v2") &&
			sysfs_line(netdev, DEVICES "/%s/ports/1/gid_attrs/ndevs/%u", device, i) &&
			!strcmp(netdev, interface);
	return found && !sysfs_has(DEVICES "/%s/parent", device);
}

bool host_find_card(const char *interface, char device[SYSFS_TEXT_SIZE])
{
	struct names names = sysfs_names(DEVICES);

	*device = '\0';
	for (int i = 0; i < names.count && !*device; i++)
		if (host_has_gid(names.entries[i]->d_name, interface))
			strcpy(device, names.entries[i]->d_name);
	sysfs_names_free(&names);
	return *device;
}

/* ---- findings ---- */

/*
 * Writes a remedy that loads these modules, and before it the lines that have kept them out. The files of a container
 * are not those of the kernel's host.
 */
static char *add_remedy(const struct host *host, struct remedy remedy, const char *missing, char text[ERROR_HINT_SIZE])
{
	char lines[MODPROBE_LINES_SIZE] = "";

	if (*remedy.text && !(host->facts & FACT_CONTAINER))
		modprobe_lines(host->root, missing, lines);
	return log_text(text, ERROR_HINT_SIZE, *lines ? "delete %s, then: %s" : "%s%s", lines, remedy.text);
}

/* some: a module is loaded. Without a device, missing modules are no failure. */
static void add_missing_modules(struct host *host, const char *missing, bool some)
{
	enum finding_status failure = host->has_devices ? host->failure : FINDING_WARN;
	unsigned absent = find_absent(host);
	char hint[ERROR_HINT_SIZE];
	struct utsname names;
	bool known = COMMAND_doctor && !uname(&names), installed = !known;

	for (size_t i = 0; known && i < sizeof(modules) / sizeof(modules[0]); i++) {
		bool may = may_have(host, modules[i].module);

		some |= may;
		installed |= may && strstr(missing, modules[i].module);
	}
	if (some || !known)
		host_add(
			host, failure, "modules", "kernel modules not loaded: %s\n%s", missing,
			add_remedy(host,
				   remedy_find(PROBLEM_MODULES, host->facts | (installed ? absent & FACT_GONE : absent),
					       missing, installed ? NULL : names.release),
				   missing, hint));
	else
		host_add(host, failure, "modules",
			 "no RDMA modules for this kernel: none loaded, none in /lib/modules/%s\n%s", names.release,
			 remedy_find(PROBLEM_NO_MODULES, host->facts | absent, NULL, names.release).text);
}

/* Whether an InfiniBand device has no interfaces: the same command loads their module. */
static bool lacks_ipoib(const struct host *host)
{
	char path[SYSFS_PATH_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "%s" DEVICES, host->root));
	unsigned facts = 0;

	for (int i = 0; i < names.count; i++)
		facts |= host_device_facts(host->root, names.entries[i]->d_name);
	sysfs_names_free(&names);
	return facts & FACT_NO_IPOIB;
}

void host_find_modules(struct host *host)
{
	char loaded[64] = "", missing[64] = "";

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		bool here = sysfs_has("%s%s/%s", host->root, modules[i].folder, modules[i].entry) ||
			    has_module(host, modules[i].module);
		char *list = here ? loaded : missing;
		size_t used = strlen(list);

		/* Without the folder nothing is known. */
		if (!here && !sysfs_has("%s%s", host->root, modules[i].folder))
			continue;
		log_text(list + used, sizeof(loaded) - used, "%s%s", !used ? "" : here ? ", " : " ", modules[i].module);
	}
	if (COMMAND_doctor && *loaded)
		host_add(host, FINDING_READ, "modules", "%s", loaded);
	if (*missing && COMMAND_doctor && lacks_ipoib(host))
		log_add(missing, sizeof(missing), " ", "ib_ipoib");
	if (*missing)
		add_missing_modules(host, missing, *loaded);
}

/* The interface for a software device. */
static const char *find_link(char name[SYSFS_TEXT_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = interface_addresses(list);

	*name = 0;
	for (size_t i = 0; i < count && !*name; i++)
		if (!list[i].loopback && interface_read(list[i].name).link_length)
			log_text(name, SYSFS_TEXT_SIZE, "%s", list[i].name);
	return name;
}

/* The interface of the first card with that driver or auxiliary device, else its bus number; "": no card. */
static void find_card(const struct host *host, const char *driver, char name[SYSFS_TEXT_SIZE])
{
	const char *bus = strchr(driver, '.') ? "auxiliary" : "pci";
	char path[SYSFS_PATH_SIZE], net[SYSFS_PATH_SIZE], text[SYSFS_TEXT_SIZE];
	struct names devices = sysfs_names(sysfs_path(path, "%s/sys/bus/%s/devices", host->root, bus));

	*name = 0;
	for (int i = 0; i < devices.count && !*name; i++) {
		const char *device = devices.entries[i]->d_name;
		struct names interfaces;

		if (*bus == 'p' ? !sysfs_link(text, "%s/%s/driver", path, device) || strcmp(text, driver) != 0
				: strncmp(device, driver, strlen(driver)) != 0)
			continue;
		interfaces = sysfs_names(sysfs_path(net, "%s/%s%s/net", path, device, *bus == 'p' ? "" : "/.."));
		strcpy(name, interfaces.count ? interfaces.entries[0]->d_name : device);
		sysfs_names_free(&interfaces);
	}
	sysfs_names_free(&devices);
}

/*
 * Lists the missing modules of cards, plain and, as a cause, with one card for each. failed: the row of the first card
 * whose module is loaded and has made no device, with its name; NULL: none. Returns facts about the missing ones.
 */
static unsigned find_card_modules(const struct host *host, char missing[CARDS_SIZE], char cause[CARDS_SIZE],
				  const struct card **failed, char failed_name[SYSFS_TEXT_SIZE])
{
	char name[SYSFS_TEXT_SIZE];
	unsigned facts = 0;

	*missing = *cause = 0;
	*failed = NULL;
	for (const struct card *card = cards; card < cards + CARDS_COUNT; card++) {
		const char *module = card->module;
		bool loaded = has_module(host, module);

		if (loaded ? *failed != NULL : is_indexed(host, "modules.builtin", module) || strstr(missing, module))
			continue;
		find_card(host, card->driver, name);
		if (!*name)
			continue;
		if (loaded) {
			*failed = card;
			strcpy(failed_name, name);
			continue;
		}
		log_add(missing, CARDS_SIZE, " ", "%s", module);
		log_add(cause, CARDS_SIZE, ", ", "%s%s (card %s)", *cause ? "" : "; modules not loaded: ", module,
			name);
		if (!may_have(host, module))
			facts |= find_absent(host);
	}
	return facts;
}

/* The module that the kernel loads for the software device of the remedy; "": none. */
static const char *software_module(const struct host *host)
{
	const char *module = host->facts & FACT_RXE ? "rdma_rxe" : host->facts & FACT_SIW ? "siw" : "";

	return has_module(host, module) ? "" : module;
}

/* Writes that network cards (PCI class 02) are passed to other users of devices, or that one has no driver. */
static void find_other_card(const struct host *host, char cause[CARDS_SIZE], char hint[ERROR_HINT_SIZE])
{
	char path[SYSFS_PATH_SIZE], class[SYSFS_TEXT_SIZE], driver[SYSFS_TEXT_SIZE], more[32] = "";
	char held[SYSFS_TEXT_SIZE] = "", holder[SYSFS_TEXT_SIZE], bare[SYSFS_TEXT_SIZE] = "";
	struct names devices = sysfs_names(sysfs_path(path, "%s/sys/bus/pci/devices", host->root));
	unsigned count = 0;

	for (int i = 0; i < devices.count; i++) {
		const char *name = devices.entries[i]->d_name;

		if (!sysfs_line(class, "%s/%s/class", path, name) || strncmp(class, "0x02", 4) != 0)
			continue;
		if (!sysfs_link(driver, "%s/%s/driver", path, name) && !*bare)
			strcpy(bare, name);
		if (strstr(driver, "vfio") && !count++) {
			strcpy(held, name);
			strcpy(holder, driver);
		}
	}
	sysfs_names_free(&devices);
	if (count > 1)
		log_text(more, sizeof(more), " and %u more", count - 1);
	if (count) {
		log_text(cause, CARDS_SIZE,
			 "; %s holds the network card %s%s, for a virtual machine or DPDK: no RDMA device here", holder,
			 held, more);
		log_text(hint, ERROR_HINT_SIZE,
			 "as root on the host: D=%s; cd /sys/bus/pci/devices/$D && echo >driver_override; echo $D "
			 ">driver/unbind; echo $D >/sys/bus/pci/drivers_probe",
			 held);
	} else if (*bare) {
		log_text(cause, CARDS_SIZE, "; the network card %s has no driver", bare);
		log_text(hint, ERROR_HINT_SIZE,
			 "as root on the host: modprobe $(cat /sys/bus/pci/devices/%s/modalias); if there is no such "
			 "module: install the driver of lspci -nns %s",
			 bare, bare);
	}
}

void host_find_held(struct host *host)
{
	char cause[CARDS_SIZE] = "", hint[ERROR_HINT_SIZE] = "";

	find_other_card(host, cause, hint);
	if (host->has_devices && *cause)
		host_add(host, FINDING_READ, "pci", "%s\n%s", cause + 2, hint);
}

/* Writes soft-RoCE's last warning or error in the kernel's log, if this user may read it: syslog's levels 0 to 4. */
static void find_complaint(const struct host *host, char cause[CARDS_SIZE])
{
	char line[SYSFS_PATH_SIZE];
	int fd = open(sysfs_path(line, "%s/dev/kmsg", host->root), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	while (file && fgets(line, sizeof(line), file)) {
		const char *text = strchr(line, ';');

		if (text && strtoul(line, NULL, 10) % 8 <= 4 && !strncmp(text, ";rdma_rxe: ", 11))
			log_text(cause, CARDS_SIZE, "; the kernel's log has: %.*s", (int)strcspn(text + 1, "\n"),
				 text + 1);
	}
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
}

/* Suggests ways to get a device or to do without. cause: what the cards lack. */
static void hint_none(const struct host *host, char text[ERROR_HINT_SIZE], char cause[CARDS_SIZE])
{
	bool held = host_rxe_holds_port(host->root);
	unsigned facts = has_module(host, "rdma_rxe") ? host->facts & ~(unsigned)FACT_SEALED : host->facts;
	char name[SYSFS_TEXT_SIZE], missing[CARDS_SIZE];
	const struct card *failed;
	struct utsname kernel;

	*text = *cause = 0;
	if (WITH_VERBS && COMMAND_doctor && !uname(&kernel)) {
		unsigned known = find_card_modules(host, missing, cause, &failed, name);

		if (!*cause)
			find_other_card(host, cause, text);
		if (*missing) {
			add_remedy(host, remedy_find(PROBLEM_MODULES, host->facts | known, missing, kernel.release),
				   missing, text);
		} else if (failed && !(host->facts & FACT_EXCLUSIVE)) {
			log_text(cause, CARDS_SIZE, "; %s is loaded, and the card %s has none", failed->module, name);
			log_text(text, ERROR_HINT_SIZE,
				 "see the kernel's log: journalctl -k -g '\\b(%.*s|%s)'; RoCE may be off: devlink dev "
				 "param",
				 (int)strcspn(failed->driver, "."), failed->driver, failed->module);
		} else if (!*text) {
			if (!*cause)
				find_complaint(host, cause);
			add_remedy(host, remedy_find(PROBLEM_NO_DEVICE, facts, find_link(name), kernel.release),
				   software_module(host), text);
		}
	}
	if (WITH_SOFT)
		log_add(text, ERROR_HINT_SIZE, "; ", "without a device: %s%s" SOFT_HINT,
			held ? remedy_find(PROBLEM_RXE, host->facts, NULL, NULL).text : "", held ? ", then " : "");
}

void host_hint_rxe(struct error *error)
{
	struct host host = { .root = "" };
	char text[ERROR_HINT_SIZE], cause[CARDS_SIZE];

	host_read(&host);
	if (host.has_devices)
		log_text(text, sizeof(text),
			 "use the verbs transport, or another network namespace, or delete its devices (rdma link "
			 "delete DEVICE), then: %s",
			 remedy_find(PROBLEM_RXE, host.facts, NULL, NULL).text);
	else
		hint_none(&host, text, cause);
	error_hint(error, "%s", text);
}

void host_find_none(struct host *host)
{
	bool exclusive = host->facts & FACT_EXCLUSIVE;
	char hint[ERROR_HINT_SIZE], cause[CARDS_SIZE];

	if (host->error) {
		host_add(host, host->failure, "sys", "no RDMA device, module or port can be seen in /sys: %s\n\n%d",
			 host->error == ENOENT ? "it is not mounted" : strerror(host->error), host->error);
	} else if (!host->has_devices) {
		hint_none(host, hint, cause);
		host_add(host, host->failure, "verbs", "no RDMA device %s%s\n%s",
			 exclusive ? "in this network namespace (rdma system: netns exclusive)"
				   : "on this machine (none in " DEVICES ")",
			 cause, hint);
	}
}

/* class: the file's directory in /sys; user: the device or the function that needs the file. */
static bool find_file(struct host *host, const char *class, const char *name, const char *user)
{
	char path[SYSFS_PATH_SIZE], number[SYSFS_PATH_SIZE];
	char cause[DEVICE_FILE_TEXT_SIZE];
	struct remedy remedy;
	int error = device_file_check(sysfs_path(path, "%s/dev/infiniband/%s", host->root, name),
				      sysfs_path(number, "%s/sys/class/%s/%s/dev", host->root, class, name), cause,
				      &remedy);

	if (error)
		host_add(host, host->failure, "file", "/dev/infiniband/%s cannot be used (%s): %s\n%s\n%.0d", name,
			 user, cause, remedy.text, error > 0 ? error : 0);
	else if (COMMAND_doctor)
		host_add(host, FINDING_OK, "file", "/dev/infiniband/%s can be opened (%s)", name, user);
	return !error;
}

void host_find_manager(struct host *host)
{
	/* Without its module there is no file either: host_find_modules() has added a finding. */
	if ((host->has_devices || host->error) &&
	    (sysfs_has("%s" MANAGER, host->root) || !sysfs_has("%s/sys/class/misc", host->root)))
		find_file(host, "misc", "rdma_cm", "connections");
}

/* The RDMA module for a card's driver; "" for other drivers. */
static const char *card_module(const char *driver)
{
	size_t length = strlen(driver);

	for (size_t i = 0; i < CARDS_COUNT; i++)
		if (!strncmp(cards[i].driver, driver, length) && strchr(".", cards[i].driver[length]))
			return cards[i].module;
	return "";
}

/*
 * The provider's file in the loaded libibverbs's folder, such as libmlx5-rdmav59.so for mlx5_core; "" if there is none.
 * Returns whether this process has it loaded.
 */
static bool find_provider(const struct host *host, const char *device, const char *driver, char file[SYSFS_TEXT_SIZE])
{
	char maps[SYSFS_PATH_SIZE], line[SYSFS_PATH_SIZE], word[SYSFS_TEXT_SIZE];
	char *folder = sysfs_find(sysfs_path(maps, "%s/proc/self/maps", host->root), "/libibverbs.so");
	bool loaded = false;
	struct names names;

	*file = 0;
	if (!folder)
		return false;
	folder[strlen("/libibverbs")] = 0;
	names = sysfs_names(strchr(maps, '/'));
	for (int i = 0; i < names.count && !loaded; i++) {
		const char *name = names.entries[i]->d_name, *end = strstr(name, "-rdmav");

		if (!end || strncmp(name, "lib", 3) != 0)
			continue;
		log_text(word, sizeof(word), "%.*s", (int)(end - name - 3), name + 3);
		if (!strstr(driver, word) && !strstr(card_module(driver), word) && !strstr(device, word))
			continue;
		strcpy(file, name);
		/* Providers with functions of their own, such as mlx5, are links to libraries with other names. */
		if (!sysfs_link(word, "%s/%s", strchr(maps, '/'), name))
			strcpy(word, name);
		loaded = sysfs_find(sysfs_path(line, "%s/proc/self/maps", host->root), word);
	}
	sysfs_names_free(&names);
	return loaded;
}

static bool check_provider(struct host *host, const char *file, const char *device)
{
	bool usable = find_file(host, "infiniband_verbs", file, device);
	char driver[SYSFS_TEXT_SIZE], provider[SYSFS_TEXT_SIZE] = "", version[SYSFS_TEXT_SIZE];

	if (!usable || !host->is_listed || host->is_listed(file))
		return usable;
	sysfs_link(driver, "%s" DEVICES "/%s/device/driver", host->root, device);
	sysfs_line(version, "%s" VERBS "/%s/abi_version", host->root, file);
	if (COMMAND_doctor && find_provider(host, device, driver, provider))
		host_add(host, host->failure, "device",
			 "%s: %s does not support its kernel driver%s%s%s: their versions differ\n"
			 "install the libibverbs (rdma-core) that fits the driver: a vendor's (MLNX_OFED) has its own; "
			 "in a container, the host's",
			 device, provider, *version ? " (abi_version " : "", version, *version ? ")" : "");
	else
		host_add(host, host->failure, "device",
			 "%s has no provider library%s%s\n"
			 "install its package%s: ibverbs-providers (Debian), libibverbs (Fedora)",
			 device, *provider ? ": libibverbs does not load " : "", provider,
			 *provider ? " in the version of libibverbs" : "");
	return false;
}

void host_find_devices(struct host *host)
{
	char path[SYSFS_PATH_SIZE], device[SYSFS_TEXT_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "%s" VERBS, host->root));

	for (int i = 0; i < names.count; i++) {
		const char *file = names.entries[i]->d_name;

		/* Another network namespace may have it. */
		if (sysfs_name(device, "%s" VERBS "/%s/ibdev", host->root, file) &&
		    sysfs_has("%s" DEVICES "/%s", host->root, device) && !check_provider(host, file, device) &&
		    host->unusable)
			host->unusable(host, device);
	}
	sysfs_names_free(&names);
}

unsigned host_device_facts(const char *root, const char *device)
{
	char text[SYSFS_TEXT_SIZE];
	unsigned facts = 0;

	if (sysfs_link(text, "%s" DEVICES "/%s/device/driver", root, device) && !strcmp(text, "efa"))
		facts |= FACT_NO_CM;
	if (sysfs_line(text, "%s" DEVICES "/%s/node_guid", root, device) && !text[strspn(text, "0:")])
		facts |= FACT_NO_GUID;
	sysfs_line(text, "%s" DEVICES "/%s/ports/1/link_layer", root, device);
	if (!strcmp(text, "InfiniBand") && sysfs_has("%s/sys/module", root) &&
	    !sysfs_has("%s/sys/module/ib_ipoib", root))
		facts |= FACT_NO_IPOIB;
	/* Linux has the file since 5.2. */
	if (!strcmp(text, "Ethernet") && sysfs_has("%s/sys/module/ib_core", root) &&
	    !sysfs_has("%s" HOST_NETNS_MODE, root) && !is_first_network(root))
		facts |= FACT_APART;
	return facts;
}

void host_no_address(struct error *error)
{
	struct names names = sysfs_names(DEVICES);
	unsigned facts = names.count ? ~0U : 0;
	struct remedy remedy;
	char *hint = remedy.text;

	for (int i = 0; i < names.count; i++)
		facts &= host_device_facts("", names.entries[i]->d_name);
	remedy = remedy_find(PROBLEM_ADDRESS, facts, NULL, NULL);
	error_set(error, NULL, "no address of this host leads to %s%s",
		  facts ? names.entries[0]->d_name : "an RDMA device", strsep(&hint, "\n"));
	error_hint(error, "%s%s",
		   facts ? hint ? hint : "" : "the interface of the device must be up and have an address",
		   facts || !COMMAND_doctor ? "" : " (rdmatest doctor shows more)");
	sysfs_names_free(&names);
}

/* Whether limits.conf(5) lets all users lock any amount: "* hard memlock unlimited". */
static bool limits_allow(const char *path)
{
	char line[SYSFS_PATH_SIZE], type[8], value[16];
	FILE *file = fopen(path, "re");
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, " * %7s memlock %15s", type, value) == 2 && strcmp(type, "soft") != 0 &&
			(!strcmp(value, "unlimited") || !strcmp(value, "infinity") || !strcmp(value, "-1"));
	if (file)
		fclose(file);
	return found;
}

/* Who sets the limit. */
static unsigned memory_facts(void)
{
	struct names names = sysfs_names(LIMITS ".d");
	bool allowed = limits_allow(LIMITS ".conf");
	char path[SYSFS_PATH_SIZE];

	for (int i = 0; i < names.count && !allowed; i++)
		allowed = limits_allow(sysfs_path(path, LIMITS ".d/%s", names.entries[i]->d_name));
	sysfs_names_free(&names);
	return (allowed ? FACT_ALLOWED : 0) | (getenv("SLURM_JOB_ID") ? FACT_SLURM : 0) |
	       (getenv("PBS_JOBID") ? FACT_PBS : 0);
}

/* For this process. */
static struct rlimit memory_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    (privileges_have(CAP_IPC_LOCK) && privileges_user_namespace_is_initial()))
		limit.rlim_cur = RLIM_INFINITY;
	return limit;
}

bool host_memory_allows(uint64_t bytes)
{
	return memory_limit().rlim_cur >= bytes;
}

bool host_memory_is_limited(char text[HOST_MEMORY_SIZE], struct remedy *remedy)
{
	unsigned facts = remedy_facts();
	struct rlimit limit = memory_limit();

	if (limit.rlim_cur == RLIM_INFINITY)
		return false;
	if (limit.rlim_max == RLIM_INFINITY)
		facts |= FACT_MAY_RAISE;
	if (COMMAND_doctor)
		facts |= memory_facts();
	*remedy = remedy_find(PROBLEM_MEMORY, facts, NULL, NULL);
	log_text(text, HOST_MEMORY_SIZE, "at most %llu KiB of memory may be locked, and RDMA locks its memory",
		 (unsigned long long)limit.rlim_cur / 1024);
	return true;
}

/* ---- the cause of a run's failure ---- */

static void keep_first(struct host *host, enum finding_status status, const struct error *error)
{
	if (status != FINDING_FAIL || error_is_set(host->cause))
		return;
	*host->cause = *error;
	*host->cause->object = 0;
}

int host_cause(struct error *cause, bool (*is_listed)(const char *file), bool route)
{
	struct host host = {
		.root = "", .failure = FINDING_FAIL, .is_listed = is_listed, .found = keep_first, .cause = cause
	};
	bool listed = is_listed(NULL);

	error_clear(cause);
	host_read(&host);
	host.has_devices |= listed;
	if (!route) {
		host_find_modules(&host);
		if (!listed)
			host_find_none(&host);
		host_find_manager(&host);
	}
	if (route || !listed)
		host_find_devices(&host);
	return !error_is_set(cause) ? 0 : host.error ? host.error : ENODEV;
}
