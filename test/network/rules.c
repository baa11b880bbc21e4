/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/rules.h"

#include "test/network/network.h"

/* A requester takes an ACK with the PSN of a READ for the READ response (IBTA 9.7.5.1.2), and gets no data. */
static void check_ack_psn(const struct rules *rules, unsigned end, const struct packet *packet)
{
	for (unsigned index = 0; index < rules->count[!end] && index < RULES_READS; index++)
		if (((packet->psn - rules->reads[!end][index].psn) & PSN_MASK) < rules->reads[!end][index].packets)
			violation("an ACK has PSN %u, which belongs to a READ", packet->psn);
}

void rules_check(struct rules *rules, unsigned end, const struct packet *packet, uint32_t mtu)
{
	unsigned slot = rules->count[end] % RULES_READS;

	if (packet->opcode == OPCODE_READ_REQUEST) {
		rules->reads[end][slot].psn = packet->psn;
		rules->reads[end][slot].packets = packet->remote.length ? (packet->remote.length - 1) / mtu + 1 : 1;
		rules->count[end]++;
	} else if (packet->opcode == OPCODE_ACKNOWLEDGE &&
		   syndrome_kind(packet->acknowledgement.syndrome) == SYNDROME_ACK) {
		check_ack_psn(rules, end, packet);
	}
}
