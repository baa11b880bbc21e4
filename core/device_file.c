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

#include "core/privileges.h"
#include "core/sysfs.h"

enum {
	NOTE_SIZE = 192,
	REMEDY_SIZE = 384,
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
	{ MISSING | CONTAINER, 0, "start the container with @" },
	{ MISSING | NUMBER, 0, "as root: mkdir -p /dev/infiniband; mknod -m 666 @ c #" },
	{ STALE | CONTAINER, 0, "start the container again with @" },
	{ STALE | NUMBER, 0, "as root: rm @; mknod -m 666 @ c #" },
	{ REFUSED | CONTAINER, 0, "start the container with @" },
	{ REFUSED, 0, "allow it in the unit of the service: DeviceAllow=@ rw" },
	{ NODEV | CONTAINER, 0, "start the container with @" },
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

static void report_remedy(const struct log *log, unsigned facts, const char *path, const char *number)
{
	char text[REMEDY_SIZE] = "";

	for (const char *remedy = remedy_for(facts); remedy && *remedy; remedy++) {
		const char *value = *remedy == '@' ? path : *remedy == '#' ? number : NULL;
		size_t used = strlen(text);

		log_text(text + used, sizeof(text) - used, "%.*s", value ? REMEDY_SIZE : 1, value ? value : remedy);
	}
	if (*text)
		log_hint(log, "%s", text);
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

/* What open(2) does not say: it is no device, or the number is that of another one or of none. "" if neither. */
static void describe(const struct stat *status, int error, const char *number, char note[NOTE_SIZE])
{
	char own[SYSFS_TEXT_SIZE];
	bool other;

	snprintf(own, sizeof(own), "%u:%u", major(status->st_rdev), minor(status->st_rdev));
	other = *number && strcmp(own, number) != 0;
	if (!S_ISCHR(status->st_mode))
		strcpy(note, "it is no device file");
	else if (other || (!*number && (error == ENXIO || error == ENODEV)))
		snprintf(note, NOTE_SIZE, "its number %s is stale%s%s", own, other ? ", the device has " : "", number);
}

int device_file_check(const struct log *log, const char *object, const char *phase, const char *path,
		      const char *number_path)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC), error = fd < 0 ? errno : 0;
	unsigned facts = (privileges_in_container() ? CONTAINER : 0) | (geteuid() ? 0 : ROOT);
	char number[SYSFS_TEXT_SIZE], note[NOTE_SIZE] = "";
	struct stat status;

	if (!error)
		close(fd);
	if (sysfs_line(number, "%s", number_path))
		facts |= NUMBER;
	if (!stat(path, &status)) {
		describe(&status, error, number, note);
		facts |= *note ? STALE : error == EPERM ? REFUSED : error == EACCES ? forbidden_by(path, &status) : 0;
	} else if (error == ENOENT) {
		facts |= MISSING;
	}
	if (!error && !*note)
		return 0;
	log_cause(log, object, phase, error, "%s%s%s", error ? strerror(error) : "", error && *note ? "; " : "", note);
	number[strcspn(number, ":")] = ' ';
	report_remedy(log, facts, path, number);
	return error ? error : ENODEV;
}
