/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/confinement.h"

#include "cmd/signals.h"
#include "core/privileges.h"
#include "core/sandbox.h"

static void syscall_refused(int number, siginfo_t *information, void *context)
{
	(void)number;
	(void)context;
	fatal_exit(FATAL_REFUSED, information->si_syscall);
}

static bool writes_files(const struct common_options *options)
{
	return (WITH_REPORT && options->reporting.prometheus) || EXTRA(options->daemon.pidfile);
}

void confinement_begin(const struct common_options *options, const struct log *log)
{
	if (transport_opens_devices(common_transport(options)))
		privileges_drop(log, PRIVILEGE_PORTS | (writes_files(options) ? PRIVILEGE_FILES : 0));
}

enum outcome confinement_enter(const struct common_options *options, const struct log *log)
{
	bool devices = transport_opens_devices(common_transport(options)), files = writes_files(options);

	if (!devices)
		privileges_drop(log, files ? PRIVILEGE_FILES : 0);
	if (!EXTRA(options->sandbox))
		return OUTCOME_OK;
	return sandbox_enter(log, (files ? SANDBOX_FILES : 0) | (devices ? SANDBOX_DEVICES : 0), syscall_refused);
}
