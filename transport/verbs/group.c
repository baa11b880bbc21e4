/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast: joins and leaves a group. librdmacm attaches the QP, except a send-only member's. */
#include <errno.h>
#include <string.h>

#include "transport/verbs/verbs.h"

enum outcome verbs_join(struct endpoint *base)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	struct rdma_cm_join_mc_attr_ex attributes = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags =
			base->options.send_only ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = verbs_socket_address(&base->peer, &base->options, &endpoint->group_socket_address),
	};
	int failed = rdma_join_multicast_ex(endpoint->id, &attributes, NULL);
	int error = errno;

	endpoint->is_member = !failed;
	if (!failed)
		return OUTCOME_OK;
	verbs_error_call(base, "joining the group");
	if (base->options.send_only && base->domain->fabric == FABRIC_INFINIBAND &&
	    (error == EOPNOTSUPP || error == EINVAL))
		error_hint(endpoint_error(base),
			   "joining as a send-only full member needs a subnet manager that supports it");
	return OUTCOME_NO_CONNECTION;
}

void verbs_joined(struct verbs_endpoint *endpoint, const struct rdma_ud_param *parameters)
{
	struct ibv_ah_attr attributes = parameters->ah_attr;
	int64_t service_level = endpoint_option(&endpoint->base, service_level);

	if (service_level != PATH_UNSET)
		attributes.sl = (uint8_t)service_level;
	endpoint->group = (struct group_address){
		.lid = parameters->ah_attr.dlid,
		.service_level = attributes.sl,
		.qpn = parameters->qp_num,
		.qkey = parameters->qkey,
	};
	memcpy(endpoint->group.gid, parameters->ah_attr.grh.dgid.raw, sizeof(endpoint->group.gid));
	endpoint->group_gid_index = attributes.is_global ? attributes.grh.sgid_index : PATH_UNSET;
	if (verbs_gid_check(endpoint)) {
		endpoint_fail(&endpoint->base, OUTCOME_NO_CONNECTION);
		return;
	}
	endpoint->group_handle = ibv_create_ah(verbs_domain_of(endpoint)->pd, &attributes);
	if (!endpoint->group_handle) {
		endpoint_fail(&endpoint->base,
			      verbs_error_resources(endpoint_error(&endpoint->base), endpoint->base.name,
						    "creating the group's address handle", errno));
		return;
	}
	endpoint_deliver(&endpoint->base, &(struct endpoint_event){ .kind = EVENT_JOINED, .group = &endpoint->group });
}

void verbs_group_abandon(struct verbs_endpoint *endpoint)
{
	if (endpoint->is_member)
		rdma_leave_multicast(endpoint->id, (struct sockaddr *)&endpoint->group_socket_address);
	endpoint->is_member = false;
}
