/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=getrandom */
/* The start without random numbers. Destroyed objects are freed soon, also while a flood keeps the loop busy. */
#include "test/unit/unit.h"

#include <errno.h>
#include <unistd.h>

#include "transport/soft/base/shared.h"

enum {
	TURNS = 200,
};

static int random_error; /* of getrandom(2) */

ssize_t __real_getrandom(void *buffer, size_t length, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned flags)
{
	errno = random_error;
	return random_error ? -1 : __real_getrandom(buffer, length, flags);
}

struct flood {
	struct loop *loop;
	struct transport *transport;
	struct channel *channel;
	unsigned turns;
	unsigned max; /* the maximum of endpoints waiting to be freed */
};

/* Readable in each turn of the loop, as a server socket during a flood of requests. */
static void readable(void *context)
{
	const struct endpoint_options options = { .port_space = PORT_SPACE_TCP };
	struct flood *flood = context;
	struct endpoint *endpoint;
	unsigned waiting = 0;

	assert_int_equal(endpoint_create(ENDPOINT_LISTENER, flood->channel, &options, NULL, NULL, &endpoint),
			 OUTCOME_OK);
	endpoint_destroy(endpoint);
	for (const struct soft_endpoint *other = soft_of(flood->transport)->destroyed_endpoints; other;
	     other = other->next_destroyed)
		waiting++;
	if (waiting > flood->max)
		flood->max = waiting;
	if (++flood->turns == TURNS)
		loop_stop(flood->loop);
}

/* As under a seccomp filter of a container. */
TEST(no_random_numbers)
{
	static const struct log log = { .name = "test" };
	struct loop *loop = loop_create();
	struct transport *transport;
	struct capture errors;
	struct error error;

	random_error = ENOSYS;
	alarm(10);
	capture_begin(&errors);
	assert_int_equal(transport_open("soft", loop, &log, &error, &transport), OUTCOME_INTERNAL);
	log_report(&log, &error);
	assert_string_equal(capture_end(&errors), "test: getting random numbers: Function not implemented (38)\n");
	alarm(0);
	random_error = 0;
	loop_destroy(loop);
}

TEST(flood_does_not_delay_freeing)
{
	static const struct log log = { .name = "test" };
	struct flood flood = { .loop = loop_create() };
	struct loop_io io = { 0 };
	int ends[2];

	assert_non_null(flood.loop);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "", 1), 1);
	assert_int_equal(transport_open("soft", flood.loop, &log, &(struct error){ 0 }, &flood.transport), OUTCOME_OK);
	assert_int_equal(channel_create(flood.transport, &flood.channel), OUTCOME_OK);
	loop_io_start(flood.loop, &io, ends[0], readable, &flood);
	loop_run(flood.loop);
	assert_int_equal(flood.turns, TURNS);
	assert_in_range(flood.max, 1, 3);
	loop_io_stop(&io);
	transport_close(flood.transport);
	loop_destroy(flood.loop);
	close(ends[0]);
	close(ends[1]);
}
