/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of one member of the group: IDLE -> RESOLVING -> JOINING -> JOINED, or FAILED from anywhere. */
#include <arpa/inet.h>
#include <string.h>

#include "cmd/mckey/mckey.h"

static const char *const state_texts[] = {
	[MEMBER_IDLE] = "idle",	    [MEMBER_RESOLVING] = "resolving", [MEMBER_JOINING] = "joining",
	[MEMBER_JOINED] = "joined", [MEMBER_FAILED] = "failed",
};

static void enter(struct member *member, enum member_state state)
{
	struct mckey_run *run = member->run;

	log_debug(run->log, "member %zu of %zu: %s -> %s", (size_t)(member - run->members) + 1, run->member_count,
		  state_texts[member->state], state_texts[state]);
	member->state = state;
}

void member_fail(struct member *member, enum outcome outcome)
{
	struct mckey_run *run = member->run;
	enum member_state before = member->state;

	if (before == MEMBER_FAILED)
		return;
	enter(member, MEMBER_FAILED);
	environment_note(run->environment, outcome);
	if (before == MEMBER_JOINED) {
		run->joined--;
	} else {
		run->undecided--;
		run->join_failures++;
	}
	run_settled(run);
}

/* Prints what no member can do here, however many there are. */
static bool port_is_fit(struct member *member)
{
	struct mckey_run *run = member->run;
	const struct endpoint *endpoint = member->endpoint;
	const char *device = endpoint->domain->device;

	/*
	 * iWARP has no unreliable datagrams and so no multicast. For this test the device is as good as none, and a CI
	 * that skips a test for want of a device should skip this one: hence that exit code.
	 */
	if (!endpoint->domain->multicast) {
		log_error(run->log, run->group_text, "%s has no multicast: its transport%s has no datagrams", device,
			  endpoint->domain->fabric == FABRIC_IWARP ? ", iWARP," : "");
		run_end(run, OUTCOME_NO_DEVICE);
		return false;
	}
	if (run->count && run->size > endpoint->datagram_most) {
		log_error(run->log, run->group_text,
			  "-S %u does not fit into a datagram: the active MTU of %s is %u bytes", run->size, device,
			  endpoint->datagram_most);
		run_end(run, OUTCOME_USAGE);
		return false;
	}
	return true;
}

/* Most failures have one likely cause at this point of a member's life, and one thing to try. */
static void hint(struct member *member)
{
	struct mckey_run *run = member->run;
	const struct mckey_options *options = run->options;
	const struct domain *domain = member->endpoint->domain;

	if (member->state == MEMBER_RESOLVING && !options->bind)
		run_hint(run,
			 "if no route leads to the group through an RDMA device, name a local address of one with -b");
	if (member->state != MEMBER_JOINING || !domain || domain->removed)
		return;
	if (domain->fabric == FABRIC_ROCE && address_is_any(&run->group))
		run_hint(run, "only the subnet manager of an InfiniBand fabric assigns group addresses; name one here");
	else if (domain->fabric == FABRIC_ROCE && run->group.family == ADDRESS_IP6 &&
		 transport_opens_devices(transport_name(run->environment->transport)))
		run_hint(run, "Linux's RDMA CM takes no IPv6 groups on RoCE v2; use an IPv4 group");
	else if (domain->fabric == FABRIC_ROCE && run->group.family == ADDRESS_GID)
		run_hint(run, "native multicast GIDs are for InfiniBand; on RoCE v2 use an IPv4 group with -m");
}

static void set_depths(struct member *member)
{
	struct endpoint_options *options = &member->endpoint->options;
	uint32_t most = member->endpoint->domain->most_queue_entries;

	options->send_depth = options->receive_depth = 1;
	if (!member->run->options->sender)
		options->receive_depth = receiver_depth(member);
	else
		options->send_depth = most < SENDER_SLOTS ? most : SENDER_SLOTS;
}

static void join(struct member *member)
{
	struct mckey_run *run = member->run;
	enum outcome outcome;

	if (!port_is_fit(member))
		return;
	set_depths(member);
	outcome = endpoint_open_queue(member->endpoint);
	if (!outcome && !run->options->sender)
		outcome = receiver_prepare(member);
	if (outcome) {
		member_fail(member, outcome);
		return;
	}
	enter(member, MEMBER_JOINING);
	outcome = endpoint_join(member->endpoint, member);
	if (outcome) {
		hint(member);
		member_fail(member, outcome);
	}
}

static void joined(struct member *member, const struct group_address *group)
{
	struct mckey_run *run = member->run;
	char text[INET6_ADDRSTRLEN];

	if (group->context != member) {
		log_error(run->log, run->group_text, "joined: the event does not carry the context of its join");
		member_fail(member, OUTCOME_INTERNAL);
		return;
	}
	inet_ntop(AF_INET6, group->gid, text, sizeof(text));
	figures_joined(member, group);
	run_say(run, "mckey: joined dgid: %s mlid 0x%x sl %d", text, group->lid, group->service_level);
	log_debug(run->log, "QP %u joined; the group's QP is 0x%x, its queue key 0x%x", member->endpoint->qpn,
		  group->qpn, group->qkey);
	enter(member, MEMBER_JOINED);
	member->took_part = true;
	run->undecided--;
	run->joined++;
	run_settled(run);
}

static void member_event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct member *member = owner;

	(void)endpoint;
	if (member->run->phase == RUN_ENDING || member->state == MEMBER_FAILED)
		return;
	if (event->kind == EVENT_FAILED) {
		hint(member);
		member_fail(member, event->outcome);
	} else if (event->kind == EVENT_ADDRESS_RESOLVED && member->state == MEMBER_RESOLVING) {
		join(member);
	} else if (event->kind == EVENT_JOINED && member->state == MEMBER_JOINING) {
		joined(member, event->group);
	}
}

static void member_completion(void *owner, struct endpoint *endpoint, const struct completion *completion)
{
	struct member *member = owner;

	(void)endpoint;
	if (member->run->phase == RUN_ENDING || member->state == MEMBER_FAILED)
		return;
	if (completion->status)
		member_fail(member, OUTCOME_FAILED);
	else if (completion->kind == WORK_SEND)
		sender_completion(member, completion);
	else
		receiver_completion(member, completion);
}

static const struct endpoint_handlers handlers = {
	.event = member_event,
	.completion = member_completion,
};

void member_start(struct member *member)
{
	struct mckey_run *run = member->run;
	const struct mckey_options *options = run->options;
	const struct endpoint_options endpoint_options = {
		.port_space = (enum port_space)options->port_space,
		.timeout = options->common.timeout,
		.path = &run->way,
		.own_queue = options->own_queue,
		.send_only = options->send_only,
		.no_loopback = options->no_loopback,
	};
	enum outcome outcome;

	outcome =
		endpoint_create(ENDPOINT_GROUP, run->channel, &endpoint_options, &handlers, member, &member->endpoint);
	if (outcome) {
		member_fail(member, outcome);
		return;
	}
	enter(member, MEMBER_RESOLVING);
	member->asked = clock_now();
	outcome = endpoint_resolve(member->endpoint, options->bind ? &run->source : NULL, &run->group);
	if (outcome) {
		hint(member);
		member_fail(member, outcome);
	}
}

enum outcome member_leave(struct member *member)
{
	/* A failed endpoint has nothing to leave with; destroying it leaves. */
	if (!member->endpoint || member->endpoint->state != ENDPOINT_JOINED)
		return OUTCOME_OK;
	return endpoint_leave(member->endpoint);
}

void member_release(struct member *member)
{
	endpoint_destroy(member->endpoint);
	region_destroy(member->region);
	member->endpoint = NULL;
	member->region = NULL;
}
