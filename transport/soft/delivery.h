/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of events and completions for the command. */
#ifndef TRANSPORT_SOFT_DELIVERY_H
#define TRANSPORT_SOFT_DELIVERY_H

#include "transport/soft/endpoint.h"

/* NULL without memory. */
struct soft_delivery *soft_delivery_open(struct soft_transport *transport);
void soft_delivery_close(struct soft_delivery *delivery);

/*
 * Every callback of the loop in this backend begins with soft_enter() and ends with soft_leave(), which delivers the
 * queued events and completions, acknowledges received packets and sends.
 */
void soft_enter(struct soft_transport *transport);
void soft_leave(struct soft_transport *transport);

/* Outside of such a callback: schedules one for the next turn of the loop. */
void soft_schedule(struct soft_transport *transport);

/* Drops the queued events and completions of an endpoint that is being freed. */
void soft_delivery_detach(struct soft_endpoint *endpoint);

enum soft_event_kind {
	SOFT_EVENT_REQUESTED = 1,
	SOFT_EVENT_ESTABLISHED,
	SOFT_EVENT_DISCONNECTED,
	SOFT_EVENT_FAILED,
};

/*
 * Queues an event with a copy of data. soft_event_failed() queues SOFT_EVENT_FAILED with a cause and a named code
 * ("errno"), which are logged at delivery. Without them (soft_event_queue()) nothing is logged.
 */
void soft_event_queue(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data, size_t length);
void soft_event_failed(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code);
/* SOFT_EVENT_FAILED for a REJ: reason, and its private data for the command. */
void soft_event_rejected(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data,
			 size_t length);
/* Out of memory: at delivery the endpoint fails; a listener reports EVENT_REQUEST_FAILED. */
void soft_fail_no_memory(struct soft_endpoint *endpoint);
/* raw: errno of COMPLETION_OTHER. */
void soft_complete(struct soft_endpoint *endpoint, const struct completion *completion, unsigned raw);

#endif
