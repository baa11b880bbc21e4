/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/table.h"

const struct command *const command_table[] = {
	&rping_command,
	&ucmatose_command,
	&mckey_command,
	NULL,
};
