/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=getrlimit */
/* doctor tries what it calls OK: each address that leads to a device is pinged over it. */
#include "test/verbs/provider/pair.h"

#include <errno.h>
#include <sys/resource.h>

/* Whoever runs the test may lock any amount of memory. */
int __wrap_getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
	(void)resource;
	*limit = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	return 0;
}

/* Listener N's client, from 0, finds no route if bit N is set. */
static unsigned listeners, silent;

static void listening(struct cm_id *id)
{
	if (silent >> listeners++ & 1) {
		provider_fail("rdma_resolve_addr", EHOSTUNREACH, 0);
		provider.fails_once = true;
	}
}

#define BOTH   "OK    address   10.0.0.1, 10.0.0.2 lead to roce0\n"
#define SECOND "OK    address   10.0.1.1, 10.0.1.2 lead to roce1\n"
#define UNTRIED(address, device)                                                                                       \
	"read  address   " address " leads to " device ": not tried, this device does not reach itself: "

static const struct {
	const char *shows;
	unsigned silent;
	const char *software; /* roce0 is soft-RoCE of this interface */
	const char *fails;    /* that call */
	bool once;
	enum outcome outcome;
	const char *lines[2], *not_there;
} rows[] = {
	{ "each address answers", .lines = { BOTH, SECOND }, .not_there = "read  address" },
	{ "one does not, although its device reaches itself: it is not called OK", .silent = 1 << 1,
	  .lines = { "OK    address   10.0.0.1 leads to roce0\n"
		     "WARN  address   10.0.0.2 leads to roce0, but does not reach itself: resolving the address: ",
		     SECOND } },
	{ "a card that may have no loopback is no failure, and one address of an interface is enough", .silent = 1 << 0,
	  .lines = { UNTRIED("10.0.0.1", "roce0"), SECOND }, .not_there = "10.0.0.2" },
	{ "neither has", .silent = 3, .lines = { UNTRIED("10.0.0.1", "roce0"), UNTRIED("10.0.1.1", "roce1") } },
	{ "a card that refuses is one, with or without loopback", .fails = "ibv_create_cq",
	  .outcome = OUTCOME_NO_DEVICE,
	  .lines = { "FAIL  address   10.0.0.1 leads to roce0, but does not reach itself: ",
		     "FAIL  address   10.0.1.1 leads to roce1, but does not reach itself: " } },
	{ "16 MiB cannot be locked, and less can", .fails = "ibv_reg_mr", .once = true,
	  .lines = { BOTH, "WARN  memory    roce0: registering 16 MiB of memory: " } },
	{ "no memory can", .fails = "ibv_reg_mr", .outcome = OUTCOME_NO_DEVICE,
	  .lines = { "FAIL  memory    roce0: registering memory: ", "FAIL  memory    roce1: registering memory: " } },
	{ "soft-RoCE that is stuck, beside a card that is not", .silent = 1 << 0, .software = "lo",
	  .lines = { "WARN  address   10.0.0.1 leads to roce0, but does not reach itself: resolving the address: ",
		     "hint: rdma link delete roce0; rdma link add roce0 type rxe netdev lo\n" } },
	{ "of soft-RoCE's addresses those of another interface are of use within this host only", .software = "d0",
	  .lines = { "WARN  address   10.0.0.1 leads to roce0 within this host: soft-RoCE sends to other hosts by its "
		     "own "
		     "interface d0, not by lo\n",
		     SECOND },
	  .not_there = "10.0.0.2" },
	{ "if it does not answer there, to make the device again would not help", .silent = 1 << 0, .software = "d0",
	  .lines = { "WARN  address   10.0.0.1 leads to roce0, but ", SECOND }, .not_there = "rdma link" },
};

#define DOCTOR "doctor --timeout 200ms --transport verbs"

static void make_software(const char *interface)
{
	provider_write("d0\n", "/sys/class/infiniband/roce0/parent");
	provider_write("0000:0000:0000:0000:0000:ffff:0a00:0001\n", "/sys/class/infiniband/roce0/ports/1/gids/0");
	provider_write(interface, "/sys/class/infiniband/roce0/ports/1/gid_attrs/ndevs/0");
}

TEST(addresses)
{
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;
		enum outcome outcome;
		bool good;
		char *text;

		provider_begin(PROVIDER_ROCE, 0);
		if (rows[row].software)
			make_software(rows[row].software);
		listeners = 0;
		silent = rows[row].silent;
		provider.listening = listening;
		provider_fail(rows[row].fails, ENOMEM, 0);
		provider.fails_once = rows[row].once;
		outcome = line_run(DOCTOR, &capture, &text);
		good = outcome == rows[row].outcome && strstr(text, rows[row].lines[0]) &&
		       strstr(text, rows[row].lines[1]) && !(rows[row].not_there && strstr(text, rows[row].not_there));
		if (!good)
			print_message("# %s: %d\n%s\n", rows[row].shows, outcome, text);
		assert_true(good);
		free(text);
		provider_end();
	}
}

/*
 * What this host's tables say of a silent peer is the remedy, in place of the list of what is possible; then what
 * becomes of an ordinary packet. A cause in the finding itself needs no remedy.
 */
TEST(silent_peer)
{
	static const struct {
		const char *cause, *refusal, *fix; /* NULL: none */
	} peers[] = {
		{ NULL, NULL, "check that the host is up, that it also uses RoCE" },
		{ NULL, "let 10.0.0.2 pass", "let 10.0.0.2 pass" },
		{ "10.0.0.2 answers no ARP on lo", "let 10.0.0.2 pass", "10.0.0.2 answers no ARP on lo" },
		{ "10.0.0.2 answers no ARP on lo", "let 10.0.0.2 pass", NULL },
	};
	struct capture capture;
	char fix[64], *text;
	const char *finding;

	for (size_t i = 0; i < LENGTH(peers); i++) {
		provider_begin(PROVIDER_ROCE, 0);
		provider.route_cause = peers[i].cause;
		provider.refusal = peers[i].refusal;
		provider.unheard = !peers[i].fix;
		if (peers[i].fix)
			provider_fail("rdma_connect", EHOSTUNREACH, 4); /* after the pings of this host's addresses */
		line_run(DOCTOR " 10.0.0.2", &capture, &text);
		snprintf(fix, sizeof(fix), "hint: %s", peers[i].fix ? peers[i].fix : "");
		/* Other findings may have hints, too. */
		finding = strstr(text, "FAIL  ping      10.0.0.2:7174: connecting: ");
		if (!finding ||
		    (peers[i].fix ? !strstr(finding, fix) : strstr(finding, fix) || !strstr(finding, peers[i].cause)))
			fail_msg("%s", text);
		free(text);
		provider_end();
	}
}

/* The ping's hint would be to run doctor. */
TEST(an_address_that_fails_at_once)
{
	struct capture capture;
	char *text;

	provider_begin(PROVIDER_ROCE, 0);
	provider_fail("rdma_resolve_addr", EHOSTUNREACH, 9); /* after the pings of this host, and the route */
	line_run(DOCTOR " 10.0.0.2", &capture, &text);
	if (!strstr(text, "FAIL  ping      10.0.0.2:7174: resolving the address: ") ||
	    strstr(text, "to check the path"))
		fail_msg("%s", text);
	free(text);
	provider_end();
}

/* The routers of a path are asked from the address of the pings. */
TEST(routers_of_a_device)
{
	static const struct {
		const char *options;
		uint8_t source[4];
	} asked[] = {
		{ "", { 0 } },
		{ " --device roce1", { 10, 0, 1, 1 } },
		{ " --device roce1 --source 10.0.1.2", { 10, 0, 1, 2 } },
	};
	struct capture capture;
	char line[128], *text;

	for (size_t row = 0; row < LENGTH(asked); row++) {
		provider_begin(PROVIDER_ROCE, 0);
		snprintf(line, sizeof(line), DOCTOR " 10.0.1.2%s", asked[row].options);
		provider_fail("rdma_connect", ECONNREFUSED, 4); /* that ends it, without a look for links */
		line_run(line, &capture, &text);
		assert_memory_equal(provider.looked_up_from, asked[row].source, 4);
		free(text);
		provider_end();
	}
}

/* A device's packets leave by the address's interface. */
TEST(address_of_another_interface)
{
	struct capture capture;
	char *text;

	provider_begin(PROVIDER_ROCE, 0);
	provider.elsewhere = "10.0.0.2 is on f0, but the route to the peer is by f1";
	line_run(DOCTOR " 10.9.0.2 --source 10.0.0.2", &capture, &text);
	if (!strstr(text, "no route to the host; 10.0.0.2 is on f0, but the route to the peer is by f1 (") ||
	    !strstr(text, "hint: see ip route get 10.9.0.2 from 10.0.0.2 oif lo\n"))
		fail_msg("%s", text);
	free(text);
	provider_end();
}

/* Without its module InfiniBand has no interface, and no address: each command reports it and fails. */
TEST(no_interface)
{
	const char *cause = "no address of this host leads to ib0: it has no network interface (IPoIB)\n";
	const char *remedy = "on the host, as root: modprobe ib_ipoib\n";
	struct capture capture;
	enum outcome outcome;
	char *text;

	provider_begin(PROVIDER_INFINIBAND, 0);
	provider_write("", "/sys/module/ib_core");
	for (unsigned device = 0; device < 2; device++) {
		provider_write("InfiniBand\n", "/sys/class/infiniband/ib%u/ports/1/link_layer", device);
		provider_write("4: ACTIVE\n", "/sys/class/infiniband/ib%u/ports/1/state", device);
	}
	provider_fail("rdma_resolve_addr", ENODEV, 0);
	outcome = line_run(DOCTOR, &capture, &text);
	assert_non_null(strstr(text, cause));
	assert_non_null(strstr(text, remedy));
	assert_int_equal(outcome, OUTCOME_NO_DEVICE);
	free(text);
	provider_fail("rdma_bind_addr", ENODEV, 0);
	line_run("selftest --timeout 200ms --transport verbs", &capture, &text);
	free(text);
	assert_non_null(strstr(capture.text, cause));
	assert_non_null(strstr(capture.text, remedy));
	provider_end();
}
