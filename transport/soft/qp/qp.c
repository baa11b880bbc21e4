/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: creation, QPNs, posting, packet dispatch, batches of replies and keepalive. */
#include "transport/soft/qp/qp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/route.h"
#include "transport/soft/base/queue.h"
#include "transport/soft/base/random.h"
#include "transport/soft/qp/qp_internal.h"
#include "transport/soft/wire/mad.h"

enum {
	QPN_HALF = 12, /* bits */
	QPN_HALF_MASK = (1 << QPN_HALF) - 1,
	QPN_FIRST = 2, /* 0 and 1 are for management */
	QPN_LAST = 0xfffffe,
	PKEY_FULL_MEMBER = 0x8000, /* ignored: limited members are accepted too */
	PROBES_PER_PERIOD = 512,   /* of all queue pairs; the next period sends more */
};

/* An idle peer's silence before a probe. The interval doubles with each probe until work is posted. */
#define PROBE_INTERVAL_MIN (1 * CLOCK_NS_PER_S)
#define PROBE_INTERVAL_MAX (8 * CLOCK_NS_PER_S)
#define KEEPALIVE_PERIOD   (500 * CLOCK_NS_PER_MS)

/* Time to disprove an ICMP error. The keepalive timer checks it once a period. */
#define SUSPECT_TIMEOUT (1 * CLOCK_NS_PER_S)

static void keepalive(void *context);

struct soft_qp_table *soft_qp_table_open(struct soft_transport *transport)
{
	struct soft_qp_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->transport = transport;
	soft_table_open(&table->by_qpn);
	for (unsigned round = 0; round < QPN_ROUNDS; round++)
		table->qpn_keys[round] = soft_random(&transport->random);
	table->qpn_counter = (uint32_t)soft_random(&transport->random);
	return table;
}

void soft_qp_table_close(struct soft_qp_table *table)
{
	if (!table)
		return;
	loop_timer_stop(&table->keepalive_timer);
	soft_table_close(&table->by_qpn);
	free(table);
}

/* A Feistel network: different counters give different QPNs, and a QPN reveals nothing about the next one. */
static uint32_t qpn_permute(const struct soft_qp_table *table, uint32_t counter)
{
	uint32_t left = counter >> QPN_HALF & QPN_HALF_MASK, right = counter & QPN_HALF_MASK;

	for (unsigned round = 0; round < QPN_ROUNDS; round++) {
		uint64_t key = table->qpn_keys[round], mixed = soft_random_mix(soft_random_mix(key ^ right) + key);
		uint32_t next = (left ^ (uint32_t)mixed) & QPN_HALF_MASK;

		left = right;
		right = next;
	}
	return left << QPN_HALF | right;
}

/* Each QPN is used once: a Linux peer that still knows it rejects the REQ as stale, and ends the old connection. */
static uint32_t qpn_allocate(struct soft_qp_table *table)
{
	uint32_t qpn;

	do
		qpn = qpn_permute(table, table->qpn_counter++);
	while (qpn < QPN_FIRST || qpn > QPN_LAST || soft_table_find(&table->by_qpn, qpn));
	return qpn;
}

static bool is_group_qp(const struct soft_qp *qp)
{
	return endpoint_is_group(&qp->endpoint->base);
}

/* One allocation for the queue pair and both rings. */
static struct soft_qp *qp_allocate(uint32_t sends, uint32_t receives)
{
	struct soft_qp *qp = calloc(1, sizeof(*qp) + (size_t)sends * sizeof(struct request) +
					       (size_t)receives * sizeof(struct receive));

	if (!qp)
		return NULL;
	qp->requester.requests = (struct request *)(qp + 1);
	qp->requester.ring.capacity = sends;
	qp->responder.receives = (struct receive *)(qp->requester.requests + sends);
	qp->responder.ring.capacity = receives;
	return qp;
}

enum outcome soft_qp_create(struct endpoint *base)
{
	struct soft_endpoint *endpoint = soft_endpoint_of(base);
	struct soft_transport *transport = soft_of(base->transport);
	struct soft_qp_table *table = transport->qps;
	const struct endpoint_options *options = &base->options;
	struct error *reason = endpoint_error(base);
	struct soft_qp *qp;
	int error = 0;

	assert(options->send_depth <= SOFT_QP_DEPTH_MAX && options->receive_depth <= SOFT_QP_DEPTH_MAX);
	if (table->by_qpn.count >= SOFT_QPS_MAX) {
		error_set(reason, base->name, "too many queue pairs: the maximum is %d", SOFT_QPS_MAX);
		return OUTCOME_INTERNAL;
	}
	if (WITH_EXTRAS && options->udp_port)
		error = soft_path_leave_from(&endpoint->path, options->udp_port, options->udp_step);
	if (error && options->udp_step) {
		error_errno(reason, base->name, error, "opening one of at most %d UDP ports of its own",
			    UDP_SENDERS_MAX);
		return OUTCOME_INTERNAL;
	}
	/* One more send, for the probe. */
	qp = qp_allocate(options->send_depth + 1, options->receive_depth);
	if (!qp)
		return transport_no_memory(reason, base->name, "creating a queue pair");
	qp->transport = transport;
	qp->endpoint = endpoint;
	soft_socket_use(endpoint->path.socket, 1);
	soft_table_insert(&table->by_qpn, &qp->by_qpn, qpn_allocate(table), qp);
	if (is_group_qp(qp))
		qp->requester.next_psn = (uint32_t)soft_random(&transport->random) & PSN_MASK;
	endpoint->qp = qp;
	base->qpn = qp->by_qpn.key;
	base->options.udp_port = soft_path_sender(&endpoint->path)->port;
	return OUTCOME_OK;
}

/* ---- states ---- */

void soft_qp_drain(struct soft_qp *qp)
{
	enum qp_state state = QP_ERROR;

	if (qp->state == QP_DRAINING)
		return;
	/* The command may stop in the callback for the peer's last message, before that is acknowledged. */
	if (qp->state == QP_RTS) {
		responder_drain(qp);
		state = QP_DRAINING;
	}
	qp_halt(qp, state);
}

bool soft_qp_has_signalled_work(const struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;
	uint32_t index = qp->state == QP_RTS ? requester->ring.count : 0;

	while (index--) {
		const struct request *request = qp_request_at(requester, index);

		if (!request->unsignalled && !request->probe)
			return true;
	}
	return false;
}

void soft_qp_acknowledged(struct soft_qp *qp, uint32_t psn)
{
	const struct packet packet = {
		.opcode = OPCODE_ACKNOWLEDGE,
		.psn = psn,
		.acknowledgement.syndrome = syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED),
	};

	if (qp->state == QP_RTS)
		requester_receive(qp, &packet);
}

void soft_qp_destroy(struct soft_qp *qp)
{
	struct soft_qp_table *table;

	if (!qp)
		return;
	table = qp->transport->qps;
	qp_halt(qp, QP_ERROR);
	soft_list_remove(&qp->scheduled);
	soft_table_remove(&table->by_qpn, &qp->by_qpn);
	soft_socket_use(qp->endpoint->path.socket, -1);
	qp->endpoint->qp = NULL;
	qp->endpoint->base.qpn = 0;
	free(qp);
}

void soft_qp_connect(struct soft_qp *qp, const struct soft_agreement *agreement)
{
	if (qp->state != QP_INIT)
		return;
	qp->peer_qpn = agreement->peer_qpn;
	qp->retry_limit = (uint8_t)agreement->retry_count;
	qp->rnr_retry_limit = (uint8_t)agreement->rnr_retry_count;
	qp->ack_timeout = agreement->ack_timeout ? mad_timeout(agreement->ack_timeout) : 0;
	requester_connect(qp, agreement);
	responder_connect(qp, agreement);
	qp->state = QP_RTR;
	qp->endpoint->icmp.error = 0;
}

void soft_qp_start(struct soft_qp *qp)
{
	struct soft_qp_table *table = qp->transport->qps;

	if (qp->state != QP_RTR)
		return;
	qp->state = QP_RTS;
	qp->last_packet_at = qp_now(qp);
	qp->probe_interval = PROBE_INTERVAL_MIN;
	if (!table->keepalive_running)
		loop_timer_start(qp->transport->base.loop, &table->keepalive_timer, KEEPALIVE_PERIOD, keepalive, table);
	table->keepalive_running = true;
	requester_transmit(qp);
}

void soft_qp_join(struct soft_qp *qp, uint32_t qkey)
{
	struct soft_path *path = &qp->endpoint->path;

	path->unsent = &qp->unsent;
	qp->qkey = qkey;
	qp->drop_sends = qp->endpoint->base.options.no_loopback && path->interface == ROUTE_LOOPBACK;
	if (qp->state == QP_INIT)
		qp->state = QP_RTR;
}

/* ---- posting ---- */

static bool post_receive(struct responder *responder, const struct work *work)
{
	if (responder->ring.count == responder->ring.capacity)
		return false;
	responder->receives[soft_ring_push(&responder->ring)] = (struct receive){
		.memory = work->region->memory + work->offset,
		.length = work->length,
		.tag = work->tag,
	};
	return true;
}

/* One slot is reserved for the probe. */
static bool is_send_ring_full(const struct requester *requester)
{
	return requester->ring.count - requester->probing == requester->ring.capacity - 1;
}

/* False if the ring is full. */
static bool post_work(struct soft_qp *qp, const struct work *work)
{
	/* As in the verbs backend, work for a failed queue pair is dropped without completion. */
	if (qp->state >= QP_NAK_SENT)
		return true;
	if (work->kind == WORK_RECEIVE)
		return post_receive(&qp->responder, work);
	assert(qp->state != QP_INIT && (work->kind == WORK_SEND || !is_group_qp(qp)));
	assert(work->length <= (is_group_qp(qp) ? qp->endpoint->path.mtu : SOFT_LONGEST_MESSAGE));
	if (is_send_ring_full(&qp->requester))
		return false;
	requester_post(qp, work);
	return true;
}

enum outcome soft_qp_post(struct soft_qp *qp, const struct work *work, size_t count)
{
	struct soft_qp_table *table = qp->transport->qps;
	bool resets_now = !table->now;
	size_t posted = 0;

	while (posted < count && post_work(qp, &work[posted]))
		posted++;
	if (posted < count)
		error_errno(endpoint_error(&qp->endpoint->base), qp->endpoint->base.name, ENOMEM, "posting a %s",
			    work_kind_text(work->kind));
	if (is_group_qp(qp)) {
		datagram_transmit(qp);
	} else {
		qp->probe_interval = PROBE_INTERVAL_MIN;
		requester_transmit(qp);
	}
	if (resets_now)
		table->now = 0;
	return posted < count ? OUTCOME_INTERNAL : OUTCOME_OK;
}

/* ---- receiving ---- */

/* The source port differs for each queue pair of the peer, and may change: it identifies nothing. */
static bool is_from_peer(const struct soft_qp *qp, const struct soft_socket *socket, const struct address *from)
{
	return socket == qp->endpoint->path.socket && address_same_host(from, &qp->endpoint->path.peer);
}

bool soft_qp_is_peer(struct soft_transport *transport, const struct soft_socket *socket, const struct address *from,
		     uint32_t qpn)
{
	const struct soft_qp *qp = soft_table_find(&transport->qps->by_qpn, qpn);

	return qp && is_from_peer(qp, socket, from);
}

void soft_qp_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
		     const struct packet *packet)
{
	struct soft_qp *qp = soft_table_find(&transport->qps->by_qpn, packet->destination);
	unsigned form = opcode_form(packet->opcode);

	if (!qp || qp->state == QP_INIT || qp->state == QP_ERROR || (packet->pkey | PKEY_FULL_MEMBER) != PACKET_PKEY)
		return;
	if (is_group_qp(qp)) {
		if (form & FORM_DATAGRAM)
			datagram_receive(qp, from, &qp->endpoint->path.local, packet);
		return;
	}
	if ((form & FORM_DATAGRAM) || !is_from_peer(qp, socket, from))
		return;
	if (!(form & FORM_RESPONSE))
		responder_receive(qp, packet);
	else if (qp->state == QP_RTS)
		requester_receive(qp, packet);
}

/* A datagram from a sender in this process with no_loopback, which shares its socket with senders without. */
static bool is_unwanted_loopback(const struct soft_qp_table *table, const struct address *from, uint32_t qpn)
{
	const struct soft_qp *sender = soft_table_find(&table->by_qpn, qpn);

	return sender && is_group_qp(sender) && sender->endpoint->base.options.no_loopback &&
	       address_same_host(&sender->endpoint->path.local, from);
}

void soft_qp_receive_group(struct soft_transport *transport, const struct soft_socket *socket,
			   const struct address *from, const struct packet *packet)
{
	const struct soft_qp_table *table = transport->qps;

	if (!(opcode_form(packet->opcode) & FORM_DATAGRAM) || (packet->pkey | PKEY_FULL_MEMBER) != PACKET_PKEY ||
	    packet->destination != GROUP_QPN || is_unwanted_loopback(table, from, packet->datagram.source))
		return;
	for (struct soft_endpoint *member = transport->endpoints; member; member = member->next)
		if (member->group_socket == socket && member->qp && member->qp->state == QP_RTR)
			datagram_receive(member->qp, from, &socket->address, packet);
}

/* ---- scheduled replies ---- */

bool soft_qp_batch_end(struct soft_transport *transport)
{
	struct soft_qp_table *table = transport->qps;

	table->now = 0;
	for (unsigned count = table->scheduled.count; count; count--) {
		struct soft_qp *qp = table->scheduled.first->object;

		soft_list_remove(&qp->scheduled);
		if (qp->state != QP_ERROR && !responder_reply(qp))
			qp_schedule_reply(qp);
	}
	table->now = 0;
	return table->scheduled.count;
}

/* ---- keepalive ---- */

void soft_qp_probe(struct soft_qp *qp)
{
	if (qp->state == QP_RTS && !qp->requester.ring.count)
		requester_probe(qp);
}

void soft_qp_suspect(struct soft_qp *qp)
{
	if (qp->state != QP_RTS || qp->suspected_at)
		return;
	qp->suspected_at = qp_now(qp);
	soft_qp_probe(qp);
	requester_suspect(qp);
}

static bool is_suspect_expired(struct soft_qp *qp)
{
	return qp->suspected_at && qp_now(qp) - qp->suspected_at >= SUSPECT_TIMEOUT;
}

static bool is_probe_due(struct soft_qp *qp, int64_t now)
{
	if (qp->requester.ring.count || now - qp->last_packet_at < qp->probe_interval)
		return false;
	if (qp->probe_interval < PROBE_INTERVAL_MAX)
		qp->probe_interval *= 2;
	return true;
}

/* A firewall at the peer sends the same ICMP error as its kernel; one on the way has another address. */
static const char *lost_text(const struct soft_icmp *icmp)
{
	return WITH_EXTRAS && icmp->error && !address_same_host(&icmp->from, &icmp->peer)
		       ? "connection lost: a firewall or router on the way rejects UDP port 4791"
		       : "connection lost: the peer's process has ended, or a firewall rejects UDP port 4791";
}

static void keepalive(void *context)
{
	struct soft_qp_table *table = context;
	const struct soft_table *qps = &table->by_qpn;
	size_t start = table->keepalive_start;
	unsigned probes = 0;
	bool any = false;

	soft_callback_begin(table->transport);
	for (size_t count = 0; count < qps->bucket_count; count++) {
		size_t bucket = (start + count) & (qps->bucket_count - 1);

		for (struct soft_table_entry *entry = qps->buckets[bucket]; entry; entry = entry->next) {
			struct soft_qp *qp = entry->object;

			if (qp->state != QP_RTS)
				continue;
			any = true;
			if (is_suspect_expired(qp)) {
				qp->endpoint->probe = SOFT_PROBE_NONE; /* its answer explains a silent peer */
				qp_fail_connection(qp, lost_text(&qp->endpoint->icmp), NULL, ECONNREFUSED);
			} else if (probes < PROBES_PER_PERIOD && is_probe_due(qp, qp_now(qp))) {
				soft_qp_probe(qp);
				probes++;
				table->keepalive_start = bucket;
			}
		}
	}
	table->keepalive_running = any;
	if (any)
		loop_timer_start(table->transport->base.loop, &table->keepalive_timer, KEEPALIVE_PERIOD, keepalive,
				 table);
	soft_callback_end(table->transport);
}
