/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The figures of a run. The time of a sender's rate starts with sending and ends with the last completion; a receiver's
 * is from the first datagram received to the last. The rate excludes the first datagram of every QP: ten datagrams, one
 * per second, take nine seconds. The join time is from the resolution of the group's address to the join event.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/mckey/mckey.h"
#include "cmd/path.h"

/* A receiver has no rate below this time: a queued burst would measure our polling, not the sender. */
#define BURST CLOCK_NS_PER_MS

/* Identifiers are texts, also numeric ones, in the format of the subnet managers' tools. */
static void report_address(struct report *report, const void *member)
{
	static const uint8_t none[sizeof(((struct group_address *)0)->gid)];
	const struct group_address *address = member;
	bool known = memcmp(address->gid, none, sizeof(none)) != 0;
	char gid[INET6_ADDRSTRLEN], lid[16], key[16];

	inet_ntop(AF_INET6, address->gid, gid, sizeof(gid));
	snprintf(lid, sizeof(lid), "0x%x", address->lid);
	snprintf(key, sizeof(key), "0x%08" PRIx32, address->qkey);
	report_text(report, "mgid", known ? gid : NULL);
	report_text(report, "mlid", known ? lid : NULL);
	report_text(report, "qkey", known ? key : NULL);
	report_count_known(report, "service_level", address->service_level, known);
}

static void record_joined(const struct member *member, const struct group_address *address)
{
	const struct mckey_run *run = member->run;
	struct report *report = environment_begin_record(run->environment, "joined");

	if (!report)
		return;
	report_count(report, "index", (uint64_t)(member - run->members));
	report_address(report, address);
	environment_end_record(run->environment);
}

void mckey_figures_joined(struct member *member, const struct group_address *address)
{
	struct mckey_figures *figures = &member->run->figures;

	if (!figures->joined++ && WITH_REPORT) {
		figures->address = *address;
		endpoint_path(member->endpoint, &figures->path);
	}
	histogram_add(&figures->join, clock_now() - member->join_began);
	record_joined(member, address);
}

void mckey_figures_counted(struct mckey_run *run, uint32_t length, bool first)
{
	run->traffic_ended = clock_now();
	if (!run->traffic_began)
		run->traffic_began = run->traffic_ended;
	run->figures.sent += run->options->sender;
	if (WITH_REPORT && !first) {
		run->figures.rate.count++;
		run->figures.rate.bytes += length;
	}
}

static const struct figure statistics_figures[] = {
	FIGURE(COUNT, "received", struct statistics, arrived),
	FIGURE(COUNT, "lost", struct statistics, missing),
	FIGURE(COUNT, "duplicated", struct statistics, duplicated),
	FIGURE(COUNT, "out_of_order", struct statistics, out_of_order),
	FIGURE(COUNT, "damaged", struct statistics, damaged, .flags = FIGURE_NOT_TABLE),
	FIGURE(COUNT, "wrong_length", struct statistics, wrong_length, .flags = FIGURE_NOT_TABLE),
	FIGURES_END,
};

static void report_senders(struct report *report, const void *member)
{
	const struct mckey_run *run = *(const struct mckey_run *const *)member;
	char host[ADDRESS_TEXT_SIZE], qpn[16];

	for (size_t i = 0; i < run->sources.count; i++) {
		const struct source *source = run->sources.entries[i];
		const struct statistics statistics = statistics_of(run, source);
		bool known = source->address.family != ADDRESS_NONE;

		snprintf(qpn, sizeof(qpn), "%" PRIu32, source->qpn);
		report_object(report, NULL);
		report_text(report, "address", known ? address_host(&source->address, host) : NULL);
		report_text(report, "qpn", qpn);
		figures_report(report, statistics_figures, &statistics, NULL);
		report_flag(report, "numbered", statistics.total);
		report_end(report);
	}
}

#define ROW(kind, name, member, ...) FIGURE(kind, name, struct mckey_figures, member, __VA_ARGS__)

static const struct figure run_figures[] = {
	ROW(TEXT, "role", role, .flags = FIGURE_LABEL),
	ROW(TEXT, "target", target, .flags = FIGURE_LABEL),
	FIGURES_OF_CODE(OBJECT, "path", struct mckey_figures, path, path_report, .flags = FIGURE_NOT_TABLE),
	FIGURES_OF_CODE(OBJECT, "group", struct mckey_figures, address, report_address, .flags = FIGURE_NOT_TABLE),
	FIGURES_OPEN("connections"),
	ROW(GAUGE, "asked", asked, .flags = FIGURE_NOT_TABLE),
	ROW(COUNT, "joined", joined, .flags = FIGURE_NOT_TABLE),
	ROW(COUNT, "failed", join_failures, .flags = FIGURE_NOT_0),
	FIGURES_CLOSE,
	ROW(HISTOGRAM, "join", join, .flags = FIGURE_NOT_TABLE),
	FIGURES_END,
};

static const struct figure sender_figures[] = {
	FIGURES_ROWS(run_figures),
	FIGURES_OPEN("datagrams"),
	ROW(GAUGE, "size", size, .flags = FIGURE_NOT_TABLE),
	ROW(COUNT, "sent", sent),
	ROW(RATE, "rate", rate),
	ROW(BANDWIDTH, "bytes", rate),
	FIGURES_CLOSE,
	FIGURES_END,
};

static const struct figure receiver_figures[] = {
	FIGURES_ROWS(run_figures),
	FIGURES_OPEN("datagrams"),
	ROW(GAUGE, "size", size, .flags = FIGURE_NOT_TABLE),
	FIGURES_ROWS(statistics_figures, .offset = offsetof(struct mckey_figures, received)),
	ROW(COUNT, "foreign", foreign, .flags = FIGURE_NOT_TABLE),
	ROW(COUNT, "unfollowed", unfollowed, .flags = FIGURE_NOT_TABLE),
	ROW(RATE, "rate", rate),
	ROW(BANDWIDTH, "bytes", rate),
	FIGURES_CLOSE,
	FIGURES_OF_CODE(LIST, "senders", struct mckey_figures, run, report_senders),
	FIGURES_END,
};

/* A sender has no rate before the second datagram of a QP. */
static bool has_rate(const struct mckey_run *run)
{
	return run->figures.rate.count && (run->options->sender || run->traffic_ended - run->traffic_began >= BURST);
}

struct figures mckey_figures_update(void *state)
{
	struct mckey_run *run = state;
	struct mckey_figures *figures = &run->figures;

	figures->role = run->options->sender ? "sender" : "receiver";
	figures->target = run->group_text;
	figures->asked = run->member_count;
	figures->size = run->size;
	figures->unfollowed = run->sources.unfollowed;
	figures->rate.from = has_rate(run) ? run->traffic_began : 0;
	figures->rate.to = run->traffic_ended;
	figures->rate.goes_on = run->phase == MCKEY_SENDING || run->phase == MCKEY_RECEIVING || run->ended_in_traffic;
	figures->run = run;
	figures->received = statistics_of_all(run);
	return (struct figures){ run->options->sender ? sender_figures : receiver_figures, figures, &run->before,
				 sizeof(*figures) };
}
