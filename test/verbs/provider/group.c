/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups: joining, attaching, and copies of datagrams. */
#include "test/verbs/provider/provider.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <string.h>

enum {
	GRH_SIZE = 40,
	GROUP_LID = 0xc001,
	GROUP_SERVICE_LEVEL = 3,
};

static union ibv_gid gid_of(const struct cm_id *id, const struct sockaddr *address)
{
	static const union ibv_gid assigned = { .raw = { 0xff, 0x12, 0x60, 0x1b, 0xff, 0xff, [15] = 0x77 } };
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
	union ibv_gid gid = { .raw = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff } };

	if (address->sa_family == AF_IB) {
		memcpy(gid.raw, &((const struct sockaddr_ib *)(const void *)address)->sib_addr, 16);
		return gid.global.subnet_prefix || gid.global.interface_id ? gid : assigned;
	}
	if (!four->sin_addr.s_addr)
		return assigned;
	/* RoCE v2 maps the address into IPv6; otherwise the mapping is IPoIB's. */
	if (id->device->fabric == PROVIDER_ROCE)
		gid = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	memcpy(&gid.raw[12], &four->sin_addr, 4);
	return gid;
}

static void join_done(struct action *action)
{
	struct cm_id *id = cm_find(action->id);
	struct cm_event *event;

	if (!id || !id->groups)
		return;
	if (action->status) {
		cm_raise(id, RDMA_CM_EVENT_MULTICAST_ERROR, action->status);
		return;
	}
	event = cm_raise(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	event->base.param.ud = (struct rdma_ud_param){
		.private_data = action->parameters.private_data,
		.ah_attr = { .dlid = id->groups->lid,
			     .sl = id->device->fabric == PROVIDER_INFINIBAND ? GROUP_SERVICE_LEVEL : 0,
			     .is_global = 1,
			     .port_num = id->base.port_num,
			     .grh = { .dgid = id->groups->gid,
				      .sgid_index = (uint8_t)id->device->ports[id->base.port_num - 1].gid_index } },
		.qp_num = GROUP_QPN,
		.qkey = UDP_QKEY,
	};
}

int rdma_join_multicast_ex(struct rdma_cm_id *base, struct rdma_cm_join_mc_attr_ex *attributes, void *context)
{
	bool send_only = attributes->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	struct cm_id *id = (struct cm_id *)base;
	struct membership *group;
	struct action *action;

	if (attributes->comp_mask != (RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) ||
	    attributes->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		provider_die("%s: as no kind of member", __func__);
	provider_trace("join %s as %s\n", cm_text(attributes->addr),
		       send_only ? "send-only full member" : "full member");
	if (provider_fails("rdma_join_multicast"))
		return -1;
	group = provider_allocate(sizeof(*group));
	memcpy(&group->address, attributes->addr, sizeof(group->address));
	group->gid = gid_of(id, attributes->addr);
	group->lid = id->device->fabric == PROVIDER_INFINIBAND ? GROUP_LID : 0;
	group->send_only = send_only;
	group->next = id->groups;
	id->groups = group;
	action = provider_action(join_done, id->number);
	action->id = id->number;
	action->status = provider_fails("join") ? -errno : 0;
	action->parameters.private_data = context;
	return 0;
}

static int attach(struct queue_pair *qp, const union ibv_gid *gid)
{
	struct attachment *attachment;

	if (qp->base.qp_type != IBV_QPT_UD)
		return EINVAL;
	attachment = provider_allocate(sizeof(*attachment));
	attachment->gid = *gid;
	attachment->qp = qp;
	qp->attached++;
	LIST_APPEND(provider.attachments, attachment);
	return 0;
}

static int detach(struct queue_pair *qp, const union ibv_gid *gid)
{
	struct attachment *attachment = provider.attachments;

	while (attachment && !(attachment->qp == qp && !memcmp(&attachment->gid, gid, sizeof(*gid))))
		attachment = attachment->next;
	if (!attachment)
		return EINVAL;
	qp->attached--;
	LIST_REMOVE(provider.attachments, attachment);
	free(attachment);
	return 0;
}

/* The library attaches a queue pair that it has created. */
void group_join_taken(struct cm_id *id, struct rdma_cm_event *event)
{
	struct membership *group = id->groups;

	if (!group || !id->base.qp || group->send_only)
		return;
	group->attached = !provider_fails("ibv_attach_mcast") && !attach((struct queue_pair *)id->base.qp, &group->gid);
	if (group->attached)
		return;
	event->event = RDMA_CM_EVENT_MULTICAST_ERROR;
	event->status = -1;
}

static void leave(struct cm_id *id, struct membership *group)
{
	if (group->attached && id->base.qp)
		detach((struct queue_pair *)id->base.qp, &group->gid);
	LIST_REMOVE(id->groups, group);
	free(group);
}

int rdma_leave_multicast(struct rdma_cm_id *base, struct sockaddr *address)
{
	struct cm_id *id = (struct cm_id *)base;
	struct membership *group = id->groups;

	provider_trace("leave %s\n", cm_text(address));
	if (id->taken != id->acknowledged)
		provider_die("%s: an event is not acknowledged: would wait forever", __func__);
	while (group && memcmp(&group->address, address, sizeof(struct sockaddr_in)) != 0)
		group = group->next;
	if (!group) {
		errno = EADDRNOTAVAIL;
		return -1;
	}
	leave(id, group);
	return provider_fails(__func__) ? -1 : 0;
}

void group_leave_all(struct cm_id *id)
{
	while (id->groups)
		leave(id, id->groups);
}

/* The route header, or on RoCE v2 the IPv4 header at its end. */
static void write_header(uint8_t packet[GRH_SIZE], const struct queue_pair *qp, const union ibv_gid *group)
{
	const struct port *port = &qp->device->ports[qp->attributes.port_num - 1];

	memset(packet, 0, GRH_SIZE);
	packet[0] = 0x60;
	memcpy(packet + 8, &port->gids[port->gid_index].gid, 16);
	memcpy(packet + 24, group, 16);
	if (qp->device->fabric != PROVIDER_ROCE)
		return;
	memset(packet, 0xa5, 20);
	packet[20] = 0x45;
	memcpy(packet + 32, &port->address.sin_addr, 4);
	memcpy(packet + 36, &group->raw[12], 4);
}

/* A copy for each attached queue pair with the key and a receive; other copies are lost silently. */
void group_send(struct queue_pair *qp, const struct send_work *work, const uint8_t *data)
{
	const struct ibv_send_wr *request = &work->request;
	const struct address_handle *handle = (const struct address_handle *)request->wr.ud.ah;
	struct ibv_wc completion = {
		.opcode = IBV_WC_RECV,
		.byte_len = GRH_SIZE + work->length,
		.imm_data = request->imm_data,
		.src_qp = qp->base.qp_num,
		.wc_flags = IBV_WC_GRH | (request->opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_WITH_IMM : 0u),
	};
	uint8_t *packet = provider_allocate(GRH_SIZE + work->length);

	if (handle->base.pd != qp->base.pd)
		provider_die("an address handle of another protection domain");
	if (work->length)
		memcpy(packet + GRH_SIZE, data, work->length);
	write_header(packet, qp, &handle->attributes.grh.dgid);
	for (struct attachment *to = provider.attachments; to; to = to->next)
		if (!memcmp(&to->gid, &handle->attributes.grh.dgid, 16) && to->qp->receives &&
		    request->wr.ud.remote_qpn == GROUP_QPN && to->qp->attributes.qkey == request->wr.ud.remote_qkey &&
		    to->qp->base.state == IBV_QPS_RTS && !(to->qp->no_loopback && to->qp == qp))
			qp_receive(to->qp, packet, GRH_SIZE + work->length, &completion,
				   request->send_flags & IBV_SEND_SOLICITED);
	free(packet);
}
