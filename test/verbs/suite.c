/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=system */
/*
 * The conformance suite on the provider: PROVIDER=roce, ib or iw in the environment, and PROVIDER_SEED. The command
 * that removes the device is PROVIDER_REMOVE.
 */
#include "test/verbs/provider/provider.h"

#include <string.h>

static void begin(void) __attribute__((constructor));
static void end(void) __attribute__((destructor));

static void begin(void)
{
	const char *fabric = getenv("PROVIDER"), *seed = getenv("PROVIDER_SEED");

	provider_begin(!fabric || !strcmp(fabric, "roce") ? PROVIDER_ROCE
		       : !strcmp(fabric, "ib")		  ? PROVIDER_INFINIBAND
							  : PROVIDER_IWARP,
		       seed ? (unsigned)atoi(seed) : 0);
}

static void end(void)
{
	provider_end();
}

int __wrap_system(const char *command)
{
	device_remove(provider.devices[0], command[0] == 'm' ? REMOVAL_BY_MANAGER : REMOVAL_BY_ASYNC);
	return 0;
}
