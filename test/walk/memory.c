/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the allocated blocks of the code under test; walk.wrap redirects its calls. */
#include "test/walk/memory.h"

#include <stdlib.h>
#include <string.h>

static long blocks;

long memory_held(void)
{
	return blocks;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	void *memory = __real_malloc(size);

	blocks += memory != NULL;
	return memory;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	void *memory = __real_calloc(count, size);

	blocks += memory != NULL;
	return memory;
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size)
{
	void *larger = __real_realloc(memory, size);

	blocks += !memory && larger;
	return larger;
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
	char *copy = __real_strdup(text);

	blocks += copy != NULL;
	return copy;
}

void __real_free(void *memory);
void __wrap_free(void *memory)
{
	blocks -= memory != NULL;
	__real_free(memory);
}
