/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/table.h"

/* The Makefile makes links for the lines that end in a comma: rows without .linked need a comment behind it. */
/* clang-format off */
const struct command *const command_table[] = {
	&rping_command,
	&ucmatose_command,
	&mckey_command,
#if WITH_SELFTEST
	&selftest_command, /* no link */
#endif
#if WITH_DOCTOR
	&doctor_command, /* no link */
#endif
	NULL,
};
/* clang-format on */
