/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: created by librdmacm, or with options.own_qp by libibverbs, and then modified here. */
#include <errno.h>

#include "transport/verbs/verbs.h"

enum {
	/*
	 * min_rnr_timer of 0.01 ms (ibv_modify_qp(3)). librdmacm leaves 0, the longest one, 655 ms: 64 sends to a peer
	 * with 4 receives then take ten seconds.
	 */
	RNR_TIMER_SHORTEST = 1,
	DEPTH_LEAST = 64, /* create_qp_within_limits() requests no fewer receives */
};

/* Returns 0 or an errno value. */
static int create_qp(struct verbs_endpoint *endpoint, const struct ibv_qp_init_attr_ex *wanted)
{
	struct ibv_qp_init_attr_ex attributes = *wanted; /* both calls modify it */

	errno = 0;
	if (endpoint->base.options.own_qp)
		endpoint->qp = ibv_create_qp_ex(endpoint->id->verbs, &attributes);
	else if (!rdma_create_qp_ex(endpoint->id, &attributes))
		endpoint->qp = endpoint->id->qp;
	if (endpoint->qp)
		return 0;
	return errno ? errno : EINVAL; /* bnxt_re sets no errno for an exceeded limit */
}

static bool is_limit(int error)
{
	return error == EINVAL || error == ENOMEM;
}

/*
 * A driver may support fewer work requests than max_qp_wr. A smaller receive depth is sufficient for every command, so
 * it is halved until the creation succeeds.
 */
static int create_qp_within_limits(struct verbs_endpoint *endpoint, struct ibv_qp_init_attr_ex *attributes)
{
	int error = create_qp(endpoint, attributes);

	while (is_limit(error) && attributes->cap.max_recv_wr >= 2 * DEPTH_LEAST) {
		attributes->cap.max_recv_wr /= 2;
		error = create_qp(endpoint, attributes);
	}
	endpoint->base.options.receive_depth = attributes->cap.max_recv_wr;
	return error;
}

/* ibv_modify_qp() reads the attributes in the mask only. */
static enum outcome qp_modify(struct verbs_endpoint *endpoint, enum ibv_qp_state state)
{
	struct ibv_qp_attr attributes = { .qp_state = state };
	int64_t service_level = endpoint_option(&endpoint->base, service_level);
	int64_t ack_timeout = endpoint->base.options.path->ack_timeout;
	int mask;
	int error = rdma_init_qp_attr(endpoint->id, &attributes, &mask) ? errno : 0;

	/* The peer may request more RDMA READs than we need: verbs_accept() has limited them. */
	if (endpoint->request.responder_resources)
		attributes.max_dest_rd_atomic = endpoint->request.responder_resources;
	if (endpoint->request.initiator_depth)
		attributes.max_rd_atomic = endpoint->request.initiator_depth;
	if (service_level != PATH_UNSET)
		attributes.ah_attr.sl = (uint8_t)service_level;
	if (ack_timeout != PATH_UNSET)
		attributes.timeout = (uint8_t)ack_timeout;
	attributes.min_rnr_timer = RNR_TIMER_SHORTEST;
	if (!error)
		error = ibv_modify_qp(endpoint->qp, &attributes, mask);
	if (!error)
		return OUTCOME_OK;
	error_errno(endpoint_error(&endpoint->base), endpoint->base.name, error, "moving the queue pair to state %d",
		    (int)state);
	return OUTCOME_INTERNAL;
}

/* Whether the peer has withdrawn its request: rdma_init_qp_attr() then fails. */
static bool is_withdrawn(const struct verbs_endpoint *endpoint)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_INIT };
	int mask;

	return endpoint->base.state == ENDPOINT_REQUESTED && rdma_init_qp_attr(endpoint->id, &attributes, &mask);
}

enum outcome verbs_create_qp(struct endpoint *base)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	const struct endpoint_options *options = &base->options;
	struct error *reason = endpoint_error(base);
	uint32_t inline_size = (uint32_t)endpoint_option_or(base, inline_size, 0);
	struct ibv_qp_init_attr_ex attributes = {
		.cap = { .max_send_wr = options->send_depth,
			 .max_recv_wr = options->receive_depth,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = inline_size },
		.qp_type = base->kind == ENDPOINT_GROUP ? IBV_QPT_UD : IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = verbs_domain_of(endpoint)->pd,
	};
	enum outcome outcome;
	int error;

	if (base->kind == ENDPOINT_GROUP && !base->domain->multicast) {
		error_set(reason, base->domain->device, "the device has no multicast");
		return OUTCOME_NO_DEVICE;
	}
	if (options->no_loopback) {
		attributes.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		attributes.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	}
	outcome = verbs_completion_reserve(endpoint, options->send_depth + options->receive_depth);
	if (outcome)
		return outcome;
	attributes.send_cq = endpoint->completions->cq;
	attributes.recv_cq = endpoint->completions->cq;
	error = create_qp_within_limits(endpoint, &attributes);
	if (error) {
		verbs_completion_release(endpoint);
		if (is_withdrawn(endpoint))
			return endpoint_no_connection(base, "accepting", error, "the peer withdrew the request");
		if (options->no_loopback && (error == EOPNOTSUPP || error == EINVAL || error == ENOSYS)) {
			error_failure(reason, &(struct failure){ .object = base->domain->device, .code = error },
				      "the device cannot keep multicast from looping back: %s", strerror(error));
			return OUTCOME_NO_DEVICE;
		}
		/* No attribute of a device says how many it takes. */
		if (error == EINVAL && inline_size) {
			error_errno(reason, base->domain->device, error, "creating a queue pair with %u bytes inline",
				    inline_size);
			error_hint(reason, "the device may take fewer bytes inline");
			return OUTCOME_INTERNAL;
		}
		return verbs_report_resources(reason, base->domain->device, "creating a queue pair", error);
	}
	base->qpn = endpoint->qp->qp_num;
	return options->own_qp ? qp_modify(endpoint, IBV_QPS_INIT) : OUTCOME_OK;
}

enum outcome verbs_qp_ready(struct verbs_endpoint *endpoint)
{
	/* INIT again: its access flags depend on the READs of the connection, which the kernel now knows. */
	enum outcome outcome = qp_modify(endpoint, IBV_QPS_INIT);

	if (!outcome)
		outcome = qp_modify(endpoint, IBV_QPS_RTR);
	if (!outcome)
		outcome = qp_modify(endpoint, IBV_QPS_RTS);
	return outcome;
}

void verbs_qp_set_rnr_timer(struct verbs_endpoint *endpoint)
{
	struct ibv_qp_attr attributes = { .min_rnr_timer = RNR_TIMER_SHORTEST };

	/* iWARP has no RNR timer: TCP flow control stops the sender. */
	if (endpoint->base.domain->fabric == FABRIC_IWARP)
		return;
	if (ibv_modify_qp(endpoint->qp, &attributes, IBV_QP_MIN_RNR_TIMER))
		log_debug(endpoint->base.transport->log, "%s: the device keeps its receiver-not-ready timer",
			  endpoint->base.name);
}

void verbs_qp_destroy(struct verbs_endpoint *endpoint)
{
	if (!endpoint->qp)
		return;
	/* As rdma_destroy_qp() does with a QP whose completion queues are not librdmacm's. */
	ibv_destroy_qp(endpoint->qp);
	endpoint->id->qp = NULL;
	endpoint->qp = NULL;
	endpoint->base.qpn = 0;
	/* The device may have left completions of the QP. */
	verbs_completion_queue_drain(endpoint->completions);
	verbs_completion_release(endpoint);
}
