/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/confinement.h"

#include <unistd.h>

#include "cmd/abrupt_end.h"
#include "core/privileges.h"
#include "core/sandbox.h"

/* Which call it was helps whoever has to find out why; no function that formats may be used in a signal handler. */
static void refused(int number, siginfo_t *information, void *context)
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
	abrupt_end(ABRUPT_REFUSED);
}

/* Verbs opens the device that a peer's request came in by, in its own time. */
enum outcome confinement_enter(const struct common_options *options, const struct transport *transport,
			       const struct log *log)
{
	bool files = options->reporting.prometheus || options->life.pidfile;
	unsigned grants = (files ? SANDBOX_FILES : 0) | (transport_opens_devices(transport) ? SANDBOX_DEVICES : 0);

	privileges_drop(log, files);
	return WITH_SERVICE && options->sandbox ? sandbox_enter(log, grants, refused) : OUTCOME_OK;
}
