/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/confinement.h"

#include <unistd.h>

#include "cmd/signals.h"
#include "core/privileges.h"
#include "core/sandbox.h"

/* Prints the number of the call. Formats it by hand, because printf(3) is not async-signal-safe. */
static void syscall_refused(int number, siginfo_t *information, void *context)
{
	char line[] = "rdmatest: --sandbox: system call      0\n";
	char *digit = line + sizeof(line) - 3;
	ssize_t ignored;

	(void)number;
	(void)context;
	for (int call = information->si_syscall; call > 0 && *digit != 'l'; call /= 10)
		*digit-- = (char)('0' + call % 10);
	ignored = write(STDERR_FILENO, line, sizeof(line) - 1);
	(void)ignored;
	fatal_exit(FATAL_REFUSED);
}

static bool writes_files(const struct common_options *options)
{
	return options->reporting.prometheus || options->daemon.pidfile;
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
	if (!WITH_EXTRAS || !options->sandbox)
		return OUTCOME_OK;
	return sandbox_enter(log, (files ? SANDBOX_FILES : 0) | (devices ? SANDBOX_DEVICES : 0), syscall_refused);
}
