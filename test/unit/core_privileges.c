/* SPDX-License-Identifier: BSD-2-Clause */
/* Namespaces and capabilities of this process, and dropping these. */
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/unit/unit.h"

#include "core/privileges.h"

static const struct log log_ = { .name = "test" };

/* Returns a number of /proc/self/status, in hexadecimal digits. */
static unsigned long long status_number(const char *key)
{
	char line[256];
	unsigned long long number = 0;
	FILE *file = fopen("/proc/self/status", "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			number = strtoull(line + strlen(key), NULL, 16);
	fclose(file);
	return number;
}

TEST(test_capability)
{
	for (unsigned capability = 0; capability <= CAP_BPF; capability++)
		assert_int_equal(privileges_have(capability), status_number("CapEff:") >> capability & 1);
}

/* A child in a new user namespace has every capability there, and is not in the initial one. */
TEST(test_user_namespace)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(unshare(CLONE_NEWUSER) ? 2
					     : !privileges_in_container() || privileges_user_namespace_is_initial() ||
						       !privileges_have(CAP_IPC_LOCK));
	status = exit_status(child);
	if (status == 2)
		skip();
	assert_int_equal(status, 0);
}

/* A capability outside the bounding set is unavailable; another user namespace has none over the host. */
TEST(test_bounding_set)
{
	pid_t child;

	for (unsigned capability = 0; capability <= CAP_BPF; capability++)
		assert_int_equal(privileges_may(capability),
				 privileges_user_namespace_is_initial() && status_number("CapBnd:") >> capability & 1);
	child = fork();
	if (!child)
		_exit(!unshare(CLONE_NEWUSER) && privileges_may(CAP_MKNOD));
	assert_int_equal(exit_status(child), 0);
}

/* A container with the PID namespace of its host. */
TEST(test_cgroup_namespace)
{
	pid_t child = fork();

	if (!child)
		_exit(unshare(CLONE_NEWCGROUP) ? 0 : !privileges_in_container());
	assert_int_equal(exit_status(child), 0);
}

/* A tmpfs is the /dev of a container or a service, a folder of another file system is not. */
TEST(test_private_dev)
{
	pid_t child = fork();

	if (!child) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) || mount("/usr", "/dev", "", MS_BIND | MS_REC, NULL))
			_exit(0);
		if (privileges_dev_is_private())
			_exit(1);
		_exit(mount("none", "/dev", "tmpfs", 0, NULL) || privileges_dev_is_private() ? 0 : 2);
	}
	assert_int_equal(exit_status(child), 0);
}

static bool has_inheritable(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return syscall(SYS_capget, &header, data) || data[0].inheritable || data[1].inheritable;
}

/* Makes all capabilities inheritable, as some container runtimes do. */
static void make_inheritable(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		_exit(2);
	for (size_t i = 0; i < LENGTH(data); i++)
		data[i].inheritable = data[i].permitted;
	if (syscall(SYS_capset, &header, data))
		_exit(3);
}

/* Root keeps only a few capabilities, none of them inheritable. Other users have none before and after. */
TEST(privileges_are_dropped)
{
	enum {
		IPC_LOCK = 1 << 14,
		DAC_OVERRIDE = 1 << 1,
		NET_BIND_SERVICE = 1 << 10,
		NET_ADMIN = 1 << 12,
	};

	for (unsigned kept = 0; kept <= (PRIVILEGE_FILES | PRIVILEGE_PORTS | PRIVILEGE_BUFFERS); kept++) {
		uint64_t before = status_number("CapEff:"), allowed = IPC_LOCK;
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child) {
			allowed |= kept & PRIVILEGE_FILES ? DAC_OVERRIDE : 0;
			allowed |= kept & PRIVILEGE_PORTS ? NET_BIND_SERVICE : 0;
			allowed |= kept & PRIVILEGE_BUFFERS ? NET_ADMIN : 0;
			make_inheritable();
			privileges_drop(&log_, kept);
			_exit(status_number("CapEff:") != (before & allowed) ||
			      status_number("CapPrm:") != (before & allowed) || has_inheritable() ||
			      (before && !status_number("NoNewPrivs:")));
		}
		assert_int_equal(exit_status(child), 0);
	}
}
