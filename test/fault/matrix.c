/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fault matrix: runs the program again and again over soft, each time with one use of one library call failing, and
 * judges how it ended: exit code, words, time, and what it left behind. (The calls of verbs: test/verbs/faults.c.)
 *
 * usage: faults [OPTION...] PROGRAM INJECT.so
 *   -j N      so many cells at once
 *   -n N      so many uses of each call fail in turn, the last one besides; all unless told
 *   -e N      so many of its errors are tried; all unless told
 *   -o FILE   a line a cell: role, call, use, error, expected, seen, milliseconds, words
 *   -r ROLE   only that role
 *   -c CALL   only calls whose name has this in it
 *   -u WORDS  what the program runs under: "valgrind -q"
 *   -s N      all time limits are so many times as long
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/fault/cells.h"

enum {
	WORDS_MAX = 40,
	TEXT_MAX = 4096,
	CALLS_MAX = 128,
	CELLS_MAX = 65536,
	ROLES_MAX = 32,
	BOUND_MS = 12000 /* a cell's time: the deadline of its commands and what comes on top */
};

struct settings {
	const char *program, *inject, *output, *role, *call, *under;
	unsigned at_once, uses, errors, slower;
	char folder[64];
};

struct cell {
	const struct role *role;
	const struct row *row;
	int error;
	unsigned long use;
};

/* What was seen of one process. */
struct ending {
	int status; /* as of waitpid */
	long milliseconds;
	bool over; /* it did not end by itself */
	char words[TEXT_MAX];
};

/* How often the program under test used each call when nothing failed. */
struct usage {
	char name[64];
	unsigned long count;
};

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "matrix: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- processes ---- */

/* A line of words: @ is the address of this cell, ^ that of whoever connects, % a number of this cell's place, & our
 * folder, ~ a phase's time limit, ! that of all. */
static void expand(const struct settings *settings, const char *line, unsigned place, char *text, size_t size)
{
	size_t used = 0;

	for (; *line && used + 64 < size; line++) {
		if (*line == '@' || *line == '^')
			used += (size_t)snprintf(text + used, size - used, "127.0.%u.%d", place + 1,
						 *line == '@' ? 1 : 2);
		else if (*line == '~')
			used += (size_t)snprintf(text + used, size - used, "%ums", 700 * settings->slower);
		else if (*line == '!')
			used += (size_t)snprintf(text + used, size - used, "%us", 9 * settings->slower);
		else if (*line == '%')
			used += (size_t)snprintf(text + used, size - used, "%u", place + 1);
		else if (*line == '&')
			used += (size_t)snprintf(text + used, size - used, "%s", settings->folder);
		else
			text[used++] = *line;
	}
	text[used] = '\0';
}

static void path_of(const struct settings *settings, unsigned place, const char *what, char path[128])
{
	snprintf(path, 128, "%s/%s.%u", settings->folder, what, place);
}

/* fault NULL: not watched at all; "": nothing fails, uses are counted. output: for stdout, or -1. */
static pid_t start(const struct settings *settings, const char *line, unsigned place, const char *name,
		   const char *fault, int output)
{
	char text[TEXT_MAX], path[128], report[128], *words[WORDS_MAX], *rest = text, *word;
	size_t count = 0, used;
	pid_t child;
	int fd;

	used = (size_t)snprintf(text, sizeof(text), "%s %s ", settings->under, settings->program);
	expand(settings, line, place, text + used, sizeof(text) - used);
	while (count < WORDS_MAX - 1 && (word = strsep(&rest, " ")))
		if (*word)
			words[count++] = word;
	words[count] = NULL;
	child = fork();
	if (child)
		return child;
	path_of(settings, place, name, path);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	dup2(fd, STDERR_FILENO);
	fd = open("/dev/null", O_RDWR);
	dup2(fd, STDIN_FILENO);
	dup2(output >= 0 ? output : fd, STDOUT_FILENO);
	for (fd = STDERR_FILENO + 1; fd < 64; fd++)
		close(fd);
	setenv("RDMATEST_TRANSPORT", "soft", 1);
	if (fault) {
		path_of(settings, place, "report", report);
		unlink(report);
		setenv("FAULT_REPORT", report, 1);
		setenv("FAULT", fault, 1);
		setenv("FAULT_PROGRAM", settings->program, 1);
		setenv("LD_PRELOAD", settings->inject, 1);
	}
	execvp(words[0], words);
	_exit(99);
}

/* Waits for the end, ends it if it is over its time. */
static void finish(const struct settings *settings, pid_t child, unsigned place, const char *name, long begin,
		   long bound, struct ending *ending)
{
	char path[128];
	FILE *file;
	size_t length = 0;

	while (waitpid(child, &ending->status, WNOHANG) == 0) {
		if (now() - begin > bound && !ending->over) {
			ending->over = true;
			kill(child, SIGKILL);
		}
		poll(NULL, 0, 2);
	}
	ending->milliseconds = now() - begin;
	path_of(settings, place, name, path);
	file = fopen(path, "re");
	if (file) {
		length = fread(ending->words, 1, sizeof(ending->words) - 1, file);
		fclose(file);
	}
	ending->words[length] = '\0';
}

/* Reads the lines of a server or receiver until one says that peers can connect, or it ends. */
static void wait_ready(int output, int bound)
{
	struct pollfd readable = { .fd = output, .events = POLLIN };
	char text[TEXT_MAX] = "";
	size_t used = 0;
	ssize_t length = 1;

	while (length > 0 && !strstr(text, "ready") && !strstr(text, "listening") && !strstr(text, "receiving")) {
		length = poll(&readable, 1, bound) > 0 ? read(output, text + used, sizeof(text) - 1 - used) : 0;
		if (length > 0)
			used += (size_t)length;
		text[used] = '\0';
	}
}

/* Runs the two ends of a cell; what ends the one under test is in *tested, the other in *peer. */
static void run_pair(const struct settings *settings, const struct role *role, unsigned place, const char *fault,
		     struct ending *tested, struct ending *peer)
{
	int output[2] = { -1, -1 }; /* of the one that is there first */
	long begin = now(), bound = (long)BOUND_MS * settings->slower;
	pid_t children[2] = { 0 }; /* the one under test, its peer */

	*tested = *peer = (struct ending){ 0 };
	if (role->peer) {
		if (pipe2(output, O_CLOEXEC))
			give_up("pipe");
		if (role->passive)
			children[0] = start(settings, role->line, place, "tested", fault, output[1]);
		else
			children[1] = start(settings, role->peer, place, "peer", NULL, output[1]);
		close(output[1]);
		wait_ready(output[0], (int)bound);
	}
	if (!children[0])
		children[0] = start(settings, role->line, place, "tested", fault, -1);
	else
		children[1] = start(settings, role->peer, place, "peer", NULL, -1);
	finish(settings, children[0], place, "tested", begin, bound, tested);
	if (role->peer)
		finish(settings, children[1], place, "peer", begin, 2 * bound, peer);
	close(output[0]);
}

/* ---- the report of inject.c ---- */

struct report {
	unsigned long fired;
	char left[256];
	struct usage usage[CALLS_MAX];
	size_t calls;
};

static void read_report(const struct settings *settings, unsigned place, struct report *report)
{
	char path[128], line[256];
	FILE *file;

	*report = (struct report){ 0 };
	path_of(settings, place, "report", path);
	file = fopen(path, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		struct usage *usage = &report->usage[report->calls];

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "fired %lu", &report->fired) == 1)
			continue;
		if (!strncmp(line, "left ", 5))
			snprintf(report->left + strlen(report->left), sizeof(report->left) - strlen(report->left),
				 "%s%s", report->left[0] ? ", " : "", line + 5);
		else if (report->calls < CALLS_MAX && sscanf(line, "call %63s %lu", usage->name, &usage->count) == 2)
			report->calls++;
	}
	fclose(file);
}

/* ---- the verdict ---- */

static const char *code_text(const struct ending *ending, char text[32])
{
	if (ending->over)
		return "hangs";
	if (WIFSIGNALED(ending->status))
		snprintf(text, 32, "signal %d", WTERMSIG(ending->status));
	else
		snprintf(text, 32, "%d", WEXITSTATUS(ending->status));
	return text;
}

/* True if code is one of the words of a list. */
static bool is_among(const char *code, const char *list)
{
	size_t length = strlen(code);

	while (*list) {
		size_t word = strcspn(list, " ");

		if (word == length && !strncmp(list, code, length))
			return true;
		list += word + (list[word] == ' ');
	}
	return false;
}

/* Lines but hints. */
static unsigned lines_of(const char *words)
{
	unsigned count = 0;

	while (*words) {
		size_t length = strcspn(words, "\n");
		const char *hint = strstr(words, ": hint: ");

		count += !hint || hint > words + length;
		words += length + (words[length] == '\n');
	}
	return count;
}

static bool matches(const char *text, const char *pattern)
{
	regex_t expression;
	bool found;

	if (regcomp(&expression, pattern, REG_EXTENDED | REG_NOSUB))
		give_up(pattern);
	found = !regexec(&expression, text, 0, NULL, 0);
	regfree(&expression);
	return found;
}

/* NULL if all is as it should be, else what is not. */
static const char *wrong(const struct cell *cell, const struct ending *tested, const struct ending *peer,
			 const struct report *report)
{
	const char *left = report->left[0] && !cell->row->leaves ? "something is left" : NULL;
	char code[32], number[64];

	code_text(tested, code);
	if (tested->over)
		return "it hangs";
	if (WIFSIGNALED(tested->status))
		return "it crashed";
	if (cell->role->peer && (peer->over || WIFSIGNALED(peer->status)))
		return "the peer hangs";
	if (!report->fired)
		return NULL; /* it ended before it came to that */
	if (!is_among(code, cell->row->codes))
		return "another exit code";
	if (matches(tested->words, "defect|Sanitizer|runtime error"))
		return "a defect";
	if (!strcmp(code, "0"))
		return tested->words[0] && !cell->row->reports ? "words about a success" : left;
	if (!tested->words[0])
		return "not a word";
	if (cell->role->peer && lines_of(tested->words) > (cell->row->times == 1 ? 3 : 8))
		return "too many words";
	snprintf(number, sizeof(number), "\\((.*status )?-?%d\\)", cell->error);
	if (!matches(tested->words, cell->row->words ? cell->row->words : number))
		return "the words do not name the cause";
	return left;
}

static void print_cell(FILE *file, const struct cell *cell, const struct ending *tested, const char *reason,
		       const struct report *report)
{
	const char *error = strerrorname_np(cell->error);
	char code[32];

	fprintf(file, "%s\t%s\t%s\t%lu\t%s\t%s\t%s\t%ld\t%s\t",
		reason		? "FAIL"
		: report->fired ? "ok"
				: "past",
		cell->role->name, cell->row->call, cell->use, error ? error : "?", cell->row->codes,
		code_text(tested, code), tested->milliseconds, reason ? reason : "");
	for (const char *at = tested->words; *at; at++)
		fputc(*at == '\n' ? '|' : *at == '\t' ? ' ' : *at, file);
	fprintf(file, "\t%s\n", report->left);
}

static void run_cell(const struct settings *settings, const struct cell *cell, unsigned place, FILE *file)
{
	struct ending tested, peer;
	struct report report;
	char fault[128];
	const char *reason;

	snprintf(fault, sizeof(fault), "%s:%lu:%d:%u", cell->row->call, cell->use, cell->error, cell->row->times);
	/* What the libraries keep of it is no leak of ours, which a program with AddressSanitizer would tell of. */
	setenv("LSAN_OPTIONS", cell->row->leaves ? "detect_leaks=0" : "", 1);
	/* A machine that stood still is no finding: what was not as it should be has to be so twice. */
	for (unsigned tries = 0; tries < 2; tries++) {
		run_pair(settings, cell->role, place, fault, &tested, &peer);
		read_report(settings, place, &report);
		reason = wrong(cell, &tested, &peer, &report);
		if (!reason)
			break;
	}
	print_cell(file, cell, &tested, reason, &report);
	if (reason) {
		print_cell(stdout, cell, &tested, reason, &report);
		fflush(stdout);
	}
}

/* ---- all cells ---- */

/*
 * The use to try after that one; 0 if it was the last. Whoever polls asks thousands of times, and one is like the next:
 * beyond the fiftieth it is a tenth further each time.
 */
static unsigned long next_use(const struct settings *settings, unsigned long use, unsigned long last)
{
	unsigned long next = use + (use < 50 ? 1 : use / 10);

	if (use == last)
		return 0;
	return next > last || (settings->uses && use >= settings->uses) ? last : next;
}

static size_t add_cells(const struct settings *settings, const struct role *role, const struct report *report,
			struct cell *cells, size_t count)
{
	for (size_t call = 0; call < report->calls; call++) {
		const struct usage *usage = &report->usage[call];

		for (const struct row *row = cell_rows; row->call; row++) {
			if (strcmp(row->call, usage->name) != 0 ||
			    (settings->call && !strstr(row->call, settings->call)))
				continue;
			for (const int *error = row->errors;
			     *error && (!settings->errors || error < row->errors + settings->errors); error++)
				for (unsigned long use = 1; use; use = next_use(settings, use, usage->count))
					if (count < CELLS_MAX)
						cells[count++] = (struct cell){ role, row, *error, use };
		}
	}
	return count;
}

static size_t find_cells(const struct settings *settings, struct cell *cells, unsigned *failed)
{
	size_t count = 0;

	for (const struct role *role = roles; role->name; role++) {
		struct ending tested, peer;
		static struct report report;
		char code[32], other[32];

		if (settings->role && strcmp(role->name, settings->role) != 0)
			continue;
		run_pair(settings, role, 0, "", &tested, &peer);
		read_report(settings, 0, &report);
		code_text(&tested, code);
		code_text(&peer, other);
		if (strcmp(code, "0") != 0 || (role->peer && strcmp(other, "0") != 0) || report.left[0] ||
		    !report.calls) {
			printf("FAIL %s without a fault: ended with %s, peer %s, left %s\n%s%s", role->name, code,
			       other, report.left[0] ? report.left : "nothing", tested.words, peer.words);
			++*failed;
			continue;
		}
		count = add_cells(settings, role, &report, cells, count);
	}
	return count;
}

static void work(const struct settings *settings, const struct cell *cells, size_t count, unsigned place)
{
	char path[128];
	FILE *file;

	path_of(settings, place, "result", path);
	file = fopen(path, "we");
	if (!file)
		give_up(path);
	for (size_t i = place; i < count; i += settings->at_once) {
		run_cell(settings, &cells[i], place, file);
		fflush(file);
	}
	fclose(file);
}

/* Adds up what the workers wrote. */
static void collect(const struct settings *settings, unsigned *passed, unsigned *past, unsigned *failed)
{
	FILE *all = settings->output ? fopen(settings->output, "we") : NULL;

	for (unsigned place = 0; place < settings->at_once; place++) {
		char path[128], line[2 * TEXT_MAX];
		FILE *file;

		path_of(settings, place, "result", path);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			*passed += !strncmp(line, "ok", 2);
			*past += !strncmp(line, "past", 4);
			*failed += !strncmp(line, "FAIL", 4);
			if (all)
				fputs(line, all);
		}
		if (file)
			fclose(file);
	}
	if (all)
		fclose(all);
}

/* Ours are files alone. */
static void remove_folder(const char *folder)
{
	struct dirent *entry;
	DIR *directory = opendir(folder);

	while (directory && (entry = readdir(directory)))
		if (entry->d_type != DT_DIR)
			unlinkat(dirfd(directory), entry->d_name, 0);
	if (directory)
		closedir(directory);
	if (rmdir(folder))
		perror(folder);
}

static unsigned number_of(const char *text)
{
	return (unsigned)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
	struct settings settings = { .at_once = 4, .slower = 1, .under = "", .folder = "/tmp/faults.XXXXXX" };
	static struct cell cells[CELLS_MAX];
	unsigned passed = 0, past = 0, failed = 0;
	long begin = now();
	size_t count;
	int option;

	while ((option = getopt(argc, argv, "j:n:e:o:r:c:u:s:")) != -1) {
		switch (option) {
		case 'j':
			settings.at_once = number_of(optarg);
			break;
		case 'n':
			settings.uses = number_of(optarg);
			break;
		case 'e':
			settings.errors = number_of(optarg);
			break;
		case 'o':
			settings.output = optarg;
			break;
		case 'r':
			settings.role = optarg;
			break;
		case 'c':
			settings.call = optarg;
			break;
		case 'u':
			settings.under = optarg;
			break;
		case 's':
			settings.slower = number_of(optarg);
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2 || !settings.at_once || settings.at_once > 100) {
		fprintf(stderr, "usage: faults [OPTION...] PROGRAM INJECT.so\n");
		return 2;
	}
	settings.program = argv[optind];
	settings.inject = argv[optind + 1];
	if (!mkdtemp(settings.folder))
		give_up(settings.folder);
	count = find_cells(&settings, cells, &failed);
	fflush(stdout);
	for (unsigned place = 0; place < settings.at_once; place++) {
		if (fork())
			continue;
		work(&settings, cells, count, place);
		_exit(0);
	}
	while (wait(NULL) > 0)
		continue;
	collect(&settings, &passed, &past, &failed);
	remove_folder(settings.folder);
	if (passed + past + failed < count)
		failed += (unsigned)count - passed - past;
	printf("%zu cells in %ld s: %u as expected, %u were over before, %u not\n", count, (now() - begin) / 1000,
	       passed, past, failed);
	printf("%u passed, %u failed\n", passed + past, failed);
	return failed || !passed;
}
