/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors of standard output: a full disk, a pipe without a reader. */
#ifndef CMD_OUTPUT_H
#define CMD_OUTPUT_H

#include <stdio.h>

#include "core/log.h"
#include "core/outcome.h"

/* Call it at a signal: on a terminal, ends the line in which that has shown the key ("^C"). */
void output_end_echo(FILE *stream);

/*
 * True if a write to stdout has failed, for which output_finish() will report an error: before the verdict, so that it
 * and the exit code agree.
 */
bool output_is_lost(void);

/*
 * Flushes and closes stdout, as the last step of the program. Returns outcome, or OUTCOME_INTERNAL if a write failed
 * and outcome is OUTCOME_OK. EPIPE is not an error: grep -q closes the pipe early.
 */
enum outcome output_finish(const struct log *log, enum outcome outcome);

#endif
