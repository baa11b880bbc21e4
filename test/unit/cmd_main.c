/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=output_close */
/* The end of the program, after command_run() has returned. */
#include "test/unit/unit.h"

#include <errno.h>

#include "cmd/signals.h"
#include "core/log.h"
#include "core/outcome.h"

int program_main(int argc, char **argv);

#define main program_main
#include "cmd/main.c"
#undef main

/* Like a second signal arriving here. */
int __wrap_output_close(struct output *output)
{
	fatal_exit(FATAL_INTERRUPTED);
}

TEST(fatal_exit_has_the_name_until_the_process_ends)
{
	char program[] = "rdmatest", command[] = "rping", option[] = "--version";
	char *arguments[] = { program, command, option, NULL };
	struct capture errors;
	pid_t child;

	fflush(stdout);
	capture_begin(&errors);
	child = fork();
	if (!child) {
		close(STDOUT_FILENO);
		_exit(program_main(3, arguments));
	}
	assert_int_equal(exit_status(child), OUTCOME_INTERRUPTED);
	assert_string_equal(capture_end(&errors), "rdmatest rping: second signal: terminated\n");
}
