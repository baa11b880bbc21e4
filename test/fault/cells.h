/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the fault matrix: who is tried, which calls fail with what, and how that has to end. */
#ifndef TEST_FAULT_CELLS_H
#define TEST_FAULT_CELLS_H

#include <stdbool.h>

/* A command under test and the peer that it meets. In both lines @ is the address, % a number of the cell's own. */
struct role {
	const char *name;
	const char *line;
	const char *peer; /* NULL: none is needed */
	bool passive;	  /* it is there before its peer */
};

/* Ends with a NULL name. */
extern const struct role roles[];

struct row {
	const char *call;
	const int *errors; /* as its manual page has them; ends with 0 */
	const char *codes; /* exit codes, with spaces between: one of them */
	const char *words; /* what stderr has to match; NULL: the number of the error, in brackets */
	unsigned times;	   /* so many uses in a row; 0: all from there on */
	bool leaves;	   /* what could not be given back is left to the kernel */
	bool reports;	   /* a server reports a packet that it does not answer; the peer sends it again */
};

/* Ends with a NULL call. Every row of a call counts. */
extern const struct row cell_rows[];

#endif
