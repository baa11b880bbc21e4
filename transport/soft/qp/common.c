/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a queue pair's work, and helpers for requester, responder and datagrams. */
#include "core/clock.h"
#include "transport/soft/base/queue.h"
#include "transport/soft/qp/qp_internal.h"

int64_t qp_now(struct soft_qp *qp)
{
	struct soft_qp_table *table = qp->transport->qps;

	if (!table->now)
		table->now = clock_now();
	return table->now;
}

uint32_t qp_packets(const struct soft_qp *qp, uint32_t length)
{
	return length ? (length - 1) / qp->endpoint->path.mtu + 1 : 1;
}

void qp_send(struct soft_qp *qp, struct packet *packet)
{
	packet->pkey = PACKET_PKEY;
	packet->destination = qp->peer_qpn;
	soft_transmit(qp->transport, &qp->endpoint->path, packet);
}

void qp_halt(struct soft_qp *qp, enum qp_state state)
{
	if (qp->requester.ring.count)
		qp->transport->busy_qps--;
	qp->state = state;
	loop_timer_stop(&qp->timer);
	qp->requester.timer_at = 0;
	qp->requester.ring.count = 0;
	qp->requester.probing = false;
	qp->responder.ring.count = 0;
	qp->responder.resources_due = 0;
	qp->sent_datagrams = 0;
}

void qp_fail_work(struct soft_qp *qp, enum work_kind kind, uint32_t tag, enum completion_status status, int error)
{
	qp_halt(qp, QP_ERROR);
	soft_complete(qp->endpoint, kind, tag, error)->status = status;
}

void qp_fail_connection(struct soft_qp *qp, const char *cause, const char *code_name, int code)
{
	qp_halt(qp, QP_ERROR);
	soft_event_failed(qp->endpoint, cause, code_name, code);
}

void qp_valid_packet(struct soft_qp *qp)
{
	qp->last_packet_at = qp_now(qp);
	qp->suspected_at = 0;
	qp->endpoint->icmp.error = 0;
	if (qp->packet_received)
		return;
	qp->packet_received = true;
	soft_handlers.first_packet(qp->endpoint);
}

void qp_schedule_reply(struct soft_qp *qp)
{
	if (!qp->scheduled.list)
		soft_list_append(&qp->transport->qps->scheduled, &qp->scheduled, qp);
}
