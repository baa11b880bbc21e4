/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: made, numbered, found, posted to, watched for silence; which half of one a packet is for. */
#include "transport/soft/qp/qp.h"

#include <errno.h>
#include <stdlib.h>

#include "core/clock.h"
#include "transport/soft/cm/cm.h"
#include "transport/soft/delivery.h"
#include "transport/soft/net/packet_io.h"
#include "transport/soft/number.h"
#include "transport/soft/qp/datagram.h"
#include "transport/soft/qp/recovery.h"
#include "transport/soft/qp/requester.h"
#include "transport/soft/qp/responder.h"
#include "transport/soft/wire/mad.h"

enum {
	HALF_BITS = 12,	  /* of a number */
	NUMBER_FIRST = 2, /* 0 and 1 are the managers' */
	NUMBER_LAST = 0xfffffe,
	FULL_MEMBER = 0x8000, /* of a partition; limited members are taken as well */
	PROBES_AT_ONCE = 512, /* in one turn of the watch: the others' come with the next */
};

/* A peer that was silent for that long is asked whether it lives; one that does, less often from then on. */
#define PATIENCE_FIRST (1 * CLOCK_NS_PER_S)
#define PATIENCE_MOST  (8 * CLOCK_NS_PER_S)
#define WATCH_PERIOD   (500 * CLOCK_NS_PER_MS)

/* A peer that is said to be gone must show within this that it is not; the watch looks at the next turn after it. */
#define DOUBT_MOST (1 * CLOCK_NS_PER_S)

struct soft_qp_table {
	struct soft_transport *transport;
	struct soft_table by_number;
	struct soft_number_keys numbers;
	uint32_t turn; /* of them */
	struct soft_qp *pending, **pending_end;
	struct soft_qp *groups;
	struct loop_timer again; /* for what the slices of the last turn left */
	struct loop_timer watch;
	bool watching;
	size_t watch_from; /* the head of by_number that comes first in the next turn of the watch */
	int64_t now;	   /* 0: to be read */
};

static void watch(void *owner);

struct soft_qp_table *soft_qp_table_open(struct soft_transport *transport)
{
	struct soft_qp_table *table = calloc(1, sizeof(*table));

	if (table && !soft_table_open(&table->by_number)) {
		free(table);
		return NULL;
	}
	if (!table)
		return NULL;
	table->transport = transport;
	table->pending_end = &table->pending;
	soft_number_init_keys(&table->numbers);
	table->turn = (uint32_t)soft_random();
	return table;
}

void soft_qp_table_close(struct soft_qp_table *table)
{
	if (!table)
		return;
	loop_timer_stop(&table->again);
	loop_timer_stop(&table->watch);
	soft_table_close(&table->by_number);
	free(table);
}

/* Each comes once: a Linux peer takes a number that it still remembers for the old connection, and ends that. */
static uint32_t take_number(struct soft_qp_table *table)
{
	uint32_t number;

	do
		number = soft_number_permute(&table->numbers, HALF_BITS, table->turn++);
	while (number < NUMBER_FIRST || number > NUMBER_LAST || soft_table_find(&table->by_number, number));
	return number;
}

/* One piece of memory: the queue, its sends, its receives. */
static struct soft_qp *allocate(uint32_t sends, uint32_t receives)
{
	struct soft_qp *qp = calloc(1, sizeof(*qp) + (size_t)sends * sizeof(struct request) +
					       (size_t)receives * sizeof(struct receive));

	if (!qp)
		return NULL;
	qp->requester.ring = (struct request *)(qp + 1);
	qp->requester.capacity = sends;
	qp->responder.ring = (struct receive *)(qp->requester.ring + sends);
	qp->responder.capacity = receives;
	return qp;
}

enum outcome soft_qp_create(struct soft_endpoint *endpoint)
{
	struct soft_transport *transport = soft_of(endpoint->base.transport);
	struct soft_qp_table *table = transport->qps;
	const struct endpoint_options *options = &endpoint->base.options;
	const struct log *log = endpoint->base.log;
	struct soft_qp *qp;

	if (options->send_depth > SOFT_DEEPEST_QUEUE || options->receive_depth > SOFT_DEEPEST_QUEUE) {
		log_error(log, endpoint->base.name, "a queue pair holds at most %d works in each direction, not %u",
			  SOFT_DEEPEST_QUEUE,
			  options->send_depth > options->receive_depth ? options->send_depth : options->receive_depth);
		return OUTCOME_INTERNAL;
	}
	if (table->by_number.count >= SOFT_QUEUES_MOST) {
		log_error(log, endpoint->base.name, "there are %d queue pairs already, which is the most",
			  SOFT_QUEUES_MOST);
		return OUTCOME_INTERNAL;
	}
	/* One send more, for the probe. */
	qp = allocate(options->send_depth + 1, options->receive_depth);
	if (!qp) {
		log_errno(log, endpoint->base.name, ENOMEM, "creating a queue pair");
		return OUTCOME_INTERNAL;
	}
	qp->transport = transport;
	qp->endpoint = endpoint;
	soft_table_insert(&table->by_number, &qp->by_number, take_number(table), qp);
	if (endpoint->base.kind == ENDPOINT_GROUP) {
		qp->requester.next_psn = (uint32_t)soft_random() & PSN_MASK;
		qp->next_group = table->groups;
		qp->link_to_this = &table->groups;
		if (table->groups)
			table->groups->link_to_this = &qp->next_group;
		table->groups = qp;
	}
	endpoint->qp = qp;
	endpoint->base.qpn = soft_qp_number(qp);
	return OUTCOME_OK;
}

uint32_t soft_qp_number(const struct soft_qp *qp)
{
	return qp->by_number.key;
}

/* ---- its states ---- */

static void halt(struct soft_qp *qp, enum qp_state state)
{
	if (qp->requester.count && !qp->link_to_this)
		qp->transport->busy_qps--;
	qp->state = state;
	loop_timer_stop(&qp->timer);
	qp->requester.alarm = 0;
	qp->requester.count = 0;
	qp->responder.count = 0;
	qp->responder.due = 0;
	qp->unreported = 0;
}

void soft_qp_stop(struct soft_qp *qp)
{
	enum qp_state state = QP_ERROR;

	if (qp->state == QP_DRAINING)
		return;
	/* A command may leave in the very call-back that brought the peer's last message: the peer needs to know. */
	if (qp->state == QP_RTS) {
		responder_part(qp);
		state = QP_DRAINING;
	}
	halt(qp, state);
}

static bool is_probing(const struct requester *requester)
{
	return requester->count && requester->ring[requester->head].probe;
}

bool soft_qp_is_waiting(const struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;
	uint32_t behind = qp->state == QP_RTS ? requester->count : 0;

	while (behind--) {
		const struct request *request = &requester->ring[(requester->head + behind) % requester->capacity];

		if (!request->silent && !request->probe)
			return true;
	}
	return false;
}

static void unpend(struct soft_qp_table *table, struct soft_qp *qp)
{
	struct soft_qp **pprev = &table->pending;

	if (!qp->pending)
		return;
	while (*pprev != qp)
		pprev = &(*pprev)->next_pending;
	*pprev = qp->next_pending;
	if (table->pending_end == &qp->next_pending)
		table->pending_end = pprev;
	qp->pending = false;
}

void soft_qp_destroy(struct soft_qp *qp)
{
	struct soft_qp_table *table;

	if (!qp)
		return;
	table = qp->transport->qps;
	halt(qp, QP_ERROR);
	unpend(table, qp);
	soft_table_remove(&table->by_number, &qp->by_number);
	if (qp->link_to_this) {
		*qp->link_to_this = qp->next_group;
		if (qp->next_group)
			qp->next_group->link_to_this = qp->link_to_this;
	}
	qp->endpoint->qp = NULL;
	qp->endpoint->base.qpn = 0;
	free(qp);
}

void soft_qp_connect(struct soft_qp *qp, const struct soft_agreement *agreement)
{
	if (qp->state != QP_INIT)
		return;
	qp->path = agreement->path;
	qp->peer_qpn = agreement->peer_qpn;
	qp->retry_count = (uint8_t)agreement->retry_count;
	qp->rnr_retry_count = (uint8_t)agreement->rnr_retry_count;
	qp->ack_timeout = agreement->ack_timeout ? mad_timeout(agreement->ack_timeout) : 0;
	requester_connect(qp, agreement);
	responder_connect(qp, agreement);
	qp->state = QP_RTR;
	qp->endpoint->icmp_errno = 0;
}

void soft_qp_start(struct soft_qp *qp)
{
	struct soft_qp_table *table = qp->transport->qps;

	if (qp->state != QP_RTR)
		return;
	qp->state = QP_RTS;
	qp->heard_at = qp_now(qp);
	qp->patience = PATIENCE_FIRST;
	if (!table->watching)
		loop_timer_start(qp->transport->base.loop, &table->watch, WATCH_PERIOD, watch, table);
	table->watching = true;
	requester_transmit(qp);
}

void soft_qp_aim(struct soft_qp *qp, const struct soft_path *path, uint32_t qkey)
{
	qp->path = *path;
	qp->path.unsent = &qp->unsent;
	qp->qkey = qkey;
	qp->unheard = qp->endpoint->base.options.no_loopback && soft_is_loopback(&path->local);
	if (qp->state == QP_INIT)
		qp->state = QP_RTR;
}

void qp_fail(struct soft_qp *qp, enum work_kind kind, uint32_t tag, enum completion_status status, unsigned raw)
{
	struct completion completion = { .kind = kind, .tag = tag, .status = status };

	halt(qp, QP_ERROR);
	soft_complete(qp->endpoint, &completion, raw);
}

void qp_fail_alone(struct soft_qp *qp, const char *cause, const char *code_name, int code)
{
	halt(qp, QP_ERROR);
	soft_event_failed(qp->endpoint, cause, code_name, code);
}

/* ---- posting ---- */

static enum outcome refuse(const struct soft_qp *qp, const struct work *work, int error)
{
	log_errno(qp->endpoint->base.log, qp->endpoint->base.name, error, "posting a %s", work_kind_text(work->kind));
	return OUTCOME_INTERNAL;
}

static enum outcome post_receive(struct soft_qp *qp, const struct work *work)
{
	struct responder *responder = &qp->responder;
	uint32_t place = responder->head + responder->count;

	if (responder->count == responder->capacity)
		return refuse(qp, work, ENOMEM);
	if (place >= responder->capacity)
		place -= responder->capacity;
	responder->ring[place] = (struct receive){
		.memory = work->region->memory + work->offset,
		.length = work->length,
		.tag = work->tag,
	};
	responder->count++;
	return OUTCOME_OK;
}

/* The probe has a place of its own. */
static bool is_full(const struct requester *requester)
{
	return requester->count - is_probing(requester) == requester->capacity - 1;
}

static enum outcome post(struct soft_qp *qp, const struct work *work)
{
	bool group = qp->endpoint->base.kind == ENDPOINT_GROUP;
	uint32_t longest = group ? qp->path.mtu : SOFT_LONGEST_MESSAGE;

	/* As with verbs, work for a queue that has failed disappears without a word. */
	if (qp->state >= QP_REFUSED)
		return OUTCOME_OK;
	if (work->kind == WORK_RECEIVE)
		return post_receive(qp, work);
	if (qp->state == QP_INIT)
		return refuse(qp, work, ENOTCONN);
	if (group && work->kind != WORK_SEND)
		return refuse(qp, work, EOPNOTSUPP);
	if (work->length > longest)
		return refuse(qp, work, EMSGSIZE);
	if (is_full(&qp->requester))
		return refuse(qp, work, ENOMEM);
	if (group)
		datagram_post(qp, work);
	else
		requester_post(qp, work);
	return OUTCOME_OK;
}

enum outcome soft_qp_post(struct soft_qp *qp, const struct work *work, size_t count)
{
	struct soft_qp_table *table = qp->transport->qps;
	bool own_time = !table->now;
	enum outcome outcome = OUTCOME_OK;

	for (size_t index = 0; index < count && !outcome; index++)
		outcome = post(qp, &work[index]);
	if (qp->endpoint->base.kind == ENDPOINT_GROUP) {
		datagram_transmit(qp);
	} else {
		qp->patience = PATIENCE_FIRST;
		requester_transmit(qp);
	}
	if (own_time)
		table->now = 0;
	return outcome;
}

/* ---- receiving ---- */

void soft_qp_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
		     const struct packet *packet, const struct icrc_pending *pending)
{
	struct soft_qp *qp = soft_table_find(&transport->qps->by_number, packet->destination);
	unsigned form = opcode_form(packet->opcode);

	if (!qp || qp->state == QP_INIT || qp->state == QP_ERROR || (packet->pkey | FULL_MEMBER) != PACKET_PKEY)
		return;
	if (qp->endpoint->base.kind == ENDPOINT_GROUP) {
		if ((form & FORM_DATAGRAM) && icrc_confirm(pending))
			datagram_receive(qp, from, &qp->path.local, packet);
		return;
	}
	/* Never by the source port: it differs per queue, and may change. */
	if ((form & FORM_DATAGRAM) || socket != qp->path.socket || !address_same_host(from, &qp->path.peer) ||
	    !icrc_confirm(pending))
		return;
	if (!(form & FORM_RESPONSE))
		responder_receive(qp, packet);
	else if (qp->state == QP_RTS)
		requester_receive(qp, packet);
}

/* A sender of this process that wants no loopback: its socket may serve others that do. */
static bool is_unwanted_loop(const struct soft_qp_table *table, const struct address *from, uint32_t number)
{
	const struct soft_qp *sender = soft_table_find(&table->by_number, number);

	return sender && sender->link_to_this && sender->endpoint->base.options.no_loopback &&
	       address_same_host(&sender->path.local, from);
}

void soft_qp_receive_group(struct soft_transport *transport, const struct soft_socket *socket,
			   const struct address *from, const struct packet *packet, const struct icrc_pending *pending)
{
	const struct soft_qp_table *table = transport->qps;

	if (!(opcode_form(packet->opcode) & FORM_DATAGRAM) || (packet->pkey | FULL_MEMBER) != PACKET_PKEY ||
	    is_unwanted_loop(table, from, packet->datagram.source) || !icrc_confirm(pending))
		return;
	for (struct soft_qp *qp = table->groups; qp; qp = qp->next_group)
		if (qp->state == QP_RTR && qp->endpoint->group_socket == socket)
			datagram_receive(qp, from, &qp->path.peer, packet);
}

void qp_heard(struct soft_qp *qp)
{
	qp->heard_at = qp_now(qp);
	if (qp->suspected) {
		qp->suspected = 0;
		recovery_confirm(qp);
	}
	qp->endpoint->icmp_errno = 0;
	if (qp->heard)
		return;
	qp->heard = true;
	soft_cm_packet_received(qp->endpoint);
}

/* ---- answering in batches ---- */

void qp_pend(struct soft_qp *qp)
{
	struct soft_qp_table *table = qp->transport->qps;

	if (qp->pending)
		return;
	qp->pending = true;
	qp->next_pending = NULL;
	*table->pending_end = qp;
	table->pending_end = &qp->next_pending;
}

static void answer_again(void *owner)
{
	struct soft_qp_table *table = owner;

	soft_enter(table->transport);
	soft_leave(table->transport);
}

void soft_qp_batch_end(struct soft_transport *transport)
{
	struct soft_qp_table *table = transport->qps;
	struct soft_qp *qp = table->pending;

	table->now = 0;
	if (!qp)
		return;
	table->pending = NULL;
	table->pending_end = &table->pending;
	while (qp) {
		struct soft_qp *next = qp->next_pending;

		qp->pending = false;
		if (qp->state != QP_ERROR && !responder_answer(qp))
			qp_pend(qp);
		qp = next;
	}
	if (table->pending)
		loop_timer_start(transport->base.loop, &table->again, 0, answer_again, table);
	table->now = 0;
}

/* ---- silence ---- */

void soft_qp_probe(struct soft_qp *qp)
{
	if (qp->state == QP_RTS && !qp->requester.count)
		requester_probe(qp);
}

void soft_qp_suspect(struct soft_qp *qp)
{
	if (qp->state != QP_RTS || qp->suspected)
		return;
	qp->suspected = qp_now(qp);
	soft_qp_probe(qp);
	/* Work under way is as good, unless it was agreed that it waits for ever. */
	recovery_suspect(qp);
}

static bool is_gone(struct soft_qp *qp)
{
	return qp->suspected && qp_now(qp) - qp->suspected >= DOUBT_MOST;
}

static bool is_silent(struct soft_qp *qp, int64_t now)
{
	if (qp->requester.count || now - qp->heard_at < qp->patience)
		return false;
	if (qp->patience < PATIENCE_MOST)
		qp->patience *= 2;
	return true;
}

static void watch(void *owner)
{
	struct soft_qp_table *table = owner;
	const struct soft_table *qps = &table->by_number;
	size_t from = table->watch_from;
	unsigned probes = 0;
	bool any = false;

	soft_enter(table->transport);
	for (size_t count = 0; count < qps->bucket_count; count++) {
		size_t head = (from + count) & (qps->bucket_count - 1);

		for (struct soft_table_entry *entry = qps->buckets[head]; entry; entry = entry->next) {
			struct soft_qp *qp = entry->object;

			if (qp->state != QP_RTS)
				continue;
			any = true;
			if (is_gone(qp)) {
				qp_fail_alone(qp, "the peer is gone: " SOFT_UNREACHABLE, "errno", ECONNREFUSED);
			} else if (probes < PROBES_AT_ONCE && is_silent(qp, qp_now(qp))) {
				soft_qp_probe(qp);
				probes++;
				table->watch_from = head;
			}
		}
	}
	table->watching = any;
	if (any)
		loop_timer_start(table->transport->base.loop, &table->watch, WATCH_PERIOD, watch, table);
	soft_leave(table->transport);
}

/* ---- for the halves ---- */

int64_t qp_now(struct soft_qp *qp)
{
	struct soft_qp_table *table = qp->transport->qps;

	if (!table->now)
		table->now = clock_now();
	return table->now;
}

uint32_t qp_packets(const struct soft_qp *qp, uint32_t length)
{
	return length ? (length - 1) / qp->path.mtu + 1 : 1;
}

void qp_send(struct soft_qp *qp, struct packet *packet)
{
	packet->pkey = PACKET_PKEY;
	packet->pad = packet_pad(packet->length);
	packet->destination = qp->peer_qpn;
	soft_transmit(qp->transport, &qp->path, packet);
}
