/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: made, numbered, found, posted to, watched for silence; which half of one a packet is for. */
#include "transport/soft/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "core/clock.h"
#include "transport/soft/delivery.h"
#include "transport/soft/mad.h"
#include "transport/soft/number.h"

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

struct soft_queue_table {
	struct soft_transport *transport;
	struct soft_table by_number;
	struct soft_number_keys numbers;
	uint32_t turn; /* of them */
	struct soft_queue *pending, **pending_end;
	struct soft_queue *groups;
	struct loop_timer again; /* for what the slices of the last turn left */
	struct loop_timer watch;
	bool watching;
	size_t watch_from; /* the head of by_number that comes first in the next turn of the watch */
	int64_t now;	   /* 0: to be read */
};

static void watch(void *owner);

struct soft_queue_table *soft_queue_table_open(struct soft_transport *transport)
{
	struct soft_queue_table *table = calloc(1, sizeof(*table));

	if (table && !soft_table_open(&table->by_number)) {
		free(table);
		return NULL;
	}
	if (!table)
		return NULL;
	table->transport = transport;
	table->pending_end = &table->pending;
	soft_number_prepare(&table->numbers);
	table->turn = (uint32_t)soft_random();
	return table;
}

void soft_queue_table_close(struct soft_queue_table *table)
{
	if (!table)
		return;
	loop_timer_stop(&table->again);
	loop_timer_stop(&table->watch);
	soft_table_close(&table->by_number);
	free(table);
}

/* Each comes once: a Linux peer takes a number that it still remembers for the old connection, and ends that. */
static uint32_t take_number(struct soft_queue_table *table)
{
	uint32_t number;

	do
		number = soft_number(&table->numbers, HALF_BITS, table->turn++);
	while (number < NUMBER_FIRST || number > NUMBER_LAST || soft_table_find(&table->by_number, number));
	return number;
}

/* One piece of memory: the queue, its sends, its receives. */
static struct soft_queue *allocate(uint32_t sends, uint32_t receives)
{
	struct soft_queue *queue = calloc(1, sizeof(*queue) + (size_t)sends * sizeof(struct request) +
						     (size_t)receives * sizeof(struct receive));

	if (!queue)
		return NULL;
	queue->requester.ring = (struct request *)(queue + 1);
	queue->requester.capacity = sends;
	queue->responder.ring = (struct receive *)(queue->requester.ring + sends);
	queue->responder.capacity = receives;
	return queue;
}

enum outcome soft_queue_create(struct soft_endpoint *endpoint)
{
	struct soft_transport *transport = soft_of(endpoint->base.transport);
	struct soft_queue_table *table = transport->queues;
	const struct endpoint_options *options = &endpoint->base.options;
	const struct log *log = endpoint->base.transport->log;
	struct soft_queue *queue;

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
	queue = allocate(options->send_depth + 1, options->receive_depth);
	if (!queue) {
		log_errno(log, endpoint->base.name, ENOMEM, "creating a queue pair");
		return OUTCOME_INTERNAL;
	}
	queue->transport = transport;
	queue->endpoint = endpoint;
	soft_table_insert(&table->by_number, &queue->by_number, take_number(table), queue);
	if (endpoint->base.kind == ENDPOINT_GROUP) {
		queue->requester.cursor = (uint32_t)soft_random() & PSN_MASK;
		queue->next_group = table->groups;
		queue->link_to_this = &table->groups;
		if (table->groups)
			table->groups->link_to_this = &queue->next_group;
		table->groups = queue;
	}
	endpoint->queue = queue;
	endpoint->base.queue_number = soft_queue_number(queue);
	return OUTCOME_OK;
}

uint32_t soft_queue_number(const struct soft_queue *queue)
{
	return queue->by_number.number;
}

/* ---- its states ---- */

static void halt(struct soft_queue *queue, enum queue_state state)
{
	if (queue->requester.count && !queue->link_to_this)
		queue->transport->busy_queues--;
	queue->state = state;
	loop_timer_stop(&queue->timer);
	queue->requester.alarm = 0;
	queue->requester.count = 0;
	queue->responder.count = 0;
	queue->responder.due = 0;
	queue->unreported = 0;
}

void soft_queue_stop(struct soft_queue *queue)
{
	enum queue_state state = QUEUE_STOPPED;

	if (queue->state == QUEUE_PARTED)
		return;
	/* A command may leave in the very call-back that brought the peer's last message: the peer needs to know. */
	if (queue->state == QUEUE_STARTED) {
		responder_part(queue);
		state = QUEUE_PARTED;
	}
	halt(queue, state);
}

static bool is_probing(const struct requester *requester)
{
	return requester->count && requester->ring[requester->head].probe;
}

bool soft_queue_is_waiting(const struct soft_queue *queue)
{
	const struct requester *requester = &queue->requester;
	uint32_t behind = queue->state == QUEUE_STARTED ? requester->count : 0;

	while (behind--) {
		const struct request *request = &requester->ring[(requester->head + behind) % requester->capacity];

		if (!request->silent && !request->probe)
			return true;
	}
	return false;
}

static void unpend(struct soft_queue_table *table, struct soft_queue *queue)
{
	struct soft_queue **link = &table->pending;

	if (!queue->pending)
		return;
	while (*link != queue)
		link = &(*link)->next_pending;
	*link = queue->next_pending;
	if (table->pending_end == &queue->next_pending)
		table->pending_end = link;
	queue->pending = false;
}

void soft_queue_destroy(struct soft_queue *queue)
{
	struct soft_queue_table *table;

	if (!queue)
		return;
	table = queue->transport->queues;
	halt(queue, QUEUE_STOPPED);
	unpend(table, queue);
	soft_table_remove(&table->by_number, &queue->by_number);
	if (queue->link_to_this) {
		*queue->link_to_this = queue->next_group;
		if (queue->next_group)
			queue->next_group->link_to_this = queue->link_to_this;
	}
	queue->endpoint->queue = NULL;
	queue->endpoint->base.queue_number = 0;
	free(queue);
}

void soft_queue_connect(struct soft_queue *queue, const struct soft_agreement *agreement)
{
	if (queue->state != QUEUE_NEW)
		return;
	queue->path = agreement->path;
	queue->peer_queue = agreement->peer_queue;
	queue->retry_count = (uint8_t)agreement->retry_count;
	queue->rnr_retry_count = (uint8_t)agreement->rnr_retry_count;
	queue->ack_timeout = agreement->ack_timeout ? mad_timeout(agreement->ack_timeout) : 0;
	requester_connect(queue, agreement);
	responder_connect(queue, agreement);
	queue->state = QUEUE_LISTENING;
	queue->endpoint->no_way = 0;
}

void soft_queue_start(struct soft_queue *queue)
{
	struct soft_queue_table *table = queue->transport->queues;

	if (queue->state != QUEUE_LISTENING)
		return;
	queue->state = QUEUE_STARTED;
	queue->heard_at = queue_now(queue);
	queue->patience = PATIENCE_FIRST;
	if (!table->watching)
		loop_timer_start(queue->transport->base.loop, &table->watch, WATCH_PERIOD, watch, table);
	table->watching = true;
	requester_transmit(queue);
}

void soft_queue_aim(struct soft_queue *queue, const struct soft_path *path, uint32_t queue_key)
{
	queue->path = *path;
	queue->path.unsent = &queue->unsent;
	queue->queue_key = queue_key;
	queue->unheard = queue->endpoint->base.options.no_loopback && soft_is_loopback(&path->local);
	if (queue->state == QUEUE_NEW)
		queue->state = QUEUE_LISTENING;
}

void queue_fail(struct soft_queue *queue, enum work_kind kind, uint32_t tag, enum completion_status status,
		unsigned raw)
{
	struct completion completion = { .kind = kind, .tag = tag, .status = status };

	halt(queue, QUEUE_STOPPED);
	soft_complete(queue->endpoint, &completion, raw);
}

void queue_fail_alone(struct soft_queue *queue, const char *cause, const char *code_name, int code)
{
	halt(queue, QUEUE_STOPPED);
	soft_tell_failure(queue->endpoint, cause, code_name, code);
}

/* ---- posting ---- */

static enum outcome refuse(const struct soft_queue *queue, const struct work *work, int error)
{
	log_errno(queue->transport->base.log, queue->endpoint->base.name, error, "posting a %s",
		  work_kind_text(work->kind));
	return OUTCOME_INTERNAL;
}

static enum outcome post_receive(struct soft_queue *queue, const struct work *work)
{
	struct responder *responder = &queue->responder;
	uint32_t place = responder->head + responder->count;

	if (responder->count == responder->capacity)
		return refuse(queue, work, ENOMEM);
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

static enum outcome post(struct soft_queue *queue, const struct work *work)
{
	bool group = queue->endpoint->base.kind == ENDPOINT_GROUP;
	uint32_t longest = group ? queue->path.mtu : SOFT_LONGEST_MESSAGE;

	/* As with verbs, work for a queue that has failed disappears without a word. */
	if (queue->state >= QUEUE_REFUSING)
		return OUTCOME_OK;
	if (work->kind == WORK_RECEIVE)
		return post_receive(queue, work);
	if (queue->state == QUEUE_NEW)
		return refuse(queue, work, ENOTCONN);
	if (group && work->kind != WORK_SEND)
		return refuse(queue, work, EOPNOTSUPP);
	if (work->length > longest)
		return refuse(queue, work, EMSGSIZE);
	if (is_full(&queue->requester))
		return refuse(queue, work, ENOMEM);
	if (group)
		datagram_post(queue, work);
	else
		requester_post(queue, work);
	return OUTCOME_OK;
}

enum outcome soft_queue_post(struct soft_queue *queue, const struct work *work, size_t count)
{
	struct soft_queue_table *table = queue->transport->queues;
	bool own_time = !table->now;
	enum outcome outcome = OUTCOME_OK;

	for (size_t index = 0; index < count && !outcome; index++)
		outcome = post(queue, &work[index]);
	if (queue->endpoint->base.kind == ENDPOINT_GROUP) {
		datagram_transmit(queue);
	} else {
		queue->patience = PATIENCE_FIRST;
		requester_transmit(queue);
	}
	if (own_time)
		table->now = 0;
	return outcome;
}

/* ---- receiving ---- */

void soft_queue_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
			const struct packet *packet, const struct icrc_case *open)
{
	struct soft_queue *queue = soft_table_find(&transport->queues->by_number, packet->destination);
	unsigned form = opcode_form(packet->opcode);

	if (!queue || queue->state == QUEUE_NEW || queue->state == QUEUE_STOPPED ||
	    (packet->pkey | FULL_MEMBER) != PACKET_PKEY)
		return;
	if (queue->endpoint->base.kind == ENDPOINT_GROUP) {
		if ((form & FORM_DATAGRAM) && icrc_case_holds(open))
			datagram_receive(queue, from, &queue->path.local, packet);
		return;
	}
	/* Never by the source port: it differs per queue, and may change. */
	if ((form & FORM_DATAGRAM) || socket != queue->path.socket || !address_same_host(from, &queue->path.peer) ||
	    !icrc_case_holds(open))
		return;
	if (!(form & FORM_RESPONSE))
		responder_receive(queue, packet);
	else if (queue->state == QUEUE_STARTED)
		requester_receive(queue, packet);
}

/* A sender of this process that wants no loopback: its socket may serve others that do. */
static bool is_unwanted_loop(const struct soft_queue_table *table, const struct address *from, uint32_t number)
{
	const struct soft_queue *sender = soft_table_find(&table->by_number, number);

	return sender && sender->link_to_this && sender->endpoint->base.options.no_loopback &&
	       address_same_host(&sender->path.local, from);
}

void soft_queue_receive_group(struct soft_transport *transport, const struct soft_socket *socket,
			      const struct address *from, const struct packet *packet, const struct icrc_case *open)
{
	const struct soft_queue_table *table = transport->queues;

	if (!(opcode_form(packet->opcode) & FORM_DATAGRAM) || (packet->pkey | FULL_MEMBER) != PACKET_PKEY ||
	    is_unwanted_loop(table, from, packet->datagram.source) || !icrc_case_holds(open))
		return;
	for (struct soft_queue *queue = table->groups; queue; queue = queue->next_group)
		if (queue->state == QUEUE_LISTENING && queue->endpoint->group_socket == socket)
			datagram_receive(queue, from, &queue->path.peer, packet);
}

void queue_heard(struct soft_queue *queue)
{
	queue->heard_at = queue_now(queue);
	if (queue->doubted) {
		queue->doubted = 0;
		recovery_trust(queue);
	}
	queue->endpoint->no_way = 0;
	if (queue->heard)
		return;
	queue->heard = true;
	soft_manager_heard(queue->endpoint);
}

/* ---- answering in batches ---- */

void queue_pend(struct soft_queue *queue)
{
	struct soft_queue_table *table = queue->transport->queues;

	if (queue->pending)
		return;
	queue->pending = true;
	queue->next_pending = NULL;
	*table->pending_end = queue;
	table->pending_end = &queue->next_pending;
}

static void answer_again(void *owner)
{
	struct soft_queue_table *table = owner;

	soft_enter(table->transport);
	soft_leave(table->transport);
}

void soft_queue_batch_end(struct soft_transport *transport)
{
	struct soft_queue_table *table = transport->queues;
	struct soft_queue *queue = table->pending;

	table->now = 0;
	if (!queue)
		return;
	table->pending = NULL;
	table->pending_end = &table->pending;
	while (queue) {
		struct soft_queue *next = queue->next_pending;

		queue->pending = false;
		if (queue->state != QUEUE_STOPPED && !responder_answer(queue))
			queue_pend(queue);
		queue = next;
	}
	if (table->pending)
		loop_timer_start(transport->base.loop, &table->again, 0, answer_again, table);
	table->now = 0;
}

/* ---- silence ---- */

void soft_queue_probe(struct soft_queue *queue)
{
	if (queue->state == QUEUE_STARTED && !queue->requester.count)
		requester_probe(queue);
}

void soft_queue_doubt(struct soft_queue *queue)
{
	if (queue->state != QUEUE_STARTED || queue->doubted)
		return;
	queue->doubted = queue_now(queue);
	soft_queue_probe(queue);
	/* Work under way is as good, unless it was agreed that it waits for ever. */
	recovery_doubt(queue);
}

static bool is_gone(struct soft_queue *queue)
{
	return queue->doubted && queue_now(queue) - queue->doubted >= DOUBT_MOST;
}

static bool is_silent(struct soft_queue *queue, int64_t now)
{
	if (queue->requester.count || now - queue->heard_at < queue->patience)
		return false;
	if (queue->patience < PATIENCE_MOST)
		queue->patience *= 2;
	return true;
}

static void watch(void *owner)
{
	struct soft_queue_table *table = owner;
	const struct soft_table *queues = &table->by_number;
	size_t from = table->watch_from;
	unsigned probes = 0;
	bool any = false;

	soft_enter(table->transport);
	for (size_t count = 0; count < queues->head_count; count++) {
		size_t head = (from + count) & (queues->head_count - 1);

		for (struct soft_table_entry *entry = queues->heads[head]; entry; entry = entry->next) {
			struct soft_queue *queue = entry->owner;

			if (queue->state != QUEUE_STARTED)
				continue;
			any = true;
			if (is_gone(queue)) {
				queue_fail_alone(queue, "the peer is gone: " SOFT_UNREACHABLE, "errno", ECONNREFUSED);
			} else if (probes < PROBES_AT_ONCE && is_silent(queue, queue_now(queue))) {
				soft_queue_probe(queue);
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

int64_t queue_now(struct soft_queue *queue)
{
	struct soft_queue_table *table = queue->transport->queues;

	if (!table->now)
		table->now = clock_now();
	return table->now;
}

uint32_t queue_packets(const struct soft_queue *queue, uint32_t length)
{
	return length ? (length - 1) / queue->path.mtu + 1 : 1;
}

void queue_send(struct soft_queue *queue, struct packet *packet)
{
	packet->pkey = PACKET_PKEY;
	packet->pad = packet_pad(packet->length);
	packet->destination = queue->peer_queue;
	soft_transmit(queue->transport, &queue->path, packet);
}
