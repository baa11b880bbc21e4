/* SPDX-License-Identifier: BSD-2-Clause */
/* Open, close, MAD input. */
#include "transport/soft/cm/cm.h"

#include <stdlib.h>
#include <string.h>

#include "transport/soft/base/queue.h"
#include "transport/soft/cm/cm_internal.h"

struct soft_cm *soft_cm_open(struct soft_transport *transport)
{
	struct soft_cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return NULL;
	cm->transport = transport;
	cm->waiting.capacity = CM_REQUESTS_MAX;
	for (unsigned index = 0; index < CM_INDEXES; index++)
		soft_table_open(&cm->tables[index]);
	cm->secret = soft_random(&transport->random);
	return cm;
}

/*
 * There is no time to resend a DREQ or to answer a resent one. Copies make a total loss unlikely. A kernel without a
 * DREP resends its DREQ for a minute.
 */
static void send_final_copies(struct soft_cm *cm)
{
	const struct soft_table *table = &cm->tables[CM_BY_ID];
	int64_t now = clock_now();

	for (unsigned count = 0; count < CM_CLOSE_COPIES; count++)
		for (size_t i = 0; i < table->bucket_count; i++)
			for (struct soft_table_entry *entry = table->buckets[i]; entry; entry = entry->next) {
				struct soft_cm_id *cm_id = entry->object;

				if (cm_id->state == CM_DREQ_SENT)
					soft_cm_id_resend(cm_id);
				else if (cm_id->drep_sent_at && now - cm_id->drep_sent_at < CM_DREP_RECENT)
					soft_cm_send_drep(cm_id);
			}
}

void soft_cm_close(struct soft_cm *cm)
{
	const struct soft_table *table;

	if (!cm)
		return;
	send_final_copies(cm);
	soft_flush(cm->transport);
	loop_timer_stop(&cm->next_turn);
	table = &cm->tables[CM_BY_ID];
	for (size_t i = 0; i < table->bucket_count; i++)
		while (table->buckets[i])
			soft_cm_id_free(table->buckets[i]->object);
	for (unsigned index = 0; index < CM_INDEXES; index++)
		soft_table_close(&cm->tables[index]);
	free(cm);
}

bool soft_cm_uses(const struct soft_cm *cm, const struct soft_socket *socket)
{
	const struct soft_table *table = &cm->tables[CM_BY_ID];

	for (uint32_t index = 0; index < cm->waiting.count; index++)
		if (cm->requests[soft_ring_at(&cm->waiting, index)].socket == socket)
			return true;
	for (size_t i = 0; i < table->bucket_count; i++)
		for (struct soft_table_entry *entry = table->buckets[i]; entry; entry = entry->next)
			if (((struct soft_cm_id *)entry->object)->path.socket == socket)
				return true;
	return false;
}

/* ---- in ---- */

/* The route is not known yet. */
static struct soft_path path_back(struct soft_socket *socket, const struct address *from)
{
	return (struct soft_path){ .socket = socket, .local = socket->address, .peer = *from };
}

/*
 * Ends a peer's resends of a message that matches no cm_id, is late or unsupported, without revealing whether the
 * connection or service exists.
 */
static void reply_stateless(struct soft_cm *cm, const struct soft_path *path, const struct mad *mad)
{
	struct mad reply;

	switch (mad->kind) {
	case MAD_REP:
		reply = soft_cm_reply(mad, MAD_REJ);
		reply.rej = (struct mad_rej){ .answered = MAD_ANSWERED_REP, .reason = REJECTED_INVALID_ID };
		break;
	case MAD_DREQ:
		reply = soft_cm_reply(mad, MAD_DREP);
		break;
	case MAD_SIDR_REQ:
		reply = soft_cm_reply(mad, MAD_SIDR_REP);
		reply.local_id = mad->local_id;
		reply.status = MAD_SIDR_UNSUPPORTED;
		break;
	default:
		return;
	}
	soft_cm_send(cm, path, &reply);
}

/*
 * A peer that timed out waiting for our REP may not know our identifier: its REJ names its own identifier and GUID
 * (IBTA 12.6.7.2, reason 4). Neither is secret, so such a REJ is valid only in states in which it may occur (12.9).
 */
static struct soft_cm_id *find_rejected(struct soft_cm *cm, const struct soft_path *path, const struct mad *mad)
{
	struct soft_cm_id *cm_id = NULL;

	if (mad->rej.reason == REJECTED_TIMEOUT && mad->rej.information_length >= 8)
		cm_id = soft_cm_id_find_peer(cm, bytes_read(mad->rej.information, 8), mad->local_id, path);
	if (cm_id && (cm_id->state == CM_REQ_RECEIVED || cm_id->state == CM_REP_SENT))
		return cm_id;
	return soft_cm_id_find(cm, mad->remote_id, mad->local_id, path);
}

static void mra_received(struct soft_cm_id *cm_id, const struct mad *mad)
{
	if ((cm_id->state == CM_REQ_SENT && mad->mra.answered == MAD_ANSWERED_REQ) ||
	    (cm_id->state == CM_REP_SENT && mad->mra.answered == MAD_ANSWERED_REP))
		soft_cm_id_mra_received(cm_id);
}

static void next_turn(void *context);

static void take_request(struct soft_cm *cm, struct soft_path *path, const struct mad *mad)
{
	if (!cm->requests_in_turn++)
		loop_timer_start(cm->transport->base.loop, &cm->next_turn, 0, next_turn, cm);
	soft_cm_req_received(cm, path, mad);
}

static void next_turn(void *context)
{
	struct soft_cm *cm = context;

	soft_callback_begin(cm->transport);
	for (cm->requests_in_turn = 0; cm->waiting.count && cm->requests_in_turn < CM_REQUESTS_IN_TURN;
	     soft_ring_pop(&cm->waiting)) {
		const struct soft_request *request = &cm->requests[cm->waiting.head];
		struct soft_path path = path_back(request->socket, &request->peer);
		struct mad mad;

		if (mad_parse(request->bytes, sizeof(request->bytes), &mad))
			take_request(cm, &path, &mad);
	}
	soft_callback_end(cm->transport);
}

/*
 * Anybody can send a REQ, and it costs more than any other packet. A turn of the loop takes a few of them and reads on,
 * so that a flood does not delay connections' packets. Peers resend dropped ones.
 */
static void cm_request_received(struct soft_cm *cm, struct soft_path *path, const struct mad *mad, const uint8_t *bytes)
{
	struct soft_request *request;

	if (!cm->waiting.count && cm->requests_in_turn < CM_REQUESTS_IN_TURN) {
		take_request(cm, path, mad);
	} else if (cm->waiting.count < CM_REQUESTS_MAX) {
		request = &cm->requests[soft_ring_push(&cm->waiting)];
		request->socket = path->socket;
		request->peer = path->peer;
		memcpy(request->bytes, bytes, sizeof(request->bytes));
	}
}

void soft_cm_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
		     const uint8_t *bytes, size_t length, bool damaged)
{
	struct soft_path path = path_back(socket, from);
	struct soft_cm *cm = transport->cm;
	struct soft_cm_id *cm_id;
	struct mad mad;

	if (!mad_parse(bytes, length, &mad))
		return;
	if (damaged) {
		soft_cm_damaged_received(cm, &path, &mad);
		return;
	}
	/* Anybody can send a REQ. The RTU authenticates the peer. */
	if (mad.kind == MAD_REQ) {
		cm_request_received(cm, &path, &mad, bytes);
		return;
	}
	cm_id = mad.kind == MAD_REJ ? find_rejected(cm, &path, &mad)
				    : soft_cm_id_find(cm, mad.remote_id, mad.local_id, &path);
	/* A late REP: the peer missed the end of the connection. */
	if (!cm_id || mad.kind == MAD_SIDR_REQ || (mad.kind == MAD_REP && cm_id->state == CM_TIMEWAIT)) {
		reply_stateless(cm, &path, &mad);
		return;
	}
	switch (mad.kind) {
	case MAD_REP:
		soft_cm_rep_received(cm_id, &mad);
		break;
	case MAD_RTU:
		if (cm_id->state == CM_REJECTED)
			soft_cm_resend_rej(cm_id, &mad);
		else
			soft_cm_rtu_received(cm_id);
		break;
	case MAD_MRA:
		mra_received(cm_id, &mad);
		break;
	case MAD_REJ:
		if (!soft_cm_retry_req(cm_id, &mad.rej))
			soft_cm_rej_received(cm_id, &mad);
		break;
	case MAD_DREQ:
		if (!cm_id->peer_known || mad.dreq.remote_qpn != cm_id->local_qpn)
			break;
		/* DREQ implies RTU, which was lost or overtaken. */
		soft_cm_rtu_received(cm_id);
		soft_cm_dreq_received(cm_id, &mad);
		break;
	case MAD_DREP:
		soft_cm_drep_received(cm_id);
		break;
	default:
		break;
	}
}
