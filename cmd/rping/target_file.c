/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/target_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TARGETS_MOST = 10000, /* each takes about two KiB, a connection and three regions */
	PORT_DIGITS_MOST = 5,
};

static const char blank[] = " \t\r\n";

/* Returns false if text is no port. */
static bool read_port(const char *text, uint16_t *port)
{
	size_t digits = strspn(text, "0123456789");
	long value = strtol(text, NULL, 10);

	if (!digits || text[digits] || digits > PORT_DIGITS_MOST || value < 1 || value > UINT16_MAX)
		return false;
	*port = (uint16_t)value;
	return true;
}

static enum outcome add(struct target_file *file, const char *address, uint16_t port, const struct log *log)
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

static enum outcome read_line(struct target_file *file, char *line, uint16_t port, const char *place,
			      const struct log *log)
{
	char *rest = NULL;
	const char *address, *number;

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
	if (file->count == TARGETS_MOST) {
		log_error(log, place, "more than %d targets", TARGETS_MOST);
		return OUTCOME_USAGE;
	}
	return add(file, address, port, log);
}

static enum outcome read_lines(struct target_file *file, FILE *stream, const char *name, uint16_t port,
			       const struct log *log)
{
	enum outcome outcome = OUTCOME_OK;
	unsigned number = 0;
	size_t size = 0;
	char *line = NULL;
	char place[256];

	while (!outcome && getline(&line, &size, stream) >= 0) {
		snprintf(place, sizeof(place), "%s:%u", name, ++number);
		outcome = read_line(file, line, port, place, log);
	}
	free(line);
	if (!outcome && ferror(stream)) {
		log_errno(log, name, errno, "--targets: reading");
		return OUTCOME_INTERNAL;
	}
	if (!outcome && !file->count) {
		log_error(log, name, "--targets: there is no target in it");
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
		log_errno(log, name, errno, "--targets");
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
