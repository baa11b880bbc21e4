/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=ioctl */
/* Devices: their limits, and the connections of a failed or removed one. */
#include "test/verbs/ends.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>

#include "core/clock.h"

/* Another client, with a queue pair; its events are those of the listener. */
static struct endpoint *reach(const char *address)
{
	struct endpoint *other = end_create(&bench.listening, ENDPOINT_CONNECTION, &options);

	assert_true(address_parse(address, ADDRESS_FORMAT_IP, &bench.address));
	assert_int_equal(endpoint_resolve(other, NULL, &bench.address), 0);
	assert_true(bench_await_event(&bench, &bench.listening, EVENT_ROUTE_RESOLVED));
	assert_int_equal(endpoint_create_qp(other), 0);
	return other;
}

/* Port 1 is InfiniBand, port 2 Ethernet; a device event finds the endpoint on either. */
TEST(a_card_of_two_fabrics, NULL, end)
{
	for (int whole = 0; whole < 2; whole++) {
		struct endpoint *other;
		struct capture capture;

		begin(PROVIDER_INFINIBAND);
		device_drive(provider.devices[0], "mlx4");
		provider.devices[0]->ports[1].max_message = 1u << 24;
		assert_true(bench_connect(&bench, &options));
		other = reach("10.0.0.2");
		assert_int_equal(bench.client.endpoint->domain->fabric, FABRIC_INFINIBAND);
		assert_int_equal(bench.client.endpoint->domain->max_message, 1u << 30);
		assert_int_equal(other->domain->fabric, FABRIC_ROCE);
		assert_int_equal(other->domain->max_message, 1u << 24);
		capture_begin(&capture);
		if (whole)
			device_event(provider.devices[0], IBV_EVENT_DEVICE_FATAL, NULL);
		else
			device_event(provider.devices[0], IBV_EVENT_QP_FATAL, verbs(other)->qp);
		bench_linger(&bench, 5);
		told(&capture);
		assert_int_equal(end_events(&bench.listening, EVENT_FAILED), 1);
		assert_int_equal(end_events(&bench.client, EVENT_FAILED), whole);
		endpoint_destroy(other);
	}
}

#define INLINE_HINT "the device may take fewer bytes inline"

/* Too much inline data is an error; a too deep queue is made shorter. */
TEST(limits_of_drivers, NULL, end)
{
	static const struct {
		const char *driver;
		int64_t inline_size;
		uint32_t depth, got;
		const char *hint;
	} rows[] = {
		{ "mlx5", 800, 0, 0, NULL },
		{ "mlx5", 1024, 0, 0, INLINE_HINT },
		{ "mlx5", PATH_UNSET, 32768, 32768, NULL },
		{ "mlx5", PATH_UNSET, 65536, 32768, NULL },
		{ "irdma", 101, 0, 0, NULL },
		{ "irdma", 102, 0, 0, INLINE_HINT },
		{ "bnxt_re", 96, 0, 0, NULL },
		{ "bnxt_re", 200, 0, 0, INLINE_HINT },
		{ "mlx4", 4096, 0, 0, INLINE_HINT },
	};

	for (size_t row = 0; row < LENGTH(rows); row++)
		for (int own_qp = 0; own_qp < 2; own_qp++) {
			struct capture capture;
			bool opened;

			begin(PROVIDER_ROCE);
			device_drive(provider.devices[0], rows[row].driver);
			provider.devices[0]->limits.max_cqe = 1 << 20;
			path.inline_size = rows[row].inline_size;
			options.own_qp = own_qp;
			if (rows[row].depth)
				options.receive_depth = rows[row].depth;
			capture_begin(&capture);
			opened = bench_resolve(&bench, &options);
			expect_told(&capture, rows[row].hint ? rows[row].hint : "");
			assert_int_equal(opened, rows[row].hint == NULL);
			assert_int_equal(strstr(capture.text, "Invalid argument") == NULL, opened);
			assert_null(strstr(capture.text, "locked"));
			if (rows[row].got)
				assert_int_equal(bench.client.endpoint->options.receive_depth, rows[row].got);
		}
}

TEST(events_of_the_device, NULL, end)
{
	static const struct {
		enum ibv_event_type type;
		int of; /* 0: the port, 1: the client's queue pair, 2: the completion queue of both, 3: the device */
		bool client_fails, server_fails;
	} rows[] = {
		{ IBV_EVENT_PORT_ACTIVE, 0, false, false }, { IBV_EVENT_QP_FATAL, 1, true, false },
		{ IBV_EVENT_QP_REQ_ERR, 1, true, false },   { IBV_EVENT_QP_ACCESS_ERR, 1, true, false },
		{ IBV_EVENT_CQ_ERR, 2, true, true },	    { IBV_EVENT_DEVICE_FATAL, 3, true, true },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;
		void *elements[4] = { 0 };

		connect_both(PROVIDER_ROCE);
		elements[1] = verbs(bench.client.endpoint)->qp;
		elements[2] = verbs(bench.client.endpoint)->completions->cq;
		capture_begin(&capture);
		device_event(provider.devices[0], rows[row].type, elements[rows[row].of]);
		bench_linger(&bench, 5);
		told(&capture);
		assert_int_equal(end_events(&bench.client, EVENT_FAILED), rows[row].client_fails);
		assert_int_equal(end_events(&bench.server, EVENT_FAILED), rows[row].server_fails);
		assert_int_equal(bench.client.endpoint->domain->removed, rows[row].of == 3);
		assert_int_equal(*capture.text != '\0', rows[row].client_fails);
		/* No connection can be made over a failed device. */
		if (rows[row].of == 3) {
			struct endpoint *kept = bench.client.endpoint;

			capture_begin(&capture);
			bench.client.count = 0;
			assert_true(bench_start_client(&bench, &options));
			assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
			assert_non_null(strstr(told(&capture), "roce0: the device has failed before"));
			endpoint_destroy(kept);
		}
	}
}

#define PORT_FOLDER "/sys/class/infiniband/roce0/ports/1/"

static const struct network_counter *counter_of(const char *name)
{
	const struct network_counter *counter = transport_counters(bench.transport);

	while (counter && strcmp(counter->name, name) != 0)
		counter = counter->next;
	return counter;
}

/* From the first queue pair on. Files that are not port counters, are levels, or have disappeared are left out. */
TEST(counters_of_a_port, NULL, end)
{
	static const char *const names[] = { "Rcvd Out of order packets", "out_of_sequence", "symbol_error" };

	begin(PROVIDER_ROCE);
	provider_write("10\n", PORT_FOLDER "hw_counters/lifespan");
	provider_write("7\n", PORT_FOLDER "hw_counters/out_of_sequence");
	provider_write("1\n", PORT_FOLDER "hw_counters/Rcvd Out of order packets");
	provider_write("18446744073709551000\n", PORT_FOLDER "counters/symbol_error");
	provider_write("99\n", PORT_FOLDER "counters/out_of_sequence");
	provider_write("N/A (no PMA)\n", PORT_FOLDER "counters/port_rcv_errors");
	provider_write("5 apples\n", PORT_FOLDER "counters/apples");
	provider_write("", PORT_FOLDER "counters/empty");
	provider_write("4\n", PORT_FOLDER "hw_counters/active_qps");
	provider_write("9\n", PORT_FOLDER "hw_counters/watermark_qps");
	provider_write("268435456\n", PORT_FOLDER "hw_counters/db_fifo_register");
	assert_true(bench_listen(&bench, &options));
	assert_null(transport_counters(bench.transport));
	bench.accept_receives = 4;
	assert_true(bench_connect(&bench, &options));
	for (size_t i = 0; i < LENGTH(names); i++) {
		assert_non_null(counter_of(names[i]));
		assert_string_equal(counter_of(names[i])->device, "roce0");
		assert_int_equal(counter_of(names[i])->port, 1);
		assert_int_equal(counter_of(names[i])->increase, 0);
	}
	assert_null(counter_of("lifespan"));
	assert_null(counter_of("port_rcv_errors"));
	assert_null(counter_of("apples"));
	assert_null(counter_of("empty"));
	assert_null(counter_of("active_qps"));
	assert_null(counter_of("watermark_qps"));
	assert_null(counter_of("db_fifo_register"));
	provider_write("19\n", PORT_FOLDER "hw_counters/out_of_sequence");
	provider_write("18446744073709551615\n", PORT_FOLDER "counters/symbol_error");
	assert_int_equal(counter_of("out_of_sequence")->increase, 12);
	assert_int_equal(counter_of("symbol_error")->increase, 615);
	/* Reset, and not a number: the value stays. */
	provider_write("3\n", PORT_FOLDER "hw_counters/out_of_sequence");
	provider_write("?\n", PORT_FOLDER "counters/symbol_error");
	assert_int_equal(counter_of("out_of_sequence")->increase, 12);
	assert_int_equal(counter_of("symbol_error")->increase, 615);
}

/*
 * The other port counts separately; a device's counters outlive it, and do not restart with a device of the same name.
 */
TEST(counters_of_ports, NULL, end)
{
	unsigned ports = 0;
	struct capture capture;

	begin(PROVIDER_ROCE);
	provider_write("7\n", PORT_FOLDER "hw_counters/out_of_sequence");
	provider_write("8\n", "/sys/class/infiniband/roce0/ports/2/hw_counters/out_of_sequence");
	assert_true(bench_connect(&bench, &options));
	reach("10.0.0.2");
	provider_write("9\n", PORT_FOLDER "hw_counters/out_of_sequence");
	for (const struct network_counter *counter = transport_counters(bench.transport); counter;
	     counter = counter->next) {
		ports |= 1u << counter->port;
		assert_int_equal(counter->increase, counter->port == 1 ? 2 : 0);
	}
	assert_int_equal(ports, 6);
	capture_begin(&capture);
	device_remove(provider.devices[0], REMOVAL_BY_MANAGER | REMOVAL_BY_ASYNC);
	bench_linger(&bench, 5);
	told(&capture);
	assert_int_equal(transport_counters(bench.transport)->increase, 2);
}

static struct {
	unsigned count;
	uint64_t values[4];
	unsigned reads;
	bool fails;
} statistics[2]; /* of eth0 and eth1 */

int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	static const char names[][ETH_GSTRING_LEN] = { "rx_bytes", "rx_prio3_pause", "rx_pause_ctrl_phy",
						       "link_xoff_rx.nic" };
	struct ifreq *message;
	unsigned number;
	va_list list;
	void *data;

	va_start(list, request);
	message = va_arg(list, struct ifreq *);
	va_end(list);
	data = message->ifr_data;
	assert_int_equal(request, SIOCETHTOOL);
	if (sscanf(message->ifr_name, "eth%1u", &number) != 1 || number > 1) {
		errno = ENODEV;
		return -1;
	}
	switch (*(uint32_t *)data) {
	case ETHTOOL_GDRVINFO:
		((struct ethtool_drvinfo *)data)->n_stats = statistics[number].count;
		break;
	case ETHTOOL_GSTRINGS:
		assert_int_equal(((struct ethtool_gstrings *)data)->string_set, ETH_SS_STATS);
		((struct ethtool_gstrings *)data)->len = statistics[number].count;
		memcpy(((struct ethtool_gstrings *)data)->data, names, statistics[number].count * sizeof(*names));
		break;
	case ETHTOOL_GSTATS:
		statistics[number].reads++;
		if (statistics[number].fails)
			return -1;
		((struct ethtool_stats *)data)->n_stats = statistics[number].count;
		memcpy(((struct ethtool_stats *)data)->data, statistics[number].values,
		       sizeof(statistics[number].values));
		break;
	default:
		fail();
	}
	return 0;
}

/* A driver with other statistics than before may have them in another order. */
TEST(pauses_of_an_interface, NULL, end)
{
	begin(PROVIDER_ROCE);
	memset(statistics, 0, sizeof(statistics));
	statistics[0].count = 3;
	statistics[0].values[2] = 7;
	provider_write("eth0\n", PORT_FOLDER "gid_attrs/ndevs/0");
	provider_write("1\n", PORT_FOLDER "hw_counters/out_of_sequence");
	assert_true(bench_connect(&bench, &options));
	assert_null(counter_of("rx_bytes"));
	assert_int_equal(counter_of("rx_pause_ctrl_phy")->increase, 0);
	statistics[0].values[1] = 2;
	statistics[0].values[2] = 12;
	statistics[0].reads = 0;
	assert_int_equal(counter_of("rx_pause_ctrl_phy")->increase, 5);
	assert_int_equal(statistics[0].reads, 1);
	assert_int_equal(counter_of("rx_prio3_pause")->increase, 2);
	statistics[0].count = 4;
	statistics[0].values[2] = 99;
	assert_int_equal(counter_of("rx_pause_ctrl_phy")->increase, 5);
	/* A driver that does not answer is asked once, too. */
	statistics[0].fails = true;
	statistics[0].reads = 0;
	assert_int_equal(counter_of("rx_pause_ctrl_phy")->increase, 5);
	assert_int_equal(statistics[0].reads, 1);
}

/* Each port's interface has its own, whatever else is counted in between. */
TEST(pauses_of_two_interfaces, NULL, end)
{
	unsigned ports = 0;

	begin(PROVIDER_ROCE);
	memset(statistics, 0, sizeof(statistics));
	for (unsigned port = 1; port <= 2; port++) {
		provider_write(port == 1 ? "eth0\n" : "eth1\n",
			       "/sys/class/infiniband/roce0/ports/%u/gid_attrs/ndevs/0", port);
		provider_write("1\n", "/sys/class/infiniband/roce0/ports/%u/hw_counters/out_of_sequence", port);
		statistics[port - 1].count = 3;
	}
	assert_true(bench_connect(&bench, &options));
	reach("10.0.0.2");
	statistics[0].values[2] = 7;
	statistics[1].values[2] = 2;
	for (const struct network_counter *counter = transport_counters(bench.transport); counter;
	     counter = counter->next) {
		ports |= 1u << counter->port;
		assert_int_equal(counter->increase, strcmp(counter->name, "rx_pause_ctrl_phy")
							    ? 0
							    : statistics[counter->port - 1].values[2]);
	}
	assert_int_equal(ports, 6);
}

static void count_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	log_report(endpoint->transport->log, &endpoint->transport->error);
	assert_int_equal(event->kind, EVENT_FAILED);
	++*(unsigned *)context;
}

static void stop(void *loop)
{
	loop_stop(loop);
}

static void fail_channel(struct verbs_transport *transport)
{
	struct loop_timer timer = { 0 };

	provider_fail("rdma_get_cm_event", EIO, 0);
	doorbell_set(&provider.channels->bell, true);
	loop_timer_start(transport->base.loop, &timer, 2 * CLOCK_NS_PER_MS, stop, transport->base.loop);
	loop_run(transport->base.loop);
}

/*
 * A completion queue that fails while only disconnections are awaited, or nothing, does no harm, nor does a channel
 * after the end; else it fails its users, with a reason.
 */
TEST(a_harmless_failure, NULL, end)
{
	static const struct endpoint_handlers handlers = { .event = count_event };
	static const struct {
		enum endpoint_state states[2];
		bool done;
		bool channel;
		unsigned failures;
	} rounds[] = {
		{ { ENDPOINT_DISCONNECTING, ENDPOINT_DISCONNECTING }, false, false, 0 },
		{ { ENDPOINT_DISCONNECTING, ENDPOINT_ESTABLISHED }, false, false, 2 },
		{ { ENDPOINT_DISCONNECTED, ENDPOINT_RESOLVING_ROUTE }, false, false, 2 },
		{ { ENDPOINT_JOINED, ENDPOINT_JOINED }, false, false, 2 },
		{ { ENDPOINT_JOINED, ENDPOINT_JOINED }, true, false, 0 },
		{ { ENDPOINT_DISCONNECTED, ENDPOINT_DESTROYED }, false, true, 0 },
		{ { ENDPOINT_JOINED, ENDPOINT_JOINED }, true, true, 0 },
		{ { ENDPOINT_DISCONNECTED, ENDPOINT_DISCONNECTING }, false, true, 1 },
	};

	for (size_t round = 0; round < sizeof(rounds) / sizeof(*rounds); round++) {
		struct log log = { .name = "test" };
		struct verbs_endpoint endpoints[2] = { 0 };
		struct verbs_slot slots[2] = { { .endpoint = &endpoints[0] }, { .endpoint = &endpoints[1] } };
		struct verbs_transport transport = {
			.base = { .backend = &verbs_backend, .loop = loop_create(), .log = &log },
			.slots = slots,
			.slot_count = 2,
		};
		struct verbs_domain domain = { .base = { .transport = &transport.base, .device = "ib0" } };
		struct channel *channel;
		struct capture capture;
		unsigned failures = 0;

		provider_begin(PROVIDER_INFINIBAND, 0);
		assert_int_equal(verbs_channel_create(&transport.base, &channel), OUTCOME_OK);
		for (size_t index = 0; index < 2; index++) {
			endpoints[index].base.transport = &transport.base;
			endpoints[index].base.channel = channel;
			endpoints[index].base.domain = &domain.base;
			endpoints[index].base.state = rounds[round].states[index];
			endpoints[index].base.done = rounds[round].done;
			endpoints[index].base.handlers = &handlers;
			endpoints[index].base.context = &failures;
		}
		capture_begin(&capture);
		if (rounds[round].channel)
			fail_channel(&transport);
		else
			verbs_domain_failed(&domain, EINVAL, "arming a completion queue");
		capture_end(&capture);
		assert_int_equal(failures, rounds[round].failures);
		/* A failed channel stays readable. After it has failed an endpoint it is not read again. */
		if (rounds[round].channel && failures)
			assert_int_equal(provider.calls, 1);
		assert_int_equal(strstr(capture.text, rounds[round].channel
							      ? "event channel: reading an event: Input/output error"
							      : "ib0: arming a completion queue: Invalid argument") !=
					 NULL,
				 failures > 0);
		verbs_channel_free((struct verbs_channel *)channel);
		loop_destroy(transport.base.loop);
		provider_end();
	}
}

/* One is removed, and the other's connections stay. */
TEST(one_of_two_devices_is_removed, NULL, end)
{
	static const char *const reads[] = { "ibv_get_cq_event", "ibv_get_async_event" };
	struct capture capture;
	struct work work;

	for (unsigned ways = REMOVAL_BY_MANAGER; ways <= (REMOVAL_BY_MANAGER | REMOVAL_BY_ASYNC); ways++) {
		struct endpoint *other;

		connect_both(PROVIDER_ROCE);
		other = reach("10.0.1.2");
		work = (struct work){ .kind = WORK_SEND, .region = bench.client_region, .length = 8 };
		capture_begin(&capture);
		device_remove(provider.devices[0], ways);
		assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), OUTCOME_INTERNAL);
		assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
		assert_true(bench_await_event(&bench, &bench.server, EVENT_FAILED));
		bench_linger(&bench, 5);
		told(&capture);
		assert_int_equal(end_events(&bench.client, EVENT_FAILED), 1);
		assert_int_equal(end_events(&bench.listening, EVENT_FAILED), ways & REMOVAL_BY_MANAGER ? 1 : 0);
		assert_int_equal(other->state, ENDPOINT_ROUTE_RESOLVED);
		assert_non_null(strstr(capture.text, "roce0: the device was removed"));
		assert_null(strstr(strstr(capture.text, "roce0: the device was removed") + 1,
				   "roce0: the device was removed"));
		/* The descriptors of the removed device stay readable, and are not read again. */
		for (size_t read = 0; read < LENGTH(reads); read++) {
			provider_fail(reads[read], 0, UINT32_MAX);
			bench_linger(&bench, 5);
			assert_int_equal(provider.calls, 0);
		}
		endpoint_destroy(other);
	}
}

static void forget_connections(void)
{
	endpoint_destroy(bench.client.endpoint);
	endpoint_destroy(bench.server.endpoint);
	region_destroy(bench.client_region);
	region_destroy(bench.server_region);
	bench.client = bench.server = (struct end){ .bench = &bench };
	bench.client_region = bench.server_region = NULL;
	bench_linger(&bench, 5);
}

static void connect_to(const char *address)
{
	assert_true(address_parse(address, ADDRESS_FORMAT_IP, &bench.address));
	assert_true(bench_resolve(&bench, &options));
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_ESTABLISHED));
	assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
}

/* Under a running server: its device is removed, with or without a connection, and another appears, ten times. */
TEST(devices_are_added_and_removed, NULL, end)
{
	for (unsigned ways = REMOVAL_BY_MANAGER; ways <= (REMOVAL_BY_MANAGER | REMOVAL_BY_ASYNC); ways++) {
		begin(PROVIDER_ROCE);
		bench.accept_receives = 4;
		assert_true(address_parse("0.0.0.0", ADDRESS_FORMAT_IP, &bench.address));
		assert_true(bench_listen(&bench, &options));
		connect_to("10.0.1.1");
		forget_connections();
		for (unsigned round = 0; round < 10; round++) {
			unsigned place = round % 2 ? 2 : 0;
			struct capture capture;

			connect_to("10.0.0.1");
			if (round < 5)
				forget_connections();
			capture_begin(&capture);
			device_remove(provider.devices[place], ways);
			bench_linger(&bench, 5);
			assert_non_null(strstr(told(&capture), "roce0: the device was removed"));
			forget_connections();
			/* Only the other device's is left. */
			assert_int_equal(provider.protection_domains, 1);
			assert_int_equal(device_is_held(provider.devices[place]), ways == REMOVAL_BY_ASYNC);
			provider.devices[2 - place] = device_add(PROVIDER_ROCE, 0);
		}
	}
}

/* bound_id's channel, which reports a removal, is not read again after it has failed, and the connections stay. */
TEST(channel_of_bound_id_fails, NULL, end)
{
	struct cm_channel *channel;

	connect_both(PROVIDER_ROCE);
	channel = (struct cm_channel *)verbs_domain_of(verbs(bench.client.endpoint))->bound_id->channel;
	provider_fail("rdma_get_cm_event", EIO, 0);
	doorbell_set(&channel->bell, true);
	bench_linger(&bench, 5);
	assert_int_equal(provider.calls, 1);
	assert_int_equal(bench.client.endpoint->state, ENDPOINT_ESTABLISHED);
}

/* The connection manager may have no address to bind another identifier to: an IPv6 address without its interface. */
TEST(a_device_that_cannot_be_held, NULL, end)
{
	begin(PROVIDER_ROCE);
	assert_true(address_parse("0.0.0.0", ADDRESS_FORMAT_IP, &bench.address));
	assert_true(bench_listen(&bench, &options));
	provider.binds_no_holder = true;
	connect_to("10.0.0.1");
	assert_int_equal(provider.protection_domains, 1);
	forget_connections();
	assert_int_equal(provider.protection_domains, 0);
}
