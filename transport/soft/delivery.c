/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes up to the commands: events and completions, in two queues like the two descriptors of a kernel. Left alone
 * they are told in the order in which they came. With RDMATEST_SCRAMBLE=SEED a seeded die decides which queue is served
 * and when, as wild as a kernel may be, so that commands proven here do not lean on a tidier order.
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
	COMPLETIONS_FIRST = 256, /* entries; doubled when full, power of two */
	CAUSE_MOST = 96,
	SCRAMBLE_DELAY_MOST_US = 2000
};

/* What the code of a refusal is called. */
static const char reject_reason[] = "reject reason";

struct event {
	struct event *next;
	struct soft_endpoint *endpoint; /* NULL: forgotten */
	enum soft_event_kind kind;
	uint64_t order;
	char cause[CAUSE_MOST]; /* of a failure */
	const char *code_name;
	int code;
	size_t length;
	uint8_t data[];
};

struct entry {
	struct soft_endpoint *endpoint; /* NULL: forgotten */
	uint64_t order;
	struct completion completion;
	unsigned raw;
};

struct soft_delivery {
	struct soft_transport *transport;
	struct event *first, **last;
	struct entry *entries; /* a ring */
	size_t capacity, head, count;
	uint64_t order; /* of the next thing that is queued */
	unsigned depth; /* of call-backs that entered */
	struct loop_timer stirred;
	bool stirring;
	bool no_memory; /* an endpoint is */
	bool scramble;
	uint64_t die; /* state of the scrambler's generator */
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
		delivery->die = strtoull(seed, NULL, 0) * 2 + 1;
	}
	return delivery;
}

void soft_delivery_close(struct soft_delivery *delivery)
{
	if (!delivery)
		return;
	loop_timer_stop(&delivery->stirred);
	while (delivery->first) {
		struct event *event = delivery->first;

		delivery->first = event->next;
		free(event);
	}
	free(delivery->entries);
	free(delivery);
}

/* xorshift64*: repeatable, and good enough for a die. */
static unsigned roll(struct soft_delivery *delivery, unsigned sides)
{
	delivery->die ^= delivery->die >> 12;
	delivery->die ^= delivery->die << 25;
	delivery->die ^= delivery->die >> 27;
	return (unsigned)((delivery->die * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % sides;
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

void soft_starve(struct soft_endpoint *endpoint)
{
	struct soft_delivery *delivery = soft_of(endpoint->base.transport)->delivery;

	endpoint->no_memory = true;
	delivery->no_memory = true;
	soft_schedule(delivery->transport);
}

static struct event *event_of(struct soft_endpoint *endpoint, enum soft_event_kind kind, size_t length)
{
	struct event *event = calloc(1, sizeof(*event) + length);

	if (event) {
		event->kind = kind;
		event->length = length;
		return event;
	}
	/* The endpoint is lost without it. */
	soft_starve(endpoint);
	return NULL;
}

void soft_event_queue(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data, size_t length)
{
	struct event *event = event_of(endpoint, kind, length);

	if (!event)
		return;
	if (length)
		memcpy(event->data, data, length);
	queue_event(endpoint, event);
}

void soft_event_rejected(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data, size_t length)
{
	struct event *event = event_of(endpoint, SOFT_EVENT_FAILED, length);

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
	struct event *event = event_of(endpoint, SOFT_EVENT_FAILED, 0);

	if (!event)
		return;
	snprintf(event->cause, sizeof(event->cause), "%s", cause);
	event->code_name = code_name;
	event->code = code;
	queue_event(endpoint, event);
}

static bool grow(struct soft_delivery *delivery)
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

	if (delivery->count == delivery->capacity && !grow(delivery)) {
		soft_starve(endpoint);
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

static void complete(const struct entry *entry)
{
	char words[CAUSE_MOST + ENDPOINT_SILENCE_SIZE], silence[ENDPOINT_SILENCE_SIZE];
	enum completion_status status = entry->completion.status;

	if (status == COMPLETION_RETRY_EXCEEDED)
		snprintf(words, sizeof(words), "%s%s", completion_status_text(status),
			 endpoint_silence(&entry->endpoint->base, silence));
	else if (status == COMPLETION_OTHER)
		snprintf(words, sizeof(words), "this host refuses to send: %s", strerror((int)entry->raw));
	endpoint_complete(&entry->endpoint->base, &entry->completion, entry->raw,
			  status == COMPLETION_RETRY_EXCEEDED || status == COMPLETION_OTHER ? words : NULL);
}

static void deliver_completion(struct soft_delivery *delivery)
{
	struct entry entry = delivery->entries[delivery->head];

	delivery->head = (delivery->head + 1) & (delivery->capacity - 1);
	delivery->count--;
	if (entry.endpoint)
		complete(&entry);
}

/* The last messages may still be queued: they come first, as on every backend. */
static void disconnected(struct soft_delivery *delivery, struct soft_endpoint *endpoint)
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
		if (endpoint_is_worth_telling(&endpoint->base))
			log_error(endpoint->base.transport->log, endpoint->base.name,
				  "%s: the peer gave up before the connection stood",
				  endpoint_state_text(endpoint->base.state));
		endpoint_fail(&endpoint->base, OUTCOME_NO_CONNECTION);
		break;
	default:
		break;
	}
}

/* Nobody listens, nothing holds the UDP port, or nothing answers. */
static bool is_absent(const struct event *event)
{
	if (event->code_name == reject_reason)
		return event->code == REJECTED_NO_LISTENER;
	return event->code == ECONNREFUSED || event->code == ETIMEDOUT || event->code == EHOSTUNREACH;
}

static void failed(struct soft_endpoint *endpoint, const struct event *event)
{
	char refusal[ENDPOINT_REFUSAL_SIZE], silence[ENDPOINT_SILENCE_SIZE];

	if (endpoint->base.state >= ENDPOINT_FAILED)
		return;
	if (event->code_name && endpoint_is_worth_telling(&endpoint->base))
		log_error(endpoint->base.transport->log, endpoint->base.name, "%s: %s%s%s (%s %d)",
			  endpoint_state_text(endpoint->base.state), event->cause,
			  endpoint_refusal_text(event->data, event->length, refusal),
			  endpoint_silence(&endpoint->base, silence), event->code_name, event->code);
	endpoint->base.absent = endpoint->base.state <= ENDPOINT_CONNECTING && is_absent(event);
	if (event->length)
		endpoint_refused(&endpoint->base, event->data, event->length);
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
			disconnected(delivery, endpoint);
			break;
		case SOFT_EVENT_FAILED:
			failed(endpoint, event);
			break;
		}
	}
	free(event);
}

/* True if an event is next, else a completion. */
static bool event_is_next(struct soft_delivery *delivery)
{
	if (!delivery->first || !delivery->count)
		return delivery->first != NULL;
	if (delivery->scramble)
		return roll(delivery, 2);
	return delivery->first->order < delivery->entries[delivery->head].order;
}

/* Hands up what is queued now; what handlers queue meanwhile included, which their own posts bound. */
static void deliver(struct soft_delivery *delivery)
{
	while (delivery->first || delivery->count) {
		if (delivery->scramble && !roll(delivery, 4))
			return;
		if (event_is_next(delivery))
			deliver_event(delivery);
		else
			deliver_completion(delivery);
	}
}

/* Nobody has heard yet of a request that could not be told: its listener, which comes behind it, says so. */
static void fail_starved(struct soft_delivery *delivery, struct soft_endpoint *endpoint)
{
	for (; endpoint; endpoint = endpoint->next) {
		if (!endpoint->no_memory)
			continue;
		endpoint->no_memory = false;
		if (endpoint->base.kind == ENDPOINT_LISTENER) {
			endpoint_starved(&endpoint->base);
		} else if (endpoint->base.handlers) {
			if (endpoint_is_worth_telling(&endpoint->base))
				log_error(delivery->transport->base.log, endpoint->base.name, "out of memory");
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

	/* Whoever hears of a completion may use its memory again, and a repeat of it may still be queued. */
	soft_flush(transport);
	deliver(delivery);
	if (delivery->no_memory) {
		delivery->no_memory = false;
		fail_starved(delivery, transport->endpoints);
		fail_starved(delivery, transport->listeners);
	}
	soft_qp_batch_end(transport);
	soft_flush(transport);
	delivery->depth--;
	if (delivery->first || delivery->count || delivery->no_memory)
		soft_schedule(transport);
}

static void stirred(void *owner)
{
	struct soft_delivery *delivery = owner;

	delivery->stirring = false;
	soft_enter(delivery->transport);
	soft_leave(delivery->transport);
}

void soft_schedule(struct soft_transport *transport)
{
	struct soft_delivery *delivery = transport->delivery;
	int64_t delay = 0;

	/* Inside a call-back soft_leave() is still to come. */
	if (delivery->depth || delivery->stirring)
		return;
	if (delivery->scramble)
		delay = (int64_t)roll(delivery, SCRAMBLE_DELAY_MOST_US) * CLOCK_NS_PER_US;
	delivery->stirring = true;
	loop_timer_start(transport->base.loop, &delivery->stirred, delay, stirred, delivery);
}

void soft_delivery_forget(struct soft_endpoint *endpoint)
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
