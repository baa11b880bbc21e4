/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mckey: joins a multicast group with one or more datagram QPs, and sends to it or receives from it. The peer may be
 * the stock tool: each QP sends -C datagrams of -S bytes, with its QP number as immediate data. Our datagrams also have
 * a sequence number (datagram.h).
 *
 *   look names up -> join with every QP -> pause and send, or receive -> print the result -> end
 */
#include "cmd/mckey/mckey.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/table.h"

/* Until the subnet manager has set up the group in every switch. The stock tool waits as long. */
#define PAUSE_INFINIBAND (3 * CLOCK_NS_PER_S)
/* Until a receiver that starts at the same time has joined; IGMP snooping then forwards the group at once. */
#define PAUSE_ROCE (100 * CLOCK_NS_PER_MS)

static const uint16_t port_spaces[] = { PORT_SPACE_UDP, PORT_SPACE_IPOIB };

/* clang-format off */
#define ROW(kind, letter, name, member, ...) OPTION_ROW(kind, letter, name, struct mckey_options, member, __VA_ARGS__)
#define FLAG(letter, name, member, ...)      OPTION_FLAG_ROW(letter, name, struct mckey_options, member, __VA_ARGS__)

static const struct option options_table[] = {
	ROW(OPTION_TEXT, 'm', "group", group, "ADDRESS", "", "",
	    OPTION_HELP("Join this IP multicast group; 0.0.0.0 asks the subnet manager for one"),
	    .operand = OPERAND_UNLESS_GIVEN, .exclusive = ONE_GROUP, .brief = true),
	ROW(OPTION_TEXT, 'M', "mgid", gid, "GID", "", "",
	    OPTION_HELP("Join this InfiniBand multicast GID; 0 asks the subnet manager for one"),
	    .tags = FOR_ANOTHER, .exclusive = ONE_GROUP),
	FLAG('s', "sender", sender, OPTION_HELP("Send datagrams to the group instead of receiving them"),
	     .needed_by = FOR_CLIENT | FOR_SENDER, .excluded_by = FOR_SERVER, .brief = true),
	ROW(OPTION_TEXT, 'b', "bind", bind, "ADDRESS", "", "", OPTION_HELP("Use the device of this local address"),
	    .needed_by = FOR_ANOTHER, .brief = true),
	OPTION_ALIAS_ROW("source", "bind", "ADDRESS", OPTION_HELP("Same as --bind, as in rping")),
	ROW(OPTION_INTEGER, 'c', "connections", connections, "N", "1 to 1024", "1",
	    OPTION_HELP("Join with this many queue pairs")),
	ROW(OPTION_INTEGER, 'C', "count", count, "N", "0 to 2147483647", "10",
	    OPTION_HELP("Datagrams of each sending queue pair; 0 joins, prints the group and leaves"), .brief = true),
	ROW(OPTION_SIZE, 'S', "size", size, "BYTES", "0 to 4K", "100", /* 4K is the largest IB MTU */
	    OPTION_HELP("Bytes of each datagram, at most the MTU of the port; 0 is as -C 0"), .brief = true),
	ROW(OPTION_WORD, 'p', "port-space", port_space, "SPACE", "one of udp, ipoib", "udp",
	    OPTION_HELP("Port space: udp (0x0111) or ipoib (0x0002)", "udp"), .section = SECTION_PATH),
	OPTION_VALUES_ROW(port_spaces),
	FLAG('o', "send-only", send_only,
	     OPTION_HELP("Join as send-only full member: sends, but does not receive or announce itself"),
	     .tags = FOR_CLIENT, .section = SECTION_PATH),
	FLAG('l', "no-loopback", no_loopback, OPTION_HELP("Do not deliver the datagrams to receivers on this host"),
	     .section = SECTION_PATH),
	ROW(OPTION_DURATION, 0, "idle-timeout", idle_timeout, "TIME", "1ms to 24h", "5s",
	    OPTION_HELP("Receiver: maximum time to wait for the next datagram, after the first"), .tags = FOR_SERVER,
	    .section = SECTION_LIMITS),
	ROW(OPTION_DURATION, 0, "pause", pause, "TIME", "0 to 1h", "",
	    OPTION_HELP("Wait between joining and sending, so that the fabric can set up the group",
			"3s on InfiniBand, else 100ms"), .tags = FOR_CLIENT, .section = SECTION_PACE),
#if WITH_EXTRAS
	ROW(OPTION_INTEGER, 0, "rate", rate, "N", "1 to 1000000000", "",
	    OPTION_HELP("Datagrams per second of each sending queue pair", "no limit"),
	    .tags = FOR_CLIENT, .section = SECTION_PACE, .brief = true),
#endif
	TYPE_OF_SERVICE_OPTION(struct mckey_options, 0),
	TRANSPORT_OPTION(struct mckey_options, TRANSPORT_DEFAULT),
	DEBUG_OPTION(struct mckey_options, 0),
	OPTION_REST(endpoint_option_table),
};
/* clang-format on */

/* ---- result lines ---- */

void mckey_hint(struct mckey_run *run, const char *text)
{
	if (!run->hinted)
		log_hint(run->log, "%s", text);
	run->hinted = true;
}

/* ---- the phases ---- */

static void print_joins(struct mckey_run *run)
{
	bool join_only = run->figures.joined && !run->joins_pending && !run->count;

	if (run->figures.join_failures && run->member_count > 1)
		log_error(run->log, run->group_text, "%" PRIu64 " of %zu connections did not join",
			  run->figures.join_failures, run->member_count);
	if (run->phase > MCKEY_JOINING)
		return;
	run->verdict.has_figures = join_only;
	snprintf(run->verdict_text, sizeof(run->verdict_text), "%" PRIu64 " of %zu connection%s joined%s",
		 run->figures.joined, run->member_count, units_plural(run->member_count),
		 join_only ? ", no datagrams requested" : "");
}

static void finish(void *context)
{
	struct mckey_run *run = context;

	environment_print(run->environment, "test complete");
	environment_finish(run->environment, OUTCOME_OK, &run->verdict, "%s", run->verdict_text);
}

static void stop_waiting(struct mckey_run *run)
{
	loop_timer_stop(&run->step);
	loop_timer_stop(&run->pace);
	loop_timer_stop(&run->idle);
	loop_timer_stop(&run->grace);
}

void mckey_end(struct mckey_run *run, enum outcome outcome)
{
	if (run->phase == MCKEY_ENDING)
		return;
	environment_record_outcome(run->environment, outcome);
	stop_waiting(run);
	run->ended = true;
	print_joins(run);
	if (run->phase == MCKEY_SENDING || run->phase == MCKEY_PAUSING)
		sender_print(run);
	else if (run->phase == MCKEY_RECEIVING)
		statistics_print(run);
	run->ended_in_traffic = run->phase == MCKEY_SENDING || run->phase == MCKEY_RECEIVING;
	run->phase = MCKEY_ENDING;
	for (size_t i = 0; i < run->member_count; i++)
		if (run->members[i].endpoint)
			run->members[i].endpoint->done = true;
	loop_timer_start(run->environment->loop, &run->step, 0, finish, run);
}

static void mckey_pause_over(void *context)
{
	sender_start(context);
}

static int64_t pause_time(const struct mckey_run *run)
{
	if (options_given(options_table, run->environment->given, "pause"))
		return run->options->pause;
	for (size_t i = 0; i < run->member_count; i++)
		if (run->members[i].state == MEMBER_JOINED)
			return run->members[i].endpoint->domain->fabric == FABRIC_INFINIBAND ? PAUSE_INFINIBAND
											     : PAUSE_ROCE;
	return 0;
}

void mckey_member_changed(struct mckey_run *run)
{
	if (run->phase == MCKEY_SENDING) {
		sender_check_end(run);
	} else if (run->phase == MCKEY_RECEIVING) {
		receiver_check_end(run);
	} else if (run->joins_pending) {
		return;
	} else if (!run->joined || !run->count) {
		mckey_end(run, OUTCOME_OK);
	} else if (!run->options->sender) {
		receiver_start(run);
	} else if (run->phase == MCKEY_JOINING) {
		run->phase = MCKEY_PAUSING;
		loop_timer_start(run->environment->loop, &run->step, pause_time(run), mckey_pause_over, run);
	}
}

void mckey_join(struct mckey_run *run)
{
	run->phase = MCKEY_JOINING;
	environment_print(run->environment, "mckey: joining");
	for (size_t i = 0; i < run->member_count && run->phase == MCKEY_JOINING; i++)
		member_start(&run->members[i]);
}

/* ---- the command ---- */

static enum outcome mckey_check(struct environment *environment, const void *options)
{
	return addresses_check(options, &environment->log);
}

static void mckey_begin(void *context)
{
	struct mckey_run *run = context;
	enum outcome outcome = addresses_look_up(run);

	if (outcome)
		mckey_end(run, outcome);
	else
		mckey_join(run);
}

static void mckey_stop(void *context)
{
	struct mckey_run *run = context;

	stop_waiting(run);
	for (size_t i = 0; i < run->member_count; i++)
		member_release(&run->members[i]);
	source_table_clear(&run->sources);
	free(run->members);
	free(run);
}

static enum outcome mckey_start(struct environment *environment, const void *context, void **state)
{
	const struct mckey_options *options = context;
	struct mckey_run *run = *state = environment_allocate(environment, 1, sizeof(*run));
	enum outcome outcome;

	if (!run)
		return OUTCOME_INTERNAL;
	run->environment = environment;
	run->options = options;
	run->log = &environment->log;
	repeats_initialise(&run->repeats, run->log);
	run->path_options = options->common.path;
	/* Datagrams are not acknowledged: mckey has no options for retries. */
	run->path_options.ack_timeout = run->path_options.retry = run->path_options.rnr_retry = PATH_UNSET;
	run->group_text = options->gid ? options->gid : options->group;
	run->size = (uint32_t)options->size;
	run->count = run->size ? (uint64_t)options->count : 0;
	payload_pattern_write(run->pattern, DATAGRAM_SIZE_MAX);
	run->members = environment_allocate(environment, (size_t)options->connections, sizeof(*run->members));
	if (!run->members)
		return OUTCOME_INTERNAL;
	run->member_count = run->joins_pending = run->sources.windows = (size_t)options->connections;
	for (size_t i = 0; i < run->member_count; i++)
		run->members[i].run = run;
	outcome = channel_create(environment->transport, &run->channel);
	if (outcome)
		return outcome;
	environment_print(run->environment, "mckey: starting %s", options->sender ? "client" : "server");
	loop_timer_start(environment->loop, &run->step, 0, mckey_begin, run);
	return OUTCOME_OK;
}

static void mckey_interrupt(void *context, enum interruption reason)
{
	struct mckey_run *run = context;

	run->deadline_passed = reason == INTERRUPTION_DEADLINE;
	run->interrupted = true;
	if (run->phase == MCKEY_STARTING || run->phase == MCKEY_JOINING) {
		if (!run->deadline_passed)
			log_error(run->log, run->group_text, "interrupted before all connections had joined");
		environment_record_outcome(run->environment, OUTCOME_FAILED);
	}
	mckey_end(run, OUTCOME_OK);
}

const struct command mckey_command = {
	.name = "mckey",
	.summary = "join a multicast group, and send or receive datagrams in it",
	.synopsis = "[-m] ADDRESS [-s] [-b ADDRESS] [OPTION]...\n-M GID -b ADDRESS [-s] [OPTION]...\n",
	.examples = OPTION_EXAMPLES("239.1.1.1                   # receive ten datagrams\n"
				    "239.1.1.1 -s                # send them\n"
				    "239.1.1.1 -C 0              # only join\n"),
	.options = options_table,
	.options_size = sizeof(struct mckey_options),
	.linked = true,
	.prints_status = true,
	.check = mckey_check,
	.start = mckey_start,
	.interrupt = mckey_interrupt,
	.figures = WITH_REPORT ? mckey_figures_update : NULL,
	.stop = mckey_stop,
};
