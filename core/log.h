/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors as values, and the lines on stderr. The function that first knows the cause of a failure reports it here,
 * once; its callers only pass the outcome on.
 */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ERROR_OBJECT_SIZE = 256,
	ERROR_PHASE_SIZE = 128,
	ERROR_CAUSE_SIZE = 640,
	ERROR_CODE_SIZE = 64,
	ERROR_TEXT_SIZE = ERROR_PHASE_SIZE + ERROR_CAUSE_SIZE + ERROR_CODE_SIZE + 8,
};

/* The class of an error, for decisions. The cause is for people: no code parses it. */
enum error_kind {
	ERROR_OTHER,
	ERROR_NO_LISTENER, /* the peer's host replies that nobody listens there */
	ERROR_NO_REPLY,	   /* the peer does not reply */
};

/* A failure. Control characters in it are replaced; a text that does not fit ends in "...". */
struct error {
	char object[ERROR_OBJECT_SIZE]; /* the peer, device, option or file; "": the run itself */
	char phase[ERROR_PHASE_SIZE];	/* what was being done, "connecting"; "" where the cause says it */
	char cause[ERROR_CAUSE_SIZE];	/* in words */
	char code[ERROR_CODE_SIZE];	/* the raw code, "111" or "status 12"; "" for none */
	enum error_kind kind;
};

/* What a caller knows of a failure besides its cause. All may be left out. */
struct failure {
	const char *object;
	const char *phase;
	const char *code_name; /* "status"; NULL for an errno value */
	int code;	       /* 0 for none, but with a name */
	enum error_kind kind;
};

struct log;

/* Takes errors and hints in place of stderr. Either function may be NULL: then these are dropped. */
struct log_sink {
	void (*error)(const struct log *log, const struct error *error);
	void (*hint)(const struct log *log, const char *text);
};

/* Drops both, and debug lines: for something that is only tried. */
extern const struct log_sink log_discard;

struct log {
	const char *name;	     /* the program as the user typed it: "rping", "rdmatest rping" */
	const char *part;	     /* of a selftest: its command; else NULL */
	bool debug;		     /* print log_debug() lines */
	const struct log_sink *sink; /* NULL: stderr */
	void *context;		     /* the sink's own */
};

/* How many lines were printed of a kind that any peer can cause. Zeroed at first. */
struct log_limit {
	int64_t since;
	unsigned printed;
};

/* True ten times in ten seconds. */
bool log_allows(struct log_limit *limit);

/* Reports an error to the log's sink. All functions keep errno. */
void log_report(const struct log *log, const struct error *error);

/* Reports an error of which only the cause is known. object may be NULL; format gives the cause, without a newline. */
void log_error(const struct log *log, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Reports an error whose cause is an errno value. format gives the phase: "reading", "opening UDP port 4791". */
void log_errno(const struct log *log, const char *object, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Reports an error of a phase, with a code or 0 for none. format gives the cause. */
void log_cause(const struct log *log, const char *object, const char *phase, int code, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Reports an error with all that is known. format gives the cause. */
void log_failure(const struct log *log, const struct failure *failure, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Reports one line of help for the error before it. */
void log_hint(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a trace line for --debug; nothing without it. */
void log_debug(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Formats a text that users or peers choose parts of: control characters are replaced, and a text that does not fit
 * ends in "...". Returns text.
 */
char *log_text(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
char *log_text_list(char *text, size_t size, const char *format, va_list list) __attribute__((format(printf, 3, 0)));

/* "phase: cause (code)", as it is printed after the object. Returns text. */
const char *error_text(const struct error *error, char text[ERROR_TEXT_SIZE]);

/* For sinks: what the log does without one. "<name>: <object>: <phase>: <cause> (<code>)" with one write. */
void log_print_error(const struct log *log, const struct error *error);
void log_print_hint(const struct log *log, const char *text);

#endif
