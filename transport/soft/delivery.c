/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events and completions for the commands, in two queues like a kernel's CM and CQ descriptors. They are delivered in
 * the order of queueing. With RDMATEST_SCRAMBLE=SEED a seeded generator chooses the queue and the time, so that tests
 * show that commands rely on no order that a kernel does not guarantee.
 */
#include "transport/soft/delivery.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "transport/soft/net/packet_io.h"
#include "transport/soft/qp/qp.h"

enum {
	COMPLETIONS_FIRST = 256, /* entries, a power of two; doubled when full */
	CAUSE_MAX = 96,
	SCRAMBLE_DELAY_MOST_US = 2000
};

/* A code_name; event_kind() compares the pointer. */
static const char reject_reason[] = "reject reason";

struct event {
	struct event *next;
	struct soft_endpoint *endpoint; /* NULL: detached */
	enum soft_event_kind kind;
	uint64_t order;
	char cause[CAUSE_MAX]; /* of SOFT_EVENT_FAILED */
	const char *code_name;
	int code;
	size_t length;
	uint8_t data[];
};

struct entry {
	struct soft_endpoint *endpoint; /* NULL: detached */
	uint64_t order;
	struct completion completion;
	unsigned raw;
};

struct soft_delivery {
	struct soft_transport *transport;
	struct event *first, **last;
	struct entry *entries; /* a ring */
	size_t capacity, head, count;
	uint64_t order; /* of the next event or completion */
	unsigned depth; /* of soft_enter() calls */
	struct loop_timer timer;
	bool scheduled;
	bool no_memory; /* of some endpoint */
	bool scramble;
	uint64_t random_state; /* of xorshift64* */
};

struct soft_delivery *soft_delivery_open(struct soft_transport *transport)
{
	const char *seed = getenv("RDMATEST_SCRAMBLE");
	struct soft_delivery *delivery = calloc(1, sizeof(*delivery));

	if (!delivery)
		return NULL;
	delivery->transport = transport;
	delivery->last = &delivery->first;
	if (seed && *seed) {
		delivery->scramble = true;
		delivery->random_state = strtoull(seed, NULL, 0) * 2 + 1;
	}
	return delivery;
}

void soft_delivery_close(struct soft_delivery *delivery)
{
	if (!delivery)
		return;
	loop_timer_stop(&delivery->timer);
	while (delivery->first) {
		struct event *event = delivery->first;

		delivery->first = event->next;
		free(event);
	}
	free(delivery->entries);
	free(delivery);
}

/* xorshift64*: repeatable for a seed. */
static unsigned scramble_random(struct soft_delivery *delivery, unsigned limit)
{
	delivery->random_state ^= delivery->random_state >> 12;
	delivery->random_state ^= delivery->random_state << 25;
	delivery->random_state ^= delivery->random_state >> 27;
	return (unsigned)((delivery->random_state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % limit;
}

static void queue_event(struct soft_endpoint *endpoint, struct event *event)
{
	struct soft_delivery *delivery = soft_of(endpoint->base.transport)->delivery;

	event->endpoint = endpoint;
	event->order = delivery->order++;
	event->next = NULL;
	*delivery->last = event;
	delivery->last = &event->next;
	soft_schedule(delivery->transport);
}

void soft_fail_no_memory(struct soft_endpoint *endpoint)
{
	struct soft_delivery *delivery = soft_of(endpoint->base.transport)->delivery;

	endpoint->no_memory = true;
	delivery->no_memory = true;
	soft_schedule(delivery->transport);
}

static struct event *event_create(struct soft_endpoint *endpoint, enum soft_event_kind kind, size_t length)
{
	struct event *event = calloc(1, sizeof(*event) + length);

	if (event) {
		event->kind = kind;
		event->length = length;
		return event;
	}
	soft_fail_no_memory(endpoint);
	return NULL;
}

void soft_event_queue(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data, size_t length)
{
	struct event *event = event_create(endpoint, kind, length);

	if (!event)
		return;
	if (length)
		memcpy(event->data, data, length);
	queue_event(endpoint, event);
}

void soft_event_rejected(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data, size_t length)
{
	struct event *event = event_create(endpoint, SOFT_EVENT_FAILED, length);

	if (!event)
		return;
	if (length)
		memcpy(event->data, data, length);
	snprintf(event->cause, sizeof(event->cause), "%s", cause);
	event->code_name = reject_reason;
	event->code = reason;
	queue_event(endpoint, event);
}

void soft_event_failed(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code)
{
	struct event *event = event_create(endpoint, SOFT_EVENT_FAILED, 0);

	if (!event)
		return;
	snprintf(event->cause, sizeof(event->cause), "%s", cause);
	event->code_name = code_name;
	event->code = code;
	queue_event(endpoint, event);
}

static bool delivery_grow(struct soft_delivery *delivery)
{
	size_t capacity = delivery->capacity ? 2 * delivery->capacity : COMPLETIONS_FIRST;
	struct entry *entries = malloc(capacity * sizeof(*entries));

	if (!entries)
		return false;
	for (size_t index = 0; index < delivery->count; index++)
		entries[index] = delivery->entries[(delivery->head + index) & (delivery->capacity - 1)];
	free(delivery->entries);
	delivery->entries = entries;
	delivery->capacity = capacity;
	delivery->head = 0;
	return true;
}

void soft_complete(struct soft_endpoint *endpoint, const struct completion *completion, unsigned raw)
{
	struct soft_delivery *delivery = soft_of(endpoint->base.transport)->delivery;

	if (delivery->count == delivery->capacity && !delivery_grow(delivery)) {
		soft_fail_no_memory(endpoint);
		return;
	}
	delivery->entries[(delivery->head + delivery->count++) & (delivery->capacity - 1)] = (struct entry){
		.endpoint = endpoint,
		.order = delivery->order++,
		.completion = *completion,
		.raw = raw,
	};
	soft_schedule(delivery->transport);
}

static void report_completion(const struct entry *entry)
{
	char text[CAUSE_MAX + ENDPOINT_TIMEOUT_CAUSE_SIZE], timeout_cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];
	enum completion_status status = entry->completion.status;
	bool is_errno = status == COMPLETION_OTHER;

	if (status == COMPLETION_RETRY_EXCEEDED)
		snprintf(text, sizeof(text), "%s%s", completion_status_text(status),
			 endpoint_timeout_cause(&entry->endpoint->base, timeout_cause));
	else if (is_errno)
		snprintf(text, sizeof(text), "this host refuses to send: %s", strerror((int)entry->raw));
	endpoint_complete(&entry->endpoint->base, &entry->completion, is_errno ? NULL : COMPLETION_CODE_NAME,
			  (int)entry->raw, status == COMPLETION_RETRY_EXCEEDED || is_errno ? text : NULL);
}

static void deliver_completion(struct soft_delivery *delivery)
{
	struct entry entry = delivery->entries[delivery->head];

	delivery->head = (delivery->head + 1) & (delivery->capacity - 1);
	delivery->count--;
	if (entry.endpoint)
		report_completion(&entry);
}

/* Queued completions come before EVENT_DISCONNECTED, as on every backend. */
static void deliver_disconnected(struct soft_delivery *delivery, struct soft_endpoint *endpoint)
{
	while (delivery->count)
		deliver_completion(delivery);
	switch (endpoint->base.state) {
	case ENDPOINT_ESTABLISHED:
	case ENDPOINT_DISCONNECTING:
		endpoint_enter(&endpoint->base, ENDPOINT_DISCONNECTED);
		endpoint_report(&endpoint->base, &(struct endpoint_event){ .kind = EVENT_DISCONNECTED });
		break;
	case ENDPOINT_CONNECTING:
	case ENDPOINT_ACCEPTING:
		if (endpoint_take_log_line(&endpoint->base))
			log_failure(endpoint->base.log,
				    &(struct failure){ .object = endpoint->base.name,
						       .phase = endpoint_state_text(endpoint->base.state) },
				    "the peer withdrew before the connection was established");
		endpoint_fail(&endpoint->base, OUTCOME_NO_CONNECTION);
		break;
	default:
		break;
	}
}

static enum error_kind event_kind(const struct event *event)
{
	return event->code_name == reject_reason ? endpoint_rejection_kind(event->code)
						 : endpoint_errno_kind(event->code);
}

static void deliver_failed(struct soft_endpoint *endpoint, const struct event *event)
{
	char reason[ENDPOINT_REJECT_TEXT_SIZE], timeout_cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];
	enum error_kind kind = endpoint->base.state <= ENDPOINT_CONNECTING ? event_kind(event) : ERROR_OTHER;

	if (endpoint->base.state >= ENDPOINT_FAILED)
		return;
	if (event->code_name && endpoint_take_log_line(&endpoint->base))
		log_failure(endpoint->base.log,
			    &(struct failure){ .object = endpoint->base.name,
					       .phase = endpoint_state_text(endpoint->base.state),
					       .code_name = event->code_name,
					       .code = event->code,
					       .kind = kind },
			    "%s%s%s", event->cause, endpoint_reject_text(event->data, event->length, reason),
			    endpoint_timeout_cause(&endpoint->base, timeout_cause));
	if (event->length)
		endpoint_rejected(&endpoint->base, event->data, event->length);
	else
		endpoint_fail(&endpoint->base, endpoint_outcome(&endpoint->base));
}

static void deliver_event(struct soft_delivery *delivery)
{
	struct event *event = delivery->first;
	struct soft_endpoint *endpoint = event->endpoint;

	delivery->first = event->next;
	if (!delivery->first)
		delivery->last = &delivery->first;
	if (endpoint && endpoint->base.state != ENDPOINT_DESTROYED) {
		switch (event->kind) {
		case SOFT_EVENT_REQUESTED:
			soft_requested(endpoint, event->data, event->length);
			break;
		case SOFT_EVENT_ESTABLISHED:
			endpoint_established(&endpoint->base, event->length ? event->data : NULL, event->length);
			break;
		case SOFT_EVENT_DISCONNECTED:
			deliver_disconnected(delivery, endpoint);
			break;
		case SOFT_EVENT_FAILED:
			deliver_failed(endpoint, event);
			break;
		}
	}
	free(event);
}

/* Else a completion is. */
static bool event_is_next(struct soft_delivery *delivery)
{
	if (!delivery->first || !delivery->count)
		return delivery->first != NULL;
	if (delivery->scramble)
		return scramble_random(delivery, 2);
	return delivery->first->order < delivery->entries[delivery->head].order;
}

/* Includes what handlers queue meanwhile, which is bounded by their own posts. */
static void deliver_queued(struct soft_delivery *delivery)
{
	while (delivery->first || delivery->count) {
		if (delivery->scramble && !scramble_random(delivery, 4))
			return;
		if (event_is_next(delivery))
			deliver_event(delivery);
		else
			deliver_completion(delivery);
	}
}

/* A request without handlers is not reported yet: its listener, whose turn is next, reports the failure. */
static void fail_no_memory(struct soft_endpoint *endpoint)
{
	for (; endpoint; endpoint = endpoint->next) {
		if (!endpoint->no_memory)
			continue;
		endpoint->no_memory = false;
		if (endpoint->base.kind == ENDPOINT_LISTENER) {
			endpoint_request_no_memory(&endpoint->base);
		} else if (endpoint->base.handlers) {
			if (endpoint_take_log_line(&endpoint->base))
				log_error(endpoint->base.log, endpoint->base.name, "out of memory");
			endpoint_fail(&endpoint->base, OUTCOME_INTERNAL);
		} else {
			if (endpoint->listener)
				endpoint->listener->no_memory = true;
			endpoint_destroy(&endpoint->base);
		}
	}
}

void soft_enter(struct soft_transport *transport)
{
	transport->delivery->depth++;
}

void soft_leave(struct soft_transport *transport)
{
	struct soft_delivery *delivery = transport->delivery;

	/* First: after a completion its memory may change, and a retransmission from it may still be queued. */
	soft_flush(transport);
	deliver_queued(delivery);
	if (delivery->no_memory) {
		delivery->no_memory = false;
		fail_no_memory(transport->endpoints);
		fail_no_memory(transport->listeners);
	}
	soft_qp_batch_end(transport);
	soft_flush(transport);
	delivery->depth--;
	if (delivery->first || delivery->count || delivery->no_memory)
		soft_schedule(transport);
}

static void scheduled_turn(void *context)
{
	struct soft_delivery *delivery = context;

	delivery->scheduled = false;
	soft_enter(delivery->transport);
	soft_leave(delivery->transport);
}

void soft_schedule(struct soft_transport *transport)
{
	struct soft_delivery *delivery = transport->delivery;
	int64_t delay = 0;

	/* depth: soft_leave() will deliver. */
	if (delivery->depth || delivery->scheduled)
		return;
	if (delivery->scramble)
		delay = (int64_t)scramble_random(delivery, SCRAMBLE_DELAY_MOST_US) * CLOCK_NS_PER_US;
	delivery->scheduled = true;
	loop_timer_start(transport->base.loop, &delivery->timer, delay, scheduled_turn, delivery);
}

void soft_delivery_detach(struct soft_endpoint *endpoint)
{
	struct soft_delivery *delivery = soft_of(endpoint->base.transport)->delivery;

	for (struct event *event = delivery->first; event; event = event->next)
		if (event->endpoint == endpoint)
			event->endpoint = NULL;
	for (size_t index = 0; index < delivery->count; index++) {
		struct entry *entry = &delivery->entries[(delivery->head + index) & (delivery->capacity - 1)];

		if (entry->endpoint == endpoint)
			entry->endpoint = NULL;
	}
}
