/* SPDX-License-Identifier: BSD-2-Clause */
/* Device files that cannot be used, and their remedies: each row of the table, and cases without one. */
/* link: -Wl,@test/unit/core_device_file.wrap */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "test/unit/unit.h"

#include "core/device_file.h"

#define FILE_PATH "/dev/infiniband/uverbs0"

struct host {
	int error; /* open(2)'s */
	mode_t mode;
	unsigned minor;
	bool numbered; /* /sys has 231:192 */
	bool in_container, in_user_namespace;
	bool private_dev;  /* /dev is not the host's */
	bool confined;	   /* without capabilities over the host */
	bool nodev;	   /* the mount of its file system */
	const char *label; /* of SELinux or AppArmor */
	bool is_foreign;   /* the owner is outside the user namespace */
	uid_t user;
};

static const struct host *host;
static char number_path[] = "/tmp/number.XXXXXX";

int __real_open(const char *path, int flags, ...);

static int open_label(void)
{
	int fd = host->label ? memfd_create("label", MFD_CLOEXEC) : -1;

	if (fd >= 0)
		assert_true(pwrite(fd, host->label, strlen(host->label), 0) > 0);
	return fd;
}

int __wrap_statvfs(const char *path, struct statvfs *mount)
{
	assert_string_equal(path, FILE_PATH);
	mount->f_flag = host->nodev ? ST_NODEV : 0;
	return 0;
}

int __wrap_open(const char *path, int flags, ...)
{
	if (!strcmp(path, "/proc/self/attr/current"))
		return open_label();
	if (strcmp(path, FILE_PATH) != 0)
		return __real_open(path, flags);
	assert_int_equal(flags & O_ACCMODE, O_RDWR);
	errno = host->error;
	return host->error ? -1 : __real_open("/dev/null", flags);
}

int __wrap_stat(const char *path, struct stat *status)
{
	assert_string_equal(path, FILE_PATH);
	errno = host->error;
	*status = (struct stat){ .st_mode = host->mode,
				 .st_rdev = makedev(231, host->minor),
				 .st_uid = host->is_foreign ? 65534 : 0 };
	return host->mode ? 0 : -1;
}

uid_t __wrap_geteuid(void)
{
	return host->user;
}

bool __wrap_privileges_in_container(void)
{
	return host->in_container;
}

bool __wrap_privileges_dev_is_private(void)
{
	return host->private_dev;
}

bool __wrap_privileges_may(unsigned capability)
{
	return !host->confined;
}

bool __wrap_privileges_user_namespace_is_initial(void)
{
	return !host->in_user_namespace;
}

#define DEVICE	(S_IFCHR | 0666)
#define PRIVATE (S_IFCHR | 0600)

#define MKNOD "mknod -m 666 " FILE_PATH " c 231 192"

/* The cause without open(2)'s error, whose text comes before it. */
static const struct {
	struct host host;
	const char *remedy, *cause;
} cases[] = {
	{ { 0, DEVICE, 192, true } },
	{ { 0, DEVICE, 192 } },

	{ { ENOENT, .private_dev = true },
	  "start the container with the device " FILE_PATH " (of a service: PrivateDevices=no)" },
	/* A container with the host's /dev, and a service without CAP_MKNOD. */
	{ { ENOENT, .numbered = true, .in_container = true },
	  "on the host: as root: mkdir -p /dev/infiniband; " MKNOD },
	{ { ENOENT, .numbered = true, .confined = true }, "on the host: as root: mkdir -p /dev/infiniband; " MKNOD },
	{ { ENOENT, .numbered = true }, "as root: mkdir -p /dev/infiniband; " MKNOD },
	{ { ENOENT } },

	{ { ENXIO, DEVICE, 200, true, .private_dev = true },
	  "start the container again with the device " FILE_PATH,
	  "; its number 231:200 is stale, the device has 231:192" },
	{ { 0, DEVICE, 193, true },
	  "as root: rm " FILE_PATH "; " MKNOD,
	  "its number 231:193 is stale, the device has 231:192" },
	{ { ENODEV, DEVICE, 200 }, NULL, "; its number 231:200 is stale" },
	{ { ENXIO, DEVICE, 192, true } },
	{ { 0, S_IFREG | 0666, .numbered = true }, "as root: rm " FILE_PATH "; " MKNOD, "it is not a device file" },
	{ { EISDIR, S_IFDIR | 0755 }, NULL, "; it is not a device file" },

	{ { EPERM, DEVICE, 192, true },
	  "start the container with the device " FILE_PATH " (of a service: DeviceAllow=" FILE_PATH " rw)" },

	{ { EACCES, PRIVATE, 192, true, .user = 1000 }, "run as root, or grant access: chmod a+rw " FILE_PATH },
	/* A user namespace's root gets no remedy that needs the host's root. */
	{ { EACCES, PRIVATE, 192, true, .in_container = true, .in_user_namespace = true, .is_foreign = true },
	  "on the host: chmod a+rw " FILE_PATH },
	{ { EACCES, PRIVATE, 192, true } },
	{ { EACCES, DEVICE, 192, true, .user = 1000 } },
	{ { EACCES, DEVICE, 192, true, .nodev = true },
	  "as root: mount -o remount,dev $(findmnt -nT " FILE_PATH " -o TARGET)",
	  "; its file system is mounted nodev" },
	{ { EACCES, DEVICE, 192, true, .label = "docker-default (enforce)" },
	  "the kernel's log has the rule: journalctl -k -g 'avc|apparmor'",
	  "; SELinux or AppArmor may refuse it to docker-default (enforce)" },
	{ { EACCES, PRIVATE, 192, true, .nodev = true, .label = "unconfined", .user = 1000 },
	  "run as root, or grant access: chmod a+rw " FILE_PATH },
	/* The directory may not be searched: nothing is known of the file. */
	{ { EACCES, .user = 1000 } },

	{ { EMFILE, DEVICE, 192, true } },
};

TEST(test_files)
{
	int fd = mkstemp(number_path);

	assert_int_equal(write(fd, "231:192\n", 8), 8);
	close(fd);
	for (size_t i = 0; i < LENGTH(cases); i++) {
		char cause[DEVICE_FILE_TEXT_SIZE], expected[DEVICE_FILE_TEXT_SIZE];
		const char *more = cases[i].cause ? cases[i].cause : "";
		struct remedy remedy;
		int result;

		host = &cases[i].host;
		result = device_file_check(FILE_PATH, host->numbered ? number_path : "/nonexistent", cause, &remedy);
		assert_int_equal(result, host->error ? host->error : -!!*more);
		snprintf(expected, sizeof(expected), "%s%s", host->error ? strerror(host->error) : "", more);
		assert_string_equal(cause, expected);
		assert_string_equal(remedy.text, cases[i].remedy ? cases[i].remedy : "");
	}
	unlink(number_path);
}
