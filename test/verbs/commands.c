/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands against each other, in every variant that transport/verbs supports, on each fabric. Events are in order,
 * or scrambled.
 */
#include "test/verbs/provider/pair.h"

enum {
	ROCE = 1 << PROVIDER_ROCE,
	IB = 1 << PROVIDER_INFINIBAND,
	IWARP = 1 << PROVIDER_IWARP,
	ALL = ROCE | IB | IWARP,
};

static const struct {
	unsigned fabrics;
	const char *server, *client;
	const char *verdict; /* part of the client's output, or after "<" the server's */
} rows[] = {
	{ ALL, "rping -s -V -a @", "rping -c -V -C 10 -S 1000 -a @", "10 pings of 1000 bytes" },
	{ ALL, "rping -s -V", "rping -c -V -C 3 -S 65535 -a @", "3 pings of 65535 bytes" },
	{ ALL, "rping -s -a @ -q", "rping -c -V -q -C 10 -a @", "answered and verified" },
	{ ALL, "rping -s -a @ -q", "rping -c -V -C 10 -a @", "answered and verified" },
	{ ALL, "rping -s -a @ -P", "rping -c -V -C 10 -a @ -a @ -a @", "answered" },
	{ ALL, "rping -s -a @ --inline 32", "rping -c -V -C 10 -a @ --inline 64", "answered" },
	{ ALL, "rping -s -a 10.0.0.2 --port-num 2", "rping -c -C 2 -a 10.0.0.2", "2 pings" },
	{ ALL, "rping -s -a fd00::1", "rping -c -V -C 3 -a fd00::1 --tos 32", "answered and verified" },
	{ ALL, "rping -s -a 10.0.1.1", "rping -c -V -C 3 -I @ -a 10.0.1.1", "answered and verified" },
	{ ROCE | IB, "rping -s -a @ --rnr-retry 3", "rping -c -C 3 -a @ --retry 2 --rnr-retry 5 --tos 96", "3 pings" },
	{ IB, "rping -s -a @ --service-level 5", "rping -c -V -C 3 -a @ --service-level 4", "answered" },
	{ ALL, "ucmatose -b @ -c 4", "ucmatose -s @ -c 4", "40 messages of 100 bytes each way" },
	{ ALL, "ucmatose -b @ -c 40 -C 30", "ucmatose -s @ -c 40 -C 30", "1200 messages" },
	{ ALL, "ucmatose -b @ -c 2 -S 100000", "ucmatose -s @ -c 2 -S 100000", "of 100000 bytes" },
	{ ALL, "ucmatose -b @ -c 3 -m", "ucmatose -s @ -c 3 -m", "30 messages" },
	{ ALL, "ucmatose -b @ -c 3 -C 0", "ucmatose -s @ -c 3 -C 0", "3 connections" },
	{ ALL, "ucmatose -b @ -P ib -t 32", "ucmatose -s @ -P ib -t 32", "10 messages" },
	{ IB, "ucmatose -f gid -b fe80::2:c903:1 -P ib", "ucmatose -f gid -s fe80::2:c903:1 -b fe80::2:c903:2 -P ib",
	  "10 messages" },
	{ ROCE | IB, "ucmatose -b @ -a 14 -S 64", "ucmatose -s @ -a 10 --inline 64 -S 64", "of 64 bytes" },
	{ ROCE | IB, "mckey -m # -b @", "mckey -m # -b @ -s --pause 5ms", "<10 of 10" },
	{ ROCE | IB, "mckey -m # -b @ -c 3 -S 2048", "mckey -m # -b @ -s --pause 5ms -c 3 -S 2048", "<90 of 90" },
	{ ROCE | IB, "mckey -m # -b @", "mckey -m # -b @ -s --pause 5ms -o", "<10 of 10" },
	{ ROCE | IB, "mckey -m # -b @ -S 60", "mckey -m # -b @ -s --pause 5ms -o --inline 64 -S 60", "<10 of 10" },
	{ IB, "mckey -m # -b @", "mckey -m # -b 10.0.0.2 -s --pause 5ms -l", "<10 of 10" },
	{ IB, "mckey -m # -b @ -p ipoib", "mckey -m # -b @ -p ipoib -s --pause 5ms", "<10 of 10" },
	{ IB, "mckey -M ff12:401b:ffff::5 -b @", "mckey -M ff12:401b:ffff::5 -b @ -s --pause 5ms", "<10 of 10" },
};

static void run_rows(enum provider_fabric fabric)
{
	const char *asked = getenv("ORDERS");
	unsigned orders = asked ? (unsigned)atoi(asked) : 3;

	for (size_t row = 0; row < LENGTH(rows); row++)
		for (unsigned seed = 0; rows[row].fabrics & 1u << fabric && seed < orders; seed++) {
			const char *verdict = rows[row].verdict;
			struct pair pair = { 0 };

			provider_begin(fabric, seed);
			pair_run(&pair, rows[row].server, rows[row].client, NULL);
			pair_finish(&pair, rows[row].server,
				    !pair.server_outcome && !pair.client_outcome &&
					    strstr(*verdict == '<' ? pair.server_text : pair.client_text,
						   verdict + (*verdict == '<')));
		}
}

TEST(on_roce)
{
	run_rows(PROVIDER_ROCE);
}

TEST(on_infiniband)
{
	run_rows(PROVIDER_INFINIBAND);
}

TEST(on_iwarp)
{
	run_rows(PROVIDER_IWARP);
}
