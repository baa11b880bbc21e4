/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line as a table with one row per option. The parser, range checks, --help, the option section of the man
 * page and the completions use the rows.
 */
#ifndef CORE_OPTIONS_H
#define CORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/log.h"
#include "core/outcome.h"

enum option_type {
	OPTION_FLAG = 1, /* bool, no argument */
	OPTION_INTEGER,	 /* int64_t, decimal or 0x... */
	OPTION_SIZE,	 /* int64_t bytes, with an optional suffix K, M or G (powers of 1,024) */
	OPTION_DURATION, /* int64_t nanoseconds: "5" and "5s" are seconds; also ns, us, ms, m, h; fractions too */
	OPTION_WORD,	 /* int64_t, one of the row's words in either case, or the same value as a number */
	OPTION_TEXT,	 /* const char *, never empty */
	OPTION_LIST,	 /* struct option_list: may be repeated */
	OPTION_ALIAS,	 /* another long name of a row of the same table */
};

/* Whether an option also takes the operands, the arguments without an option. */
enum option_operand {
	OPERAND = 1,	      /* takes one as its value, which excludes the option itself; a list takes any number */
	OPERAND_UNLESS_GIVEN, /* as OPERAND; but if the option is given, operands are ignored with a hint */
};

struct option_word {
	const char *word;
	int64_t value;
};

enum {
	OPTION_LIST_MAX = 1024
};

/* The values as given, none of them empty. */
struct option_list {
	const char *texts[OPTION_LIST_MAX];
	size_t count;
};

struct option {
	const char *name;     /* the long name; NULL ends the table */
	const char *argument; /* the name of its value in the help: "PORT" */
#if WITH_HELP
	const char *help;	  /* one sentence without a full stop; options_help() adds range and default */
	const char *initial_text; /* replaces the default in the help ("none"), or NULL */
#endif
	union {
		const struct option_word *words; /* OPTION_WORD: ends with a NULL word */
		const struct option *rest;	 /* row without a name: the table continues there, or NULL */
		const char *same_as;		 /* OPTION_ALIAS: the row's name */
		const char *replaces;		 /* OPTION_FLAG: clears this other flag, with a hint; or NULL */
	};
	int64_t minimum; /* of a number; nanoseconds for a duration */
	int64_t maximum;
	int64_t initial; /* the default of a number or word; that of a text is NULL, of a list empty */
	uint16_t offset; /* of the value in the command's options struct */
	uint8_t type;	 /* enum option_type */
	char letter;	 /* the short option, or 0 */
	uint8_t operand; /* enum option_operand, in at most one text or list of a table; or 0 */
};

/* The last fields of a row: its help and, optionally, the text of its default. */
#if WITH_HELP
#define OPTION_HELP(...)		   OPTION_HELP_OF(__VA_ARGS__, NULL, )
#define OPTION_HELP_OF(text, initial, ...) .help = text, .initial_text = initial
#else
#define OPTION_HELP(...)
#endif

/* A row: kind, letter, long name, options struct and member, then the other fields by name. */
#define OPTION_ROW(kind, short_letter, long_name, struct_type, member, ...)                                            \
	{ .letter = short_letter,                                                                                      \
	  .name = long_name,                                                                                           \
	  .type = kind,                                                                                                \
	  .offset = offsetof(struct_type, member),                                                                     \
	  __VA_ARGS__ }

/* A row with another name of an option. */
#define OPTION_ALIAS_ROW(long_name, other, ...)                                                                        \
	{ .name = long_name, .type = OPTION_ALIAS, .same_as = other, __VA_ARGS__ }

/* The end of a table: nothing, or another table whose offsets are into the same struct. */
#define OPTION_END	   { .name = NULL }
#define OPTION_REST(table) { .name = NULL, .rest = table }

/* A relation between two options of one table, by long name. */
enum option_relation {
	OPTION_EXCLUDES = 1, /* they are mutually exclusive */
	OPTION_NEEDS,	     /* the first requires the second */
	OPTION_ONE_OF,	     /* at least one of the two is required */
	OPTION_MORE_RULES,   /* the rules continue in another table */
};

struct option_rule {
	enum option_relation relation; /* 0 ends the table */
	const char *first;
	const void *second; /* a long name; OPTION_MORE_RULES: the other table of rules */
};

/* Iterate over the rows of a table and of those that continue it. Return NULL at the end. */
const struct option *option_first(const struct option *table);
const struct option *option_next(const struct option *row);

enum {
	OPTION_ROWS_MAX = 64
};

/*
 * Sets every option to its default, then parses the arguments (argv[0] is skipped): "-C5", "-C 5", "-vV", "--count=5",
 * "--count 5", and "--" before operands. Operands are assigned after all options. The later of two values of an option
 * counts, unless it is a list.
 * Returns OUTCOME_OK, or OUTCOME_USAGE after it has reported the error. *given gets bit N for every row N that was on
 * the command line.
 * "--help", "-h" and "--version" stop the parser with OUTCOME_OK and the row's flag set; later arguments are not
 * checked.
 */
enum outcome options_parse(const struct option *table, const struct option_rule *rules, const struct log *log, int argc,
			   char *const *argv, void *options, uint64_t *given);

/* True if the table has an option of that long name. */
bool options_has(const struct option *table, const char *name);

/* True if the option of that long name is in given. The name must be in the table. */
bool options_given(const struct option *table, uint64_t given, const char *name);

/*
 * Prints the option section of the help in two columns: "  -C, --count N    ...". docs/options.awk parses this text to
 * make the man pages' option sections and the completions, so its form must not change.
 */
void options_help(const struct option *table, FILE *stream);

#endif
