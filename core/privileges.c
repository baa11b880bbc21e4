/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/sysfs.h"

/* Returns false if the link in /proc names another namespace. */
static bool is_namespace(const char *path, const char *name)
{
	char target[32] = "";

	return readlink(path, target, sizeof(target) - 1) < 0 || !strcmp(target, name);
}

/* The inode numbers of the first namespaces are the same in every kernel: include/linux/proc_ns.h. */
bool privileges_user_namespace_is_initial(void)
{
	return is_namespace("/proc/self/ns/user", "user:[4026531837]");
}

/* A container may share its host's PID namespace, and then has its own cgroup namespace. */
bool privileges_in_container(void)
{
	return !privileges_user_namespace_is_initial() || !is_namespace("/proc/self/ns/pid", "pid:[4026531836]") ||
	       !is_namespace("/proc/self/ns/cgroup", "cgroup:[4026531835]");
}

/* The host's is a devtmpfs, or a folder of its root. */
bool privileges_dev_is_private(void)
{
	char line[SYSFS_PATH_SIZE] = "/proc/self/mountinfo", mount[64];
	struct stat status;

	if (stat("/dev", &status))
		return false;
	log_text(mount, sizeof(mount), " %u:%u / /dev ", major(status.st_dev), minor(status.st_dev));
	return sysfs_find(line, mount) && !strstr(line, " - devtmpfs ");
}

bool privileges_may(unsigned capability)
{
	return privileges_user_namespace_is_initial() && syscall(SYS_prctl, PR_CAPBSET_READ, capability, 0, 0, 0) == 1;
}

/* The C library has no capget(2) and capset(2), and its prctl(2) would be one more import. */
bool privileges_have(unsigned capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	return !syscall(SYS_capget, &header, data) &&
	       data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

void privileges_drop(const struct log *log, unsigned kept)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uint32_t mask = 1u << CAP_IPC_LOCK | (kept & PRIVILEGE_FILES ? 1u << CAP_DAC_OVERRIDE : 0) |
			(kept & PRIVILEGE_PORTS ? 1u << CAP_NET_BIND_SERVICE : 0) |
			(kept & PRIVILEGE_BUFFERS ? 1u << CAP_NET_ADMIN : 0);

	if (syscall(SYS_capget, &header, data) || !(data[0].permitted | data[1].permitted))
		return;
	data[0].permitted &= mask;
	data[0].effective &= mask;
	data[0].inheritable = 0;
	memset(&data[1], 0, sizeof(data[1]));
	if (syscall(SYS_capset, &header, data) || syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		log_debug(log, "privileges are kept: %s", strerror(errno));
}

/* pids.max or pids.current of this process's control group, of version 2 or 1. */
static bool read_pids(const char *name, char text[SYSFS_TEXT_SIZE])
{
	static const char *const versions[][2] = { { "0::", "/sys/fs/cgroup" }, { ":pids:", "/sys/fs/cgroup/pids" } };

	for (int i = 0; i < 2; i++) {
		char line[SYSFS_PATH_SIZE] = "/proc/self/cgroup";
		const char *group = sysfs_find(line, versions[i][0]);

		line[strcspn(line, "\n")] = 0;
		if (group && sysfs_line(text, "%s%s/%s", versions[i][1], group + strlen(versions[i][0]), name))
			return true;
	}
	return false;
}

void privileges_no_process(const struct log *log, const char *object)
{
	char most[SYSFS_TEXT_SIZE], group[SYSFS_TEXT_SIZE], now[SYSFS_TEXT_SIZE];
	struct rlimit limit;
	int error = errno;

	log_errno(log, object, error, "starting a process");
	if (!WITH_DIAGNOSTICS || error != EAGAIN)
		return;
	log_text(most, sizeof(most), "unlimited");
	if (!getrlimit(RLIMIT_NPROC, &limit) && limit.rlim_cur != RLIM_INFINITY)
		log_text(most, sizeof(most), "%llu", (unsigned long long)limit.rlim_cur);
	if (read_pids("pids.max", group) && read_pids("pids.current", now) && atoi(group) && atoi(now) >= atoi(group))
		log_hint(log, "the control group is full: pids.max is %s", group);
	else
		log_hint(log, "a limit of processes: ulimit -u (%s), or pids.max of a control group", most);
}

void privileges_close(unsigned last)
{
	/* Some C libraries lack close_range(), and so does Linux before 5.9. */
	if (!syscall(SYS_close_range, STDERR_FILENO + 1, last, 0))
		return;
	for (unsigned fd = STDERR_FILENO + 1; fd <= last && fd < FD_SETSIZE; fd++)
		close((int)fd);
}
