/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run's figures. The time of a sender's rate starts with sending and ends with the last completion; a receiver's is
 * from the first datagram received to the last. The rate excludes the first datagram of every QP or flow: ten
 * datagrams, one per second, take nine seconds.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "cmd/mckey/mckey.h"

/* A receiver has no rate below this time: a queued burst would measure our polling, not the sender. */
#define BURST CLOCK_NS_PER_MS

/* Identifiers are texts, even numeric ones, in the subnet manager tools' format. */
static void report_address(struct report *report, const void *member)
{
	static const uint8_t none[sizeof(((struct group_address *)0)->gid)];
	const struct group_address *address = member;
	bool known = memcmp(address->gid, none, sizeof(none)) != 0;
	char gid[INET6_ADDRSTRLEN], lid[16], key[16];

	inet_ntop(AF_INET6, address->gid, gid, sizeof(gid));
	log_text(lid, sizeof(lid), "0x%x", address->lid);
	log_text(key, sizeof(key), "0x%08" PRIx32, address->qkey);
	report_text(report, "mgid", known ? gid : NULL);
	report_text(report, "mlid", known ? lid : NULL);
	report_text(report, "qkey", known ? key : NULL);
	report_count_known(report, "service_level", address->service_level, known);
}

void mckey_figures_joined(struct member *member, const struct group_address *group)
{
	struct mckey *mckey = member->mckey;
	struct mckey_figures *figures = &mckey->figures;
	struct report *report = run_begin_record(mckey->run, "joined");

	if (report) {
		report_count(report, "index", (uint64_t)(member - mckey->members));
		report_address(report, group);
		report_close(report);
	}
	if (!figures->joined++ && WITH_REPORT) {
		figures->group = *group;
		endpoint_path(member->endpoint, &figures->path);
	}
	histogram_add(&figures->join, member->join_time);
}

void mckey_figures_counted(struct mckey *mckey, bool first)
{
	struct rate *traffic = &mckey->traffic;
	int64_t now = clock_now();

	/* A sender's progress began when it posted its first datagram. */
	if (WITH_REPORT && !traffic->from)
		traffic->from = mckey->progress ? mckey->progress : now;
	mckey->progress = now;
	if (!WITH_REPORT)
		return;
	traffic->to = now;
	traffic->count += !first;
	traffic->bytes += first ? 0 : mckey->figures.size;
}

static const struct figure counts_figures[] = {
	FIGURE(COUNT, "received", struct counts, received),
	FIGURE(COUNT, "lost", struct counts, lost, .flags = FIGURE_MAY_DECREASE,
	       .others = FIGURE_OTHERS(struct counts, lost, received)),
	FIGURE(COUNT, "duplicated", struct counts, duplicated, .flags = FIGURE_UNLESS_0),
	FIGURE(COUNT, "out_of_order", struct counts, out_of_order, .flags = FIGURE_UNLESS_0),
	FIGURE(COUNT, "damaged", struct counts, damaged, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	FIGURES_END,
};

static void report_senders(struct report *report, const void *member)
{
	const struct mckey *mckey = *(const struct mckey *const *)member;
	const struct sender *sender = mckey->senders.found;
	char host[ADDRESS_TEXT_SIZE], qpn[16];

	for (size_t i = 0; i < mckey->senders.count; i++) {
		struct counts counts;
		bool known;

		sender = sender->next;
		counts = sender_counts(&mckey->senders, sender, mckey->expected);
		known = sender->address.family != ADDRESS_NONE;
		log_text(qpn, sizeof(qpn), "%" PRIu32, sender->qpn);
		report_object(report, NULL);
		report_text(report, "address", known ? address_host(&sender->address, host) : NULL);
		report_text(report, "qpn", qpn);
		if (mckey->senders.count > 1 || report->format->form & IN_PROGRAMS)
			figures_report(report, counts_figures, &counts, NULL);
		if (!sender->numbered || report->format->form & IN_PROGRAMS)
			report_flag(report, "numbered", sender->numbered);
		report_end(report);
	}
}

#define ROW(kind, name, member, ...) FIGURE(kind, name, struct mckey_figures, member, __VA_ARGS__)

static const struct figure run_figures[] = {
	ROW(TEXT, "role", role, .flags = FIGURE_LABEL),
	ROW(TEXT, "target", target, .flags = FIGURE_LABEL),
	FIGURES_OF_CODE(OBJECT, "path", struct mckey_figures, path, common_report_path, .forms = IN_FULL),
	FIGURES_OF_CODE(OBJECT, "group", struct mckey_figures, group, report_address, .forms = IN_PROGRAMS),
	FIGURES_OPEN("connections"),
	ROW(GAUGE, "asked", asked, .forms = IN_FULL),
	ROW(COUNT, "joined", joined, .forms = IN_FULL),
	ROW(COUNT, "failed", failed, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	FIGURES_CLOSE,
	ROW(HISTOGRAM, "join", join, .forms = IN_FULL),
	FIGURES_END,
};

static const struct figure sender_figures[] = {
	FIGURES_ROWS(run_figures),
	FIGURES_OPEN("datagrams"),
	ROW(GAUGE, "size", size, .forms = IN_FULL),
	ROW(COUNT, "sent", sent),
	ROW(RATE, "rate", rate),
	ROW(BANDWIDTH, "bytes", rate),
	FIGURES_CLOSE,
	FIGURES_END,
};

static const struct figure receiver_figures[] = {
	FIGURES_ROWS(run_figures),
	FIGURES_OPEN("datagrams"),
	ROW(GAUGE, "size", size, .forms = IN_FULL),
	FIGURES_ROWS(counts_figures, .offset = offsetof(struct mckey_figures, received)),
	ROW(COUNT, "foreign", foreign, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	ROW(RATE, "rate", rate),
	ROW(BANDWIDTH, "bytes", rate),
	FIGURES_CLOSE,
	FIGURES_OF_CODE(LIST, "senders", struct mckey_figures, mckey, report_senders),
	FIGURES_END,
};

struct figures mckey_figures_update(void *state)
{
	struct mckey *mckey = state;
	struct mckey_figures *figures = &mckey->figures;
	bool sends = mckey->options->sender, is_burst = !sends && mckey->traffic.to - mckey->traffic.from < BURST;

	figures->role = sends ? "sender" : "receiver";
	figures->mckey = mckey;
	figures->rate = mckey->traffic;
	figures->rate.goes_on = true;
	if (!mckey->traffic.count || is_burst)
		figures->rate.from = 0;
	figures->received = senders_counts(&mckey->senders, mckey->expected);
	return (struct figures){ sends ? sender_figures : receiver_figures,
				 figures,
				 &mckey->before,
				 sizeof(*figures),
				 .summarised = figures->joined == figures->asked,
				 .under_way = mckey->traffic.from };
}
