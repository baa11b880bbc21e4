/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces output.c without WITH_DIAGNOSTICS: descriptors, because the C library's streams take 1 KB. */
#include "core/output.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/log.h"

enum {
	LINE_SIZE = 2048
};

void output_begin(struct output *output, int fd)
{
	*output = (struct output){ .fd = fd };
}

bool output_discard(struct output *output)
{
	int fd = open("/dev/null", O_WRONLY);

	if (fd >= 0)
		output->fd = fd;
	return fd >= 0;
}

void output_print(struct output *output, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	if (vdprintf(output->fd, format, list) < 0 && !output->error)
		output->error = errno;
	va_end(list);
}

void output_line(struct output *output, const char *format, va_list list)
{
	char line[LINE_SIZE];

	output_print(output, "%s\n", log_text_list(line, sizeof(line), format, list));
}

void output_end_echo(const struct output *output)
{
	(void)output;
}

bool output_is_lost(const struct output *output)
{
	return output->error && output->error != EPIPE;
}

int output_close(struct output *output)
{
	if (close(output->fd) && !output->error)
		output->error = errno;
	return output_is_lost(output) ? output->error : 0;
}
