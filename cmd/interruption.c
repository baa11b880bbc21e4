/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handlers change each other's place instead of keeping a state, so that nothing writable is needed at file scope:
 *
 *   first signal ---> first(): wakes the loop through WAKE, ignores further ones for GRACE
 *   GRACE is over --> arm():   puts second() in place
 *   next signal ----> second(): ends the process
 *   the run is over   late():  as first(), but there is no loop to wake any more
 *
 * The grace is there because one request to stop often arrives as two signals: timeout(1) signals its child, and right
 * after that the whole process group.
 */
#include "cmd/interruption.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

#include "cmd/fatal_exit.h"

enum {
	GRACE_US = 300 * 1000
};

/* The signal that libev hears of. Not constant in glibc, which takes some real-time signals for itself. */
#define WAKE SIGRTMIN

static void handle(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

static void second(int number)
{
	(void)number;
	fatal_exit(ABRUPT_INTERRUPTED);
}

static void arm(int number)
{
	(void)number;
	handle(SIGINT, second);
	handle(SIGTERM, second);
}

static void begin_grace(void)
{
	const struct itimerval grace = { .it_value.tv_usec = GRACE_US };

	handle(SIGINT, SIG_IGN);
	handle(SIGTERM, SIG_IGN);
	handle(SIGHUP, SIG_IGN);
	handle(SIGALRM, arm);
	setitimer(ITIMER_REAL, &grace, NULL);
}

static void first(int number)
{
	int kept = errno;

	(void)number;
	begin_grace();
	raise(WAKE);
	errno = kept;
}

static void late(int number)
{
	int kept = errno;

	(void)number;
	begin_grace();
	errno = kept;
}

/* A terminal that is closed asks once, and does not ask those whom nohup(1) keeps from hearing it. */
static void catch_hangup(void)
{
	struct sigaction now;

	if (!sigaction(SIGHUP, NULL, &now) && now.sa_handler != SIG_IGN)
		handle(SIGHUP, first);
}

void interruption_catch(struct loop *loop, struct loop_signal *watcher, loop_callback *callback, void *owner)
{
	catch_hangup();
	loop_signal_start(loop, watcher, WAKE, callback, owner);
	handle(SIGINT, first);
	handle(SIGTERM, first);
}

void interruption_release(struct loop_signal *watcher)
{
	struct sigaction now;
	sigset_t all, kept;

	sigemptyset(&all);
	sigaddset(&all, SIGINT);
	sigaddset(&all, SIGTERM);
	sigaddset(&all, SIGHUP);
	sigprocmask(SIG_BLOCK, &all, &kept);
	if (!sigaction(SIGINT, NULL, &now) && now.sa_handler == first) {
		handle(SIGINT, late);
		handle(SIGTERM, late);
	}
	handle(SIGHUP, SIG_IGN);
	sigprocmask(SIG_SETMASK, &kept, NULL);
	/* Only now: libev leaves the signal to its default, which is to end the process. */
	loop_signal_stop(watcher);
}
