/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/reporting/reporting.h"

/* Removes an existing file of that name first: a killed run left it, or it is a link to a file that must not be
 * written. */
static int open_new(const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(name, flags, 0644);

	return fd < 0 && errno == EEXIST && !unlink(name) ? open(name, flags, 0644) : fd;
}

/* O_NONBLOCK: open(2) of a FIFO without a reader fails instead of blocking. */
static FILE *open_file(const char *name, bool appends)
{
	int fd = appends ? open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : open_new(name);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
	int error = errno;

	if (fd >= 0 && !stream)
		close(fd);
	if (appends && stream)
		lseek(fd, 0, SEEK_END);
	errno = error;
	return stream;
}

static void add_metrics(struct reporting *reporting, FILE *stream)
{
	const struct transport *transport = reporting->environment->transport;
	char prefix[64];

	/* Samples without the labels of the command would be series of their own. */
	if (!reporting->state && !reporting->finished) {
		fputs("# no figures yet\n", stream);
		return;
	}
	snprintf(prefix, sizeof(prefix), "rdmatest_%s", reporting->command->name);
	reporting->report.prefix = prefix;
	report_open(&reporting->report, stream, &report_prometheus);
	report_text(&reporting->report, "transport", transport ? transport_name(transport) : NULL);
	reporting_add_figures(reporting, false);
	report_time(&reporting->report, "duration", clock_now() - reporting->started);
	report_flag(&reporting->report, "failed", reporting->environment->outcome != OUTCOME_OK);
	report_count(&reporting->report, "errors", reporting->environment->log.errors->count);
	report_close(&reporting->report);
}

/* Returns the text of the file, to be freed, or NULL if memory is short. */
static char *format_metrics(struct reporting *reporting, size_t *length)
{
	char *text = NULL;
	FILE *stream = open_memstream(&text, length);
	bool complete;

	if (!stream)
		return NULL;
	add_metrics(reporting, stream);
	complete = !ferror(stream);
	if (!fclose(stream) && complete)
		return text;
	free(text);
	return NULL;
}

/* Writes all text in one call: with a call per figure the errno value of a failed one would be lost. */
static int write_text(FILE *stream, const char *text, size_t length)
{
	int error = fwrite(text, 1, length, stream) < length ? errno : 0;

	return fclose(stream) && !error ? errno : error;
}

/* Returns 0 or an errno value. */
static int write_file(struct reporting *reporting, const char *name, bool appends)
{
	size_t length;
	char *text = format_metrics(reporting, &length);
	FILE *stream;
	int error;

	if (!text)
		return ENOMEM;
	stream = open_file(name, appends);
	error = stream ? write_text(stream, text, length) : errno;
	free(text);
	return error;
}

/* Only regular files are replaced. A device, a FIFO or an open descriptor is appended to. */
static bool is_replaceable(const char *file)
{
	struct stat status;

	if (!strncmp(file, "/dev/std", 8) || !strncmp(file, "/dev/fd/", 8))
		return false;
	return stat(file, &status) || S_ISREG(status.st_mode);
}

/*
 * Writes FILE.new and renames it, so that a collector never reads a partial file: it ignores names that do not end in
 * ".prom".
 */
void reporting_write_prometheus(struct reporting *reporting)
{
	const char *file = reporting->prometheus;
	char temporary[PATH_MAX];
	bool replaced = file && is_replaceable(file);
	int error;

	if (!file)
		return;
	if (snprintf(temporary, sizeof(temporary), replaced ? "%s.new" : "%s", file) < (int)sizeof(temporary)) {
		error = write_file(reporting, temporary, !replaced);
	} else {
		error = ENAMETOOLONG;
		replaced = false; /* there is no such file to remove */
	}
	if (!error && (!replaced || !rename(temporary, file)))
		return;
	error = error ? error : errno;
	reporting->prometheus = NULL;
	if (replaced)
		unlink(temporary);
	log_errno(&reporting->environment->log, file, error, "--prometheus: writing the file");
	environment_record_outcome(reporting->environment, OUTCOME_INTERNAL);
}
