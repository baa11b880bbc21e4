/* SPDX-License-Identifier: BSD-2-Clause */
/* A link: its identifiers, how it is found again, its states, its repeats, its time after death. */
#include "transport/soft/cm/cm_internal.h"

#include <stdlib.h>
#include <string.h>

#include "transport/soft/delivery.h"

#define BIT(state) (1u << (state))

enum {
	FIRST_TABLE_SIZE = 64,
	HALF_BITS = 16, /* of an identifier */
	NO_GUID = 0,
};

struct state_row {
	const char *text;
	unsigned next;
	bool repeats; /* the message, until the peer answers it */
	bool half_open;
};

#define OVER (BIT(CM_TIMEWAIT) | BIT(CM_REJECTED))

/* clang-format off */
static const struct state_row states[] = {
	/*                      text            next                                    repeats  half open */
	[CM_IDLE] =          { "idle",          BIT(CM_REQ_SENT) | BIT(CM_REQ_RECEIVED), false, false },
	[CM_REQ_SENT] =     { "REQ sent",     BIT(CM_ESTABLISHED) | OVER,           true,    false },
	[CM_REQ_RECEIVED] = { "REQ received", BIT(CM_REP_SENT) | OVER,              false,   true },
	[CM_REP_SENT] =     { "REP sent",     BIT(CM_ESTABLISHED) | OVER,           true,    true },
	[CM_ESTABLISHED] =  { "established",  BIT(CM_DREQ_SENT) | BIT(CM_TIMEWAIT),  false,   false },
	[CM_DREQ_SENT] =    { "DREQ sent",    BIT(CM_TIMEWAIT),                        true,    false },
	[CM_TIMEWAIT] =        { "timewait",        0,                                      false,   false },
	[CM_REJECTED] =     { "rejected",     0,                                      false,   false },
};
/* clang-format on */

/* ---- finding ---- */

/* With a secret in it, so that peers cannot choose numbers that all fall into one bucket. */
static uint32_t hash_of(const struct soft_cm *cm, const struct address *from, uint64_t guid, uint32_t number)
{
	uint64_t words[2] = { 0 };
	uint64_t hash;

	memcpy(words, from->bytes, from->family == ADDRESS_IP4 ? 4 : sizeof(from->bytes));
	hash = soft_number_mix(cm->secret ^ words[0]);
	hash = soft_number_mix(hash ^ words[1]);
	hash = soft_number_mix(hash ^ guid);
	return (uint32_t)soft_number_mix(hash ^ number);
}

static uint32_t hash_of_id(const struct soft_cm *cm, uint32_t id)
{
	return (uint32_t)soft_number_mix(cm->secret ^ id);
}

static struct soft_cm_id *first_in(const struct cm_table *table, uint32_t hash)
{
	return table->size ? table->buckets[hash & (table->size - 1)] : NULL;
}

static void put(struct cm_table *table, enum cm_index index, struct soft_cm_id *cm_id)
{
	struct soft_cm_id **bucket = &table->buckets[cm_id->hash[index] & (table->size - 1)];

	cm_id->next_in[index] = *bucket;
	*bucket = cm_id;
}

/* Returns false if there is no table at all. One that cannot grow works on, with longer chains. */
static bool make_room(struct cm_table *table, enum cm_index index)
{
	struct cm_table larger = { .size = table->size ? table->size * 2 : FIRST_TABLE_SIZE, .count = table->count };

	if (table->count < table->size)
		return true;
	larger.buckets = calloc(larger.size, sizeof(*larger.buckets));
	if (!larger.buckets)
		return table->size;
	for (size_t i = 0; i < table->size; i++) {
		struct soft_cm_id *next;

		for (struct soft_cm_id *cm_id = table->buckets[i]; cm_id; cm_id = next) {
			next = cm_id->next_in[index];
			put(&larger, index, cm_id);
		}
	}
	free(table->buckets);
	*table = larger;
	return true;
}

static void take_out(struct soft_cm_id *cm_id, enum cm_index index)
{
	struct cm_table *table = &cm_id->cm->tables[index];
	struct soft_cm_id **place;

	if (!(cm_id->indexed & BIT(index)))
		return;
	cm_id->indexed &= ~BIT(index);
	place = &table->buckets[cm_id->hash[index] & (table->size - 1)];
	while (*place != cm_id)
		place = &(*place)->next_in[index];
	*place = cm_id->next_in[index];
	table->count--;
}

/* Anew, if it is in the table already. */
static bool insert(struct soft_cm_id *cm_id, enum cm_index index, uint32_t hash)
{
	struct cm_table *table = &cm_id->cm->tables[index];

	take_out(cm_id, index);
	if (!make_room(table, index))
		return false;
	cm_id->hash[index] = hash;
	put(table, index, cm_id);
	table->count++;
	cm_id->indexed |= BIT(index);
	return true;
}

static bool is_peer(const struct soft_cm_id *cm_id, const struct address *from)
{
	return address_same_host(&cm_id->agreement.path.peer, from);
}

static struct soft_cm_id *find_id(const struct soft_cm *cm, uint32_t id)
{
	uint32_t hash = hash_of_id(cm, id);
	struct soft_cm_id *cm_id = first_in(&cm->tables[CM_BY_ID], hash);

	while (cm_id && cm_id->local_id != id)
		cm_id = cm_id->next_in[CM_BY_ID];
	return cm_id;
}

static bool is_between(const struct soft_cm_id *cm_id, const struct soft_socket *socket, const struct address *from)
{
	return cm_id->agreement.path.socket == socket && is_peer(cm_id, from);
}

struct soft_cm_id *soft_cm_id_find(struct soft_cm *cm, uint32_t id, uint32_t remote_id,
				   const struct soft_socket *socket, const struct address *from)
{
	struct soft_cm_id *cm_id = find_id(cm, id);

	if (!cm_id || !is_between(cm_id, socket, from) || (cm_id->peer_known && cm_id->remote_id != remote_id))
		return NULL;
	return cm_id;
}

struct soft_cm_id *soft_cm_id_find_peer(struct soft_cm *cm, uint64_t guid, uint32_t remote_id,
					const struct soft_socket *socket, const struct address *from)
{
	uint32_t hash = hash_of(cm, from, guid, remote_id);
	struct soft_cm_id *cm_id = first_in(&cm->tables[CM_BY_PEER], hash);

	while (cm_id && !(cm_id->remote_id == remote_id && cm_id->peer_guid == guid && is_between(cm_id, socket, from)))
		cm_id = cm_id->next_in[CM_BY_PEER];
	return cm_id;
}

/*
 * The first link of a queue pair lies under its address and number alone. Anybody may name that number with ever new
 * GUIDs: further links lie under theirs too, so that no chain gets long by that.
 */
static struct soft_cm_id *first_of_queue(const struct soft_cm *cm, uint64_t guid, uint32_t qp,
					 const struct address *from)
{
	return first_in(&cm->tables[CM_BY_QPN], hash_of(cm, from, guid, qp));
}

static bool is_of_queue(const struct soft_cm_id *cm_id, uint32_t qp, const struct address *from)
{
	return cm_id->agreement.peer_qpn == qp && is_peer(cm_id, from);
}

/* By its hash too: a further link may lie in the same chain by chance. */
static struct soft_cm_id *find_any(const struct soft_cm *cm, uint32_t qp, const struct address *from)
{
	uint32_t hash = hash_of(cm, from, NO_GUID, qp);
	struct soft_cm_id *cm_id = first_in(&cm->tables[CM_BY_QPN], hash);

	while (cm_id && !(cm_id->hash[CM_BY_QPN] == hash && is_of_queue(cm_id, qp, from)))
		cm_id = cm_id->next_in[CM_BY_QPN];
	return cm_id;
}

struct soft_cm_id *soft_cm_id_find_qpn(struct soft_cm *cm, uint64_t guid, uint32_t qp, const struct address *from)
{
	const uint64_t places[] = { NO_GUID, guid };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct soft_cm_id *cm_id = first_of_queue(cm, places[i], qp, from);

		while (cm_id && !(cm_id->peer_guid == guid && is_of_queue(cm_id, qp, from)))
			cm_id = cm_id->next_in[CM_BY_QPN];
		if (cm_id)
			return cm_id;
	}
	return NULL;
}

struct soft_cm_id *soft_cm_id_find_sender(const struct soft_cm *cm, uint32_t id, uint32_t qp,
					  const struct soft_socket *socket, const struct address *peer)
{
	struct soft_cm_id *cm_id = id ? find_id(cm, id) : find_any(cm, qp, peer);

	return cm_id && is_between(cm_id, socket, peer) ? cm_id : NULL;
}

/* ---- identifiers ---- */

/* 0 means "none" in some messages. The look-up matters only after 2^32 connections. */
static uint32_t next_id(struct soft_cm *cm)
{
	uint32_t id;

	do
		id = soft_number(&cm->identifiers, HALF_BITS, cm->counter++);
	while (!id || find_id(cm, id));
	return id;
}

struct soft_cm_id *soft_cm_id_create(struct soft_cm *cm, const struct soft_path *path)
{
	struct soft_cm_id *cm_id = calloc(1, sizeof(*cm_id));

	if (!cm_id)
		return NULL;
	cm_id->cm = cm;
	cm_id->agreement.path = *path;
	cm_id->local_id = next_id(cm);
	if (!insert(cm_id, CM_BY_ID, hash_of_id(cm, cm_id->local_id))) {
		free(cm_id);
		return NULL;
	}
	return cm_id;
}

void soft_cm_id_attach(struct soft_cm_id *cm_id, struct soft_endpoint *endpoint)
{
	cm_id->endpoint = endpoint;
	endpoint->cm_id = cm_id;
}

void soft_cm_id_renew(struct soft_cm_id *cm_id)
{
	cm_id->local_id = next_id(cm_id->cm);
	insert(cm_id, CM_BY_ID, hash_of_id(cm_id->cm, cm_id->local_id));
}

bool soft_cm_id_set_peer(struct soft_cm_id *cm_id, uint64_t guid, uint32_t remote_id, uint32_t qp)
{
	const struct address *peer = &cm_id->agreement.path.peer;
	uint64_t place = find_any(cm_id->cm, qp, peer) ? guid : NO_GUID;

	cm_id->peer_guid = guid;
	cm_id->remote_id = remote_id;
	cm_id->agreement.peer_qpn = qp;
	cm_id->peer_known = insert(cm_id, CM_BY_PEER, hash_of(cm_id->cm, peer, guid, remote_id)) &&
			    insert(cm_id, CM_BY_QPN, hash_of(cm_id->cm, peer, place, qp));
	return cm_id->peer_known;
}

/* ---- lists ---- */

static void append(struct cm_list *list, struct soft_cm_id *cm_id)
{
	cm_id->list = list;
	cm_id->next_listed = NULL;
	cm_id->link_to_this = list->last;
	*list->last = cm_id;
	list->last = &cm_id->next_listed;
	list->count++;
}

static void take_out_of_list(struct soft_cm_id *cm_id)
{
	if (!cm_id->list)
		return;
	*cm_id->link_to_this = cm_id->next_listed;
	if (cm_id->next_listed)
		cm_id->next_listed->link_to_this = cm_id->link_to_this;
	else
		cm_id->list->last = cm_id->link_to_this;
	cm_id->list->count--;
	cm_id->list = NULL;
}

/* ---- ended links ---- */

void soft_cm_id_free(struct soft_cm_id *cm_id)
{
	loop_timer_stop(&cm_id->timer);
	for (unsigned index = 0; index < CM_INDEXES; index++)
		take_out(cm_id, (enum cm_index)index);
	take_out_of_list(cm_id);
	if (cm_id->endpoint)
		cm_id->endpoint->cm_id = NULL;
	free(cm_id);
}

/* An endpoint without a link is done: there is nothing more to be said for it. */
static void memory_over(void *owner)
{
	soft_cm_id_free(owner);
}

void soft_cm_id_keep(struct soft_cm_id *cm_id)
{
	loop_timer_start(cm_id->cm->transport->base.loop, &cm_id->timer, CM_TIMEWAIT_TIME, memory_over, cm_id);
}

static void begin_memory(struct soft_cm_id *cm_id)
{
	struct soft_cm *cm = cm_id->cm;

	take_out(cm_id, CM_BY_QPN);
	append(&cm->ended, cm_id);
	soft_cm_id_keep(cm_id);
	if (cm->ended.count > CM_TIMEWAIT_MOST)
		soft_cm_id_free(cm->ended.first);
}

void soft_cm_id_detach(struct soft_cm_id *cm_id)
{
	struct soft_cm *cm = cm_id->cm;

	cm_id->endpoint->cm_id = NULL;
	cm_id->endpoint = NULL;
	if (cm_id->state != CM_DREQ_SENT)
		return;
	cm->dying++;
	if (cm->dying > CM_ORPHANS_MOST)
		soft_cm_id_enter(cm_id, CM_TIMEWAIT);
}

/* ---- states ---- */

bool soft_cm_id_enter(struct soft_cm_id *cm_id, enum cm_state state)
{
	struct soft_cm *cm = cm_id->cm;
	const struct log *log = cm->transport->base.log;
	const struct state_row *before = &states[cm_id->state];
	const struct state_row *after = &states[state];
	char host[ADDRESS_TEXT_SIZE];

	address_host(&cm_id->agreement.path.peer, host);
	if (!(before->next & BIT(state))) {
		log_error(log, host, "defect: a link cannot go from %s to %s", before->text, after->text);
		return false;
	}
	log_debug(log, "%s: cm_id %08x: %s -> %s", host, cm_id->local_id, before->text, after->text);
	loop_timer_stop(&cm_id->timer);
	cm->half_open += after->half_open;
	cm->half_open -= before->half_open;
	if (cm_id->endpoint && cm_id->endpoint->listener) {
		cm_id->endpoint->listener->asked += state == CM_REQ_RECEIVED;
		cm_id->endpoint->listener->asked -= cm_id->state == CM_REQ_RECEIVED;
	}
	if (cm_id->state == CM_DREQ_SENT && !cm_id->endpoint)
		cm->dying--;
	cm_id->state = state;
	take_out_of_list(cm_id);
	if (state == CM_REP_SENT)
		append(&cm->unconfirmed, cm_id);
	if (state == CM_TIMEWAIT || state == CM_REJECTED)
		begin_memory(cm_id);
	return true;
}

/* ---- what is said, again and again ---- */

static void unanswered(void *owner);

/* Links that began at once need not repeat at once: an eighth more or less, by their random identifiers. */
static int64_t interval_of(const struct soft_cm_id *cm_id)
{
	int64_t interval = CM_LAST_REPEAT;

	if (cm_id->repeats < CM_SLOWEST_REPEAT)
		interval = CM_FIRST_REPEAT << cm_id->repeats;
	return interval + interval / 64 * ((int64_t)(cm_id->local_id % 16) - 8);
}

/* In a flood most who asked are not there: nobody is sent more than it sent itself. */
static bool may_repeat(const struct soft_cm_id *cm_id)
{
	return cm_id->state != CM_REP_SENT || cm_id->cm->half_open <= CM_REPEATED_MOST;
}

static void wait_for_answer(struct soft_cm_id *cm_id)
{
	loop_timer_start(cm_id->cm->transport->base.loop, &cm_id->timer, interval_of(cm_id), unanswered, cm_id);
}

static void unanswered(void *owner)
{
	struct soft_cm_id *cm_id = owner;
	struct soft_transport *transport = cm_id->cm->transport;

	soft_enter(transport);
	if (cm_id->repeats >= (cm_id->endpoint ? (unsigned)CM_REPEATS : (unsigned)CM_ORPHAN_REPEATS)) {
		soft_cm_unanswered(cm_id);
	} else {
		cm_id->repeats++;
		if (may_repeat(cm_id))
			soft_cm_send(cm_id->cm, &cm_id->agreement.path, cm_id->message);
		wait_for_answer(cm_id);
	}
	soft_leave(transport);
}

void soft_cm_id_send(struct soft_cm_id *cm_id)
{
	soft_cm_send(cm_id->cm, &cm_id->agreement.path, cm_id->message);
	cm_id->repeats = 0;
	if (states[cm_id->state].repeats)
		wait_for_answer(cm_id);
}

void soft_cm_id_resend(struct soft_cm_id *cm_id)
{
	soft_cm_send(cm_id->cm, &cm_id->agreement.path, cm_id->message);
}

void soft_cm_id_mra_received(struct soft_cm_id *cm_id)
{
	cm_id->repeats = CM_SLOWEST_REPEAT;
	wait_for_answer(cm_id);
}
