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

static uint64_t wr_id_of(const struct verbs_endpoint *endpoint, const struct work *work)
{
	uint16_t generation = verbs_of(endpoint->base.transport)->slots[endpoint->slot].generation;

	return verbs_wr_id(generation, endpoint->slot, work->kind, work->tag);
}

static struct ibv_sge sge_of(const struct work *work)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)(work->region->memory + work->offset),
		.length = work->length,
		.lkey = work->region->local_key,
	};
}

static int verbs_post_receives(struct verbs_endpoint *endpoint, const struct work *work, size_t count)
{
	struct ibv_recv_wr requests[CHAIN], *bad;
	struct ibv_sge elements[CHAIN];

	for (size_t index = 0; index < count; index++) {
		elements[index] = sge_of(&work[index]);
		requests[index] = (struct ibv_recv_wr){
			.wr_id = wr_id_of(endpoint, &work[index]),
			.next = index + 1 < count ? &requests[index + 1] : NULL,
			.sg_list = &elements[index],
			.num_sge = 1,
		};
	}
	return ibv_post_recv(endpoint->qp, requests, &bad);
}

static int verbs_post_sends(struct verbs_endpoint *endpoint, const struct work *work, size_t count)
{
	struct ibv_send_wr requests[CHAIN], *bad;
	struct ibv_sge elements[CHAIN];

	for (size_t index = 0; index < count; index++) {
		struct ibv_send_wr *request = &requests[index];

		elements[index] = sge_of(&work[index]);
		*request = (struct ibv_send_wr){
			.wr_id = wr_id_of(endpoint, &work[index]),
			.next = index + 1 < count ? &requests[index + 1] : NULL,
			.sg_list = &elements[index],
			.num_sge = work[index].length ? 1 : 0,
			.opcode = send_opcodes[work[index].kind],
			.send_flags = work[index].unsignalled ? 0 : IBV_SEND_SIGNALED,
		};
		if (work[index].kind != WORK_READ &&
		    work[index].length <= endpoint_option(&endpoint->base, inline_size))
			request->send_flags |= IBV_SEND_INLINE;
		if (work[index].has_immediate) {
			request->opcode = IBV_WR_SEND_WITH_IMM;
			request->imm_data = htobe32(work[index].immediate);
		}
		if (endpoint->base.kind == ENDPOINT_GROUP) {
			request->wr.ud.ah = endpoint->group_handle;
			request->wr.ud.remote_qpn = endpoint->group.qpn;
			request->wr.ud.remote_qkey = endpoint->group.qkey;
		} else {
			request->wr.rdma.remote_addr = work[index].remote_address;
			request->wr.rdma.rkey = work[index].remote_key;
		}
	}
	return ibv_post_send(endpoint->qp, requests, &bad);
}

enum outcome verbs_post(struct endpoint *base, const struct work *work, size_t count)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;

	while (count) {
		size_t chain = count < CHAIN ? count : CHAIN;
		int error = work->kind == WORK_RECEIVE ? verbs_post_receives(endpoint, work, chain)
						       : verbs_post_sends(endpoint, work, chain);

		if (error) {
			error_errno(endpoint_error(base), base->name, error, "posting a %s",
				    work_kind_text(work->kind));
			return OUTCOME_INTERNAL;
		}
		for (size_t index = 0; index < chain; index++)
			endpoint->outstanding += work->kind != WORK_RECEIVE && !work[index].unsignalled;
		work += chain;
		count -= chain;
	}
	return OUTCOME_OK;
}
