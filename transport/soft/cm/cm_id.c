/* SPDX-License-Identifier: BSD-2-Clause */
/* cm_ids and listeners: look-up, identifiers, states, timewait. */
#include "transport/soft/cm/cm_internal.h"

#include <stdlib.h>
#include <string.h>

#define NEXT(state) (1u << CM_##state)

enum {
	NO_GUID = 0,
};

#define TERMINAL (NEXT(TIMEWAIT) | NEXT(REJECTED))

static const char *const state_texts[] = {
	[CM_IDLE] = "idle",	    [CM_REQ_SENT] = "REQ sent",	      [CM_REQ_RECEIVED] = "REQ received",
	[CM_REP_SENT] = "REP sent", [CM_ESTABLISHED] = "established", [CM_DREQ_SENT] = "DREQ sent",
	[CM_TIMEWAIT] = "timewait", [CM_REJECTED] = "rejected",
};

static const uint16_t next_states[] = {
	[CM_IDLE] = NEXT(REQ_SENT) | NEXT(REQ_RECEIVED),
	[CM_REQ_SENT] = NEXT(ESTABLISHED) | TERMINAL,
	[CM_REQ_RECEIVED] = NEXT(REP_SENT) | TERMINAL,
	[CM_REP_SENT] = NEXT(ESTABLISHED) | TERMINAL,
	[CM_ESTABLISHED] = NEXT(DREQ_SENT) | NEXT(TIMEWAIT),
	[CM_DREQ_SENT] = NEXT(TIMEWAIT),
	[CM_REJECTED] = 0,
};

/* ---- look-up ---- */

/* Keyed, so that peers cannot choose numbers that share a bucket. */
static uint32_t hash_peer(const struct soft_cm *cm, const struct address *from, uint64_t guid, uint32_t number)
{
	uint64_t words[2] = { 0 };
	uint64_t hash;

	memcpy(words, from->bytes, from->family == ADDRESS_IP4 ? 4 : sizeof(from->bytes));
	hash = soft_random_mix(cm->secret ^ words[0]);
	hash = soft_random_mix(hash ^ words[1]);
	hash = soft_random_mix(hash ^ guid);
	return (uint32_t)soft_random_mix(hash ^ number);
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
	return (cm_id->path.socket == socket || cm_id->path.sender == socket) && is_peer(cm_id, from);
}

struct soft_cm_id *soft_cm_id_find(struct soft_cm *cm, uint32_t id, uint32_t remote_id, const struct soft_path *path)
{
	struct soft_cm_id *cm_id = find_id(cm, id);

	if (!cm_id || !is_between(cm_id, path->socket, &path->peer) ||
	    (cm_id->peer_known && cm_id->remote_id != remote_id))
		return NULL;
	return cm_id;
}

struct soft_cm_id *soft_cm_id_find_peer(struct soft_cm *cm, uint64_t guid, uint32_t remote_id,
					const struct soft_path *path)
{
	uint32_t hash = hash_peer(cm, &path->peer, guid, remote_id);
	const struct soft_table_entry *entry = soft_table_first(&cm->tables[CM_BY_PEER], hash);

	for (; entry; entry = soft_table_next(entry)) {
		struct soft_cm_id *cm_id = entry->object;

		if (cm_id->remote_id == remote_id && cm_id->peer_guid == guid &&
		    is_between(cm_id, path->socket, &path->peer))
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

/* ---- listeners ---- */

struct soft_endpoint *soft_listener_find(struct soft_transport *transport, enum port_space port_space, uint16_t port,
					 const struct address *local)
{
	struct soft_endpoint *any = NULL;

	for (struct soft_endpoint *endpoint = transport->listeners; endpoint; endpoint = endpoint->next) {
		if (endpoint->base.state != ENDPOINT_LISTENING || endpoint->base.options.port_space != port_space ||
		    endpoint->base.local.port != port)
			continue;
		if (address_same_host(&endpoint->base.local, local))
			return endpoint;
		/* The IPv6 any address accepts IPv4 peers too, as a socket does. */
		if (address_is_any(&endpoint->base.local) &&
		    (endpoint->base.local.family == local->family || endpoint->base.local.family == ADDRESS_IP6))
			any = endpoint;
	}
	return any;
}

/* ---- identifiers ---- */

/* 0 means none in some messages. */
static uint32_t next_id(struct soft_cm *cm)
{
	uint32_t id;

	do
		id = (uint32_t)soft_random(&cm->transport->random);
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
	soft_path_share(path);
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
	soft_path_release(&cm_id->path);
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

void soft_cm_id_enter(struct soft_cm_id *cm_id, enum cm_state state)
{
	struct soft_cm *cm = cm_id->cm;
	const struct log *log = cm->transport->base.log;
	char host[ADDRESS_TEXT_SIZE] = "soft";

	if (log->debug)
		address_host(&cm_id->path.peer, host);
	if (!log_transition(state_texts, next_states, cm_id->state, state, log, "%s cm_id %08x", host, cm_id->local_id))
		return;
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
}
