/* SPDX-License-Identifier: BSD-2-Clause */
/* cm_ids: identifiers, look-up, states, resends, timewait. */
#include "transport/soft/cm/cm_internal.h"

#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "transport/soft/base/queue.h"
#include "transport/soft/net/packet_io.h"

#define NEXT(state) STATE_BIT(CM_##state)

enum {
	ID_HALF_BITS = 16, /* of an identifier */
	NO_GUID = 0,
};

#define TERMINAL (NEXT(TIMEWAIT) | NEXT(REJECTED))

/* In a state that waits, the message is sent again until the peer answers. */
static const struct state_row states[] = {
	[CM_IDLE] = { "idle", NEXT(REQ_SENT) | NEXT(REQ_RECEIVED) },
	[CM_REQ_SENT] = { "REQ sent", NEXT(ESTABLISHED) | TERMINAL, .waits = true },
	[CM_REQ_RECEIVED] = { "REQ received", NEXT(REP_SENT) | TERMINAL },
	[CM_REP_SENT] = { "REP sent", NEXT(ESTABLISHED) | TERMINAL, .waits = true },
	[CM_ESTABLISHED] = { "established", NEXT(DREQ_SENT) | NEXT(TIMEWAIT) },
	[CM_DREQ_SENT] = { "DREQ sent", NEXT(TIMEWAIT), .waits = true },
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

static void cm_id_insert(struct soft_cm_id *cm_id, enum cm_index index, uint32_t key)
{
	soft_table_insert(&cm_id->cm->tables[index], &cm_id->entries[index], key, cm_id);
}

static void cm_id_remove(struct soft_cm_id *cm_id, enum cm_index index)
{
	soft_table_remove(&cm_id->cm->tables[index], &cm_id->entries[index]);
}

static bool is_peer(const struct soft_cm_id *cm_id, const struct address *from)
{
	return address_same_host(&cm_id->path.peer, from);
}

static struct soft_cm_id *find_id(const struct soft_cm *cm, uint32_t id)
{
	return soft_table_find(&cm->tables[CM_BY_ID], id);
}

static bool is_between(const struct soft_cm_id *cm_id, const struct soft_socket *socket, const struct address *from)
{
	return cm_id->path.socket == socket && is_peer(cm_id, from);
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
	const struct soft_table_entry *entry = soft_table_first(&cm->tables[CM_BY_PEER], hash);

	for (; entry; entry = soft_table_next(entry)) {
		struct soft_cm_id *cm_id = entry->object;

		if (cm_id->remote_id == remote_id && cm_id->peer_guid == guid && is_between(cm_id, socket, from))
			return cm_id;
	}
	return NULL;
}

/*
 * The first cm_id of a QPN is hashed with NO_GUID, further ones with their GUID. Anybody can name one QPN with many
 * GUIDs, and would otherwise make one long chain. guid: the peer's, or NULL for any.
 */
static struct soft_cm_id *find_qpn(const struct soft_cm *cm, uint64_t hash_guid, const uint64_t *guid, uint32_t qpn,
				   const struct address *from)
{
	uint32_t hash = hash_peer(cm, from, hash_guid, qpn);
	const struct soft_table_entry *entry = soft_table_first(&cm->tables[CM_BY_QPN], hash);

	for (; entry; entry = soft_table_next(entry)) {
		struct soft_cm_id *cm_id = entry->object;

		if (cm_id->agreement.peer_qpn == qpn && is_peer(cm_id, from) && (!guid || cm_id->peer_guid == *guid))
			return cm_id;
	}
	return NULL;
}

struct soft_cm_id *soft_cm_id_find_qpn(struct soft_cm *cm, uint64_t guid, uint32_t qpn, const struct address *from)
{
	struct soft_cm_id *cm_id = find_qpn(cm, NO_GUID, &guid, qpn, from);

	return cm_id ? cm_id : find_qpn(cm, guid, &guid, qpn, from);
}

struct soft_cm_id *soft_cm_id_find_sender(const struct soft_cm *cm, uint32_t id, uint32_t qpn,
					  const struct soft_socket *socket, const struct address *peer)
{
	struct soft_cm_id *cm_id = id ? find_id(cm, id) : find_qpn(cm, NO_GUID, NULL, qpn, peer);

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
	cm_id->path = *path;
	cm_id->local_id = next_id(cm);
	cm_id_insert(cm_id, CM_BY_ID, cm_id->local_id);
	return cm_id;
}

void soft_cm_id_attach(struct soft_cm_id *cm_id, struct soft_endpoint *endpoint)
{
	cm_id->endpoint = endpoint;
	endpoint->cm_id = cm_id;
}

void soft_cm_id_renew(struct soft_cm_id *cm_id)
{
	cm_id_remove(cm_id, CM_BY_ID);
	cm_id->local_id = next_id(cm_id->cm);
	cm_id_insert(cm_id, CM_BY_ID, cm_id->local_id);
}

void soft_cm_id_set_peer(struct soft_cm_id *cm_id, uint64_t guid, uint32_t remote_id, uint32_t qpn)
{
	const struct address *peer = &cm_id->path.peer;
	uint64_t hash_guid = find_qpn(cm_id->cm, NO_GUID, NULL, qpn, peer) ? guid : NO_GUID;

	cm_id->peer_guid = guid;
	cm_id->remote_id = remote_id;
	cm_id->agreement.peer_qpn = qpn;
	cm_id->peer_known = true;
	cm_id_insert(cm_id, CM_BY_PEER, hash_peer(cm_id->cm, peer, guid, remote_id));
	cm_id_insert(cm_id, CM_BY_QPN, hash_peer(cm_id->cm, peer, hash_guid, qpn));
}

/* ---- timewait ---- */

void soft_cm_id_free(struct soft_cm_id *cm_id)
{
	loop_timer_stop(&cm_id->timer);
	for (unsigned index = 0; index < CM_INDEXES; index++)
		cm_id_remove(cm_id, (enum cm_index)index);
	soft_list_remove(&cm_id->by_state);
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
	soft_list_append(&cm->timewait, &cm_id->by_state, cm_id);
	soft_cm_id_restart_timewait(cm_id);
	if (cm->timewait.count > CM_TIMEWAIT_MAX)
		soft_cm_id_free(cm->timewait.first->object);
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
		address_host(&cm_id->path.peer, host);
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
	soft_list_remove(&cm_id->by_state);
	if (state == CM_REP_SENT)
		soft_list_append(&cm->rep_sent, &cm_id->by_state, cm_id);
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
	if (!soft_may_resend(cm_id->path.socket)) {
		start_response_timer(cm_id);
	} else if (cm_id->resends >= (cm_id->endpoint ? (unsigned)CM_RESENDS : (unsigned)CM_ORPHAN_RESENDS)) {
		soft_cm_resends_exhausted(cm_id);
	} else {
		cm_id->resends++;
		if (may_resend(cm_id))
			soft_cm_id_resend(cm_id);
		start_response_timer(cm_id);
	}
	soft_callback_end(transport);
}

struct mad soft_cm_id_mad(const struct soft_cm_id *cm_id, enum mad_kind kind)
{
	return (struct mad){
		.kind = kind,
		.transaction = cm_id->transaction,
		.local_id = cm_id->local_id,
		.remote_id = cm_id->remote_id,
	};
}

void soft_cm_id_send(struct soft_cm_id *cm_id, const struct mad *mad)
{
	mad_write(mad, cm_id->message);
	soft_cm_id_resend(cm_id);
	cm_id->resends = 0;
	if (states[cm_id->state].waits)
		start_response_timer(cm_id);
}

void soft_cm_id_resend(struct soft_cm_id *cm_id)
{
	soft_cm_send_bytes(cm_id->cm, &cm_id->path, cm_id->message);
}

void soft_cm_id_mra_received(struct soft_cm_id *cm_id)
{
	cm_id->resends = CM_BACKOFF_STEPS;
	start_response_timer(cm_id);
}
