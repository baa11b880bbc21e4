/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/output.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

void output_end_echo(FILE *stream)
{
	if (WITH_CAUSES && stream == stdout && isatty(STDOUT_FILENO))
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
