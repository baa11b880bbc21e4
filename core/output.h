/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Standard output, or what takes its place, and its errors: a full disk, a pipe without a reader. Each line is written
 * when it is complete: scripts wait for lines.
 */
#ifndef CORE_OUTPUT_H
#define CORE_OUTPUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

struct output {
	FILE *stream; /* output.c: stdout, stderr, /dev/null, or the memory of a child run */
	int fd;	      /* output_short.c, which writes at once */
	int error;    /* output_short.c: the errno value of the first write(2) that failed, or 0 */
};

/* Begins with standard output, or standard error. */
void output_begin(struct output *output, int fd);

/* Discards all later output. Returns false with errno if /dev/null cannot be opened. */
bool output_discard(struct output *output);

void output_print(struct output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints a line, which is cut and cleaned as by log_text(), and its end, with one write. */
void output_line(struct output *output, const char *format, va_list list) __attribute__((format(printf, 2, 0)));

/* Call it at a signal: on a terminal, ends the line in which that has shown the key ("^C"). */
void output_end_echo(const struct output *output);

/* True if a write to stdout has failed: output_close() will return an error. */
bool output_is_lost(const struct output *output);

/*
 * Flushes and closes stdout, and what takes its place. Returns the errno value of a write that failed, or 0. EPIPE is
 * not an error: grep -q closes the pipe early.
 */
int output_close(struct output *output);

#endif
