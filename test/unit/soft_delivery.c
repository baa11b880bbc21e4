/* SPDX-License-Identifier: BSD-2-Clause */
/* What a command hears of an endpoint, and in which order. */
#include "transport/soft/delivery.h"

#include <errno.h>

#include "test/unit/unit.h"
#include "transport/backend.h"

static const struct log quiet_log = { .name = "test", .quiet = true };
static struct loop *loop;
static struct transport *transport;
static struct endpoint *endpoint;
static uint32_t heard; /* completions */
static enum event_kind last;

static void on_event(void *owner, struct endpoint *told, const struct endpoint_event *event)
{
	(void)owner;
	(void)told;
	last = event->kind;
}

static void on_completion(void *owner, struct endpoint *told, const struct completion *completion)
{
	(void)owner;
	assert_int_equal(told->state, ENDPOINT_ESTABLISHED);
	assert_int_equal(completion->tag, heard++);
}

static void begin(enum endpoint_state at)
{
	static const struct endpoint_handlers handlers = { .event = on_event, .completion = on_completion };
	const struct endpoint_options options = { .port_space = PORT_SPACE_TCP };
	struct channel *channel;

	loop = loop_create();
	assert_non_null(loop);
	assert_int_equal(transport_open("soft", loop, &quiet_log, &transport), OUTCOME_OK);
	assert_int_equal(channel_create(transport, &channel), OUTCOME_OK);
	assert_int_equal(endpoint_create(ENDPOINT_CONNECTION, channel, &options, &handlers, NULL, &endpoint), 0);
	endpoint->state = at;
	heard = 0;
	soft_enter(soft_of(transport));
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
			soft_tell_refusal((struct soft_endpoint *)endpoint, "no", rows[row].reason, NULL, 0);
		else
			soft_tell_failure((struct soft_endpoint *)endpoint, "no", "errno", rows[row].error);
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
	soft_tell((struct soft_endpoint *)endpoint, SOFT_EVENT_DISCONNECTED, NULL, 0);
	soft_leave(soft_of(transport));
	assert_int_equal(heard, COUNT);
	assert_int_equal(last, EVENT_DISCONNECTED);
	end();
	/* What was done before a failure is heard before it. */
	begin(ENDPOINT_ESTABLISHED);
	completion.tag = 0;
	soft_complete((struct soft_endpoint *)endpoint, &completion, 0);
	soft_tell_failure((struct soft_endpoint *)endpoint, "no", "errno", ECONNRESET);
	soft_leave(soft_of(transport));
	assert_int_equal(heard, 1);
	assert_int_equal(last, EVENT_FAILED);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_absent),
		cmocka_unit_test(completions_come_in_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
