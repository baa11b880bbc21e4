/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/mckey/flow.h"

#include <sys/param.h>

/* Starts at the last one found: a sender sends many in a row, and several take turns. */
struct sender *sender_find(struct senders *senders, uint32_t qpn, const struct address *address)
{
	for (size_t i = 0; i < senders->count; i++) {
		size_t index = (senders->last + i) % senders->count;
		struct sender *sender = senders->entries[index];

		if (sender->qpn != qpn || !address_same_host(&sender->address, address))
			continue;
		senders->last = index;
		return sender;
	}
	return NULL;
}

const char *sender_name(const struct sender *sender, char text[SENDER_NAME_SIZE])
{
	char host[ADDRESS_TEXT_SIZE];
	bool known = sender->address.family != ADDRESS_NONE;

	log_text(text, SENDER_NAME_SIZE, "QP %u%s%s", sender->qpn, known ? " at " : "",
		 known ? address_host(&sender->address, host) : "");
	return text;
}

static uint64_t *seen_word(struct flow *flow, uint32_t number, uint64_t *bit)
{
	*bit = UINT64_C(1) << number % 64;
	return &flow->seen[number % FLOW_WINDOW / 64];
}

/* Whether a number comes for the first time. Below the window that is unknown. */
static bool is_new(struct flow *flow, uint32_t number)
{
	uint32_t lowest = number < FLOW_WINDOW ? 0 : number + 1 - FLOW_WINDOW;
	uint64_t bit, *word;

	for (uint32_t i = MAX(lowest, flow->next); i <= number; i++) {
		word = seen_word(flow, i, &bit);
		*word &= ~bit;
	}
	flow->next = MAX(flow->next, number + 1);
	word = seen_word(flow, number, &bit);
	if (flow->next - number > FLOW_WINDOW || *word & bit)
		return false;
	*word |= bit;
	return true;
}

bool flow_count(struct flow *flow, struct sender *sender, const struct datagram_mark *mark, bool damaged)
{
	if (!mark) {
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
	/* Among numbered datagrams one without a mark has a damaged mark. */
	counts.damaged += sender->numbered ? sender->unmarked : 0;
	return counts;
}

struct counts senders_counts(const struct senders *senders, uint64_t expected)
{
	struct counts all = { 0 };

	for (size_t i = 0; i < senders->count; i++) {
		const struct counts counts = sender_counts(senders, senders->entries[i], expected);

		all.received += counts.received;
		all.lost += counts.lost;
		all.duplicated += counts.duplicated;
		all.out_of_order += counts.out_of_order;
		all.damaged += counts.damaged;
	}
	return all;
}
