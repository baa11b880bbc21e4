/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors as values, and the lines on stderr. The function that first knows the cause of a failure fills a struct error;
 * its callers pass the outcome on. The caller that decides it matters reports it exactly once.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	ERROR_OBJECT_SIZE = 256,
	ERROR_PHASE_SIZE = 128,
	ERROR_CAUSE_SIZE = 640,
	ERROR_CODE_SIZE = 64,
	ERROR_HINT_SIZE = 512,
	ERROR_TEXT_SIZE = ERROR_PHASE_SIZE + ERROR_CAUSE_SIZE + ERROR_CODE_SIZE + 8,
};

/* An error's class, for decisions. The cause is for people: no code parses it. */
enum error_kind {
	ERROR_OTHER,
	ERROR_NO_LISTENER, /* the peer's host replies that there is no listener */
	ERROR_NO_REPLY,	   /* the peer does not reply */
	ERROR_BLOCKED,	   /* a firewall or router reports that it blocks the packets */
	ERROR_BUSY,	   /* the peer serves another client */
	ERROR_STALE,	   /* the peer still has an older connection of the queue pair */
	ERROR_HELD,	   /* another process of this program has the local address */
};

/* A failure, or none if the cause is "". Control characters are replaced; a text that does not fit ends in "...". */
struct error {
	enum error_kind kind;
	const char *part;		/* as in struct log; set when reported */
	char object[ERROR_OBJECT_SIZE]; /* the peer, device, option or file; "": the run */
	char phase[ERROR_PHASE_SIZE];	/* the operation, "connecting"; "" if the cause says it */
	char cause[ERROR_CAUSE_SIZE];	/* in words */
	char code[ERROR_CODE_SIZE];	/* the raw code, "111" or "status 12"; "" for none */
	char hint[ERROR_HINT_SIZE];	/* one line of help; "" for none */
};

/* Facts about a failure besides its cause. All are optional. */
struct failure {
	const char *object;
	const char *phase;
	const char *code_name; /* "status"; NULL for an errno value */
	int code;	       /* 0: none, unless code_name is set */
	enum error_kind kind;
};

/* The errors that a run has reported. Zeroed at first. */
struct errors {
	struct error first, last;
	uint64_t count;
};

struct log {
	const char *name;      /* the program as the user typed it: "rping", "rdmatest rping" */
	const char *part;      /* in a selftest the command; else NULL */
	bool debug;	       /* print log_debug() lines */
	bool silent;	       /* only keep the errors, during an attempt */
	struct errors *errors; /* NULL: errors are only printed */
	/* Called for each error that is kept. May be NULL. */
	void (*reported)(void *context, const struct error *error);
	void *context;
};

/* Counts printed lines of a kind that any peer can cause. Zeroed at first. */
struct log_limit {
	int64_t since;
	unsigned printed;
};

/* True ten times in ten seconds. */
bool log_allows(struct log_limit *limit);

/* Fills *error with a cause only, from format, without a newline. object may be NULL. */
void error_set(struct error *error, const char *object, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The cause is an errno value. format gives the phase: "reading", "opening UDP port 4791". */
void error_errno(struct error *error, const char *object, int number, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* An error with all its details. format gives the cause. */
void error_failure(struct error *error, const struct failure *failure, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void error_fill(struct error *error, const struct failure *failure, const char *format, va_list list)
	__attribute__((format(printf, 3, 0)));
/* Adds the hint to an error that has none. */
void error_hint(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void error_clear(struct error *error)
{
	*error->cause = '\0';
}
static inline bool error_is_set(const struct error *error)
{
	return *error->cause;
}

/*
 * Keeps a copy and prints "<name>: <object>: <phase>: <cause> (<code>)", then the hint, each with one write. An error
 * equal to the previous one is omitted. A no-op if no error is set. All functions keep errno.
 */
void log_report(const struct log *log, const struct error *error);
/* The same without printing. Returns false if the error is omitted. */
bool log_keep(const struct log *log, const struct error *error);

/* Fill an error, and report it at once. */
void log_error(const struct log *log, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void log_errno(const struct log *log, const char *object, int number, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void log_cause(const struct log *log, const char *object, const char *phase, int code, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Prints one line of help. It becomes the previous error's hint, unless that has one. */
void log_hint(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a trace line for --debug; nothing without it. */
void log_debug(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Checks and traces a transition of an object, which keeps the state and its timer. texts describe its states, such as
 * "connecting"; next has bit 1 << state for each allowed next state. Returns false, and reports a defect of the
 * program, if the transition is not allowed. format gives the object's name, which is formatted only if it is printed.
 */
bool log_transition(const char *const *texts, const uint16_t *next, unsigned from, unsigned to, const struct log *log,
		    const char *format, ...) __attribute__((format(printf, 6, 7)));

/*
 * Formats a text with parts chosen by users or peers: control characters are replaced, and a text that does not fit
 * ends in "...". Returns text. Each text from outside is printed through it: errors and hints, output_line()'s lines,
 * verdicts, a report's texts, doctor's findings. JSON and Prometheus have their own escapes.
 */
char *log_text(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Adds an item to a list in text, behind separator unless it is the first one. */
void log_add(char *text, size_t size, const char *separator, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* As log_text(); in format '@' stands for name and '#' for number. */
void log_fill(char *text, size_t size, const char *format, const char *name, const char *number);
char *log_text_list(char *text, size_t size, const char *format, va_list list) __attribute__((format(printf, 3, 0)));

/* "phase: cause (code)", as it is printed after the object. Returns text. */
const char *error_text(const struct error *error, char text[ERROR_TEXT_SIZE]);

/*
 * Without WITH_DIAGNOSTICS there are no hints or traces, and no errors are kept. The arguments are checked, not
 * evaluated.
 */
#if !WITH_DIAGNOSTICS
void error_number(struct error *error, const char *object, int number);
void log_number(const struct log *log, const char *object, int number);
#define LOG_NOTHING(call) ((void)(0 && (call, 0)))
#define error_hint(...)	  LOG_NOTHING(error_hint(__VA_ARGS__))
#define log_hint(...)	  LOG_NOTHING(log_hint(__VA_ARGS__))
#define log_debug(...)	  LOG_NOTHING(log_debug(__VA_ARGS__))
#define error_errno(error, object, number, ...)                                                                        \
	(LOG_NOTHING(error_errno(error, object, number, __VA_ARGS__)), error_number(error, object, number))
#define log_errno(log, object, number, ...)                                                                            \
	(LOG_NOTHING(log_errno(log, object, number, __VA_ARGS__)), log_number(log, object, number))
#endif
