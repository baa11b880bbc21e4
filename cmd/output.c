/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/output.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"

static void look_for_loss(void *owner)
{
	struct output_watch *watch = owner;

	if (ferror(stdout))
		watch->lost(watch->owner);
	else
		loop_timer_start(watch->loop, &watch->check, CLOCK_NS_PER_S, look_for_loss, watch);
}

/* The only thing that the writing end of a pipe can announce here. It would do so again and again. */
static void reader_gone(void *owner)
{
	struct output_watch *watch = owner;

	loop_io_stop(&watch->reader);
	look_for_loss(watch);
}

void output_watch_start(struct output_watch *watch, struct loop *loop, loop_callback *lost, void *owner)
{
	struct stat status;

	watch->loop = loop;
	watch->lost = lost;
	watch->owner = owner;
	if (!fstat(STDOUT_FILENO, &status) && S_ISFIFO(status.st_mode))
		loop_io_start(loop, &watch->reader, STDOUT_FILENO, reader_gone, watch);
}

void output_watch_stop(struct output_watch *watch)
{
	loop_io_stop(&watch->reader);
	loop_timer_stop(&watch->check);
}

/* Why stdout cannot be written. The reason went with the write that failed; one more write tells it again. */
static int output_error(void)
{
	errno = 0;
	if (write(STDOUT_FILENO, "\n", 1) < 0 && errno)
		return errno;
	return EIO;
}

enum outcome output_finish(const struct log *log, enum outcome outcome)
{
	bool failed = fflush(stdout) || ferror(stdout);
	int error = failed ? output_error() : 0;

	if (fclose(stdout) && !error)
		error = errno;
	if (!error || error == EPIPE)
		return outcome;
	log_errno(log, "standard output", error, "write failed");
	return outcome == OUTCOME_OK ? OUTCOME_INTERNAL : outcome;
}
