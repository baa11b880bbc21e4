/* SPDX-License-Identifier: BSD-2-Clause */
/* cm_ids: identifiers, look-up, states, resends, timewait. */
#include "transport/soft/cm/cm_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "transport/soft/base/queue.h"

#define NEXT(state) STATE_BIT(CM_##state)

enum {
	FIRST_TABLE_SIZE = 64,
	ID_HALF_BITS = 16, /* of an identifier */
	NO_GUID = 0,
};

#define TERMINAL (NEXT(TIMEWAIT) | NEXT(REJECTED))

/* In a state that waits, the message is sent again until the peer answers. */
static const struct state_row states[] = {
	[CM_IDLE] = { "idle", NEXT(REQ_SENT) | NEXT(REQ_RECEIVED) },
	[CM_REQ_SENT] = { "REQ sent", NEXT(ESTABLISHED) | TERMINAL, true },
	[CM_REQ_RECEIVED] = { "REQ received", NEXT(REP_SENT) | TERMINAL },
	[CM_REP_SENT] = { "REP sent", NEXT(ESTABLISHED) | TERMINAL, true },
	[CM_ESTABLISHED] = { "established", NEXT(DREQ_SENT) | NEXT(TIMEWAIT) },
	[CM_DREQ_SENT] = { "DREQ sent", NEXT(TIMEWAIT), true },
	[CM_TIMEWAIT] = { "timewait", 0 },
	[CM_REJECTED] = { "rejected", 0 },
};

/* ---- look-up ---- */

/* Keyed, so that peers cannot choose numbers that share a bucket. */
static uint32_t hash_peer(const struct soft_cm *cm, const struct address *from, uint64_t guid, uint32_t number)
{
	uint64_t words[2] = { 0 };
	uint64_t hash;

	memcpy(words, from->bytes, from->family == ADDRESS_IP4 ? 4 : sizeof(from->bytes));
	hash = soft_number_mix(cm->secret ^ words[0]);
	hash = soft_number_mix(hash ^ words[1]);
	hash = soft_number_mix(hash ^ guid);
	return (uint32_t)soft_number_mix(hash ^ number);
}

static uint32_t hash_id(const struct soft_cm *cm, uint32_t id)
{
	return (uint32_t)soft_number_mix(cm->secret ^ id);
}

static struct soft_cm_id *cm_table_chain(const struct cm_table *table, uint32_t hash)
{
	return table->size ? table->buckets[hash & (table->size - 1)] : NULL;
}

static void cm_table_put(struct cm_table *table, enum cm_index index, struct soft_cm_id *cm_id)
{
	struct soft_cm_id **bucket = &table->buckets[cm_id->hash[index] & (table->size - 1)];

	cm_id->next_in[index] = *bucket;
	*bucket = cm_id;
}

/* False without any table. A table that cannot grow gets longer chains. */
static bool cm_table_grow(struct cm_table *table, enum cm_index index)
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
			cm_table_put(&larger, index, cm_id);
		}
	}
	free(table->buckets);
	*table = larger;
	return true;
}

static void cm_id_remove(struct soft_cm_id *cm_id, enum cm_index index)
{
	struct cm_table *table = &cm_id->cm->tables[index];
	struct soft_cm_id **slot;

	if (!(cm_id->indexed & (1u << index)))
		return;
	cm_id->indexed &= ~(1u << index);
	slot = &table->buckets[cm_id->hash[index] & (table->size - 1)];
	while (*slot != cm_id)
		slot = &(*slot)->next_in[index];
	*slot = cm_id->next_in[index];
	table->count--;
}

/* Moves it if the table has it. */
static bool cm_id_insert(struct soft_cm_id *cm_id, enum cm_index index, uint32_t hash)
{
	struct cm_table *table = &cm_id->cm->tables[index];

	cm_id_remove(cm_id, index);
	if (!cm_table_grow(table, index))
		return false;
	cm_id->hash[index] = hash;
	cm_table_put(table, index, cm_id);
	table->count++;
	cm_id->indexed |= (1u << index);
	return true;
}

static bool is_peer(const struct soft_cm_id *cm_id, const struct address *from)
{
	return address_same_host(&cm_id->agreement.path.peer, from);
}

static struct soft_cm_id *find_id(const struct soft_cm *cm, uint32_t id)
{
	uint32_t hash = hash_id(cm, id);
	struct soft_cm_id *cm_id = cm_table_chain(&cm->tables[CM_BY_ID], hash);

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
	uint32_t hash = hash_peer(cm, from, guid, remote_id);
	struct soft_cm_id *cm_id = cm_table_chain(&cm->tables[CM_BY_PEER], hash);

	while (cm_id && !(cm_id->remote_id == remote_id && cm_id->peer_guid == guid && is_between(cm_id, socket, from)))
		cm_id = cm_id->next_in[CM_BY_PEER];
	return cm_id;
}

/*
 * The first cm_id of a QPN is hashed with NO_GUID, further ones with their GUID. Anybody can name one QPN with many
 * GUIDs, and would otherwise make one long chain.
 */
static struct soft_cm_id *qpn_chain(const struct soft_cm *cm, uint64_t guid, uint32_t qpn, const struct address *from)
{
	return cm_table_chain(&cm->tables[CM_BY_QPN], hash_peer(cm, from, guid, qpn));
}

static bool has_peer_qpn(const struct soft_cm_id *cm_id, uint32_t qpn, const struct address *from)
{
	return cm_id->agreement.peer_qpn == qpn && is_peer(cm_id, from);
}

/* Compares the hash too: a further cm_id may share the chain by chance. */
static struct soft_cm_id *find_qpn_any_guid(const struct soft_cm *cm, uint32_t qpn, const struct address *from)
{
	uint32_t hash = hash_peer(cm, from, NO_GUID, qpn);
	struct soft_cm_id *cm_id = cm_table_chain(&cm->tables[CM_BY_QPN], hash);

	while (cm_id && !(cm_id->hash[CM_BY_QPN] == hash && has_peer_qpn(cm_id, qpn, from)))
		cm_id = cm_id->next_in[CM_BY_QPN];
	return cm_id;
}

struct soft_cm_id *soft_cm_id_find_qpn(struct soft_cm *cm, uint64_t guid, uint32_t qpn, const struct address *from)
{
	const uint64_t guids[] = { NO_GUID, guid };

	for (size_t i = 0; i < sizeof(guids) / sizeof(*guids); i++) {
		struct soft_cm_id *cm_id = qpn_chain(cm, guids[i], qpn, from);

		while (cm_id && !(cm_id->peer_guid == guid && has_peer_qpn(cm_id, qpn, from)))
			cm_id = cm_id->next_in[CM_BY_QPN];
		if (cm_id)
			return cm_id;
	}
	return NULL;
}

struct soft_cm_id *soft_cm_id_find_sender(const struct soft_cm *cm, uint32_t id, uint32_t qpn,
					  const struct soft_socket *socket, const struct address *peer)
{
	struct soft_cm_id *cm_id = id ? find_id(cm, id) : find_qpn_any_guid(cm, qpn, peer);

	return cm_id && is_between(cm_id, socket, peer) ? cm_id : NULL;
}

/* ---- identifiers ---- */

/* 0 means none in some messages. find_id() matters only after 2^32 connections. */
static uint32_t next_id(struct soft_cm *cm)
{
	uint32_t id;

	do
		id = soft_number_permute(&cm->id_keys, ID_HALF_BITS, cm->id_counter++);
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
	if (!cm_id_insert(cm_id, CM_BY_ID, hash_id(cm, cm_id->local_id))) {
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
	cm_id_insert(cm_id, CM_BY_ID, hash_id(cm_id->cm, cm_id->local_id));
}

bool soft_cm_id_set_peer(struct soft_cm_id *cm_id, uint64_t guid, uint32_t remote_id, uint32_t qpn)
{
	const struct address *peer = &cm_id->agreement.path.peer;
	uint64_t chain_guid = find_qpn_any_guid(cm_id->cm, qpn, peer) ? guid : NO_GUID;

	cm_id->peer_guid = guid;
	cm_id->remote_id = remote_id;
	cm_id->agreement.peer_qpn = qpn;
	cm_id->peer_known = cm_id_insert(cm_id, CM_BY_PEER, hash_peer(cm_id->cm, peer, guid, remote_id)) &&
			    cm_id_insert(cm_id, CM_BY_QPN, hash_peer(cm_id->cm, peer, chain_guid, qpn));
	return cm_id->peer_known;
}

/* ---- lists ---- */

static void cm_list_append(struct cm_list *list, struct soft_cm_id *cm_id)
{
	cm_id->list = list;
	cm_id->next_in_list = NULL;
	cm_id->pprev = list->last;
	*list->last = cm_id;
	list->last = &cm_id->next_in_list;
	list->count++;
}

static void cm_list_remove(struct soft_cm_id *cm_id)
{
	if (!cm_id->list)
		return;
	*cm_id->pprev = cm_id->next_in_list;
	if (cm_id->next_in_list)
		cm_id->next_in_list->pprev = cm_id->pprev;
	else
		cm_id->list->last = cm_id->pprev;
	cm_id->list->count--;
	cm_id->list = NULL;
}

/* ---- timewait ---- */

void soft_cm_id_free(struct soft_cm_id *cm_id)
{
	loop_timer_stop(&cm_id->timer);
	for (unsigned index = 0; index < CM_INDEXES; index++)
		cm_id_remove(cm_id, (enum cm_index)index);
	cm_list_remove(cm_id);
	if (cm_id->endpoint)
		cm_id->endpoint->cm_id = NULL;
	free(cm_id);
}

static void timewait_expired(void *context)
{
	soft_cm_id_free(context);
}

void soft_cm_id_restart_timewait(struct soft_cm_id *cm_id)
{
	loop_timer_start(cm_id->cm->transport->base.loop, &cm_id->timer, CM_TIMEWAIT_TIME, timewait_expired, cm_id);
}

static void enter_timewait(struct soft_cm_id *cm_id)
{
	struct soft_cm *cm = cm_id->cm;

	cm_id_remove(cm_id, CM_BY_QPN);
	cm_list_append(&cm->timewait, cm_id);
	soft_cm_id_restart_timewait(cm_id);
	if (cm->timewait.count > CM_TIMEWAIT_MAX)
		soft_cm_id_free(cm->timewait.first);
}

void soft_cm_id_detach(struct soft_cm_id *cm_id)
{
	struct soft_cm *cm = cm_id->cm;

	cm_id->endpoint->cm_id = NULL;
	cm_id->endpoint = NULL;
	if (cm_id->state != CM_DREQ_SENT)
		return;
	cm->orphans++;
	if (cm->orphans > CM_ORPHANS_MAX)
		soft_cm_id_enter(cm_id, CM_TIMEWAIT);
}

/* ---- states ---- */

static bool is_half_open(enum cm_state state)
{
	return state == CM_REQ_RECEIVED || state == CM_REP_SENT;
}

bool soft_cm_id_enter(struct soft_cm_id *cm_id, enum cm_state state)
{
	struct soft_cm *cm = cm_id->cm;
	const struct log *log = cm->transport->base.log;
	char host[ADDRESS_TEXT_SIZE] = "soft";

	if (log->debug)
		address_host(&cm_id->agreement.path.peer, host);
	if (!state_change(states, cm_id->state, state, log, "%s cm_id %08x", host, cm_id->local_id))
		return false;
	loop_timer_stop(&cm_id->timer);
	cm->half_open += is_half_open(state);
	cm->half_open -= is_half_open(cm_id->state);
	if (cm_id->endpoint && cm_id->endpoint->listener) {
		cm_id->endpoint->listener->pending_requests += state == CM_REQ_RECEIVED;
		cm_id->endpoint->listener->pending_requests -= cm_id->state == CM_REQ_RECEIVED;
	}
	if (cm_id->state == CM_DREQ_SENT && !cm_id->endpoint)
		cm->orphans--;
	cm_id->state = state;
	cm_list_remove(cm_id);
	if (state == CM_REP_SENT)
		cm_list_append(&cm->rep_sent, cm_id);
	if (state == CM_TIMEWAIT || state == CM_REJECTED)
		enter_timewait(cm_id);
	return true;
}

/* ---- resends ---- */

static void response_timeout(void *context);

/* The random identifier spreads the resends of cm_ids that began together: an eighth more or less. */
static int64_t resend_interval(const struct soft_cm_id *cm_id)
{
	int64_t interval = CM_LONGEST_INTERVAL;

	if (cm_id->resends < CM_BACKOFF_STEPS)
		interval = CM_FIRST_INTERVAL << cm_id->resends;
	return interval + interval / 64 * ((int64_t)(cm_id->local_id % 16) - 8);
}

/* The REQs of a flood have forged addresses: their victims get no more than one REP for each REQ. */
static bool may_resend(const struct soft_cm_id *cm_id)
{
	return cm_id->state != CM_REP_SENT || cm_id->cm->half_open <= CM_RESEND_HALF_OPEN_MAX;
}

static void start_response_timer(struct soft_cm_id *cm_id)
{
	loop_timer_start(cm_id->cm->transport->base.loop, &cm_id->timer, resend_interval(cm_id), response_timeout,
			 cm_id);
}

static void response_timeout(void *context)
{
	struct soft_cm_id *cm_id = context;
	struct soft_transport *transport = cm_id->cm->transport;

	soft_callback_begin(transport);
	if (cm_id->resends >= (cm_id->endpoint ? (unsigned)CM_RESENDS : (unsigned)CM_ORPHAN_RESENDS)) {
		soft_cm_resends_exhausted(cm_id);
	} else {
		cm_id->resends++;
		if (may_resend(cm_id))
			soft_cm_send(cm_id->cm, &cm_id->agreement.path, cm_id->message);
		start_response_timer(cm_id);
	}
	soft_callback_end(transport);
}

void soft_cm_id_send(struct soft_cm_id *cm_id)
{
	soft_cm_send(cm_id->cm, &cm_id->agreement.path, cm_id->message);
	cm_id->resends = 0;
	if (states[cm_id->state].waits)
		start_response_timer(cm_id);
}

void soft_cm_id_resend(struct soft_cm_id *cm_id)
{
	soft_cm_send(cm_id->cm, &cm_id->agreement.path, cm_id->message);
}

void soft_cm_id_mra_received(struct soft_cm_id *cm_id)
{
	cm_id->resends = CM_BACKOFF_STEPS;
	start_response_timer(cm_id);
}
