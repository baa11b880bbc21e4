/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delayed reports, by one timer per endpoint: EVENT_ESTABLISHED, EVENT_DISCONNECTED, or a failure whose cause does not
 * come.
 */
#include <string.h>
#include <sys/param.h>

#include "core/clock.h"
#include "transport/verbs/verbs.h"

/* Of EVENT_ESTABLISHED: verbs_delay_established(). */
#define ESTABLISHED_DELAY (20 * CLOCK_NS_PER_MS)
/* After a flushed completion, until another descriptor reports the cause. */
#define CAUSE_DELAY (500 * CLOCK_NS_PER_MS)

enum {
	VENDOR_SIW = 0x626d74 /* soft-iWARP */
};

void verbs_timer_start(struct verbs_endpoint *endpoint, int64_t nanoseconds, loop_callback *callback)
{
	loop_timer_start(endpoint->base.transport->loop, &endpoint->timer, nanoseconds, callback, endpoint);
}

void verbs_deliver_established(void *context)
{
	struct verbs_endpoint *endpoint = context;

	if (!endpoint->delayed)
		return;
	endpoint->delayed = false;
	loop_timer_stop(&endpoint->timer);
	endpoint_established(&endpoint->base, endpoint->private_data, endpoint->private_length);
}

/*
 * The accepting side of soft-iWARP may miss data right after its MPA reply: while it moves the socket from its CM to
 * the QP it does not read, and reads again only when the next segment arrives. On iWARP the connecting side sends
 * first, so there EVENT_ESTABLISHED is delayed.
 */
bool verbs_delay_established(struct verbs_endpoint *endpoint, const void *data, size_t length)
{
	endpoint->delayed = verbs_domain_of(endpoint)->limits.vendor_id == VENDOR_SIW;
	if (!endpoint->delayed)
		return false;
	endpoint->private_length = (uint8_t)MIN(length, sizeof(endpoint->private_data));
	if (length)
		memcpy(endpoint->private_data, data, endpoint->private_length);
	verbs_timer_start(endpoint, ESTABLISHED_DELAY, verbs_deliver_established);
	return true;
}

int verbs_send_disconnect(struct verbs_endpoint *endpoint)
{
	/* librdmacm does that for its own QPs. An error is ignored: the QP is destroyed soon. */
	if (endpoint->base.options.own_qp)
		verbs_qp_modify(endpoint, IBV_QPS_ERR, IBV_QP_STATE);
	return rdma_disconnect(endpoint->id);
}

void verbs_deliver_disconnected(void *context)
{
	struct verbs_endpoint *endpoint = context;

	endpoint->disconnect_pending = false;
	loop_timer_stop(&endpoint->timer);
	if (endpoint->base.state >= ENDPOINT_FAILED)
		return;
	if (endpoint->base.state == ENDPOINT_ESTABLISHED)
		verbs_send_disconnect(endpoint);
	endpoint_deliver_kind(&endpoint->base, EVENT_DISCONNECTED);
}

static void no_cause_reported(void *context)
{
	struct verbs_endpoint *endpoint = context;

	if (endpoint->base.state != ENDPOINT_ESTABLISHED || endpoint->failed)
		return;
	error_set(endpoint_error(&endpoint->base), endpoint->base.name,
		  "the queue pair failed, and the device gives no reason");
	endpoint_fail(&endpoint->base, OUTCOME_FAILED);
}

/*
 * The cause of the error state is reported by a completion or an asynchronous event, on iWARP also by a CM event.
 * soft-RoCE reports none if it refuses a peer's request (rxe_resp.c, RESPST_ERR_RKEY_VIOLATION).
 */
void verbs_flushed(struct verbs_endpoint *endpoint)
{
	if (endpoint->base.state == ENDPOINT_ESTABLISHED && !endpoint->disconnect_pending &&
	    endpoint->base.domain->fabric != FABRIC_IWARP)
		verbs_timer_start(endpoint, CAUSE_DELAY, no_cause_reported);
}
