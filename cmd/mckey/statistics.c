/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive statistics of each sender, and the receiver's result lines. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/mckey/mckey.h"

enum {
	CAUSE_SIZE = 64, /* of a loss */
};

/* Adds the statistics of a sender to sum. */
static void add_source(const struct mckey_run *run, const struct source *source, struct statistics *sum)
{
	uint64_t arrived, missing;

	for (size_t i = 0; i < run->member_count; i++) {
		const struct window *window = &source->windows[i];

		if (!run->members[i].ever_joined)
			continue;
		arrived = window_arrived(window);
		missing = run->ended ? window_missing(window, run->count) : window_gaps(window);
		sum->arrived += arrived;
		sum->missing += missing;
		sum->expected += arrived + missing > run->count ? arrived + missing : run->count;
		sum->duplicated += window->repeated + window->late;
		sum->out_of_order += window->out_of_order;
		sum->wrong_length += window->wrong_length;
		sum->damaged += window_damaged(window);
		sum->good = sum->good && window_good(window, run->count);
		if (window->numbered)
			sum->total = window->total;
	}
}

struct statistics statistics_of(const struct mckey_run *run, const struct source *source)
{
	struct statistics statistics = { .good = true };

	add_source(run, source, &statistics);
	return statistics;
}

struct statistics statistics_of_all(const struct mckey_run *run)
{
	struct statistics all = { .good = true };

	for (size_t i = 0; i < run->sources.count; i++)
		add_source(run, run->sources.entries[i], &all);
	return all;
}

/* Returns the cause, formatted in text if it has a number. */
static const char *cause_of_loss(const struct mckey_run *run, char text[CAUSE_SIZE])
{
	if (run->interrupted)
		return run->deadline_passed ? "deadline exceeded" : "interrupted";
	if (!run->joined)
		return "every member of this receiver failed";
	if (receiver_has_all(run))
		return "lost";
	snprintf(text, CAUSE_SIZE, "no datagram for %g s (--idle-timeout)", units_seconds(run->options->idle_timeout));
	return text;
}

/* The sender's -C if it is known and differs from ours, else 0. */
static uint64_t differing_count(const struct mckey_run *run, const struct statistics *statistics)
{
	return statistics->total != run->count ? statistics->total : 0;
}

static void log_faults(const struct mckey_run *run, const char *name, const struct statistics *statistics)
{
	uint64_t count = differing_count(run, statistics);
	char cause[CAUSE_SIZE];

	if (statistics->missing)
		log_error(run->log, name, "%" PRIu64 " of %" PRIu64 " datagram%s did not arrive: %s",
			  statistics->missing, statistics->arrived + statistics->missing,
			  units_plural(statistics->arrived + statistics->missing), cause_of_loss(run, cause));
	if (count)
		log_error(run->log, name, "sends %s%" PRIu64 " datagram%s: expected %" PRIu64 " (-C)",
			  count < run->count ? "only " : "", count, units_plural(count), run->count);
	if (statistics->wrong_length)
		log_error(run->log, name, "%" PRIu64 " datagram%s of a wrong length", statistics->wrong_length,
			  units_plural(statistics->wrong_length));
	if (statistics->damaged)
		log_error(run->log, name, "%" PRIu64 " damaged datagram%s", statistics->damaged,
			  units_plural(statistics->damaged));
}

static void print_source(const struct mckey_run *run, const struct source *source, struct statistics *all)
{
	struct statistics statistics = statistics_of(run, source);
	char name[SOURCE_TEXT_SIZE], size[32];

	source_text(source, name);
	if (statistics.wrong_length)
		snprintf(size, sizeof(size), "other sizes");
	else
		snprintf(size, sizeof(size), "%u byte%s", run->size, units_plural(run->size));
	if (statistics.total)
		environment_print_result(run->environment, false, &run->verdict,
					 "%" PRIu64 " datagram%s of %s from %s received, %" PRIu64 " lost, %" PRIu64
					 " out of order, %" PRIu64 " repeated",
					 statistics.arrived, units_plural(statistics.arrived), size, name,
					 statistics.missing, statistics.out_of_order, statistics.duplicated);
	else
		environment_print_result(
			run->environment, false, &run->verdict,
			"%" PRIu64 " datagram%s of %s from %s received, %" PRIu64 " lost, order unknown: not numbered",
			statistics.arrived, units_plural(statistics.arrived), size, name, statistics.missing);
	log_faults(run, name, &statistics);
	all->other_counts += differing_count(run, &statistics) != 0;
	if (!statistics.total)
		all->total = 0;
}

/* Names other faults than loss, as the number of datagrams may be complete. */
static void statistics_set_verdict(struct mckey_run *run, const struct statistics *all, bool verified)
{
	char wrong[96] = "";
	size_t length = 0;

	run->verdict.has_figures = true;
	if (!run->sources.count) {
		snprintf(run->verdict_text, sizeof(run->verdict_text), "no datagram received");
		return;
	}
	if (all->wrong_length)
		length = (size_t)snprintf(wrong, sizeof(wrong), ", %" PRIu64 " of a wrong length", all->wrong_length);
	if (all->damaged)
		length +=
			(size_t)snprintf(wrong + length, sizeof(wrong) - length, ", %" PRIu64 " damaged", all->damaged);
	if (all->other_counts)
		snprintf(wrong + length, sizeof(wrong) - length, ", senders with another -C");
	snprintf(run->verdict_text, sizeof(run->verdict_text), "%" PRIu64 " of %" PRIu64 " datagram%s received%s",
		 all->arrived, all->expected, units_plural(all->expected),
		 !verified    ? wrong
		 : all->total ? ", every byte verified"
			      : ", number and length verified");
}

void statistics_print(struct mckey_run *run)
{
	struct statistics all = statistics_of_all(run);
	bool verified = all.good && run->sources.count > 0 && !run->sources.unfollowed;

	if (verified)
		environment_print(run->environment, "data transfers complete");
	/* Of all senders: those with another -C, and whether every one numbers its datagrams. */
	all.total = run->count;
	for (size_t i = 0; i < run->sources.count; i++)
		print_source(run, run->sources.entries[i], &all);
	if (run->figures.foreign)
		environment_print_result(run->environment, false, &run->verdict,
					 "%" PRIu64 " datagram%s ignored: not sent by mckey", run->figures.foreign,
					 units_plural(run->figures.foreign));
	if (run->sources.unfollowed)
		log_error(run->log, run->group_text,
			  "%" PRIu64 " datagram%s of further senders not checked: %zu are followed%s",
			  run->sources.unfollowed, units_plural(run->sources.unfollowed), run->sources.count,
			  run->sources.no_memory ? ": out of memory" : "");
	if (run->sources.no_memory)
		environment_record_outcome(run->environment, OUTCOME_INTERNAL);
	if (!run->sources.count && !run->deadline_passed)
		log_error(run->log, run->group_text, "no datagram received%s", run->interrupted ? ": interrupted" : "");
	/* It destroys its QP at once, and soft-RoCE drops what it has not sent by then. */
	if (!run->sources.count || (all.missing && !all.total))
		mckey_hint(run, "a stock mckey -s on soft-RoCE sends only a part: run there rdmatest mckey -s");
	if (!verified)
		environment_record_outcome(run->environment, OUTCOME_FAILED);
	statistics_set_verdict(run, &all, verified);
}
