/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/log.h"

#include <stdio.h>
#include <string.h>

/*
 * Replaces characters that a terminal may obey: control characters, including the 8-bit ones, U+0080 to U+009F. Other
 * bytes from 0x80 on may be UTF-8.
 */
static void replace_controls(char *text)
{
	unsigned char before = ' ';

	for (unsigned char *byte = (unsigned char *)text; *byte; before = *byte++)
		if (*byte < ' ' || *byte == 0x7f ||
		    (WITH_DIAGNOSTICS && *byte >> 5 == 4 && (before < 0x80 || before == 0xc2)))
			*byte = '?';
}

char *log_text_list(char *text, size_t size, const char *format, va_list list)
{
	static const char cut[] = "...";

	if (vsnprintf(text, size, format, list) >= (int)size)
		memcpy(text + size - sizeof(cut), cut, sizeof(cut));
	replace_controls(text);
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

void log_add(char *text, size_t size, const char *separator, const char *format, ...)
{
	size_t length = strlen(text);
	va_list list;

	if (length)
		length += strlen(log_text(text + length, size - length, "%s", separator));
	va_start(list, format);
	log_text_list(text + length, size - length, format, list);
	va_end(list);
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
