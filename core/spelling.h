/* SPDX-License-Identifier: BSD-2-Clause */
/* "Did you mean ...?" */
#ifndef CORE_SPELLING_H
#define CORE_SPELLING_H

enum {
	SPELLING_FAR = 99
};

/*
 * How many letters must be added, dropped, replaced or swapped with their neighbour to get from one word to the other;
 * SPELLING_FAR if that is too many for a slip of the finger.
 */
unsigned spelling_distance(const char *typed, const char *meant);

#endif
