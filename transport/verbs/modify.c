/* SPDX-License-Identifier: BSD-2-Clause */
/* Modifies queue pairs. */
#include <errno.h>

#include "transport/verbs/verbs.h"

enum {
	/*
	 * min_rnr_timer of 0.01 ms (ibv_modify_qp(3)). librdmacm leaves 0, the longest, 655 ms: 64 sends to a peer with
	 * 4 receives then take ten seconds.
	 */
	RNR_TIMER_SHORTEST = 1,
};

int verbs_qp_modify(struct verbs_endpoint *endpoint, enum ibv_qp_state state, int mask)
{
	/* ibv_modify_qp() reads the attributes in the mask only. */
	struct ibv_qp_attr attributes = { .qp_state = state };
	int64_t service_level = endpoint_option(&endpoint->base, service_level);
	int64_t ack_timeout = endpoint->base.options.path->ack_timeout;

	if (!mask && rdma_init_qp_attr(endpoint->id, &attributes, &mask))
		return errno;
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
	return endpoint->qp ? ibv_modify_qp(endpoint->qp, &attributes, mask) : 0;
}
