/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs over a pair of queue pairs: both ends post work requests of all kinds, and every byte is checked. */
#pragma once

#include "test/network/qp.h"

enum {
	GUARD = 16, /* bytes between the areas of two work requests */
	GUARD_BYTE = 0xee,
	OVERWRITTEN = 0xa5,
	PLAN_MAX = 512,
};

struct plan {
	enum work_kind kind;
	uint32_t length;
	size_t offset; /* in the direction's local and remote region */
	uint32_t immediate;
	bool has_immediate;
	bool unsignalled;
};

/* The work requests that one end posts. */
struct direction {
	struct plan plans[PLAN_MAX];
	size_t count, posted, finished;
	size_t sends, receives_posted, received; /* receives at the other end */
	struct region *local, *remote;
};

struct qp_run {
	struct pair pair;
	struct qp_attr attr;
	struct direction directions[2];
	size_t held_receives; /* number of receives not posted until the test sets this to 0 */
	int64_t taken;	      /* start, then duration, in virtual nanoseconds */
	unsigned failed_status;
	bool may_fail;
};

void qp_run_add(struct qp_run *run, size_t direction, struct plan plan);
void qp_run_plan_randomly(struct qp_run *run, size_t works);
void qp_run_post_receives(struct qp_run *run, size_t direction);
void qp_run_post(struct qp_run *run, size_t direction);
void qp_run_prepare(struct qp_run *run);
void qp_run_begin(struct qp_run *run);
/* Fails if memory changed after its work request completed, or outside of all areas. */
void qp_run_check_end(const struct qp_run *run);
void qp_run_wait(const struct qp_run *run);
void qp_run_all(struct qp_run *run);
/* Opens the network with that seed; qp_run_end() closes it. */
struct qp_run *qp_run_new(uint64_t seed);
struct qp_run *qp_run_of_sends(size_t count, size_t held, unsigned rnr_retry_count);
void qp_run_end(struct qp_run *run);
