/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/reporting/told.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEPT_MOST = 64
};

void told_error(struct told *told, const char *name, const char *object, const char *text)
{
	size_t object_size = object ? strlen(object) + 1 : 0;
	size_t text_size = strlen(text) + 1;
	const char *part = strstr(name, ": ");
	struct told_error *error;

	told->count++;
	if (told->kept == KEPT_MOST)
		return;
	error = calloc(1, sizeof(*error) + object_size + text_size);
	if (!error)
		return;
	if (part)
		snprintf(error->part, sizeof(error->part), "%.*s", (int)strcspn(part + 2, " "), part + 2);
	if (object)
		error->object = memcpy(error->memory, object, object_size);
	error->text = memcpy(error->memory + object_size, text, text_size);
	if (told->last)
		told->last->next = error;
	else
		told->first = error;
	told->last = error;
	told->kept++;
}

void told_hint(struct told *told, const char *text)
{
	if (told->last && !told->last->hint && told->kept == told->count)
		told->last->hint = strdup(text);
}

void told_free(struct told *told)
{
	while (told->first) {
		struct told_error *error = told->first;

		told->first = error->next;
		free(error->hint);
		free(error);
	}
	*told = (struct told){ 0 };
}
