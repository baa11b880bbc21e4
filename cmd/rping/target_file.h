/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of --targets, with one server per line. */
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

/* Initially all zeros. */
struct target_file {
	struct target_line *lines;
	size_t count;
};

/*
 * Reads "ADDRESS [PORT]" from each line of the file, or of standard input for "-". Empty lines and comments after '#'
 * are skipped. port is the default. On failure the error has been reported. Call target_file_free() in either case.
 */
enum outcome target_file_read(struct target_file *file, const char *name, uint16_t port, const struct log *log);
void target_file_free(struct target_file *file);

#endif
