/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --expect: limits for a run's figures, "p99<=200us". A format of the report that compares the values in JSON.
 *
 * A name means each figure whose JSON name ends with it: "p99" is the run's, each target's and each path's. The unit
 * may be left out, and "." equals "_". In a sweep only its sizes have round trips: a time is also each size's.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/reporting/reporting.h"
#include "cmd/run.h"
#include "core/option_value.h"
#include "core/units.h"

enum {
	NAME_SIZE = 96,
	GOT_SIZE = 128,
};

/* Bits: for a limit, the accepted relations; for a value, its actual relation. */
enum relation {
	LESS = 1,
	EQUAL = 2,
	GREATER = 4,
};

struct expectation {
	const char *text; /* as given */
	char name[NAME_SIZE];
	unsigned relation;
	const char *wanted;
	bool exists;	     /* the figure exists */
	bool fits;	     /* and can be compared */
	const char *nearest; /* else the likely name, or NULL */
	bool known;	     /* and has a value */
	bool failed;	     /* in a list entry, which has been reported */
	char got[GOT_SIZE];  /* the whole run's value, or the sizes', if they miss the limit; "": none */
};

struct expect {
	size_t count;
	bool judges;	      /* else it only looks for the names */
	uint32_t size;	      /* of a sweep, whose figures these are; 0: the run's */
	bool begins;	      /* an entry of a list */
	char entry[GOT_SIZE]; /* its values before the first object, which identify it */
	struct expectation expectations[];
};

static void cut_end(char *name, const char *end)
{
	size_t length = strlen(name), cut = strlen(end);

	if (length > cut && !strcmp(name + length - cut, end))
		name[length - cut] = '\0';
}

/* Returns false without a relation, or with an empty side. */
static bool parse_expectation(const char *text, struct expectation *expectation)
{
	static const struct {
		char sign[3];
		uint8_t relation;
	} relations[] = { { "<=", LESS | EQUAL },
			  { ">=", GREATER | EQUAL },
			  { "!=", LESS | GREATER },
			  { "==", EQUAL },
			  { "<", LESS },
			  { ">", GREATER },
			  { "=", EQUAL } };
	size_t length = strcspn(text, "<>=!"), row = 0;

	while (strncmp(text + length, relations[row].sign, strlen(relations[row].sign)) != 0)
		if (++row == sizeof(relations) / sizeof(relations[0]))
			return false;
	*expectation = (struct expectation){
		.text = text,
		.relation = relations[row].relation,
		.wanted = text + length + strlen(relations[row].sign),
	};
	log_text(expectation->name, NAME_SIZE, "%.*s", (int)length, text);
	cut_end(expectation->name, "_ns");
	cut_end(expectation->name, "_per_second");
	return length && length < NAME_SIZE && *expectation->wanted;
}

/* ---- the format ---- */

static bool is_same_letter(char a, char b)
{
	return a == b || (strchr("._", a) && strchr("._", b));
}

/* Whether the value's name, without its unit, ends with that one: "targets.round_trip.p99" with "round_trip.p99". */
static bool is_named(const struct report *report, const char *value, const char *name)
{
	char full[NAME_SIZE] = "";
	size_t length, rest = strlen(name);

	for (unsigned i = 1; i <= report->depth; i++)
		if (report->frames[i].name)
			log_add(full, sizeof(full), ".", "%s", report->frames[i].name);
	log_add(full, sizeof(full), ".", "%s", value);
	for (length = strlen(full); rest && length && is_same_letter(full[length - 1], name[rest - 1]); rest--)
		length--;
	return !rest && (!length || full[length - 1] == '.');
}

/* Parses the limit for such a value. Returns false if it is not a number, or a time without a unit. */
static bool wanted_number(const struct expectation *expectation, enum report_kind kind, double *number)
{
	const char *wanted = expectation->wanted;
	int64_t time;
	char *end;

	*number = strtod(wanted, &end);
	if (kind == REPORT_TIME) {
		if (!option_number(OPTION_DURATION, wanted, &time) || (!*end && time))
			return false;
		*number = (double)time;
		return true;
	}
	if (kind == REPORT_FLAG) {
		*number = !strcmp(wanted, "true");
		return *number != 0 || !strcmp(wanted, "false");
	}
	if (kind == REPORT_TEXT)
		return expectation->relation == EQUAL || expectation->relation == (LESS | GREATER);
	return !*end && *wanted >= '0' && *wanted <= '9';
}

static bool is_as_wanted(const struct expectation *expectation, struct report_value value, double wanted)
{
	double number;

	if (value.kind == REPORT_TEXT)
		return !strcmp(value.text, expectation->wanted) == (expectation->relation == EQUAL);
	number = value.kind == REPORT_RATE || value.kind == REPORT_BANDWIDTH ? value.rate : (double)value.number;
	return expectation->relation & (number < wanted ? LESS : number > wanted ? GREATER : EQUAL);
}

/* With all digits that were compared, and rates in JSON's unit, like the expected value. */
static const char *got_text(struct report_value value, char text[REPORTING_VALUE_SIZE])
{
	if (value.kind == REPORT_TIME)
		return units_exact_time((int64_t)value.number, text);
	if (value.kind != REPORT_RATE && value.kind != REPORT_BANDWIDTH)
		return reporting_value_text(value, text);
	snprintf(text, REPORTING_VALUE_SIZE, "%.6g", value.rate); /* log_text() takes no such number */
	return text;
}

static struct reporting *reporting_of(struct report *report)
{
	return (struct reporting *)((char *)report - offsetof(struct reporting, report));
}

static void fail(struct reporting *reporting, const struct expectation *expectation, const char *object,
		 const char *got)
{
	struct run *run = reporting->run;
	const struct report report = reporting->report;

	log_error(&run->log, object, "%s is %s, expected %s", expectation->name, got, expectation->text);
	log_add(run->verdict, RESULT_SIZE, "; ", "%s is %s, expected %s", expectation->name, got, expectation->text);
	run_record_outcome(run, OUTCOME_FAILED);
	/* In a JSON stream the error was a separate report. */
	reporting->report = report;
}

static void expect_begin(struct report *report, const char *name, enum report_nesting nesting)
{
	struct expect *expect = reporting_of(report)->expect;

	(void)nesting;
	expect->begins = !name;
	if (!name)
		*expect->entry = '\0';
}

static void judge(struct report *report, struct expectation *expectation, struct report_value value, double wanted)
{
	struct reporting *reporting = reporting_of(report);
	struct expect *expect = reporting->expect;
	char text[REPORTING_VALUE_SIZE];
	const char *got;

	expectation->known = true;
	if (is_as_wanted(expectation, value, wanted))
		return;
	got = got_text(value, text);
	if (report_in_list(report)) {
		expectation->failed = true;
		fail(reporting, expectation, expect->entry, got);
	} else if (expect->size) {
		log_add(expectation->got, GOT_SIZE, ", ", "%s (%" PRIu32 " bytes)", got, expect->size);
	} else {
		log_text(expectation->got, GOT_SIZE, "%s", got);
	}
}

static void expect_value(struct report *report, const char *name, struct report_value value)
{
	struct expect *expect = reporting_of(report)->expect;
	enum report_kind kind = value.kind == REPORT_NONE ? (enum report_kind)value.number : value.kind;
	char text[REPORTING_VALUE_SIZE];
	double wanted;

	if (expect->begins && value.kind != REPORT_NONE)
		log_add(expect->entry, GOT_SIZE, ", ", "%s %s", name, reporting_value_text(value, text));
	for (size_t i = 0; i < expect->count; i++) {
		struct expectation *expectation = &expect->expectations[i];

		if (!expect->judges && spelling_distance(expectation->name, name) < SPELLING_FAR)
			expectation->nearest = name;
		if (!is_named(report, name, expectation->name))
			continue;
		expectation->exists = true;
		if (!wanted_number(expectation, kind, &wanted))
			continue;
		expectation->fits = true;
		/* A server has no connect times, and a client no accept times. */
		if (expect->judges && value.kind != REPORT_NONE && (!expect->size || kind == REPORT_TIME))
			judge(report, expectation, value, wanted);
	}
}

static const struct report_format report_expect = {
	.begin = expect_begin,
	.value = expect_value,
	.form = IN_JSON,
};

/* ---- a run ---- */

static enum outcome refuse(const struct reporting *reporting, const char *text, const char *why, const char *hint)
{
	log_error(&reporting->run->log, "--expect", "'%s' %s", text, why);
	log_hint(&reporting->run->log, "%s", hint);
	return OUTCOME_USAGE;
}

enum outcome reporting_expect_parse(struct reporting *reporting)
{
	const struct option_list *list = &reporting->options->expect;
	struct expect *expect;

	if (!list->count)
		return OUTCOME_OK;
	expect = run_allocate(reporting->run, 1, sizeof(*expect) + list->count * sizeof(expect->expectations[0]));
	if (!expect)
		return OUTCOME_INTERNAL;
	reporting->expect = expect;
	for (; expect->count < list->count; expect->count++)
		if (!parse_expectation(list->texts[expect->count], &expect->expectations[expect->count]))
			return refuse(reporting, list->texts[expect->count], "is not a comparison",
				      "for example 'p99<=200us', 'lost=0' or 'rate>=1000'");
	return OUTCOME_OK;
}

bool reporting_limits(const struct reporting *reporting, const char *part)
{
	const struct expect *expect = reporting ? reporting->expect : NULL;

	for (size_t i = 0; expect && i < expect->count; i++)
		if (strstr(expect->expectations[i].name, part))
			return true;
	return false;
}

/* Histogram buckets have counts, too, which are not meant. */
static void read_figures(struct reporting *reporting, uint32_t size)
{
	bool buckets = reporting->report.buckets;

	reporting->expect->size = size;
	reporting->report.buckets = false;
	report_open(&reporting->report, NULL, &report_expect);
	if (size)
		reporting_add_figures(reporting, true);
	else
		reporting_json_add(reporting);
	report_close(&reporting->report);
	reporting->report.buckets = buckets;
}

enum outcome reporting_expect_check(struct reporting *reporting)
{
	struct expect *expect = reporting->expect;
	const struct log *log = &reporting->run->log;

	if (!expect)
		return OUTCOME_OK;
	read_figures(reporting, 0);
	for (size_t i = 0; i < expect->count; i++) {
		const struct expectation *expectation = &expect->expectations[i];

		if (expectation->fits)
			continue;
		if (expectation->exists)
			return refuse(reporting, expectation->text, "does not fit that figure",
				      "times have a unit: 200us; flags are true or false; texts have = and != only");
		log_error(log, "--expect", "no figure '%s'", expectation->name);
		if (expectation->nearest)
			log_hint(log, "did you mean %s?", expectation->nearest);
		else
			log_hint(log, "--json shows the figures of a run");
		return OUTCOME_USAGE;
	}
	expect->judges = true;
	return OUTCOME_OK;
}

void reporting_expect_size(struct reporting *reporting, uint32_t size)
{
	if (reporting && reporting->expect)
		read_figures(reporting, size);
}

void reporting_expect_judge(struct reporting *reporting)
{
	struct expect *expect = reporting->expect;

	if (!expect || reporting->run->outcome || !reporting->state)
		return;
	read_figures(reporting, 0);
	for (size_t i = 0; i < expect->count; i++) {
		const struct expectation *expectation = &expect->expectations[i];

		if (!expectation->known || (*expectation->got && !expectation->failed))
			fail(reporting, expectation, NULL, expectation->known ? expectation->got : "unknown");
	}
}
