/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the command line to the library call: the arguments for librdmacm and libibverbs on an InfiniBand fabric, which
 * no software device can simulate. The provider records every relevant call as a line.
 */
#include "test/verbs/provider/pair.h"

#include <errno.h>

static struct cm_id *somebody;

/* A client that connects to the listener at once. */
static void ask(struct cm_id *listener)
{
	const struct rdma_conn_param parameters = { .qp_num = 99 };
	struct sockaddr_in to = provider.devices[0]->ports[0].address;

	to.sin_port = listener->base.route.addr.src_sin.sin_port;
	somebody = cm_ask(NULL, (const struct sockaddr *)&to, &parameters);
}

#define IPOIB                                                                                                          \
	"create_id space 0x0002\n"                                                                                     \
	"resolve 239.1.2.3:0 from none in 20 ms\n"                                                                     \
	"create_qp UD by the manager\n"                                                                                \
	"join 239.1.2.3:0 as full member\n"                                                                            \
	"leave 239.1.2.3:0\n"

#define REFUSED(port) "create_id space 0x0106\nbind 0.0.0.0:" port "\nreject\n"

static const struct {
	const char *line;
	enum outcome outcome;
	const char *calls;
	const char *fails; /* the failing call, with that errno value */
	int error;
	bool endless; /* connection manager events without end */
	bool asked;   /* a listener has a client */
} rows[] = {
	{ "mckey -M ff12:401b:ffff::5 -b 10.0.0.1 -C 0", OUTCOME_OK,
	  "create_id space 0x0111\n"
	  "bind 10.0.0.1:0\n"
	  "create_qp UD by the manager\n"
	  "join gid ff12:401b:ffff::5 sid 1110000 mask ffffffffffff0000 as full member\n"
	  "leave gid ff12:401b:ffff::5 sid 1110000 mask ffffffffffff0000\n" },
	{ "mckey -M 0 -b 10.0.0.1 -C 0", OUTCOME_OK,
	  "create_id space 0x0111\n"
	  "bind 10.0.0.1:0\n"
	  "create_qp UD by the manager\n"
	  "join gid :: sid 1110000 mask ffffffffffff0000 as full member\n"
	  "leave gid :: sid 1110000 mask ffffffffffff0000\n" },
	{ "mckey -m 0.0.0.0 -b 10.0.0.1 -C 0", OUTCOME_OK,
	  "create_id space 0x0111\n"
	  "resolve 0.0.0.0:0 from 10.0.0.1:0 in 20 ms\n"
	  "create_qp UD by the manager\n"
	  "join 0.0.0.0:0 as full member\n"
	  "leave 0.0.0.0:0\n" },
	{ "mckey -m 239.1.2.3 -p ipoib -C 0", OUTCOME_OK, IPOIB },
	{ "mckey -m 239.1.2.3 -p 0x0002 -C 0", OUTCOME_OK, IPOIB },
	{ "mckey -m 239.1.2.3 -o -s -l -C 0", OUTCOME_OK,
	  "create_id space 0x0111\n"
	  "resolve 239.1.2.3:0 from none in 20 ms\n"
	  "create_qp UD by the manager, no loopback\n"
	  "join 239.1.2.3:0 as send-only full member\n"
	  "leave 239.1.2.3:0\n" },
	{ "ucmatose -f gid -s fe80::2:c903:1 -b fe80::2:c903:2 -P ib --timeout 3", OUTCOME_NO_CONNECTION,
	  "create_id space 0x013f\n"
	  "resolve gid fe80::2:c903:1 sid 13f1d2f mask ffffffffffffffff from "
	  "gid fe80::2:c903:2 sid 13f0000 mask ffffffffffff0000 in 20 ms\n"
	  "resolve the route in 2000 ms\n"
	  "create_qp RC by the manager\n"
	  "connect reads 1/1 retry 7 rnr 7 data 32\n" },
	{ "ucmatose -f gid -b fe80::2:c903:1 -p 5000", OUTCOME_NO_CONNECTION,
	  "create_id space 0x0106\n"
	  "bind gid fe80::2:c903:1 sid 1061388 mask ffffffffffffffff\n",
	  .fails = "rdma_listen", .error = EADDRINUSE },
	{ "ucmatose -s 10.0.0.2 -P ib -t 0x60 -a 14", OUTCOME_NO_CONNECTION,
	  "create_id space 0x013f\n"
	  "resolve 10.0.0.2:7471 from none in 20 ms\n"
	  "option tos 96\n"
	  "option ack 14\n"
	  "resolve the route in 2000 ms\n"
	  "create_qp RC by the manager\n"
	  "connect reads 1/1 retry 7 rnr 7 data 32\n" },
	/* The loop still runs: the deadline expires. */
	{ "ucmatose -s 10.0.0.2 --deadline 100ms", OUTCOME_NO_CONNECTION,
	  "create_id space 0x0106\n"
	  "resolve 10.0.0.2:7471 from none in 20 ms\n",
	  .endless = true },
	/* A failure before there is a connection is the server's: no protection domain for a client. */
	{ "rping -s -P --idle-timeout 20ms", OUTCOME_INTERNAL, REFUSED("7174"), .fails = "ibv_alloc_pd",
	  .error = ENOMEM, .asked = true },
	{ "rping -s", OUTCOME_INTERNAL, REFUSED("7174"), .fails = "ibv_alloc_pd", .error = ENOMEM, .asked = true },
	{ "ucmatose", OUTCOME_INTERNAL, REFUSED("7471"), .fails = "ibv_alloc_pd", .error = ENOMEM, .asked = true },
};

TEST(calls)
{
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;
		enum outcome outcome;
		char *text;

		provider_begin(PROVIDER_INFINIBAND, 0);
		provider_fail(rows[row].fails, rows[row].error, 0);
		provider.events_without_end = rows[row].endless;
		provider.listening = rows[row].asked ? ask : NULL;
		outcome = line_run(rows[row].line, &capture, &text);
		free(text);
		if (outcome != rows[row].outcome)
			print_message("# %s\n%s\n", rows[row].line, capture.text);
		assert_int_equal(outcome, rows[row].outcome);
		assert_string_equal(provider.trace, rows[row].calls);
		if (rows[row].asked)
			cm_ask_end(somebody);
		provider_end();
	}
}
