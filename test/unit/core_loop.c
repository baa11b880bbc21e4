/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "core/clock.h"
#include "core/loop.h"
#include "test/unit/fake_clock.h"

static struct loop *loop;
static int ends[2]; /* a pipe's */

/* The record of callbacks, and when one stopped the loop. */
static char letters[64];
static size_t length;
static int64_t stopped_at;

/* One watcher of each kind. A callback records the letter. */
struct actor {
	char letter;
	int fd;
	unsigned left; /* rounds until it stops the loop, or a count of rounds */
	struct loop_io io;
	struct loop_timer timer;
	struct loop_signal signal;
	struct loop_poller poller;
	struct actor *other;
};

static void note(struct actor *actor)
{
	if (length < sizeof(letters) - 1)
		letters[length++] = actor->letter;
}

static void note_only(void *context)
{
	note(context);
}

static void note_and_stop(void *context)
{
	struct actor *actor = context;

	note(actor);
	stopped_at = clock_now();
	loop_stop(loop);
}

static void unexpected_callback(void *context)
{
	fail_msg("a stopped watcher called back");
}

static int create(void **state)
{
	fake_clock.real = true;
	memset(letters, 0, sizeof(letters));
	length = 0;
	loop = loop_create();
	return !loop || pipe2(ends, O_CLOEXEC | O_NONBLOCK);
}

static int destroy(void **state)
{
	loop_destroy(loop);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static int create_with_fake_time(void **state)
{
	int result = create(state);

	fake_clock.real = false;
	return result;
}

/* These callbacks come. */
static void assert_run(const char *expected)
{
	loop_run(loop);
	assert_string_equal(letters, expected);
}

static bool epoll_is_full;

/* Replaces the C library's function for libev. */
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	if (!epoll_is_full)
		return (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
	errno = ENOSPC;
	return -1;
}

static void busy_wait(int64_t nanoseconds)
{
	int64_t end = clock_now() + nanoseconds;

	while (clock_now() < end)
		continue;
}

static void start_timer_late(void *context)
{
	struct actor *actor = context;

	busy_wait(50 * CLOCK_NS_PER_MS);
	stopped_at = clock_now();
	loop_timer_start(loop, &actor->other->timer, 30 * CLOCK_NS_PER_MS, note_and_stop, actor->other);
}

/* From the end of a slow callback, not from the beginning of the iteration. */
TEST(timer_counts_from_its_start, create, destroy)
{
	struct actor late = { .letter = 'l' };
	struct actor slow = { .letter = 's', .other = &late };
	int64_t started;

	loop_timer_start(loop, &slow.timer, 0, start_timer_late, &slow);
	started = clock_now() + 50 * CLOCK_NS_PER_MS;
	loop_run(loop);
	assert_true(stopped_at - started >= 30 * CLOCK_NS_PER_MS);
}

/*
 * For any delay and order: libev alone sleeps whole milliseconds. The best of 50 rounds counts, because the machine may
 * be busy.
 */
TEST(timers_are_exact, create, destroy)
{
	for (int sooner_first = 0; sooner_first < 2; sooner_first++) {
		int64_t best = INT64_MAX;

		for (int round = 0; round < 50; round++) {
			struct actor sooner = { .letter = 's' }, later = { .letter = 'l' };
			int64_t start = clock_now();

			if (sooner_first)
				loop_timer_start(loop, &sooner.timer, 200 * CLOCK_NS_PER_US, note_and_stop, &sooner);
			loop_timer_start(loop, &later.timer, CLOCK_NS_PER_S, unexpected_callback, &later);
			loop_timer_start(loop, &sooner.timer, 200 * CLOCK_NS_PER_US, note_and_stop, &sooner);
			loop_run(loop);
			loop_timer_stop(&later.timer);
			assert_true(stopped_at - start >= 200 * CLOCK_NS_PER_US);
			if (stopped_at - start < best)
				best = stopped_at - start;
		}
		assert_true(best < 900 * CLOCK_NS_PER_US);
	}
}

static void expect_still(void *context)
{
	const int64_t *still = context;

	assert_int_equal(loop_stood_still(loop), *still);
	loop_stop(loop);
}

/*
 * Callbacks that read waiting data see the stop, and so do timers for a second. Shorter delays may come from a busy
 * machine.
 */
TEST(stopped_process_is_detected, create_with_fake_time, destroy)
{
	int64_t still = 3 * CLOCK_NS_PER_S, none = 0;
	struct loop_timer timer = { .loop = NULL };
	struct loop_io io = { .loop = NULL };

	loop_io_start(loop, &io, ends[0], expect_still, &still);
	loop_timer_start(loop, &timer, CLOCK_NS_PER_S, expect_still, &still);
	assert_int_equal(write(ends[1], "x", 1), 1);
	fake_clock_pass(4 * CLOCK_NS_PER_S);
	loop_run(loop);
	loop_io_stop(&io);
	loop_timer_start(loop, &timer, CLOCK_NS_PER_S / 2, expect_still, &still);
	loop_run(loop);
	loop_timer_start(loop, &timer, CLOCK_NS_PER_S / 2, expect_still, &none);
	loop_run(loop);
	loop_timer_start(loop, &timer, CLOCK_NS_PER_S, expect_still, &none);
	fake_clock_pass(3 * CLOCK_NS_PER_S - 1);
	loop_run(loop);
}

static void put_off(void *context)
{
	struct actor *actor = context;

	fake_clock_pass(CLOCK_NS_PER_US);
	if (!--actor->left)
		loop_io_stop(&actor->io);
	loop_timer_start(loop, &actor->timer, CLOCK_NS_PER_MS, note_and_stop, actor);
}

/* A repeatedly postponed timer, like the retransmission timer, leaves the alarm unchanged until that expires. */
TEST(alarm_is_set_once_for_a_postponed_timer, create_with_fake_time, destroy)
{
	struct actor busy = { .letter = 'b', .left = 900 };

	fake_clock.alarms = 0;
	assert_int_equal(write(ends[1], "x", 1), 1);
	loop_io_start(loop, &busy.io, ends[0], put_off, &busy);
	assert_run("b");
	assert_in_range(fake_clock.alarms, 1, 2);
}

/* Without an alarm the loop does not sleep. */
TEST(alarm_that_cannot_be_set, create_with_fake_time, destroy)
{
	struct actor late = { .letter = 'l' };

	fake_clock.refusals = 2;
	fake_clock.endless = 0;
	loop_timer_start(loop, &late.timer, CLOCK_NS_PER_MS, note_and_stop, &late);
	assert_run("l");
	assert_int_equal(fake_clock.refusals, 0);
	assert_int_equal(fake_clock.endless, 0);
}

/* A thousand timers expire in order of time, equal ones in order of start; every third is stopped. */
TEST(timers_keep_their_order, create, destroy)
{
	static struct timer timers[1000];
	struct timers all = { 0 };
	const struct timer *last = NULL;
	uint32_t seed = 1;
	size_t count = 0;

	for (size_t index = 0; index < 1000; index++) {
		seed = seed * 1664525 + 1013904223;
		timers_start(&all, &timers[index], seed >> 24);
	}
	for (size_t index = 0; index < 1000; index += 3)
		timers_stop(&all, &timers[index]);
	for (; all.first; count++) {
		struct timer *first = all.first;

		assert_int_not_equal((first - timers) % 3, 0);
		assert_true(!last || last->at < first->at || (last->at == first->at && last->number < first->number));
		timers_stop(&all, first);
		timers_stop(&all, first);
		last = first;
	}
	assert_int_equal(count, 666);
}

static void start_again_in_the_past(void *context)
{
	struct actor *actor = context;

	note(actor);
	if (actor->left--)
		loop_timer_start(loop, &actor->timer, -CLOCK_NS_PER_S, start_again_in_the_past, actor);
	else
		loop_stop(loop);
}

TEST(late_timer_does_not_hold_up_others, create, destroy)
{
	struct actor other = { .letter = 'o' }, late = { .letter = 'l', .left = 20 };

	loop_timer_start(loop, &other.timer, 0, note_and_stop, &other);
	loop_timer_start(loop, &late.timer, -CLOCK_NS_PER_S, start_again_in_the_past, &late);
	assert_run("ol");
}

/* Only a callback of the same run stops it. */
TEST(stop_outside_does_not_count, create, destroy)
{
	struct actor once = { .letter = 'o' };

	loop_stop(loop);
	loop_timer_start(loop, &once.timer, 0, note_and_stop, &once);
	assert_run("o");
}

/* The loop ends although the alarm is set. */
TEST(stopped_timer_does_not_keep_loop_running, create, destroy)
{
	struct actor once = { .letter = 'o' };

	loop_timer_start(loop, &once.timer, CLOCK_NS_PER_MS, note_only, &once);
	assert_run("o");
	loop_timer_start(loop, &once.timer, CLOCK_NS_PER_S, unexpected_callback, &once);
	loop_timer_stop(&once.timer);
	loop_run(loop);
}

static void defer_other(void *context)
{
	struct actor *actor = context;

	note(actor);
	loop_timer_start(loop, &actor->other->timer, 0, note_and_stop, actor->other);
	actor->letter = '-';
	note(actor);
}

/* A timer of 0 expires after the starter has returned. Several keep their order. */
TEST(timer_of_zero_defers_to_next_iteration, create, destroy)
{
	struct actor last = { .letter = 'z' };
	struct actor first = { .letter = 'a', .other = &last };
	struct actor second = { .letter = 'b' };

	loop_timer_start(loop, &first.timer, 0, defer_other, &first);
	loop_timer_start(loop, &second.timer, 0, note_only, &second);
	assert_string_equal(letters, "");
	assert_run("a-bz");
}

static void stop_other(void *context)
{
	struct actor *actor = context;

	note(actor);
	loop_timer_stop(&actor->other->timer);
	loop_io_stop(&actor->other->io);
}

/* A watcher that is due in the same iteration makes no callback, either. */
TEST(stopped_watchers_make_no_callback, create, destroy)
{
	struct actor end = { .letter = 'z' };
	struct actor victim = { 0 };
	struct actor one = { .letter = 'a', .other = &victim };

	assert_int_equal(write(ends[1], "x", 1), 1);
	loop_timer_stop(&victim.timer);
	loop_io_stop(&victim.io);
	loop_signal_stop(&victim.signal);
	loop_poller_stop(loop, &victim.poller);
	loop_timer_start(loop, &one.timer, 0, stop_other, &one);
	loop_timer_start(loop, &victim.timer, 1, unexpected_callback, &victim);
	loop_timer_start(loop, &end.timer, 5 * CLOCK_NS_PER_MS, note_and_stop, &end);
	busy_wait(CLOCK_NS_PER_MS);
	assert_run("az");
}

/* A phase in the deadline test: records the letter, and why it has ended. */
static void phase_over(void *context)
{
	struct actor *actor = context;
	char text[LOOP_PHASE_TEXT_SIZE];

	note(actor);
	loop_phase_text(loop, 20 * CLOCK_NS_PER_MS, text);
	assert_string_equal(text, actor->left ? "deadline of 0.05 s exceeded" : "timed out after 0.02 s");
	assert_int_equal(loop_deadline_passed(loop), actor->left);
	if (actor->other)
		loop_timer_start(loop, &actor->other->timer, 0, note_only, actor->other);
}

/* Each phase that lasts until then, and actions deferred by its end, come before the deadline's own callback. */
TEST(phases_end_at_the_deadline, create_with_fake_time, destroy)
{
	struct actor deferred = { .letter = 'd' };
	struct actor short_phase = { .letter = 's' };
	struct actor phases[] = {
		{ .letter = 'p', .left = 1, .other = &deferred },
		{ .letter = 'p', .left = 1 },
	};
	struct actor deadline = { .letter = 'D' };

	loop_phase_start(loop, &phases[0].timer, 10 * CLOCK_NS_PER_MS, unexpected_callback, NULL);
	loop_deadline_start(loop, 50 * CLOCK_NS_PER_MS, note_and_stop, &deadline);
	assert_false(loop_deadline_passed(loop));
	fake_clock_pass(5 * CLOCK_NS_PER_MS);
	loop_phase_start(loop, &phases[0].timer, CLOCK_NS_PER_S, phase_over, &phases[0]);
	loop_phase_start(loop, &short_phase.timer, 20 * CLOCK_NS_PER_MS, phase_over, &short_phase);
	loop_phase_start(loop, &phases[1].timer, 46 * CLOCK_NS_PER_MS, phase_over, &phases[1]);
	assert_run("sppdD");
	loop_deadline_stop(loop);
	/* The shutdown has its own limits. */
	short_phase.letter = 'S';
	loop_phase_start(loop, &short_phase.timer, 20 * CLOCK_NS_PER_MS, phase_over, &short_phase);
	assert_false(loop_deadline_passed(loop));
	assert_run("sppdDS");
}

static void begin_late_phase(void *context)
{
	struct actor *actor = context;

	fake_clock_pass(CLOCK_NS_PER_MS);
	loop_phase_start(loop, &actor->timer, CLOCK_NS_PER_S, phase_over, actor);
}

/* A busy process may begin a phase when its deadline has already passed. */
TEST(late_phase_ends_before_the_deadline_is_noticed, create_with_fake_time, destroy)
{
	struct actor late = { .letter = 'l', .left = 1 }, other = { .letter = 'o' };
	struct actor deadline = { .letter = 'D' };

	loop_deadline_start(loop, 50 * CLOCK_NS_PER_MS, note_and_stop, &deadline);
	loop_timer_start(loop, &other.timer, 52 * CLOCK_NS_PER_MS, begin_late_phase, &late);
	fake_clock_pass(55 * CLOCK_NS_PER_MS);
	assert_run("lD");
}

static void read_byte(void *context)
{
	struct actor *actor = context;
	char byte;

	note(actor);
	assert_int_equal(read(actor->fd, &byte, 1), 1);
	if (!--actor->left)
		loop_stop(loop);
}

/* Data that has arrived takes precedence over a timer that expired while the loop was busy. */
TEST(io_comes_before_timers, create, destroy)
{
	struct actor reader = { .letter = 'r', .left = 9 };
	struct actor limit = { .letter = 'l' };

	reader.fd = ends[0];
	loop_timer_start(loop, &limit.timer, CLOCK_NS_PER_MS, note_and_stop, &limit);
	loop_io_start(loop, &reader.io, ends[0], read_byte, &reader);
	busy_wait(3 * CLOCK_NS_PER_MS);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_run("rl");
	loop_io_stop(&reader.io);
}

/* Reports work each time. */
static bool poll_busy(void *context)
{
	struct actor *actor = context;

	note(actor);
	if (!--actor->left)
		loop_stop(loop);
	return true;
}

static bool poll_idle(void *context)
{
	struct actor *actor = context;

	actor->left++;
	return false;
}

static bool poll_idle_slowly(void *context)
{
	fake_clock_pass(10 * CLOCK_NS_PER_US);
	return poll_idle(context);
}

static bool unexpected_poll(void *context)
{
	unexpected_callback(context);
	return false;
}

TEST(loop_does_not_spin_by_default, create, destroy)
{
	struct actor one = { 0 };
	struct actor end = { .letter = 'z' };

	loop_poller_start(loop, &one.poller, unexpected_poll, unexpected_poll, &one);
	loop_timer_start(loop, &end.timer, CLOCK_NS_PER_MS, note_and_stop, &end);
	assert_run("z");
	loop_poller_stop(loop, &one.poller);
	loop_run(loop);
}

/* Even if a poller has work in each round. */
TEST(watchers_are_served_while_pollers_spin, create_with_fake_time, destroy)
{
	struct actor idle = { 0 };
	struct actor busy = { .letter = 'p' };
	struct actor reader = { .letter = 'r', .left = 9 };
	struct actor caught = { .letter = 's' };
	struct actor limit = { .letter = 'l' };
	int64_t start;

	start = clock_now();
	busy.left = UINT_MAX;
	assert_int_equal(write(ends[1], "x", 1), 1);
	reader.fd = ends[0];
	loop_spin(loop, LOOP_SPIN_ALWAYS);
	loop_poller_start(loop, &idle.poller, poll_idle_slowly, NULL, &idle);
	loop_poller_start(loop, &busy.poller, poll_busy, NULL, &busy);
	loop_io_start(loop, &reader.io, ends[0], read_byte, &reader);
	loop_signal_start(loop, &caught.signal, SIGUSR1, note_only, &caught);
	loop_timer_start(loop, &limit.timer, 5 * CLOCK_NS_PER_MS, note_and_stop, &limit);
	/* Further letters are dropped. */
	length = sizeof(letters) - 1;
	raise(SIGUSR1);
	loop_run(loop);
	assert_true(stopped_at - start >= 5 * CLOCK_NS_PER_MS);
	assert_int_equal(reader.left, 8);
	assert_true(idle.left > 1);
	loop_io_stop(&reader.io);
	loop_signal_stop(&caught.signal);
	loop_poller_stop(loop, &idle.poller);
	loop_poller_stop(loop, &busy.poller);
	loop_poller_stop(loop, &busy.poller);
}

static bool defer_once(void *context)
{
	struct actor *actor = context;

	if (!actor->left++)
		loop_timer_start(loop, &actor->timer, 0, note_and_stop, actor);
	return false;
}

/* A deferred action does not wait for hundreds of rounds. */
TEST(deferred_action_ends_spinning, create, destroy)
{
	struct actor one = { .letter = 'd' };

	loop_spin(loop, LOOP_SPIN_ALWAYS);
	loop_poller_start(loop, &one.poller, defer_once, NULL, &one);
	loop_run(loop);
	assert_int_equal(one.left, 1);
	assert_string_equal(letters, "d");
	loop_poller_stop(loop, &one.poller);
}

/* A source of work that must be armed before it wakes the loop. A byte in a pipe is the event. */
struct source {
	struct actor actor;
	int event; /* the pipe to write to when work arrives while it is armed */
	bool work; /* work is pending */
	bool armed;
	bool late; /* work arrives between the last poll and the arming */
	unsigned polls;
	unsigned arms;
	struct actor *end; /* stops the loop */
};

static bool poll_source(void *context)
{
	struct source *source = context;
	bool found = source->work;

	source->polls++;
	source->work = false;
	if (found)
		note(&source->actor);
	return found;
}

static void work_arrives(void *context)
{
	struct source *source = context;

	source->work = true;
	assert_int_equal(write(source->event, "x", 1), 1);
}

/* Work arrives after the second arming, and the end after the third, however slow the machine is. */
static bool arm_source(void *context)
{
	struct source *source = context;

	source->arms++;
	source->work |= source->late;
	source->late = false;
	source->armed = true;
	if (source->arms == 2)
		loop_timer_start(loop, &source->actor.timer, CLOCK_NS_PER_MS, work_arrives, source);
	else if (source->arms == 3)
		loop_timer_start(loop, &source->end->timer, CLOCK_NS_PER_MS, note_and_stop, source->end);
	return poll_source(source);
}

static void source_readable(void *context)
{
	struct source *source = context;
	char byte;

	assert_int_equal(read(source->actor.fd, &byte, 1), 1);
	source->armed = false;
	poll_source(source);
}

/* The loop spins, arms, polls once more, sleeps and is woken. No work is lost in between. */
TEST(pollers_are_armed_before_loop_sleeps, create, destroy)
{
	struct actor end = { .letter = 'z' };
	struct source source = { .actor = { .letter = 'w' }, .late = true, .end = &end };

	source.actor.fd = ends[0];
	source.event = ends[1];
	loop_spin(loop, 200 * CLOCK_NS_PER_US);
	loop_poller_start(loop, &source.actor.poller, poll_source, arm_source, &source);
	loop_io_start(loop, &source.actor.io, ends[0], source_readable, &source);
	assert_run("wwz");
	/* Armed at the start, where it finds the late work; after that; and after one or two wake-ups. */
	assert_true(source.arms >= 3 && source.arms <= 4);
	assert_true(source.polls > source.arms);
	loop_io_stop(&source.actor.io);
	loop_poller_stop(loop, &source.actor.poller);
}

/* After a wake-up it spins for 200 us, 20 polls here, and a few more, then sleeps. */
TEST(loop_spins_for_configured_time, create_with_fake_time, destroy)
{
	struct actor one = { 0 };
	struct actor wake = { .letter = 'w' };
	struct actor end = { .letter = 'z' };

	loop_spin(loop, 200 * CLOCK_NS_PER_US);
	loop_poller_start(loop, &one.poller, poll_idle_slowly, NULL, &one);
	loop_timer_start(loop, &wake.timer, CLOCK_NS_PER_MS, note_only, &wake);
	loop_timer_start(loop, &end.timer, 100 * CLOCK_NS_PER_MS, note_and_stop, &end);
	assert_run("wz");
	assert_in_range(one.left, 20, 200);
	loop_poller_stop(loop, &one.poller);
}

static bool work_slowly(void *context)
{
	struct actor *actor = context;

	actor->left++;
	fake_clock_pass(CLOCK_NS_PER_MS);
	return true;
}

/* Rounds with work take long; timers must not wait for many of them. The poller starts while libev sleeps. */
static void start_slow_poller(void *context)
{
	struct actor *actor = context;

	loop_poller_start(loop, &actor->poller, work_slowly, NULL, actor);
	loop_timer_start(loop, &actor->timer, 5 * CLOCK_NS_PER_MS, note_and_stop, actor);
}

TEST(slow_pollers_do_not_delay_timers, create_with_fake_time, destroy)
{
	struct actor poller = { .letter = 'l' };

	loop_spin(loop, LOOP_SPIN_ALWAYS);
	loop_timer_start(loop, &poller.timer, 0, start_slow_poller, &poller);
	assert_run("l");
	assert_in_range(poller.left, 1, 8);
	loop_poller_stop(loop, &poller.poller);
}

/*
 * libev stops watching a descriptor that the kernel rejects, and reports it when it wakes: the loop must end, or it
 * would wait forever.
 */
TEST(descriptor_rejected_by_kernel_ends_loop, create_with_fake_time, destroy)
{
	struct actor one = { 0 };
	bool complete;

	epoll_is_full = true;
	loop_io_start(loop, &one.io, ends[0], unexpected_callback, &one);
	complete = loop_run(loop);
	epoll_is_full = false;
	assert_false(complete);
	loop_io_stop(&one.io);
}

static bool stop_both_pollers(void *context)
{
	struct actor *actor = context;

	note(actor);
	loop_poller_stop(loop, &actor->other->poller);
	loop_poller_stop(loop, &actor->poller);
	return true;
}

TEST(poller_stops_another, create, destroy)
{
	struct actor actors[3] = { { .letter = 'a' }, { .letter = 'b' }, { .letter = 'c' } };
	struct actor end = { .letter = 'z' };

	/* Called in the order c, b, a: c stops itself and b, and a continues. */
	actors[2].other = &actors[1];
	actors[0].left = 2;
	loop_spin(loop, LOOP_SPIN_ALWAYS);
	loop_poller_start(loop, &actors[0].poller, poll_busy, NULL, &actors[0]);
	loop_poller_start(loop, &actors[1].poller, unexpected_poll, NULL, &actors[1]);
	loop_poller_start(loop, &actors[2].poller, stop_both_pollers, NULL, &actors[2]);
	loop_timer_start(loop, &end.timer, 3600 * CLOCK_NS_PER_S, unexpected_callback, &end);
	assert_run("caa");
	loop_timer_stop(&end.timer);
	loop_poller_stop(loop, &actors[0].poller);
}

/* With any number of free descriptors, loop_create() either returns a working loop or fails with EMFILE. */
TEST(loop_create_without_descriptors, create, destroy)
{
	struct rlimit kept, few;
	int next = dup(STDERR_FILENO);
	unsigned made = 0, refused = 0;

	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &kept), 0);
	few = kept;
	for (int more = 0; more < 6; more++) {
		struct actor one = { .letter = 's' };
		struct loop *another;

		few.rlim_cur = (rlim_t)(next + more);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		errno = 0;
		another = loop_create();
		if (another) {
			loop_signal_start(another, &one.signal, SIGUSR2, note_only, &one);
			loop_signal_stop(&one.signal);
			made++;
		} else {
			assert_int_equal(errno, EMFILE);
			refused++;
		}
		loop_destroy(another);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &kept), 0);
	}
	assert_true(made && refused);
}
