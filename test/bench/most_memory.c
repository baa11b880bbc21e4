/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * most_memory FILE COMMAND [ARGUMENT...]: runs a command as its child, writes its peak resident memory in KiB to FILE,
 * and exits with its status.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/bench/need.h"

int main(int argc, char **argv)
{
	struct rusage usage;
	FILE *file;
	int status = 0;
	pid_t child;

	if (argc < 3) {
		fprintf(stderr, "usage: most_memory FILE COMMAND [ARGUMENT...]\n");
		return 2;
	}
	child = vfork();
	need(child >= 0, "most_memory: fork");
	if (!child) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	need(wait4(child, &status, 0, &usage) == child, "most_memory: wait");
	file = fopen(argv[1], "w");
	need(file && fprintf(file, "%ld\n", usage.ru_maxrss) > 0 && !fclose(file), "most_memory: write");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
