/* SPDX-License-Identifier: BSD-2-Clause */
/* REJ, DREQ, DREP, ICMP errors, release by the endpoint. */
#include "transport/soft/cm/cm_internal.h"

#include <errno.h>

#include "transport/soft/base/queue.h"

/* ---- REJ ---- */

void soft_cm_reject(struct endpoint *endpoint, const void *data, size_t length)
{
	struct soft_cm_id *cm_id = soft_endpoint_of(endpoint)->cm_id;

	if (cm_id && cm_id->state == CM_REQ_RECEIVED) {
		soft_cm_send_rej(cm_id, REJECTED_BY_CONSUMER, data, length);
		soft_schedule(cm_id->cm->transport);
	}
}

void soft_cm_rej_received(struct soft_cm_id *cm_id, const struct mad *mad)
{
	const struct mad_rej *rej = &mad->rej;

	switch (cm_id->state) {
	case CM_REQ_SENT:
	case CM_REQ_RECEIVED:
	case CM_REP_SENT:
	case CM_ESTABLISHED:
		soft_cm_stop_qp(cm_id);
		soft_cm_id_enter(cm_id, CM_TIMEWAIT);
		soft_event_rejected(cm_id->endpoint, rejection_text((int)rej->reason), (int)rej->reason,
				    mad->private_data, mad->private_length);
		break;
	case CM_DREQ_SENT:
		soft_cm_id_enter(cm_id, CM_TIMEWAIT);
		soft_cm_report_disconnected(cm_id);
		break;
	default:
		break;
	}
}

/* ---- DREQ and DREP ---- */

/* DREQ begins a new transaction. */
static void send_dreq(struct soft_cm_id *cm_id)
{
	struct mad dreq = soft_cm_id_mad(cm_id, MAD_DREQ);

	dreq.transaction = soft_random(&cm_id->cm->transport->random);
	dreq.dreq = (struct mad_dreq){
		.remote_qpn = cm_id->agreement.peer_qpn,
		.mark = MAD_DREQ_MARK,
		.acked_psn = soft_qp_last_ack(cm_id->endpoint->qp),
	};
	soft_cm_id_enter(cm_id, CM_DREQ_SENT);
	soft_cm_id_send(cm_id, &dreq);
}

enum outcome soft_cm_disconnect(struct endpoint *endpoint)
{
	struct soft_cm_id *cm_id = soft_endpoint_of(endpoint)->cm_id;

	/* In other states the queue pair has stopped, and the event of the end is queued. */
	if (cm_id && cm_id->state == CM_ESTABLISHED) {
		soft_cm_stop_qp(cm_id);
		send_dreq(cm_id);
		soft_schedule(cm_id->cm->transport);
	}
	return OUTCOME_OK;
}

void soft_cm_send_drep(struct soft_cm_id *cm_id)
{
	struct mad drep = soft_cm_id_mad(cm_id, MAD_DREP);

	drep.transaction = cm_id->dreq_transaction;
	soft_cm_send(cm_id->cm, &cm_id->path, &drep);
	cm_id->drep_sent_at = clock_now();
}

static void finish_disconnect(struct soft_cm_id *cm_id)
{
	soft_cm_stop_qp(cm_id);
	soft_cm_send_drep(cm_id);
	soft_cm_id_enter(cm_id, CM_TIMEWAIT);
	soft_cm_report_disconnected(cm_id);
}

static void drain_timeout(void *context)
{
	struct soft_cm_id *cm_id = context;
	struct soft_transport *transport = cm_id->cm->transport;

	soft_callback_begin(transport);
	finish_disconnect(cm_id);
	soft_callback_end(transport);
}

/*
 * When the peer's DREQ arrives, our last messages may have been delivered although their ACKs were lost or overtaken.
 * Like a TCP FIN, an rdmatest peer's DREQ is itself an acknowledgement, and is resent until DREP. A kernel's is not, so
 * DREP waits up to CM_DRAIN_TIME. Each resent DREQ checks again.
 */
static bool must_drain(struct soft_cm_id *cm_id, const struct mad_dreq *dreq)
{
	if (cm_id->state != CM_ESTABLISHED)
		return false;
	if (dreq->mark == MAD_DREQ_MARK) {
		soft_qp_acknowledged(cm_id->endpoint->qp, dreq->acked_psn);
		return false;
	}
	if (!soft_qp_has_signalled_work(cm_id->endpoint->qp))
		return false;
	if (!cm_id->dreq_received)
		loop_timer_start(cm_id->cm->transport->base.loop, &cm_id->timer, CM_DRAIN_TIME, drain_timeout, cm_id);
	cm_id->dreq_received = true;
	return true;
}

void soft_cm_dreq_received(struct soft_cm_id *cm_id, const struct mad *dreq)
{
	cm_id->dreq_transaction = dreq->transaction;
	switch (cm_id->state) {
	case CM_ESTABLISHED:
	case CM_DREQ_SENT: /* both sides at once */
		if (!must_drain(cm_id, &dreq->dreq))
			finish_disconnect(cm_id);
		break;
	case CM_TIMEWAIT:
	case CM_REJECTED:
		soft_cm_send_drep(cm_id);
		soft_cm_id_restart_timewait(cm_id);
		break;
	default:
		break;
	}
}

void soft_cm_drep_received(struct soft_cm_id *cm_id)
{
	if (cm_id->state != CM_DREQ_SENT)
		return;
	soft_cm_id_enter(cm_id, CM_TIMEWAIT);
	soft_cm_report_disconnected(cm_id);
}

/* ---- ICMP errors ---- */

enum {
	/* Offsets in the quoted packet: BTH, DETH, MAD header, Local Communication ID. */
	QUOTED_QPN = 5,
	QUOTED_MAD = PACKET_BASE_SIZE + 8,
	QUOTED_ID = QUOTED_MAD + 24,
	QUOTED_ID_END = QUOTED_ID + 4,
};

/* A firewall answers like the peer's kernel; only this host's loopback has none. */
static const char *refusal_text(const struct soft_icmp *icmp)
{
	if (address_is_loopback(&icmp->peer))
		return "no server there: nothing holds UDP port 4791";
	return address_same_host(&icmp->from, &icmp->peer) ? "no server there, or a firewall rejects UDP port 4791"
							   : "a firewall or router on the way rejects UDP port 4791";
}

/* The answer to soft_probe_host()'s datagram concerns all unanswered connections to that host. */
static void host_answered(struct soft_transport *transport, const struct soft_icmp *icmp)
{
	if (!transport->probes || !address_same_host(&icmp->from, &icmp->peer))
		return;
	transport->probes--;
	for (struct soft_endpoint *endpoint = transport->endpoints; endpoint; endpoint = endpoint->next)
		if (endpoint->probe && address_same_host(&endpoint->path.peer, &icmp->peer))
			endpoint->probe = SOFT_PROBE_ANSWERED;
}

void soft_cm_unreachable(struct soft_transport *transport, const struct soft_socket *socket,
			 const struct soft_icmp *icmp, const uint8_t *quoted, size_t length)
{
	uint32_t qpn = length < PACKET_BASE_SIZE ? 0 : (uint32_t)bytes_read(quoted + QUOTED_QPN, 3);
	bool is_mad = qpn == MAD_QPN && length >= QUOTED_ID_END;
	uint32_t id = is_mad ? (uint32_t)bytes_read(quoted + QUOTED_ID, 4) : 0;
	struct soft_cm_id *cm_id = soft_cm_id_find_sender(transport->cm, id, qpn, socket, &icmp->peer);

	if (SOFT_PROBES && icmp->peer.port == UDP_PORT_CLOSED)
		host_answered(transport, icmp);
	if (!cm_id || (SOFT_PROBES && icmp->peer.port == UDP_PORT_CLOSED))
		return;
	if (cm_id->endpoint && !address_is_loopback(&icmp->peer))
		cm_id->endpoint->icmp = *icmp;
	if (icmp->error != ECONNREFUSED)
		return;
	if (cm_id->state == CM_ESTABLISHED) {
		soft_qp_suspect(cm_id->endpoint->qp);
	} else if (is_mad && cm_id->state < CM_TIMEWAIT) {
		soft_cm_fail(cm_id, refusal_text(icmp), ECONNREFUSED);
	}
}

/* ---- release by the endpoint ---- */

void soft_cm_release(struct soft_endpoint *endpoint)
{
	struct soft_cm_id *cm_id = endpoint->cm_id;

	if (!cm_id)
		return;
	switch (cm_id->state) {
	case CM_REQ_SENT:
		soft_cm_send_rej(cm_id, REJECTED_TIMEOUT, NULL, 0);
		break;
	case CM_REQ_RECEIVED:
	case CM_REP_SENT:
		soft_cm_send_rej(cm_id, REJECTED_BY_CONSUMER, NULL, 0);
		break;
	case CM_ESTABLISHED:
		soft_cm_stop_qp(cm_id);
		send_dreq(cm_id);
		break;
	default:
		break;
	}
	soft_schedule(cm_id->cm->transport);
	soft_cm_id_detach(cm_id);
}
