/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/param.h>
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
#define NEVER	     INT64_MAX

/* Timers of a process that merely lacks a processor are less late. */
#define STILL_LEAST  (2 * CLOCK_NS_PER_S)
#define STILL_RECENT CLOCK_NS_PER_S

struct loop {
	struct ev_loop *ev;
	struct loop_poller *pollers;
	struct loop_poller *next_poller; /* of the current round */
	int64_t spin_time;		 /* loop_spin() */
	int64_t worked_at;		 /* time of the last work, while the loop spins */
	bool deferred;			 /* a timer is due in the next iteration */
	bool stopped;
	bool watch_failed; /* libev has stopped watching a descriptor */

	bool has_timers; /* for libev's count of active watchers */
	int alarm_fd;	 /* a timerfd, which wakes libev */
	int64_t alarm_at;
	struct loop_io alarm;
	int64_t turn;			/* when timers were last looked at */
	int64_t still_for, still_until; /* loop_stood_still() */
	struct timers timers;

	int64_t deadline_length; /* 0: none */
	int64_t deadline_at;
	loop_callback *deadline_expired;
	void *deadline_context;
	struct loop_timer deadline;
};

#define ASSERT_FITS(wrapper, watcher_type)                                                                             \
	_Static_assert(sizeof(watcher_type) <= sizeof(((wrapper *)0)->storage),                                        \
		       "libev's " #watcher_type " does not fit into " #wrapper)

ASSERT_FITS(struct loop_io, ev_io);
ASSERT_FITS(struct loop_signal, ev_signal);

static void ignore_async(struct ev_loop *ev, ev_async *watcher, int events)
{
	(void)ev;
	(void)watcher;
	(void)events;
}

/*
 * libev opens a descriptor for its first signal or async watcher. This makes libev open it now. With neither
 * WITH_DIAGNOSTICS nor WITH_SOFT the first watcher is a signal's, before the run opens anything else.
 */
static void open_signal_descriptor(struct ev_loop *ev)
{
	ev_async wake;

	if (!WITH_DIAGNOSTICS && !WITH_SOFT)
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

static void alarm_expired(void *context)
{
	(void)context;
}

/*
 * Returns false with errno on failure. The alarm alone does not keep the loop running. libev tries to watch a
 * descriptor only when it sleeps: a turn without waiting shows whether the kernel refuses.
 */
static bool open_alarm(struct loop *loop)
{
	loop->alarm_at = NEVER;
	loop->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (loop->alarm_fd < 0)
		return false;
	loop_io_start(loop, &loop->alarm, loop->alarm_fd, alarm_expired, NULL);
	ev_unref(loop->ev);
	ev_run(loop->ev, EVRUN_NOWAIT);
	if (loop->watch_failed)
		close(loop->alarm_fd);
	return !loop->watch_failed;
}

/*
 * libev aborts the process if it cannot open the descriptor for signals: one is reserved. Without a descriptor for
 * epoll, libev would fall back to poll(2), and the run would fail later.
 */
struct loop *loop_create(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int spare = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0), error;

	if (loop && spare >= 0)
		loop->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	if (loop && loop->ev && open_alarm(loop)) {
		close(spare);
		open_signal_descriptor(loop->ev);
		return loop;
	}
	error = errno;
	close(spare);
	if (loop && loop->ev)
		ev_loop_destroy(loop->ev);
	free(loop);
	errno = error;
	return NULL;
}

void loop_destroy(struct loop *loop)
{
	if (!loop)
		return;
	close(loop->alarm_fd);
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

/*
 * Returns whether libev may sleep: the alarm then wakes it for the first timer. The alarm is set only if that timer is
 * due before the last setting, or the last setting has passed, and setting it makes it unreadable. With a
 * retransmission timer of a millisecond, a time limit in each epoll_wait(2) would make the kernel program the hardware
 * clock for each sleep of a ping: 15 % of its time.
 */
static bool set_alarm(struct loop *loop)
{
	const struct timer *first = loop->timers.first;
	int64_t now = clock_now(), at = first ? first->at : NEVER;
	struct itimerspec time = { 0 };

	if (loop->has_timers != !!first) {
		loop->has_timers = first;
		(first ? ev_ref : ev_unref)(loop->ev);
	}
	if (at <= now)
		return false;
	if (now < loop->alarm_at && loop->alarm_at <= at)
		return true;
	time.it_value = clock_timespec(at);
	if (timerfd_settime(loop->alarm_fd, TFD_TIMER_ABSTIME, &time, NULL))
		return false;
	loop->alarm_at = at;
	return true;
}

static int64_t lateness(const struct loop *loop, int64_t now)
{
	int64_t late = loop->timers.first ? now - loop->timers.first->at : 0;

	return late >= STILL_LEAST ? late : 0;
}

/* Callbacks of descriptors come before the late timers expire. */
int64_t loop_stood_still(const struct loop *loop)
{
	int64_t now = clock_now(), late = lateness(loop, now);

	return late ? late : now - loop->still_until < STILL_RECENT ? loop->still_for : 0;
}

/* Timers that callbacks start are for the next iteration. */
static void expire_timers(struct loop *loop)
{
	uint64_t last = loop->timers.started;
	struct timer *first;

	loop->turn = clock_now();
	if (WITH_EXTRAS && lateness(loop, loop->turn)) {
		loop->still_for = lateness(loop, loop->turn);
		loop->still_until = loop->turn;
	}
	while ((first = loop->timers.first) && first->at <= loop->turn && first->number <= last) {
		struct loop_timer *timer = (struct loop_timer *)first; /* its first member */

		timers_stop(&loop->timers, first);
		timer->callback(timer->context);
	}
}

/*
 * Runs one iteration of libev, which sleeps unless the loop spins. Returns false if nothing could end the sleep. Timers
 * come after descriptors: data that has arrived takes precedence over a timeout that expired while the loop was busy.
 */
static bool run_iteration(struct loop *loop)
{
	bool spins = WITH_EXTRAS && loop->spin_time && loop->pollers;
	bool awake = spins && spin_or_arm(loop);
	bool watched;

	if (loop->stopped)
		return false;
	if (WITH_EXTRAS)
		loop->deferred = false;
	watched = ev_run(loop->ev, !awake && set_alarm(loop) ? EVRUN_ONCE : EVRUN_NOWAIT);
	expire_timers(loop);
	if (WITH_EXTRAS && !awake)
		loop->worked_at = clock_now();
	return watched || (WITH_EXTRAS && loop->spin_time && loop->pollers);
}

bool loop_run(struct loop *loop)
{
	loop->stopped = false;
	while (!loop->stopped && run_iteration(loop))
		;
	return !loop->watch_failed;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
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
	watcher->data = io;
	ev_io_start(loop->ev, watcher);
}

void loop_io_stop(struct loop_io *io)
{
	if (io->loop)
		ev_io_stop(io->loop->ev, (ev_io *)&io->storage);
}

/*
 * A limit may be hundreds of years. A time that has passed is now: a timer that its own callback starts again must not
 * come before others that are due.
 */
static int64_t time_after(int64_t now, int64_t nanoseconds)
{
	return now + MAX(0, MIN(nanoseconds, NEVER - now));
}

static void start_timer(struct loop *loop, struct loop_timer *timer, int64_t at, loop_callback *callback, void *context)
{
	loop_timer_stop(timer);
	timer->loop = loop;
	timer->callback = callback;
	timer->context = context;
	timers_start(&loop->timers, &timer->timer, at);
}

void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
		      void *context)
{
	start_timer(loop, timer, time_after(clock_now(), nanoseconds), callback, context);
	if (WITH_EXTRAS)
		loop->deferred |= nanoseconds <= 0;
}

void loop_timer_stop(struct loop_timer *timer)
{
	if (timer->loop)
		timers_stop(&timer->loop->timers, &timer->timer);
}

/*
 * Two more iterations: in the first end the phases that callbacks of the deadline's iteration began, in the second the
 * runs whose end they deferred.
 */
static void deadline_noticed(void *context)
{
	struct loop *loop = context;

	loop_timer_start(loop, &loop->deadline, 0, loop->deadline_expired, loop->deadline_context);
}

static void deadline_reached(void *context)
{
	struct loop *loop = context;

	loop_timer_start(loop, &loop->deadline, 0, deadline_noticed, loop);
}

void loop_deadline_start(struct loop *loop, int64_t nanoseconds, loop_callback *expired, void *context)
{
	loop->deadline_length = nanoseconds;
	loop->deadline_expired = expired;
	loop->deadline_context = context;
	loop->deadline_at = time_after(clock_now(), nanoseconds);
	/* After the phases that end with it. */
	start_timer(loop, &loop->deadline, time_after(loop->deadline_at, 1), deadline_reached, loop);
}

void loop_deadline_stop(struct loop *loop)
{
	loop->deadline_length = 0;
	loop_timer_stop(&loop->deadline);
}

bool loop_deadline_passed(const struct loop *loop)
{
	return loop->deadline_length && loop->deadline_at <= loop->turn;
}

/* A phase that ends at the deadline is due in the same iteration as that. */
void loop_phase_start(struct loop *loop, struct loop_timer *timer, int64_t limit, loop_callback *callback,
		      void *context)
{
	int64_t now = clock_now(), end = time_after(now, limit);

	if (loop->deadline_length)
		end = MIN(end, MAX(now, loop->deadline_at));
	start_timer(loop, timer, end, callback, context);
}

const char *loop_phase_text(const struct loop *loop, int64_t limit, char text[LOOP_PHASE_TEXT_SIZE])
{
	bool passed = loop_deadline_passed(loop);
	char time[UNITS_TEXT_SIZE];

	log_text(text, LOOP_PHASE_TEXT_SIZE, passed ? "deadline of %s exceeded" : "timed out after %s",
		 units_duration(passed ? loop->deadline_length : limit, time));
	return text;
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
