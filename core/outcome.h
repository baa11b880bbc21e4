/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The result of an operation. The values are the exit codes of docs/exit-codes.md: the first failure becomes the
 * program's.
 */
#pragma once

enum outcome {
	OUTCOME_OK = 0,		   /* the test completed and its data was verified */
	OUTCOME_FAILED = 1,	   /* the test ran and failed: mismatch, loss, peer gone, a time limit */
	OUTCOME_USAGE = 2,	   /* invalid command line */
	OUTCOME_NO_DEVICE = 3,	   /* no usable RDMA device or transport; a CI may treat it as "skip" */
	OUTCOME_NO_CONNECTION = 4, /* could not resolve, connect or join, or not in time */
	OUTCOME_INTERNAL = 5,	   /* out of resources, or output that cannot be written */
	OUTCOME_UNKNOWN_COMMAND = 127,
	OUTCOME_INTERRUPTED = 130, /* a second Ctrl-C ended an orderly shutdown */
};
