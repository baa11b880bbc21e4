/* SPDX-License-Identifier: BSD-2-Clause */
/* What a receiver says at its end: of each sender what came, what was lost and what was wrong, and the verdict. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/mckey/mckey.h"

/* What came from one sender to all members. */
struct summary {
	uint64_t arrived;
	uint64_t missing;
	uint64_t wanted; /* at least -C from the sender to each member */
	uint64_t repeated;
	uint64_t late;
	uint64_t out_of_order;
	uint64_t wrong_length;
	uint64_t damaged;
	uint32_t total; /* that the sender sends to each; 0 if it does not say */
	bool good;
};

static struct summary summarise(const struct mckey_run *run, const struct source *source)
{
	struct summary summary = { .good = true };
	uint64_t arrived, missing;

	for (size_t i = 0; i < run->member_count; i++) {
		const struct stream *stream = &source->streams[i];

		if (!run->members[i].took_part)
			continue;
		arrived = stream_arrived(stream);
		missing = stream_missing(stream, run->count);
		summary.arrived += arrived;
		summary.missing += missing;
		summary.wanted += arrived + missing > run->count ? arrived + missing : run->count;
		summary.repeated += stream->repeated;
		summary.late += stream->late;
		summary.out_of_order += stream->out_of_order;
		summary.wrong_length += stream->wrong_length;
		summary.damaged += stream_damaged(stream);
		summary.good = summary.good && stream_good(stream, run->count);
		if (stream->numbered)
			summary.total = stream->total;
	}
	return summary;
}

static const char *cause_of_loss(const struct mckey_run *run)
{
	if (run->interrupted)
		return run->interrupted;
	if (!run->joined)
		return "our own connections failed";
	return receiver_has_all(run) ? "lost" : "nothing more came for --idle-timeout";
}

static void complain(const struct mckey_run *run, const char *name, const struct summary *summary)
{
	if (summary->missing)
		log_error(run->log, name, "%" PRIu64 " of %" PRIu64 " datagram%s did not arrive: %s", summary->missing,
			  summary->arrived + summary->missing, plural(summary->arrived + summary->missing),
			  cause_of_loss(run));
	if (summary->total && summary->total < run->count)
		log_error(run->log, name, "sends only %u datagram%s: expected %u (-C)", summary->total,
			  plural(summary->total), run->count);
	if (summary->wrong_length)
		log_error(run->log, name, "%" PRIu64 " datagram%s of a wrong length", summary->wrong_length,
			  plural(summary->wrong_length));
	if (summary->damaged)
		log_error(run->log, name, "%" PRIu64 " damaged datagram%s", summary->damaged, plural(summary->damaged));
}

static void report_source(const struct mckey_run *run, const struct source *source, struct summary *all)
{
	struct summary summary = summarise(run, source);
	char name[SOURCE_TEXT_SIZE], size[32];

	source_text(source, name);
	if (summary.wrong_length)
		snprintf(size, sizeof(size), "other sizes");
	else
		snprintf(size, sizeof(size), "%u byte%s", run->size, plural(run->size));
	if (summary.total)
		run_tell(run,
			 "%" PRIu64 " datagram%s of %s from %s received, %" PRIu64 " lost, %" PRIu64
			 " out of order, %" PRIu64 " repeated",
			 summary.arrived, plural(summary.arrived), size, name, summary.missing, summary.out_of_order,
			 summary.repeated + summary.late);
	else
		run_tell(run,
			 "%" PRIu64 " datagram%s of %s from %s received, %" PRIu64 " lost, order unknown: not numbered",
			 summary.arrived, plural(summary.arrived), size, name, summary.missing);
	complain(run, name, &summary);
	all->arrived += summary.arrived;
	all->wanted += summary.wanted;
	if (!summary.total)
		all->total = 0;
}

static bool everything_verified(const struct mckey_run *run)
{
	for (size_t i = 0; i < run->heard.count; i++)
		if (!summarise(run, run->heard.sources[i]).good)
			return false;
	return run->heard.count > 0 && !run->heard.unfollowed;
}

void receiver_report(struct mckey_run *run)
{
	bool verified = everything_verified(run);
	struct summary all = { .total = run->count };

	if (verified)
		run_say(run, "data transfers complete");
	for (size_t i = 0; i < run->heard.count; i++)
		report_source(run, run->heard.sources[i], &all);
	if (run->foreign)
		run_tell(run, "%" PRIu64 " datagram%s that no mckey sent ignored", run->foreign, plural(run->foreign));
	if (run->heard.unfollowed)
		log_error(run->log, run->group_text,
			  "%" PRIu64 " datagram%s of further senders not checked: %zu are followed",
			  run->heard.unfollowed, plural(run->heard.unfollowed), run->heard.count);
	if (!run->heard.count)
		log_error(run->log, run->group_text, "no datagram came%s%s", run->interrupted ? ": " : "",
			  run->interrupted ? run->interrupted : "");
	else
		run_tell(run, "%" PRIu64 " of %" PRIu64 " datagram%s received%s", all.arrived, all.wanted,
			 plural(all.wanted),
			 !verified   ? ""
			 : all.total ? ", every byte verified"
				     : ", number and length verified");
	if (!verified)
		environment_note(run->environment, OUTCOME_FAILED);
}
