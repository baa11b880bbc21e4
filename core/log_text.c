/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/log.h"

#include <stdio.h>

char *log_text_list(char *text, size_t size, const char *format, va_list list)
{
	static const char cut[] = "...";

	if (vsnprintf(text, size, format, list) >= (int)size)
		memcpy(text + size - sizeof(cut), cut, sizeof(cut));
	for (char *byte = text; *byte; byte++)
		if ((unsigned char)*byte < ' ' || *byte == 0x7f)
			*byte = '?';
	return text;
}

char *log_text(char *text, size_t size, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	log_text_list(text, size, format, list);
	va_end(list);
	return text;
}

void log_fill(char *text, size_t size, const char *format, const char *name, const char *number)
{
	char *end = text + size - 1;

	for (; *format && text < end; format++) {
		const char *value = *format == '@' ? name : *format == '#' ? number : NULL;

		if (value)
			text += strlen(log_text(text, (size_t)(end - text) + 1, "%s", value));
		else
			*text++ = *format;
	}
	*text = '\0';
}
