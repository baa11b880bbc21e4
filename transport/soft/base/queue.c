/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/soft/base/queue.h"

#include <stdlib.h>
#include <string.h>

enum {
	COMPLETIONS_FIRST = 256 /* entries; doubled when full */
};

struct soft_queue {
	struct soft_transport *transport;
	struct soft_list events;
	struct soft_completion *completions;
	struct soft_ring ring;	/* of the completions */
	struct completion lost; /* written without memory for it */
	uint64_t order;		/* of the next event or completion */
	unsigned depth;		/* of soft_callback_begin() calls */
	struct loop_timer timer;
	bool scheduled;
};

struct soft_queue *soft_queue_open(struct soft_transport *transport)
{
	struct soft_queue *queue = calloc(1, sizeof(*queue));

	if (queue)
		queue->transport = transport;
	return queue;
}

void soft_queue_close(struct soft_queue *queue)
{
	if (!queue)
		return;
	loop_timer_stop(&queue->timer);
	while (queue->events.count)
		free(soft_event_take(queue));
	free(queue->completions);
	free(queue);
}

/* ---- in ---- */

void soft_fail_no_memory(struct soft_endpoint *endpoint)
{
	struct soft_transport *transport = soft_of(endpoint->base.transport);

	endpoint->no_memory = true;
	transport->no_memory = true;
	soft_schedule(transport);
}

/* values: the event's kind, and a failure's error. */
static void queue_event(struct soft_endpoint *endpoint, const struct soft_event *values, const void *data,
			size_t length)
{
	struct soft_queue *queue = soft_of(endpoint->base.transport)->queue;
	struct soft_event *event = calloc(1, sizeof(*event) + length);

	if (!event) {
		soft_fail_no_memory(endpoint);
		return;
	}
	*event = *values;
	event->endpoint = endpoint;
	event->order = queue->order++;
	event->length = length;
	if (length)
		memcpy(event->data, data, length);
	soft_list_append(&queue->events, &event->link, event);
	soft_schedule(queue->transport);
}

void soft_event_queue(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data, size_t length)
{
	queue_event(endpoint, &(struct soft_event){ .kind = kind }, data, length);
}

void soft_event_rejected(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data, size_t length)
{
	enum error_kind kind = endpoint_rejection_kind(reason);

	queue_event(endpoint,
		    &(struct soft_event){ .kind = SOFT_EVENT_FAILED,
					  .cause = cause,
					  .answered = kind != ERROR_NO_REPLY,
					  .failure = { .code_name = "reject reason", .code = reason, .kind = kind } },
		    data, length);
}

/*
 * A code with a name is the peer's answer, unless retries are exhausted. None equals an errno that
 * endpoint_errno_kind() knows.
 */
void soft_event_failed(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code)
{
	queue_event(endpoint,
		    &(struct soft_event){
			    .kind = SOFT_EVENT_FAILED,
			    .cause = cause,
			    .answered = code_name && code != COMPLETION_RETRY_EXCEEDED,
			    .failure = { .code_name = code_name, .code = code, .kind = endpoint_errno_kind(code) } },
		    NULL, 0);
}

static bool queue_grow(struct soft_queue *queue)
{
	uint32_t capacity = queue->ring.capacity ? 2 * queue->ring.capacity : COMPLETIONS_FIRST;
	struct soft_completion *completions = calloc(capacity, sizeof(*completions));

	if (!completions)
		return false;
	for (uint32_t index = 0; index < queue->ring.count; index++)
		completions[index] = queue->completions[soft_ring_at(&queue->ring, index)];
	free(queue->completions);
	queue->completions = completions;
	queue->ring.capacity = capacity;
	queue->ring.head = 0;
	return true;
}

struct completion *soft_complete(struct soft_endpoint *endpoint, enum work_kind kind, uint32_t tag, int error)
{
	struct soft_queue *queue = soft_of(endpoint->base.transport)->queue;
	struct soft_completion *queued;

	if (queue->ring.count == queue->ring.capacity && !queue_grow(queue)) {
		soft_fail_no_memory(endpoint);
		return &queue->lost;
	}
	queued = &queue->completions[soft_ring_push(&queue->ring)];
	*queued = (struct soft_completion){
		.endpoint = endpoint,
		.order = queue->order++,
		.completion = { .kind = kind, .tag = tag },
		.error = error,
	};
	soft_schedule(queue->transport);
	return &queued->completion;
}

void soft_queue_detach(struct soft_endpoint *endpoint)
{
	struct soft_queue *queue = soft_of(endpoint->base.transport)->queue;

	for (struct soft_link *link = queue->events.first; link; link = link->next) {
		struct soft_event *event = link->object;

		if (event->endpoint == endpoint)
			event->endpoint = NULL;
	}
	for (uint32_t index = 0; index < queue->ring.count; index++) {
		struct soft_completion *entry = &queue->completions[soft_ring_at(&queue->ring, index)];

		if (entry->endpoint == endpoint)
			entry->endpoint = NULL;
	}
}

/* ---- out ---- */

enum soft_queued soft_queue_next(struct soft_queue *queue)
{
	const struct soft_event *event = queue->events.count ? queue->events.first->object : NULL;

	if (!queue->ring.count)
		return event ? SOFT_QUEUED_EVENT : SOFT_QUEUED_NOTHING;
	return event && event->order < queue->completions[queue->ring.head].order ? SOFT_QUEUED_EVENT
										  : SOFT_QUEUED_COMPLETION;
}

struct soft_event *soft_event_take(struct soft_queue *queue)
{
	struct soft_event *event = queue->events.first->object;

	soft_list_remove(&event->link);
	return event;
}

bool soft_completion_take(struct soft_queue *queue, struct soft_completion *completion)
{
	if (!queue->ring.count)
		return false;
	*completion = queue->completions[queue->ring.head];
	soft_ring_pop(&queue->ring);
	return true;
}

/* ---- turns of the loop ---- */

void soft_callback_begin(struct soft_transport *transport)
{
	transport->queue->depth++;
}

void soft_callback_end(struct soft_transport *transport)
{
	struct soft_queue *queue = transport->queue;
	bool replies_left = soft_handlers.deliver(transport);

	queue->depth--;
	if (replies_left || queue->events.count || queue->ring.count || transport->no_memory)
		soft_schedule(transport);
}

static void scheduled_turn(void *context)
{
	struct soft_queue *queue = context;

	queue->scheduled = false;
	soft_callback_begin(queue->transport);
	soft_callback_end(queue->transport);
}

void soft_schedule(struct soft_transport *transport)
{
	struct soft_queue *queue = transport->queue;

	/* depth: soft_callback_end() will deliver. */
	if (queue->depth || queue->scheduled)
		return;
	queue->scheduled = true;
	loop_timer_start(transport->base.loop, &queue->timer, 0, scheduled_turn, queue);
}

/* Not restarted: a timer that every turn of a busy loop restarts never expires. */
void soft_reap_later(struct soft_transport *transport)
{
	if (transport->reap_scheduled)
		return;
	transport->reap_scheduled = true;
	loop_timer_start(transport->base.loop, &transport->reaper, 0, soft_handlers.reap, transport);
}
