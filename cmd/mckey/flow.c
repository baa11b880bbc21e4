/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/mckey/mckey.h"

#include <sys/param.h>

/* Starts at the last sender found: a sender sends many in a row, and several take turns. */
struct sender *sender_find(struct senders *senders, uint32_t qpn, const struct address *address)
{
	struct sender *sender = senders->found;

	for (size_t i = 0; i < senders->count; i++, sender = sender->next)
		if (sender->qpn == qpn && address_same_host(&sender->address, address))
			return senders->found = sender;
	return NULL;
}

void sender_add(struct senders *senders, struct sender *sender)
{
	struct sender *before = senders->count++ ? senders->found : sender;

	sender->next = before->next;
	before->next = senders->found = sender;
}

const char *sender_name(const struct sender *sender, char text[SENDER_NAME_SIZE])
{
	char host[ADDRESS_TEXT_SIZE];
	bool known = sender->address.family != ADDRESS_NONE;

	log_text(text, SENDER_NAME_SIZE, "QP %u%s%s", sender->qpn, known ? " at " : "",
		 known ? address_host(&sender->address, host) : "");
	return text;
}

/*
 * Whether a number arrives for the first time: unknown if it is late, and a number with its remainder has arrived
 * since.
 */
static bool is_new(struct flow *flow, uint32_t number)
{
	uint32_t *seen = &flow->seen[number % FLOW_WINDOW];

	if (*seen > number)
		return false;
	*seen = number + 1;
	flow->next = MAX(flow->next, *seen);
	return true;
}

bool flow_count(struct flow *flow, struct sender *sender, const struct datagram_mark *mark, bool damaged)
{
	if (!mark->total) {
		sender->unmarked++;
	} else if (is_new(flow, mark->sequence)) {
		sender->numbered = true;
		sender->counts.out_of_order += mark->sequence + 1 < flow->next;
	} else {
		sender->counts.duplicated++;
		return false;
	}
	sender->counts.damaged += damaged;
	sender->counts.received++;
	flow->arrived++;
	return true;
}

struct counts sender_counts(const struct senders *senders, const struct sender *sender, uint64_t expected)
{
	struct counts counts = sender->counts;

	/* A datagram with a damaged mark has an unknown number: it fills a gap. */
	for (size_t i = 0; i < senders->members; i++) {
		uint64_t all = MAX(expected, sender->flows[i].next);

		counts.lost += all - MIN(all, sender->flows[i].arrived);
	}
	/* Among numbered datagrams, one without a mark has a damaged mark. */
	counts.damaged += sender->numbered ? sender->unmarked : 0;
	counts.unnumbered = !sender->numbered;
	return counts;
}

struct counts senders_counts(const struct senders *senders, uint64_t expected)
{
	const struct sender *sender = senders->found;
	struct counts all = { 0 };

	for (size_t i = 0; i < senders->count; i++, sender = sender->next) {
		const struct counts counts = sender_counts(senders, sender, expected);

		all.received += counts.received;
		all.lost += counts.lost;
		all.duplicated += counts.duplicated;
		all.out_of_order += counts.out_of_order;
		all.damaged += counts.damaged;
		all.unnumbered += counts.unnumbered;
	}
	return all;
}
