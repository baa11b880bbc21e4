/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a command, from its arguments to its exit code. */
#ifndef CMD_RUN_H
#define CMD_RUN_H

#include "cmd/command.h"

/*
 * Parses argv (argv[0] is skipped), handles --help and --version, else opens the transport and runs the command. name
 * is what the user typed: "rping", "rdmatest rping".
 */
enum outcome command_run(const struct command *command, const char *name, int argc, char *const *argv);

/* Prints the help of a command on stdout. */
void command_help(const struct command *command, const char *name, bool brief);

#endif
