/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bench of the conformance suite: two ends in one process on one loop, each with a record of all that the transport
 * told it, in sequence.
 */
#ifndef TEST_CONFORMANCE_PAIR_H
#define TEST_CONFORMANCE_PAIR_H

#include "transport/transport.h"

enum {
	RECORD_MAX = 4096,
	PAIR_DEPTH = 16
};

/* One thing the transport told an end: an event or a completion. */
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
	uint8_t private_data[256]; /* of the last event that had any */
	size_t private_length;
	struct group_address group;
	enum event_kind destroy_at; /* destroy the endpoint inside the call-back of this event */
};

struct bench {
	struct loop *loop;
	struct log log;
	struct error error; /* the last that was reported */
	struct transport *transport;
	struct channel *channel;
	struct address address; /* of the device under test, port 0 */
	struct address group;
	const char *remove_command; /* takes the device away, or NULL */
	struct endpoint *listener;
	struct end listening; /* its events */
	struct end server;
	struct end client;
	bool accept;		/* answer requests with endpoint_accept(), else reject */
	bool answer_requests;	/* at all */
	size_t accept_receives; /* receives posted before accepting, each of region size */
	struct region *server_region;
	struct region *client_region;
	size_t region_size;
	unsigned access;
	const char *why; /* the failure of the case, NULL while it is good */
	char why_text[256];
};

struct conformance_case {
	const char *name;
	void (*run)(struct bench *bench);
	bool group;   /* needs multicast */
	bool removal; /* takes the device away: runs last */
};

extern const struct conformance_case connection_cases[];
extern const struct conformance_case data_cases[];
extern const struct conformance_case group_cases[];

/* Ends the case at the first thing that is not so. */
#define REQUIRE(bench, condition)                                                                                      \
	do {                                                                                                           \
		if (!bench_require(bench, condition, #condition, __FILE__, __LINE__))                                  \
			return;                                                                                        \
	} while (0)

/* A fresh transport for each case: what one leaves behind must not help or hurt the next. */
bool bench_open(struct bench *bench, const char *transport, const char *address, const char *remove_command);
void bench_close(struct bench *bench);

bool bench_require(struct bench *bench, bool condition, const char *text, const char *file, int line);

/* What the functions below take if their options are NULL. */
struct endpoint_options bench_options(const struct bench *bench);

/* Runs the loop until the end has been told an event, or a completion of that kind, count times in all. */
bool bench_await_event(struct bench *bench, const struct end *end, enum event_kind event);
bool bench_await_completions(struct bench *bench, const struct end *end, enum work_kind kind, size_t count);
/* Runs the loop until the end has failed, lost its peer, or been told of failed work. */
bool bench_await_trouble(struct bench *bench, const struct end *end);
/* Runs the loop for a while, to see what comes. */
void bench_linger(struct bench *bench, int milliseconds);
/* Prints the error of the last call that failed. Those of events and completions are printed when they come. */
void bench_report(struct bench *bench);

/* Of that enum event_kind, enum work_kind. */
size_t end_events(const struct end *end, int event);
size_t end_completions(const struct end *end, int kind);
const struct completion *end_last_completion(const struct end *end, enum work_kind kind);

/* A listener on the address under test; its requests are answered as the bench says, by options. */
bool bench_listen(struct bench *bench, const struct endpoint_options *options);
/* A client that starts to resolve the listener's address. */
bool bench_start_client(struct bench *bench, const struct endpoint_options *options);
/* A client that gets as far as EVENT_ROUTE_RESOLVED, with its queue and region. */
bool bench_resolve(struct bench *bench, const struct endpoint_options *options);
/* Listener and client, connected. */
bool bench_connect(struct bench *bench, const struct endpoint_options *options);
/* The same, and the server knows it too. */
bool bench_connect_both(struct bench *bench);
/* A group member that gets as far as EVENT_ADDRESS_RESOLVED, with its queue and region. */
bool bench_member(struct bench *bench, struct end *end, struct region **region, const struct endpoint_options *options);

/* Frees what the case made, and lets the loop reap it. */
void bench_clear(struct bench *bench);

#endif
