/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report in Prometheus' text format, for node_exporter's textfile collector: "rdmatest_COMMAND_objects_name{labels}
 * value", in Prometheus' base units. Top-level texts (the target) are labels of all samples that follow, so that two
 * runs on one host differ. Texts in a list entry are labels of its samples, unless a top-level label has the name: the
 * format allows no duplicates. Texts in other objects (the path) are omitted, and so are texts of rows without
 * FIGURE_LABEL. The samples of a name are one group, below its help and type.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/reporting/reporting.h"

/* ---- the format ---- */

/* Precedes a line, until print_groups(). */
#define COUNTER "+"

enum {
	LABELS_SIZE = sizeof(((struct report *)0)->labels)
};

/* Appends name="text" to labels, or nothing if it may not fit. */
static void add_label(char labels[LABELS_SIZE], const char *name, const char *text)
{
	size_t length = strlen(labels);
	size_t room = LABELS_SIZE - length;
	char *end = labels + length;
	int written = snprintf(end, room, "%s%s=\"", length ? "," : "", name);

	if (written < 0 || (size_t)written + 2 * strlen(text) + 2 > room) {
		*end = 0;
		return;
	}
	end += written;
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			*end++ = '\\';
		*end++ = *text >= ' ' && *text <= '~' ? *text : '?';
	}
	strcpy(end, "\"");
}

static bool has_label(const char *labels, const char *name)
{
	size_t length = strlen(name);

	/* Every quote within a value follows a backslash, so =" does not occur there. */
	for (const char *at = labels; (at = strstr(at, name)); at++)
		if ((at == labels || at[-1] == ',') && at[length] == '=' && at[length + 1] == '"')
			return true;
	return false;
}

static void prometheus_name(struct report *report, const char *name, struct report_value value)
{
	const char *comma = report->labels[0] && report->entry[0] ? "," : "";

	fprintf(report->stream, "%srdmatest_%s", value.counts ? COUNTER : "", report->command);
	for (unsigned i = 1; i <= report->depth; i++)
		if (report->frames[i].name)
			fprintf(report->stream, "_%s", report->frames[i].name);
	fputc('_', report->stream);
	report_print_name(report->stream, name, value.kind, "_seconds");
	fprintf(report->stream, "{%s%s%s} ", report->labels, comma, report->entry);
}

static void prometheus_value(struct report *report, const char *name, struct report_value value)
{
	if (value.kind == REPORT_TEXT && report_in_list(report) && !has_label(report->labels, name))
		add_label(report->entry, name, value.text);
	else if (value.kind == REPORT_TEXT && !report->depth)
		add_label(report->labels, name, value.text);
	if (value.kind == REPORT_TEXT || value.kind == REPORT_NONE)
		return;
	prometheus_name(report, name, value);
	if (value.kind == REPORT_TIME)
		fprintf(report->stream, "%" PRIu64 ".%09" PRIu64, value.number / 1000000000, value.number % 1000000000);
	else
		report_print_number(report->stream, value);
	fputc('\n', report->stream);
}

const struct report_format report_prometheus = {
	.value = prometheus_value,
	.form = IN_PROMETHEUS,
};

/* ---- the file ---- */

static const char *sample_of(const char *line)
{
	return line + (*line == *COUNTER);
}

/* Samples of one name, up to its labels, follow each other. */
static int compare_samples(const void *one, const void *other)
{
	return strcmp(sample_of(*(const char *const *)one), sample_of(*(const char *const *)other));
}

static void print_group(FILE *stream, const char *line)
{
	const char *sample = sample_of(line);
	int length = (int)strcspn(sample, "{");

	fprintf(stream, "# HELP %.*s ", length, sample);
	/* The words of the name, but none twice: the step "connect" of the object "connect". */
	for (const char *word = strchr(sample, '_') + 1, *before = word; word < sample + length;) {
		size_t size = strcspn(word, "_{");

		if (word == before || size != strcspn(before, "_{") || strncmp(word, before, size) != 0)
			fprintf(stream, "%s%.*s", word == before ? "" : " ", (int)size, word);
		before = word;
		word += size + 1;
	}
	fprintf(stream, "\n# TYPE %.*s %s\n", length, sample, sample == line ? "gauge" : "counter");
}

/* Prints the lines of text with the samples of a name in one group. Returns 0 or an errno value. */
static int print_groups(FILE *stream, char *text)
{
	const char **lines;
	size_t count = 0, line = 0;

	for (const char *end = text; (end = strchr(end, '\n')); end++)
		count++;
	lines = calloc(count + 1, sizeof(*lines));
	if (!lines)
		return ENOMEM;
	while (line < count)
		lines[line++] = strsep(&text, "\n");
	qsort(lines, count, sizeof(*lines), compare_samples);
	for (line = 0; line < count; line++) {
		const char *sample = sample_of(lines[line]);

		if (!line || strncmp(sample, sample_of(lines[line - 1]), strcspn(sample, "{") + 1) != 0)
			print_group(stream, lines[line]);
		fprintf(stream, "%s\n", sample);
	}
	free(lines);
	return 0;
}

/* Returns 0 or an errno value. */
static int add_metrics(struct reporting *reporting, FILE *stream)
{
	const struct run *run = reporting->run;
	struct report *report = &reporting->report;
	char *text = NULL;
	size_t size;
	FILE *samples;
	int error = ENOMEM;

	/* Samples without the command's labels would be separate series. */
	if (!reporting->state && !run->outcome) {
		fputs("# no figures yet\n", stream);
		return 0;
	}
	samples = open_memstream(&text, &size);
	if (!samples)
		return error;
	report->command = run->command->name;
	report_open(report, samples, &report_prometheus);
	report_text(report, "transport", run->transport ? transport_name(run->transport) : NULL);
	reporting_add_figures(reporting, false);
	reporting_add_network(reporting);
	report_time(report, "duration", clock_now() - run->begun);
	report_flag(report, "failed", run->outcome != OUTCOME_OK);
	report_counter(report, "errors", run->log.errors->count);
	report_close(report);
	if (!fclose(samples))
		error = print_groups(stream, text);
	free(text);
	return error;
}

/* A shell's >(command) also has such a name, zsh's in /proc. */
static bool is_descriptor(const char *file)
{
	return !strncmp(file, "/dev/std", 8) || !strncmp(file, "/dev/fd/", 8) || !strncmp(file, "/proc/self/fd/", 14);
}

/* Every reader of the replaced file can read this one, whatever the umask. A link does not count as a file. */
static void keep_readable(const struct reporting *reporting, int fd)
{
	const char *file = reporting->prometheus;
	struct stat old, status;

	if (fstat(fd, &status))
		return;
	if (!lstat(file, &old) && S_ISREG(old.st_mode))
		fchmod(fd, (status.st_mode & 0777) | (old.st_mode & (S_IRGRP | S_IROTH)));
	else if (!(status.st_mode & S_IROTH))
		log_hint(&reporting->run->log,
			 "the umask keeps other users, such as a collector, from reading %s: chmod o+r %s (later runs "
			 "keep it so)",
			 file, file);
}

/*
 * Returns 0 or an errno value. The replacement is always a new file: an existing one of this name is a killed run's, or
 * a link to a file that must not be written. O_NONBLOCK: open(2) of a FIFO without a reader fails instead of blocking.
 */
static int write_file(struct reporting *reporting, const char *name, bool replaces)
{
	const int flags = O_WRONLY | O_CLOEXEC | (replaces ? O_CREAT | O_EXCL : O_APPEND | O_NONBLOCK) |
			  (is_descriptor(name) ? 0 : O_NOFOLLOW);
	FILE *stream;
	int fd, error;

	if (replaces)
		unlink(name);
	fd = open(name, flags, 0644);
	if (fd < 0)
		return errno;
	if (replaces)
		keep_readable(reporting, fd);
	stream = fdopen(fd, "w");
	if (!stream) {
		error = errno;
		close(fd);
		return error;
	}
	errno = 0;
	error = add_metrics(reporting, stream);
	if (ferror(stream))
		error = errno ? errno : EIO;
	return fclose(stream) && !error ? errno : error;
}

/*
 * Replaces files and links, because others may choose a link's target. A device, a FIFO or a descriptor is appended to.
 */
static bool is_replaceable(const char *file)
{
	struct stat status;

	return !is_descriptor(file) && (lstat(file, &status) || S_ISREG(status.st_mode) || S_ISLNK(status.st_mode));
}

/*
 * Writes FILE.new and renames it, so that a collector never reads a partial file: it ignores names that do not end in
 * ".prom".
 */
void reporting_write_prometheus(struct reporting *reporting)
{
	const char *file = reporting->prometheus;
	char temporary[PATH_MAX];
	int error = ENAMETOOLONG;

	if (!file)
		return;
	if (reporting_is_metrics(reporting->options)) {
		/* Once. command_end() reports a write that has failed. */
		error = reporting->ends ? add_metrics(reporting, stdout) : 0;
	} else if (!is_replaceable(file)) {
		error = write_file(reporting, file, false);
	} else if (snprintf(temporary, sizeof(temporary), "%s.new", file) < (int)sizeof(temporary)) {
		error = write_file(reporting, temporary, true);
		if (!error && rename(temporary, file))
			error = errno;
		if (error)
			unlink(temporary);
	}
	if (error && error != reporting->write_error) {
		log_errno(&reporting->run->log, file, error, "--prometheus: writing the file");
		run_record_outcome(reporting->run, OUTCOME_INTERNAL);
	}
	reporting->write_error = error;
}
