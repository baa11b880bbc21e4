/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: shared by the queue pairs of a device, woken by one channel, polled in batches. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "transport/verbs/verbs.h"

enum {
	CAPACITY_FIRST = 256, /* entries of a device's first queue; each further one has twice as many */
	CAPACITY_MOST = 65536,
	BATCH = 32,	     /* completions taken in one call */
	BUDGET = 16 * BATCH, /* and in one turn of the loop, so that a flood does not starve the rest */
	WORDS_MOST = 64 + ENDPOINT_TIMEOUT_CAUSE_SIZE,
	ACKNOWLEDGE_AT = 64, /* events paid back at once: each acknowledgement takes a mutex */
};

static enum completion_status status_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return COMPLETION_OK;
	case IBV_WC_LOC_LEN_ERR:
		return COMPLETION_LENGTH;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
		return COMPLETION_PROTECTION;
	case IBV_WC_REM_ACCESS_ERR:
		return COMPLETION_REMOTE_ACCESS;
	case IBV_WC_REM_INV_REQ_ERR:
		return COMPLETION_REMOTE_REQUEST;
	case IBV_WC_REM_OP_ERR:
		return COMPLETION_REMOTE_OPERATION;
	case IBV_WC_RETRY_EXC_ERR:
		return COMPLETION_RETRY_EXCEEDED;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return COMPLETION_RNR_EXCEEDED;
	default:
		return COMPLETION_OTHER;
	}
}

static struct verbs_endpoint *endpoint_of(struct verbs_transport *transport, uint64_t number)
{
	uint32_t slot = (number >> (VERBS_TAG_BITS + VERBS_KIND_BITS)) & ((1u << VERBS_SLOT_BITS) - 1);
	uint16_t generation = (uint16_t)(number >> (VERBS_TAG_BITS + VERBS_KIND_BITS + VERBS_SLOT_BITS));

	if (slot >= transport->slot_count || transport->slots[slot].generation != generation)
		return NULL;
	return transport->slots[slot].endpoint;
}

static void dispatch(struct verbs_transport *transport, const struct ibv_wc *taken)
{
	struct verbs_endpoint *endpoint = endpoint_of(transport, taken->wr_id);
	char words[WORDS_MOST] = "", silence[ENDPOINT_TIMEOUT_CAUSE_SIZE];
	struct completion completion = {
		.kind = (taken->wr_id >> VERBS_TAG_BITS) & ((1u << VERBS_KIND_BITS) - 1),
		.tag = taken->wr_id & WORK_TAG_MOST,
		.status = status_of(taken->status),
	};

	if (!endpoint)
		return;
	if (taken->status == IBV_WC_WR_FLUSH_ERR) {
		verbs_flushed(endpoint);
		return;
	}
	verbs_endpoint_settle(endpoint);
	if (taken->status == IBV_WC_SUCCESS && completion.kind == WORK_RECEIVE) {
		/* The length of a WRITE with immediate is that of what it wrote, which is not the receive. */
		if (taken->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
			completion.length = taken->byte_len;
		if (endpoint->base.kind == ENDPOINT_GROUP)
			completion.length -= DATAGRAM_HEADER_SIZE;
		completion.source_qpn = taken->src_qp;
		if (taken->wc_flags & IBV_WC_WITH_IMM) {
			completion.has_immediate = true;
			completion.immediate = be32toh(taken->imm_data);
		}
	}
	if (completion.status == COMPLETION_OTHER)
		snprintf(words, sizeof(words), "%s", ibv_wc_status_str(taken->status));
	if (completion.status == COMPLETION_RETRY_EXCEEDED)
		snprintf(words, sizeof(words), "%s%s", completion_status_text(completion.status),
			 endpoint_timeout_cause(&endpoint->base, silence));
	if (completion.kind != WORK_RECEIVE && endpoint->unfinished)
		endpoint->unfinished--;
	endpoint_complete(&endpoint->base, &completion, taken->status, *words ? words : NULL);
	if (endpoint->leaving && !endpoint->unfinished)
		loop_timer_start(transport->base.loop, &endpoint->later, 0, verbs_disconnected, endpoint);
}

/* Until a look finds fewer than that. Returns the number of completions handled: BUDGET if there may be more. */
static int poll_until(struct verbs_completion_queue *completions, int fewer)
{
	struct verbs_transport *transport = verbs_of(completions->domain->base.transport);
	struct ibv_wc taken[BATCH];
	int handled = 0;

	while (handled < BUDGET) {
		int count = ibv_poll_cq(completions->queue, BATCH, taken);

		/* A driver's own number says nothing. */
		if (count < 0) {
			verbs_domain_failed(completions->domain, EIO, "polling a completion queue");
			return 0;
		}
		for (int index = 0; index < count; index++)
			dispatch(transport, &taken[index]);
		handled += count;
		if (count < fewer)
			break;
	}
	return handled;
}

/* What was there when this was called. */
static int poll_batches(struct verbs_completion_queue *completions)
{
	return poll_until(completions, BATCH);
}

static bool arm(struct verbs_completion_queue *completions)
{
	struct verbs_domain *domain = completions->domain;
	int error = completions->armed || domain->base.removed ? 0 : ibv_req_notify_cq(completions->queue, 0);

	completions->armed = true;
	if (!error)
		return true;
	verbs_domain_failed(domain, error, "arming a completion queue");
	return false;
}

/*
 * Until a look finds nothing, and then armed: what a handler posts is often answered by the time it returns, and as
 * long as the queue is not armed that costs no event to be taken, and no arming. What came before the arming raises no
 * event either, so that it is looked at once more - unless the loop spins, and arms it when it wants to sleep.
 */
static void empty(void *owner)
{
	struct verbs_completion_queue *completions = owner;
	struct transport *transport = completions->domain->base.transport;

	if (poll_until(completions, 1) < BUDGET &&
	    (transport->spin || !arm(completions) || poll_batches(completions) < BUDGET))
		return;
	loop_timer_start(transport->loop, &completions->again, 0, empty, completions);
}

/* One event a wake-up: the watcher is level-triggered and comes back if more wait. */
void verbs_completion_readable(void *owner)
{
	struct verbs_domain *domain = owner;
	struct verbs_completion_queue *completions;
	struct ibv_cq *queue;
	void *context;

	if (ibv_get_cq_event(domain->completions, &queue, &context)) {
		if (errno == EAGAIN || errno == EINTR)
			return;
		/* What the kernel answers when the device is gone. */
		if (errno == EIO) {
			verbs_domain_removed(domain);
			return;
		}
		verbs_domain_failed(domain, errno, "reading a completion event");
		return;
	}
	completions = context;
	if (++completions->unacknowledged >= ACKNOWLEDGE_AT) {
		ibv_ack_cq_events(queue, completions->unacknowledged);
		completions->unacknowledged = 0;
	}
	completions->armed = false;
	empty(completions);
}

static bool poll_all(void *owner)
{
	const struct verbs_domain *domain = owner;
	bool busy = false;

	if (domain->base.removed)
		return false;
	for (struct verbs_completion_queue *completions = domain->queues; completions; completions = completions->next)
		busy |= poll_batches(completions) > 0;
	return busy;
}

/* What comes between the last look and the arming raises no event: so it is looked once more. */
static bool arm_all(void *owner)
{
	const struct verbs_domain *domain = owner;

	for (struct verbs_completion_queue *completions = domain->queues; completions; completions = completions->next)
		if (!domain->base.removed && !arm(completions))
			break;
	return poll_all(owner);
}

void verbs_completion_poller_start(struct verbs_domain *domain)
{
	loop_poller_start(domain->base.transport->loop, &domain->completion_poller, poll_all, arm_all, domain);
}

void verbs_completion_drain(struct verbs_domain *domain)
{
	for (struct verbs_completion_queue *completions = domain->queues; completions; completions = completions->next)
		while (poll_batches(completions) >= BUDGET)
			;
}

static enum outcome queue_create(struct verbs_domain *domain, uint32_t entries, struct verbs_completion_queue **result)
{
	const struct log *log = domain->base.transport->log;
	uint32_t most = (uint32_t)domain->limits.max_cqe;
	uint32_t capacity = domain->queues ? 2 * domain->queues->capacity : CAPACITY_FIRST;
	struct verbs_completion_queue *completions;
	int error;

	if (capacity > CAPACITY_MOST)
		capacity = CAPACITY_MOST;
	if (capacity < entries)
		capacity = entries;
	if (capacity > most)
		capacity = most;
	if (capacity < entries) {
		log_error(log, domain->base.device, "a completion queue has at most %u entries, %u are needed", most,
			  entries);
		return OUTCOME_INTERNAL;
	}
	completions = calloc(1, sizeof(*completions));
	if (!completions)
		return verbs_explain_resources(log, domain->base.device, "creating a completion queue", ENOMEM);
	completions->domain = domain;
	completions->capacity = capacity;
	completions->queue = ibv_create_cq(domain->context, (int)capacity, completions, domain->completions, 0);
	if (!completions->queue) {
		error = errno;
		free(completions);
		return verbs_explain_resources(log, domain->base.device, "creating a completion queue", error);
	}
	error = ibv_req_notify_cq(completions->queue, 0);
	completions->armed = !error;
	if (error) {
		verbs_completion_queue_destroy(completions);
		return verbs_explain_resources(log, domain->base.device, "arming a completion queue", error);
	}
	completions->next = domain->queues;
	domain->queues = completions;
	*result = completions;
	return OUTCOME_OK;
}

enum outcome verbs_completion_reserve(struct verbs_endpoint *endpoint, uint32_t entries)
{
	struct verbs_domain *domain = verbs_domain_of(endpoint);
	struct verbs_completion_queue *completions = domain->queues;

	while (completions && completions->capacity - completions->reserved < entries)
		completions = completions->next;
	if (!completions) {
		enum outcome outcome = queue_create(domain, entries, &completions);

		if (outcome)
			return outcome;
	}
	completions->reserved += entries;
	endpoint->completions = completions;
	endpoint->reserved = entries;
	return OUTCOME_OK;
}

void verbs_completion_release(struct verbs_endpoint *endpoint)
{
	struct verbs_completion_queue *completions = endpoint->completions;

	if (!completions)
		return;
	while (poll_batches(completions) >= BUDGET)
		;
	completions->reserved -= endpoint->reserved;
	endpoint->completions = NULL;
	endpoint->reserved = 0;
}

/* ibv_destroy_cq() waits until as many events were acknowledged as were taken: no fewer, and no more. */
void verbs_completion_queue_destroy(struct verbs_completion_queue *completions)
{
	loop_timer_stop(&completions->again);
	if (completions->unacknowledged)
		ibv_ack_cq_events(completions->queue, completions->unacknowledged);
	ibv_destroy_cq(completions->queue);
	free(completions);
}
