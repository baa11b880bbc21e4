/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: shared by the QPs of a domain, with one completion channel, polled in batches. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/param.h>

#include "transport/verbs/verbs.h"

enum {
	CAPACITY_FIRST = 256, /* entries of a domain's first CQ; each further one has twice as many */
	CAPACITY_MAX = 65536,
	BATCH = 32,	     /* completions per ibv_poll_cq() */
	BUDGET = 16 * BATCH, /* completions per CQ and turn of the loop, so that other events are handled */
	ACKNOWLEDGE_AT = 64, /* completion events: each ibv_ack_cq_events() locks a mutex */
};

static struct verbs_endpoint *endpoint_of_wr_id(struct verbs_transport *transport, uint64_t wr_id)
{
	uint32_t slot = (wr_id >> (VERBS_TAG_BITS + VERBS_KIND_BITS)) & ((1u << VERBS_SLOT_BITS) - 1);
	uint16_t generation = (uint16_t)(wr_id >> (VERBS_TAG_BITS + VERBS_KIND_BITS + VERBS_SLOT_BITS));

	if (slot >= transport->slot_count || transport->slots[slot].generation != generation)
		return NULL;
	return transport->slots[slot].endpoint;
}

static void dispatch_completion(struct verbs_transport *transport, const struct ibv_wc *wc)
{
	struct verbs_endpoint *endpoint = endpoint_of_wr_id(transport, wc->wr_id);
	const char *words = NULL;
	struct completion completion = {
		.kind = (wc->wr_id >> VERBS_TAG_BITS) & ((1u << VERBS_KIND_BITS) - 1),
		.tag = wc->wr_id & WORK_TAG_MAX,
		.status = (enum completion_status)wc->status,
	};

	if (!endpoint)
		return;
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		verbs_flushed(endpoint);
		return;
	}
	verbs_deliver_established(endpoint);
	if (wc->status == IBV_WC_SUCCESS && completion.kind == WORK_RECEIVE) {
		/* For a WRITE with immediate byte_len is the length of the WRITE, not of the receive. */
		if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
			completion.length = wc->byte_len;
		if (endpoint_is_group(&endpoint->base))
			completion.length -= DATAGRAM_HEADER_SIZE;
		completion.source_qpn = wc->src_qp;
		if (wc->wc_flags & IBV_WC_WITH_IMM) {
			completion.has_immediate = true;
			completion.immediate = be32toh(wc->imm_data);
		}
	}
	endpoint->failed |= completion.status != COMPLETION_OK;
	if (completion.status && (!WITH_DIAGNOSTICS || !completion_status_text(completion.status)))
		words = ibv_wc_status_str(wc->status);
	if (completion.kind != WORK_RECEIVE && endpoint->outstanding)
		endpoint->outstanding--;
	endpoint_complete(&endpoint->base, &completion, COMPLETION_CODE_NAME, (int)wc->status, words);
	if (endpoint->disconnect_pending && !endpoint->outstanding)
		verbs_timer_start(endpoint, 0, verbs_deliver_disconnected);
}

/*
 * Polls until a poll returns fewer completions (1: the CQ is empty; BATCH: all that were there are taken), or BUDGET is
 * reached. Returns how many it handled.
 */
static int poll_until(struct verbs_completion_queue *completions, int fewer)
{
	struct verbs_transport *transport = verbs_of(completions->domain->base.transport);
	struct ibv_wc wcs[BATCH];
	int handled = 0;

	while (handled < BUDGET) {
		int count = ibv_poll_cq(completions->cq, BATCH, wcs);

		/* The negative value has no defined meaning. */
		if (count < 0) {
			verbs_domain_failed(completions->domain, EIO, "polling a completion queue");
			return 0;
		}
		for (int index = 0; index < count; index++)
			dispatch_completion(transport, &wcs[index]);
		handled += count;
		if (count < fewer)
			break;
	}
	return handled;
}

static bool cq_arm(struct verbs_completion_queue *completions)
{
	struct verbs_domain *domain = completions->domain;
	int error = completions->armed || domain->base.removed ? 0 : ibv_req_notify_cq(completions->cq, 0);

	completions->armed = true;
	if (!error)
		return true;
	verbs_domain_failed(domain, error, "arming a completion queue");
	return false;
}

/*
 * Polls until the CQ is empty, then arms it: a request posted by a handler has often completed when the handler
 * returns, without a completion event until the CQ is armed. A completion before the arming raises no event, so the CQ
 * is polled once more. With --spin arm_all() arms it.
 */
static void poll_and_arm(void *context)
{
	struct verbs_completion_queue *completions = context;
	struct transport *transport = completions->domain->base.transport;

	if (poll_until(completions, 1) < BUDGET &&
	    (transport->spin || !cq_arm(completions) || poll_until(completions, BATCH) < BUDGET))
		return;
	loop_timer_start(transport->loop, &completions->again, 0, poll_and_arm, completions);
}

/* Reads one completion event. The watcher is level-triggered: it fires again for the next. */
static void completion_readable(void *context)
{
	struct verbs_domain *domain = context;
	struct verbs_completion_queue *completions;
	struct ibv_cq *cq;
	void *cq_context;

	if (ibv_get_cq_event(domain->completion_channel, &cq, &cq_context)) {
		if (errno == EAGAIN || errno == EINTR)
			return;
		/* The kernel returns EIO when the device is removed. */
		if (errno == EIO) {
			verbs_domain_removed(domain);
			return;
		}
		verbs_domain_failed(domain, errno, "reading a completion event");
		return;
	}
	completions = cq_context;
	if (++completions->unacknowledged >= ACKNOWLEDGE_AT) {
		ibv_ack_cq_events(cq, completions->unacknowledged);
		completions->unacknowledged = 0;
	}
	completions->armed = false;
	poll_and_arm(completions);
}

static bool poll_all(void *context)
{
	const struct verbs_domain *domain = context;
	bool busy = false;

	if (domain->base.removed)
		return false;
	for (struct verbs_completion_queue *completions = domain->completion_queues; completions;
	     completions = completions->next)
		busy |= poll_until(completions, BATCH) > 0;
	return busy;
}

/* A completion between the last poll and the arming raises no event, so all CQs are polled once more. */
static bool arm_all(void *context)
{
	const struct verbs_domain *domain = context;

	for (struct verbs_completion_queue *completions = domain->completion_queues; completions;
	     completions = completions->next)
		if (!domain->base.removed && !cq_arm(completions))
			break;
	return poll_all(context);
}

/* Before the first CQ of the domain. */
static void start_polling(struct verbs_domain *domain)
{
	struct transport *transport = domain->base.transport;

	verbs_watch(transport, &domain->completion_readable, domain->completion_channel->fd, completion_readable,
		    domain);
	/* --spin: polls without completion events, and arms the CQs before the loop sleeps. */
	if (WITH_EXTRAS)
		loop_poller_start(transport->loop, &domain->completion_poller, poll_all, arm_all, domain);
}

void verbs_completion_queue_drain(struct verbs_completion_queue *completions)
{
	while (poll_until(completions, BATCH) >= BUDGET)
		;
}

void verbs_completion_drain(struct verbs_domain *domain)
{
	for (struct verbs_completion_queue *completions = domain->completion_queues; completions;
	     completions = completions->next)
		verbs_completion_queue_drain(completions);
}

static enum outcome cq_create(struct verbs_domain *domain, uint32_t entries, struct verbs_completion_queue **result)
{
	uint32_t most = MIN((uint32_t)domain->limits.max_cqe, CAPACITY_MAX);
	uint32_t capacity = domain->completion_queues ? 2 * domain->completion_queues->capacity : CAPACITY_FIRST;
	struct verbs_completion_queue *completions = calloc(1, sizeof(*completions));

	/* The device refuses more entries than it can have. It may have room for fewer: halved until it takes them. */
	capacity = MAX(MIN(capacity, most), entries);
	while (completions &&
	       !(completions->cq =
			 ibv_create_cq(domain->context, (int)capacity, completions, domain->completion_channel, 0)) &&
	       capacity > entries && verbs_is_limit(errno))
		capacity = MAX(capacity / 2, entries);
	if (!completions || !completions->cq) {
		int error = errno;

		free(completions);
		return verbs_error_resources(&domain->base.transport->error, domain->base.device,
					     "creating a completion queue", error);
	}
	completions->domain = domain;
	completions->capacity = capacity;
	if (!domain->completion_queues)
		start_polling(domain);
	completions->next = domain->completion_queues;
	domain->completion_queues = completions;
	*result = completions;
	return OUTCOME_OK;
}

enum outcome verbs_completion_reserve(struct verbs_endpoint *endpoint, uint32_t entries)
{
	struct verbs_domain *domain = verbs_domain_of(endpoint);
	struct verbs_completion_queue *completions = domain->completion_queues;
	enum outcome outcome;
	int error;

	while (completions && completions->capacity - completions->reserved < entries)
		completions = completions->next;
	outcome = completions ? OUTCOME_OK : cq_create(domain, entries, &completions);
	if (outcome)
		return outcome;
	error = completions->armed ? 0 : ibv_req_notify_cq(completions->cq, 0);
	if (error)
		return verbs_error_resources(&domain->base.transport->error, domain->base.device,
					     "arming a completion queue", error);
	completions->armed = true;
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
	completions->reserved -= endpoint->reserved;
	endpoint->completions = NULL;
	endpoint->reserved = 0;
}
