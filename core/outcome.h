/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How something ended. The values are the exit codes that docs/exit-codes.md promises, so that the first failure
 * anywhere can become the exit code of the program without a translation.
 */
#ifndef CORE_OUTCOME_H
#define CORE_OUTCOME_H

enum outcome {
	OUTCOME_OK = 0,		   /* everything asked for was done and verified */
	OUTCOME_FAILED = 1,	   /* the test ran and failed: mismatch, loss, peer gone, deadline */
	OUTCOME_USAGE = 2,	   /* the command line makes no sense */
	OUTCOME_NO_DEVICE = 3,	   /* no usable RDMA device or transport; a CI may treat it as "skip" */
	OUTCOME_NO_CONNECTION = 4, /* could not resolve, connect or join */
	OUTCOME_INTERNAL = 5,	   /* out of resources, or output that cannot be written */
	OUTCOME_UNKNOWN_COMMAND = 127,
	OUTCOME_INTERRUPTED = 130, /* a second Ctrl-C cut the orderly ending short */
};

#endif
