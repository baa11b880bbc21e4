/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdmatest: several commands in one program. The base name of argv[0] selects the command (a link named "rping" runs
 * rping), else the first argument does.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/output.h"
#include "cmd/run.h"
#include "cmd/signals.h"
#include "core/spelling.h"

enum {
	NAME_SIZE = 256
};

/* The options without a command. */
struct main_options {
	bool list;
	bool help;
	bool version;
};

/* clang-format off */
static const struct option main_options[] = {
	OPTION_FLAG_ROW(0, "list", struct main_options, list,
			OPTION_HELP("List the commands that have links, one name a line")),
	OPTION_FLAG_ROW('h', "help", struct main_options, help, OPTION_HELP("Print this help"), .stops = true),
	OPTION_FLAG_ROW(0, "version", struct main_options, version, OPTION_HELP("Print the version"), .stops = true),
	OPTION_END,
};
/* clang-format on */

static const struct command *main_find_command(const char *name)
{
	for (const struct command *const *row = command_table; *row; row++)
		if (!strcmp((*row)->name, name))
			return *row;
	return NULL;
}

static enum outcome unknown_command(const struct log *log, const char *name)
{
	const struct command *nearest = NULL;
	unsigned least = SPELLING_FAR;

	log_error(log, name, "unknown command");
	for (const struct command *const *row = command_table; *row; row++) {
		unsigned distance = spelling_distance(name, (*row)->name);

		if (distance >= least)
			continue;
		least = distance;
		nearest = *row;
	}
	if (nearest)
		log_hint(log, "did you mean %s? %s --help lists the commands", nearest->name, log->name);
	else
		log_hint(log, "%s --help lists the commands", log->name);
	return OUTCOME_UNKNOWN_COMMAND;
}

static void print_usage(FILE *stream, const char *name)
{
	fprintf(stream,
		"Usage: %s COMMAND [OPTION]...\n"
		"       %s help COMMAND\n"
		"       COMMAND [OPTION]...    through a link of that name\n"
		"\n"
		"Tests of RDMA connections and multicast.\n"
		"\n"
		"Commands:\n",
		name, name);
	for (const struct command *const *row = command_table; *row; row++)
		fprintf(stream, "  %-10s %s\n", (*row)->name, (*row)->summary);
	options_help(main_options, false, stream);
}

/* The links that symlinks.sh makes. */
static void list_links(void)
{
	for (const struct command *const *row = command_table; *row; row++)
		if ((*row)->linked)
			fprintf(stdout, "%s\n", (*row)->name);
}

/* "rdmatest --list" and the like. */
static enum outcome run_options(const struct log *log, int argc, char *const *argv)
{
	struct main_options options = { 0 };
	uint64_t given;
	enum outcome outcome = options_parse(main_options, log, argc, argv, &options, &given);

	if (outcome)
		return outcome;
	if (options.help)
		print_usage(stdout, log->name);
	else if (options.version)
		fprintf(stdout, "rdmatest %s\n", RDMATEST_VERSION RDMATEST_COMMIT);
	else if (options.list)
		list_links();
	return OUTCOME_OK;
}

/* "rdmatest help" and "rdmatest help COMMAND". */
static enum outcome run_help(const struct log *log, int argc, char *const *argv)
{
	const struct command *command;
	char name[NAME_SIZE];

	if (argc < 2) {
		print_usage(stdout, log->name);
		return OUTCOME_OK;
	}
	if (argc > 2) {
		log_error(log, argv[2], "help takes one command");
		return OUTCOME_USAGE;
	}
	command = main_find_command(argv[1]);
	if (!command)
		return unknown_command(log, argv[1]);
	snprintf(name, sizeof(name), "%s %s", log->name, command->name);
	command_help(command, name, false);
	return OUTCOME_OK;
}

/*
 * "rdmatest --transport soft rping -s": the command comes first, its options keep their order. --list is none of its
 * options.
 */
static void put_command_first(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		char *name = argv[i];

		if (!main_find_command(name))
			continue;
		memmove(argv + 2, argv + 1, (size_t)(i - 1) * sizeof(*argv));
		argv[1] = name;
		return;
	}
}

static enum outcome dispatch(struct log *log, int argc, char **argv)
{
	const struct command *command = main_find_command(log->name);
	char name[NAME_SIZE];

	if (command)
		return command_run(command, log->name, argc, argv);
	if (argc < 2) {
		print_usage(stderr, log->name);
		return OUTCOME_USAGE;
	}
	if (argv[1][0] == '-' && strcmp(argv[1], "--list") != 0)
		put_command_first(argc, argv);
	if (argv[1][0] == '-')
		return run_options(log, argc, argv);
	if (!strcmp(argv[1], "help"))
		return run_help(log, argc - 1, argv + 1);
	command = main_find_command(argv[1]);
	if (!command)
		return unknown_command(log, argv[1]);
	snprintf(name, sizeof(name), "%s %s", log->name, command->name);
	return command_run(command, name, argc - 1, argv + 1);
}

/*
 * Opens standard descriptors that the caller has closed: otherwise the next open(2), of a device, would get the number,
 * and output would go there. They are read-only, so writes to descriptor 1 still fail.
 */
static void occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
			return;
}

static const char *program_name(int argc, char *const *argv)
{
	const char *path = argc ? argv[0] : "";
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return *name ? name : "rdmatest";
}

int main(int argc, char **argv)
{
	struct log log = { .name = program_name(argc, argv) };
	enum outcome outcome;

	occupy_standard_descriptors();
	/* A missing reader and a file at its size limit (ulimit -f) are reported as errors of write(2). */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* A caller that ignores it passes that on, and waitpid(2) then has no status. */
	signal(SIGCHLD, SIG_DFL);
	loop_set_fatal_handlers(fatal_allocate, fatal_loop_error);
	/* Line-buffered also for files and pipes: scripts wait for lines. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	outcome = dispatch(&log, argc, argv);
	return (int)output_finish(&log, outcome);
}
