/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mckey: joins a multicast group with one or more datagram QPs, and sends to it or receives from it. The peer may be
 * the stock tool: each QP sends -C datagrams of -S bytes, with its QP number as immediate data. Our datagrams also have
 * a sequence number (datagram.h).
 *
 *   look names up -> join with every QP -> pause and send, or receive -> print the result
 */
#include "cmd/mckey/mckey.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>

static const uint16_t port_spaces[] = { PORT_SPACE_UDP, PORT_SPACE_IPOIB };

/* clang-format off */
#define ROW(kind, letter, name, member, ...) OPTION_ROW(kind, letter, name, struct mckey_options, member, __VA_ARGS__)
#define FLAG(letter, name, member, ...)      OPTION_FLAG_ROW(letter, name, struct mckey_options, member, __VA_ARGS__)

static const struct option options_table[] = {
	ROW(OPTION_TEXT, 'm', "group", group, "ADDRESS", "", "",
	    OPTION_HELP("Join this multicast group; 0.0.0.0 requests one"),
	    .operand = OPERAND_UNLESS_GIVEN, .exclusive = ONE_GROUP, .brief = true),
	ROW(OPTION_TEXT, 'M', "mgid", gid, "GID", "", "",
	    OPTION_HELP("Join this InfiniBand multicast GID; 0 requests one"),
	    .tags = FOR_ANOTHER, .exclusive = ONE_GROUP),
	FLAG('s', "sender", sender, OPTION_HELP("Send datagrams to the group instead of receiving them"),
	     .needed_by = FOR_CLIENT | FOR_SENDER, .excluded_by = FOR_SERVER, .brief = true),
	ROW(OPTION_TEXT, 'b', "bind", bind, "ADDRESS", "", "", OPTION_HELP("Use the device of this local address"),
	    .needed_by = FOR_ANOTHER, .brief = true),
	OPTION_ALIAS_ROW("source", "bind", "ADDRESS", OPTION_HELP("Same as --bind, as in rping")),
	ROW(OPTION_INTEGER, 'c', "connections", connections, "N", "1 to 1024", "1",
	    OPTION_HELP("Join with this many queue pairs")),
	ROW(OPTION_INTEGER, 'C', "count", count, "N", "0 to 2147483647", "10",
	    OPTION_HELP("Datagrams per sending queue pair; 0 only joins"), .brief = true),
	ROW(OPTION_SIZE, 'S', "size", size, "BYTES", "0 to 4K", "100", /* 4K is the largest IB MTU */
	    OPTION_HELP("Bytes per datagram, at most the MTU; 0 only joins"), .brief = true),
	ROW(OPTION_WORD, 'p', "port-space", port_space, "SPACE", "one of udp, ipoib", "udp",
	    OPTION_HELP("Port space: udp (0x0111) or ipoib (0x0002)", "udp"), .section = SECTION_PATH),
	OPTION_VALUES_ROW(port_spaces),
	FLAG('o', "send-only", send_only,
	     OPTION_HELP("Join as send-only full member"),
	     .tags = FOR_CLIENT, .section = SECTION_PATH),
	FLAG('l', "no-loopback", no_loopback, OPTION_HELP("Do not deliver the datagrams to receivers on this host"),
	     .section = SECTION_PATH),
	ROW(OPTION_DURATION, 0, "idle-timeout", idle_timeout, "TIME", "1ms to 24h", "5s",
	    OPTION_HELP("Receiver: maximum time to the next datagram, after the first"), .tags = FOR_SERVER,
	    .section = SECTION_LIMITS),
	ROW(OPTION_DURATION, 0, "pause", pause, "TIME", "0 to 1h", "",
	    OPTION_HELP("Wait between joining and sending",
			"3s on InfiniBand, else 100ms"), .tags = FOR_CLIENT, .section = SECTION_PACE),
#if WITH_EXTRAS
	ROW(OPTION_INTEGER, 0, "rate", rate, "N", "1 to 1000000000", "",
	    OPTION_HELP("Datagrams per second per sending queue pair", "no limit"),
	    .tags = FOR_CLIENT, .section = SECTION_PACE, .brief = true),
#endif
	TYPE_OF_SERVICE_OPTION(struct mckey_options, 0),
	TRANSPORT_OPTION(struct mckey_options, TRANSPORT_DEFAULT),
	DEBUG_OPTION(struct mckey_options, 0),
	OPTION_REST(endpoint_option_table),
};
/* clang-format on */

/* ---- the end ---- */

/* Only the first call has an effect. */
static void end(struct mckey *mckey, enum outcome outcome)
{
	struct run *run = mckey->run;
	const struct mckey_figures *figures = &mckey->figures;
	struct mckey_result result = { figures->joined, figures->asked, "connection", "joined", "", "", NULL };

	if (run->ended)
		return;
	run_record_outcome(run, outcome);
	loop_timer_stop(&mckey->timer);
	for (size_t i = 0; i < figures->asked; i++)
		if (mckey->members[i].endpoint)
			mckey->members[i].endpoint->done = true;
	if (result.done == result.asked && !mckey->count)
		result.note = ", no datagrams requested";
	else if (result.done == result.asked && mckey->options->sender)
		sender_result(mckey, &result);
	else if (result.done == result.asked)
		receiver_result(mckey, &result);
	if (result.done < result.asked)
		run_record_outcome(run, OUTCOME_FAILED);
	/* A receiver prints a line for each known sender. */
	if (result.done < result.asked && mckey->cause && !mckey->senders.count)
		log_error(mckey->log, figures->target, "%" PRIu64 " of %" PRIu64 " %s%s not %s%s",
			  result.asked - result.done, result.asked, result.noun, units_plural(result.asked),
			  result.verb, mckey->cause);
	if (result.hint)
		log_hint(mckey->log, "%s", result.hint);
	if (mckey->count && !run->outcome)
		run_print(run, "data transfers complete");
	run_print(run, "test complete");
	run_finish(run, OUTCOME_OK, mckey->device, "%" PRIu64 " of %" PRIu64 " %s%s %s%s%s", result.done, result.asked,
		   result.noun, units_plural(result.asked), result.verb, result.note, result.object);
}

/* ---- datagrams ---- */

/* Sends due datagrams, and ends the run after a silence. */
static void proceed(void *context)
{
	struct mckey *mckey = context;
	bool sends = mckey->options->sender;
	enum outcome outcome = sends ? sender_send(mckey) : OUTCOME_OK;
	int64_t left = sends ? sender_time_left(mckey) : receiver_time_left(mckey);

	mckey->recheck = false;
	if (outcome || !left)
		end(mckey, outcome);
	else
		loop_phase_start(mckey->run->loop, &mckey->timer, left, proceed, mckey);
}

static void begin(void *context)
{
	struct mckey *mckey = context;
	bool sends = mckey->options->sender;

	if (!run_setup_done(mckey->run, sends ? NULL : &mckey->group, sends ? NULL : "receiving data transfers"))
		return;
	mckey->began = true;
	if (sends)
		run_print(mckey->run, "initiating data transfers");
	if (sends || mckey->recheck)
		proceed(mckey);
}

/* ---- members ---- */

static void member_failed(const struct member *member, enum outcome outcome)
{
	struct mckey *mckey = member->mckey;

	/* The error must precede its hint: end() reports the rest. */
	if (WITH_DIAGNOSTICS && !member->joined) {
		mckey->figures.failed++;
		run_report_error(mckey->run);
		member_hint(member);
	}
	end(mckey, outcome);
}

static void joined(struct member *member, const struct group_address *group)
{
	struct mckey *mckey = member->mckey;
	char gid[INET6_ADDRSTRLEN];

	member->joined = true;
	inet_ntop(AF_INET6, group->gid, gid, sizeof(gid));
	run_print(mckey->run, "mckey: joined dgid: %s mlid 0x%x sl %d", gid, group->lid, group->service_level);
	mckey_figures_joined(member, group);
	if (mckey->figures.joined < mckey->figures.asked)
		return;
	if (!mckey->count)
		end(mckey, OUTCOME_OK);
	else if (mckey->options->sender)
		loop_timer_start(mckey->run->loop, &mckey->timer, sender_pause(mckey), begin, mckey);
	else
		begin(mckey);
}

static void member_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct member *member = context;
	enum outcome outcome = event->kind == EVENT_FAILED ? event->outcome : OUTCOME_OK;

	(void)endpoint;
	if (member->mckey->run->ended)
		return;
	member->join_time += event->took;
	if (event->kind == EVENT_ADDRESS_RESOLVED)
		outcome = member_join(member);
	if (outcome)
		member_failed(member, outcome);
	else if (event->kind == EVENT_JOINED)
		joined(member, event->group);
}

static void member_completion(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	struct member *member = context;
	struct mckey *mckey = member->mckey;
	enum outcome outcome = OUTCOME_FAILED;

	(void)endpoint;
	if (mckey->run->ended)
		return;
	if (!completion->status)
		outcome = mckey->options->sender ? sender_completed(member) : receiver_completed(member, completion);
	if (outcome)
		end(mckey, outcome);
	else if (mckey->recheck && mckey->began)
		proceed(mckey);
}

static const struct endpoint_handlers handlers = {
	.event = member_event,
	.completion = member_completion,
};

static void start_members(struct mckey *mckey)
{
	enum outcome outcome = addresses_look_up(mckey);

	if (outcome) {
		end(mckey, outcome);
		return;
	}
	run_print(mckey->run, "mckey: joining");
	for (size_t i = 0; i < mckey->figures.asked && !mckey->run->ended; i++) {
		outcome = member_start(mckey, &mckey->members[i], &handlers);
		if (outcome)
			member_failed(&mckey->members[i], outcome);
	}
}

/* ---- the command ---- */

static enum outcome mckey_check(struct run *run, const void *options)
{
	return addresses_check(options, &run->log);
}

static enum outcome mckey_start(struct run *run, const void *context, void **state)
{
	const struct mckey_options *options = context;
	struct mckey *mckey = *state = run_allocate(run, 1, sizeof(*mckey));
	enum outcome outcome;

	if (!mckey)
		return OUTCOME_INTERNAL;
	mckey->run = run;
	mckey->options = options;
	mckey->log = &run->log;
	mckey->count = options->size ? (uint32_t)options->count : 0;
	payload_pattern_write(mckey->pattern, DATAGRAM_SIZE_MAX);
	mckey->members = run_allocate(run, (size_t)options->connections, sizeof(*mckey->members));
	if (!mckey->members)
		return OUTCOME_INTERNAL;
	mckey->figures.target = options->gid ? options->gid : options->group;
	mckey->figures.asked = mckey->senders.members = (uint32_t)options->connections;
	mckey->figures.size = (uint64_t)options->size;
	outcome = channel_create(run->transport, &mckey->channel);
	if (outcome)
		return outcome;
	run_print(run, "mckey: starting %s", options->sender ? "client" : "server");
	start_members(mckey);
	return OUTCOME_OK;
}

static void mckey_interrupt(void *context, enum interruption reason)
{
	struct mckey *mckey = context;

	/* command.c reports a deadline. */
	if (reason == INTERRUPTION_SIGNAL)
		mckey->cause = ": interrupted";
	end(mckey, OUTCOME_OK);
}

static void mckey_stop(void *context)
{
	struct mckey *mckey = context;

	loop_timer_stop(&mckey->timer);
	for (size_t i = 0; mckey->members && i < mckey->figures.asked; i++) {
		endpoint_destroy(mckey->members[i].endpoint);
		region_destroy(mckey->members[i].region);
	}
	while (mckey->senders.count--) {
		struct sender *next = mckey->senders.found->next;

		free(mckey->senders.found);
		mckey->senders.found = next;
	}
	free(mckey->members);
	free(mckey);
}

const struct command mckey_command = {
	.name = "mckey",
	.summary = COMMAND_TEXT("join a multicast group, and send or receive datagrams"),
	.synopsis = "[-m] ADDRESS [-s] [-b ADDRESS] [OPTION]...\n-M GID -b ADDRESS [-s] [OPTION]...\n",
	.examples = COMMAND_TEXT("239.1.1.1                   # receive ten datagrams\n"
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
	.stop = CLEAN_UP(mckey_stop),
};
