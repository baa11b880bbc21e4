/* SPDX-License-Identifier: BSD-2-Clause */
/* Delivers queued events and completions to the command. */
#include <stdlib.h>
#include <string.h>

#include "transport/soft/base/queue.h"
#include "transport/soft/qp/qp.h"
#include "transport/soft/soft.h"

enum {
	STATUS_TEXT_MAX = 96
};

static void report_completion(const struct soft_completion *queued)
{
	int error = queued->error;
	char text[STATUS_TEXT_MAX];

	if (error)
		log_text(text, sizeof(text), "the local kernel refused to send: %s", strerror(error));
	endpoint_complete(&queued->endpoint->base, &queued->completion, error ? NULL : COMPLETION_CODE_NAME,
			  error ? error : (int)queued->completion.status, error ? text : NULL);
}

/* Returns false if no completion is queued. */
static bool deliver_completion(struct soft_queue *queue)
{
	struct soft_completion completion;

	if (!soft_completion_take(queue, &completion))
		return false;
	if (completion.endpoint)
		report_completion(&completion);
	return true;
}

/* Queued completions come before EVENT_DISCONNECTED, as on every backend. */
static void deliver_disconnected(struct soft_queue *queue, struct soft_endpoint *endpoint)
{
	while (deliver_completion(queue))
		;
	switch (endpoint->base.state) {
	case ENDPOINT_ESTABLISHED:
	case ENDPOINT_DISCONNECTING:
		endpoint_deliver_kind(&endpoint->base, EVENT_DISCONNECTED);
		break;
	case ENDPOINT_CONNECTING:
	case ENDPOINT_ACCEPTING:
		endpoint_fail(&endpoint->base,
			      endpoint_no_connection(&endpoint->base, endpoint_state_text(endpoint->base.state), 0,
						     "the peer withdrew before the connection was established"));
		break;
	default:
		break;
	}
}

static void deliver_failed(struct soft_endpoint *endpoint, const struct soft_event *event)
{
	char reason[ENDPOINT_REJECT_TEXT_SIZE], timeout_cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];
	struct failure failure = event->failure;

	/* A request that could not be reported for lack of memory has no handlers: see fail_no_memory(). */
	if (endpoint->base.state >= ENDPOINT_FAILED || !endpoint->base.handlers)
		return;
	failure.object = endpoint->base.name;
	failure.phase = endpoint_state_text(endpoint->base.state);
	if (endpoint->base.state > ENDPOINT_ACCEPTING)
		failure.kind = ERROR_OTHER;
	error_clear(endpoint_error(&endpoint->base));
	if (event->cause)
		error_failure(endpoint_error(&endpoint->base), &failure, "%s%s%s", event->cause,
			      endpoint_reject_text(event->data, event->length, reason),
			      event->answered ? "" : endpoint_timeout_cause(&endpoint->base, timeout_cause));
	endpoint_rejected(&endpoint->base, event->data, event->length);
}

static void deliver_event(struct soft_queue *queue)
{
	struct soft_event *event = soft_event_take(queue);
	struct soft_endpoint *endpoint = event->endpoint;

	if (endpoint && endpoint->base.state != ENDPOINT_DESTROYED) {
		switch (event->kind) {
		case SOFT_EVENT_REQUESTED:
			soft_request_report(endpoint, event->data, event->length);
			break;
		case SOFT_EVENT_ESTABLISHED:
			endpoint_established(&endpoint->base, event->data, event->length);
			break;
		case SOFT_EVENT_DISCONNECTED:
			deliver_disconnected(queue, endpoint);
			break;
		case SOFT_EVENT_FAILED:
			deliver_failed(endpoint, event);
			break;
		}
	}
	free(event);
}

/* Includes entries that handlers queue meanwhile; their own posts bound these. */
static void deliver_queued(struct soft_queue *queue)
{
	enum soft_queued next;

	while ((next = soft_queue_next(queue)) != SOFT_QUEUED_NOTHING)
		if (next == SOFT_QUEUED_EVENT)
			deliver_event(queue);
		else
			deliver_completion(queue);
}

/* A request without handlers is not reported yet: its listener reports the failure. */
static void fail_no_memory(struct soft_endpoint *endpoint)
{
	for (; endpoint; endpoint = endpoint->next) {
		if (!endpoint->no_memory)
			continue;
		endpoint->no_memory = false;
		if (endpoint->base.kind == ENDPOINT_LISTENER) {
			endpoint_request_no_memory(&endpoint->base);
		} else if (endpoint->base.handlers) {
			error_set(endpoint_error(&endpoint->base), endpoint->base.name, "out of memory");
			endpoint_fail(&endpoint->base, OUTCOME_INTERNAL);
		} else {
			if (endpoint->listener)
				endpoint_request_no_memory(&endpoint->listener->base);
			endpoint_destroy(&endpoint->base);
		}
	}
}

bool soft_deliver(struct soft_transport *transport)
{
	bool replies_left;

	/* First: after a completion its memory may change, and a retransmission from it may still be queued. */
	soft_flush(transport);
	deliver_queued(transport->queue);
	if (transport->no_memory) {
		transport->no_memory = false;
		fail_no_memory(transport->endpoints);
		fail_no_memory(transport->listeners);
	}
	replies_left = soft_qp_batch_end(transport);
	soft_flush(transport);
	return replies_left;
}
