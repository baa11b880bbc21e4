/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* libev's macros cause these warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#define EV_COMPAT3 0
#include <ev.h>
#pragma GCC diagnostic pop

#include "core/clock.h"
#include "core/log.h"
#include "core/units.h"

/*
 * A non-blocking iteration of libev costs a system call, about twenty times an empty poll of a completion queue.
 * Pollers get many rounds per iteration, so that libev takes a few per cent of the time. SPIN_LONGEST limits how long
 * timers and signals wait for these rounds. Rounds that find work are slow: the clock is read after each of them.
 */
enum {
	SPIN_ROUNDS = 256,
	SPIN_ROUNDS_UNTIMED = 16, /* rounds without work between two reads of the clock */
};
#define SPIN_LONGEST (100 * CLOCK_NS_PER_US)

/*
 * Descriptors are served before timers in an iteration: data that has arrived takes precedence over a timeout that
 * expired while the loop was busy. The deadline comes after the phases that end with it.
 */
enum {
	PRIORITY_IO = 1,
	PRIORITY_DEADLINE = -1,
};

struct loop {
	struct ev_loop *ev;
	struct loop_poller *pollers;
	struct loop_poller *next_poller; /* of the current round */
	int64_t spin_time;		 /* loop_spin() */
	int64_t worked_at;		 /* time of the last work, while the loop spins */
	bool deferred;			 /* a timer is due in the next iteration */
	bool stopped;
	bool watch_failed; /* libev has stopped watching a descriptor */

	bool deadline_reached;
	bool has_wake_timer;
	int64_t wake_at;	 /* 0: not set */
	int64_t deadline_length; /* 0: none */
	loop_callback *deadline_expired;
	void *deadline_context;
	struct loop_timer deadline;
	ev_io wake_timer; /* the timerfd of loop_wake(), created on first use */
};

#define ASSERT_FITS(wrapper, watcher_type)                                                                             \
	_Static_assert(sizeof(watcher_type) <= sizeof(((wrapper *)0)->storage),                                        \
		       "libev's " #watcher_type " does not fit into " #wrapper)

ASSERT_FITS(struct loop_io, ev_io);
ASSERT_FITS(struct loop_timer, ev_timer);
ASSERT_FITS(struct loop_signal, ev_signal);

static void ignore_async(struct ev_loop *ev, ev_async *watcher, int events)
{
	(void)ev;
	(void)watcher;
	(void)events;
}

/*
 * libev opens a descriptor for its first signal or async watcher. This makes libev open it now. With neither
 * WITH_CAUSES nor WITH_SOFT the first watcher is that of a signal, before the run opens anything else.
 */
static void open_signal_descriptor(struct ev_loop *ev)
{
	ev_async wake;

	if (!WITH_CAUSES && !WITH_SOFT)
		return;
	ev_async_init(&wake, ignore_async);
	ev_async_start(ev, &wake);
	ev_async_stop(ev, &wake);
}

void loop_set_fatal_handlers(void *(*allocate)(void *memory, long size), void (*refused)(const char *what))
{
	ev_set_allocator(allocate);
	ev_set_syserr_cb(refused);
}

/*
 * libev aborts the process if it cannot open the descriptor for signals: one is kept for it. Where there is none for
 * epoll, it would take poll(2), which needs none, and the run fail later.
 */
struct loop *loop_create(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int spare = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0), error;

	if (loop && spare >= 0)
		loop->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	error = errno;
	close(spare);
	if (loop && loop->ev) {
		open_signal_descriptor(loop->ev);
		return loop;
	}
	free(loop);
	errno = error;
	return NULL;
}

void loop_destroy(struct loop *loop)
{
	if (!loop)
		return;
	if (loop->has_wake_timer)
		close(loop->wake_timer.fd);
	ev_loop_destroy(loop->ev);
	free(loop);
}

void loop_spin(struct loop *loop, int64_t nanoseconds)
{
	loop->spin_time = nanoseconds;
}

/* Returns whether there was work. Callbacks may stop pollers. */
static bool run_pollers(struct loop *loop, bool arming)
{
	bool busy = false;

	loop->next_poller = loop->pollers;
	while (loop->next_poller) {
		struct loop_poller *poller = loop->next_poller;
		loop_poll *callback = arming ? poller->arm : poller->poll;

		loop->next_poller = poller->next;
		if (callback)
			busy |= callback(poller->context);
	}
	return busy;
}

/* Returns false if there was no work for spin_time: the loop may sleep. */
static bool spin(struct loop *loop)
{
	int64_t start = clock_now(), now = start;

	for (int round = 1; round <= SPIN_ROUNDS; round++) {
		bool busy = run_pollers(loop, false);

		if (busy || round % SPIN_ROUNDS_UNTIMED == 0)
			now = clock_now();
		if (busy)
			loop->worked_at = now;
		if (now - start >= SPIN_LONGEST || loop->deferred || loop->stopped || !loop->pollers)
			break;
	}
	return loop->deferred || loop->stopped || loop->spin_time < 0 || now - loop->worked_at < loop->spin_time;
}

/* Spins, then arms the pollers. Returns false if they are armed and there was no work: the loop may sleep. */
static bool spin_or_arm(struct loop *loop)
{
	if (spin(loop))
		return true;
	if (!run_pollers(loop, true))
		return false;
	loop->worked_at = clock_now();
	return true;
}

/* Runs one iteration of libev, which sleeps unless the loop spins. Returns false if nothing could end the sleep. */
static bool run_iteration(struct loop *loop)
{
	bool spins = WITH_EXTRAS && loop->spin_time && loop->pollers;
	bool awake = spins && spin_or_arm(loop);
	bool watched;

	if (loop->stopped)
		return false;
	if (WITH_EXTRAS)
		loop->deferred = false;
	/* Without flags it returns for loop_stop(), for a new poller, or if no watcher is active. */
	watched = ev_run(loop->ev, awake ? EVRUN_NOWAIT : spins ? EVRUN_ONCE : 0);
	if (WITH_EXTRAS && !awake)
		loop->worked_at = clock_now();
	return watched || (WITH_EXTRAS && loop->spin_time && loop->pollers);
}

bool loop_run(struct loop *loop)
{
	while (!loop->stopped && run_iteration(loop))
		;
	/* Cleared here, not at the start: loop_stop() before loop_run() counts. */
	loop->stopped = false;
	return !loop->watch_failed;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
	ev_break(loop->ev, EVBREAK_ONE);
}

static void io_ready(struct ev_loop *ev, ev_io *watcher, int events)
{
	struct loop_io *io = watcher->data;

	(void)ev;
	if (events & EV_ERROR) {
		io->loop->watch_failed = true;
		loop_stop(io->loop);
		return;
	}
	io->callback(io->context);
}

void loop_io_start(struct loop *loop, struct loop_io *io, int fd, loop_callback *callback, void *context)
{
	ev_io *watcher = (ev_io *)&io->storage;

	loop_io_stop(io);
	io->loop = loop;
	io->callback = callback;
	io->context = context;
	ev_io_init(watcher, io_ready, fd, EV_READ);
	ev_set_priority(watcher, PRIORITY_IO);
	watcher->data = io;
	ev_io_start(loop->ev, watcher);
}

void loop_io_stop(struct loop_io *io)
{
	if (io->loop)
		ev_io_stop(io->loop->ev, (ev_io *)&io->storage);
}

static void timer_expired(struct ev_loop *ev, ev_timer *watcher, int events)
{
	struct loop_timer *timer = watcher->data;

	(void)ev;
	(void)events;
	timer->callback(timer->context);
}

/* libev counts from ev_now_update(): without it from the start of its iteration, long ago if a callback was slow. */
static void start_timer(struct loop *loop, struct loop_timer *timer, double seconds, loop_callback *callback,
			void *context)
{
	ev_timer *watcher = (ev_timer *)&timer->storage;

	loop_timer_stop(timer);
	timer->loop = loop;
	timer->callback = callback;
	timer->context = context;
	ev_timer_init(watcher, timer_expired, seconds, 0.);
	if (timer == &loop->deadline)
		ev_set_priority(watcher, PRIORITY_DEADLINE);
	watcher->data = timer;
	ev_timer_start(loop->ev, watcher);
	if (WITH_EXTRAS)
		loop->deferred |= seconds <= 0;
}

void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
		      void *context)
{
	ev_now_update(loop->ev);
	start_timer(loop, timer, units_seconds(nanoseconds), callback, context);
}

void loop_timer_stop(struct loop_timer *timer)
{
	if (timer->loop)
		ev_timer_stop(timer->loop->ev, (ev_timer *)&timer->storage);
}

/* The callbacks of this iteration may have deferred the end of the run to the next one. */
static void deadline_reached(void *context)
{
	struct loop *loop = context;

	loop->deadline_reached = true;
	loop_timer_start(loop, &loop->deadline, 0, loop->deadline_expired, loop->deadline_context);
}

void loop_deadline_start(struct loop *loop, int64_t nanoseconds, loop_callback *expired, void *context)
{
	loop->deadline_length = nanoseconds;
	loop->deadline_reached = false;
	loop->deadline_expired = expired;
	loop->deadline_context = context;
	loop_timer_start(loop, &loop->deadline, nanoseconds, deadline_reached, loop);
}

void loop_deadline_stop(struct loop *loop)
{
	loop->deadline_length = 0;
	loop_timer_stop(&loop->deadline);
}

/* libev stops all timers that are due before it calls the first of them back. */
bool loop_deadline_passed(const struct loop *loop)
{
	return loop->deadline_length &&
	       (loop->deadline_reached || !((const ev_timer *)&loop->deadline.storage)->active);
}

/* In libev's own numbers: a phase that ends at the deadline is due in the same iteration as that. */
void loop_phase_start(struct loop *loop, struct loop_timer *timer, int64_t limit, loop_callback *callback,
		      void *context)
{
	double seconds = units_seconds(limit), left = seconds;

	ev_now_update(loop->ev);
	if (loop->deadline_length)
		left = loop_deadline_passed(loop) ? 0
						  : ev_timer_remaining(loop->ev, (ev_timer *)&loop->deadline.storage);
	start_timer(loop, timer, left < seconds ? left : seconds, callback, context);
}

const char *loop_phase_text(const struct loop *loop, int64_t limit, char text[LOOP_PHASE_TEXT_SIZE])
{
	bool passed = loop_deadline_passed(loop);
	char time[UNITS_TEXT_SIZE];

	log_text(text, LOOP_PHASE_TEXT_SIZE, passed ? "deadline of %s exceeded" : "timed out after %s",
		 units_limit(passed ? loop->deadline_length : limit, time));
	return text;
}

/* libev checks its timers after this callback. */
static void wake_expired(struct ev_loop *ev, ev_io *wake_timer, int events)
{
	struct loop *loop = wake_timer->data;
	uint64_t times;
	ssize_t ignored = read(wake_timer->fd, &times, sizeof(times));

	(void)ev;
	(void)events;
	(void)ignored;
	loop->wake_at = 0;
}

static bool create_wake_timer(struct loop *loop)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0)
		return false;
	ev_io_init(&loop->wake_timer, wake_expired, fd, EV_READ);
	loop->wake_timer.data = loop;
	ev_io_start(loop->ev, &loop->wake_timer);
	/* This watcher alone does not keep the loop running. */
	ev_unref(loop->ev);
	loop->has_wake_timer = true;
	return true;
}

/* Does nothing if no descriptor is left: timers are up to 1 ms late then. */
void loop_wake(struct loop *loop, int64_t nanoseconds)
{
	int64_t now = clock_now();
	int64_t at = now + nanoseconds + 1; /* never 0, which would disarm the timer */
	struct itimerspec time = { .it_value = clock_timespec(at) };

	if (loop->wake_at > now && loop->wake_at <= at)
		return;
	if (!loop->has_wake_timer && !create_wake_timer(loop))
		return;
	loop->wake_at = at;
	timerfd_settime(loop->wake_timer.fd, TFD_TIMER_ABSTIME, &time, NULL);
}

static void signal_caught(struct ev_loop *ev, ev_signal *watcher, int events)
{
	struct loop_signal *caught = watcher->data;

	(void)ev;
	(void)events;
	caught->callback(caught->context);
}

void loop_signal_start(struct loop *loop, struct loop_signal *watcher, int number, loop_callback *callback,
		       void *context)
{
	ev_signal *signal_watcher = (ev_signal *)&watcher->storage;

	loop_signal_stop(watcher);
	watcher->loop = loop;
	watcher->callback = callback;
	watcher->context = context;
	ev_signal_init(signal_watcher, signal_caught, number);
	signal_watcher->data = watcher;
	ev_signal_start(loop->ev, signal_watcher);
}

void loop_signal_stop(struct loop_signal *watcher)
{
	if (watcher->loop)
		ev_signal_stop(watcher->loop->ev, (ev_signal *)&watcher->storage);
}

void loop_poller_start(struct loop *loop, struct loop_poller *poller, loop_poll *poll, loop_poll *arm, void *context)
{
	poller->poll = poll;
	poller->arm = arm;
	poller->context = context;
	if (poller->active)
		return;
	poller->active = true;
	/* At the front: it is not called in the current round. */
	poller->next = loop->pollers;
	loop->pollers = poller;
	/* loop_run() may sleep in libev. */
	ev_break(loop->ev, EVBREAK_ONE);
}

void loop_poller_stop(struct loop *loop, struct loop_poller *poller)
{
	struct loop_poller **link = &loop->pollers;

	if (!poller->active)
		return;
	while (*link != poller)
		link = &(*link)->next;
	*link = poller->next;
	if (loop->next_poller == poller)
		loop->next_poller = poller->next;
	poller->next = NULL;
	poller->active = false;
}
