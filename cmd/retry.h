/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --wait-server: a client that finds no server tries again, at intervals, until there is one or the time is over. A try
 * goes through all addresses of the server; there is another one if no server was there at one of them. The errors of a
 * try are held: those of the last one are reported if there never was a server.
 */
#ifndef CMD_RETRY_H
#define CMD_RETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/address.h"
#include "core/log.h"
#include "core/loop.h"

struct held_error;

/* Zeroed before its start. */
struct retry {
	int64_t time;  /* nanoseconds to wait; 0: not at all */
	int64_t until; /* on the clock; 0 before the first try and once the server was there */
	bool absent;   /* no server was there, at one of the addresses of this try */
	bool paused;   /* the held errors are of the try before */
	struct loop_timer pause;
	size_t count;
	struct held_error *errors; /* ADDRESS_RESOLVE_MOST of them; NULL before the first */
};

/* A try begins. The first one starts the time. */
void retry_begin(struct retry *retry, int64_t time);

/* Holds an error of the current try. Returns false if it is to be reported at once. */
bool retry_hold(struct retry *retry, const struct error *error);
/* True if errors are held. */
bool retry_holds(const struct retry *retry);

/* The error that was held last says that no server was there, or that it was busy with another client. */
void retry_absent(struct retry *retry);

/* The try has failed at all addresses. If there is to be another one, calls callback from the loop and returns true. */
bool retry_again(struct retry *retry, struct loop *loop, loop_callback *callback, void *owner);

/* Of the held errors the one that says that no server was there, else the last one; NULL for none. */
const struct error *retry_error(const struct retry *retry);

/* There are no more tries: reports what is held. */
void retry_give_up(struct retry *retry, const struct log *log);

/* The run is cut short: there are no more tries, and nothing more is held. */
void retry_stop(struct retry *retry);
/* The held error is not why the run ends, but it may help: reports it as a hint. */
void retry_hint(struct retry *retry, const struct log *log, const char *object);

/* The server is there, or no more tries are wanted: forgets what is held. Harmless at any time. */
void retry_end(struct retry *retry);

#endif
