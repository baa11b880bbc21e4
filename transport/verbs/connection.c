/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting, accepting, disconnecting. */
#include <errno.h>
#include <sys/param.h>

#include "transport/verbs/verbs.h"

enum {
	READS_OUTSTANDING = 1, /* RDMA READs in each direction, as in stock rping */
	RETRY_COUNT = 7,
	RNR_RETRY_INFINITE = 7,
};

enum outcome verbs_connect(struct endpoint *base, const void *data, size_t length)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	struct rdma_conn_param parameters = {
		.private_data = data,
		.private_data_len = (uint8_t)length,
		.responder_resources = READS_OUTSTANDING,
		.initiator_depth = READS_OUTSTANDING,
		.retry_count = (uint8_t)endpoint_option_or(base, retry, RETRY_COUNT),
		.rnr_retry_count = (uint8_t)endpoint_option_or(base, rnr_retry, RNR_RETRY_INFINITE),
		.qp_num = base->qpn,
	};

	return rdma_connect(endpoint->id, &parameters) ? verbs_error_call(base, "connecting") : OUTCOME_OK;
}

enum outcome verbs_accept(struct endpoint *base, const void *data, size_t length)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	/* Starts from the request: a zeroed rdma_conn_param allows the peer no READs and no RNR retries. */
	struct rdma_conn_param *parameters = &endpoint->request;
	enum outcome outcome;

	/* On iWARP a peer of MPA version 1 sends no depths. */
	base->no_reads = !parameters->initiator_depth && base->domain->fabric != FABRIC_IWARP;
	parameters->responder_resources = MIN(parameters->responder_resources, READS_OUTSTANDING);
	parameters->initiator_depth = MIN(parameters->initiator_depth, READS_OUTSTANDING);
	parameters->rnr_retry_count = (uint8_t)endpoint_option_or(base, rnr_retry, RNR_RETRY_INFINITE);
	parameters->private_data = data;
	parameters->private_data_len = (uint8_t)length;
	parameters->qp_num = base->qpn;
	parameters->srq = 0;
	outcome = base->options.own_qp ? verbs_qp_ready(endpoint) : OUTCOME_OK;
	if (outcome)
		return outcome;
	if (rdma_accept(endpoint->id, parameters))
		return verbs_error_call(base, "accepting");
	verbs_qp_set_rnr_timer(endpoint);
	return OUTCOME_OK;
}

enum outcome verbs_establish(struct verbs_endpoint *endpoint)
{
	enum outcome outcome = verbs_qp_ready(endpoint);

	if (!outcome && rdma_establish(endpoint->id))
		outcome = verbs_error_call(&endpoint->base, "establishing");
	return outcome;
}

void verbs_reject(struct endpoint *base, const void *data, size_t length)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;

	/* An error is ignored: destroying the id rejects the request, too. */
	rdma_reject(endpoint->id, data, (uint8_t)length);
}

enum outcome verbs_disconnect(struct endpoint *base)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;

	if (verbs_send_disconnect(endpoint)) {
		verbs_error_call(base, "disconnecting");
		return OUTCOME_FAILED;
	}
	if (endpoint->disconnect_pending) /* the peer has disconnected, too: no event follows */
		verbs_timer_start(endpoint, 0, verbs_deliver_disconnected);
	return OUTCOME_OK;
}
