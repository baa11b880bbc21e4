/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages: sending, sending again until there is an answer, and REJ. */
#include "transport/soft/cm/cm_internal.h"

#include <errno.h>
#include <string.h>

#include "transport/soft/base/queue.h"

void soft_cm_gid(const struct address *address, uint8_t gid[MAD_GID_SIZE])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (address->family == ADDRESS_IP4) {
		memcpy(gid, mapped, sizeof(mapped));
		memcpy(gid + sizeof(mapped), address->bytes, 4);
	} else {
		memcpy(gid, address->bytes, MAD_GID_SIZE);
	}
}

static void send_bytes(struct soft_cm *cm, const struct soft_path *path, const uint8_t bytes[MAD_SIZE])
{
	struct packet packet = {
		.opcode = OPCODE_DATAGRAM,
		.pkey = PACKET_PKEY,
		.destination = MAD_QPN,
		.datagram = { .key = MAD_QKEY, .source = MAD_QPN },
		.length = MAD_SIZE,
	};

	if (cm->outgoing_count == CM_OUTGOING) {
		soft_flush(cm->transport);
		cm->outgoing_count = 0;
	}
	packet.psn = cm->psn++ & PSN_MASK;
	packet.payload = memcpy(cm->outgoing[cm->outgoing_count++], bytes, MAD_SIZE);
	soft_transmit(cm->transport, path, &packet);
}

void soft_cm_send(struct soft_cm *cm, const struct soft_path *path, const struct mad *mad)
{
	uint8_t bytes[MAD_SIZE];

	mad_write(mad, bytes);
	send_bytes(cm, path, bytes);
}

struct mad soft_cm_reply(const struct mad *received, enum mad_kind kind)
{
	return (struct mad){
		.kind = kind,
		.transaction = received->transaction,
		.local_id = received->remote_id,
		.remote_id = received->local_id,
	};
}

/* QPNs 0 and 1 are for management. */
bool soft_cm_is_qpn(uint32_t number)
{
	return number > MAD_QPN && number < GROUP_QPN;
}

/* ---- until an answer ---- */

static void response_timeout(void *context);
static void resends_exhausted(struct soft_cm_id *cm_id);

/* The random identifier spreads simultaneous cm_ids' resends by an eighth. */
static int64_t resend_interval(const struct soft_cm_id *cm_id)
{
	int64_t interval = CM_LONGEST_INTERVAL;

	if (cm_id->resends < CM_BACKOFF_STEPS)
		interval = CM_FIRST_INTERVAL << cm_id->resends;
	return interval + interval / 64 * ((int64_t)(cm_id->local_id % 16) - 8);
}

/* A flood's REQs have forged addresses: their owners get at most one REP for each REQ. */
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
		resends_exhausted(cm_id);
	} else {
		cm_id->resends++;
		cm_id->repeats += cm_id->state == CM_REQ_SENT && !cm_id->awaited;
		if (may_resend(cm_id))
			soft_cm_id_resend(cm_id);
		if (SOFT_PROBES && cm_id->endpoint && cm_id->resends >= CM_PROBE_RESENDS)
			soft_probe_host(cm_id->endpoint);
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
	/* Above that many connections under way the timer resends nothing: the longest interval is enough. */
	cm_id->resends = may_resend(cm_id) ? 0 : CM_BACKOFF_STEPS;
	if (cm_id->state == CM_REQ_SENT || cm_id->state == CM_REP_SENT || cm_id->state == CM_DREQ_SENT)
		start_response_timer(cm_id);
}

void soft_cm_id_resend(struct soft_cm_id *cm_id)
{
	send_bytes(cm_id->cm, &cm_id->path, cm_id->message);
}

void soft_cm_id_mra_received(struct soft_cm_id *cm_id)
{
	cm_id->resends = CM_BACKOFF_STEPS;
	cm_id->awaited = true;
	start_response_timer(cm_id);
}

/* ---- failures and REJ ---- */

void soft_cm_stop_qp(const struct soft_cm_id *cm_id)
{
	if (cm_id->endpoint && cm_id->endpoint->qp)
		soft_qp_drain(cm_id->endpoint->qp);
}

void soft_cm_report_disconnected(const struct soft_cm_id *cm_id)
{
	if (cm_id->endpoint)
		soft_event_queue(cm_id->endpoint, SOFT_EVENT_DISCONNECTED, NULL, 0);
}

void soft_cm_fail(struct soft_cm_id *cm_id, const char *cause, int error)
{
	bool disconnecting = cm_id->state == CM_DREQ_SENT;

	soft_cm_stop_qp(cm_id);
	soft_cm_id_enter(cm_id, CM_TIMEWAIT);
	/* The command's own disconnect is not a failure. */
	if (disconnecting)
		soft_cm_report_disconnected(cm_id);
	else
		soft_event_failed(cm_id->endpoint, cause, NULL, error);
}

static void write_rej(struct soft_cm_id *cm_id, uint16_t reason, const void *data, size_t length)
{
	uint8_t guid[8];
	struct mad mad = soft_cm_id_mad(cm_id, MAD_REJ);

	mad.rej = (struct mad_rej){ .answered = MAD_ANSWERED_OTHER, .reason = reason };
	mad.private_data = data;
	mad.private_length = length;
	/* The peer does not know our identifier yet. */
	if (cm_id->state == CM_REQ_RECEIVED) {
		mad.local_id = 0;
		mad.rej.answered = MAD_ANSWERED_REQ;
	}
	/* With this the peer finds its cm_id if we do not know its identifier. */
	if (reason == REJECTED_TIMEOUT) {
		bytes_write(guid, sizeof(guid), cm_id->cm->transport->guid);
		mad.rej.information = guid;
		mad.rej.information_length = sizeof(guid);
	}
	mad_write(&mad, cm_id->message);
	soft_cm_id_enter(cm_id, CM_REJECTED);
}

void soft_cm_send_rej(struct soft_cm_id *cm_id, uint16_t reason, const void *data, size_t length)
{
	write_rej(cm_id, reason, data, length);
	soft_cm_id_resend(cm_id);
}

/* Without a cause, so that nothing is logged: there may be 100,000 a second. */
void soft_cm_evict(struct soft_cm_id *cm_id)
{
	soft_cm_stop_qp(cm_id);
	write_rej(cm_id, REJECTED_NO_RESOURCES, NULL, 0);
	soft_event_queue(cm_id->endpoint, SOFT_EVENT_FAILED, NULL, 0);
}

void soft_cm_resend_rej(struct soft_cm_id *cm_id, const struct mad *received)
{
	struct mad mad;

	if (!mad_parse(cm_id->message, sizeof(cm_id->message), &mad))
		return;
	mad.local_id = received->kind == MAD_REQ ? 0 : cm_id->local_id;
	mad.remote_id = received->local_id;
	mad.rej.answered = received->kind == MAD_REQ   ? MAD_ANSWERED_REQ
			   : received->kind == MAD_REP ? MAD_ANSWERED_REP
						       : MAD_ANSWERED_OTHER;
	soft_cm_send(cm_id->cm, &cm_id->path, &mad);
	soft_cm_id_restart_timewait(cm_id);
}

static void resends_exhausted(struct soft_cm_id *cm_id)
{
	if (cm_id->state == CM_REQ_SENT || cm_id->state == CM_REP_SENT) {
		soft_cm_stop_qp(cm_id);
		soft_cm_send_rej(cm_id, REJECTED_TIMEOUT, NULL, 0);
		soft_event_failed(cm_id->endpoint, "the peer's connection manager does not answer", NULL, ETIMEDOUT);
	} else {
		soft_cm_id_enter(cm_id, CM_TIMEWAIT);
		soft_cm_report_disconnected(cm_id);
	}
}
