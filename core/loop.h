/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one event loop. libev stays behind this header: watchers are structs of opaque storage, so that each can be a
 * member of the object it serves, and loop.c asserts that libev's own fit into them.
 *
 * A watcher is zeroed memory before its first start. Starting one that runs moves it to the new settings; stopping one
 * that does not run does nothing. A watcher must be stopped before its memory goes away, and an io watcher before its
 * descriptor is closed. A callback may start and stop any watcher, its own too.
 */
#ifndef CORE_LOOP_H
#define CORE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

/* owner is the pointer given at the start. */
typedef void loop_callback(void *owner);

#define LOOP_WATCHER(words)                                                                                            \
	loop_callback *callback;                                                                                       \
	void *owner;                                                                                                   \
	struct loop *loop;                                                                                             \
	_Alignas(max_align_t) unsigned char storage[(words) * sizeof(void *)]

struct loop_io {
	LOOP_WATCHER(10);
};

struct loop_timer {
	LOOP_WATCHER(10);
};

struct loop_signal {
	LOOP_WATCHER(10);
};

/* Looks for work without waiting, does it, and returns whether there was some. */
typedef bool loop_poll(void *owner);

/* A source of work that can be looked at without a system call, or with a cheap one (busy polling). */
struct loop_poller {
	loop_poll *poll;
	loop_poll *rest;
	void *owner;
	struct loop_poller *next;
	bool active;
};

/*
 * What libev calls where it would abort the process: an allocator that does not return without memory, and a last word
 * when the kernel refuses to wait. For all loops; before the first.
 */
void loop_last_resort(void *(*allocate)(void *memory, long size), void (*refused)(const char *what));

/* Returns NULL with errno when descriptors or memory are short. Freed with loop_destroy(). */
struct loop *loop_create(void);
void loop_destroy(struct loop *loop);

/* Runs callbacks until loop_stop(). False if it is over because the kernel refused to watch a descriptor. */
bool loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Calls back whenever fd is readable (level-triggered). */
void loop_io_start(struct loop *loop, struct loop_io *io, int fd, loop_callback *callback, void *owner);
void loop_io_stop(struct loop_io *io);

/*
 * Calls back once, nanoseconds from now; never before the starter has returned, also with 0, which is how an action is
 * put off to the next turn of the loop.
 */
void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
		      void *owner);
void loop_timer_stop(struct loop_timer *timer);

/*
 * libev sleeps whole milliseconds: a timer is up to one late. After this the loop looks at its timers also that soon.
 * If several ask at once, the soonest counts.
 */
void loop_wake(struct loop *loop, int64_t nanoseconds);

void loop_signal_start(struct loop *loop, struct loop_signal *watcher, int number, loop_callback *callback,
		       void *owner);
void loop_signal_stop(struct loop_signal *watcher);

enum {
	LOOP_SPIN_FOR_EVER = -1
};

/*
 * How long loop_run() spins after the last thing that happened, in nanoseconds, before it sleeps: LOOP_SPIN_FOR_EVER,
 * or 0, which it begins with, for not at all. Spinning, it calls every active poller again and again, and looks at
 * descriptors, timers and signals only once in a number of rounds (loop.c says how many and why).
 */
void loop_spin(struct loop *loop, int64_t nanoseconds);

/*
 * poll is called while the loop spins. rest is called when it is about to sleep: it makes sure that what comes from now
 * on wakes the loop through a watcher, then looks once more as poll does; it may be NULL if that is always so.
 */
void loop_poller_start(struct loop *loop, struct loop_poller *poller, loop_poll *poll, loop_poll *rest, void *owner);
void loop_poller_stop(struct loop *loop, struct loop_poller *poller);

#endif
