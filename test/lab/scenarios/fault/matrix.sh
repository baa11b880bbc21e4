# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash

# fault_cells OPTION...: cells of the fault matrix over soft-RoCE, by test/fault/matrix.c. A line a cell that failed.
fault_cells() {
	# For a program with sanitizers: what is preloaded comes before them, and hands on to them what does not fail.
	export ASAN_OPTIONS=verify_asan_link_order=0:allocator_may_return_null=1
	# It takes a client that long to begin that the server's idle time-out would end before.
	slower=2
	! is_sanitized || slower=5
	# shellcheck disable=SC2154 # the library's
	run 3000 /opt/rdmatest/bin/faults -j 4 -s $slower "$@" -o cells verbs 10.0.0.1 /opt/rdmatest/bin/rdmatest \
		/opt/rdmatest/bin/inject.so
	sed 's/^/RESULT /' cells
	expect_line run.out '^[1-9][0-9]* passed, 0 failed'
	expect_status 0
	rdma_leftovers
	kernel_log_clean
}
