/* SPDX-License-Identifier: BSD-2-Clause */
/* Active side: sends REQ, receives REP, sends RTU. */
#include "transport/soft/cm/cm_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>

#include "transport/soft/base/queue.h"

/* The values of a stock peer, unless a comment gives another reason. */
enum {
	READS_OFFERED = 4,	      /* outstanding RDMA READs in each direction; a stock rping needs one */
	REMOTE_RESPONSE_TIMEOUT = 20, /* 4.3 s */
	LOCAL_RESPONSE_TIMEOUT = 18,  /* 1.1 s: the interval at which a kernel resends REP */
	MAX_CM_RETRIES = 15,
	/*
	 * 1.1 s on both sides instead of the usual 2.1 s. A kernel waits that long after losing the last packet. A QP
	 * fails after eight times that (CM_QP_RETRIES), before the command's own timeout, which has no cause.
	 */
	ACK_TIMEOUT = 18,
	PERMISSIVE_LID = 0xffff,
	HOP_LIMIT = 64,
	PACKET_RATE = 3, /* 10 Gb/s: unused, but 0 is invalid */
};

_Static_assert((int)PRIVATE_DATA_MAX <= (int)MAD_REQ_USER_PRIVATE, "private data of a command fits into a REQ");
_Static_assert((int)READS_OFFERED <= (int)SOFT_READS_AT_ONCE, "the QP supports the READs offered");

static void write_address_header(const struct soft_endpoint *endpoint, uint8_t private_data[MAD_ADDRESS_SIZE])
{
	const struct soft_path *path = &endpoint->path;
	struct mad_address address = {
		.version = path->local.family == ADDRESS_IP4 ? 4 : 6,
		.port = endpoint->base.local.port,
	};

	memcpy(address.source, path->local.bytes, sizeof(address.source));
	memcpy(address.destination, path->peer.bytes, sizeof(address.destination));
	mad_address_write(&address, private_data);
}

static void send_req(struct soft_cm_id *cm_id, const void *data, size_t length)
{
	const struct soft_endpoint *endpoint = cm_id->endpoint;
	const struct soft_agreement *agreement = &cm_id->agreement;
	const struct soft_path *path = &endpoint->path;
	uint8_t private_data[MAD_REQ_PRIVATE] = { 0 };
	struct mad mad = {
		.kind = MAD_REQ,
		.transaction = cm_id->transaction,
		.local_id = cm_id->local_id,
		.req = {
			.service_id = mad_service_id((uint16_t)endpoint->base.options.port_space,
						     endpoint->base.peer.port),
			.ca_guid = cm_id->cm->transport->guid,
			.qpn = cm_id->local_qpn,
			.responder_resources = agreement->reads_in,
			.initiator_depth = agreement->reads_out,
			.remote_response_timeout = REMOTE_RESPONSE_TIMEOUT,
			.transport = MAD_TRANSPORT_RC,
			.starting_psn = agreement->rq_psn,
			.local_response_timeout = LOCAL_RESPONSE_TIMEOUT,
			.retry_count = agreement->retry_count,
			.pkey = PACKET_PKEY,
			.path_mtu = mtu_code(path->mtu),
			.rnr_retry_count = agreement->rnr_retry_count,
			.max_cm_retries = MAX_CM_RETRIES,
			.path = {
				.local_lid = PERMISSIVE_LID,
				.remote_lid = PERMISSIVE_LID,
				.packet_rate = PACKET_RATE,
				.traffic_class = path->type_of_service,
				.hop_limit = HOP_LIMIT,
				.ack_timeout = agreement->ack_timeout,
			},
		},
		.private_data = private_data,
		.private_length = MAD_ADDRESS_SIZE + length,
	};

	soft_cm_gid(&path->local, mad.req.path.local_gid);
	soft_cm_gid(&path->peer, mad.req.path.remote_gid);
	write_address_header(endpoint, private_data);
	if (length)
		memcpy(private_data + MAD_ADDRESS_SIZE, data, length);
	soft_cm_id_send(cm_id, &mad);
}

enum outcome soft_cm_connect(struct endpoint *base, const void *data, size_t length)
{
	struct soft_transport *transport = soft_of(base->transport);
	struct soft_endpoint *endpoint = soft_endpoint_of(base);
	int64_t ack_timeout = base->options.path->ack_timeout;
	struct soft_cm_id *cm_id;

	cm_id = soft_cm_id_create(transport->cm, &endpoint->path);
	if (!cm_id)
		return transport_no_memory(endpoint_error(base), base->name, "connecting");
	soft_cm_id_attach(cm_id, endpoint);
	cm_id->active = true;
	endpoint->connects = true;
	cm_id->local_qpn = base->qpn;
	cm_id->transaction = soft_random(&transport->random);
	cm_id->agreement.rq_psn = (uint32_t)soft_random(&transport->random) & PSN_MASK;
	cm_id->agreement.retry_count = (unsigned)endpoint_option_or(base, retry, CM_QP_RETRIES);
	cm_id->agreement.rnr_retry_count = (unsigned)endpoint_option_or(base, rnr_retry, CM_QP_RETRIES);
	cm_id->agreement.ack_timeout = ack_timeout == PATH_UNSET ? ACK_TIMEOUT : (unsigned)ack_timeout;
	cm_id->agreement.reads_in = READS_OFFERED;
	cm_id->agreement.reads_out = READS_OFFERED;
	soft_cm_id_enter(cm_id, CM_REQ_SENT);
	send_req(cm_id, data, length);
	soft_schedule(transport);
	return OUTCOME_OK;
}

static void cm_establish(struct soft_cm_id *cm_id, const struct mad *mad)
{
	const struct mad_rep *rep = &mad->rep;
	struct soft_endpoint *endpoint = cm_id->endpoint;
	struct soft_agreement *agreement = &cm_id->agreement;
	struct soft_cm_id *older;
	struct mad rtu;

	if (!soft_cm_is_qpn(rep->qpn)) {
		cm_id->remote_id = mad->local_id;
		soft_cm_send_rej(cm_id, REJECTED_BY_CONSUMER, NULL, 0);
		soft_event_failed(endpoint, "invalid QPN in the peer's REP", "QPN", (int)rep->qpn);
		return;
	}
	/* REP is authentic: the peer has reused the queue pair, so its older connection is gone. */
	older = soft_cm_id_find_qpn(cm_id->cm, rep->ca_guid, rep->qpn, &cm_id->path.peer);
	if (older)
		soft_cm_fail(older, "the peer uses the queue pair for a new connection", ECONNRESET);
	soft_cm_id_set_peer(cm_id, rep->ca_guid, mad->local_id, rep->qpn);
	agreement->sq_psn = rep->starting_psn;
	agreement->rnr_retry_count = rep->rnr_retry_count;
	agreement->reads_out = MIN(agreement->reads_out, rep->responder_resources);
	agreement->reads_in = MIN(agreement->reads_in, rep->initiator_depth);
	soft_qp_connect(endpoint->qp, agreement);
	soft_qp_start(endpoint->qp);
	if (WITH_REPORT && cm_id->repeats >= CM_PROBE_RESENDS)
		cm_id->cm->transport->counts[SOFT_REPEATED_REQS].increase += cm_id->repeats;
	soft_cm_id_enter(cm_id, CM_ESTABLISHED);
	rtu = soft_cm_id_mad(cm_id, MAD_RTU);
	soft_cm_id_send(cm_id, &rtu);
	soft_event_queue(endpoint, SOFT_EVENT_ESTABLISHED, mad->private_data, mad->private_length);
}

void soft_cm_rep_received(struct soft_cm_id *cm_id, const struct mad *rep)
{
	switch (cm_id->state) {
	case CM_REQ_SENT:
		cm_establish(cm_id, rep);
		break;
	case CM_ESTABLISHED: /* our RTU was lost */
		if (cm_id->active)
			soft_cm_id_resend(cm_id);
		break;
	case CM_REJECTED: /* our REJ was lost */
		soft_cm_resend_rej(cm_id, rep);
		break;
	default:
		break;
	}
}

bool soft_cm_retry_req(struct soft_cm_id *cm_id, const struct mad_rej *rej)
{
	unsigned path_mtu = rej->reason == REJECTED_MTU && rej->information_length ? rej->information[0] : 0;
	uint8_t previous[MAD_SIZE];
	struct mad mad;

	memcpy(previous, cm_id->message, sizeof(previous));
	if (cm_id->state != CM_REQ_SENT || !mtu_bytes(path_mtu) || mtu_bytes(path_mtu) >= cm_id->endpoint->path.mtu ||
	    !mad_parse(previous, sizeof(previous), &mad))
		return false;
	cm_id->endpoint->path.mtu = mtu_bytes(path_mtu);
	cm_id->transaction = soft_random(&cm_id->cm->transport->random);
	soft_cm_id_renew(cm_id);
	mad.transaction = cm_id->transaction;
	mad.local_id = cm_id->local_id;
	mad.req.path_mtu = path_mtu;
	soft_cm_id_send(cm_id, &mad);
	return true;
}
