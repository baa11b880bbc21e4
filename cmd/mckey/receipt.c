/* SPDX-License-Identifier: BSD-2-Clause */
/* What a receiver says at its end: of each sender what came, what was lost and what was wrong, and the verdict. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/mckey/mckey.h"

struct receipt receipt_of(const struct mckey_run *run, const struct source *source)
{
	struct receipt receipt = { .good = true };
	uint64_t arrived, missing;

	for (size_t i = 0; i < run->member_count; i++) {
		const struct stream *stream = &source->streams[i];

		if (!run->members[i].took_part)
			continue;
		arrived = stream_arrived(stream);
		missing = run->ended ? stream_missing(stream, run->count) : stream_gaps(stream);
		receipt.arrived += arrived;
		receipt.missing += missing;
		receipt.wanted +=
			arrived + missing > run->count || run->count == DATAGRAM_OPEN ? arrived + missing : run->count;
		receipt.repeated += stream->repeated;
		receipt.late += stream->late;
		receipt.out_of_order += stream->out_of_order;
		receipt.wrong_length += stream->wrong_length;
		receipt.damaged += stream_damaged(stream);
		receipt.good = receipt.good && stream_good(stream, run->count);
		if (stream->numbered)
			receipt.total = stream->total;
		if (stream->count)
			receipt.count = stream->count;
	}
	return receipt;
}

static const char *cause_of_loss(const struct mckey_run *run)
{
	if (run->interrupted)
		return run->deadline_passed ? "out of time" : "interrupted";
	if (!run->joined)
		return "our own connections failed";
	if (run->options->duration || receiver_has_all(run))
		return "lost";
	return "nothing more came for --idle-timeout";
}

static bool sends_fewer(const struct mckey_run *run, const struct receipt *receipt)
{
	return receipt->total && receipt->total < run->count && run->count != DATAGRAM_OPEN;
}

static bool sends_more(const struct mckey_run *run, const struct receipt *receipt)
{
	return receipt->count > run->count;
}

static void complain(const struct mckey_run *run, const char *name, const struct receipt *receipt)
{
	if (receipt->missing)
		log_error(run->log, name, "%" PRIu64 " of %" PRIu64 " datagram%s did not arrive: %s", receipt->missing,
			  receipt->arrived + receipt->missing, quantity_plural(receipt->arrived + receipt->missing),
			  cause_of_loss(run));
	if (sends_fewer(run, receipt))
		log_error(run->log, name, "sends only %" PRIu64 " datagram%s: expected %" PRIu64 " (-C)",
			  receipt->total, quantity_plural(receipt->total), run->count);
	if (sends_more(run, receipt))
		log_error(run->log, name, "sends %" PRIu64 " datagrams: expected %" PRIu64 " (-C)", receipt->count,
			  run->count);
	if (receipt->wrong_length)
		log_error(run->log, name, "%" PRIu64 " datagram%s of a wrong length", receipt->wrong_length,
			  quantity_plural(receipt->wrong_length));
	if (receipt->damaged)
		log_error(run->log, name, "%" PRIu64 " damaged datagram%s", receipt->damaged,
			  quantity_plural(receipt->damaged));
}

static void report_source(const struct mckey_run *run, const struct source *source, struct receipt *all)
{
	struct receipt receipt = receipt_of(run, source);
	char name[SOURCE_TEXT_SIZE], size[32];

	source_text(source, name);
	if (receipt.wrong_length)
		snprintf(size, sizeof(size), "other sizes");
	else
		snprintf(size, sizeof(size), "%u byte%s", run->size, quantity_plural(run->size));
	if (receipt.total)
		run_tell(run,
			 "%" PRIu64 " datagram%s of %s from %s received, %" PRIu64 " lost, %" PRIu64
			 " out of order, %" PRIu64 " repeated",
			 receipt.arrived, quantity_plural(receipt.arrived), size, name, receipt.missing,
			 receipt.out_of_order, receipt.repeated + receipt.late);
	else
		run_tell(run,
			 "%" PRIu64 " datagram%s of %s from %s received, %" PRIu64 " lost, order unknown: not numbered",
			 receipt.arrived, quantity_plural(receipt.arrived), size, name, receipt.missing);
	complain(run, name, &receipt);
	all->arrived += receipt.arrived;
	all->wanted += receipt.wanted;
	all->wrong_length += receipt.wrong_length;
	all->damaged += receipt.damaged;
	if (sends_fewer(run, &receipt) || sends_more(run, &receipt))
		all->count++;
	if (!receipt.total)
		all->total = 0;
}

static bool everything_verified(const struct mckey_run *run)
{
	for (size_t i = 0; i < run->heard.count; i++)
		if (!receipt_of(run, run->heard.sources[i]).good)
			return false;
	return run->heard.count > 0 && !run->heard.unfollowed;
}

/* The number alone may look like success where something else was wrong. */
static void say_verdict(const struct mckey_run *run, const struct receipt *all, bool verified)
{
	char wrong[96] = "";
	size_t length = 0;

	if (!run->heard.count) {
		run_verdict(run, "no datagram received");
		return;
	}
	if (all->wrong_length)
		length = (size_t)snprintf(wrong, sizeof(wrong), ", %" PRIu64 " of a wrong length", all->wrong_length);
	if (all->damaged)
		length +=
			(size_t)snprintf(wrong + length, sizeof(wrong) - length, ", %" PRIu64 " damaged", all->damaged);
	if (all->count)
		snprintf(wrong + length, sizeof(wrong) - length, ", senders with another -C");
	run_verdict(run, "%" PRIu64 " of %" PRIu64 " datagram%s received%s", all->arrived, all->wanted,
		    quantity_plural(all->wanted),
		    !verified	 ? wrong
		    : all->total ? ", every byte verified"
				 : ", number and length verified");
}

void receiver_report(struct mckey_run *run)
{
	bool verified = everything_verified(run);
	struct receipt all = { .total = run->count };

	if (verified)
		run_say(run, "data transfers complete");
	for (size_t i = 0; i < run->heard.count; i++)
		report_source(run, run->heard.sources[i], &all);
	environment_summary(run->environment);
	if (run->foreign)
		run_tell(run, "%" PRIu64 " datagram%s that no mckey sent ignored", run->foreign,
			 quantity_plural(run->foreign));
	if (run->heard.unfollowed)
		log_error(run->log, run->group_text,
			  "%" PRIu64 " datagram%s of further senders not checked: %zu are followed%s",
			  run->heard.unfollowed, quantity_plural(run->heard.unfollowed), run->heard.count,
			  run->heard.starved ? ": out of memory" : "");
	if (run->heard.starved)
		environment_note(run->environment, OUTCOME_INTERNAL);
	if (!run->heard.count && !run->deadline_passed)
		log_error(run->log, run->group_text, "no datagram came%s", run->interrupted ? ": interrupted" : "");
	if (!verified)
		environment_note(run->environment, OUTCOME_FAILED);
	say_verdict(run, &all, verified);
}
