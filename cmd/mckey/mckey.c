/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mckey: joins a multicast group with one or more datagram queues, and sends to it or receives from it. Its peer may be
 * the stock tool: datagrams of -S bytes whose immediate value is the number of the queue that sends them, -C of them
 * from each queue. Ours are numbered too (datagram.h).
 *
 *   look the names up -> join with every queue -> pause and send, or receive -> report -> leave -> end
 */
#include "cmd/mckey/mckey.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/table.h"

enum {
	CONNECTIONS_MOST = 1024,
	DATAGRAM_MOST = 4096, /* the largest MTU there is */
};

/* A subnet manager may need seconds until every switch forwards the group, which is what the stock tool waits. */
#define PAUSE_INFINIBAND (3 * CLOCK_NS_PER_S)
/* A switch that snoops IGMP forwards as soon as it has seen the receiver's report; we only let a peer get that far. */
#define PAUSE_ELSEWHERE (100 * CLOCK_NS_PER_MS)

static const struct option_word port_spaces[] = {
	{ "udp", PORT_SPACE_UDP },
	{ "ipoib", PORT_SPACE_IPOIB },
	{ NULL, 0 },
};

/* clang-format off */
static const struct option options_table[] = {
	OPTION_ROW(OPTION_TEXT, 'm', "group", struct mckey_options, group, .argument = "ADDRESS",
		   .help = "Join this IP multicast group; 0.0.0.0 asks the subnet manager for one"),
	OPTION_ROW(OPTION_TEXT, 'M', "mgid", struct mckey_options, gid, .argument = "GID",
		   .help = "Join this InfiniBand multicast GID; 0 asks the subnet manager for one"),
	OPTION_ROW(OPTION_FLAG, 's', "sender", struct mckey_options, sender,
		   .help = "Send datagrams to the group instead of receiving them"),
	OPTION_ROW(OPTION_TEXT, 'b', "bind", struct mckey_options, bind, .argument = "ADDRESS",
		   .help = "Use the device of this local address"),
	OPTION_ROW(OPTION_INTEGER, 'c', "connections", struct mckey_options, connections, .minimum = 1,
		   .maximum = CONNECTIONS_MOST, .initial = 1, .argument = "N",
		   .help = "Join with this many queue pairs"),
	OPTION_ROW(OPTION_INTEGER, 'C', "count", struct mckey_options, count, .minimum = 0,
		   .maximum = DATAGRAM_TOTAL_MOST, .initial = 10, .argument = "N",
		   .help = "Datagrams of each sending queue pair; 0 joins, prints the group and leaves"),
	OPTION_ROW(OPTION_SIZE, 'S', "size", struct mckey_options, size, .minimum = 0, .maximum = DATAGRAM_MOST,
		   .initial = 100, .argument = "BYTES",
		   .help = "Bytes of each datagram, at most the MTU of the port; 0 is as -C 0"),
	OPTION_ROW(OPTION_WORD, 'p', "port-space", struct mckey_options, port_space, .initial = PORT_SPACE_UDP,
		   .initial_text = "udp", .argument = "SPACE", .words = port_spaces,
		   .help = "Port space: udp (0x0111) or ipoib (0x0002)"),
	OPTION_ROW(OPTION_FLAG, 'o', "send-only", struct mckey_options, send_only,
		   .help = "Join as send-only full member: sends, but does not receive or announce itself"),
	OPTION_ROW(OPTION_FLAG, 'l', "no-loopback", struct mckey_options, no_loopback,
		   .help = "Keep the datagrams from receivers on this host"),
	OPTION_ROW(OPTION_FLAG, 0, "own-qp", struct mckey_options, own_queue,
		   .help = "Create, move and attach the queue pair with plain verbs"),
	OPTION_ROW(OPTION_DURATION, 0, "idle-timeout", struct mckey_options, idle_timeout, .minimum = CLOCK_NS_PER_MS,
		   .maximum = 86400 * CLOCK_NS_PER_S, .initial = 5 * CLOCK_NS_PER_S, .argument = "TIME",
		   .help = "Longest wait of a receiver for the next datagram, once the first one came"),
	OPTION_ROW(OPTION_DURATION, 0, "pause", struct mckey_options, pause, .minimum = 0,
		   .maximum = 3600 * CLOCK_NS_PER_S, .initial = PAUSE_OF_FABRIC, .argument = "TIME",
		   .initial_text = "3s on InfiniBand, else 100ms",
		   .help = "Wait between joining and sending, for the fabric to set up the group"),
	COMMON_OPTIONS(struct mckey_options, 0),
	{ .name = NULL },
};

static const struct option_rule rules[] = {
	{ OPTION_ONE_OF, "group", "mgid" },
	{ OPTION_EXCLUDES, "group", "mgid" },
	{ OPTION_NEEDS, "mgid", "bind" },
	{ OPTION_NEEDS, "send-only", "sender" }, /* nothing would ever come */
	{ OPTION_NEEDS, "pause", "sender" },
	{ OPTION_EXCLUDES, "idle-timeout", "sender" },
	{ .first = NULL },
};
/* clang-format on */

/* Numbers only; "0" is the address 0, as in the stock tool's manual. */
static bool parse_group(const struct mckey_options *options, struct address *group)
{
	const char *text = options->gid ? options->gid : options->group;

	if (!strcmp(text, "0")) {
		*group = (struct address){ .family = options->gid ? ADDRESS_GID : ADDRESS_IP4 };
		return true;
	}
	return address_parse(text, options->gid ? ADDRESS_FORMAT_GID : ADDRESS_FORMAT_IP, group);
}

static bool is_group(const struct address *address)
{
	return address_is_multicast(address) || address_is_any(address);
}

static enum outcome check_group(const struct mckey_options *options, const struct log *log, const struct address *group)
{
	if (is_group(group))
		return OUTCOME_OK;
	if (options->gid)
		log_error(log, "-M, --mgid", "%s is not a multicast GID: those begin with ff", options->gid);
	else if (group->family == ADDRESS_IP4)
		log_error(log, "-m, --group", "%s is not a multicast address: those are 224.0.0.0 to 239.255.255.255",
			  options->group);
	else
		log_error(log, "-m, --group", "%s is not a multicast address: those begin with ff", options->group);
	return OUTCOME_USAGE;
}

static enum outcome wrong_family(const struct mckey_options *options, const struct log *log)
{
	log_error(log, "-b, --bind", "%s and -m %s are not of the same address family", options->bind, options->group);
	return OUTCOME_USAGE;
}

static enum outcome check(struct environment *environment, const void *owner)
{
	const struct mckey_options *options = owner;
	const struct log *log = &environment->log;
	struct address group, source;
	bool numeric = parse_group(options, &group);

	if (options->gid && !numeric) {
		log_error(log, "-M, --mgid", "'%s' is not a GID: those are written as IPv6 addresses, or 0",
			  options->gid);
		return OUTCOME_USAGE;
	}
	if (numeric && check_group(options, log, &group))
		return OUTCOME_USAGE;
	if (!options->bind || !address_parse(options->bind, ADDRESS_FORMAT_IP, &source))
		return OUTCOME_OK;
	if (address_is_multicast(&source) || (options->gid && address_is_any(&source))) {
		log_error(log, "-b, --bind", "%s is not the address of a local device", options->bind);
		return OUTCOME_USAGE;
	}
	if (numeric && !options->gid && source.family != group.family)
		return wrong_family(options, log);
	return OUTCOME_OK;
}

/* At once, so that a script can wait for the line. */
void run_say(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	putchar('\n');
	fflush(stdout);
}

static const char *device(const struct mckey_run *run)
{
	for (size_t i = 0; i < run->member_count; i++)
		if (run->members[i].endpoint && run->members[i].endpoint->domain)
			return run->members[i].endpoint->domain->device;
	return "no device";
}

void run_tell(const struct mckey_run *run, const char *format, ...)
{
	va_list list;

	printf("%s: ", run->log->name);
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf(" (%s, %s)\n", transport_name(run->environment->transport), device(run));
	fflush(stdout);
}

const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

void run_hint(struct mckey_run *run, const char *text)
{
	if (!run->hinted)
		log_hint(run->log, "%s", text);
	run->hinted = true;
}

static void report(struct mckey_run *run)
{
	if (run->join_failures && run->member_count > 1)
		log_error(run->log, run->group_text, "%zu of %zu connections did not join", run->join_failures,
			  run->member_count);
	if (!run->undecided && !run->count && run->join_failures < run->member_count)
		run_tell(run, "%zu of %zu connection%s joined, no datagrams asked for",
			 run->member_count - run->join_failures, run->member_count, plural(run->member_count));
}

static void finish(void *owner)
{
	struct mckey_run *run = owner;

	for (size_t i = 0; i < run->member_count; i++)
		environment_note(run->environment, member_leave(&run->members[i]));
	run_say("test complete");
	run_say("return status %d", run->environment->outcome);
	environment_finish(run->environment, OUTCOME_OK);
}

void run_end(struct mckey_run *run, enum outcome outcome)
{
	if (run->phase == RUN_ENDING)
		return;
	environment_note(run->environment, outcome);
	resolver_stop(&run->resolver);
	loop_timer_stop(&run->idle);
	loop_timer_stop(&run->grace);
	report(run);
	if (run->phase == RUN_SENDING || run->phase == RUN_PAUSING)
		sender_report(run);
	else if (run->phase == RUN_RECEIVING)
		receiver_report(run);
	run->phase = RUN_ENDING;
	loop_timer_start(run->environment->loop, &run->step, 0, finish, run);
}

static void pause_over(void *owner)
{
	sender_start(owner);
}

static int64_t pause_time(const struct mckey_run *run)
{
	if (run->options->pause != PAUSE_OF_FABRIC)
		return run->options->pause;
	for (size_t i = 0; i < run->member_count; i++)
		if (run->members[i].state == MEMBER_JOINED)
			return run->members[i].endpoint->domain->fabric == FABRIC_INFINIBAND ? PAUSE_INFINIBAND
											     : PAUSE_ELSEWHERE;
	return 0;
}

void run_settled(struct mckey_run *run)
{
	if (run->phase == RUN_SENDING) {
		sender_settled(run);
	} else if (run->phase == RUN_RECEIVING) {
		receiver_settled(run);
	} else if (run->undecided) {
		return;
	} else if (!run->joined || !run->count) {
		run_end(run, OUTCOME_OK);
	} else if (!run->options->sender) {
		receiver_start(run);
	} else if (run->phase == RUN_JOINING) {
		run->phase = RUN_PAUSING;
		loop_timer_start(run->environment->loop, &run->step, pause_time(run), pause_over, run);
	}
}

static void join(struct mckey_run *run)
{
	run->phase = RUN_JOINING;
	run_say("mckey: joining");
	for (size_t i = 0; i < run->member_count && run->phase == RUN_JOINING; i++)
		member_start(&run->members[i]);
}

/* The first multicast address of the name, with a local one of the same family if -b was given. */
static void choose(struct mckey_run *run)
{
	bool any_group = false;

	for (size_t i = 0; i < run->groups.count; i++) {
		run->group = run->groups.addresses[i];
		if (!is_group(&run->group))
			continue;
		any_group = true;
		if (!run->options->bind) {
			join(run);
			return;
		}
		for (size_t j = 0; j < run->sources.count; j++) {
			run->source = run->sources.addresses[j];
			if (run->source.family == run->group.family || run->group.family == ADDRESS_GID) {
				join(run);
				return;
			}
		}
	}
	if (any_group)
		wrong_family(run->options, run->log);
	else
		log_error(run->log, "-m, --group", "%s has no multicast address", run->group_text);
	run_end(run, OUTCOME_USAGE);
}

static void keep(struct mckey_run *run, struct found_addresses *found, enum outcome outcome,
		 const struct address *addresses, size_t count)
{
	if (outcome || !count) {
		run_end(run, outcome ? outcome : OUTCOME_NO_CONNECTION);
		return;
	}
	found->count = count < ADDRESS_RESOLVE_MOST ? count : ADDRESS_RESOLVE_MOST;
	memcpy(found->addresses, addresses, found->count * sizeof(*addresses));
}

static void source_found(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct mckey_run *run = owner;

	keep(run, &run->sources, outcome, addresses, count);
	if (run->sources.count)
		choose(run);
}

static void look_up_source(struct mckey_run *run)
{
	if (run->options->bind)
		resolver_start(&run->resolver, run->environment->loop, run->log, run->options->bind, ADDRESS_FORMAT_ANY,
			       run->options->common.timeout, source_found, run);
	else
		choose(run);
}

static void group_found(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct mckey_run *run = owner;

	keep(run, &run->groups, outcome, addresses, count);
	if (run->groups.count)
		look_up_source(run);
}

static void begin(void *owner)
{
	struct mckey_run *run = owner;
	struct address group;

	if (parse_group(run->options, &group)) {
		keep(run, &run->groups, OUTCOME_OK, &group, 1);
		look_up_source(run);
	} else {
		resolver_start(&run->resolver, run->environment->loop, run->log, run->group_text, ADDRESS_FORMAT_ANY,
			       run->options->common.timeout, group_found, run);
	}
}

static void stop(void *owner)
{
	struct mckey_run *run = owner;

	resolver_stop(&run->resolver);
	loop_timer_stop(&run->step);
	loop_timer_stop(&run->idle);
	loop_timer_stop(&run->grace);
	for (size_t i = 0; i < run->member_count; i++)
		member_release(&run->members[i]);
	source_table_clear(&run->heard);
	free(run->members);
	free(run);
}

static enum outcome start(struct environment *environment, const void *owner, void **state)
{
	const struct mckey_options *options = owner;
	struct mckey_run *run = calloc(1, sizeof(*run));
	enum outcome outcome;

	*state = NULL;
	if (!run) {
		log_errno(&environment->log, NULL, ENOMEM, "start");
		return OUTCOME_INTERNAL;
	}
	run->environment = environment;
	run->options = options;
	run->log = &environment->log;
	run->group_text = options->gid ? options->gid : options->group;
	run->size = (uint32_t)options->size;
	run->count = run->size ? (uint32_t)options->count : 0;
	run->member_count = run->undecided = (size_t)options->connections;
	run->heard.streams = run->member_count;
	run->members = calloc(run->member_count, sizeof(*run->members));
	if (!run->members) {
		log_errno(&environment->log, NULL, ENOMEM, "start");
		free(run);
		return OUTCOME_INTERNAL;
	}
	for (size_t i = 0; i < run->member_count; i++)
		run->members[i].run = run;
	outcome = channel_create(environment->transport, &run->channel);
	if (outcome) {
		free(run->members);
		free(run);
		return outcome;
	}
	run_say("mckey: starting %s", options->sender ? "client" : "server");
	loop_timer_start(environment->loop, &run->step, 0, begin, run);
	*state = run;
	return OUTCOME_OK;
}

static void interrupt(void *owner, enum interruption reason)
{
	struct mckey_run *run = owner;

	run->interrupted = reason == INTERRUPTION_DEADLINE ? "out of time" : "interrupted";
	if (run->phase == RUN_LOOKING_UP || run->phase == RUN_JOINING) {
		log_error(run->log, run->group_text, "%s before all connections had joined", run->interrupted);
		environment_note(run->environment, OUTCOME_FAILED);
	}
	run_end(run, OUTCOME_OK);
}

const struct command mckey_command = {
	.name = "mckey",
	.summary = "join a multicast group, and send or receive datagrams in it",
	.synopsis = "-m ADDRESS [-s] [-b ADDRESS] [OPTION]...\n-M GID -b ADDRESS [-s] [OPTION]...\n",
	.options = options_table,
	.rules = rules,
	.options_size = sizeof(struct mckey_options),
	.check = check,
	.start = start,
	.interrupt = interrupt,
	.stop = stop,
};
