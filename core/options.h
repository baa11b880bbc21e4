/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line as a table: one row per option. Parser, range check, --help, the option section of the man page
 * and the completions all derive from the rows.
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
	OPTION_LIST,	 /* struct option_list: may be given again and again */
	OPTION_ALIAS,	 /* another long name of a row of the same table, which counts as given */
};

/* What a word that belongs to no option is. */
enum option_operand {
	OPERAND = 1,	      /* the value of this option, which may not be given too; of a list one more of them */
	OPERAND_UNLESS_GIVEN, /* the same; but if the option is given, ignored as the stock tools do, with a hint */
};

struct option_word {
	const char *word;
	int64_t value;
};

enum {
	OPTION_LIST_MOST = 1024
};

/* Texts in their order, none of them empty. */
struct option_list {
	const char *texts[OPTION_LIST_MOST];
	size_t count;
};

struct option {
	const char *name;     /* the long name; NULL ends the table */
	const char *argument; /* its name in the help: "PORT" */
#if WITH_HELP
	const char *help;	  /* one sentence without a full stop; the default is added from the row */
	const char *initial_text; /* replaces the default in the help where a number would mislead ("none") */
#endif
	union {
		const struct option_word *words; /* of OPTION_WORD; ends with a NULL word */
		const struct option *rest;	 /* of the row without a name: the table goes on there, or NULL */
		const char *same_as;		 /* of OPTION_ALIAS: the row's name */
		const char *replaces;		 /* of OPTION_FLAG: the flag that is off again, with a hint; or NULL */
	};
	int64_t minimum; /* of a number; nanoseconds for a duration */
	int64_t maximum;
	int64_t initial; /* the value without the option; texts start as NULL, lists empty */
	uint16_t offset; /* of the value in the command's options struct */
	uint8_t type;	 /* enum option_type */
	char letter;	 /* the classic letter, or 0 */
	uint8_t operand; /* enum option_operand, of one text or list */
};

/* In a row: its help and, where there is one, the text for its default. The last of its fields. */
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

/* A row that says what another one says. */
#define OPTION_ALIAS_ROW(long_name, other, ...)                                                                        \
	{ .name = long_name, .type = OPTION_ALIAS, .same_as = other, __VA_ARGS__ }

/* What a table ends with: nothing, or another table whose offsets are right in the same struct. */
#define OPTION_END	   { .name = NULL }
#define OPTION_REST(table) { .name = NULL, .rest = table }

/* A relation between two options of one table, by long name. */
enum option_relation {
	OPTION_EXCLUDES = 1, /* both may not be given */
	OPTION_NEEDS,	     /* the first makes sense only with the other */
	OPTION_ONE_OF,	     /* at least one of the two must be given */
	OPTION_MORE_RULES,   /* the table goes on elsewhere */
};

struct option_rule {
	enum option_relation relation; /* 0 ends the table */
	const char *first;
	const void *second; /* a long name too; of OPTION_MORE_RULES the other table of rules */
};

/* The rows of a table and of those that it goes on in: the first, and the one behind row; NULL if there is none. */
const struct option *option_first(const struct option *table);
const struct option *option_next(const struct option *row);

enum {
	OPTION_ROWS_MOST = 64
};

/*
 * Sets every option to its initial value, then reads the arguments (argv[0] is skipped): "-C5", "-C 5", "-vV",
 * "--count=5", "--count 5", and "--" before operands. Operands are taken if a row wants them, after all options, more
 * than one only by a list. An option given twice takes the later value, unless it is a list.
 * Returns OUTCOME_OK, or OUTCOME_USAGE after one line on stderr that names the option and what it takes.
 * *given gets bit N for every row N that was on the command line.
 * "--help", "-h" and "--version" stop the parse at once (OUTCOME_OK) with the row's flag set, whatever else is wrong
 * behind them.
 */
enum outcome options_parse(const struct option *table, const struct option_rule *rules, const struct log *log, int argc,
			   char *const *argv, void *options, uint64_t *given);

/* True if the table has an option of that long name. */
bool options_has(const struct option *table, const char *name);

/* True if the option of that long name is among given. The name must be in the table. */
bool options_given(const struct option *table, uint64_t given, const char *name);

/*
 * Prints the option section of the help: two columns, as "  -C, --count N    ...". The man pages' option sections and
 * the completions are made from this text (docs/options.awk), so that its form is an interface.
 */
void options_help(const struct option *table, FILE *stream);

#endif
