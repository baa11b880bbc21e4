/* SPDX-License-Identifier: BSD-2-Clause */
/* A member of the group: IDLE -> RESOLVING -> JOINING -> JOINED, and FAILED from any state. */
#include <arpa/inet.h>

#include "cmd/mckey/mckey.h"

void member_fail(struct member *member, enum outcome outcome)
{
	struct mckey_run *run = member->run;
	enum member_state before = member->state;

	if (before == MEMBER_FAILED)
		return;
	member->state = MEMBER_FAILED;
	environment_record_outcome(run->environment, outcome);
	if (before == MEMBER_JOINED) {
		run->joined--;
	} else {
		run->joins_pending--;
		run->figures.join_failures++;
	}
	mckey_member_changed(run);
}

/* Ends the run if the port supports no multicast or no datagram of -S bytes: no other member could do better. */
static bool member_check_port(struct member *member)
{
	struct mckey_run *run = member->run;
	const struct endpoint *endpoint = member->endpoint;
	const char *device = endpoint->domain->device;

	/*
	 * iWARP has no unreliable datagrams, so no multicast. The exit code is that of a missing device, so that a CI
	 * which skips a test without a device skips this one, too.
	 */
	if (!endpoint->domain->multicast) {
		log_error(run->log, run->group_text, "%s has no multicast%s", device,
			  endpoint->domain->fabric == FABRIC_IWARP ? ": iWARP has no datagrams" : "");
		mckey_end(run, OUTCOME_NO_DEVICE);
		return false;
	}
	if (run->count && run->size > endpoint->max_datagram) {
		log_error(run->log, run->group_text,
			  "-S %u does not fit into a datagram: the active MTU of %s is %u bytes", run->size, device,
			  endpoint->max_datagram);
		mckey_end(run, OUTCOME_USAGE);
		return false;
	}
	return true;
}

/* In these states a failure has one likely cause. */
static void print_hint(struct member *member)
{
	struct mckey_run *run = member->run;
	const struct mckey_options *options = run->options;
	const struct domain *domain = member->endpoint->domain;

	if (member->state == MEMBER_RESOLVING && !options->bind)
		mckey_hint(run, "if no route leads to the group through the right interface, name its address with -b");
	if (member->state != MEMBER_JOINING || !domain || domain->removed)
		return;
	if (domain->fabric == FABRIC_ROCE && address_is_any(&run->group))
		mckey_hint(run,
			   "only the subnet manager of an InfiniBand fabric assigns group addresses; name one here");
	else if (domain->fabric == FABRIC_ROCE && run->group.family == ADDRESS_IP6 && !domain->ip6_multicast)
		mckey_hint(run, "Linux's RDMA CM takes no IPv6 groups on RoCE v2; use an IPv4 group");
	else if (domain->fabric == FABRIC_ROCE && run->group.family == ADDRESS_GID)
		mckey_hint(run, "native multicast GIDs are for InfiniBand; on RoCE v2 use an IPv4 group with -m");
}

static void set_depths(struct member *member)
{
	struct endpoint_options *options = &member->endpoint->options;
	uint32_t max = member->endpoint->domain->max_qp_wr;

	options->send_depth = options->receive_depth = 1;
	if (!member->run->options->sender)
		options->receive_depth = receiver_depth(member);
	else
		options->send_depth = max < SENDER_SLOTS ? max : SENDER_SLOTS;
}

static void member_join(struct member *member)
{
	struct mckey_run *run = member->run;
	enum outcome outcome;

	run->verdict.device = member->endpoint->domain->device;
	if (!member_check_port(member))
		return;
	set_depths(member);
	outcome = endpoint_create_qp(member->endpoint);
	if (!outcome && !run->options->sender)
		outcome = receiver_prepare(member);
	if (outcome) {
		member_fail(member, outcome);
		return;
	}
	member->state = MEMBER_JOINING;
	outcome = endpoint_join(member->endpoint, member);
	if (outcome) {
		print_hint(member);
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
	mckey_figures_joined(member, group);
	environment_print(run->environment, "mckey: joined dgid: %s mlid 0x%x sl %d", text, group->lid,
			  group->service_level);
	log_debug(run->log, "QP %u joined; the group's QP is 0x%x, its queue key 0x%x", member->endpoint->qpn,
		  group->qpn, group->qkey);
	member->state = MEMBER_JOINED;
	member->ever_joined = true;
	run->joins_pending--;
	run->joined++;
	mckey_member_changed(run);
}

static void member_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct member *member = context;

	(void)endpoint;
	if (member->run->phase == MCKEY_ENDING || member->state == MEMBER_FAILED)
		return;
	if (event->kind == EVENT_FAILED) {
		print_hint(member);
		member_fail(member, event->outcome);
	} else if (event->kind == EVENT_ADDRESS_RESOLVED && member->state == MEMBER_RESOLVING) {
		member_join(member);
	} else if (event->kind == EVENT_JOINED && member->state == MEMBER_JOINING) {
		joined(member, event->group);
	}
}

static void member_completion(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	struct member *member = context;

	(void)endpoint;
	if (member->run->phase == MCKEY_ENDING || member->state == MEMBER_FAILED)
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
		.path = &run->path_options,
		.log = &run->repeats.log,
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
	member->state = MEMBER_RESOLVING;
	member->join_began = clock_now();
	outcome = endpoint_resolve(member->endpoint, options->bind ? &run->source : NULL, &run->group);
	if (outcome) {
		print_hint(member);
		member_fail(member, outcome);
	}
}

void member_release(struct member *member)
{
	endpoint_destroy(member->endpoint);
	region_destroy(member->region);
	member->endpoint = NULL;
	member->region = NULL;
}
