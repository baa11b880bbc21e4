/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues and channels, protection domains, regions, address handles. */
#include "test/verbs/provider/provider.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#undef ibv_reg_mr

static struct completion_queue *cq_of(struct ibv_cq *cq)
{
	return (struct completion_queue *)cq;
}

/* ---- completion channels ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct completion_channel *channel;

	if (provider_fails(__func__))
		return NULL;
	channel = provider_allocate(sizeof(*channel));
	doorbell_open(&channel->bell);
	channel->base.context = context;
	channel->base.fd = channel->bell.fd;
	LIST_APPEND(provider.completion_channels, channel);
	return &channel->base;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *base)
{
	struct completion_channel *channel = (struct completion_channel *)base;

	if (channel->users)
		provider_die("%s: a completion queue uses it", __func__);
	LIST_REMOVE(provider.completion_channels, channel);
	close(channel->bell.fd);
	free(channel);
	return 0;
}

static struct completion_queue *first_raised(const struct ibv_comp_channel *channel)
{
	struct completion_queue *cq = provider.cqs;

	while (cq && !(cq->base.channel == channel && cq->raised))
		cq = cq->next;
	return cq;
}

static void set_bell(struct ibv_comp_channel *base)
{
	struct completion_channel *channel = (struct completion_channel *)base;

	doorbell_set(&channel->bell, first_raised(base) || device_of(base->context)->removed);
}

int ibv_get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **result, void **context)
{
	struct completion_queue *cq;

	provider_pump();
	if (provider_fails(__func__))
		return -1;
	if (device_of(base->context)->removed) {
		errno = EIO;
		return -1;
	}
	cq = first_raised(base);
	if (!cq)
		return doorbell_empty(&((struct completion_channel *)base)->bell, __func__);
	cq->raised--;
	cq->taken++;
	set_bell(base);
	*result = &cq->base;
	*context = cq->base.cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *base, unsigned count)
{
	struct completion_queue *cq = cq_of(base);

	cq->acknowledged += count;
	if (cq->acknowledged > cq->taken)
		provider_die("%s: more than were taken", __func__);
}

/* ---- completion queues ---- */

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct completion_queue *cq;

	if (provider_fails(__func__))
		return NULL;
	if (entries < 1 || entries > device_of(context)->limits.max_cqe || device_of(context)->removed) {
		errno = EINVAL;
		return NULL;
	}
	cq = provider_allocate(sizeof(*cq));
	cq->base.context = context;
	cq->base.channel = channel;
	cq->base.cq_context = cq_context;
	cq->base.handle = ++provider.last_number;
	cq->capacity = (unsigned)entries;
	cq->entries = provider_allocate(cq->capacity * sizeof(*cq->entries));
	((struct completion_channel *)channel)->users++;
	LIST_APPEND(provider.cqs, cq);
	return &cq->base;
}

int ibv_destroy_cq(struct ibv_cq *base)
{
	struct completion_queue *cq = cq_of(base);

	if (cq->users)
		provider_die("%s: a queue pair uses it", __func__);
	if (cq->taken != cq->acknowledged)
		provider_die("%s: %u events taken, %u acknowledged: would wait forever", __func__, cq->taken,
			     cq->acknowledged);
	if (cq->asynchronous)
		provider_die("%s: an event is not acknowledged: would wait forever", __func__);
	provider_forget(cq);
	device_forget(device_of(base->context), cq);
	((struct completion_channel *)base->channel)->users--;
	LIST_REMOVE(provider.cqs, cq);
	set_bell(base->channel);
	free(cq->entries);
	free(cq);
	return 0;
}

static void raise_event(struct completion_queue *cq)
{
	cq->raised++;
	set_bell(cq->base.channel);
}

static void raise_later(struct action *action)
{
	raise_event((struct completion_queue *)(uintptr_t)action->subject);
}

void cq_push(struct completion_queue *cq, const struct completion_entry *entry, bool solicited, bool silent)
{
	if (cq->count == cq->capacity)
		provider_die("a completion queue of %u entries overflows", cq->capacity);
	cq->entries[(cq->first + cq->count++) % cq->capacity] = *entry;
	if (silent || !cq->armed || (cq->armed_solicited && !solicited))
		return;
	cq->armed = false;
	if (provider.seed)
		provider_action(raise_later, cq->base.handle)->subject = cq;
	else
		raise_event(cq);
}

void cq_forget(const struct queue_pair *qp)
{
	struct completion_queue *cq = cq_of(qp->base.send_cq);
	unsigned kept = 0;

	for (unsigned index = 0; !provider.keeps_completions && index < cq->count; index++) {
		const struct completion_entry *entry = &cq->entries[(cq->first + index) % cq->capacity];

		if (entry->base.qp_num != qp->base.qp_num)
			cq->entries[(cq->first + kept++) % cq->capacity] = *entry;
	}
	if (!provider.keeps_completions)
		cq->count = kept;
}

int cq_poll(struct ibv_cq *base, int max, struct ibv_wc *completions)
{
	struct completion_queue *cq = cq_of(base);
	int count = 0;

	provider_pump();
	if (provider_fails("ibv_poll_cq"))
		return -1;
	for (; count < max && cq->count; count++) {
		const struct completion_entry *entry = &cq->entries[cq->first];
		struct queue_pair *qp = qp_find(entry->base.qp_num);

		completions[count] = entry->base;
		if (qp) {
			qp->sends_used -= entry->sends;
			qp->receives_used -= entry->receives;
		}
		cq->first = (cq->first + 1) % cq->capacity;
		cq->count--;
	}
	return count;
}

/* Earlier completions raise no event, and some arrive between the last poll and this call. */
int cq_notify(struct ibv_cq *base, int solicited)
{
	struct completion_queue *cq = cq_of(base);

	provider_pump();
	if (provider_fails("ibv_req_notify_cq"))
		return errno;
	cq->armed_solicited = solicited && (!cq->armed || cq->armed_solicited);
	cq->armed = true;
	return 0;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_FATAL_ERR ? "fatal error" : "some other error";
}

/* ---- protection domains, regions, address handles ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *domain;

	if (provider_fails(__func__))
		return NULL;
	domain = provider_allocate(sizeof(*domain));
	domain->context = context;
	provider.protection_domains++;
	return domain;
}

int ibv_dealloc_pd(struct ibv_pd *domain)
{
	for (const struct region_entry *region = provider.regions; region; region = region->next)
		if (region->base.pd == domain)
			provider_die("%s: a region is in it", __func__);
	provider.protection_domains--;
	free(domain);
	return 0;
}

struct region_entry *region_find(const struct ibv_pd *domain, bool remote, uint32_t key, uint64_t address,
				 uint64_t length, unsigned access)
{
	struct region_entry *region = provider.regions;

	while (region && (remote ? region->base.rkey : region->base.lkey) != key)
		region = region->next;
	if (!region || region->base.pd != domain || (region->access & access) != access)
		return NULL;
	return address >= (uintptr_t)region->base.addr &&
			       address + length <= (uintptr_t)region->base.addr + region->base.length
		       ? region
		       : NULL;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *domain, void *memory, size_t length, int access)
{
	struct region_entry *region;

	if (provider_fails("ibv_reg_mr"))
		return NULL;
	errno = EINVAL;
	if (device_of(domain->context)->removed ||
	    (access & IBV_ACCESS_REMOTE_WRITE && !(access & IBV_ACCESS_LOCAL_WRITE)))
		return NULL;
	region = provider_allocate(sizeof(*region));
	region->access = (unsigned)access;
	region->base = (struct ibv_mr){
		.context = domain->context,
		.pd = domain,
		.addr = memory,
		.length = length,
		.lkey = ++provider.last_number << 16 | 1,
		.rkey = provider.last_number << 16 | 2,
	};
	LIST_APPEND(provider.regions, region);
	return &region->base;
}

int ibv_dereg_mr(struct ibv_mr *base)
{
	struct region_entry *region = (struct region_entry *)base;

	LIST_REMOVE(provider.regions, region);
	free(region);
	return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *domain, struct ibv_ah_attr *attributes)
{
	struct address_handle *handle;

	if (provider_fails(__func__))
		return NULL;
	handle = provider_allocate(sizeof(*handle));
	handle->base.pd = domain;
	handle->base.context = domain->context;
	provider.last_handle = *attributes;
	handle->attributes = *attributes;
	provider.handles++;
	return &handle->base;
}

int ibv_destroy_ah(struct ibv_ah *handle)
{
	provider.handles--;
	free(handle);
	return 0;
}
