/* SPDX-License-Identifier: BSD-2-Clause */
/* Order of events and completions of an endpoint. */
#include "transport/soft/base/queue.h"
#include "transport/soft/qp/qp_internal.h"
#include "transport/soft/soft.h"

#include <errno.h>

#include "test/unit/unit.h"
#include "transport/backend.h"

static enum error_kind last_kind; /* of the errors of events */
static bool last_lost;		  /* their text has a cause of the peer's silence */
static unsigned errors;

static const struct log quiet_log = { .name = "test", .silent = true };
static struct loop *loop;
static struct transport *transport;
static struct endpoint *endpoint;
static uint32_t completions;
static unsigned events;
static enum event_kind last;
static size_t last_length; /* of its private data */

static void on_event(void *context, struct endpoint *reported, const struct endpoint_event *event)
{
	last_kind = reported->transport->error.kind;
	last_lost = strstr(reported->transport->error.cause, "the local kernel refused to send");
	errors += error_is_set(&reported->transport->error);
	events++;
	last = event->kind;
	last_length = event->private_length;
}

static void on_completion(void *context, struct endpoint *reported, const struct completion *completion)
{
	assert_int_equal(reported->state, ENDPOINT_ESTABLISHED);
	assert_int_equal(completion->tag, completions++);
}

static void begin_kind(enum endpoint_kind kind, enum endpoint_state initial)
{
	static const struct endpoint_handlers handlers = { .event = on_event, .completion = on_completion };
	const struct endpoint_options options = { .port_space = PORT_SPACE_TCP };
	struct channel *channel;

	loop = loop_create();
	assert_non_null(loop);
	assert_int_equal(transport_open("soft", loop, &quiet_log, &(struct error){ 0 }, &transport), OUTCOME_OK);
	assert_int_equal(channel_create(transport, &channel), OUTCOME_OK);
	assert_int_equal(endpoint_create(kind, channel, &options, &handlers, NULL, &endpoint), 0);
	endpoint->state = initial;
	completions = events = errors = 0;
	soft_callback_begin(soft_of(transport));
}

static void begin(enum endpoint_state initial)
{
	begin_kind(ENDPOINT_CONNECTION, initial);
}

static void end(void)
{
	transport_close(transport);
	loop_destroy(loop);
}

TEST(kinds_of_errors)
{
	static const struct {
		enum endpoint_state initial;
		int reason, error; /* one of them is 0 */
		enum error_kind kind;
		const char *code_name; /* of error; NULL: it is an errno */
	} rows[] = {
		{ ENDPOINT_CONNECTING, REJECTED_NO_LISTENER, 0, ERROR_NO_LISTENER },
		{ ENDPOINT_CONNECTING, REJECTED_BY_CONSUMER, 0, ERROR_OTHER },
		{ ENDPOINT_CONNECTING, ETIMEDOUT, 0, ERROR_OTHER }, /* a reject reason with the number of ETIMEDOUT */
		{ ENDPOINT_CONNECTING, 0, ECONNREFUSED, ERROR_NO_LISTENER },
		{ ENDPOINT_CONNECTING, 0, ETIMEDOUT, ERROR_NO_REPLY },
		{ ENDPOINT_CONNECTING, 0, EHOSTUNREACH, ERROR_NO_REPLY },
		{ ENDPOINT_CONNECTING, 0, ECONNRESET, ERROR_OTHER },
		{ ENDPOINT_ESTABLISHED, 0, ECONNREFUSED, ERROR_OTHER },
		{ ENDPOINT_ACCEPTING, 0, ETIMEDOUT, ERROR_NO_REPLY },
		{ ENDPOINT_CONNECTING, REJECTED_TIMEOUT, 0, ERROR_NO_REPLY },
		{ ENDPOINT_ESTABLISHED, 0, NAK_REMOTE_ACCESS, ERROR_OTHER, "NAK" },
		{ ENDPOINT_ESTABLISHED, 0, COMPLETION_REMOTE_OPERATION, ERROR_OTHER, COMPLETION_CODE_NAME },
		{ ENDPOINT_ESTABLISHED, 0, COMPLETION_RETRY_EXCEEDED, ERROR_OTHER, COMPLETION_CODE_NAME },
	};

	struct soft_socket lost = { .fd = -1 };
	bool answered;

	for (size_t row = 0; row < LENGTH(rows); row++) {
		begin(rows[row].initial);
		last_kind = rows[row].kind ? ERROR_OTHER : ERROR_NO_REPLY;
		lost.send_error = EPERM;
		answered = rows[row].code_name ? rows[row].error != COMPLETION_RETRY_EXCEEDED
					       : rows[row].reason && rows[row].kind != ERROR_NO_REPLY;
		((struct soft_endpoint *)endpoint)->path.socket = &lost;
		if (rows[row].reason)
			soft_event_rejected((struct soft_endpoint *)endpoint, "no", rows[row].reason, NULL, 0);
		else
			soft_event_failed((struct soft_endpoint *)endpoint, "no", rows[row].code_name, rows[row].error);
		soft_callback_end(soft_of(transport));
		assert_int_equal(last, EVENT_FAILED);
		assert_int_equal(last_kind, rows[row].kind);
		assert_int_equal(last_lost, !answered);
		((struct soft_endpoint *)endpoint)->path.socket = NULL;
		end();
	}
}

/* A request that could not be reported for lack of memory, and was withdrawn by its peer. */
TEST(request_without_handlers_fails)
{
	begin(ENDPOINT_REQUESTED);
	endpoint->handlers = NULL;
	soft_event_failed((struct soft_endpoint *)endpoint, "no", NULL, ECONNREFUSED);
	soft_callback_end(soft_of(transport));
	assert_int_equal(events + errors, 0);
	end();
}

/* Whatever order RDMATEST_SCRAMBLE chooses, a client has its connection before the server's first message. */
TEST(connection_comes_before_its_messages)
{
	char seed[12];

	for (unsigned number = 0; number < 20; number++) {
		snprintf(seed, sizeof(seed), "%u", number);
		setenv("RDMATEST_SCRAMBLE", seed, 1);
		begin(ENDPOINT_CONNECTING);
		soft_event_queue((struct soft_endpoint *)endpoint, SOFT_EVENT_ESTABLISHED, "hello", 5);
		soft_complete((struct soft_endpoint *)endpoint, WORK_RECEIVE, 0, 0);
		for (unsigned turn = 0; turn < 100 && !completions; turn++) {
			soft_callback_end(soft_of(transport));
			soft_callback_begin(soft_of(transport));
		}
		assert_int_equal(completions, 1);
		assert_int_equal(events, 1);
		assert_int_equal(last_length, 5);
		end();
	}
	unsetenv("RDMATEST_SCRAMBLE");
}

/* More completions than the initial ring size, starting in the middle of the ring, then the disconnect event. */
TEST(completions_are_ordered)
{
	enum {
		FIRST = 100,
		COUNT = 1000
	};
	uint32_t tag = 0;

	begin(ENDPOINT_ESTABLISHED);
	while (tag < COUNT) {
		soft_complete((struct soft_endpoint *)endpoint, WORK_SEND, tag, 0);
		if (++tag == FIRST) {
			soft_callback_end(soft_of(transport));
			assert_int_equal(completions, FIRST);
			soft_callback_begin(soft_of(transport));
		}
	}
	soft_event_queue((struct soft_endpoint *)endpoint, SOFT_EVENT_DISCONNECTED, NULL, 0);
	soft_callback_end(soft_of(transport));
	assert_int_equal(completions, COUNT);
	assert_int_equal(last, EVENT_DISCONNECTED);
	end();
	/* Completions queued before a failure are delivered before it. */
	begin(ENDPOINT_ESTABLISHED);
	for (tag = 0; tag < 2; tag++)
		soft_complete((struct soft_endpoint *)endpoint, WORK_SEND, tag, 0);
	soft_event_failed((struct soft_endpoint *)endpoint, "no", NULL, ECONNRESET);
	soft_callback_end(soft_of(transport));
	assert_int_equal(completions, 2);
	assert_int_equal(last, EVENT_FAILED);
	end();
}

/* The endpoint is freed with queued completions and an event. */
TEST(freed_endpoint_gets_nothing)
{
	struct soft_endpoint *freed;

	begin(ENDPOINT_ESTABLISHED);
	freed = (struct soft_endpoint *)endpoint;
	soft_complete(freed, WORK_SEND, 0, 0);
	soft_callback_end(soft_of(transport));
	endpoint_destroy(endpoint);
	soft_complete(freed, WORK_SEND, 0, 0);
	soft_event_queue(freed, SOFT_EVENT_DISCONNECTED, NULL, 0);
	loop_run(loop);
	assert_int_equal(completions, 1);
	assert_int_equal(events, 0);
	end();
}

/* One event is delivered. For a request that the command does not know yet, the listener gets it. */
TEST(no_memory_events)
{
	static const struct {
		enum endpoint_kind kind;
		enum endpoint_state initial;
		bool request; /* the request is without memory */
		enum event_kind reported;
	} rows[] = {
		{ ENDPOINT_CONNECTION, ENDPOINT_CONNECTING, false, EVENT_FAILED },
		{ ENDPOINT_LISTENER, ENDPOINT_LISTENING, false, EVENT_REQUEST_FAILED },
		{ ENDPOINT_LISTENER, ENDPOINT_LISTENING, true, EVENT_REQUEST_FAILED },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		static const struct soft_path path;
		static const struct address peer = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 } };
		struct soft_endpoint *no_memory;

		begin_kind(rows[row].kind, rows[row].initial);
		soft_callback_end(soft_of(transport));
		no_memory = (struct soft_endpoint *)endpoint;
		if (rows[row].request)
			no_memory = soft_request_create(no_memory, &path, &peer);
		soft_fail_no_memory(no_memory);
		assert_int_equal(events, 0);
		loop_run(loop);
		assert_int_equal(events, 1);
		assert_int_equal(last, rows[row].reported);
		/* The request is destroyed. */
		assert_int_equal(soft_of(transport)->endpoints != NULL, !row);
		soft_callback_begin(soft_of(transport));
		soft_callback_end(soft_of(transport));
		assert_int_equal(events, 1);
		end();
	}
}

/* Delivering a failed endpoint's queue may still lack memory. */
TEST(no_memory_of_failed_endpoint)
{
	begin(ENDPOINT_FAILED);
	soft_fail_no_memory((struct soft_endpoint *)endpoint);
	soft_callback_end(soft_of(transport));
	assert_int_equal(events, 0);
	assert_int_equal(errors, 0);
	end();
}
