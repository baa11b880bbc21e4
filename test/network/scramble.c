/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soft's queue of events and completions, in place of the program's. With RDMATEST_SCRAMBLE=SEED a seeded generator
 * chooses the queue and the time: commands must not rely on an order that a kernel does not guarantee.
 */
#include <stdlib.h>

#include "core/clock.h"
#include "transport/soft/base/queue.h"

static loop_callback scheduled_turn;
static unsigned state; /* of rand_r(3); 0: events and completions come in their order */

static unsigned below(int limit)
{
	return (unsigned)(rand_r(&state) % limit);
}

static void start_timer(struct loop *loop, struct loop_timer *timer, int64_t delay, loop_callback *callback,
			void *context)
{
	if (state && callback == scheduled_turn)
		delay = below(2000) * CLOCK_NS_PER_US;
	loop_timer_start(loop, timer, delay, callback, context);
}

#define loop_timer_start start_timer
#define soft_queue_open	 open_in_order
#define soft_queue_next	 next_in_order
#include "transport/soft/base/queue.c"
#undef soft_queue_open
#undef soft_queue_next

struct soft_queue *soft_queue_open(struct soft_transport *transport)
{
	const char *seed = getenv("RDMATEST_SCRAMBLE");

	state = seed && *seed ? (unsigned)atoi(seed) * 2 + 1 : 0;
	return open_in_order(transport);
}

/* The peer sends no data before the RTU, and librdmacm reports the connection when it sends the RTU. */
static bool is_connecting(const struct soft_completion *completion)
{
	return completion->endpoint && completion->endpoint->base.state == ENDPOINT_CONNECTING;
}

enum soft_queued soft_queue_next(struct soft_queue *queue)
{
	enum soft_queued next = next_in_order(queue);

	if (!state || !next)
		return next;
	if (!below(4))
		return SOFT_QUEUED_NOTHING;
	if (!queue->events.count || !queue->ring.count || is_connecting(&queue->completions[queue->ring.head]))
		return next;
	return below(2) ? SOFT_QUEUED_EVENT : SOFT_QUEUED_COMPLETION;
}
