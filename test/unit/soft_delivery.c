/* SPDX-License-Identifier: BSD-2-Clause */
/* What a command hears of an endpoint, and in which order. */
#include "transport/soft/delivery.h"
#include "transport/soft/qp/qp_internal.h"

#include <errno.h>

#include "test/unit/unit.h"
#include "transport/backend.h"

static const struct log quiet_log = { .name = "test", .sink = &log_discard };
static struct loop *loop;
static struct transport *transport;
static struct endpoint *endpoint;
static uint32_t heard; /* completions */
static unsigned events;
static enum event_kind last;

static void on_event(void *owner, struct endpoint *told, const struct endpoint_event *event)
{
	(void)owner;
	(void)told;
	events++;
	last = event->kind;
}

static void on_completion(void *owner, struct endpoint *told, const struct completion *completion)
{
	(void)owner;
	assert_int_equal(told->state, ENDPOINT_ESTABLISHED);
	assert_int_equal(completion->tag, heard++);
}

static void begin_with(enum endpoint_kind kind, enum endpoint_state at)
{
	static const struct endpoint_handlers handlers = { .event = on_event, .completion = on_completion };
	const struct endpoint_options options = { .port_space = PORT_SPACE_TCP };
	struct channel *channel;

	loop = loop_create();
	assert_non_null(loop);
	assert_int_equal(transport_open("soft", loop, &quiet_log, &transport), OUTCOME_OK);
	assert_int_equal(channel_create(transport, &channel), OUTCOME_OK);
	assert_int_equal(endpoint_create(kind, channel, &options, &handlers, NULL, &endpoint), 0);
	endpoint->state = at;
	heard = events = 0;
	soft_enter(soft_of(transport));
}

static void begin(enum endpoint_state at)
{
	begin_with(ENDPOINT_CONNECTION, at);
}

static void end(void)
{
	transport_close(transport);
	loop_destroy(loop);
}

static void who_is_absent(void **state)
{
	static const struct {
		enum endpoint_state at;
		int reason, error; /* one of the two */
		bool absent;
	} rows[] = {
		{ ENDPOINT_CONNECTING, REJECTED_NO_LISTENER, 0, true },
		{ ENDPOINT_CONNECTING, REJECTED_BY_CONSUMER, 0, false },
		{ ENDPOINT_CONNECTING, ETIMEDOUT, 0, false }, /* a reason of that number */
		{ ENDPOINT_CONNECTING, 0, ECONNREFUSED, true },
		{ ENDPOINT_CONNECTING, 0, ETIMEDOUT, true },
		{ ENDPOINT_CONNECTING, 0, EHOSTUNREACH, true },
		{ ENDPOINT_CONNECTING, 0, ECONNRESET, false },
		{ ENDPOINT_ESTABLISHED, 0, ECONNREFUSED, false },
		{ ENDPOINT_ACCEPTING, 0, ETIMEDOUT, false },
	};

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		begin(rows[row].at);
		if (rows[row].reason)
			soft_event_rejected((struct soft_endpoint *)endpoint, "no", rows[row].reason, NULL, 0);
		else
			soft_event_failed((struct soft_endpoint *)endpoint, "no", "errno", rows[row].error);
		soft_leave(soft_of(transport));
		assert_int_equal(last, EVENT_FAILED);
		assert_int_equal(endpoint->absent, rows[row].absent);
		end();
	}
}

/* More than the ring holds at first, from its middle on, and then the end. */
static void completions_come_in_their_order(void **state)
{
	enum {
		FIRST = 100,
		COUNT = 1000
	};
	struct completion completion = { .kind = WORK_SEND };

	(void)state;
	begin(ENDPOINT_ESTABLISHED);
	while (completion.tag < COUNT) {
		soft_complete((struct soft_endpoint *)endpoint, &completion, 0);
		if (++completion.tag == FIRST) {
			soft_leave(soft_of(transport));
			assert_int_equal(heard, FIRST);
			soft_enter(soft_of(transport));
		}
	}
	soft_event_queue((struct soft_endpoint *)endpoint, SOFT_EVENT_DISCONNECTED, NULL, 0);
	soft_leave(soft_of(transport));
	assert_int_equal(heard, COUNT);
	assert_int_equal(last, EVENT_DISCONNECTED);
	end();
	/* What was done before a failure is heard before it. */
	begin(ENDPOINT_ESTABLISHED);
	for (completion.tag = 0; completion.tag < 2; completion.tag++)
		soft_complete((struct soft_endpoint *)endpoint, &completion, 0);
	soft_event_failed((struct soft_endpoint *)endpoint, "no", "errno", ECONNRESET);
	soft_leave(soft_of(transport));
	assert_int_equal(heard, 2);
	assert_int_equal(last, EVENT_FAILED);
	end();
}

/* The loop wakes for what is queued outside of any call-back, each time. */
static void what_is_queued_is_heard_in_the_next_turn(void **state)
{
	struct completion completion = { .kind = WORK_SEND };

	(void)state;
	begin(ENDPOINT_ESTABLISHED);
	soft_leave(soft_of(transport));
	for (; completion.tag < 3; completion.tag++) {
		soft_complete((struct soft_endpoint *)endpoint, &completion, 0);
		assert_int_equal(heard, completion.tag);
		loop_run(loop);
		assert_int_equal(heard, completion.tag + 1);
	}
	end();
}

/* Freed with completions and an event in the queues, of which the completions begin in the middle of the ring. */
static void a_freed_endpoint_hears_nothing(void **state)
{
	struct soft_endpoint *freed;
	struct completion completion = { .kind = WORK_SEND };

	(void)state;
	begin(ENDPOINT_ESTABLISHED);
	freed = (struct soft_endpoint *)endpoint;
	soft_complete(freed, &completion, 0);
	soft_leave(soft_of(transport));
	endpoint_destroy(endpoint);
	soft_complete(freed, &completion, 0);
	soft_event_queue(freed, SOFT_EVENT_DISCONNECTED, NULL, 0);
	loop_run(loop);
	assert_int_equal(heard, 1);
	assert_int_equal(events, 0);
	end();
}

/* Once; a request that no command knows of is refused in the name of its listener. */
static void whom_a_lack_of_memory_fails(void **state)
{
	static const struct {
		enum endpoint_kind kind;
		enum endpoint_state at;
		bool request; /* is what starves */
		enum event_kind told;
	} rows[] = {
		{ ENDPOINT_CONNECTION, ENDPOINT_CONNECTING, false, EVENT_FAILED },
		{ ENDPOINT_LISTENER, ENDPOINT_LISTENING, false, EVENT_REQUEST_FAILED },
		{ ENDPOINT_LISTENER, ENDPOINT_LISTENING, true, EVENT_REQUEST_FAILED },
	};

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		static const struct soft_path path;
		static const struct address peer = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 } };
		struct soft_endpoint *no_memory;

		begin_with(rows[row].kind, rows[row].at);
		soft_leave(soft_of(transport));
		no_memory = (struct soft_endpoint *)endpoint;
		if (rows[row].request)
			no_memory = soft_requested_create(no_memory, &path, &peer);
		soft_fail_no_memory(no_memory);
		assert_int_equal(events, 0);
		loop_run(loop);
		assert_int_equal(events, 1);
		assert_int_equal(last, rows[row].told);
		/* The request is gone. */
		assert_int_equal(soft_of(transport)->endpoints != NULL, !row);
		soft_enter(soft_of(transport));
		soft_leave(soft_of(transport));
		assert_int_equal(events, 1);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_absent),
		cmocka_unit_test(completions_come_in_their_order),
		cmocka_unit_test(what_is_queued_is_heard_in_the_next_turn),
		cmocka_unit_test(a_freed_endpoint_hears_nothing),
		cmocka_unit_test(whom_a_lack_of_memory_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
