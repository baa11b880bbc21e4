/* SPDX-License-Identifier: BSD-2-Clause */
/* "Did you mean ...?" */
#pragma once

enum {
	SPELLING_FAR = 99
};

/*
 * Returns the number of letters to insert, delete, replace or transpose to turn one word into the other, or
 * SPELLING_FAR if these are too many for a typing error.
 */
unsigned spelling_distance(const char *typed, const char *meant);
