/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a device file cannot be used, and a remedy that can work for this process. */
#pragma once

#include "core/remedy.h"

enum {
	DEVICE_FILE_TEXT_SIZE = 256
};

/*
 * Opens a device file for reading and writing, as a library does, and closes it. This changes nothing, and also tests a
 * container's device rules. Returns 0 if it can be used; the errno value of open(2); or -1 if it was opened and is not
 * that device. Then writes the cause in words, and a remedy, "" if none is known. number_path: the /sys file with the
 * device's number; if it cannot be read, any number is accepted.
 */
int device_file_check(const char *path, const char *number_path, char cause[DEVICE_FILE_TEXT_SIZE],
		      struct remedy *remedy);
