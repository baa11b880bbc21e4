/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection manager: opening, closing, MADs in and out. manager.h draws the whole. */
#include "transport/soft/manager.h"

#include <stdlib.h>
#include <string.h>

struct soft_manager *soft_manager_open(struct soft_transport *transport)
{
	struct soft_manager *manager = calloc(1, sizeof(*manager));

	if (!manager)
		return NULL;
	manager->transport = transport;
	manager->unconfirmed.last = &manager->unconfirmed.first;
	manager->ended.last = &manager->ended.first;
	manager->secret = soft_random();
	manager->counter = (uint32_t)soft_random();
	soft_number_prepare(&manager->identifiers);
	return manager;
}

/*
 * There is no time left to repeat a DREQ, or to answer a repeated one: more at once make the loss of all unlikely. A
 * kernel that hears no DREP tries for a minute.
 */
static void last_words(struct soft_manager *manager)
{
	const struct link_table *table = &manager->tables[LINK_BY_ID];
	int64_t now = clock_now();

	for (unsigned count = 0; count < MANAGER_LAST_WORDS; count++)
		for (size_t i = 0; i < table->size; i++)
			for (struct soft_link *link = table->buckets[i]; link; link = link->next_in[LINK_BY_ID])
				if (link->state == LINK_DREQ_SENT)
					soft_link_say_again(link);
				else if (link->left_at && now - link->left_at < MANAGER_LEFT_RECENTLY)
					soft_ending_let_go(link);
}

void soft_manager_close(struct soft_manager *manager)
{
	const struct link_table *table;

	if (!manager)
		return;
	last_words(manager);
	soft_flush(manager->transport);
	table = &manager->tables[LINK_BY_ID];
	for (size_t i = 0; i < table->size; i++)
		while (table->buckets[i])
			soft_link_free(table->buckets[i]);
	for (unsigned index = 0; index < LINK_INDEXES; index++)
		free(manager->tables[index].buckets);
	free(manager);
}

/* ---- out ---- */

void soft_manager_gid(const struct address *address, uint8_t gid[MAD_GID_SIZE])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (address->family == ADDRESS_IP4) {
		memcpy(gid, mapped, sizeof(mapped));
		memcpy(gid + sizeof(mapped), address->bytes, 4);
	} else {
		memcpy(gid, address->bytes, MAD_GID_SIZE);
	}
}

void soft_manager_send(struct soft_manager *manager, const struct soft_path *path, const uint8_t bytes[MAD_SIZE])
{
	struct packet packet = {
		.opcode = OPCODE_DATAGRAM,
		.pkey = PACKET_PKEY,
		.destination = MAD_QUEUE_NUMBER,
		.datagram = { .key = MAD_QUEUE_KEY, .source = MAD_QUEUE_NUMBER },
		.length = MAD_SIZE,
	};

	if (manager->outgoing_count == MANAGER_OUTGOING) {
		soft_flush(manager->transport);
		manager->outgoing_count = 0;
	}
	packet.psn = manager->psn++ & PSN_MASK;
	packet.payload = memcpy(manager->outgoing[manager->outgoing_count++], bytes, MAD_SIZE);
	soft_transmit(manager->transport, path, &packet);
}

/* ---- in ---- */

/* Numbers 0 and 1 are everybody's management queues, the last one is a group's. */
bool soft_manager_is_queue(uint32_t number)
{
	return number > MAD_QUEUE_NUMBER && number < PSN_MASK;
}

/* An answer to nothing that we remember: its sender may stop. */
static void answer_stray(struct soft_manager *manager, struct soft_socket *socket, const struct address *from,
			 const struct mad *mad)
{
	uint8_t bytes[MAD_SIZE];
	struct soft_path path;
	struct mad rej = {
		.kind = MAD_REJ,
		.transaction = mad->transaction,
		.local_id = mad->remote_id,
		.remote_id = mad->local_id,
		.rej = { .answered = MAD_ANSWERED_REP, .reason = MAD_REASON_INVALID_ID },
	};

	soft_path_back(socket, from, &path);
	if (mad->kind == MAD_DREQ) {
		soft_ending_confirm(manager, &path, mad);
		return;
	}
	mad_write(&rej, bytes);
	soft_manager_send(manager, &path, bytes);
}

/* Else the peer would ask again until its time-out. Whether there is such a connection or service is not told. */
static void answer_unsupported(struct soft_manager *manager, struct soft_socket *socket, const struct address *from,
			       const struct mad *mad)
{
	bool path = mad->kind == MAD_LAP;
	uint8_t bytes[MAD_SIZE];
	struct soft_path back;
	struct mad answer = {
		.kind = path ? MAD_APR : MAD_SIDR_REP,
		.transaction = mad->transaction,
		.local_id = path ? mad->remote_id : mad->local_id,
		.remote_id = mad->local_id,
		.status = path ? MAD_APR_UNSUPPORTED : MAD_SIDR_UNSUPPORTED,
	};

	soft_path_back(socket, from, &back);
	mad_write(&answer, bytes);
	soft_manager_send(manager, &back, bytes);
}

/*
 * A peer that gave up waiting for our REP or RTU may not have heard our identifier: it names its own, and its GUID
 * (IBTA 12.6.7.2, reason 4). Both are no secret, so they count only in the states in which that can be (12.9).
 */
static struct soft_link *find_rejected(struct soft_manager *manager, const struct mad *mad,
				       const struct soft_socket *socket, const struct address *from)
{
	struct soft_link *link = NULL;

	if (mad->rej.reason == MAD_REASON_TIMEOUT && mad->rej.information_length >= 8)
		link = soft_link_find_peer(manager, bytes_read(mad->rej.information, 8), mad->local_id, socket, from);
	if (link && (link->state == LINK_REQ_RECEIVED || link->state == LINK_REP_SENT))
		return link;
	return soft_link_find(manager, mad->remote_id, mad->local_id, socket, from);
}

static void needs_time(struct soft_link *link, const struct mad *mad)
{
	if ((link->state == LINK_REQ_SENT && mad->mra.answered == MAD_ANSWERED_REQ) ||
	    (link->state == LINK_REP_SENT && mad->mra.answered == MAD_ANSWERED_REP))
		soft_link_be_patient(link);
}

void soft_manager_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
			  const uint8_t *bytes, size_t length, const struct icrc_case *open)
{
	struct soft_manager *manager = transport->manager;
	struct soft_link *link;
	struct mad mad;

	if (!mad_parse(bytes, length, &mad))
		return;
	/* Nothing that a stranger could not know is in a REQ: whoever sent it has to confirm its connection. */
	if (mad.kind == MAD_REQ) {
		soft_passive_request(manager, socket, from, &mad);
		return;
	}
	if (mad.kind == MAD_SIDR_REQ || mad.kind == MAD_LAP) {
		answer_unsupported(manager, socket, from, &mad);
		return;
	}
	link = mad.kind == MAD_REJ ? find_rejected(manager, &mad, socket, from)
				   : soft_link_find(manager, mad.remote_id, mad.local_id, socket, from);
	/* A REP may come after its link was given up, whose end the peer has not heard of. */
	if (!link || (mad.kind == MAD_REP && link->state == LINK_ENDED)) {
		if (mad.kind == MAD_REP || mad.kind == MAD_DREQ)
			answer_stray(manager, socket, from, &mad);
		return;
	}
	if (!icrc_case_holds(open))
		return;
	switch (mad.kind) {
	case MAD_REP:
		soft_active_reply(link, &mad);
		break;
	case MAD_RTU:
		if (link->state == LINK_REJECTED)
			soft_ending_repeat(link, &mad);
		else
			soft_passive_ready(link);
		break;
	case MAD_MRA:
		needs_time(link, &mad);
		break;
	case MAD_REJ:
		soft_ending_rejected(link, &mad);
		break;
	case MAD_DREQ:
		soft_ending_disconnected(link, &mad);
		break;
	case MAD_DREP:
		soft_ending_confirmed(link);
		break;
	default:
		break;
	}
}
