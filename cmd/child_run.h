/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A child run: a command's run inside another command's run, which waits for it in run_wait(). The command
 * parses its arguments with its own tables. Its output goes to memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/command.h"

enum {
	CHILD_RUN_NAME_SIZE = 128,
	CHILD_RUN_ARGUMENTS_MAX = 40,
	CHILD_RUN_ARGUMENTS_SIZE = 512,
};

/* The caller zeroes it. */
struct child_run {
	const struct command *command;
	void *options;
	void *state;
	char *text; /* the command's output, complete once the run has stopped */
	size_t text_length;
	bool running;
	bool interrupted;
	struct output output;
	struct run run; /* its own outcome and output; the loop and the transport are the parent's */
	char name[CHILD_RUN_NAME_SIZE];
	char arguments[CHILD_RUN_ARGUMENTS_SIZE]; /* options point into it */
};

/*
 * Starts command with --timeout and the words of arguments, on the parent's loop, transport and log; role, such as
 * "server", is appended to its name. If the start fails, running is false and run.outcome has the reason.
 */
void child_run_start(struct child_run *child, const struct run *parent, const struct command *command, const char *role,
		     int64_t timeout, const char *arguments);
/* Stops a run that has ended. Returns whether it is running. */
bool child_run_goes_on(struct child_run *child);
/* Interrupts a run once; later calls, and calls after its end, do nothing. */
void child_run_interrupt(struct child_run *child, enum interruption reason);
/* Ends the run immediately. Its text, its verdict and its outcome stay. */
void child_run_stop(struct child_run *child);
/* Stops the run if necessary, frees its text and zeroes it. */
void child_run_free(struct child_run *child);
