/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap */
/* Selection of listeners, path options, causes of timeouts. */
#include "test/unit/unit.h"

#include <errno.h>

#include "core/route.h"
#include "test/network/network.h"
#include "test/network/stack.h"
#include "transport/soft/cm/cm_internal.h"
#include "transport/soft/qp/qp_internal.h"
#include "transport/soft/soft.h"

enum {
	PORT = 7174
};

static struct soft_transport *transport;
static struct channel *channel;
static unsigned requests, failures, successes;

static void on_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	requests += event->kind == EVENT_REQUEST;
	failures += event->kind == EVENT_FAILED;
	successes += event->kind == EVENT_ADDRESS_RESOLVED;
}

static int begin(void **state)
{
	network_open(1, 1500, 1 << 20);
	transport = stack_open();
	requests = failures = successes = 0;
	assert_int_equal(channel_create(&transport->base, &channel), OUTCOME_OK);
	return 0;
}

static int end(void **state)
{
	stack_close(transport);
	network_close();
	return 0;
}

static struct address address_of(const char *text)
{
	struct address address;

	assert_true(address_parse(text, ADDRESS_FORMAT_IP, &address));
	address.port = PORT;
	return address;
}

static struct endpoint *listener_create(enum port_space port_space)
{
	static const struct endpoint_handlers handlers = { .event = on_event };
	const struct endpoint_options options = { .port_space = port_space };
	struct endpoint *listener;

	assert_int_equal(endpoint_create(ENDPOINT_LISTENER, channel, &options, &handlers, NULL, &listener), OUTCOME_OK);
	return listener;
}

TEST(listener_of_request, begin, end)
{
	static const struct {
		const char *listen_address, *local;
		enum port_space port_space;
		bool found;
	} rows[] = {
		{ "10.0.0.1", "10.0.0.1", PORT_SPACE_TCP, true },  { "10.0.0.1", "10.0.0.2", PORT_SPACE_TCP, false },
		{ "10.0.0.1", "10.0.0.1", PORT_SPACE_UDP, false }, { "0.0.0.0", "10.0.0.2", PORT_SPACE_TCP, true },
		{ "0.0.0.0", "fd00::1", PORT_SPACE_TCP, false },   { "::", "fd00::1", PORT_SPACE_TCP, true },
		{ "::", "10.0.0.2", PORT_SPACE_TCP, true },	   { "::", "10.0.0.2", PORT_SPACE_UDP, false },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct address local = address_of(rows[row].local);
		struct endpoint *listener = listener_create(PORT_SPACE_TCP);
		const struct soft_endpoint *found;

		listener->local = address_of(rows[row].listen_address);
		listener->state = ENDPOINT_LISTENING;
		found = soft_listener_find(transport, rows[row].port_space, PORT, &local);
		assert_ptr_equal(found, rows[row].found ? soft_endpoint_of(listener) : NULL);
		assert_null(soft_listener_find(transport, rows[row].port_space, PORT + 1, &local));
		/* A failed listener, or one whose endpoint_listen() failed, gets no requests. */
		listener->state = ENDPOINT_FAILED;
		assert_null(soft_listener_find(transport, rows[row].port_space, PORT, &local));
		listener->state = ENDPOINT_IDLE;
		assert_null(soft_listener_find(transport, rows[row].port_space, PORT, &local));
		endpoint_destroy(listener);
		network_run_due();
	}
}

/* A listener on the exact address is preferred to a wildcard, in both orders of creation. */
TEST(exact_listener_is_preferred, begin, end)
{
	static const char *const texts[] = { "10.0.0.1", "::", "10.0.0.1" };
	struct address local = address_of("10.0.0.1");

	for (size_t first = 0; first < 2; first++) {
		struct endpoint *listeners[2];

		for (size_t index = 0; index < 2; index++) {
			listeners[index] = listener_create(PORT_SPACE_TCP);
			listeners[index]->local = address_of(texts[first + index]);
			listeners[index]->state = ENDPOINT_LISTENING;
		}
		assert_ptr_equal(soft_listener_find(transport, PORT_SPACE_TCP, PORT, &local), listeners[first]);
		endpoint_destroy(listeners[0]);
		endpoint_destroy(listeners[1]);
		network_run_due();
	}
}

TEST(port_is_used_once, begin, end)
{
	static const struct {
		const char *address;
		enum port_space port_space;
		bool in_use;
	} rows[] = {
		{ "10.0.0.1", PORT_SPACE_TCP, true },
		{ "10.0.0.1", PORT_SPACE_UDP, false },
		{ "10.0.0.2", PORT_SPACE_TCP, false },
	};
	struct address address = address_of("10.0.0.1");

	assert_int_equal(endpoint_listen(listener_create(PORT_SPACE_TCP), &address), OUTCOME_OK);
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct endpoint *second = listener_create(rows[row].port_space);

		address = address_of(rows[row].address);
		assert_int_equal(endpoint_listen(second, &address),
				 rows[row].in_use ? OUTCOME_NO_CONNECTION : OUTCOME_OK);
		endpoint_destroy(second);
		network_run_due();
	}
}

/* Requests of a destroyed or failed listener are dropped. */
TEST(request_of_destroyed_listener, begin, end)
{
	for (int listener_state = 0; listener_state < 3; listener_state++) {
		static const struct soft_path path;
		const struct address peer = address_of("10.0.0.2");
		struct endpoint *listener = listener_create(PORT_SPACE_TCP);
		struct soft_endpoint *request;

		listener->state = ENDPOINT_LISTENING;
		request = soft_request_create(soft_endpoint_of(listener), &path, &peer);
		assert_non_null(request);
		if (listener_state == 1)
			listener->state = ENDPOINT_FAILED;
		if (listener_state == 2) {
			endpoint_destroy(listener);
			network_run_due();
			assert_null(request->listener);
		}
		soft_request_report(request, NULL, 0);
		assert_int_equal(requests, 1);
		assert_int_equal(request->base.state == ENDPOINT_DESTROYED, listener_state != 0);
		network_run_due();
	}
}

/* A deadline that passes in the turn of the loop before the event. */
TEST(event_of_failed_endpoint, begin, end)
{
	static const struct endpoint_handlers handlers = { .event = on_event };
	const struct endpoint_options options = { .port_space = PORT_SPACE_TCP };
	struct address peer = address_of("10.0.0.1"), source = address_of("10.0.0.2");
	struct endpoint *endpoint;

	assert_int_equal(endpoint_create(ENDPOINT_CONNECTION, channel, &options, &handlers, NULL, &endpoint),
			 OUTCOME_OK);
	assert_int_equal(endpoint_resolve(endpoint, &source, &peer), OUTCOME_OK);
	endpoint_timed_out(endpoint);
	network_run_due();
	assert_int_equal(failures, 1);
	assert_int_equal(successes, 0);
	assert_int_equal(endpoint->state, ENDPOINT_FAILED);
	endpoint_destroy(endpoint);
	network_run_due();
}

/* --mtu can only reduce the path MTU. */
TEST(options_apply_to_path)
{
	static const struct {
		int64_t mtu, type_of_service;
		uint32_t path_mtu;
		uint8_t path_tos;
	} rows[] = {
		{ PATH_UNSET, PATH_UNSET, 1024, 7 },
		{ 512, PATH_UNSET, 512, 7 },
		{ 4096, 0, 1024, 0 },
		{ 1024, 0x20, 1024, 0x20 },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct path_options options = PATH_OPEN;
		struct endpoint endpoint = { .options.path = &options };
		struct soft_path path = { .mtu = 1024, .type_of_service = 7 };

		options.mtu = rows[row].mtu;
		options.type_of_service = rows[row].type_of_service;
		soft_path_apply_options(&path, &endpoint);
		assert_int_equal(path.mtu, rows[row].path_mtu);
		assert_int_equal(path.type_of_service, rows[row].path_tos);
	}
}

/* The figures have the endpoint's path MTU, and the route's interface. */
TEST(figures_of_the_path)
{
	static struct domain domain = { .device = "udp" };
	struct soft_cm_id cm_id = { .agreement.peer_qpn = 17 };
	struct soft_endpoint endpoint = {
		.base.domain = &domain,
		.path = { .local = address_of("10.0.0.1"), .mtu = 4096, .interface = ROUTE_LOOPBACK },
	};
	struct path path = { 0 };

	soft_endpoint_path(&endpoint.base, &path);
	assert_int_equal(path.mtu, 4096);
	endpoint.cm_id = &cm_id;
	soft_endpoint_path(&endpoint.base, &path);
	assert_int_equal(path.peer_qpn, 17);
	assert_string_equal(path.interface, "lo");
}

/* The cause closest to this host is reported. */
TEST(timeout_causes, begin, end)
{
	static const struct {
		int send_error, icmp_error;
		uint8_t type, code;
		const char *from;
		uint32_t path_mtu;
		const char *text;
	} rows[] = {
		{ 0, 0, 0, 0, NULL, 0, "" },
		{ EPERM, EHOSTUNREACH, 0, 0, NULL, 1280,
		  "the local kernel refused to send: Operation not permitted (1)" },
		{ 0, EHOSTUNREACH, 3, 13, "10.0.9.9", 1280,
		  "ICMP type 3 code 13 from 10.0.9.9: prohibited by a firewall" },
		{ 0, ECONNREFUSED, 3, 3, "10.0.9.9", 0, "ICMP type 3 code 3 from 10.0.9.9: port unreachable" },
		{ 0, EHOSTUNREACH, 3, 1, "10.0.9.9", 0, "ICMP type 3 code 1 from 10.0.9.9: No route to host" },
		{ 0, EHOSTUNREACH, 3, 1, "10.0.0.1", 0,
		  "ICMP type 3 code 1 from 10.0.0.1: no neighbour on the link answers" },
		{ 0, EHOSTUNREACH, 11, 0, "10.0.0.1", 0, "ICMP type 11 code 0 from 10.0.0.1: hop limit exceeded" },
		{ 0, EHOSTUNREACH, 11, 1, "10.0.9.9", 0, "ICMP type 11 code 1 from 10.0.9.9: No route to host" },
		{ 0, EHOSTUNREACH, 3, 0, "10.0.9.9", 0, "ICMP type 3 code 0 from 10.0.9.9: No route to host" },
		{ 0, EHOSTUNREACH, 3, 0, "fd00::9", 0, "ICMP type 3 code 0 from fd00::9: hop limit exceeded" },
		{ 0, EACCES, 1, 1, "fd00::9", 0, "ICMP type 1 code 1 from fd00::9: prohibited by a firewall" },
		{ 0, EHOSTUNREACH, 3, 1, "fd00::9", 0, "ICMP type 3 code 1 from fd00::9: No route to host" },
		{ 0, 0, 0, 0, NULL, 1280, "ICMP: packets too long for the path (1280), reduce the MTU to 1024" },
		{ 0, 0, 0, 0, NULL, 68, "ICMP: packets too long for the path (68), reduce the MTU to 256" },
		{ ENOBUFS, 0, 0, 0, NULL, 1280,
		  "this host's interface drops packets: a full queue, or a veth whose far end has a smaller MTU "
		  "(105)" },
	};
	const struct address address = address_of("10.0.0.1");
	struct soft_endpoint endpoint = { .path = { stack_socket(transport, &address), .local = address } };

	for (size_t row = 0; row < LENGTH(rows); row++) {
		char text[ENDPOINT_TIMEOUT_CAUSE_SIZE] = "";

		endpoint.path.socket->send_error = rows[row].send_error;
		endpoint.path.socket->path_mtu = rows[row].path_mtu;
		endpoint.icmp = (struct soft_icmp){ .error = rows[row].icmp_error,
						    .type = rows[row].type,
						    .code = rows[row].code };
		if (rows[row].from)
			endpoint.icmp.peer = endpoint.icmp.from = address_of(rows[row].from);
		soft_timeout_cause(&endpoint.base, text);
		assert_string_equal(*text ? text + strlen("; ") : text, rows[row].text);
	}
}

/* A rejection on the way does not mean a missing server; after a silence the hint depends on the peer's place. */
TEST(explained_errors, begin, end)
{
	static const struct {
		enum error_kind kind;
		int icmp_error, send_error;
		uint8_t code;
		const char *from;
		bool loopback;
		enum error_kind explained;
		const char *hint;
	} rows[] = {
		{ ERROR_NO_LISTENER, ECONNREFUSED, 0, 3, "10.0.9.9", false, ERROR_NO_LISTENER, "" },
		{ ERROR_NO_LISTENER, ECONNREFUSED, 0, 3, "10.0.9.1", false, ERROR_BLOCKED, "let 10.0.9.1 pass UDP" },
		{ ERROR_NO_REPLY, EHOSTUNREACH, 0, 13, "10.0.9.9", false, ERROR_BLOCKED, "let 10.0.9.9 pass UDP" },
		{ ERROR_OTHER, EHOSTUNREACH, 0, 13, "10.0.9.9", false, ERROR_OTHER, "" },
		{ ERROR_NO_REPLY, EHOSTUNREACH, 0, 1, "10.0.9.1", false, ERROR_NO_REPLY, "is the address right" },
		{ ERROR_NO_REPLY, 0, EPERM, 0, NULL, false, ERROR_NO_REPLY, "this host's firewall forbids it" },
		{ ERROR_NO_REPLY, 0, 0, 0, NULL, false, ERROR_NO_REPLY,
		  "if the server there shows no line about this client" },
		{ ERROR_NO_REPLY, 0, 0, 0, NULL, true, ERROR_NO_REPLY, "this host's firewall drops" },
		{ ERROR_NO_LISTENER, 0, 0, 0, NULL, false, ERROR_NO_LISTENER, "" },
	};
	const struct address address = address_of("10.0.0.1");

	for (size_t row = 0; row < LENGTH(rows); row++) {
		const struct address local = address_of(rows[row].loopback ? "127.0.0.2" : "10.0.0.1");
		struct soft_endpoint endpoint = { .base = { .state = ENDPOINT_CONNECTING,
							    .transport = &transport->base },
						  .path = { stack_socket(transport, &address), .local = local } };
		struct error error = { .kind = rows[row].kind };

		endpoint.path.socket->send_error = rows[row].send_error;
		endpoint.icmp = (struct soft_icmp){
			.error = rows[row].icmp_error, .type = 3, .code = rows[row].code, .peer = address_of("10.0.9.9")
		};
		if (rows[row].from)
			endpoint.icmp.from = address_of(rows[row].from);
		soft_explain(&endpoint.base, &error);
		assert_int_equal(error.kind, rows[row].explained);
		assert_int_equal(strncmp(error.hint, rows[row].hint, strlen(rows[row].hint)), 0);
		assert_int_equal(!*error.hint, !*rows[row].hint);
	}
}

/* A cause from the kernel's tables is the cause, or a hint beside ICMP's. Beside any other cause there is none. */
TEST(hints_belong_to_causes, begin, end)
{
	static const struct {
		int icmp_error;
		uint32_t path_mtu;
		const char *route_cause, *cause, *hint;
		unsigned route_causes;
		enum soft_probe probe;
	} rows[] = {
		{ 0, 0, NULL, "", "if the server there shows no line about this client, no packet arrives", 1,
		  SOFT_PROBE_NONE },
		{ 0, 0, NULL, "", "if the server there shows no line about this client, no packet arrives", 1,
		  SOFT_PROBE_SENT },
		{ 0, 0, NULL, "", "its host is up (ICMP from a closed port): ", 1, SOFT_PROBE_ANSWERED },
		{ EHOSTUNREACH, 0, NULL, "; ICMP type 3", "is the address right", 1, SOFT_PROBE_ANSWERED },
		{ 0, 0, "no ARP", "; no ARP", "", 1, SOFT_PROBE_NONE },
		{ 0, 1280, NULL, "; ICMP: packets too long", "", 0, SOFT_PROBE_NONE },
		{ 0, 1280, "no ARP", "; ICMP: packets too long", "", 0, SOFT_PROBE_NONE },
		{ EHOSTUNREACH, 0, NULL, "; ICMP type 3", "is the address right", 1, SOFT_PROBE_NONE },
		{ EHOSTUNREACH, 0, "no ARP", "; ICMP type 3", "no ARP", 1, SOFT_PROBE_NONE },
	};
	const struct address address = address_of("10.0.0.1");
	struct soft_endpoint endpoint = {
		.base = { .state = ENDPOINT_CONNECTING, .transport = &transport->base },
		.path = { .socket = stack_socket(transport, &address), .local = address },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		char text[ENDPOINT_TIMEOUT_CAUSE_SIZE];
		struct error error = { .object = "" };

		endpoint.path.socket->path_mtu = rows[row].path_mtu;
		endpoint.icmp = (struct soft_icmp){ .error = rows[row].icmp_error,
						    .type = 3,
						    .code = 1,
						    .peer = address_of("10.0.9.9"),
						    .from = address_of("10.0.9.1") };
		endpoint.probe = rows[row].probe;
		network->route_cause = rows[row].route_cause;
		network->route_causes = 0;
		error_failure(&error, &(struct failure){ .kind = ERROR_NO_REPLY }, "timed out%s",
			      endpoint_timeout_cause(&endpoint.base, text));
		soft_explain(&endpoint.base, &error);
		assert_int_equal(network->route_causes, rows[row].route_causes);
		assert_int_equal(strncmp(text, rows[row].cause, strlen(rows[row].cause)), 0);
		assert_int_equal(strncmp(error.hint, rows[row].hint, strlen(rows[row].hint)), 0);
		assert_int_equal(!*error.hint, !*rows[row].hint);
	}
}
