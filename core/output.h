/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Standard output, or its replacement, and its errors: a full disk, a pipe without a reader. Each complete line is
 * written at once: scripts wait for lines.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

struct output {
	FILE *stream; /* output.c: stdout, stderr, /dev/null, or a child run's memory */
	int fd;	      /* output_tiny.c, which writes at once */
	int error;    /* output_tiny.c: the errno value of the first write(2) that failed, or 0 */
};

/* Begins with standard output, or standard error. */
void output_begin(struct output *output, int fd);

/* Discards all later output. Returns false with errno if /dev/null cannot be opened. */
bool output_discard(struct output *output);

void output_print(struct output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints a line, shortened and cleaned as by log_text(), and its newline, with one write. */
void output_line(struct output *output, const char *format, va_list list) __attribute__((format(printf, 2, 0)));

/* Call it at a signal: on a terminal, ends the line on which the key was echoed ("^C"). */
void output_end_echo(const struct output *output);

/* True if a write to stdout has failed: output_close() will return an error. */
bool output_is_lost(const struct output *output);

/*
 * Flushes and closes stdout and its replacement. Returns a failed write's errno value, or 0. EPIPE is not an error:
 * grep -q closes the pipe early.
 */
int output_close(struct output *output);
