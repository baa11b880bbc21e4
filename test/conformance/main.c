/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conformance TRANSPORT ADDRESS [REMOVE-COMMAND]: tests a backend against the contract of transport.h, over that
 * address's device. The table below has the unsupported cases of backends and fabrics; a skipped case is not passed.
 * CONFORMANCE_SPIN=USEC in the environment: spins that long before sleeping; -1: forever.
 */
#include <stdio.h>
#include <string.h>

#include "test/conformance/pair.h"

struct exclusion {
	const char *transport;
	enum fabric fabric;
	const char *name;
	const char *reason;
};

static const struct exclusion exclusions[] = {
	{ "verbs", FABRIC_IWARP, "ack_timeout", "iWARP has no acknowledgement timeout" },
	{ "verbs", FABRIC_IWARP, "client_withdraws", "the kernel keeps a client until iWARP has connected it" },
	{ "verbs", FABRIC_IWARP, "receiver_not_ready", "siw drops a connection whose receiver is not ready" },
	{ "verbs", FABRIC_ROCE, "group_no_loopback", "soft-RoCE refuses the flag" },
};

extern const struct conformance_case __start_cases[], __stop_cases[];

static const char *excluded(const char *transport, const struct bench *bench, const struct conformance_case *row)
{
	const struct domain *domain = bench->client.endpoint->domain;

	if (row->group && !domain->multicast)
		return "the device has no multicast";
	if (row->group && bench->address.family == ADDRESS_IP6 && !domain->ip6_multicast)
		return "Linux has no IPv6 groups on RoCE";
	for (size_t index = 0; index < sizeof(exclusions) / sizeof(*exclusions); index++)
		if (!strcmp(exclusions[index].transport, transport) && exclusions[index].fabric == domain->fabric &&
		    !strcmp(exclusions[index].name, row->name))
			return exclusions[index].reason;
	return NULL;
}

/* The device's features, from an endpoint that resolves it. */
static bool probe(struct bench *bench)
{
	return bench_listen(bench, NULL) && bench_resolve(bench, NULL);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	const char *remove_command = argc > 3 ? argv[3] : NULL;
	int passed = 0, failed = 0, skipped = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3) {
		fprintf(stderr, "usage: conformance TRANSPORT ADDRESS [REMOVE-COMMAND]\n");
		return 2;
	}
	for (const struct conformance_case *row = __start_cases; row < __stop_cases; row++) {
		const char *reason;

		if (row->removal != (remove_command != NULL))
			continue;
		if (!bench_open(&bench, argv[1], argv[2], remove_command) || !probe(&bench)) {
			printf("FAIL %s: cannot reach %s over %s\n", row->name, argv[2], argv[1]);
			return 1;
		}
		reason = excluded(argv[1], &bench, row);
		bench_clear(&bench);
		bench_close(&bench);
		if (reason) {
			printf("skip %s: %s\n", row->name, reason);
			skipped++;
			continue;
		}
		if (!bench_open(&bench, argv[1], argv[2], remove_command))
			return 1;
		row->run(&bench);
		bench_clear(&bench);
		bench_close(&bench);
		printf("%s %s%s%s\n", bench.why ? "FAIL" : "ok", row->name, bench.why ? ": " : "",
		       bench.why ? bench.why : "");
		bench.why ? failed++ : passed++;
	}
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed || !passed;
}
