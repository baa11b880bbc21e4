/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a person reads on stderr. Whoever first knows the cause of a failure says it here, once; callers only hand the
 * outcome on.
 */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct log {
	const char *name; /* the program as the user typed it: "rping", "rdmatest rping" */
	bool debug;	  /* print log_debug() lines */
	bool quiet;	  /* print nothing: something is only tried */

	/*
	 * Who else wants to hear of errors and hints, before they are printed; may be NULL. object is NULL or the
	 * message's own, and log_hint_object of a hint; text is the rest of the line.
	 */
	void (*heard)(const struct log *log, const char *object, const char *text);
	void *listener; /* the function's own */

	/*
	 * Asked before all that; may be NULL. True keeps the line from everybody: who asks again and again for
	 * something that is not there yet tells in the end why it never came.
	 */
	bool (*hold)(void *holder, const char *object, const char *text);
	void *holder;
};

/* How much was told of what anybody can cause as often as it likes. Zeroed at first. */
struct log_limit {
	int64_t since;
	unsigned told;
};

/* True for ten lines in ten seconds. */
bool log_allows(struct log_limit *limit);

/* Asks the hold. Who takes its place, as the run of a command inside another one does, asks that one in turn. */
bool log_holds(const struct log *log, const char *object, const char *text);

/* Known by its address, not by its text: a host may be called "hint". */
extern const char log_hint_object[];

/*
 * Prints "<name>: <object>: <what failed>: <cause in words> (<raw code>)" as one line with one write, and keeps errno.
 * object may be NULL; format describes the rest and has no newline.
 */
void log_error(const struct log *log, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* As log_error(), and appends the words and the number of an errno value: ": Connection refused (111)". */
void log_errno(const struct log *log, const char *object, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* One line of help under the error printed last: "<name>: hint: ...". */
void log_hint(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A trace line for --debug; nothing without it. */
void log_debug(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
