/* SPDX-License-Identifier: BSD-2-Clause */
/* Domains: a port of a device with its PD, completion channel and completion queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "transport/verbs/verbs.h"

static enum fabric fabric_of(const struct ibv_context *context, const struct ibv_port_attr *port)
{
	if (context->device->transport_type == IBV_TRANSPORT_IWARP)
		return FABRIC_IWARP;
	return port->link_layer == IBV_LINK_LAYER_ETHERNET ? FABRIC_ROCE : FABRIC_INFINIBAND;
}

static const char *name_of(struct verbs_transport *transport, const char *device)
{
	struct verbs_name *name = transport->names;

	while (name && strcmp(name->text, device) != 0)
		name = name->next;
	if (name)
		return name->text;
	name = calloc(1, sizeof(*name));
	if (!name)
		return NULL;
	log_text(name->text, sizeof(name->text), "%s", device);
	name->next = transport->names;
	transport->names = name;
	return name->text;
}

/* Completes what domain_use() has begun. Existing members remain from a failed attempt. */
static enum outcome domain_open(struct verbs_domain *domain, struct error *reason)
{
	struct ibv_context *context = domain->context;
	struct ibv_port_attr port;
	int error = ibv_query_device(context, &domain->limits);

	if (!error)
		error = (ibv_query_port)(context, domain->port, (struct _compat_ibv_port_attr *)&port);
	if (!error && !domain->pd)
		domain->pd = ibv_alloc_pd(context);
	if (!error && domain->pd)
		domain->completion_channel = ibv_create_comp_channel(context);
	if (!domain->completion_channel) {
		verbs_error_resources(reason, domain->base.device, "opening the device", error ? error : errno);
		/* Else the next endpoint tries again. */
		if (TRANSPORT_CLEANS_UP)
			verbs_domain_destroy(domain);
		return OUTCOME_INTERNAL;
	}
	domain->mtu = 128u << port.active_mtu; /* enum ibv_mtu: 1 is 256 bytes, 2 is 512, ... */
	domain->base.fabric = fabric_of(context, &port);
	/* Some RoCE cards lack it, too. */
	domain->base.multicast = domain->base.fabric != FABRIC_IWARP && domain->limits.max_mcast_grp > 0;
	/* Linux's RDMA CM does not support them on RoCE v2. */
	domain->base.ip6_multicast = domain->base.fabric == FABRIC_INFINIBAND;
	domain->base.max_message = port.max_msg_sz;
	/* One completion queue takes the completions of both of a queue pair's queues. */
	domain->base.max_qp_wr = (uint32_t)MIN(domain->limits.max_qp_wr, domain->limits.max_cqe / 2);
	verbs_device_watch(domain);
	return OUTCOME_OK;
}

/* Finds or creates the domain of a bound id. */
static enum outcome domain_use(struct verbs_transport *transport, struct rdma_cm_id *id,
			       const struct endpoint_options *options, struct error *reason,
			       struct verbs_domain **result)
{
	struct verbs_domain *domain = transport->domains;

	while (domain && (domain->context != id->verbs || domain->port != id->port_num))
		domain = domain->next;
	if (!domain) {
		const char *device = id->verbs->device->name;

		domain = calloc(1, sizeof(*domain));
		if (domain)
			domain->base.device = WITH_DIAGNOSTICS ? name_of(transport, device)
							       : memcpy(domain->name, device, sizeof(domain->name));
		if (!domain || !domain->base.device) {
			free(domain);
			return verbs_error_resources(reason, device, "opening the device", ENOMEM);
		}
		domain->base.transport = &transport->base;
		domain->context = id->verbs;
		domain->port = id->port_num;
		domain->next = transport->domains;
		transport->domains = domain;
	}
	if (!domain->completion_channel && domain_open(domain, reason))
		return OUTCOME_INTERNAL;
	domain->users++;
	if (!domain->bound_id)
		verbs_device_bind(domain, id, options);
	*result = domain;
	return OUTCOME_OK;
}

const char *verbs_domain_watch(struct verbs_transport *transport, struct rdma_cm_id *id,
			       const struct endpoint_options *options)
{
	struct verbs_domain *domain;
	struct error ignored;
	const char *device;

	if (domain_use(transport, id, options, &ignored, &domain))
		return NULL;
	device = domain->base.device;
	verbs_domain_release(domain);
	return device;
}

enum outcome verbs_domain_attach(struct verbs_endpoint *endpoint)
{
	struct verbs_transport *transport = verbs_of(endpoint->base.transport);
	struct verbs_domain *domain;
	enum outcome outcome =
		domain_use(transport, endpoint->id, &endpoint->base.options, &transport->base.error, &domain);

	if (outcome)
		return outcome;
	endpoint->base.domain = &domain->base;
	if (domain->base.removed) {
		error_set(&transport->base.error, domain->base.device, "the device has failed before");
		return OUTCOME_FAILED;
	}
	if (endpoint_is_group(&endpoint->base))
		endpoint->base.max_datagram = domain->mtu;
	return OUTCOME_OK;
}

/* Without a bound_id librdmacm may close the device with the last endpoint's id. */
void verbs_domain_release(struct verbs_domain *domain)
{
	if (!--domain->users && WITH_DIAGNOSTICS && !domain->bound_id)
		verbs_domain_destroy(domain);
}

void verbs_domains_reap(struct verbs_transport *transport)
{
	for (struct verbs_domain *domain = transport->domains, *next; domain; domain = next) {
		next = domain->next;
		if (domain->base.removed && !domain->users)
			verbs_domain_destroy(domain);
	}
}

/* ibv_destroy_cq() blocks unless all events read are acknowledged. */
void verbs_completion_queue_destroy(struct verbs_completion_queue *completions)
{
	loop_timer_stop(&completions->again);
	if (completions->unacknowledged)
		ibv_ack_cq_events(completions->cq, completions->unacknowledged);
	ibv_destroy_cq(completions->cq);
	free(completions);
}

/* Its endpoints and regions are freed. Frees in reverse order of creation. */
void verbs_domain_destroy(struct verbs_domain *domain)
{
	struct verbs_domain **pprev = &verbs_of(domain->base.transport)->domains;

	while (*pprev != domain)
		pprev = &(*pprev)->next;
	*pprev = domain->next;
	if (WITH_EXTRAS)
		loop_poller_stop(domain->base.transport->loop, &domain->completion_poller);
	while (domain->completion_queues) {
		struct verbs_completion_queue *completions = domain->completion_queues;

		domain->completion_queues = completions->next;
		verbs_completion_queue_destroy(completions);
	}
	loop_io_stop(&domain->completion_readable);
	if (domain->completion_channel)
		ibv_destroy_comp_channel(domain->completion_channel);
	if (domain->pd)
		ibv_dealloc_pd(domain->pd);
	verbs_device_release(domain);
	free(domain);
}
