/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/output.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"

static void check_stdout(void *context)
{
	struct output_watch *watch = context;

	if (ferror(stdout))
		watch->failed(watch->context);
	else
		loop_timer_start(watch->loop, &watch->check, CLOCK_NS_PER_S, check_stdout, watch);
}

/* The write end of a pipe is readable only when the reader has closed, and stays so: the watcher is stopped. */
static void reader_gone(void *context)
{
	struct output_watch *watch = context;

	loop_io_stop(&watch->reader);
	check_stdout(watch);
}

void output_watch_start(struct output_watch *watch, struct loop *loop, loop_callback *failed, void *context)
{
	struct stat status;

	watch->loop = loop;
	watch->failed = failed;
	watch->context = context;
	if (!fstat(STDOUT_FILENO, &status) && S_ISFIFO(status.st_mode))
		loop_io_start(loop, &watch->reader, STDOUT_FILENO, reader_gone, watch);
}

void output_watch_stop(struct output_watch *watch)
{
	loop_io_stop(&watch->reader);
	loop_timer_stop(&watch->check);
}

enum outcome output_discard(FILE **stream, const struct log *log)
{
	FILE *null = fopen("/dev/null", "we");

	if (!null) {
		log_errno(log, "/dev/null", errno, "opening");
		return OUTCOME_INTERNAL;
	}
	*stream = null;
	return OUTCOME_OK;
}

void output_end_echo(FILE *stream)
{
	if (stream == stdout && isatty(STDOUT_FILENO))
		putchar('\n');
}

bool output_is_lost(void)
{
	struct pollfd reader = { .fd = STDOUT_FILENO };

	return (fflush(stdout) || ferror(stdout)) && !(poll(&reader, 1, 0) > 0 && reader.revents & POLLERR);
}

/* Returns the errno value of the failed write. It is lost by now, so this writes once more. */
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
