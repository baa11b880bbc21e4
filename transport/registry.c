/* SPDX-License-Identifier: BSD-2-Clause */
/* The backends. The first one built in is the default. */
#include "transport/backend.h"

const struct backend *const backend_registry[] = {
#if WITH_VERBS
	&verbs_backend,
#endif
#if WITH_SOFT
	&soft_backend,
#endif
	NULL,
};
