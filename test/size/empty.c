/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Next to nothing on the same libraries: what neither a static program with RDMA nor the memory of one that
 * waits can go below. It writes a line when it waits.
 */
#include <unistd.h>
#if RDMA
#include <rdma/rdma_cma.h>
#endif

int main(void)
{
	if (write(STDOUT_FILENO, "\n", 1) != 1 || pause() != 0)
		return 1;
#if RDMA
	rdma_create_event_channel();
#endif
	return 0;
}
