/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/device_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/log.h"
#include "core/privileges.h"
#include "core/sysfs.h"

enum {
	UNMAPPED_OWNER = 65534, /* stat(2)'s owner for one outside the user namespace */
};

/* For a file that its mode opens to all. Adds the reason to the cause. */
static unsigned forbidden_to_all(const char *path, char cause[DEVICE_FILE_TEXT_SIZE])
{
	size_t used = strlen(cause);
	char label[SYSFS_TEXT_SIZE];
	struct statvfs mount;

	if (!statvfs(path, &mount) && mount.f_flag & ST_NODEV) {
		log_text(cause + used, DEVICE_FILE_TEXT_SIZE - used, "; its file system is mounted nodev");
		return FACT_NODEV;
	}
	if (!sysfs_line(label, "/proc/self/attr/current"))
		return 0;
	log_text(cause + used, DEVICE_FILE_TEXT_SIZE - used, "; SELinux or AppArmor may refuse it to %s", label);
	return FACT_LABELLED;
}

/* For a file that may not be opened. */
static unsigned forbidden_by(const char *path, const struct stat *status, char cause[DEVICE_FILE_TEXT_SIZE])
{
	const mode_t open_to_all = S_IROTH | S_IWOTH;

	if ((status->st_mode & open_to_all) == open_to_all)
		return forbidden_to_all(path, cause);
	return status->st_uid == UNMAPPED_OWNER && !privileges_user_namespace_is_initial() ? FACT_FOREIGN
											   : FACT_FORBIDDEN;
}

/* Whether the file is not a device, or has the number of another device or of none. Adds the reason to the cause. */
static bool is_stale(const struct stat *status, int error, const char *number, char cause[DEVICE_FILE_TEXT_SIZE])
{
	bool is_device = S_ISCHR(status->st_mode), other;
	char own[SYSFS_TEXT_SIZE];
	size_t used;

	log_text(own, sizeof(own), "%u:%u", major(status->st_rdev), minor(status->st_rdev));
	other = *number && strcmp(own, number) != 0;
	if (is_device && !other && (*number || (error != ENXIO && error != ENODEV)))
		return false;
	used = strlen(cause);
	if (is_device)
		log_text(cause + used, DEVICE_FILE_TEXT_SIZE - used, "%sits number %s is stale%s%s", error ? "; " : "",
			 own, other ? ", the device has " : "", number);
	else
		log_text(cause + used, DEVICE_FILE_TEXT_SIZE - used, "%sit is not a device file", error ? "; " : "");
	return true;
}

int device_file_check(const char *path, const char *number_path, char cause[DEVICE_FILE_TEXT_SIZE],
		      struct remedy *remedy)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC), error = fd < 0 ? errno : 0;
	unsigned facts = remedy_facts();
	char number[SYSFS_TEXT_SIZE];
	struct stat status;

	if (!error)
		close(fd);
	log_text(cause, DEVICE_FILE_TEXT_SIZE / 2, "%s", error ? strerror(error) : "");
	if (sysfs_line(number, "%s", number_path))
		facts |= FACT_NUMBER;
	if (stat(path, &status))
		facts |= error == ENOENT ? FACT_MISSING : 0;
	else if (is_stale(&status, error, number, cause))
		facts |= FACT_STALE;
	else
		facts |= error == EPERM ? FACT_REFUSED : error == EACCES ? forbidden_by(path, &status, cause) : 0;
	number[strcspn(number, ":")] = ' ';
	*remedy = remedy_find(PROBLEM_FILE, facts, path, number);
	return facts & FACT_STALE && !error ? -1 : error;
}
