/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An almost empty program with the same libraries: the lower limit for a static program with RDMA, and for a waiting
 * program's memory. It writes a line when it waits.
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
