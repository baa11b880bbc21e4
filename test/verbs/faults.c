/* SPDX-License-Identifier: BSD-2-Clause */
/* Failing calls, missing devices, and vanishing peers: each is reported with its cause, without leaks. */
/* link: -Wl,--wrap=privileges_in_container -Wl,--wrap=privileges_dev_is_private */
/* link: -Wl,--wrap=privileges_have -Wl,--wrap=privileges_may */
#include "test/verbs/provider/pair.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/privileges.h"

static const struct pair_lines {
	const char *server, *client;
} rping = { "rping -s -a @", "rping -c -C 3 -a @" }, own = { "rping -s -q -a @", "rping -c -q -C 3 -a @" },
  ucmatose = { "ucmatose -b @ -c 2 -m -t 32", "ucmatose -s @ -c 2 -m -t 32 -a 14" },
  mckey = { "mckey -m # -b @ -C 5", "mckey -m # -b @ -s --pause 1ms -C 5" },
  native_group = { "mckey -M ff12:401b:ffff::5 -b @ -C 5", "mckey -M ff12:401b:ffff::5 -b @ -s --pause 1ms -C 5" };

#define NO_OBJECT(end)                                                                                                 \
	": Resource temporarily unavailable (11)\n"                                                                    \
	"test " end ": hint: the control group of this process may have used up its rdma.max\n"

static const struct {
	const char *call;
	int error;
	const struct pair_lines *lines;
	enum outcome worst; /* of the end with the failing call, if its first use fails */
	const char *cause;  /* the reported error's; NULL: the failure does no harm */
} rows[] = {
	{ "rdma_create_event_channel", EMFILE, &rping, OUTCOME_INTERNAL, "creating an event channel" },
	{ "rdma_create_event_channel", EMFILE, &ucmatose, OUTCOME_INTERNAL, "creating an event channel" },
	{ "rdma_create_id", ENOMEM, &rping, OUTCOME_INTERNAL, "creating a connection identifier" },
	{ "rdma_create_id", EAGAIN, &mckey, OUTCOME_INTERNAL, "creating a connection identifier" },
	{ "rdma_bind_addr", EADDRNOTAVAIL, &rping, OUTCOME_NO_CONNECTION, "binding: not an address of this host" },
	{ "rdma_bind_addr", EADDRNOTAVAIL, &native_group, OUTCOME_NO_CONNECTION,
	  "binding: not an address of this host" },
	{ "rdma_resolve_addr", EADDRNOTAVAIL, &rping, OUTCOME_NO_CONNECTION, "no local port is free" },
	{ "rdma_listen", EADDRINUSE, &rping, OUTCOME_NO_CONNECTION, "listening: the port is in use" },
	{ "rdma_resolve_addr", ENETUNREACH, &rping, OUTCOME_NO_CONNECTION, "no route to the host" },
	{ "rdma_resolve_addr", ENOMEM, &mckey, OUTCOME_INTERNAL, "resolving the address" },
	{ "ucma_get_device", ENOMEM, &rping, OUTCOME_INTERNAL, "Cannot allocate memory" },
	{ "ucma_get_device", EACCES, &ucmatose, OUTCOME_NO_CONNECTION, "status -13" },
	{ "rdma_resolve_route", EINVAL, &rping, OUTCOME_NO_CONNECTION, "resolving the route" },
	{ "rdma_set_option", EINVAL, &ucmatose, OUTCOME_FAILED, "setting the type of service to 32" },
	{ "rdma_connect", ECONNREFUSED, &rping, OUTCOME_NO_CONNECTION, "connecting: nobody listens there" },
	{ "rdma_accept", EINVAL, &rping, OUTCOME_NO_CONNECTION, "accepting: Invalid argument" },
	{ "rdma_establish", EINVAL, &own, OUTCOME_NO_CONNECTION, "establishing: Invalid argument" },
	{ "rdma_disconnect", EINVAL, &rping, OUTCOME_FAILED, "disconnecting: Invalid argument" },
	{ "rdma_migrate_id", ENOMEM, &ucmatose, OUTCOME_FAILED, "migrating to another event channel" },
	{ "rdma_init_qp_attr", EINVAL, &own, OUTCOME_INTERNAL, "moving the queue pair to state" },
	{ "rdma_get_cm_event", EIO, &rping, OUTCOME_INTERNAL, "event channel: reading an event" },
	{ "rdma_create_qp_ex", ENOMEM, &rping, OUTCOME_INTERNAL, "creating a queue pair" },
	{ "ibv_create_qp", ENOMEM, &own, OUTCOME_INTERNAL, "creating a queue pair" },
	{ "ibv_modify_qp", EINVAL, &own, OUTCOME_INTERNAL, "moving the queue pair to state" },
	{ "ibv_modify_qp", EINVAL, &rping, OUTCOME_OK, NULL },
	{ "ibv_query_device", EIO, &rping, OUTCOME_INTERNAL, "opening the device" },
	{ "ibv_query_port", EIO, &rping, OUTCOME_INTERNAL, "opening the device" },
	{ "ibv_query_port", EIO, &mckey, OUTCOME_INTERNAL, "opening the device" },
	{ "ibv_alloc_pd", EPERM, &rping, OUTCOME_INTERNAL, "opening the device" },
	{ "ibv_create_comp_channel", EMFILE, &rping, OUTCOME_INTERNAL, "opening the device" },
	{ "ibv_create_cq", ENOMEM, &rping, OUTCOME_INTERNAL, "creating a completion queue" },
	{ "ibv_req_notify_cq", EIO, &rping, OUTCOME_INTERNAL, "arming a completion queue" },
	{ "ibv_reg_mr", ENOMEM, &rping, OUTCOME_INTERNAL, "registering memory" },
	{ "ibv_post_send", ENOMEM, &rping, OUTCOME_INTERNAL, "posting a send" },
	{ "ibv_post_recv", ENOMEM, &rping, OUTCOME_INTERNAL, "posting a receive" },
	{ "ibv_poll_cq", EIO, &rping, OUTCOME_FAILED, "polling a completion queue" },
	{ "ibv_get_cq_event", EIO, &rping, OUTCOME_FAILED, "the device was removed" },
	{ "ibv_get_cq_event", EBADF, &rping, OUTCOME_FAILED, "reading a completion event" },
	{ "ibv_get_cq_event", EINTR, &rping, OUTCOME_OK, NULL },
	{ "ibv_query_qp", EIO, &rping, OUTCOME_OK, NULL },
	{ "ibv_create_ah", ENOMEM, &mckey, OUTCOME_INTERNAL, "creating the group's address handle" },
	{ "rdma_join_multicast", ENODEV, &mckey, OUTCOME_NO_CONNECTION, "joining the group" },
	{ "rdma_create_event_channel", ENODEV, &rping, OUTCOME_NO_DEVICE, "creating an event channel" },
	{ "rdma_bind_addr", ENOMEM, &rping, OUTCOME_INTERNAL, "binding: Cannot allocate memory" },
	{ "rdma_listen", ENOMEM, &rping, OUTCOME_INTERNAL, "listening: Cannot allocate memory" },
	{ "rdma_get_cm_event", EAGAIN, &rping, OUTCOME_OK, NULL },
	{ "rdma_leave_multicast", EINVAL, &mckey, OUTCOME_OK, NULL },
	/* The limits of a control group. */
	{ "ibv_alloc_pd", EAGAIN, &rping, OUTCOME_INTERNAL, "opening the device" NO_OBJECT("client") },
	{ "ibv_create_cq", EAGAIN, &rping, OUTCOME_INTERNAL, "creating a completion queue" NO_OBJECT("client") },
	{ "rdma_create_qp_ex", EAGAIN, &rping, OUTCOME_INTERNAL, "creating a queue pair" NO_OBJECT("client") },
	{ "ibv_reg_mr", EAGAIN, &ucmatose, OUTCOME_INTERNAL, "registering memory" NO_OBJECT("client") },
	{ "ibv_create_ah", EAGAIN, &mckey, OUTCOME_INTERNAL,
	  "creating the group's address handle" NO_OBJECT("server") },
};

TEST(calls_that_fail)
{
	for (size_t row = 0; row < LENGTH(rows); row++)
		for (unsigned after = 0; after < 4; after++) {
			struct pair pair = { .grace_ms = 20 };
			enum outcome worst;

			provider_begin(PROVIDER_ROCE, 0);
			provider_fail(rows[row].call, rows[row].error, after);
			provider.fails_once = rows[row].error == EINTR || rows[row].error == EAGAIN;
			pair_run(&pair, rows[row].lines->server, rows[row].lines->client, "500ms");
			worst = pair.server_outcome > pair.client_outcome ? pair.server_outcome : pair.client_outcome;
			/* Every failure is reported. */
			pair_finish(&pair, rows[row].call,
				    (!worst || *pair.capture.text) &&
					    (after || (worst == rows[row].worst &&
						       (!worst || strstr(pair.capture.text, rows[row].cause)))));
		}
}

static unsigned memory_after;
static const char *memory_call;

static void run_short(struct pair *pair)
{
	provider_fail(memory_call, ENOMEM, memory_after);
	provider.fails_once = true;
}

/* Each allocation fails once, up to the last. */
TEST(memory_runs_short)
{
	static const char *const calls[] = { "calloc", "malloc", "realloc" };
	static const struct {
		enum provider_fabric fabric;
		const struct pair_lines *lines;
	} runs[] = { { PROVIDER_IWARP, &rping }, { PROVIDER_ROCE, &ucmatose }, { PROVIDER_ROCE, &mckey } };

	for (size_t run = 0; run < LENGTH(runs); run++)
		for (size_t call = 0; call < LENGTH(calls); call++) {
			bool reached = true;

			memory_call = calls[call];
			for (memory_after = 0; reached; memory_after++) {
				struct pair pair = { .begun = run_short, .grace_ms = 20 };

				provider_begin(runs[run].fabric, 0);
				pair_run(&pair, runs[run].lines->server, runs[run].lines->client, "500ms");
				reached = provider.calls > memory_after;
				pair_finish(&pair, memory_call,
					    !(pair.server_outcome || pair.client_outcome) || *pair.capture.text);
			}
			assert_true(call > 0 || memory_after > 5);
		}
}

#define NO_CM ": /dev/infiniband/rdma_cm cannot be used (connections): "

static bool in_container, is_privileged;

bool __wrap_privileges_in_container(void)
{
	return in_container;
}

bool __wrap_privileges_dev_is_private(void)
{
	return in_container;
}

/* The user of the tests is not root, but could become root. */
bool __wrap_privileges_have(unsigned capability)
{
	return is_privileged;
}

bool __wrap_privileges_may(unsigned capability)
{
	return true;
}

/* Missing parts of a machine. A written file is not a device file. */
TEST(machines_without)
{
	static const struct {
		const char *cause, *hint, *removed[3], *written, *content, *call;
		int error;
		bool no_provider, container;
	} lacks[] = {
		/* If files cannot be seen, the calls decide, and they succeed. */
		{ NULL, .removed = { "/sys" } },
		{ NULL, .removed = { "/sys/class/infiniband", "/sys/class/infiniband_verbs" } },
		{ NULL, .removed = { "/dev/infiniband/uverbs1" } },
		{ NULL, .call = "scandir", .error = EACCES },

		{ ": no RDMA device on this machine (none in /sys/class/infiniband)\n",
		  "software device: rdma link add rxe0 type rxe netdev lo (before Linux 5.17 also: modprobe rdma_rxe; "
		  "echo lo >/sys/module/rdma_rxe/parameters/add); if it fails: journalctl -k -g rdma_rxe; without a "
		  "device: --transport soft",
		  .removed = { "/sys/class/infiniband", "/dev/infiniband" } },
		{ ": no RDMA device, module or port can be seen in /sys: it is not mounted (2)\n",
		  .removed = { "/sys", "/dev/infiniband" } },
		{ ": no RDMA device in this network namespace (rdma system: netns exclusive)\n",
		  "without a device: --transport soft", .removed = { "/sys/class/infiniband", "/dev/infiniband" },
		  .written = "/sys/module/ib_core/parameters/netns_mode", .content = "N\n" },
		{ ": kernel modules not loaded: ib_uverbs\n", "modprobe -a ib_uverbs",
		  .removed = { "/sys/class/infiniband_verbs", "/dev/infiniband" } },
		{ NO_CM "No such file or directory (2)\n",
		  "start the container with the device /dev/infiniband/rdma_cm (of a service: PrivateDevices=no)",
		  .removed = { "/dev/infiniband" }, .container = true },
		{ NO_CM "No such file or directory (2)\n",
		  "as root: mkdir -p /dev/infiniband; mknod -m 666 /dev/infiniband/rdma_cm c 1 3",
		  .removed = { "/dev/infiniband" } },
		{ ": roce0 has no provider library\n",
		  "install its package: ibverbs-providers (Debian), libibverbs (Fedora)", .no_provider = true },

		{ ": kernel modules not loaded: rdma_cm rdma_ucm\n", "modprobe -a rdma_cm rdma_ucm",
		  .removed = { "/dev/infiniband/rdma_cm", "/sys/class/misc/rdma_cm" } },
		{ ": kernel modules not loaded: rdma_cm rdma_ucm\n", "on the host: modprobe -a rdma_cm rdma_ucm",
		  .removed = { "/dev/infiniband/rdma_cm", "/sys/class/misc/rdma_cm" }, .container = true },
		{ NO_CM "No such file or directory (2)\n",
		  "start the container with the device /dev/infiniband/rdma_cm (of a service: PrivateDevices=no)",
		  .removed = { "/dev/infiniband/rdma_cm" }, .container = true },
		{ NO_CM "No such file or directory (2)\n",
		  .removed = { "/dev/infiniband/rdma_cm", "/sys/class/misc" } },
		{ NO_CM "Permission denied (13)\n", .call = "open", .error = EACCES },
		{ NO_CM "No such device; its number 1:3 is stale (19)\n",
		  "start the container again with the device /dev/infiniband/rdma_cm", .call = "open", .error = ENODEV,
		  .container = true },
		{ ": /dev/infiniband/rdma_cm: creating an event channel: Too many open files (24)\n", .call = "open",
		  .error = EMFILE },
		/* libibverbs then finds no device. */
		{ ": no RDMA device, module or port can be seen in /sys: Too many open files (24)\n",
		  .removed = { "/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1" }, .call = "scandir",
		  .error = EMFILE },
		{ ": no RDMA device, module or port can be seen in /sys: Permission denied (13)\n",
		  .removed = { "/dev/infiniband" }, .call = "scandir", .error = EACCES },
	};

	for (size_t row = 0; row < LENGTH(lacks); row++) {
		enum outcome outcome = !lacks[row].cause	    ? OUTCOME_OK
				       : lacks[row].error == EMFILE ? OUTCOME_INTERNAL
								    : OUTCOME_NO_DEVICE;
		struct pair pair = { .grace_ms = 20 };
		char hint[256] = "";

		provider_begin(PROVIDER_ROCE, 0);
		for (size_t file = 0; file < LENGTH(lacks[row].removed) && lacks[row].removed[file]; file++)
			provider_remove(lacks[row].removed[file]);
		if (lacks[row].written)
			provider_write(lacks[row].content, "%s", lacks[row].written);
		in_container = lacks[row].container;
		for (size_t device = 0; device < 2; device++)
			provider.devices[device]->has_no_provider = lacks[row].no_provider;
		provider_fail(lacks[row].call, lacks[row].error, 0);
		pair_run(&pair, outcome ? NULL : rping.server, rping.client, "500ms");
		if (lacks[row].hint)
			snprintf(hint, sizeof(hint), ": hint: %s\n", lacks[row].hint);
		pair_finish(&pair, lacks[row].cause,
			    pair.client_outcome == outcome &&
				    (!lacks[row].cause || strstr(pair.capture.text, lacks[row].cause)) &&
				    strstr(pair.capture.text, hint) && (*hint || !strstr(pair.capture.text, "hint: ")));
	}
	in_container = false;
}

/* The kernel has found a device that librdmacm cannot open: the possible device, and the cause. Or it has found none.
 */
TEST(device_of_the_route)
{
	static const struct {
		enum outcome outcome;
		const char *cause, *removed, *written, *call, *client;
		int error;
		bool no_provider, server;
	} routes[] = {
		{ OUTCOME_NO_DEVICE,
		  "resolving the address: /dev/infiniband/uverbs0 cannot be used (roce0): No such file or directory "
		  "(2)",
		  .removed = "/dev/infiniband/uverbs0" },
		{ OUTCOME_NO_DEVICE,
		  "binding: /dev/infiniband/uverbs0 cannot be used (roce0): No such file or directory (2)",
		  .removed = "/dev/infiniband/uverbs0", .server = true },
		{ OUTCOME_NO_DEVICE, "resolving the address: roce0 has no provider library\n", .no_provider = true },
		{ OUTCOME_NO_DEVICE, "/dev/infiniband/uverbs0 cannot be used (roce0): it is not a device file\n",
		  .written = "/dev/infiniband/uverbs0", .call = "ucma_get_device", .error = ENODEV },
		{ OUTCOME_NO_CONNECTION, "resolving the address: a loopback address leads to no RDMA device (19)",
		  .call = "rdma_resolve_addr", .error = ENODEV, .client = "rping -c -C 3 -a 127.0.0.1" },
		{ OUTCOME_NO_CONNECTION, "resolving the address: it is not the address of a host (19)",
		  .call = "rdma_resolve_addr", .error = ENODEV, .client = "rping -c -C 3 -a ::" },
		{ OUTCOME_NO_CONNECTION,
		  "resolving the address: 192.0.2.9 is not an address of this host with an RDMA device (99)",
		  .client = "rping -c -C 3 -a 10.0.0.1 -I 192.0.2.9" },
		/* The kernel has found no device. */
		{ OUTCOME_NO_CONNECTION, "no RDMA device on the route to it", .removed = "/dev/infiniband/uverbs0",
		  .call = "rdma_resolve_addr", .error = ENODEV },
		{ OUTCOME_NO_CONNECTION, "binding: not an address of this host with an RDMA device (19)",
		  .removed = "/dev/infiniband/uverbs0", .call = "rdma_bind_addr", .error = ENODEV, .server = true },
	};

	for (size_t row = 0; row < LENGTH(routes); row++) {
		struct pair pair = { .grace_ms = 20 };

		provider_begin(PROVIDER_ROCE, 0);
		if (routes[row].removed)
			provider_remove(routes[row].removed);
		if (routes[row].written)
			provider_write("", "%s", routes[row].written);
		provider.devices[0]->has_no_provider = routes[row].no_provider;
		provider_fail(routes[row].call, routes[row].error, 0);
		pair_run(&pair, routes[row].server ? rping.server : NULL,
			 routes[row].server   ? NULL
			 : routes[row].client ? routes[row].client
					      : rping.client,
			 "500ms");
		pair_finish(&pair, routes[row].cause,
			    (pair.client_outcome | pair.server_outcome) == routes[row].outcome &&
				    strstr(pair.capture.text, routes[row].cause));
	}
}

/* A server that no client can reach says so. */
TEST(unreachable_server)
{
	static const struct {
		const char *line;
		unsigned bound; /* addresses with a device, including the listener's */
		const char *hint;
		bool has_no_module; /* for InfiniBand's interfaces */
	} servers[] = {
		{ "rping -s --idle-timeout 50ms", 1, "an RDMA device; the interface of the device must be up" },
		{ "ucmatose --idle-timeout 50ms", 1, "an RDMA device; the interface of the device must be up" },
		{ "rping -s --idle-timeout 50ms", 2, NULL },
		{ "rping -s --gid-index 0 --idle-timeout 50ms", 99,
		  "belongs to GID index 0; 10.0.0.1 has GID index 3" },
		{ "rping -s -a @ --idle-timeout 50ms", 1, NULL },
		{ "rping -s --idle-timeout 50ms", 1,
		  "ib0: it has no network interface (IPoIB); on the host, as root: modprobe ib_ipoib\n", true },
	};

	for (size_t row = 0; row < LENGTH(servers); row++) {
		struct pair pair = { .grace_ms = 20 };
		const char *hint;

		provider_begin(servers[row].has_no_module ? PROVIDER_INFINIBAND : PROVIDER_ROCE, 0);
		for (unsigned device = 0; servers[row].has_no_module && device < 2; device++)
			provider_write("InfiniBand\n", "/sys/class/infiniband/ib%u/ports/1/link_layer", device);
		provider_write("", "/sys/module/ib_core");
		provider_fail("rdma_bind_addr", ENODEV, servers[row].bound);
		pair_run(&pair, servers[row].line, NULL, NULL);
		hint = strstr(pair.capture.text, "hint: no client can connect yet: no address of this host ");
		pair_finish(&pair, servers[row].line,
			    servers[row].hint ? hint && strstr(hint, servers[row].hint) : !hint);
	}
}

/* Each end's hello names its tool: both report the reason, and the server waits for its own client. */
TEST(client_of_another_tool)
{
	static const struct {
		const char *server, *client, *cause, *line;
	} tools[] = {
		{ "ucmatose -b @ -p 7174", "rping -c -C 3 -a @",
		  "10.0.0.1:7174: connecting: refused by the peer: \"the server is ucmatose, not rping\" (",
		  ": rejected: the client is rping, not ucmatose\n" },
		{ "rping -s -a @ -p 7471", "ucmatose -s @",
		  "10.0.0.1:7471: connecting: refused by the peer: \"the server is rping, not ucmatose\" (",
		  ": rejected: the client is ucmatose, not rping\n" },
	};

	for (size_t row = 0; row < LENGTH(tools); row++) {
		struct pair pair = { .grace_ms = 20 };

		provider_begin(PROVIDER_ROCE, 0);
		pair_run(&pair, tools[row].server, tools[row].client, "500ms");
		pair_finish(&pair, tools[row].cause,
			    pair.client_outcome == OUTCOME_NO_CONNECTION && pair.server_outcome == OUTCOME_FAILED &&
				    strstr(pair.capture.text, tools[row].cause) &&
				    strstr(pair.capture.text, tools[row].line));
	}
}

static int takes_half(const struct ibv_qp_cap *cap)
{
	return cap->max_recv_wr > 2048 ? ENOMEM : -1;
}

/* The locked memory limit, the most frequent shortage, and a device with less than requested. */
TEST(limits)
{
	const struct rlimit little = { 65536, 65536 };
	struct pair pair = { .grace_ms = 20 };
	struct rlimit before;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	provider_begin(PROVIDER_ROCE, 0);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ little.rlim_cur, before.rlim_max }), 0);
	provider_fail("ibv_reg_mr", ENOMEM, 0);
	pair_run(&pair, rping.server, rping.client, "500ms");
	setrlimit(RLIMIT_MEMLOCK, &before);
	pair_finish(&pair, "locked memory", strstr(pair.capture.text, "at most 64 KiB of memory may be locked"));
	provider_begin(PROVIDER_ROCE, 0);
	is_privileged = true;
	provider_fail("ibv_reg_mr", ENOMEM, 0);
	pair_run(&pair, rping.server, rping.client, "500ms");
	is_privileged = false;
	pair_finish(&pair, "the kernel's memory",
		    !privileges_user_namespace_is_initial() ||
			    strstr(pair.capture.text, "hint: locked memory has no limit here; see"));
	provider_begin(PROVIDER_ROCE, 0);
	provider.devices[0]->limits.max_qp_wr = 2;
	pair.grace_ms = 20;
	pair_run(&pair, rping.server, rping.client, "500ms");
	pair_finish(&pair, "short queues", pair.client_outcome || pair.server_outcome);
	/* The deepest queue, and one receive more: on iWARP as many are posted as messages arrive. */
	provider_begin(PROVIDER_IWARP, 0);
	provider.devices[0]->limits.max_qp_wr = 16;
	pair_run(&pair, "ucmatose -b @ -C 100", "ucmatose -s @ -C 100", NULL);
	pair_finish(&pair, "the deepest queue", !pair.server_outcome && !pair.client_outcome);
	provider_begin(PROVIDER_IWARP, 0);
	provider.devices[0]->limits.max_qp_wr = 4096;
	provider.devices[0]->refuses = takes_half;
	pair_run(&pair, "ucmatose -b @ -C 5000", "ucmatose -s @ -C 5000", NULL);
	pair_finish(&pair, "half of the deepest queue", !pair.server_outcome && !pair.client_outcome);
}

/* They continue forever, or nearly. */
static const struct pair_lines lines[] = {
	{ "rping -s -a @", "rping -c -C 100000 -a @" },
	{ "ucmatose -b @ -C 100000", "ucmatose -s @ -C 100000" },
	{ "mckey -m # -b @ -C 1000", "mckey -m # -b @ -s --pause 1ms --rate 10 -C 1000" },
};

static void remove_soon(void *context);

static void remove_now(void *context)
{
	device_remove(provider.devices[0], provider.seed ? REMOVAL_BY_ASYNC : REMOVAL_BY_MANAGER);
}

/* Some time after both ends have a queue pair, however slow the machine. */
static void remove_device(struct pair *pair)
{
	bool both = provider.qps && provider.qps->next;

	loop_timer_start(pair->run.loop, &pair->moment, (both ? 10 : 1) * CLOCK_NS_PER_MS,
			 both ? remove_now : remove_soon, pair);
}

static void remove_soon(void *context)
{
	remove_device(context);
}

/* In the middle of a run, and between two datagrams: both ends fail, with the cause. */
TEST(a_removed_device)
{
	for (size_t row = 0; row < LENGTH(lines); row++)
		for (unsigned seed = 0; seed < 3; seed++) {
			struct pair pair = { .later = remove_device, .later_ms = 1, .grace_ms = 50 };

			provider_begin(PROVIDER_INFINIBAND, seed);
			pair_run(&pair, lines[row].server, lines[row].client, NULL);
			pair_finish(&pair, lines[row].server,
				    pair.server_outcome && pair.client_outcome &&
					    strstr(pair.capture.text, "ib0: the device was removed"));
		}
}

static void break_send(struct pair *pair)
{
	provider.breaks_with = IBV_WC_RETRY_EXC_ERR;
}

TEST(a_completion_that_fails)
{
	for (size_t row = 0; row < 2; row++)
		for (unsigned seed = 0; seed < 3; seed++) {
			struct pair pair = { .later = break_send, .later_ms = 10, .grace_ms = 50 };

			provider_begin(PROVIDER_ROCE, seed);
			provider.silent_flush = seed == 2;
			pair_run(&pair, lines[row].server, lines[row].client, NULL);
			pair_finish(&pair, lines[row].server,
				    (pair.server_outcome == OUTCOME_FAILED || pair.client_outcome == OUTCOME_FAILED) &&
					    strstr(pair.capture.text, "the peer does not answer, retries exceeded"));
		}
}

/* selftest runs both ends itself. */
TEST(selftest)
{
	static const char *const fabrics[] = { "roce0", "ib0", "iw0" };

	for (int row = 0; row < 2 * (PROVIDER_IWARP + 1); row++) {
		int fabric = row / 2;
		struct capture capture;
		char *text;

		provider_begin((enum provider_fabric)fabric, 1);
		provider.binds_no_holder = row % 2;
		assert_int_equal(line_run("selftest --transport verbs", &capture, &text), OUTCOME_OK);
		assert_non_null(strstr(text, fabrics[fabric]));
		free(text);
		provider_end();
	}
}

/* However many addresses without a device come first. */
TEST(selftest_among_many_addresses)
{
	struct capture capture;
	char *text;

	provider_begin(PROVIDER_ROCE, 0);
	provider.crowd = 300;
	assert_int_equal(line_run("selftest --transport verbs", &capture, &text), OUTCOME_OK);
	free(text);
	provider_end();
}

/* A part that fails, even at once, leaves nothing that fails the next one. */
TEST(selftest_after_a_failed_part)
{
	for (unsigned after = 0; after < 2; after++) {
		struct capture capture;
		char *text;

		provider_begin(PROVIDER_ROCE, 1);
		provider_fail("rdma_create_qp_ex", EAGAIN, after);
		provider.fails_once = true;
		assert_int_not_equal(line_run("selftest --transport verbs", &capture, &text), OUTCOME_OK);
		if (!strstr(text, " rping: FAILED") || !strstr(text, " ucmatose: ok") || !strstr(text, " mckey: ok"))
			fail_msg("%s", text);
		free(text);
		provider_end();
	}
}
