/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* libev's macros were not written for our warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#define EV_COMPAT3 0
#include <ev.h>
#pragma GCC diagnostic pop

#include "core/clock.h"

/*
 * A non-blocking turn of libev costs a system call, some twenty times an empty look at a completion queue. So pollers
 * get many rounds for one turn, which keeps the cost of the turns to a few per cent - but no more rounds once they have
 * taken SPIN_LONGEST, because timers and signals must not wait for them. Rounds that find work are slow, so that the
 * clock is looked at after each of those.
 */
enum {
	SPIN_ROUNDS = 256,
	SPIN_ROUNDS_UNTIMED = 16, /* that find nothing, between two looks at the clock */
};
#define SPIN_LONGEST (100 * CLOCK_NS_PER_US)

/*
 * What has arrived counts before a time limit that passed while the loop was busy: descriptors are served before the
 * timers of the same turn.
 */
enum {
	PRIORITY_IO = 1
};

struct loop {
	struct ev_loop *ev;
	struct loop_poller *pollers;
	struct loop_poller *next_poller; /* of the round under way */
	int64_t patience;		 /* of spinning: loop_spin() */
	int64_t busy_at;		 /* the last time something happened, while it spins */
	bool deferred;			 /* something waits for the next turn of libev */
	bool stopped;
	bool blind; /* libev has given a descriptor up */

	/* Of loop_wake(): its descriptor, made when it is first wanted. */
	ev_io alarm;
	int64_t alarm_at; /* 0 while it is not set */
	bool has_alarm;
};

#define FITS(ours, libevs)                                                                                             \
	_Static_assert(sizeof(libevs) <= sizeof(((ours *)0)->storage), "libev's " #libevs " fits into " #ours)

FITS(struct loop_io, ev_io);
FITS(struct loop_timer, ev_timer);
FITS(struct loop_signal, ev_signal);

static void woken(struct ev_loop *ev, ev_async *watcher, int events)
{
	(void)ev;
	(void)watcher;
	(void)events;
}

/* libev opens a descriptor when the first signal is watched, and aborts if there is none: it takes it now. */
static bool take_descriptor(struct ev_loop *ev)
{
	int spare = eventfd(0, EFD_CLOEXEC);
	ev_async wake;

	if (spare < 0)
		return false;
	close(spare);
	ev_async_init(&wake, woken);
	ev_async_start(ev, &wake);
	ev_async_stop(ev, &wake);
	return true;
}

void loop_last_resort(void *(*allocate)(void *memory, long size), void (*refused)(const char *what))
{
	ev_set_allocator(allocate);
	ev_set_syserr_cb(refused);
}

struct loop *loop_create(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int error;

	if (!loop)
		return NULL;
	loop->ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
	if (loop->ev && take_descriptor(loop->ev))
		return loop;
	error = errno;
	loop_destroy(loop);
	errno = error;
	return NULL;
}

void loop_destroy(struct loop *loop)
{
	if (!loop)
		return;
	if (loop->has_alarm)
		close(loop->alarm.fd);
	if (loop->ev)
		ev_loop_destroy(loop->ev);
	free(loop);
}

void loop_spin(struct loop *loop, int64_t nanoseconds)
{
	loop->patience = nanoseconds;
}

/* True if there was something to do. The pollers may be stopped on the way. */
static bool run_pollers(struct loop *loop, bool resting)
{
	bool busy = false;

	loop->next_poller = loop->pollers;
	while (loop->next_poller) {
		struct loop_poller *poller = loop->next_poller;
		loop_poll *look = resting ? poller->rest : poller->poll;

		loop->next_poller = poller->next;
		if (look)
			busy |= look(poller->owner);
	}
	return busy;
}

/* False when nothing has happened for so long that the loop may sleep. */
static bool spin(struct loop *loop)
{
	int64_t start = clock_now(), now = start;

	for (int round = 1; round <= SPIN_ROUNDS; round++) {
		bool busy = run_pollers(loop, false);

		if (busy || round % SPIN_ROUNDS_UNTIMED == 0)
			now = clock_now();
		if (busy)
			loop->busy_at = now;
		if (now - start >= SPIN_LONGEST || loop->deferred || loop->stopped || !loop->pollers)
			break;
	}
	return loop->deferred || loop->stopped || loop->patience < 0 || now - loop->busy_at < loop->patience;
}

/* Does what can be done without sleeping. False if nothing is left but to sleep. */
static bool stay_awake(struct loop *loop)
{
	if (spin(loop))
		return true;
	if (!run_pollers(loop, true))
		return false;
	loop->busy_at = clock_now();
	return true;
}

/* One turn of libev, which waits unless the loop spins. False if it would wait for ever. */
static bool turn(struct loop *loop)
{
	bool spins = WITH_SPIN && loop->patience && loop->pollers;
	bool awake = spins && stay_awake(loop);
	bool watched;

	if (loop->stopped)
		return false;
	loop->deferred = false;
	/* Comes back for loop_stop(), for a new poller, or when nothing is left that could call back. */
	watched = ev_run(loop->ev, awake ? EVRUN_NOWAIT : spins ? EVRUN_ONCE : 0);
	if (!awake)
		loop->busy_at = clock_now();
	return watched || (WITH_SPIN && loop->patience && loop->pollers);
}

bool loop_run(struct loop *loop)
{
	while (!loop->stopped && turn(loop))
		;
	/* Cleared only now: a stop asked for before the run must not get lost. */
	loop->stopped = false;
	return !loop->blind;
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
		io->loop->blind = true;
		loop_stop(io->loop);
		return;
	}
	io->callback(io->owner);
}

void loop_io_start(struct loop *loop, struct loop_io *io, int fd, loop_callback *callback, void *owner)
{
	ev_io *watcher = (ev_io *)io->storage;

	loop_io_stop(io);
	io->loop = loop;
	io->callback = callback;
	io->owner = owner;
	ev_io_init(watcher, io_ready, fd, EV_READ);
	ev_set_priority(watcher, PRIORITY_IO);
	watcher->data = io;
	ev_io_start(loop->ev, watcher);
}

void loop_io_stop(struct loop_io *io)
{
	if (io->loop)
		ev_io_stop(io->loop->ev, (ev_io *)io->storage);
}

static void timer_expired(struct ev_loop *ev, ev_timer *watcher, int events)
{
	struct loop_timer *timer = watcher->data;

	(void)ev;
	(void)events;
	timer->callback(timer->owner);
}

void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
		      void *owner)
{
	ev_timer *watcher = (ev_timer *)timer->storage;

	loop_timer_stop(timer);
	timer->loop = loop;
	timer->callback = callback;
	timer->owner = owner;
	ev_timer_init(watcher, timer_expired, (double)nanoseconds / (double)CLOCK_NS_PER_S, 0.);
	watcher->data = timer;
	/* libev counts from the start of its turn, which may be long ago when a call-back was slow. */
	ev_now_update(loop->ev);
	ev_timer_start(loop->ev, watcher);
	loop->deferred |= nanoseconds <= 0;
}

void loop_timer_stop(struct loop_timer *timer)
{
	if (timer->loop)
		ev_timer_stop(timer->loop->ev, (ev_timer *)timer->storage);
}

/* Its timers are looked at when libev's turn goes on. */
static void alarm_rang(struct ev_loop *ev, ev_io *alarm, int events)
{
	struct loop *loop = alarm->data;
	uint64_t times;
	ssize_t ignored = read(alarm->fd, &times, sizeof(times));

	(void)ev;
	(void)events;
	(void)ignored;
	loop->alarm_at = 0;
}

static bool make_alarm(struct loop *loop)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0)
		return false;
	ev_io_init(&loop->alarm, alarm_rang, fd, EV_READ);
	loop->alarm.data = loop;
	ev_io_start(loop->ev, &loop->alarm);
	/* By itself it is no reason to go on. */
	ev_unref(loop->ev);
	loop->has_alarm = true;
	return true;
}

/* Without a descriptor for it timers are as late as libev's are. */
void loop_wake(struct loop *loop, int64_t nanoseconds)
{
	int64_t now = clock_now();
	int64_t at = now + nanoseconds + 1; /* 0 would stop it */
	struct itimerspec time = { .it_value = clock_timespec(at) };

	if (loop->alarm_at > now && loop->alarm_at <= at)
		return;
	if (!loop->has_alarm && !make_alarm(loop))
		return;
	loop->alarm_at = at;
	timerfd_settime(loop->alarm.fd, TFD_TIMER_ABSTIME, &time, NULL);
}

static void signal_caught(struct ev_loop *ev, ev_signal *watcher, int events)
{
	struct loop_signal *caught = watcher->data;

	(void)ev;
	(void)events;
	caught->callback(caught->owner);
}

void loop_signal_start(struct loop *loop, struct loop_signal *watcher, int number, loop_callback *callback, void *owner)
{
	ev_signal *signal_watcher = (ev_signal *)watcher->storage;

	loop_signal_stop(watcher);
	watcher->loop = loop;
	watcher->callback = callback;
	watcher->owner = owner;
	ev_signal_init(signal_watcher, signal_caught, number);
	signal_watcher->data = watcher;
	ev_signal_start(loop->ev, signal_watcher);
}

void loop_signal_stop(struct loop_signal *watcher)
{
	if (watcher->loop)
		ev_signal_stop(watcher->loop->ev, (ev_signal *)watcher->storage);
}

void loop_poller_start(struct loop *loop, struct loop_poller *poller, loop_poll *poll, loop_poll *rest, void *owner)
{
	poller->poll = poll;
	poller->rest = rest;
	poller->owner = owner;
	if (poller->active)
		return;
	poller->active = true;
	/* In front, so that it is not called in the round under way. */
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
