/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: states, posting of work, and its execution by requester and responder. */
#include "test/verbs/provider/provider.h"

#include <errno.h>
#include <string.h>

#undef ibv_create_qp

enum {
	RNR_FOR_EVER = 7
};

static struct queue_pair *qp_of(struct ibv_qp *qp)
{
	return (struct queue_pair *)qp;
}

static bool is_iwarp(const struct queue_pair *qp)
{
	return qp->device->fabric == PROVIDER_IWARP;
}

struct queue_pair *qp_find(uint32_t number)
{
	struct queue_pair *qp = provider.qps;

	while (qp && qp->base.qp_num != number)
		qp = qp->next;
	return qp;
}

/* ---- from creation to destruction ---- */

struct ibv_qp *qp_create_extended(struct ibv_context *context, struct ibv_qp_init_attr_ex *attributes)
{
	struct device *device = device_of(context);
	const struct ibv_qp_cap *wanted = &attributes->cap;
	struct completion_queue *cq = (struct completion_queue *)attributes->send_cq;
	bool no_loopback = (attributes->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attributes->create_flags;
	struct queue_pair *qp;

	if (provider_fails("ibv_create_qp"))
		return NULL;
	if (device->refuses && device->refuses(wanted) >= 0) {
		errno = device->refuses(wanted);
		return NULL;
	}
	if (wanted->max_inline_data > device->inline_max) {
		errno = device->inline_is_refused_silently ? errno : EINVAL;
		return NULL;
	}
	errno = EINVAL;
	if (device->removed || wanted->max_send_wr > (uint32_t)device->limits.max_qp_wr ||
	    wanted->max_recv_wr > (uint32_t)device->limits.max_qp_wr)
		return NULL;
	if (no_loopback && device->refuses_no_loopback) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attributes->pd->context != context || attributes->send_cq->context != context ||
	    attributes->recv_cq != attributes->send_cq)
		provider_die("ibv_create_qp: domains or completion queues that do not fit");
	qp = provider_allocate(sizeof(*qp));
	qp->device = device;
	qp->base = (struct ibv_qp){
		.context = context,
		.pd = attributes->pd,
		.send_cq = attributes->send_cq,
		.recv_cq = attributes->recv_cq,
		.qp_num = ++provider.last_number,
		.qp_type = attributes->qp_type,
	};
	qp->capabilities = *wanted;
	qp->signals_all = attributes->sq_sig_all;
	qp->no_loopback = no_loopback;
	cq->users++;
	LIST_APPEND(provider.qps, qp);
	return &qp->base;
}

/* By the program itself, not by the connection manager. */
struct ibv_qp *qp_create_own(struct ibv_context *context, struct ibv_qp_init_attr_ex *attributes)
{
	provider_trace("create_qp %s of our own\n", attributes->qp_type == IBV_QPT_UD ? "UD" : "RC");
	return qp_create_extended(context, attributes);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *attributes)
{
	struct ibv_qp_init_attr_ex extended;

	memcpy(&extended, attributes, sizeof(*attributes));
	extended.comp_mask = IBV_QP_INIT_ATTR_PD;
	extended.pd = domain;
	return qp_create_own(domain->context, &extended);
}

static void free_send(struct queue_pair *qp)
{
	struct send_work *work = qp->sends;

	qp->sends = work->next;
	free(work->inlined);
	free(work);
}

static void free_receive(struct queue_pair *qp)
{
	struct receive_work *work = qp->receives;

	qp->receives = work->next;
	free(work);
}

int ibv_destroy_qp(struct ibv_qp *base)
{
	struct queue_pair *qp = qp_of(base);

	if (provider.destroying)
		provider.destroying(qp);
	if (qp->attached)
		provider_die("%s: it is still attached to a group", __func__);
	if (qp->asynchronous)
		provider_die("%s: an event is not acknowledged: would wait forever", __func__);
	((struct completion_queue *)base->send_cq)->users--;
	cq_forget(qp);
	device_forget(qp->device, qp);
	provider_forget(qp);
	while (qp->sends)
		free_send(qp);
	while (qp->receives)
		free_receive(qp);
	LIST_REMOVE(provider.qps, qp);
	free(qp);
	return 0;
}

/* ---- states ---- */

static int needed(const struct queue_pair *qp, enum ibv_qp_state state)
{
	bool datagrams = qp->base.qp_type == IBV_QPT_UD;

	if (is_iwarp(qp))
		return 0;
	switch (state) {
	case IBV_QPS_INIT:
		return IBV_QP_PKEY_INDEX | IBV_QP_PORT | (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	case IBV_QPS_RTR:
		return datagrams ? 0
				 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPS_RTS:
		return datagrams ? IBV_QP_SQ_PSN
				 : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC;
	default:
		return 0;
	}
}

static bool may_follow(enum ibv_qp_state from, enum ibv_qp_state to)
{
	return to == IBV_QPS_ERR || to == IBV_QPS_RESET || to == from + 1 ||
	       (to == from && (to == IBV_QPS_INIT || to == IBV_QPS_RTS));
}

int qp_modify(struct queue_pair *qp, const struct ibv_qp_attr *new, int mask)
{
	struct ibv_qp_attr *now = &qp->attributes;

	if (mask & IBV_QP_STATE) {
		if (!may_follow(qp->base.state, new->qp_state) ||
		    (mask & needed(qp, new->qp_state)) != needed(qp, new->qp_state))
			return EINVAL;
	} else if (mask & IBV_QP_MIN_RNR_TIMER && (is_iwarp(qp) || qp->base.state < IBV_QPS_RTR)) {
		return EINVAL;
	}
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC && new->max_dest_rd_atomic > qp->device->limits.max_qp_rd_atom) ||
	    (mask & IBV_QP_MAX_QP_RD_ATOMIC && new->max_rd_atomic > qp->device->limits.max_qp_init_rd_atom))
		return EINVAL;
#define TAKE(bit, field)                                                                                               \
	if (mask & (bit))                                                                                              \
	now->field = new->field
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_QKEY, qkey);
	TAKE(IBV_QP_AV, ah_attr);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
#undef TAKE
	if (mask & IBV_QP_STATE) {
		qp->base.state = now->qp_state = new->qp_state;
		if (provider.moved)
			provider.moved(qp);
		qp_schedule(qp);
	}
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask)
{
	if (mask & IBV_QP_STATE)
		provider_trace("modify_qp to %d\n", (int)attributes->qp_state);
	return provider_fails(__func__) ? errno : qp_modify(qp_of(qp), attributes, mask);
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask, struct ibv_qp_init_attr *initial)
{
	if (provider_fails(__func__))
		return errno;
	*attributes = qp_of(qp)->attributes;
	memset(initial, 0, sizeof(*initial));
	return 0;
}

/* ---- posting ---- */

static uint32_t length_of(const struct ibv_sge *sges, int count)
{
	uint32_t length = 0;

	for (int index = 0; index < count; index++)
		length += sges[index].length;
	return length;
}

static int check_send(const struct queue_pair *qp, const struct ibv_send_wr *request)
{
	bool immediate = request->opcode == IBV_WR_SEND_WITH_IMM || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (qp->device->removed)
		return EIO;
	if (qp->base.state != IBV_QPS_RTS && qp->base.state != IBV_QPS_ERR)
		return EINVAL;
	if (qp->sends_used >= qp->capabilities.max_send_wr)
		return ENOMEM;
	if (request->num_sge > (int)qp->capabilities.max_send_sge || (immediate && is_iwarp(qp)))
		return EINVAL;
	if (qp->base.qp_type == IBV_QPT_UD && request->opcode != IBV_WR_SEND && request->opcode != IBV_WR_SEND_WITH_IMM)
		return EINVAL;
	if (request->send_flags & IBV_SEND_INLINE &&
	    (request->opcode == IBV_WR_RDMA_READ ||
	     length_of(request->sg_list, request->num_sge) > qp->capabilities.max_inline_data))
		return EINVAL;
	return 0;
}

static void copy_inline(struct send_work *work)
{
	uint8_t *to = work->inlined = provider_allocate(work->length + 1);

	for (int index = 0; index < work->request.num_sge; index++) {
		memcpy(to, (const void *)(uintptr_t)work->sges[index].addr, work->sges[index].length);
		to += work->sges[index].length;
	}
}

int qp_post_send(struct ibv_qp *base, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
	struct queue_pair *qp = qp_of(base);

	for (; request; request = request->next) {
		struct send_work *work;
		int error = provider_fails("ibv_post_send") ? errno : check_send(qp, request);

		*bad = request;
		if (error)
			return error;
		work = provider_allocate(sizeof(*work));
		work->request = *request;
		memcpy(work->sges, request->sg_list, (size_t)request->num_sge * sizeof(*work->sges));
		work->length = length_of(work->sges, request->num_sge);
		if (request->send_flags & IBV_SEND_INLINE)
			copy_inline(work);
		provider.inlined += work->inlined != NULL;
		if (request->send_flags & IBV_SEND_SIGNALED)
			provider.signalled++;
		else
			provider.unsignalled++;
		qp->sends_used++;
		LIST_APPEND(qp->sends, work);
	}
	qp_schedule(qp);
	return 0;
}

static void schedule_peers(const struct queue_pair *qp)
{
	for (struct queue_pair *other = provider.qps; other; other = other->next)
		if (other->attributes.dest_qp_num == qp->base.qp_num && other->sends)
			qp_schedule(other);
}

int qp_post_receive(struct ibv_qp *base, struct ibv_recv_wr *request, struct ibv_recv_wr **bad)
{
	struct queue_pair *qp = qp_of(base);

	for (; request; request = request->next) {
		struct receive_work *work;

		*bad = request;
		if (provider_fails("ibv_post_recv"))
			return errno;
		if (qp->device->removed)
			return EIO;
		if (base->state == IBV_QPS_RESET || request->num_sge > (int)qp->capabilities.max_recv_sge)
			return EINVAL;
		if (qp->receives_used >= qp->capabilities.max_recv_wr)
			return ENOMEM;
		work = provider_allocate(sizeof(*work));
		work->request = *request;
		memcpy(work->sges, request->sg_list, (size_t)request->num_sge * sizeof(*work->sges));
		qp->receives_used++;
		*(qp->receives ? &qp->last_receive->next : &qp->receives) = work;
		qp->last_receive = work;
	}
	if (base->state == IBV_QPS_ERR)
		qp_schedule(qp);
	schedule_peers(qp);
	return 0;
}

/* ---- completions ---- */

/* In a failed one only these four fields are valid. */
static struct ibv_wc completion_of(const struct queue_pair *qp, uint64_t number, enum ibv_wc_status status)
{
	struct ibv_wc completion;

	memset(&completion, 0xa5, sizeof(completion));
	completion.wr_id = number;
	completion.status = status;
	completion.vendor_err = 0;
	completion.qp_num = qp->base.qp_num;
	if (status == IBV_WC_SUCCESS)
		completion.wc_flags = 0;
	return completion;
}

static void complete_send(struct queue_pair *qp, enum ibv_wc_status status)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	};
	const struct ibv_send_wr *request = &qp->sends->request;
	struct completion_entry entry = { .base = completion_of(qp, request->wr_id, status), .sends = ++qp->silent };

	if (status != IBV_WC_SUCCESS || qp->signals_all || (request->send_flags & IBV_SEND_SIGNALED)) {
		qp->silent = 0;
		if (status == IBV_WC_SUCCESS)
			entry.base.opcode = opcodes[request->opcode];
		cq_push((struct completion_queue *)qp->base.send_cq, &entry, status != IBV_WC_SUCCESS,
			provider.silent_flush && status == IBV_WC_WR_FLUSH_ERR);
	}
	free_send(qp);
}

static void complete_receive(struct queue_pair *qp, const struct ibv_wc *completion, bool solicited)
{
	struct completion_entry entry = { .base = *completion, .receives = 1 };

	cq_push((struct completion_queue *)qp->base.recv_cq, &entry, solicited || completion->status != IBV_WC_SUCCESS,
		provider.silent_flush && completion->status == IBV_WC_WR_FLUSH_ERR);
	free_receive(qp);
}

static void flush(struct queue_pair *qp)
{
	while (qp->sends)
		complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	while (qp->receives) {
		struct ibv_wc completion = completion_of(qp, qp->receives->request.wr_id, IBV_WC_WR_FLUSH_ERR);

		complete_receive(qp, &completion, false);
	}
}

/* ---- moving bytes ---- */

static void bring_down(struct queue_pair *qp)
{
	qp->base.state = qp->attributes.qp_state = IBV_QPS_ERR;
	qp_schedule(qp);
	if (is_iwarp(qp))
		cm_lost(qp);
}

static bool copy(const struct queue_pair *qp, const struct ibv_sge *sges, int count, uint8_t *data, uint32_t length,
		 unsigned access)
{
	for (int index = 0; index < count && length; index++) {
		uint32_t size = sges[index].length < length ? sges[index].length : length;
		void *memory = (void *)(uintptr_t)sges[index].addr;

		if (!region_find(qp->base.pd, false, sges[index].lkey, sges[index].addr, sges[index].length, access))
			return false;
		if (access)
			memcpy(memory, data, size);
		else
			memcpy(data, memory, size);
		data += size;
		length -= size;
	}
	return true;
}

enum ibv_wc_status qp_receive(struct queue_pair *qp, uint8_t *data, uint32_t length, struct ibv_wc *completion,
			      bool solicited)
{
	const struct receive_work *work = qp->receives;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct ibv_wc result;

	if (length > length_of(work->sges, work->request.num_sge))
		status = IBV_WC_LOC_LEN_ERR;
	else if (!copy(qp, work->sges, work->request.num_sge, data, length, IBV_ACCESS_LOCAL_WRITE))
		status = IBV_WC_LOC_PROT_ERR;
	result = completion_of(qp, work->request.wr_id, status);
	if (status == IBV_WC_SUCCESS) {
		*completion = (struct ibv_wc){ .wr_id = result.wr_id,
					       .opcode = completion->opcode,
					       .byte_len = completion->byte_len,
					       .imm_data = completion->imm_data,
					       .qp_num = result.qp_num,
					       .src_qp = completion->src_qp,
					       .wc_flags = completion->wc_flags };
		result = *completion;
	}
	complete_receive(qp, &result, solicited);
	if (status != IBV_WC_SUCCESS)
		bring_down(qp);
	return status;
}

/* The responder refuses: both are in error. */
static enum ibv_wc_status refuse(struct queue_pair *peer, enum ibv_event_type type, enum ibv_wc_status status)
{
	if (!is_iwarp(peer) && !provider.refuses_in_silence)
		device_event(peer->device, type, peer);
	bring_down(peer);
	return status;
}

static enum ibv_wc_status access_memory(struct queue_pair *qp, struct queue_pair *peer, const struct send_work *work,
					uint8_t *data)
{
	const struct ibv_send_wr *request = &work->request;
	bool reads = request->opcode == IBV_WR_RDMA_READ;
	unsigned right = reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	unsigned sink = IBV_ACCESS_LOCAL_WRITE | (is_iwarp(qp) ? IBV_ACCESS_REMOTE_WRITE : 0u);
	void *memory = (void *)(uintptr_t)request->wr.rdma.remote_addr;

	if (reads && !is_iwarp(qp)) {
		if (!qp->attributes.max_rd_atomic)
			return IBV_WC_LOC_QP_OP_ERR;
		if (!peer->attributes.max_dest_rd_atomic)
			return refuse(peer, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	}
	if (work->length && (!(peer->attributes.qp_access_flags & right) ||
			     !region_find(peer->base.pd, true, request->wr.rdma.rkey, request->wr.rdma.remote_addr,
					  work->length, right)))
		return refuse(peer, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
	if (!reads) {
		if (work->length)
			memcpy(memory, data, work->length);
		return IBV_WC_SUCCESS;
	}
	memcpy(data, memory, work->length);
	return copy(qp, work->sges, request->num_sge, data, work->length, sink) ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

static enum ibv_wc_status deliver(struct queue_pair *peer, const struct send_work *work, uint8_t *data)
{
	const struct ibv_send_wr *request = &work->request;
	bool writes = request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_wc completion = {
		.opcode = writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.byte_len = work->length,
		.imm_data = request->imm_data,
		.wc_flags = writes || request->opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_WITH_IMM : 0u,
	};
	enum ibv_wc_status status = qp_receive(peer, data, writes ? 0 : work->length, &completion,
					       request->send_flags & IBV_SEND_SOLICITED);

	return status == IBV_WC_SUCCESS	      ? status
	       : status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR
					      : IBV_WC_REM_OP_ERR;
}

static bool takes_a_receive(const struct ibv_send_wr *request)
{
	return request->opcode != IBV_WR_RDMA_READ && request->opcode != IBV_WR_RDMA_WRITE;
}

enum answer {
	ANSWERED,
	WAITS, /* for the peer */
	REPEATS,
};

static enum answer answer(struct queue_pair *qp, struct queue_pair *peer, struct send_work *work, uint8_t *data,
			  enum ibv_wc_status *status)
{
	const struct ibv_send_wr *request = &work->request;

	if (!peer || peer->base.state < IBV_QPS_RTR || peer->base.state == IBV_QPS_ERR ||
	    peer->attributes.dest_qp_num != qp->base.qp_num) {
		*status = IBV_WC_RETRY_EXC_ERR;
		return provider.retries_end ? ANSWERED : WAITS;
	}
	if (takes_a_receive(request) && !peer->receives) {
		if (is_iwarp(qp)) {
			bring_down(peer);
			bring_down(qp);
			return WAITS;
		}
		*status = IBV_WC_RNR_RETRY_EXC_ERR;
		if (qp->attributes.rnr_retry == RNR_FOR_EVER)
			return WAITS;
		return work->not_ready++ < qp->attributes.rnr_retry ? REPEATS : ANSWERED;
	}
	*status = IBV_WC_SUCCESS;
	if (request->opcode != IBV_WR_SEND && request->opcode != IBV_WR_SEND_WITH_IMM)
		*status = access_memory(qp, peer, work, data);
	if (*status == IBV_WC_SUCCESS && takes_a_receive(request))
		*status = deliver(peer, work, data);
	/* iWARP's requester only learns of it from TCP. */
	if (*status != IBV_WC_SUCCESS && *status != IBV_WC_LOC_PROT_ERR && is_iwarp(qp)) {
		if (request->opcode == IBV_WR_RDMA_READ)
			*status = IBV_WC_WR_FLUSH_ERR;
		else
			*status = IBV_WC_SUCCESS;
		complete_send(qp, *status);
		bring_down(qp);
		return WAITS;
	}
	return ANSWERED;
}

/* The first send of a queue pair. True if the next may follow. */
static bool step(struct queue_pair *qp)
{
	struct send_work *work = qp->sends;
	struct ibv_send_wr *request = &work->request;
	uint8_t *buffer = work->inlined ? NULL : provider_allocate(work->length + 1);
	uint8_t *data = buffer ? buffer : work->inlined;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	enum answer how = ANSWERED;

	if (provider.breaks_with != IBV_WC_SUCCESS) {
		status = provider.breaks_with;
		provider.breaks_with = IBV_WC_SUCCESS;
	} else if (request->opcode != IBV_WR_RDMA_READ && !work->inlined &&
		   !copy(qp, work->sges, request->num_sge, data, work->length, 0)) {
		status = IBV_WC_LOC_PROT_ERR;
	} else if (qp->base.qp_type == IBV_QPT_UD) {
		if (work->length > 128u << qp->device->ports[qp->attributes.port_num - 1].mtu)
			status = IBV_WC_LOC_LEN_ERR;
		else
			group_send(qp, work, data);
	} else {
		how = answer(qp, qp_find(qp->attributes.dest_qp_num), work, data, &status);
	}
	free(buffer);
	if (how == REPEATS)
		qp_schedule(qp);
	if (how != ANSWERED)
		return false;
	complete_send(qp, status);
	if (status != IBV_WC_SUCCESS)
		bring_down(qp);
	return status == IBV_WC_SUCCESS;
}

static void run(struct action *action)
{
	struct queue_pair *qp = (struct queue_pair *)(uintptr_t)action->subject;

	qp->scheduled = false;
	if (qp->device->removed)
		return;
	if (qp->base.state == IBV_QPS_ERR)
		flush(qp);
	else if (qp->base.state == IBV_QPS_RTS)
		while (qp->sends && step(qp) && qp->sends)
			if (provider.seed && !provider_random(2)) {
				qp_schedule(qp);
				break;
			}
}

void qp_schedule(struct queue_pair *qp)
{
	struct action *action;

	if (qp->scheduled)
		return;
	qp->scheduled = true;
	action = provider_action(run, qp->base.qp_num);
	action->subject = qp;
}
