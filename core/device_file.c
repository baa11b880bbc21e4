/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/device_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/log.h"
#include "core/privileges.h"
#include "core/sysfs.h"

enum {
	UNMAPPED_OWNER = 65534, /* what stat(2) says of an owner outside the user namespace */
};

enum fact {
	MISSING = 1 << 0,
	STALE = 1 << 1,	    /* not a device, or another one */
	REFUSED = 1 << 2,   /* by the device rules of a control group */
	FORBIDDEN = 1 << 3, /* by the mode of the file */
	FOREIGN = 1 << 4,   /* the same, and no user here owns it */
	NODEV = 1 << 5,	    /* its file system has no devices */
	NUMBER = 1 << 6,    /* of the device is known */
	CONTAINER = 1 << 7,
	ROOT = 1 << 8,
};

/* The first row with all of needs and nothing of lacks applies. "@" is the file, "#" its right number for mknod(1). */
static const struct {
	uint16_t needs, lacks; /* enum fact */
	const char *text;
} remedies[] = {
	{ MISSING | CONTAINER, 0, "start the container with the device @" },
	{ MISSING | NUMBER, 0, "as root: mkdir -p /dev/infiniband; mknod -m 666 @ c #" },
	{ STALE | CONTAINER, 0, "start the container again with the device @" },
	{ STALE | NUMBER, 0, "as root: rm @; mknod -m 666 @ c #" },
	{ REFUSED | CONTAINER, 0, "start the container with the device @" },
	{ REFUSED, 0, "allow it in the unit of the service: DeviceAllow=@ rw" },
	{ NODEV | CONTAINER, 0, "start the container with the device @" },
	{ FOREIGN, 0, "on the host: chmod a+rw @" },
	{ FORBIDDEN, ROOT, "run as root, or give this user the right: chmod a+rw @" },
};

static const char *remedy_for(unsigned facts)
{
	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if ((facts & remedies[i].needs) == remedies[i].needs && !(facts & remedies[i].lacks))
			return remedies[i].text;
	return NULL;
}

static void write_remedy(unsigned facts, const char *path, const char *number, char text[DEVICE_FILE_TEXT_SIZE])
{
	size_t used = 0;

	*text = 0;
	for (const char *remedy = remedy_for(facts); remedy && *remedy; remedy++, used = strlen(text)) {
		const char *value = *remedy == '@' ? path : *remedy == '#' ? number : NULL;

		log_text(text + used, DEVICE_FILE_TEXT_SIZE - used, "%.*s", value ? DEVICE_FILE_TEXT_SIZE : 1,
			 value ? value : remedy);
	}
}

/* Of a file that may not be opened. */
static unsigned forbidden_by(const char *path, const struct stat *status)
{
	const mode_t open_to_all = S_IROTH | S_IWOTH;
	struct statvfs system;

	if ((status->st_mode & open_to_all) != open_to_all)
		return status->st_uid == UNMAPPED_OWNER && !privileges_user_namespace_is_initial() ? FOREIGN
												   : FORBIDDEN;
	return !statvfs(path, &system) && system.f_flag & ST_NODEV ? NODEV : 0;
}

/* Whether the file is no device, or its number that of another one or of none. Adds that to the cause. */
static bool is_stale(const struct stat *status, int error, const char *number, char cause[DEVICE_FILE_TEXT_SIZE])
{
	bool is_device = S_ISCHR(status->st_mode), other;
	char own[SYSFS_TEXT_SIZE];
	size_t used;

	snprintf(own, sizeof(own), "%u:%u", major(status->st_rdev), minor(status->st_rdev));
	other = *number && strcmp(own, number) != 0;
	if (is_device && !other && (*number || (error != ENXIO && error != ENODEV)))
		return false;
	if (error)
		strcat(cause, "; ");
	used = strlen(cause);
	if (is_device)
		snprintf(cause + used, DEVICE_FILE_TEXT_SIZE - used, "its number %s is stale%s%s", own,
			 other ? ", the device has " : "", number);
	else
		strcpy(cause + used, "it is no device file");
	return true;
}

int device_file_check(const char *path, const char *number_path, char cause[DEVICE_FILE_TEXT_SIZE],
		      char remedy[DEVICE_FILE_TEXT_SIZE])
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC), error = fd < 0 ? errno : 0;
	unsigned facts = (privileges_in_container() ? CONTAINER : 0) | (geteuid() ? 0 : ROOT);
	char number[SYSFS_TEXT_SIZE];
	struct stat status;

	if (!error)
		close(fd);
	snprintf(cause, DEVICE_FILE_TEXT_SIZE / 2, "%s", error ? strerror(error) : "");
	if (sysfs_line(number, "%s", number_path))
		facts |= NUMBER;
	if (stat(path, &status))
		facts |= error == ENOENT ? MISSING : 0;
	else if (is_stale(&status, error, number, cause))
		facts |= STALE;
	else
		facts |= error == EPERM ? REFUSED : error == EACCES ? forbidden_by(path, &status) : 0;
	number[strcspn(number, ":")] = ' ';
	write_remedy(facts, path, number, remedy);
	return facts & STALE && !error ? -1 : error;
}
