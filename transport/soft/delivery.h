/* SPDX-License-Identifier: BSD-2-Clause */
/* Events and completions on their way up to the command. */
#ifndef TRANSPORT_SOFT_DELIVERY_H
#define TRANSPORT_SOFT_DELIVERY_H

#include "transport/soft/endpoint.h"

/* NULL when memory is short. */
struct soft_delivery *soft_delivery_open(struct soft_transport *transport);
void soft_delivery_close(struct soft_delivery *delivery);

/*
 * Every call-back of the loop that enters the backend calls soft_enter() first and soft_leave() last: the latter hands
 * up what was queued, acknowledges what was received, and sends.
 */
void soft_enter(struct soft_transport *transport);
void soft_leave(struct soft_transport *transport);

/* Something was queued outside of such a call-back: it leaves in the next turn of the loop. */
void soft_schedule(struct soft_transport *transport);

/* Forgets what is queued for an endpoint that is being freed. */
void soft_delivery_forget(struct soft_endpoint *endpoint);

/* The connection events of a kernel, so that the order in which they are told can be as wild as there. */
enum soft_event_kind {
	SOFT_EVENT_REQUESTED = 1,
	SOFT_EVENT_ESTABLISHED,
	SOFT_EVENT_DISCONNECTED,
	SOFT_EVENT_FAILED,
};

/*
 * Queues an event for an endpoint (data is copied). For SOFT_EVENT_FAILED what failed is told when the event is
 * delivered: cause in words, and a code with its name ("reject reason", "errno"); nothing if soft_event_queue() queued
 * it.
 */
void soft_event_queue(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data, size_t length);
void soft_event_failed(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code);
/* The same (code name "reject reason") for a peer that refused with data of its user; the command gets a copy. */
void soft_event_rejected(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data,
			 size_t length);
/* Memory is short: the endpoint fails with that, as late as news would be told; a listener refuses who asked. */
void soft_starve(struct soft_endpoint *endpoint);
/* Queues a completion for the endpoint. */
void soft_complete(struct soft_endpoint *endpoint, const struct completion *completion, unsigned raw);

#endif
