/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of --targets: one server a line. */
#ifndef CMD_RPING_TARGET_FILE_H
#define CMD_RPING_TARGET_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "core/log.h"
#include "core/outcome.h"

struct target_line {
	char *address;
	uint16_t port;
};

/* Zeroed at first. */
struct target_file {
	struct target_line *lines;
	size_t count;
};

/*
 * Reads "ADDRESS [PORT]" from each line of the file, or of standard input for "-". Empty lines do not count, nor does
 * what follows a '#'. port is that of lines without one. On failure the cause is told; what was read stays either way
 * until target_file_free().
 */
enum outcome target_file_read(struct target_file *file, const char *name, uint16_t port, const struct log *log);
void target_file_free(struct target_file *file);

#endif
