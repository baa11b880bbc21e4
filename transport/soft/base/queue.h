/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events and completions for the command, in two queues like a kernel's CM and CQ descriptors. They are delivered in
 * the order of queueing; test/network/scramble.c delivers them in others.
 */
#pragma once

#include "transport/soft/base/shared.h"

enum soft_event_kind {
	SOFT_EVENT_REQUESTED = 1,
	SOFT_EVENT_ESTABLISHED,
	SOFT_EVENT_DISCONNECTED,
	SOFT_EVENT_FAILED,
};

struct soft_event {
	struct soft_link link;
	struct soft_endpoint *endpoint; /* NULL: detached */
	enum soft_event_kind kind;
	uint64_t order;
	struct failure failure; /* SOFT_EVENT_FAILED's */
	const char *cause;	/* NULL: it has no error */
	bool answered;		/* by the peer, so no packet was lost */
	size_t length;
	uint8_t data[];
};

struct soft_completion {
	struct soft_endpoint *endpoint; /* NULL: detached */
	uint64_t order;
	struct completion completion;
	int error; /* of COMPLETION_OTHER: an errno */
};

/* NULL without memory. */
struct soft_queue *soft_queue_open(struct soft_transport *transport);
void soft_queue_close(struct soft_queue *queue);

/*
 * Every callback of the loop in this backend that may queue entries or packets begins with soft_callback_begin() and
 * ends with soft_callback_end(), which calls soft_handlers.deliver().
 */
void soft_callback_begin(struct soft_transport *transport);
void soft_callback_end(struct soft_transport *transport);
/* Outside such a callback: schedules one for the next turn of the loop. */
void soft_schedule(struct soft_transport *transport);
/* Schedules soft_handlers.reap() for the next turn of the loop. */
void soft_reap_later(struct soft_transport *transport);

/*
 * Queues an event with a copy of data. soft_event_failed() queues SOFT_EVENT_FAILED with a cause and a code, its error
 * at delivery. The texts are constant; code_name is NULL for an errno value.
 */
void soft_event_queue(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data, size_t length);
void soft_event_failed(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code);
/* SOFT_EVENT_FAILED for a REJ: reason, and its private data for the command. */
void soft_event_rejected(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data,
			 size_t length);
/* Out of memory: at delivery the endpoint fails; a listener reports EVENT_REQUEST_FAILED. */
void soft_fail_no_memory(struct soft_endpoint *endpoint);
/*
 * Queues a completion with COMPLETION_OK and returns it, for the caller to fill in place: a processor stalls if it
 * copies a struct right after writing its members. error: COMPLETION_OTHER's errno, else 0.
 */
struct completion *soft_complete(struct soft_endpoint *endpoint, enum work_kind kind, uint32_t tag, int error);
/* Detaches queued entries from an endpoint that is being freed. */
void soft_queue_detach(struct soft_endpoint *endpoint);

/* ---- for delivery.c ---- */

enum soft_queued {
	SOFT_QUEUED_NOTHING, /* or none due now */
	SOFT_QUEUED_EVENT,
	SOFT_QUEUED_COMPLETION,
};

/* The next queue to deliver from. */
enum soft_queued soft_queue_next(struct soft_queue *queue);
/* Takes the oldest event, which must exist; the caller frees it. */
struct soft_event *soft_event_take(struct soft_queue *queue);
/* Takes the oldest completion. False: none. */
bool soft_completion_take(struct soft_queue *queue, struct soft_completion *completion);
