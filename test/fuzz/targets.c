/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/fuzz/target.h"

#include <string.h>

const struct target targets[] = {
	{ "packets", attack },
	{ "datagram", parse_datagram },
	{ "answer", parse_answer },
	{ "addresses", parse_addresses },
	{ "options", parse_options },
	{ "rping", peer_of_rping },
	{ "ucmatose", peer_of_ucmatose },
	{ "mckey", peer_of_mckey },
	{ NULL, NULL },
};

const struct target *target_find(const char *name)
{
	for (const struct target *target = targets; target->name; target++)
		if (!strcmp(target->name, name))
			return target;
	return NULL;
}
