/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast membership. A full member joins through the socket API, so that the kernel sends IGMP or MLD, and receives
 * the group's datagrams. A send-only full member only learns the group's address.
 */
#include <errno.h>

#include "transport/soft/base/queue.h"
#include "transport/soft/cm/cm.h"
#include "transport/soft/net/socket.h"
#include "transport/soft/qp/qp.h"
#include "transport/soft/soft.h"

enum {
	GROUP_QPN = 0xffffff,
	GROUP_QKEY_UDP = 0x01234567 /* the kernel's RDMA_UDP_QKEY */
};

static void group_joined(void *context)
{
	struct soft_endpoint *endpoint = context;
	struct soft_transport *transport = soft_of(endpoint->base.transport);

	soft_callback_begin(transport);
	endpoint_report(&endpoint->base, &(struct endpoint_event){ .kind = EVENT_JOINED, .group = &endpoint->group });
	soft_callback_end(transport);
}

enum outcome soft_join(struct endpoint *base)
{
	struct soft_endpoint *endpoint = soft_endpoint_of(base);
	const struct address *group = &endpoint->path.peer;
	enum outcome outcome;

	if (!address_is_multicast(group)) {
		endpoint_no_connection(base, "joining the group", 0,
				       "only a subnet manager assigns groups, and UDP has none");
		return OUTCOME_USAGE;
	}
	if (!base->options.send_only) {
		outcome = soft_group_socket_join(base, &endpoint->path, &endpoint->group_socket);
		if (outcome)
			return outcome;
	}
	if (!soft_socket_multicast(&endpoint->path, !base->options.no_loopback)) {
		error_errno(endpoint_error(base), base->name, errno, "choosing the interface of the group");
		return OUTCOME_NO_CONNECTION;
	}
	endpoint->group = (struct group_address){ .qpn = GROUP_QPN, .qkey = GROUP_QKEY_UDP };
	soft_cm_gid(group, endpoint->group.gid);
	soft_qp_join(endpoint->qp, GROUP_QKEY_UDP);
	loop_timer_start(base->transport->loop, &endpoint->deferred, 0, group_joined, endpoint);
	return OUTCOME_OK;
}

void soft_leave_group(struct endpoint *base)
{
	struct soft_endpoint *endpoint = soft_endpoint_of(base);

	loop_timer_stop(&endpoint->deferred);
	if (endpoint->group_socket)
		soft_group_socket_leave(endpoint->group_socket);
	endpoint->group_socket = NULL;
}
