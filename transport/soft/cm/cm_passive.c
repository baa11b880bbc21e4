/* SPDX-License-Identifier: BSD-2-Clause */
/* The end that is asked: hears REQ, says REP, hears RTU. */
#include "transport/soft/cm/cm_internal.h"

#include <errno.h>
#include <string.h>

#include "transport/soft/delivery.h"
#include "transport/soft/qp/qp.h"

enum {
	ACK_DELAY = 15, /* as stock devices: 134 ms until an acknowledgement goes out */
	PATIENCE = 20,	/* an MRA asks for 4.3 s, as long as a stock peer waits by itself */
	NOT_REFUSED = 0,
};

/* ---- REQ ---- */

/* Says no to a request that gets no link. information: one byte, or none if it is 0. */
static void turn_away(struct soft_cm *cm, const struct soft_path *path, const struct mad *req, uint16_t reason,
		      uint8_t information)
{
	uint8_t bytes[MAD_SIZE];
	struct mad mad = {
		.kind = MAD_REJ,
		.transaction = req->transaction,
		.remote_id = req->local_id,
		.rej = {
			.answered = MAD_ANSWERED_REQ,
			.reason = reason,
			.information_length = information ? 1 : 0,
			.information = &information,
		},
	};

	mad_write(&mad, bytes);
	soft_cm_send(cm, path, bytes);
}

static void ask_for_patience(const struct soft_cm_id *cm_id)
{
	uint8_t bytes[MAD_SIZE];
	struct mad mad = {
		.kind = MAD_MRA,
		.transaction = cm_id->transaction,
		.local_id = cm_id->local_id,
		.remote_id = cm_id->remote_id,
		.mra = { .answered = MAD_ANSWERED_REQ, .service_timeout = PATIENCE },
	};

	mad_write(&mad, bytes);
	soft_cm_send(cm_id->cm, &cm_id->agreement.path, bytes);
}

/* A request that we know already: it was repeated, or came twice, or late. */
static void repeated(struct soft_cm_id *cm_id, const struct mad *req)
{
	switch (cm_id->state) {
	case CM_REQ_RECEIVED:
		ask_for_patience(cm_id);
		break;
	case CM_REP_SENT:
		soft_cm_id_resend(cm_id);
		break;
	case CM_REJECTED:
		soft_cm_resend_rej(cm_id, req);
		break;
	case CM_TIMEWAIT:
		turn_away(cm_id->cm, &cm_id->agreement.path, req, MAD_REASON_STALE, 0);
		soft_cm_id_keep(cm_id);
		break;
	default:
		break;
	}
}

static bool same_address(const struct address *address, const uint8_t bytes[16])
{
	return !memcmp(address->bytes, bytes, address->family == ADDRESS_IP4 ? 4 : 16);
}

/* Everything of a peer goes back to where its packets come from, so that it may not name another address. */
static uint16_t check_addresses(const struct soft_path *path, const struct mad *mad, const struct mad_address *address)
{
	uint8_t gid[MAD_GID_SIZE];

	if (address->version != (path->peer.family == ADDRESS_IP4 ? 4 : 6) ||
	    !same_address(&path->peer, address->source) || !same_address(&path->local, address->destination))
		return MAD_REASON_CONSUMER;
	soft_cm_gid(&path->peer, gid);
	if (memcmp(gid, mad->req.path.local_gid, sizeof(gid)))
		return MAD_REASON_GID;
	soft_cm_gid(&path->local, gid);
	if (memcmp(gid, mad->req.path.remote_gid, sizeof(gid)))
		return MAD_REASON_GID;
	return NOT_REFUSED;
}

static uint16_t check_request(const struct soft_path *path, const struct mad *mad, struct mad_address *address)
{
	const struct mad_req *req = &mad->req;

	if (req->transport != MAD_TRANSPORT_RC)
		return MAD_REASON_TRANSPORT;
	/* An endpoint of AF_IB sends none, and is refused by every IP listener. */
	if (!mad_address_parse(mad->private_data, mad->private_length, address))
		return MAD_REASON_CONSUMER;
	if (!soft_cm_is_qpn(req->qpn) || !mad->local_id)
		return MAD_REASON_CONSUMER;
	if (!mtu_bytes(req->path_mtu) || mtu_bytes(req->path_mtu) > path->mtu)
		return MAD_REASON_MTU;
	return check_addresses(path, mad, address);
}

/* What the request settles for our queue. */
static void agree(struct soft_cm_id *cm_id, const struct mad_req *req)
{
	struct soft_agreement *agreement = &cm_id->agreement;

	agreement->path.mtu = mtu_bytes(req->path_mtu);
	agreement->first_psn_sent = req->starting_psn;
	agreement->retry_count = req->retry_count;
	agreement->rnr_retry_count = req->rnr_retry_count;
	agreement->ack_timeout = req->path.ack_timeout;
	agreement->reads_out = soft_cm_least(req->responder_resources, SOFT_READS_AT_ONCE);
	agreement->reads_in = soft_cm_least(req->initiator_depth, SOFT_READS_AT_ONCE);
}

/* Returns false if memory is short. */
static bool begin(struct soft_cm *cm, struct soft_endpoint *listener, const struct soft_path *path,
		  const struct mad *mad, const struct mad_address *address)
{
	struct soft_cm_id *cm_id = soft_cm_id_create(cm, path);
	struct soft_endpoint *endpoint;
	struct address peer = path->peer;

	if (!cm_id)
		return false;
	agree(cm_id, &mad->req);
	cm_id->transaction = mad->transaction;
	peer.port = address->port;
	if (!soft_cm_id_set_peer(cm_id, mad->req.ca_guid, mad->local_id, mad->req.qpn)) {
		soft_cm_id_free(cm_id);
		return false;
	}
	endpoint = soft_requested_create(listener, &cm_id->agreement.path, &peer);
	if (!endpoint) {
		soft_cm_id_free(cm_id);
		return false;
	}
	soft_cm_id_attach(cm_id, endpoint);
	soft_cm_id_enter(cm_id, CM_REQ_RECEIVED);
	soft_event_queue(endpoint, SOFT_EVENT_REQUESTED, mad->private_data + MAD_ADDRESS_SIZE, MAD_REQ_USER_PRIVATE);
	return true;
}

/*
 * Half-open connections are bounded, and a peer that is there confirms in a round trip: the oldest that has not makes
 * room, so that requests from addresses where nobody is keep nobody out.
 */
static bool has_room(struct soft_cm *cm, const struct soft_endpoint *listener)
{
	int64_t chosen = endpoint_option(&listener->base, backlog);
	unsigned backlog = chosen == PATH_UNSET ? CM_BACKLOG : (unsigned)chosen;

	if (listener->asked >= backlog) {
		log_debug(cm->transport->base.log, "%s: a request is dropped: %u wait for an answer",
			  listener->base.name, listener->asked);
		return false;
	}
	while (cm->half_open >= 2 * backlog && cm->unconfirmed.first) {
		if (endpoint_is_worth_telling(&listener->base))
			log_error(cm->transport->base.log, listener->base.name,
				  "%u connections are half open, the most: the oldest give way to new ones (--backlog)",
				  cm->half_open);
		soft_cm_evict(cm->unconfirmed.first);
	}
	return true;
}

void soft_cm_req_received(struct soft_cm *cm, struct soft_socket *socket, const struct address *from,
			  const struct mad *mad)
{
	const struct mad_req *req = &mad->req;
	struct soft_endpoint *listener = NULL;
	struct soft_cm_id *cm_id;
	struct soft_path path;
	struct mad_address address;
	uint16_t port_space, port, reason;

	cm_id = soft_cm_id_find_peer(cm, req->ca_guid, mad->local_id, socket, from);
	if (cm_id) {
		repeated(cm_id, mad);
		return;
	}
	soft_path_back(socket, from, &path);
	path.type_of_service = req->path.traffic_class & SOFT_DSCP;
	/* One queue pair, two connections: one of them is dead. Which, its probe will tell: anybody may say a REQ. */
	cm_id = soft_cm_id_find_qpn(cm, req->ca_guid, req->qpn, from);
	if (cm_id) {
		turn_away(cm, &path, mad, MAD_REASON_STALE, 0);
		if (cm_id->state == CM_ESTABLISHED)
			soft_qp_probe(cm_id->endpoint->qp);
		return;
	}
	if (mad_service_split(req->service_id, &port_space, &port))
		listener = soft_listener_find(cm->transport, (enum port_space)port_space, port, &path.local);
	if (!listener) {
		turn_away(cm, &path, mad, MAD_REASON_SERVICE_ID, 0);
		return;
	}
	soft_apply_options(&listener->base, &path);
	reason = check_request(&path, mad, &address);
	if (reason != NOT_REFUSED) {
		turn_away(cm, &path, mad, reason, reason == MAD_REASON_MTU ? (uint8_t)mtu_code(path.mtu) : 0);
		return;
	}
	if (has_room(cm, listener) && !begin(cm, listener, &path, mad, &address)) {
		turn_away(cm, &path, mad, MAD_REASON_NO_RESOURCES, 0);
		soft_starve(listener);
	}
}

/* ---- REP ---- */

static void write_reply(struct soft_cm_id *cm_id, const void *data, size_t length)
{
	const struct soft_agreement *agreement = &cm_id->agreement;
	int64_t rnr_retry = endpoint_option(&cm_id->endpoint->base, rnr_retry);
	struct mad mad = {
		.kind = MAD_REP,
		.transaction = cm_id->transaction,
		.local_id = cm_id->local_id,
		.remote_id = cm_id->remote_id,
		.rep = {
			.qpn = cm_id->qp,
			.starting_psn = agreement->first_psn_expected,
			.responder_resources = (uint8_t)agreement->reads_in,
			.initiator_depth = (uint8_t)agreement->reads_out,
			.target_ack_delay = ACK_DELAY,
			.rnr_retry_count = (uint8_t)(rnr_retry == PATH_UNSET ? CM_RETRIES : rnr_retry),
			.ca_guid = cm_id->cm->transport->guid,
		},
		.private_data = data,
		.private_length = length,
	};

	mad_write(&mad, cm_id->message);
}

enum outcome soft_cm_accept(struct soft_endpoint *endpoint, const void *data, size_t length)
{
	struct soft_transport *transport = soft_of(endpoint->base.transport);
	struct soft_cm_id *cm_id = endpoint->cm_id;
	int64_t ack_timeout = endpoint_option(&endpoint->base, ack_timeout);

	/* The peer gave up meanwhile: that news is under way to the command. */
	if (!cm_id || cm_id->state == CM_TIMEWAIT)
		return OUTCOME_OK;
	cm_id->qp = soft_qp_number(endpoint->qp);
	cm_id->agreement.first_psn_expected = (uint32_t)soft_random() & PSN_MASK;
	if (ack_timeout != PATH_UNSET)
		cm_id->agreement.ack_timeout = (unsigned)ack_timeout;
	write_reply(cm_id, data, length);
	soft_qp_connect(endpoint->qp, &cm_id->agreement);
	soft_cm_id_enter(cm_id, CM_REP_SENT);
	soft_cm_id_send(cm_id);
	soft_schedule(transport);
	return OUTCOME_OK;
}

/* ---- RTU ---- */

void soft_cm_rtu_received(struct soft_cm_id *cm_id)
{
	if (cm_id->state != CM_REP_SENT)
		return;
	soft_cm_id_enter(cm_id, CM_ESTABLISHED);
	soft_qp_start(cm_id->endpoint->qp);
	soft_event_queue(cm_id->endpoint, SOFT_EVENT_ESTABLISHED, NULL, 0);
}

void soft_cm_packet_received(struct soft_endpoint *endpoint)
{
	if (endpoint->cm_id)
		soft_cm_rtu_received(endpoint->cm_id);
}
