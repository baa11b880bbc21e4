/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the targets without a fuzzer:
 *
 *   replay TARGET FILE...                       each file is an input
 *   replay TARGET --random COUNT SEED FILE...   seeded random inputs, and mutations of the files; a failed one is left
 *                                               in ./fuzz-failed
 *   replay --list                               the names of the targets
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fuzz/target.h"

enum {
	INPUT_MAX = 4096,
	FILE_MAX = 16 * INPUT_MAX,
};

static uint64_t roll(uint64_t *die)
{
	*die ^= *die >> 12;
	*die ^= *die << 25;
	*die ^= *die >> 27;
	return (*die * UINT64_C(0x2545f4914f6cdd1d)) >> 16;
}

/* Any bytes are records; small numbers are meaningful more often. */
static size_t make(uint64_t *die, uint8_t bytes[INPUT_MAX])
{
	size_t length = 6 + roll(die) % (roll(die) % 4 ? 300 : 1500);

	for (size_t index = 0; index < length; index++)
		bytes[index] = (uint8_t)(roll(die) % 3 ? roll(die) % 40 : roll(die));
	return length;
}

static int save(const char *path, const uint8_t *bytes, size_t length)
{
	FILE *file = fopen(path, "we");

	if (!file || fwrite(bytes, 1, length, file) != length || fclose(file)) {
		perror(path);
		return 1;
	}
	return 0;
}

/* Of exactly that size, so that a read beyond it is detected. NULL: the cause was printed. */
static uint8_t *load(const char *path, size_t *length)
{
	uint8_t *bytes = malloc(FILE_MAX);
	FILE *file = fopen(path, "re");

	if (!file || !bytes) {
		perror(path);
		free(bytes);
		return NULL;
	}
	*length = fread(bytes, 1, FILE_MAX, file);
	fclose(file);
	return realloc(bytes, *length ? *length : 1);
}

static int replay(const struct target *target, const char *path)
{
	size_t length;
	uint8_t *bytes = load(path, &length);

	if (!bytes)
		return 1;
	target->function(bytes, length);
	free(bytes);
	return 0;
}

/* A file with some bytes changed, added or dropped. */
static size_t change(uint64_t *die, const char *path, uint8_t bytes[INPUT_MAX])
{
	unsigned edits = (unsigned)(1 + roll(die) % 6);
	size_t length;
	uint8_t *file = load(path, &length);

	if (!file)
		return 0;
	length = length < INPUT_MAX ? length : INPUT_MAX;
	memcpy(bytes, file, length);
	free(file);
	while (edits-- && length) {
		size_t at = roll(die) % length;

		switch (roll(die) % 4) {
		case 0:
			bytes[at] = (uint8_t)roll(die);
			break;
		case 1:
			bytes[at] ^= (uint8_t)(1u << roll(die) % 8);
			break;
		case 2:
			memmove(bytes + at, bytes + at + 1, length - at - 1);
			length--;
			break;
		default:
			if (length == INPUT_MAX)
				break;
			memmove(bytes + at + 1, bytes + at, length - at);
			bytes[at] = (uint8_t)roll(die);
			length++;
		}
	}
	return length;
}

static int run_random(const struct target *target, unsigned long count, uint64_t seed, int files, char **paths)
{
	uint64_t die = seed * 2 + 1;

	for (unsigned long number = 0; number < count; number++) {
		uint8_t input[INPUT_MAX], *bytes;
		size_t length = files && roll(&die) % 4 ? change(&die, paths[roll(&die) % (unsigned)files], input)
							: make(&die, input);

		if (save("fuzz-failed", input, length))
			return 1;
		bytes = load("fuzz-failed", &length);
		if (!bytes)
			return 1;
		target->function(bytes, length);
		free(bytes);
	}
	remove("fuzz-failed");
	printf("ok   %s: %lu random inputs, seed %llu\n", target->name, count, (unsigned long long)seed);
	return 0;
}

static int list(void)
{
	for (const struct target *target = targets; target->name; target++)
		puts(target->name);
	return 0;
}

int main(int count, char **words)
{
	const struct target *target = count > 1 ? target_find(words[1]) : NULL;

	if (count == 2 && !strcmp(words[1], "--list"))
		return list();
	if (!target) {
		fprintf(stderr, "no such target; --list has them\n");
		return 2;
	}
	if (count >= 5 && !strcmp(words[2], "--random"))
		return run_random(target, strtoul(words[3], NULL, 0), strtoull(words[4], NULL, 0), count - 5,
				  words + 5);
	for (int index = 2; index < count; index++)
		if (replay(target, words[index]))
			return 1;
	printf("ok   %s: %d inputs\n", target->name, count - 2);
	return 0;
}
