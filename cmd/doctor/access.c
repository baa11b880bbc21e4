/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/doctor/doctor.h"

enum {
	STATUS_LINES_MOST = 128,
	CAP_LOCK_MEMORY = 14, /* CAP_IPC_LOCK in <linux/capability.h> */
};

/* Opening is the only question that a container's device rules answer too; it touches no device. */
static int try_file(const char *path)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* used_by: what the file is for. */
static void check_file(struct findings *findings, const char *root, const char *name, const char *used_by,
		       enum finding_status failure)
{
	char path[SYSFS_PATH_SIZE];
	int error = try_file(sysfs_path(path, "%s/dev/infiniband/%s", root, name));
	struct error refusal = { .phase = "" };
	const char *remedy = NULL;

	if (!error) {
		finding_add(findings, FINDING_OK, "file", NULL, "/dev/infiniband/%s can be opened (%s)", name, used_by);
		return;
	}
	if (error == ENOENT) {
		finding_add(findings, failure, "file",
			    "in a container: pass /dev/infiniband into it; else: udevadm trigger",
			    "/dev/infiniband/%s is missing (%s)", name, used_by);
		return;
	}
	if (error == EACCES)
		remedy = finding_remedy(findings, "run as root, or: chmod a+rw /dev/infiniband/%s", name);
	else if (error == EPERM)
		remedy = "allow the device to the container";
	snprintf(refusal.cause, sizeof(refusal.cause), "/dev/infiniband/%s %s (%s): %s", name,
		 error == EACCES ? "is not for this user" : "cannot be opened", used_by, strerror(error));
	snprintf(refusal.code, sizeof(refusal.code), "%d", error);
	finding_add_error(findings, failure, "file", remedy, &refusal);
}

void access_check_files(struct findings *findings, const char *root, const struct device *devices,
			enum finding_status failure)
{

	if (!devices)
		return;
	if (!sysfs_has("%s/dev/infiniband", root)) {
		finding_add(findings, failure, "file",
			    "in a container: pass it in (docker: --device /dev/infiniband); else: modprobe ib_uverbs",
			    "/dev/infiniband is missing");
		return;
	}
	for (const struct device *device = devices; device; device = device->next)
		if (*device->verbs)
			check_file(findings, root, device->verbs, device->name, failure);
	/* Without the module there is no file either: that is said already. */
	if (sysfs_has("%s/sys/class/misc/rdma_cm", root))
		check_file(findings, root, "rdma_cm", "connections", failure);
}

static bool may_lock(const char *root)
{
	char path[SYSFS_PATH_SIZE];
	static const char name[] = "CapEff:";
	char line[SYSFS_PATH_SIZE];
	FILE *file = sysfs_open(sysfs_path(path, "%s/proc/self/status", root));
	uint64_t effective = 0;

	if (!file)
		return false;
	for (unsigned i = 0; i < STATUS_LINES_MOST && fgets(line, sizeof(line), file); i++)
		if (!strncmp(line, name, sizeof(name) - 1))
			effective = strtoull(line + sizeof(name) - 1, NULL, 16);
	fclose(file);
	return effective >> CAP_LOCK_MEMORY & 1;
}

void access_check_memory(struct findings *findings, const char *root)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	if (limit.rlim_cur == RLIM_INFINITY)
		finding_add(findings, FINDING_OK, "memlock", NULL, "any amount of memory may be locked");
	else if (may_lock(root))
		finding_add(findings, FINDING_OK, "memlock", NULL,
			    "this user may lock any amount of memory (others %" PRIu64 " KiB)",
			    (uint64_t)limit.rlim_cur / 1024);
	else
		finding_add(findings, FINDING_WARN, "memlock",
			    "ulimit -l unlimited (/etc/security/limits.conf; systemd: LimitMEMLOCK=infinity)",
			    "at most %" PRIu64 " KiB of memory may be locked, and RDMA locks its memory",
			    (uint64_t)limit.rlim_cur / 1024);
}
