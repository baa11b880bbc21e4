/* SPDX-License-Identifier: BSD-2-Clause */
/* What the bare verbs programs share. */
#ifndef RDMATEST_TEST_BENCH_BARE_H
#define RDMATEST_TEST_BENCH_BARE_H

#include <rdma/rdma_cma.h>

/* What either end of their connections asks for or grants. */
static inline struct rdma_conn_param bare_parameters(void)
{
	return (struct rdma_conn_param){
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

#endif
