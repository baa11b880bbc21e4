/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --wait-server: a client that finds nobody there tries again, every so often, until somebody is or the time is over.
 * A try goes through all addresses of the server, and it is enough that at one of them nobody was. What is said of a
 * try is held back; that of the last one is told if the wait was in vain.
 */
#ifndef CMD_PATIENCE_H
#define CMD_PATIENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/address.h"
#include "core/log.h"
#include "core/loop.h"

/* What was said of an address, and is not told yet. */
struct held_error {
	char *object;
	char *text;
	bool absent; /* nobody was there */
};

/* Zeroed before its start. */
struct patience {
	int64_t time;  /* nanoseconds to wait; 0: not at all */
	int64_t until; /* on the clock; 0 before the first try and once the server was there */
	bool absent;   /* nobody was there, at one of the addresses of this try */
	bool pauses;   /* what is held back is of the try before */
	struct loop_timer pause;
	size_t count;
	struct held_error *errors; /* ADDRESS_RESOLVE_MOST of them; NULL before the first */
};

/* A try begins: from the first one on the time runs. */
void patience_try(struct patience *patience, int64_t time);

/* For the hold of a log: true if an error of the try under way is to be held back, which this does. */
bool patience_hold(struct patience *patience, const char *object, const char *text);
/* True if there is something that was held back. */
bool patience_holds(const struct patience *patience);

/* The error held back last says that no server was there, or that it was busy with another client. */
void patience_absent(struct patience *patience);

/* The try has failed at all addresses. True if there is to be another one, for which callback comes from the loop. */
bool patience_again(struct patience *patience, struct loop *loop, loop_callback *callback, void *owner);

/* What counts of what is held back: that nobody was there, else the last error; NULL for nothing. */
const char *patience_error(const struct patience *patience);

/* There are no more tries: what was held back of the last one is told. */
void patience_give_up(struct patience *patience, const struct log *log);

/* The run is cut short: there are no more tries, and what it says from here on is not held back. */
void patience_stop(struct patience *patience);
/* What its last try met with is not why it ends, but worth a hint behind that. */
void patience_tell(struct patience *patience, const struct log *log, const char *object);

/* The server is there, or no more tries are wanted. Harmless at any time. */
void patience_end(struct patience *patience);

#endif
