/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/reporting/reporting.h"

enum {
	WIDTH_USUAL = 80
};

void reporting_clear(struct reporting *reporting)
{
	if (!reporting || !reporting->progress_shown)
		return;
	reporting->progress_shown = false;
	fputs("\r\033[K", stderr);
}

/* Truncates the text to the width of the terminal: reporting_clear() clears one line only. */
static void show_progress(struct reporting *reporting, const char *text)
{
	struct winsize window;
	int width = WIDTH_USUAL;

	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &window) && window.ws_col)
		width = window.ws_col;
	reporting_clear(reporting);
	fprintf(stderr, "%.*s", width - 1, text);
	reporting->progress_shown = true;
}

static void progress(void *context)
{
	struct reporting *reporting = context;
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	if (stream) {
		reporting_print_figures(reporting, stream, &report_line, false);
		fclose(stream);
		show_progress(reporting, text ? text : "");
		free(text);
	}
	loop_timer_start(reporting->environment->loop, &reporting->progress, CLOCK_NS_PER_S, progress, reporting);
}

void reporting_start_progress(struct reporting *reporting)
{
	const struct reporting_options *options = reporting->options;

	if (reporting->form != &reporting_text || options->quiet || options->interval || !reporting->command->figures ||
	    !isatty(STDOUT_FILENO) || !isatty(STDERR_FILENO))
		return;
	loop_timer_start(reporting->environment->loop, &reporting->progress, 2 * CLOCK_NS_PER_S, progress, reporting);
}
