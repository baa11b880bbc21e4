/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/soft/net/port_holder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool soft_port_is_held(const struct address *address)
{
	bool ip4 = address->family == ADDRESS_IP4;
	FILE *table = fopen(ip4 ? "/proc/net/udp" : "/proc/net/udp6", "re");
	char line[256], pattern[48] = " ";
	bool found = false;

	if (!table)
		return false;
	for (size_t at = 0; at < (ip4 ? 4 : 16); at += 4) {
		uint32_t word; /* the kernel prints addresses as words in host byte order */

		memcpy(&word, address->bytes + at, sizeof(word));
		snprintf(pattern + 1 + 2 * at, 9, "%08" PRIX32, word);
	}
	strcpy(pattern + strlen(pattern), ":12B7 ");
	while (!found && fgets(line, sizeof(line), table)) {
		const char *local = strchr(line, ':'); /* the header has none */

		found = local && !strncmp(local + 1, pattern, strlen(pattern));
	}
	fclose(table);
	return found;
}
