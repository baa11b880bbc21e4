/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a device file cannot be used, and a remedy that can work for this process. */
#ifndef CORE_DEVICE_FILE_H
#define CORE_DEVICE_FILE_H

#include "core/log.h"

/*
 * Opens a device file for reading and writing, as a library does, and closes it, which changes nothing and also tests
 * the device rules of a container. Returns 0, or an errno value after it has reported the error with object and phase,
 * and a remedy if one is known. number_path: the file of /sys that has the number of the device, which the file must
 * have; if it cannot be read any number is right.
 */
int device_file_check(const struct log *log, const char *object, const char *phase, const char *path,
		      const char *number_path);

#endif
