/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the blocks of memory that the code under test holds: walk.wrap leads its calls here. */
#include "test/walk/memory.h"

#include <stdlib.h>
#include <string.h>

static long held;

long memory_held(void)
{
	return held;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	void *memory = __real_malloc(size);

	held += memory != NULL;
	return memory;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	void *memory = __real_calloc(count, size);

	held += memory != NULL;
	return memory;
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size)
{
	void *larger = __real_realloc(memory, size);

	held += !memory && larger;
	return larger;
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
	char *copy = __real_strdup(text);

	held += copy != NULL;
	return copy;
}

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
	held -= memory != NULL;
	__real_free(memory);
}
