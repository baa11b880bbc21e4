/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/output.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "core/log.h"
#include "core/terminal.h"

enum {
	LINE_SIZE = 2048
};

void output_begin(struct output *output, int fd)
{
	output->stream = fd == STDOUT_FILENO ? stdout : stderr;
	/* Also into files and pipes. */
	setvbuf(stdout, NULL, _IOLBF, 0);
}

bool output_discard(struct output *output)
{
	FILE *nowhere = fopen("/dev/null", "we");

	if (nowhere)
		output->stream = nowhere;
	return nowhere;
}

void output_print(struct output *output, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vfprintf(output->stream, format, list);
	va_end(list);
}

void output_line(struct output *output, const char *format, va_list list)
{
	char line[LINE_SIZE];

	log_text_list(line, sizeof(line), format, list);
	terminal_wrap(line, sizeof(line), fileno(output->stream));
	fprintf(output->stream, "%s\n", line);
}

void output_end_echo(const struct output *output)
{
	if (output->stream == stdout && isatty(STDOUT_FILENO))
		fputc('\n', stdout);
}

bool output_is_lost(const struct output *output)
{
	struct pollfd reader = { .fd = STDOUT_FILENO };

	(void)output;
	return (fflush(stdout) || ferror(stdout)) && !(poll(&reader, 1, 0) > 0 && reader.revents & POLLERR);
}

/* Returns the errno value of the failed write. It is lost by now, so this writes again. */
static int output_error(void)
{
	errno = 0;
	if (write(STDOUT_FILENO, "\n", 1) < 0 && errno)
		return errno;
	return EIO;
}

int output_close(struct output *output)
{
	bool failed = fflush(stdout) || ferror(stdout);
	int error = failed ? output_error() : 0;

	if (output->stream != stdout && output->stream != stderr)
		fclose(output->stream);
	if (fclose(stdout) && !error)
		error = errno;
	return error == EPIPE ? 0 : error;
}
