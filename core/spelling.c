/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/spelling.h"

#include <stddef.h>
#include <string.h>
#include <sys/param.h>

enum {
	WORD_MAX = 32
};

/* Optimal string alignment distance: table[i][j] is the distance between the first i and the first j letters. */
unsigned spelling_distance(const char *typed, const char *meant)
{
	unsigned table[WORD_MAX + 1][WORD_MAX + 1];
	size_t typed_length = strlen(typed);
	size_t meant_length = strlen(meant);
	unsigned distance;

	if (typed_length > WORD_MAX || meant_length > WORD_MAX)
		return SPELLING_FAR;
	for (unsigned i = 0; i <= typed_length; i++)
		table[i][0] = i;
	for (unsigned j = 0; j <= meant_length; j++)
		table[0][j] = j;
	for (size_t i = 1; i <= typed_length; i++) {
		for (size_t j = 1; j <= meant_length; j++) {
			unsigned replaced = table[i - 1][j - 1] + (typed[i - 1] != meant[j - 1]);

			table[i][j] = MIN(replaced, 1 + MIN(table[i - 1][j], table[i][j - 1]));
			if (i > 1 && j > 1 && typed[i - 1] == meant[j - 2] && typed[i - 2] == meant[j - 1])
				table[i][j] = MIN(table[i][j], table[i - 2][j - 2] + 1);
		}
	}
	distance = table[typed_length][meant_length];
	/* One edit per three letters, at most two. */
	return distance <= 2 && distance * 3 <= meant_length ? distance : SPELLING_FAR;
}
