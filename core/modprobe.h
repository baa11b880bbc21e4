/* SPDX-License-Identifier: BSD-2-Clause */
/* modprobe.d(5): the lines that keep modprobe(8) or the kernel from loading a module, without an error. */
#pragma once

enum {
	MODPROBE_LINES_SIZE = 192
};

/* Writes a module's name, or several, as /sys/module does: "hns_roce_hw_v2". */
void modprobe_name(char *module);

/*
 * Writes such lines about these modules, given with blanks between them: "/etc/modprobe.d/a.conf:3 (blacklist siw)"; ""
 * if there are none. root: see core/sysfs.h.
 */
void modprobe_lines(const char *root, const char *modules, char text[MODPROBE_LINES_SIZE]);
