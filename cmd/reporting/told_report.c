/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors for programs: a message taken apart into what it is made of. */
#include <ctype.h>
#include <string.h>

#include "cmd/reporting/told.h"

enum {
	TEXT_SIZE = 1024 /* no line of the log is longer */
};

/* A start of NULL is no value. */
static void report_part(struct report *report, const char *name, const char *start, size_t length)
{
	char part[TEXT_SIZE];

	if (!start) {
		report_text(report, name, NULL);
		return;
	}
	if (length >= sizeof(part))
		length = sizeof(part) - 1;
	memcpy(part, start, length);
	part[length] = 0;
	report_text(report, name, part);
}

/* The code is in brackets at the very end, and ends with its number; brackets inside it belong to it. */
static const char *find_code(const char *text)
{
	size_t length = strlen(text);
	int depth = 0;

	if (length < 2 || text[length - 1] != ')' || !isdigit((unsigned char)text[length - 2]))
		return NULL;
	for (const char *place = text + length - 1; place > text; place--) {
		depth += (*place == ')') - (*place == '(');
		if (!depth)
			return place[-1] == ' ' ? place : NULL;
	}
	return NULL;
}

/* What was being done ("connecting", "resolving the address") or the state that was reached, not just any words. */
static bool is_phase(const char *text, size_t length)
{
	size_t word = strspn(text, "abcdefghijklmnopqrstuvwxyz");

	/* A file may be called /run/rping. */
	if (word > 3 && !memcmp(text + word - 3, "ing", 3) && (word == length || text[word] == ' '))
		return true;
	return (length == 11 && !memcmp(text, "established", 11)) || (length == 6 && !memcmp(text, "joined", 6));
}

/* "ping 35: " says which one, not what was being done. */
static const char *skip_ping(const char *text)
{
	static const char ping[] = "ping ";
	const char *number = text + sizeof(ping) - 1, *end;

	if (strncmp(text, ping, sizeof(ping) - 1) != 0)
		return text;
	end = number + strspn(number, "0123456789");
	return end > number && !strncmp(end, ": ", 2) ? end + 2 : text;
}

void told_report_error(struct report *report, const struct told_error *error)
{
	const char *start = skip_ping(error->text);
	const char *colon = strstr(start, ": ");
	const char *code = find_code(start);
	bool has_phase = colon && (!code || colon < code) && is_phase(start, (size_t)(colon - start));
	const char *cause = has_phase ? colon + 2 : start;

	report_text(report, "object", error->object);
	report_part(report, "phase", has_phase ? start : NULL, has_phase ? (size_t)(colon - start) : 0);
	report_part(report, "cause", cause, code ? (size_t)(code - 1 - cause) : strlen(cause));
	report_part(report, "code", code ? code + 1 : NULL, code ? strlen(code) - 2 : 0);
	report_text(report, "text", error->text);
	report_text(report, "hint", error->hint);
	report_text(report, "part", *error->part ? error->part : NULL);
}

void told_report(struct report *report, const struct told *told)
{
	report_count(report, "error_count", told->count);
	report_list(report, "errors");
	for (const struct told_error *error = told->first; error; error = error->next) {
		report_object(report, NULL);
		told_report_error(report, error);
		report_end(report);
	}
	report_end(report);
}
