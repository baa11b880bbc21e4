/* SPDX-License-Identifier: BSD-2-Clause */
/* Passive side: receives REQ, sends REP, receives RTU. */
#include "transport/soft/cm/cm_internal.h"

#include <string.h>
#include <sys/param.h>

#include "transport/soft/base/queue.h"

enum {
	ACK_DELAY = 15,		  /* 134 ms, as stock devices */
	MRA_SERVICE_TIMEOUT = 20, /* 4.3 s, the time that a stock peer waits without MRA */
	NOT_REJECTED = 0,
};

/* ---- REQ ---- */

/* For a REQ without a cm_id. information: one byte; 0 for none. */
static void reject_req(struct soft_cm *cm, const struct soft_path *path, const struct mad *req, uint16_t reason,
		       uint8_t information)
{
	struct mad rej = soft_cm_reply(req, MAD_REJ);

	rej.rej = (struct mad_rej){
		.answered = MAD_ANSWERED_REQ,
		.reason = reason,
		.information_length = information ? 1 : 0,
		.information = &information,
	};
	soft_cm_send(cm, path, &rej);
}

static void send_mra(const struct soft_cm_id *cm_id)
{
	struct mad mra = soft_cm_id_mad(cm_id, MAD_MRA);

	mra.mra = (struct mad_mra){ .answered = MAD_ANSWERED_REQ, .service_timeout = MRA_SERVICE_TIMEOUT };
	soft_cm_send(cm_id->cm, &cm_id->path, &mra);
}

static void duplicate_req(struct soft_cm_id *cm_id, const struct mad *req)
{
	cm_id->repeats++;
	switch (cm_id->state) {
	case CM_REQ_RECEIVED:
		send_mra(cm_id);
		break;
	case CM_REP_SENT:
		soft_cm_id_resend(cm_id);
		break;
	case CM_REJECTED:
		soft_cm_resend_rej(cm_id, req);
		break;
	case CM_TIMEWAIT:
		reject_req(cm_id->cm, &cm_id->path, req, REJECTED_STALE, 0);
		soft_cm_id_restart_timewait(cm_id);
		break;
	default:
		break;
	}
}

static bool same_address(const struct address *address, const uint8_t bytes[16])
{
	return !memcmp(address->bytes, bytes, address->family == ADDRESS_IP4 ? 4 : 16);
}

/* All packets go to the REQ's source address, so it must not name another. */
static uint16_t check_addresses(const struct soft_path *path, const struct mad *mad, const struct mad_address *address)
{
	uint8_t gid[MAD_GID_SIZE];

	if (address->version != (path->peer.family == ADDRESS_IP4 ? 4 : 6) ||
	    !same_address(&path->peer, address->source) || !same_address(&path->local, address->destination))
		return REJECTED_BY_CONSUMER;
	soft_cm_gid(&path->peer, gid);
	if (memcmp(gid, mad->req.path.local_gid, sizeof(gid)))
		return REJECTED_GID;
	soft_cm_gid(&path->local, gid);
	if (memcmp(gid, mad->req.path.remote_gid, sizeof(gid)))
		return REJECTED_GID;
	return NOT_REJECTED;
}

static uint16_t check_req(const struct soft_path *path, const struct mad *mad, struct mad_address *address)
{
	const struct mad_req *req = &mad->req;

	if (req->transport != MAD_TRANSPORT_RC)
		return REJECTED_TRANSPORT;
	/* Without the header it comes from AF_IB, which an IP listener rejects. */
	if (!mad_address_parse(mad->private_data, mad->private_length, address))
		return REJECTED_BY_CONSUMER;
	if (!soft_cm_is_qpn(req->qpn) || !mad->local_id)
		return REJECTED_BY_CONSUMER;
	if (!mtu_bytes(req->path_mtu) || mtu_bytes(req->path_mtu) > path->mtu)
		return REJECTED_MTU;
	return check_addresses(path, mad, address);
}

/*
 * Reports a request that names other addresses than its packet has. The peer cannot learn of it: behind a NAT it
 * accepts no answer, because the ICRC covers the addresses.
 */
static void report_addresses(struct soft_cm *cm, const struct soft_endpoint *listener, const struct soft_path *path,
			     const struct mad *mad)
{
	char peer[ADDRESS_TEXT_SIZE], source[ADDRESS_TEXT_SIZE], destination[ADDRESS_TEXT_SIZE];
	struct mad_address named;
	struct address one, other;

	if (!mad_address_parse(mad->private_data, mad->private_length, &named))
		return;
	one = other = (struct address){ .family = named.version == 4 ? ADDRESS_IP4 : ADDRESS_IP6 };
	memcpy(one.bytes, named.source, sizeof(one.bytes));
	memcpy(other.bytes, named.destination, sizeof(other.bytes));
	/* Resends have the same transaction. */
	if ((same_address(&path->peer, named.source) && same_address(&path->local, named.destination)) ||
	    mad->transaction == cm->reported_transaction || !endpoint_take_log_line(&listener->base))
		return;
	cm->reported_transaction = mad->transaction;
	log_error(listener->base.transport->log, listener->base.name,
		  "refused a request from %s: it names %s and %s as its addresses, as after a NAT, which RoCE does not "
		  "support",
		  address_host(&path->peer, peer), address_host(&one, source), address_host(&other, destination));
}

static void negotiate(struct soft_cm_id *cm_id, const struct mad_req *req)
{
	struct soft_agreement *agreement = &cm_id->agreement;

	agreement->sq_psn = req->starting_psn;
	agreement->retry_count = req->retry_count;
	agreement->rnr_retry_count = req->rnr_retry_count;
	agreement->ack_timeout = req->path.ack_timeout;
	agreement->reads_out = MIN(req->responder_resources, SOFT_READS_AT_ONCE);
	agreement->reads_in = MIN(req->initiator_depth, SOFT_READS_AT_ONCE);
}

/* False without memory. */
static bool create_requested(struct soft_cm *cm, struct soft_endpoint *listener, const struct soft_path *path,
			     const struct mad *mad, const struct mad_address *address)
{
	struct soft_cm_id *cm_id = soft_cm_id_create(cm, path);
	struct soft_endpoint *endpoint;
	struct address peer = path->peer;

	if (!cm_id)
		return false;
	negotiate(cm_id, &mad->req);
	cm_id->transaction = mad->transaction;
	peer.port = address->port;
	soft_cm_id_set_peer(cm_id, mad->req.ca_guid, mad->local_id, mad->req.qpn);
	endpoint = soft_handlers.requested(listener, path, &peer);
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
 * Half-open connections are bounded. A real peer sends RTU within a round trip, so the oldest one without RTU is
 * evicted: REQs from forged addresses keep no real peer out.
 */
static bool admit_req(struct soft_cm *cm, const struct soft_endpoint *listener)
{
	unsigned backlog = (unsigned)endpoint_option_or(&listener->base, backlog, CM_BACKLOG);

	if (listener->pending_requests >= backlog)
		return false;
	while (cm->half_open >= 2 * backlog && cm->rep_sent.first) {
		if (endpoint_take_log_line(&listener->base))
			log_error(listener->base.transport->log, listener->base.name,
				  "limit of %u half-open connections reached: the oldest are rejected (backlog %u)",
				  cm->half_open, backlog);
		soft_cm_evict(cm->rep_sent.first->object);
	}
	return true;
}

static struct soft_endpoint *find_listener(struct soft_cm *cm, const struct mad *mad, const struct soft_path *path)
{
	uint16_t port_space, port;

	if (!mad_service_split(mad->req.service_id, &port_space, &port))
		return NULL;
	return soft_listener_find(cm->transport, (enum port_space)port_space, port, &path->local);
}

void soft_cm_req_received(struct soft_cm *cm, struct soft_path *path, const struct mad *mad)
{
	const struct mad_req *req = &mad->req;
	struct soft_endpoint *listener;
	struct soft_cm_id *cm_id;
	struct mad_address address;
	uint16_t reason;
	char host[ADDRESS_TEXT_SIZE];
	int error;

	cm_id = soft_cm_id_find_peer(cm, req->ca_guid, mad->local_id, path);
	if (cm_id) {
		duplicate_req(cm_id, mad);
		return;
	}
	/* A peer must not make our packets look like routers' traffic. */
	if (req->path.traffic_class < SOFT_NETWORK_CONTROL)
		path->type_of_service = req->path.traffic_class & SOFT_DSCP;
	/* A QP has one connection, so one of the two is stale. Anybody can send a REQ: a probe checks the old one. */
	cm_id = soft_cm_id_find_qpn(cm, req->ca_guid, req->qpn, &path->peer);
	if (cm_id) {
		reject_req(cm, path, mad, REJECTED_STALE, 0);
		if (cm_id->state == CM_ESTABLISHED)
			soft_qp_probe(cm_id->endpoint->qp);
		return;
	}
	listener = find_listener(cm, mad, path);
	if (!listener) {
		reject_req(cm, path, mad, REJECTED_NO_LISTENER, 0);
		return;
	}
	/* Without a return route no answer reaches the peer. */
	error = soft_path_route(cm->transport, path);
	if (error) {
		if (endpoint_take_log_line(&listener->base))
			log_errno(listener->base.transport->log, address_host(&path->peer, host), error,
				  "finding the route to answer a request");
		return;
	}
	soft_path_apply_options(path, &listener->base);
	reason = check_req(path, mad, &address);
	if (reason != NOT_REJECTED) {
		report_addresses(cm, listener, path, mad);
		reject_req(cm, path, mad, reason, reason == REJECTED_MTU ? (uint8_t)mtu_code(path->mtu) : 0);
		return;
	}
	path->mtu = mtu_bytes(req->path_mtu);
	if (admit_req(cm, listener) && !create_requested(cm, listener, path, mad, &address)) {
		reject_req(cm, path, mad, REJECTED_NO_RESOURCES, 0);
		soft_fail_no_memory(listener);
	}
}

void soft_cm_damaged_received(struct soft_cm *cm, const struct soft_path *path, const struct mad *mad)
{
	const struct soft_endpoint *listener = mad->kind == MAD_REQ ? find_listener(cm, mad, path) : NULL;

	if (listener)
		report_addresses(cm, listener, path, mad);
}

/* ---- REP ---- */

static void send_rep(struct soft_cm_id *cm_id, const void *data, size_t length)
{
	const struct soft_agreement *agreement = &cm_id->agreement;
	struct mad rep = soft_cm_id_mad(cm_id, MAD_REP);

	rep.rep = (struct mad_rep){
		.qpn = cm_id->local_qpn,
		.starting_psn = agreement->rq_psn,
		.responder_resources = agreement->reads_in,
		.initiator_depth = agreement->reads_out,
		.target_ack_delay = ACK_DELAY,
		.rnr_retry_count = (uint32_t)endpoint_option_or(&cm_id->endpoint->base, rnr_retry, CM_QP_RETRIES),
		.ca_guid = cm_id->cm->transport->guid,
	};
	rep.private_data = data;
	rep.private_length = length;
	soft_cm_id_send(cm_id, &rep);
}

enum outcome soft_cm_accept(struct endpoint *base, const void *data, size_t length)
{
	struct soft_endpoint *endpoint = soft_endpoint_of(base);
	struct soft_cm_id *cm_id = endpoint->cm_id;
	int64_t ack_timeout = base->options.path->ack_timeout;

	/* The peer sent REJ meanwhile: its event is queued. */
	if (!cm_id || cm_id->state == CM_TIMEWAIT)
		return OUTCOME_OK;
	cm_id->local_qpn = base->qpn;
	cm_id->path.sender = endpoint->path.sender;
	soft_path_share(&cm_id->path);
	cm_id->agreement.rq_psn = (uint32_t)soft_random(&cm_id->cm->transport->random) & PSN_MASK;
	if (ack_timeout != PATH_UNSET)
		cm_id->agreement.ack_timeout = (unsigned)ack_timeout;
	soft_qp_connect(endpoint->qp, &cm_id->agreement);
	soft_cm_id_enter(cm_id, CM_REP_SENT);
	send_rep(cm_id, data, length);
	soft_schedule(cm_id->cm->transport);
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

void soft_cm_first_packet(struct soft_endpoint *endpoint)
{
	if (endpoint->cm_id)
		soft_cm_rtu_received(endpoint->cm_id);
}
