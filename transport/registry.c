/* SPDX-License-Identifier: BSD-2-Clause */
/* The backends, one line each. */
#include "transport/backend.h"
#include "transport/verbs/verbs.h"

const struct backend *const backend_registry[] = {
	&verbs_backend,
	NULL,
};
