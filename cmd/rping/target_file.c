/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/target_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TARGETS_MAX = 10000, /* each takes about two KiB, a connection and three regions */
	PORT_DIGITS_MAX = 5,
};

static const char label[] = "--targets";
static const char blank[] = " \t\r\n";

/* Returns false if text is not a port. */
static bool read_port(const char *text, uint16_t *port)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long long value = strtoull(text, NULL, 10);

	if (!digits || text[digits] || digits > PORT_DIGITS_MAX || value < 1 || value > UINT16_MAX)
		return false;
	*port = (uint16_t)value;
	return true;
}

static enum outcome add_target(struct target_file *file, const char *address, uint16_t port, const struct log *log)
{
	struct target_line *lines = realloc(file->lines, (file->count + 1) * sizeof(*lines));
	char *copy = strdup(address);

	if (lines)
		file->lines = lines;
	if (!lines || !copy) {
		free(copy);
		log_error(log, NULL, "out of memory");
		return OUTCOME_INTERNAL;
	}
	lines[file->count++] = (struct target_line){ .address = copy, .port = port };
	return OUTCOME_OK;
}

/* Accepts printable ASCII and blanks up to a #, because error messages quote the words. A comment may have any bytes.
 */
static bool is_text(const char *line, size_t length)
{
	for (size_t i = 0; i < length && line[i] != '#'; i++)
		if ((line[i] < ' ' || line[i] > '~') && (!line[i] || !strchr(blank, line[i])))
			return false;
	return true;
}

static enum outcome read_line(struct target_file *file, char *line, size_t length, uint16_t port, const char *place,
			      const struct log *log)
{
	char *rest = NULL;
	const char *address, *number;

	if (!is_text(line, length)) {
		log_error(log, place, "not a line of text");
		return OUTCOME_USAGE;
	}
	line[strcspn(line, "#")] = 0;
	address = strtok_r(line, blank, &rest);
	number = strtok_r(NULL, blank, &rest);
	if (!address)
		return OUTCOME_OK;
	if (number && !read_port(number, &port)) {
		log_error(log, place, "'%s' is not a port: 1 to 65535", number);
		return OUTCOME_USAGE;
	}
	if (number && strtok_r(NULL, blank, &rest)) {
		log_error(log, place, "more than an address and a port");
		return OUTCOME_USAGE;
	}
	if (file->count == TARGETS_MAX) {
		log_error(log, place, "more than %d targets", TARGETS_MAX);
		return OUTCOME_USAGE;
	}
	return add_target(file, address, port, log);
}

static enum outcome read_lines(struct target_file *file, FILE *stream, const char *name, uint16_t port,
			       const struct log *log)
{
	enum outcome outcome = OUTCOME_OK;
	unsigned number = 0;
	size_t size = 0;
	ssize_t length;
	char *line = NULL;
	char place[256];

	while (!outcome && (length = getline(&line, &size, stream)) >= 0) {
		snprintf(place, sizeof(place), "%s:%u", name, ++number);
		outcome = read_line(file, line, (size_t)length, port, place, log);
	}
	/* getline() can also fail for lack of memory: then ferror() may be false. */
	if (!outcome && !feof(stream)) {
		log_errno(log, label, errno, "%s: reading", name);
		outcome = OUTCOME_INTERNAL;
	}
	free(line);
	if (!outcome && !file->count) {
		log_error(log, label, "%s: no targets", name);
		return OUTCOME_USAGE;
	}
	return outcome;
}

enum outcome target_file_read(struct target_file *file, const char *name, uint16_t port, const struct log *log)
{
	bool is_input = !strcmp(name, "-");
	FILE *stream = is_input ? stdin : fopen(name, "r");
	enum outcome outcome;

	if (!stream) {
		log_errno(log, label, errno, "%s", name);
		return OUTCOME_USAGE;
	}
	outcome = read_lines(file, stream, is_input ? "standard input" : name, port, log);
	if (!is_input)
		fclose(stream);
	return outcome;
}

void target_file_free(struct target_file *file)
{
	for (size_t i = 0; i < file->count; i++)
		free(file->lines[i].address);
	free(file->lines);
	*file = (struct target_file){ 0 };
}
