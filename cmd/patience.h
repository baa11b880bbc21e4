/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --wait-server: a client that finds nobody there tries again, every so often, until somebody is or the time is over.
 * What it says of each try is held back; the last of it is told if the wait was in vain.
 */
#ifndef CMD_PATIENCE_H
#define CMD_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/log.h"
#include "core/loop.h"

/* Zeroed before its start. */
struct patience {
	int64_t time;  /* nanoseconds to wait; 0: not at all */
	int64_t until; /* on the clock; 0 before the first try and once the server was there */
	struct loop_timer pause;
	char *error; /* held back; NULL for nothing */
};

/* A try begins: from the first one on the time runs. */
void patience_try(struct patience *patience, int64_t time);

/* For the hold of a log: true if an error of the try under way is to be held back, which this does. */
bool patience_hold(struct patience *patience, const char *text);

/*
 * The try has failed; absent says that nobody was there. True if there is to be another one, for which callback comes
 * from the loop. Else what was held back is told.
 */
bool patience_again(struct patience *patience, struct loop *loop, const struct log *log, const char *object,
		    bool absent, loop_callback *callback, void *owner);

/* The run is cut short: there are no more tries, and what it says from here on is not held back. */
void patience_stop(struct patience *patience);
/* What its last try met with is not why it ends, but worth a hint behind that. */
void patience_tell(struct patience *patience, const struct log *log, const char *object);

/* The server is there, or no more tries are wanted. Harmless at any time. */
void patience_end(struct patience *patience);

#endif
