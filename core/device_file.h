/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a device file cannot be used, and a remedy that can work for this process. */
#ifndef CORE_DEVICE_FILE_H
#define CORE_DEVICE_FILE_H

#include "core/remedy.h"

enum {
	DEVICE_FILE_TEXT_SIZE = 256
};

/*
 * Opens a device file for reading and writing, as a library does, and closes it, which changes nothing and also tests
 * the device rules of a container. Returns 0 if it can be used; the errno value of open(2); or -1 if it was opened and
 * is not that device. Then writes the cause in words, and a remedy, "" if none is known. number_path: the file of /sys
 * that has the number of the device; if it cannot be read any number is right.
 */
int device_file_check(const char *path, const char *number_path, char cause[DEVICE_FILE_TEXT_SIZE],
		      struct remedy *remedy);

#endif
