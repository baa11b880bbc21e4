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
static void end(struct mckey_run *run, enum outcome outcome)
{
	struct environment *environment = run->environment;
	const struct mckey_figures *figures = &run->figures;
	struct mckey_result result = { figures->joined, figures->asked, "connection", "joined", "", "", NULL };

	if (environment->ended)
		return;
	environment_record_outcome(environment, outcome);
	loop_timer_stop(&run->timer);
	for (size_t i = 0; i < figures->asked; i++)
		if (run->members[i].endpoint)
			run->members[i].endpoint->done = true;
	if (result.done == result.asked && !run->count)
		result.note = ", no datagrams requested";
	else if (result.done == result.asked && run->options->sender)
		sender_result(run, &result);
	else if (result.done == result.asked)
		receiver_result(run, &result);
	if (result.done < result.asked)
		environment_record_outcome(environment, OUTCOME_FAILED);
	/* A receiver prints a line for each known sender. */
	if (result.done < result.asked && run->cause && !run->senders.count)
		log_error(run->log, figures->target, "%" PRIu64 " of %" PRIu64 " %s%s not %s%s",
			  result.asked - result.done, result.asked, result.noun, units_plural(result.asked),
			  result.verb, run->cause);
	if (result.hint)
		log_hint(run->log, "%s", result.hint);
	if (run->count && !environment->outcome)
		environment_print(environment, "data transfers complete");
	environment_print(environment, "test complete");
	environment_finish(environment, OUTCOME_OK, run->device, "%" PRIu64 " of %" PRIu64 " %s%s %s%s%s", result.done,
			   result.asked, result.noun, units_plural(result.asked), result.verb, result.note,
			   result.object);
}

/* ---- datagrams ---- */

/* Sends due datagrams, and ends the run after a silence. */
static void proceed(void *context)
{
	struct mckey_run *run = context;
	bool sends = run->options->sender;
	enum outcome outcome = sends ? sender_send(run) : OUTCOME_OK;
	int64_t left = sends ? sender_time_left(run) : receiver_time_left(run);

	run->recheck = false;
	if (outcome || !left)
		end(run, outcome);
	else
		loop_phase_start(run->environment->loop, &run->timer, left, proceed, run);
}

static void begin(void *context)
{
	struct mckey_run *run = context;
	bool sends = run->options->sender;

	if (!environment_ready(run->environment, sends ? NULL : &run->group, sends ? NULL : "receiving data transfers"))
		return;
	run->began = true;
	if (sends)
		environment_print(run->environment, "initiating data transfers");
	if (sends || run->recheck)
		proceed(run);
}

/* ---- members ---- */

static void member_failed(const struct member *member, enum outcome outcome)
{
	struct mckey_run *run = member->run;

	/* The error must precede its hint: end() reports the rest. */
	if (WITH_CAUSES && !member->joined) {
		run->figures.failed++;
		environment_report_error(run->environment);
		member_hint(member);
	}
	end(run, outcome);
}

static void joined(struct member *member, const struct group_address *group)
{
	struct mckey_run *run = member->run;
	char gid[INET6_ADDRSTRLEN];

	member->joined = true;
	inet_ntop(AF_INET6, group->gid, gid, sizeof(gid));
	environment_print(run->environment, "mckey: joined dgid: %s mlid 0x%x sl %d", gid, group->lid,
			  group->service_level);
	mckey_figures_joined(member, group);
	if (run->figures.joined < run->figures.asked)
		return;
	if (!run->count)
		end(run, OUTCOME_OK);
	else if (run->options->sender)
		loop_timer_start(run->environment->loop, &run->timer, sender_pause(run), begin, run);
	else
		begin(run);
}

static void member_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct member *member = context;
	enum outcome outcome = event->kind == EVENT_FAILED ? event->outcome : OUTCOME_OK;

	(void)endpoint;
	if (member->run->environment->ended)
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
	struct mckey_run *run = member->run;
	enum outcome outcome = OUTCOME_FAILED;

	(void)endpoint;
	if (run->environment->ended)
		return;
	if (!completion->status)
		outcome = run->options->sender ? sender_completed(member) : receiver_completed(member, completion);
	if (outcome)
		end(run, outcome);
	else if (run->recheck && run->began)
		proceed(run);
}

static const struct endpoint_handlers handlers = {
	.event = member_event,
	.completion = member_completion,
};

static void start_members(struct mckey_run *run)
{
	enum outcome outcome = addresses_look_up(run);

	if (outcome) {
		end(run, outcome);
		return;
	}
	environment_print(run->environment, "mckey: joining");
	for (size_t i = 0; i < run->figures.asked && !run->environment->ended; i++) {
		outcome = member_start(run, &run->members[i], &handlers);
		if (outcome)
			member_failed(&run->members[i], outcome);
	}
}

/* ---- the command ---- */

static enum outcome mckey_check(struct environment *environment, const void *options)
{
	return addresses_check(options, &environment->log);
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
	run->count = options->size ? (uint32_t)options->count : 0;
	payload_pattern_write(run->pattern, DATAGRAM_SIZE_MAX);
	run->members = environment_allocate(environment, (size_t)options->connections, sizeof(*run->members));
	if (!run->members)
		return OUTCOME_INTERNAL;
	run->figures.target = options->gid ? options->gid : options->group;
	run->figures.asked = run->senders.members = (uint32_t)options->connections;
	run->figures.size = (uint64_t)options->size;
	outcome = channel_create(environment->transport, &run->channel);
	if (outcome)
		return outcome;
	environment_print(environment, "mckey: starting %s", options->sender ? "client" : "server");
	start_members(run);
	return OUTCOME_OK;
}

static void mckey_interrupt(void *context, enum interruption reason)
{
	struct mckey_run *run = context;

	/* run.c reports a deadline. */
	if (reason == INTERRUPTION_SIGNAL)
		run->cause = ": interrupted";
	end(run, OUTCOME_OK);
}

static void mckey_stop(void *context)
{
	struct mckey_run *run = context;

	loop_timer_stop(&run->timer);
	for (size_t i = 0; run->members && i < run->figures.asked; i++) {
		endpoint_destroy(run->members[i].endpoint);
		region_destroy(run->members[i].region);
	}
	while (run->senders.count--) {
		struct sender *next = run->senders.found->next;

		free(run->senders.found);
		run->senders.found = next;
	}
	free(run->members);
	free(run);
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
