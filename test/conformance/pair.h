/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The conformance suite's testbed: two ends in one process on one loop, each with a record of all its events and
 * completions, in order.
 */
#pragma once

#include "transport/transport.h"

enum {
	RECORD_MAX = 4096,
	PAIR_DEPTH = 16
};

/* An event or completion reported to an end. */
struct record {
	enum event_kind event; /* 0 for a completion */
	enum outcome outcome;
	struct completion completion;
};

struct end {
	struct bench *bench;
	struct endpoint *endpoint;
	struct record records[RECORD_MAX];
	size_t count;
	uint8_t private_data[256]; /* of the last event with private data */
	size_t private_length;
	struct group_address group;
	enum event_kind destroy_at; /* destroy the endpoint in the callback of this event */
};

struct bench {
	struct loop *loop;
	struct log log;
	struct error error; /* the last one reported */
	struct transport *transport;
	struct channel *channel;
	struct address address; /* the tested device's, port 0 */
	struct address group;
	const char *remove_command; /* removes the device, or NULL */
	struct endpoint *listener;
	struct end listening; /* its events */
	struct end server;
	struct end client;
	bool accept;		/* answer requests with endpoint_accept(), else reject */
	bool answer_requests;	/* answer requests at all */
	size_t accept_receives; /* receives posted before accepting, each of region size */
	struct region *server_region;
	struct region *client_region;
	size_t region_size;
	unsigned access;
	const char *why; /* the case's failure; NULL: none */
	char why_text[256];
};

struct conformance_case {
	const char *name;
	void (*run)(struct bench *bench);
	bool group;   /* needs multicast */
	bool removal; /* removes the device: runs last */
};

/* Without gaps between them, in the section that main() reads. */
#define CASE_ENTRY __attribute__((used, section("cases"), aligned(__alignof__(struct conformance_case))))

/* Begins a case's function; with conditions: CASE(name, .group = true). */
#define CASE(function, ...)                                                                                            \
	static void function(struct bench *bench);                                                                     \
	static const struct conformance_case function##_case CASE_ENTRY = { #function, function, __VA_ARGS__ };        \
	static void function(struct bench *bench)

/* Ends the case at the first failed expectation. */
#define REQUIRE(bench, condition)                                                                                      \
	do {                                                                                                           \
		if (!bench_require(bench, condition, #condition, __FILE__, __LINE__))                                  \
			return;                                                                                        \
	} while (0)

/* A new transport for each case: leftovers of one must not affect the next. */
bool bench_open(struct bench *bench, const char *transport, const char *address, const char *remove_command);
void bench_close(struct bench *bench);

bool bench_require(struct bench *bench, bool condition, const char *text, const char *file, int line);

/* The options of the functions below if theirs are NULL. */
struct endpoint_options bench_options(const struct bench *bench);

/* Runs the loop until the end has an event, or a completion of that kind, count times in all. */
bool bench_await_event(struct bench *bench, const struct end *end, enum event_kind event);
bool bench_await_completions(struct bench *bench, const struct end *end, enum work_kind kind, size_t count);
/* Runs the loop until the end has failed, lost its peer, or has failed work. */
bool bench_await_trouble(struct bench *bench, const struct end *end);
/* Runs the loop for a while, for unexpected events. */
void bench_linger(struct bench *bench, int milliseconds);
/* Prints the last failed call's error. Errors of events and completions are printed when they arrive. */
void bench_report(struct bench *bench);

/* The name of that enum event_kind, enum work_kind. */
size_t end_events(const struct end *end, int event);
size_t end_completions(const struct end *end, int kind);
const struct completion *end_last_completion(const struct end *end, enum work_kind kind);

/* An endpoint of the end, or NULL. The end's own, or the listener, is the caller's to set. */
struct endpoint *end_create(struct end *end, enum endpoint_kind kind, const struct endpoint_options *options);
/* A listener on the tested address; it answers requests as the testbed says, with options. */
bool bench_listen(struct bench *bench, const struct endpoint_options *options);
/* Accepts the request that the testbed has not answered. */
enum outcome bench_accept(struct bench *bench);
/* A client that starts to resolve the listener's address. */
bool bench_start_client(struct bench *bench, const struct endpoint_options *options);
/* A client that gets as far as EVENT_ROUTE_RESOLVED, with its queue and region. */
bool bench_resolve(struct bench *bench, const struct endpoint_options *options);
/* Listener and client, connected. */
bool bench_connect(struct bench *bench, const struct endpoint_options *options);
/* The same, established at the server, too. */
bool bench_connect_both(struct bench *bench);
/* A group member that gets as far as EVENT_ADDRESS_RESOLVED, with its queue and region. */
bool bench_member(struct bench *bench, struct end *end, struct region **region, const struct endpoint_options *options);

/* Destroys the case's objects, and lets the loop free them. */
void bench_clear(struct bench *bench);
