/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event loop, a wrapper of libev. Watchers are members of their objects: libev's have opaque storage, whose size
 * loop.c asserts. Timers are as exact as the kernel's: libev's own wait for whole milliseconds.
 *
 * Zero a watcher before its first start. Starting an active watcher restarts it with the new settings; stopping an
 * inactive one does nothing. Stop a watcher before its memory is freed, and an io watcher before its descriptor is
 * closed. A callback may start and stop any watcher, including its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/timers.h"

struct loop;

/* context is the pointer passed to the start function. */
typedef void loop_callback(void *context);

/* Opaque storage for libev's watchers. */
struct loop_storage {
	int state[3];
	void *links[2];
	double times[2];
};

#define LOOP_WATCHER                                                                                                   \
	loop_callback *callback;                                                                                       \
	void *context;                                                                                                 \
	struct loop *loop

struct loop_io {
	LOOP_WATCHER;
	struct loop_storage storage;
};

struct loop_timer {
	struct timer timer;
	LOOP_WATCHER;
};

struct loop_signal {
	LOOP_WATCHER;
	struct loop_storage storage;
};

/* Does pending work without waiting. Returns whether there was any. */
typedef bool loop_poll(void *context);

/* A source of work for busy polling, which can be polled without a system call or with a cheap one. */
struct loop_poller {
	loop_poll *poll;
	loop_poll *arm;
	void *context;
	struct loop_poller *next;
	bool active;
};

/*
 * Sets the functions that libev calls instead of aborting the process: an allocator, which must not return without
 * memory, and a handler for failed system calls. For all loops; call it before the first loop_create().
 */
void loop_set_fatal_handlers(void *(*allocate)(void *memory, long size), void (*refused)(const char *what));

/* Returns NULL and sets errno if descriptors or memory are short. Free with loop_destroy(). */
struct loop *loop_create(void);
void loop_destroy(struct loop *loop);

/*
 * Runs callbacks until one of them calls loop_stop(), or until no watcher is active. Returns false if the kernel
 * refused to watch a descriptor.
 */
bool loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Calls back while fd is readable (level-triggered). */
void loop_io_start(struct loop *loop, struct loop_io *io, int fd, loop_callback *callback, void *context);
void loop_io_stop(struct loop_io *io);

/*
 * Calls back once, nanoseconds from now, and never before loop_timer_start() returns. 0, or less, defers an action to
 * the next iteration of the loop.
 */
void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
		      void *context);
void loop_timer_stop(struct loop_timer *timer);

/*
 * The run's deadline. A phase that lasts until then ends by its own timer (loop_phase_start()). expired is called two
 * iterations later, unless the run has ended. Phases that begin after loop_deadline_stop() have only their own limits.
 */
void loop_deadline_start(struct loop *loop, int64_t nanoseconds, loop_callback *expired, void *context);
void loop_deadline_stop(struct loop *loop);
/*
 * For how long this process or its container was stopped when a timer was due: two seconds or more, within the last
 * second. 0: it was not.
 */
int64_t loop_stood_still(const struct loop *loop);
/* True from the deadline until loop_deadline_stop(): no further attempts are wanted. */
bool loop_deadline_passed(const struct loop *loop);

enum {
	LOOP_PHASE_TEXT_SIZE = 64
};

/* Starts the timer of a phase, which is due after limit nanoseconds, or at the deadline if that comes first. */
void loop_phase_start(struct loop *loop, struct loop_timer *timer, int64_t limit, loop_callback *callback,
		      void *context);
/* For the phase's callback. Returns why the phase has ended: "timed out after 10 s", or "deadline of 2 s exceeded". */
const char *loop_phase_text(const struct loop *loop, int64_t limit, char text[LOOP_PHASE_TEXT_SIZE]);

void loop_signal_start(struct loop *loop, struct loop_signal *watcher, int number, loop_callback *callback,
		       void *context);
void loop_signal_stop(struct loop_signal *watcher);

enum {
	LOOP_SPIN_ALWAYS = -1
};

/*
 * Sets how long loop_run() spins after the last work before it sleeps, in nanoseconds: LOOP_SPIN_ALWAYS, or 0 (the
 * default) for not at all. While it spins, it calls every active poller repeatedly, and checks descriptors, timers and
 * signals after each SPIN_ROUNDS rounds or SPIN_LONGEST (loop.c).
 */
void loop_spin(struct loop *loop, int64_t nanoseconds);

/*
 * The loop calls poll while it spins, and arm before it sleeps. arm lets new work wake the loop through a watcher, then
 * polls once more. It may be NULL if new work always wakes the loop.
 */
void loop_poller_start(struct loop *loop, struct loop_poller *poller, loop_poll *poll, loop_poll *arm, void *context);
void loop_poller_stop(struct loop *loop, struct loop_poller *poller);
