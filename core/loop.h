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

/* Called again and again while the loop spins instead of sleeping (busy polling). */
struct loop_poller {
	loop_callback *callback;
	void *owner;
	struct loop_poller *next;
	bool active;
};

/* Returns NULL with errno when descriptors or memory are short. Freed with loop_destroy(). */
struct loop *loop_create(void);
void loop_destroy(struct loop *loop);

/* Runs callbacks until loop_stop(). */
void loop_run(struct loop *loop);
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

/*
 * While at least one poller is active loop_run() never sleeps: it calls every poller, and looks at descriptors, timers
 * and signals only once in a number of rounds (loop.c says how many and why).
 */
void loop_poller_start(struct loop *loop, struct loop_poller *poller, loop_callback *callback, void *owner);
void loop_poller_stop(struct loop *loop, struct loop_poller *poller);

#endif
