/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/command.h"

/* cmd/flags.mk defines COMMANDS(ROW): a ROW() for each command of the program, in the order of --help. */
#define ADDRESS(name) &name##_command,

const struct command *const command_table[] = { COMMANDS(ADDRESS) NULL };
