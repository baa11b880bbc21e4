/* SPDX-License-Identifier: BSD-2-Clause */
/* What an interface's driver says of it, as ethtool(8) asks. */
#pragma once

#include <linux/ethtool.h>
#include <stdbool.h>
#include <stdint.h>

/* request: a struct of linux/ethtool.h. Returns false without an answer. */
bool ethtool_ask(const char *interface, void *request);

/* The names (ETHTOOL_GSTRINGS) or values (ETHTOOL_GSTATS) of ethtool -S. The caller frees them; NULL: none. */
void *ethtool_statistics(const char *interface, uint32_t command);
