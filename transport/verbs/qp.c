/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: created by librdmacm, or with options.own_qp by libibverbs, and then modified by modify.c. */
#include <errno.h>

#include "transport/verbs/verbs.h"

enum {
	DEPTH_LEAST = 64, /* the fewest receives that create_qp_within_limits() requests */
};

/* Returns 0 or an errno value. Each try fills the capacities again: both calls change them. */
static int create_qp(struct verbs_endpoint *endpoint, struct ibv_qp_init_attr_ex *attributes, uint32_t receive_depth)
{
	attributes->cap = (struct ibv_qp_cap){
		.max_send_wr = endpoint->base.options.send_depth,
		.max_recv_wr = receive_depth,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline_data = (uint32_t)endpoint_option_or(&endpoint->base, inline_size, 0),
	};
	errno = 0;
	/* Like ibv_create_qp_ex() with only a protection domain. */
	if (endpoint->base.options.own_qp)
		endpoint->qp = ibv_create_qp(attributes->pd, (struct ibv_qp_init_attr *)attributes);
	else if (!rdma_create_qp_ex(endpoint->id, attributes))
		endpoint->qp = endpoint->id->qp;
	if (endpoint->qp)
		return 0;
	return errno ? errno : EINVAL; /* bnxt_re sets no errno for an exceeded limit */
}

/*
 * A driver may support fewer work requests than max_qp_wr. A smaller receive depth is sufficient for every command, so
 * it is halved until the creation succeeds.
 */
static int create_qp_within_limits(struct verbs_endpoint *endpoint, struct ibv_qp_init_attr_ex *attributes)
{
	uint32_t *depth = &endpoint->base.options.receive_depth;
	int error;

	while ((error = create_qp(endpoint, attributes, *depth)) && verbs_is_limit(error) && *depth >= 2 * DEPTH_LEAST)
		*depth /= 2;
	return error;
}

/* Sets the error if the peer has withdrawn its request: the kernel then has no attributes for a QP. */
static bool is_withdrawn(struct verbs_endpoint *endpoint, int error)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_INIT };
	int mask;

	if (endpoint->base.state != ENDPOINT_REQUESTED || !rdma_init_qp_attr(endpoint->id, &attributes, &mask) ||
	    errno != EINVAL)
		return false;
	endpoint_no_connection(&endpoint->base, "accepting", error, "the peer withdrew the request");
	return true;
}

/* Moves our own QP from INIT to that state. */
static enum outcome qp_advance(struct verbs_endpoint *endpoint, enum ibv_qp_state last)
{
	for (int state = IBV_QPS_INIT; state <= (int)last; state++) {
		int error = verbs_qp_modify(endpoint, (enum ibv_qp_state)state, 0);

		if (error) {
			if (is_withdrawn(endpoint, error))
				return OUTCOME_NO_CONNECTION;
			error_errno(endpoint_error(&endpoint->base), endpoint->base.name, error,
				    "moving the queue pair to state %d", state);
			return OUTCOME_INTERNAL;
		}
	}
	return OUTCOME_OK;
}

static enum outcome create_qp_failed(struct verbs_endpoint *endpoint, int error)
{
	struct endpoint *base = &endpoint->base;
	const char *device = base->domain->device;
	uint32_t inline_size = (uint32_t)endpoint_option_or(base, inline_size, 0);
	bool no_flag = error == EOPNOTSUPP || error == EINVAL || error == ENOSYS;

	if (is_withdrawn(endpoint, error))
		return OUTCOME_NO_CONNECTION;
	if (HAS_GROUPS && base->options.no_loopback && no_flag) {
		endpoint_no_connection(base, "the device cannot keep multicast from looping back", error,
				       strerror(error));
		return OUTCOME_NO_DEVICE;
	}
	/* No device attribute has the limit. */
	if (error == EINVAL && inline_size) {
		error_errno(endpoint_error(base), device, error, "creating a queue pair with %u bytes inline",
			    inline_size);
		error_hint(endpoint_error(base), "the device may take fewer bytes inline");
		return OUTCOME_INTERNAL;
	}
	return verbs_error_resources(endpoint_error(base), device, "creating a queue pair", error);
}

enum outcome verbs_create_qp(struct endpoint *base)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	const struct endpoint_options *options = &base->options;
	struct ibv_qp_init_attr_ex attributes = {
		.qp_type = endpoint_is_group(base) ? IBV_QPT_UD : IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = verbs_domain_of(endpoint)->pd,
	};
	enum outcome outcome;
	int error;

	if (endpoint_is_group(base) && !base->domain->multicast) {
		error_set(endpoint_error(base), base->domain->device, "the device has no multicast");
		return OUTCOME_NO_DEVICE;
	}
	if (HAS_GROUPS && options->no_loopback) {
		attributes.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		attributes.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	}
	if (WITH_REPORT)
		verbs_counters_begin(verbs_domain_of(endpoint));
	outcome = verbs_completion_reserve(endpoint, options->send_depth + options->receive_depth);
	if (outcome)
		return outcome;
	attributes.send_cq = attributes.recv_cq = endpoint->completions->cq;
	error = create_qp_within_limits(endpoint, &attributes);
	if (error) {
		verbs_completion_release(endpoint);
		return create_qp_failed(endpoint, error);
	}
	base->qpn = endpoint->qp->qp_num;
	return options->own_qp ? qp_advance(endpoint, IBV_QPS_INIT) : OUTCOME_OK;
}

enum outcome verbs_qp_ready(struct verbs_endpoint *endpoint)
{
	/* INIT again: its access flags depend on the connection's READs, which the kernel now knows. */
	return qp_advance(endpoint, IBV_QPS_RTS);
}

void verbs_qp_set_rnr_timer(struct verbs_endpoint *endpoint)
{
	/* iWARP has no RNR timer: TCP flow control stops the sender. */
	if (endpoint->base.domain->fabric != FABRIC_IWARP &&
	    verbs_qp_modify(endpoint, IBV_QPS_RESET, IBV_QP_MIN_RNR_TIMER))
		log_debug(endpoint->base.transport->log, "%s: the device keeps its receiver-not-ready timer",
			  endpoint->base.name);
}

void verbs_qp_destroy(struct verbs_endpoint *endpoint)
{
	if (!endpoint->qp)
		return;
	/* Like rdma_destroy_qp() for a QP whose completion queues are not librdmacm's. */
	ibv_destroy_qp(endpoint->qp);
	endpoint->id->qp = NULL;
	endpoint->qp = NULL;
	endpoint->base.qpn = 0;
	/* The device may have left the QP's completions. */
	verbs_completion_queue_drain(endpoint->completions);
	verbs_completion_release(endpoint);
}
