/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line as a table with one row per option. The parser, range checks, --help, the option section of the man
 * page and the completions use the rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/log.h"
#include "core/outcome.h"
#include "core/output.h"

enum option_type {
	OPTION_TABLE = 0, /* not an option: the table continues in another one, or ends */
	OPTION_VALUES,	  /* not an option: the previous row's values */
	OPTION_FLAG,	  /* bool, no argument */
	OPTION_INTEGER,	  /* int64_t, decimal or 0x... */
	OPTION_SIZE,	  /* int64_t bytes, with an optional suffix K, M or G (powers of 1,024) */
	OPTION_SIZES,	  /* two sizes: "FROM-TO"; for a single one the second is 0 */
	OPTION_DURATION,  /* int64_t nanoseconds: "5" and "5s" are seconds; also ns, us, ms, m, h; fractions too */
	OPTION_WORD,	  /* int64_t, one of the row's words in either case, or its value as a number */
	OPTION_TEXT,	  /* const char *, never empty */
	OPTION_LIST,	  /* struct option_list: may be repeated */
	OPTION_ALIAS,	  /* another long name for a row of the same table */
};

/* HAS_WORDS (cmd/flags.mk): the program has OPTION_WORD or OPTION_ALIAS rows. Else such a row does not compile. */

/* Whether an option also takes the operands, the arguments without an option. */
enum option_operand {
	OPERAND = 1,	      /* takes one as its value, and excludes the option itself; a list takes any number */
	OPERAND_UNLESS_GIVEN, /* as OPERAND; but if the option is given, operands are ignored with a hint */
};

/* The help's sections, in their order. */
enum option_section {
	SECTION_GENERAL,
	SECTION_SERVER,
	SECTION_CLIENT,
	SECTION_PACE,
	SECTION_OUTPUT,
	SECTION_PATH,
	SECTION_LIMITS,
	SECTION_SERVICE,
};

enum {
	OPTION_LIST_MAX = WITH_DIAGNOSTICS ? 1024 : 1
};

/* The values as given, never empty. */
struct option_list {
	const char *texts[OPTION_LIST_MAX];
	size_t count;
};

struct option {
	union {
		const char *text;	   /* the fields below, each ending with a 0 */
		const uint16_t *values;	   /* OPTION_VALUES */
		const struct option *rest; /* OPTION_TABLE: the other table, or NULL */
	};
	uint16_t offset;	 /* the value's, in the command's options struct */
	uint8_t type;		 /* enum option_type */
	char letter;		 /* the short option; 0: none */
	uint8_t operand : 2;	 /* enum option_operand, in at most one text or list of a table; or 0 */
	uint8_t section : 3;	 /* enum option_section */
	bool brief : 1;		 /* also in the brief help */
	bool last_counts : 1;	 /* only the last given flag with it counts */
	bool stops : 1;		 /* a flag after which arguments are not checked */
	uint8_t tags;		 /* bits, for the needed_by and excluded_by of other rows */
	uint8_t needed_by : 5;	 /* the options with one of these tags need this one */
	uint8_t excluded_by : 3; /* options with one of these tags are not accepted beside this one */
	uint8_t exclusive;	 /* two options with a common bit are mutually exclusive */
};

/* A row's text fields. A flag has only the first and the last two. */
enum option_field {
	OPTION_NAME,	 /* the long name */
	OPTION_ARGUMENT, /* its value's name in the help: "PORT" */
	OPTION_RANGE,	/* "1ms to 24h", "0 or more", "one of udp, ipoib"; for a text ""; for an alias the other name */
	OPTION_INITIAL, /* the default as on the command line; if empty, parsing leaves the value unchanged */
	OPTION_DEFAULT, /* the default's text in the help ("none"), or empty; only WITH_HELP, like the next */
	OPTION_HELP_TEXT, /* one sentence without a full stop; options_help() adds range and default */
};

/* A row's last fields: its help and, optionally, its default's text. */
#if WITH_HELP
#define OPTION_HELP(...)			OPTION_HELP_OF(__VA_ARGS__, "", )
#define OPTION_HELP_OF(text, default_text, ...) "\0" default_text "\0" text
#else
#define OPTION_HELP(...)
#endif

/* A row: kind, letter, long name, options struct and member, argument, range, initial, help; other members by name. */
#define OPTION_ROW(kind, short_letter, name, struct_type, member, argument, range, initial, ...)                       \
	{ .letter = short_letter,                                                                                      \
	  .type = kind,                                                                                                \
	  .offset = offsetof(struct_type, member),                                                                     \
	  .text = name "\0" argument "\0" range "\0" initial __VA_ARGS__ }

/* A flag: letter, long name, options struct and member, help; other members by name. */
#define OPTION_FLAG_ROW(short_letter, name, struct_type, member, ...)                                                  \
	{ .letter = short_letter,                                                                                      \
	  .type = OPTION_FLAG,                                                                                         \
	  .offset = offsetof(struct_type, member),                                                                     \
	  .text = name __VA_ARGS__ }

#if HAS_WORDS
/* A row with another name for an option. */
#define OPTION_ALIAS_ROW(name, other, argument, help)                                                                  \
	{ .type = OPTION_ALIAS, .text = name "\0" argument "\0" other "\0" help }

/* After a row of OPTION_WORD: an array with the value of each word of its range. */
#define OPTION_VALUES_ROW(array) { .type = OPTION_VALUES, .values = array }
#endif

/* The end of a table: nothing, or another table whose offsets are into the same struct. */
#define OPTION_END	   { .rest = NULL }
#define OPTION_REST(table) { .rest = table }

/* The value of an option that needs WITH_EXTRAS; without that a constant 0. */
#define EXTRA(value) (WITH_EXTRAS ? (value) : 0)

/* Iterate over the options of a table and of those that continue it. Return NULL at the end. */
const struct option *option_first(const struct option *table);
const struct option *option_next(const struct option *row);

enum {
	OPTION_ROWS_MAX = 64
};

/*
 * Sets every option that has a default to it, then parses the arguments (argv[0] is skipped): "-C5", "-C 5", "-vV",
 * "--count=5", "--count 5", and "--" before operands. Operands are assigned after all options. The last value of an
 * option counts, unless it is a list. The caller zeroes the struct, except for members with other defaults. Returns
 * OUTCOME_OK, or OUTCOME_USAGE after it has reported the error. *given gets bit N for every row N that was on the
 * command line. A flag whose row .stops ends the parse with OUTCOME_OK, so that --help always works.
 */
enum outcome options_parse(const struct option *table, const struct log *log, int argc, char *const *argv,
			   void *options, uint64_t *given);

/* Returns the row with that long name if its option is in given, else NULL. */
const struct option *options_given(const struct option *table, uint64_t given, const char *name);

/*
 * Prints the options in two columns, " -C, --count N ...", below their sections' titles; or name, text and default of
 * the brief ones below one title. docs/options.awk parses the former for the man pages' option sections and the
 * completions, so its form must not change.
 */
void options_help(const struct option *table, bool brief, struct output *output);

/*
 * For "did you mean": returns the number of letters to insert, delete, replace or transpose to turn one word into the
 * other, or SPELLING_FAR if these are too many for a typing error.
 */
unsigned spelling_distance(const char *typed, const char *meant);
enum {
	SPELLING_FAR = 99
};
