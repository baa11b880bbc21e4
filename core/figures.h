/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run's figures as a table with one row per figure. A command keeps them in a struct, as totals since the start of
 * the run. All formats use the rows. An interval is the difference between the struct and an earlier copy.
 *
 *   static const struct figure ping_figures[] = {
 *           FIGURE(COUNT, "sent", struct ping_counts, sent),
 *           FIGURES_END,
 *   };
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/report.h"

/* The member's type, and its value in an interval. */
enum figure_kind {
	FIGURE_COUNT = 1, /* uint64_t: the increase; 0 if it has decreased */
	FIGURE_GAUGE,	  /* uint64_t: the current value */
	FIGURE_TIME,	  /* int64_t, nanoseconds; 0: not known. The current value */
	FIGURE_RATE,	  /* struct rate: its count's increase over the time in the interval */
	FIGURE_BANDWIDTH, /* struct rate: the same for its bytes */
	FIGURE_TEXT,	  /* const char *; NULL: not known. The current value */
	FIGURE_FLAG,	  /* bool: the current value */
	FIGURE_SAMPLES,	  /* struct samples: the current values; absent without a sample */
	FIGURE_HISTOGRAM, /* struct histogram: histogram_difference() */
	/* Without a member of their own: */
	FIGURE_OBJECT, /* begins an object of the rows up to FIGURE_CLOSE */
	FIGURE_LIST,   /* begins a list; empty in an interval */
	FIGURE_CLOSE,
	FIGURE_ROWS, /* the rows of another table */
	FIGURE_CODE, /* calls a function that fills the object or list and ends it */
};

enum {
	/* A block omits the COUNT or GAUGE if it is 0: scripts search logs for the word "failed". */
	FIGURE_UNLESS_0 = 1 << 0,
	/* Prometheus: a text that labels the following samples of its level. Other texts are left out. */
	FIGURE_LABEL = 1 << 1,
	/* In an interval the rate is over its whole length, in a step up to the last count. */
	FIGURE_WHOLE = 1 << 2,
	/* The count may decrease: not a counter for Prometheus. */
	FIGURE_MAY_DECREASE = 1 << 3,
};

/* A count over a time. */
struct rate {
	uint64_t count;
	uint64_t bytes;
	int64_t from; /* clock time; 0: not begun */
	int64_t to;   /* the last count's */
	bool goes_on; /* in an interval, the time lasts until now */
};

struct figure {
	union {
		const char *name;	   /* lower case with underscores */
		const struct figure *rows; /* FIGURE_ROWS: for the same struct or, at offset, one within it */
		void (*add)(struct report *report, const void *member); /* FIGURE_CODE */
	};
	uint32_t offset;
	uint8_t kind;  /* 0 ends the table */
	uint8_t forms; /* enum report_form: those with the figure; 0: all */
	uint8_t flags;
	int8_t others; /* COUNT: FIGURE_OTHERS(), or 0; a block has its share of both */
};

/* A row: kind, name, struct, member, then forms and flags. A 32-bit member is a compile error. */
#define FIGURE(figure_kind, figure_name, type, member, ...)                                                            \
	{ .name = figure_name,                                                                                         \
	  .kind = FIGURE_##figure_kind,                                                                                \
	  .offset = offsetof(type, member) +                                                                           \
		    0 * sizeof(_Generic(((type *)0)->member, unsigned: *(struct too_short *)0, default: 0)),           \
	  __VA_ARGS__ }
/* The distance from the member to the count of the others. */
#define FIGURE_OTHERS(type, member, count)                                                                             \
	((int)offsetof(type, count) - (int)offsetof(type, member)) / (int)sizeof(uint64_t)
/* An OBJECT of the rows up to FIGURES_CLOSE, without nested ones. It has its rows' forms. */
#define FIGURES_OPEN(figure_name, ...) { .name = figure_name, .kind = FIGURE_OBJECT, __VA_ARGS__ }
#define FIGURES_CLOSE		       { .kind = FIGURE_CLOSE }
/* The rows of a table for a struct within this one. */
#define FIGURES_ROWS(table, ...) { .rows = table, .kind = FIGURE_ROWS, __VA_ARGS__ }
#define FIGURES_END		 { .kind = 0 }
/* An object with another table's rows, for a member. */
#define FIGURES_OF_ROWS(object_name, type, member, table, ...)                                                         \
	FIGURES_OPEN(object_name, __VA_ARGS__), FIGURES_ROWS(table, .offset = offsetof(type, member)), FIGURES_CLOSE
/* An OBJECT or LIST that a function fills for a member. */
#define FIGURES_OF_CODE(figure_kind, figure_name, type, member, function, ...)                                         \
	{ .name = figure_name, .kind = FIGURE_##figure_kind, __VA_ARGS__ },                                            \
	{                                                                                                              \
		.add = function, .kind = FIGURE_CODE, .offset = offsetof(type, member)                                 \
	}

/* A run's figures: a table, the struct that its rows describe, and room for a copy. */
struct figures {
	const struct figure *rows;
	void *values;
	void *before; /* the struct when the interval began; initially all zeros; NULL: intervals have the totals */
	size_t size;
	bool summarised; /* the text report has a summary: data may have moved */
	bool under_way;	 /* data moves or is waited for: a second in which nothing is counted has a row, too */
};

/*
 * Adds the figures of the struct at values to a report. before is a copy of the struct at report->interval_began, or
 * NULL for the totals.
 */
void figures_report(struct report *report, const struct figure *rows, const void *values, const void *before);

/* True if a count has increased since before, a copy of the struct. */
bool figures_increased(const struct figure *rows, const void *values, const void *before);

/* Begins an interval: copies the struct to before, if that is not NULL. */
void figures_copy(struct figures figures);
