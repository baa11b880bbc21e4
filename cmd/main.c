/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdmatest: several commands in one program. The base name of argv[0] selects the command (a link named "rping" runs
 * rping), else the first argument does.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/signals.h"

enum {
	NAME_SIZE = 256
};

static const struct command *main_find_command(const char *name)
{
	for (const struct command *const *row = command_table; *row; row++)
		if (!strcmp((*row)->name, name))
			return *row;
	return NULL;
}

static enum outcome unknown_word(const struct log *log, const char *word)
{
	bool is_option = *word == '-';
	const char *nearest = NULL;
	unsigned least = SPELLING_FAR;

	log_error(log, word, is_option ? "unknown option" : "unknown command");
	for (const struct command *const *row = command_table; WITH_DIAGNOSTICS && *row && !is_option; row++) {
		unsigned distance = spelling_distance(word, (*row)->name);

		if (distance >= least)
			continue;
		least = distance;
		nearest = (*row)->name;
	}
	if (nearest)
		log_hint(log, "did you mean %s? %s --help lists the commands", nearest, log->name);
	else
		log_hint(log, "%s --help lists the commands", log->name);
	return is_option ? OUTCOME_USAGE : OUTCOME_UNKNOWN_COMMAND;
}

#if WITH_HELP
#define ABOUT                                                                                                          \
	"       COMMAND [OPTION]...    through a link of that name\n"                                                  \
	"\n"                                                                                                           \
	"Tests of RDMA connections and multicast.\n"
#define OPTIONS                                                                                                        \
	"      --list     List the commands with links, one per line\n"                                                \
	"  -h, --help     Print this help\n"                                                                           \
	"      --version  Print the version\n"
#else
#define ABOUT
#define OPTIONS "      --list\n  -h, --help\n      --version\n"
#endif

/* docs/options.awk parses this like a command's options. */
static void print_usage(struct output *output, const char *name)
{
	output_print(output, "Usage: %s COMMAND [OPTION]...\n       %s help COMMAND\n" ABOUT "\nCommands:\n", name,
		     name);
	for (const struct command *const *row = command_table; *row; row++)
		if (WITH_HELP)
			run_print_help(output, "  %-10s %s", (*row)->name, (*row)->summary);
		else
			output_print(output, "  %s\n", (*row)->name);
	output_print(output, "\nOptions:\n" OPTIONS);
}

/* The links that symlinks.sh makes. */
static void list_links(struct output *output)
{
	for (const struct command *const *row = command_table; *row; row++)
		if ((*row)->linked)
			output_print(output, "%s\n", (*row)->name);
}

static enum outcome dispatch(struct log *log, int argc, char **argv, struct output *output)
{
	const struct command *command = main_find_command(log->name);
	const char *word = argc > 1 ? argv[1] : "";
	bool is_help = !strcmp(word, "help"), helps = is_help || !strcmp(word, "--help") || !strcmp(word, "-h");
	bool lists = !strcmp(word, "--list");
	int words = is_help ? 3 : lists ? 2 : argc;
	char name[NAME_SIZE];

	if (command)
		return command_run(command, log->name, argc, argv, output);
	if (argc > words) {
		log_error(log, NULL, "unexpected argument '%s'", argv[words]);
		return OUTCOME_USAGE;
	}
	if (helps && argc > 2)
		word = argv[2];
	command = main_find_command(word);
	if (command) {
		log_text(name, sizeof(name), "%s %s", log->name, word);
		if (!helps)
			return command_run(command, name, argc - 1, argv + 1, output);
		command_help(command, name, false, output);
	} else if (argc < 2 || (helps && argc == 2)) {
		if (!helps)
			output_begin(output, STDERR_FILENO);
		print_usage(output, log->name);
		return helps ? OUTCOME_OK : OUTCOME_USAGE;
	} else if (lists) {
		list_links(output);
	} else if (!strcmp(word, "--version")) {
		output_print(output, "rdmatest %s\n", RDMATEST_VERSION RDMATEST_COMMIT);
	} else {
		return unknown_word(log, word);
	}
	return OUTCOME_OK;
}

/*
 * Opens standard descriptors that the caller has closed: otherwise the next open(2), such as a device's, would get the
 * number, and output would go there. They are read-only, so writes to descriptor 1 still fail.
 */
static void occupy_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* The base name of argv[0], which a caller may leave out or leave empty. */
static const char *typed_name(const char *path)
{
	const char *name = path;

	for (; path && *path; path++)
		if (*path == '/')
			name = path + 1;
	return name && *name ? name : "rdmatest";
}

int main(int argc, char **argv)
{
	const char *typed = typed_name(argv[0]);
	char name[NAME_SIZE];
	struct log log = { .name = WITH_DIAGNOSTICS ? log_text(name, sizeof(name), "%s", typed) : typed };
	struct output output = { 0 };
	enum outcome outcome;

	occupy_standard_descriptors();
	/* Lets write(2) report a missing reader, and a file at its size limit (ulimit -f). */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* A caller's SIG_IGN would be inherited, and waitpid(2) would have no status. */
	signal(SIGCHLD, SIG_DFL);
	if (WITH_DIAGNOSTICS)
		loop_set_fatal_handlers(fatal_allocate, fatal_loop_error);
	output_begin(&output, STDOUT_FILENO);
	outcome = dispatch(&log, argc, argv, &output);
	return (int)command_end(&log, &output, outcome);
}
