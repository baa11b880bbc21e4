/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts work requests, as lists of up to CHAIN for one ibv_post_send() or ibv_post_recv(). */
#include <endian.h>

#include "transport/verbs/verbs.h"

enum {
	CHAIN = 16
};

static const enum ibv_wr_opcode send_opcodes[] = {
	[WORK_SEND] = IBV_WR_SEND,
	[WORK_READ] = IBV_WR_RDMA_READ,
	[WORK_WRITE] = IBV_WR_RDMA_WRITE,
};

/* Fills the common start of sends and receives. */
static void fill_request(uint16_t generation, uint32_t slot, const struct work *work, struct ibv_send_wr *request,
			 struct ibv_sge *element)
{
	element->addr = (uintptr_t)(work->region->memory + work->offset);
	element->length = work->length;
	element->lkey = work->region->local_key;
	request->wr_id = verbs_wr_id(generation, slot, work->kind, work->tag);
	request->sg_list = element;
	request->num_sge = 1;
}
_Static_assert(offsetof(struct ibv_send_wr, wr_id) == offsetof(struct ibv_recv_wr, wr_id) &&
		       offsetof(struct ibv_send_wr, next) == offsetof(struct ibv_recv_wr, next) &&
		       offsetof(struct ibv_send_wr, sg_list) == offsetof(struct ibv_recv_wr, sg_list) &&
		       offsetof(struct ibv_send_wr, num_sge) == offsetof(struct ibv_recv_wr, num_sge),
	       "a receive does not begin as a send");

static void fill_send(const struct verbs_endpoint *endpoint, const struct work *work, struct ibv_send_wr *request)
{
	if (!work->length)
		request->num_sge = 0;
	request->opcode = work->has_immediate ? IBV_WR_SEND_WITH_IMM : send_opcodes[work->kind];
	request->imm_data = htobe32(work->immediate);
	request->send_flags = work->unsignalled ? 0 : IBV_SEND_SIGNALED;
	if (work->kind != WORK_READ && work->length <= endpoint_option(&endpoint->base, inline_size))
		request->send_flags |= IBV_SEND_INLINE;
	if (endpoint_is_group(&endpoint->base)) {
		request->wr.ud.ah = endpoint->group_handle;
		request->wr.ud.remote_qpn = endpoint->group.qpn;
		request->wr.ud.remote_qkey = endpoint->group.qkey;
	} else {
		request->wr.rdma.remote_addr = work->remote_address;
		request->wr.rdma.rkey = work->remote_key;
	}
}

enum outcome verbs_post(struct endpoint *base, const struct work *work, size_t count)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	uint16_t generation = verbs_of(base->transport)->slots[endpoint->slot].generation;
	bool receives = work->kind == WORK_RECEIVE;
	struct ibv_send_wr requests[CHAIN], *request;
	struct ibv_sge elements[CHAIN];

	while (count) {
		uint32_t signalled = 0;
		size_t filled = 0;
		int error;

		do {
			request = &requests[filled];
			fill_request(generation, endpoint->slot, work, request, &elements[filled]);
			if (!receives) {
				fill_send(endpoint, work, request);
				signalled += !work->unsignalled;
			}
			request->next = request + 1;
			work++;
		} while (--count && ++filled < CHAIN);
		request->next = NULL;
		error = receives ? ibv_post_recv(endpoint->qp, (struct ibv_recv_wr *)requests,
						 (struct ibv_recv_wr **)&request)
				 : ibv_post_send(endpoint->qp, requests, &request);
		if (error) {
			error_errno(endpoint_error(base), base->name, error, "posting a %s",
				    work_kind_text(work[-1].kind));
			if (WITH_EXTRAS && !receives && request->send_flags & IBV_SEND_INLINE)
				error_hint(endpoint_error(base), "does it work without inline data?");
			return OUTCOME_INTERNAL;
		}
		endpoint->outstanding += signalled;
	}
	return OUTCOME_OK;
}
