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

/* In the format of the subnet managers' tools. Identifiers are texts, also numeric ones. */
static void report_address(const struct group_address *address, bool known, struct report *report)
{
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
	report_address(address, true, report);
	environment_end_record(run->environment);
}

void figures_joined(struct member *member, const struct group_address *address)
{
	struct mckey_run *run = member->run;
	int64_t time = clock_now() - member->join_began;

	if (!run->joins++) {
		run->address = *address;
		endpoint_path(member->endpoint, &run->path);
	}
	histogram_add(&run->join, time);
	histogram_add(&run->interval_join, time);
	record_joined(member, address);
}

static void counters_add(struct counters *counters, uint32_t length)
{
	counters->datagrams++;
	counters->bytes += length;
}

void figures_counted(struct mckey_run *run, uint32_t length, bool first)
{
	run->traffic_ended = clock_now();
	if (!run->traffic_began)
		run->traffic_began = run->traffic_ended;
	counters_add(&run->counted, length);
	if (first)
		counters_add(&run->firsts, length);
}

static struct traffic traffic_so_far(const struct mckey_run *run)
{
	struct traffic traffic = {
		.counted = run->counted,
		.firsts = run->firsts,
		.foreign = run->foreign,
		.unfollowed = run->sources.unfollowed,
		.joined = run->joins,
		.join_failures = run->join_failures,
	};

	for (size_t i = 0; i < run->sources.count; i++) {
		struct statistics statistics = statistics_of(run, run->sources.entries[i]);

		traffic.lost += statistics.missing;
		traffic.duplicated += statistics.repeated + statistics.late;
		traffic.out_of_order += statistics.out_of_order;
		traffic.damaged += statistics.damaged;
		traffic.wrong_length += statistics.wrong_length;
	}
	return traffic;
}

/* A counter may decrease: a datagram that counted as lost may arrive late. */
static uint64_t increase(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static struct counters counters_since(const struct counters *now, const struct counters *before)
{
	return (struct counters){ now->datagrams - before->datagrams, now->bytes - before->bytes };
}

static struct traffic traffic_since(const struct traffic *now, const struct traffic *before)
{
	return (struct traffic){
		.counted = counters_since(&now->counted, &before->counted),
		.firsts = counters_since(&now->firsts, &before->firsts),
		.lost = increase(now->lost, before->lost),
		.duplicated = increase(now->duplicated, before->duplicated),
		.out_of_order = increase(now->out_of_order, before->out_of_order),
		.damaged = increase(now->damaged, before->damaged),
		.wrong_length = increase(now->wrong_length, before->wrong_length),
		.foreign = increase(now->foreign, before->foreign),
		.unfollowed = increase(now->unfollowed, before->unfollowed),
		.joined = now->joined - before->joined,
		.join_failures = now->join_failures - before->join_failures,
	};
}

/* The time of the traffic, or of its part in the interval. */
static int64_t traffic_time(const struct mckey_run *run, enum report_span span)
{
	bool goes_on = run->phase == MCKEY_SENDING || run->phase == MCKEY_RECEIVING;
	int64_t began = run->traffic_began, ended = run->traffic_ended;

	if (span == REPORT_INTERVAL && began < run->interval_began)
		began = run->interval_began;
	if (span == REPORT_INTERVAL && goes_on)
		ended = clock_now();
	return run->traffic_began ? ended - began : 0;
}

static void report_rates(const struct mckey_run *run, const struct traffic *traffic, struct report *report,
			 enum report_span span)
{
	bool has_first = span == REPORT_TOTAL || run->traffic_began >= run->interval_began;
	struct counters counters = has_first ? counters_since(&traffic->counted, &traffic->firsts) : traffic->counted;
	int64_t time = counters.datagrams || !has_first ? traffic_time(run, span) : 0;

	if (!run->options->sender && time < BURST)
		time = 0;
	report_rate(report, "rate", counters.datagrams, time);
	report_bandwidth(report, "bytes", counters.bytes, time);
}

static void report_datagrams(const struct mckey_run *run, const struct traffic *traffic, struct report *report,
			     enum report_span span)
{
	report_object(report, "datagrams");
	report_count(report, "size", run->size);
	report_count(report, run->options->sender ? "sent" : "received", traffic->counted.datagrams);
	if (!run->options->sender) {
		report_count(report, "lost", traffic->lost);
		report_count(report, "duplicated", traffic->duplicated);
		report_count(report, "out_of_order", traffic->out_of_order);
		report_count(report, "damaged", traffic->damaged);
		report_count(report, "wrong_length", traffic->wrong_length);
		report_count(report, "foreign", traffic->foreign);
		report_count(report, "unfollowed", traffic->unfollowed);
	}
	report_rates(run, traffic, report, span);
	report_end(report);
}

static void report_sender(const struct mckey_run *run, const struct source *source, struct report *report)
{
	struct statistics statistics = statistics_of(run, source);
	char host[ADDRESS_TEXT_SIZE], qpn[16];

	snprintf(qpn, sizeof(qpn), "%" PRIu32, source->qpn);
	report_object(report, NULL);
	report_text(report, "address",
		    source->address.family == ADDRESS_NONE ? NULL : address_host(&source->address, host));
	report_text(report, "qpn", qpn);
	report_count(report, "received", statistics.arrived);
	report_count(report, "lost", statistics.missing);
	report_count(report, "duplicated", statistics.repeated + statistics.late);
	report_count(report, "out_of_order", statistics.out_of_order);
	report_count(report, "damaged", statistics.damaged);
	report_count(report, "wrong_length", statistics.wrong_length);
	report_flag(report, "numbered", statistics.total);
	report_end(report);
}

void figures_report(const struct mckey_run *run, struct report *report, enum report_span span)
{
	struct traffic traffic = traffic_so_far(run);

	if (span == REPORT_INTERVAL)
		traffic = traffic_since(&traffic, &run->before_interval);
	report_text(report, "role", run->options->sender ? "sender" : "receiver");
	report_text(report, "target", run->group_text);
	path_report(report, &run->path);
	report_detail(report, "group");
	report_address(&run->address, run->joins, report);
	report_end(report);
	report_object(report, "connections");
	report_count(report, "asked", run->member_count);
	report_count(report, "joined", traffic.joined);
	report_failed(report, traffic.join_failures);
	report_end(report);
	report_histogram(report, "join", span == REPORT_INTERVAL ? &run->interval_join : &run->join);
	report_datagrams(run, &traffic, report, span);
	if (run->options->sender)
		return;
	report_list(report, "senders");
	for (size_t i = 0; i < run->sources.count && span == REPORT_TOTAL; i++)
		report_sender(run, run->sources.entries[i], report);
	report_end(report);
}

void figures_next_interval(struct mckey_run *run)
{
	run->interval_began = clock_now();
	run->before_interval = traffic_so_far(run);
	memset(&run->interval_join, 0, sizeof(run->interval_join));
}
