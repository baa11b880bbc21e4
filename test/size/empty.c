/* SPDX-License-Identifier: BSD-2-Clause */
/* Next to nothing on the same libraries: what a static program with RDMA cannot go below. */
#include <rdma/rdma_cma.h>

int main(void)
{
	return !rdma_create_event_channel();
}
