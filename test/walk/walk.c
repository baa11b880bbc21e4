/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *   walk DEPTH [SCENARIO...]        all runs with up to DEPTH deviations
 *   walk --again SCENARIO:CHOICES   one run; CHOICES as a failure prints them: STEP.CHOICE,STEP.CHOICE...
 */
#include "test/walk/walk.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/network/network.h"

struct walk {
	const struct scenario *scenario;
	struct choices choices;
	unsigned long runs, steps;
	unsigned longest;
};

/* The current run, for the signal handler. */
static struct walk *current;

unsigned choose(struct choices *choices, unsigned count)
{
	unsigned step = choices->step++;

	if (step == WALK_STEPS_MAX)
		violation("the run exceeds %d steps", WALK_STEPS_MAX);
	choices->alternatives[step] = (uint8_t)count;
	for (unsigned index = 0; index < choices->deviation_count; index++)
		if (choices->deviations[index].step == step)
			return choices->deviations[index].choice < count ? choices->deviations[index].choice : 0;
	return 0;
}

static void print_choices(FILE *stream)
{
	const struct choices *choices = &current->choices;

	fprintf(stream, "%s:", scenario_name(current->scenario));
	for (unsigned index = 0; index < choices->deviation_count; index++)
		fprintf(stream, "%s%u.%u", index ? "," : "", choices->deviations[index].step,
			choices->deviations[index].choice);
}

/* Prints the choices of the failed run. */
static void on_abort(int number)
{
	fprintf(stderr, "repeat with: --again ");
	print_choices(stderr);
	fprintf(stderr, "\n");
	signal(number, SIG_DFL);
	raise(number);
}

/* Allocated bytes. 0 with AddressSanitizer; LeakSanitizer checks at the end. */
static size_t memory_held(void)
{
	struct mallinfo2 held = mallinfo2();

	return held.uordblks + held.hblkhd;
}

static void run(struct walk *walk)
{
	size_t before = memory_held();

	walk->choices.step = 0;
	scenario_run(walk->scenario, &walk->choices);
	if (memory_held() != before)
		violation("%zu bytes of memory are left", memory_held() - before);
	walk->runs++;
	walk->steps += walk->choices.step;
	if (walk->choices.step > walk->longest)
		walk->longest = walk->choices.step;
}

/* Makes the run with the given deviations, then all runs with one more deviation after the last one, recursively. */
static void explore(struct walk *walk, unsigned from, unsigned depth)
{
	struct choices *choices = &walk->choices;
	uint8_t *alternatives;
	unsigned count;

	run(walk);
	if (!depth)
		return;
	count = choices->step;
	alternatives = malloc(count);
	if (!alternatives)
		abort();
	memcpy(alternatives, choices->alternatives, count);
	for (unsigned step = from; step < count; step++)
		for (unsigned choice = 1; choice < alternatives[step]; choice++) {
			choices->deviations[choices->deviation_count].step = (uint16_t)step;
			choices->deviations[choices->deviation_count++].choice = (uint8_t)choice;
			explore(walk, step + 1, depth - 1);
			choices->deviation_count--;
		}
	free(alternatives);
}

static int walk_all(unsigned depth, const struct scenario *scenario)
{
	struct walk walk = { .scenario = scenario };
	struct timespec began, ended;

	current = &walk;
	clock_gettime(CLOCK_MONOTONIC, &began);
	explore(&walk, 0, depth);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	printf("ok   %s: depth %u: %lu interleavings, %lu steps, at most %u in one, %.1f s\n", scenario_name(scenario),
	       depth, walk.runs, walk.steps, walk.longest,
	       (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9);
	fflush(stdout);
	return 0;
}

static int repeat_run(char *text)
{
	struct walk walk = { 0 };
	char *rest = strchr(text, ':'), *word;
	unsigned step, choice;

	if (rest)
		*rest++ = 0;
	walk.scenario = scenario_find(text);
	if (!walk.scenario) {
		fprintf(stderr, "unknown scenario %s\n", text);
		return 2;
	}
	while ((word = strsep(&rest, ",")) && walk.choices.deviation_count < WALK_DEPTH_MAX)
		if (sscanf(word, "%u.%u", &step, &choice) == 2) {
			walk.choices.deviations[walk.choices.deviation_count].step = (uint16_t)step;
			walk.choices.deviations[walk.choices.deviation_count++].choice = (uint8_t)choice;
		}
	current = &walk;
	run(&walk);
	printf("ok   ");
	print_choices(stdout);
	printf(": %u steps\n", walk.choices.step);
	return 0;
}

int main(int count, char **words)
{
	/* A cache of freed memory counts as allocated: the C library reads this when it starts. */
	if (!getenv("GLIBC_TUNABLES") && !setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1))
		execv("/proc/self/exe", words);
	signal(SIGABRT, on_abort);
	if (count == 3 && !strcmp(words[1], "--again"))
		return repeat_run(words[2]);
	if (count < 2 || atoi(words[1]) < 0 || atoi(words[1]) > WALK_DEPTH_MAX) {
		fprintf(stderr, "usage: walk DEPTH [SCENARIO...], walk --again SCENARIO:CHOICES\n");
		return 2;
	}
	for (const struct scenario *scenario = scenario_next(NULL); scenario; scenario = scenario_next(scenario)) {
		bool wanted = count == 2;

		for (int index = 2; index < count; index++)
			wanted |= !strcmp(words[index], scenario_name(scenario));
		if (wanted && walk_all((unsigned)atoi(words[1]), scenario))
			return 1;
	}
	return 0;
}
