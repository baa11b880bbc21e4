/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch [-n] PROGRAM [ARGUMENT...]: starts a program as a terminal would. A shell without job control starts
 * background programs with SIGINT ignored, which cannot be undone in the shell; a test of Ctrl-C would then prove
 * nothing. -n runs the program as nobody, which busybox cannot do simply.
 */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	nobody = 65534
};

int main(int argc, char **argv)
{
	int first = 1;

	if (argc > 1 && strcmp(argv[1], "-n") == 0) {
		first = 2;
		if (setgroups(0, NULL) != 0 || setgid(nobody) != 0 || setuid(nobody) != 0) {
			perror("launch: becoming nobody");
			return 125;
		}
	}
	if (first >= argc) {
		fprintf(stderr, "usage: launch [-n] PROGRAM [ARGUMENT...]\n");
		return 125;
	}
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	execvp(argv[first], argv + first);
	fprintf(stderr, "launch: %s: %s\n", argv[first], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
