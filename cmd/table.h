/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of the commands. The Makefile defines COMMAND_x as 1 if the program has x, else as 0. */
#ifndef CMD_TABLE_H
#define CMD_TABLE_H

#include "cmd/command.h"

extern const struct command rping_command;
extern const struct command ucmatose_command;
extern const struct command mckey_command;
extern const struct command selftest_command;
extern const struct command doctor_command;

#endif
