/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces signals.c without WITH_DIAGNOSTICS: a second signal, one in signals_wait(), and the watchdog, have the
 * default action.
 */
#include "cmd/signals.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "core/clock.h"

static const uint8_t numbers[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

void fatal_exit_name(const char *name)
{
	(void)name;
}

void signals_catch(struct loop *loop, struct loop_signal watchers[SIGNALS], int64_t watchdog, loop_callback *callback,
		   void *context)
{
	/* Signals ignored by the caller stay ignored; the loop replaces the others' actions. */
	for (size_t i = 0; i < SIGNALS; i++)
		if (signal(numbers[i], SIG_IGN) != SIG_IGN)
			loop_signal_start(loop, &watchers[i], numbers[i], callback, context);
	(void)watchdog;
}

bool signals_received(void)
{
	return false;
}

bool signals_wait(int fd, int64_t until)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	int64_t left = until - clock_now();
	struct sigaction kept[SIGNALS];
	bool is_readable;

	if (left <= 0)
		return poll(&readable, 1, 0) > 0;
	for (size_t i = 0; i < SIGNALS; i++)
		if (!sigaction(numbers[i], NULL, &kept[i]) && kept[i].sa_handler != SIG_IGN)
			signal(numbers[i], SIG_DFL);
	is_readable = poll(&readable, 1, (int)(left / CLOCK_NS_PER_MS)) > 0;
	for (size_t i = 0; i < SIGNALS; i++)
		sigaction(numbers[i], &kept[i], NULL);
	return is_readable;
}

void signals_release(struct loop_signal watchers[SIGNALS])
{
	for (size_t i = 0; i < SIGNALS; i++)
		loop_signal_stop(&watchers[i]);
}

void watchdog_start(int64_t nanoseconds)
{
	alarm((unsigned)(nanoseconds / CLOCK_NS_PER_S) + 3);
}
