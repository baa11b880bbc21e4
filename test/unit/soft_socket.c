/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/unit/soft_socket.wrap */
/* Sockets of soft: errors of bind(2), paths by the route, multicast TTL, asynchronous errors. */
#include "test/unit/unit.h"

#include <errno.h>
#include <ifaddrs.h>
#include <poll.h>

#include "core/route.h"
#include "test/unit/fake_clock.h"
#include "transport/soft/base/shared.h"
#include "transport/soft/cm/cm_internal.h"
#include "transport/soft/qp/qp_internal.h"

static struct {
	int bind_error;
	uint16_t taken; /* a port */
	bool real_bind;
	bool rxe_holds_port;
	bool own_holder;
	struct route route;
	int route_error;
	unsigned routes; /* asked for */
	int netlink_error;
	loop_callback *addresses_changed;
	struct sockaddr_storage storage[2]; /* this host's addresses */
	struct ifaddrs list[2];
	size_t address_count;
	struct soft_transport transport;
} fake;

static const struct log test_log = { .name = "test" };
static const struct endpoint here_endpoint = { .transport = &fake.transport.base,
					       .name = "here",
					       .options.path = &path_unset };
static const struct address loopback = { .family = ADDRESS_IP4, .bytes = { 127, 0, 0, 1 } };
static const struct address group = { .family = ADDRESS_IP4, .bytes = { 239, 1, 2, 3 } };

int __real_bind(int fd, const struct sockaddr *name, socklen_t length);
int __wrap_bind(int fd, const struct sockaddr *name, socklen_t length)
{
	struct sockaddr_in to = { .sin_family = AF_UNSPEC };

	if (fake.real_bind)
		return __real_bind(fd, name, length);
	if (length >= sizeof(to))
		memcpy(&to, name, sizeof(to));
	if (fake.taken && ntohs(to.sin_port) == fake.taken) {
		errno = EADDRINUSE;
		return -1;
	}
	errno = fake.bind_error;
	return fake.bind_error ? -1 : 0;
}

bool __wrap_host_rxe_holds_port(const char *root)
{
	assert_string_equal(root, "");
	return fake.rxe_holds_port;
}

void __wrap_holder_find(struct holder *holder, const struct address *address)
{
	assert_int_equal(address->port, UDP_PORT_ROCE);
	holder->is_own = fake.own_holder;
	strcpy(holder->text, fake.own_holder ? "PID 17 (rping)" : "");
}

void __wrap_host_hint_rxe(struct error *error)
{
	error_hint(error, "one way out");
}

int __wrap_route_find(int fd, unsigned vrf, const struct address *peer, const struct address *source,
		      struct route *route)
{
	fake.routes++;
	*route = fake.route;
	if (!address_is_any(source))
		route->source = *source;
	return fake.route_error;
}

int __real_route_open(void);
int __wrap_route_open(void)
{
	errno = fake.netlink_error;
	return fake.netlink_error ? -1 : __real_route_open();
}

struct route_link __wrap_route_link(int fd, unsigned interface)
{
	return (struct route_link){ .losses = 1 };
}

int __wrap_getifaddrs(struct ifaddrs **list)
{
	for (size_t i = 0; i < fake.address_count; i++) {
		fake.list[i].ifa_addr = (struct sockaddr *)&fake.storage[i];
		fake.list[i].ifa_next = i + 1 < fake.address_count ? &fake.list[i + 1] : NULL;
	}
	*list = fake.address_count ? fake.list : NULL;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
}

/* The last callback is for address changes. */
void __wrap_loop_io_start(struct loop *loop, struct loop_io *io, int fd, loop_callback *callback, void *context)
{
	if (callback != soft_packet_io_readable)
		fake.addresses_changed = callback;
}

void __wrap_loop_io_stop(struct loop_io *io)
{
}

static int begin(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.transport.base.log = &test_log;
	fake.transport.packet_io = soft_packet_io_open();
	return fake.transport.packet_io ? 0 : -1;
}

static int end(void **state)
{
	soft_packet_io_close(fake.transport.packet_io);
	return 0;
}

static void assert_listen_fails(int error, bool rxe_holds_port, enum outcome outcome, const char *text)
{
	struct capture capture;
	enum outcome result;

	fake.bind_error = error;
	fake.rxe_holds_port = rxe_holds_port;
	capture_begin(&capture);
	result = soft_socket_listen(&here_endpoint, &loopback);
	log_report(&test_log, &fake.transport.base.error);
	assert_string_equal(capture_end(&capture), text);
	assert_int_equal(result, outcome);
	assert_null(fake.transport.sockets);
}

TEST(bind_errors, begin, end)
{
	static const char another[] = "test: here: another process holds UDP port 4791 on 127.0.0.1 (98)\n"
				      "test: hint: only one soft process per local address, and a server without -a "
				      "takes all of them: stop that process (ss -lunp sport = 4791), or give each an "
				      "address of its own (-a; client: -I)\n";
	static const char own[] = "test: here: PID 17 (rping) holds UDP port 4791 on 127.0.0.1 (98)\n"
				  "test: hint: only one soft process per local address, and a server without -a takes "
				  "all of them: stop that process, or give each an address of its own (-a; "
				  "client: -I)\n";

	/* rdma_rxe holds all addresses: no transport. */
	assert_listen_fails(
		EADDRINUSE, true, OUTCOME_NO_DEVICE,
		"test: here: the kernel's soft-RoCE (rdma_rxe) holds UDP port 4791 in this network namespace (98)\n"
		"test: hint: one way out\n");
	/* Another process holds this address only. */
	assert_listen_fails(EADDRINUSE, false, OUTCOME_NO_CONNECTION, another);
	assert_int_equal(fake.transport.base.error.kind, ERROR_OTHER);
	fake.own_holder = true;
	assert_listen_fails(EADDRINUSE, false, OUTCOME_NO_CONNECTION, own);
	assert_int_equal(fake.transport.base.error.kind, ERROR_HELD);
	assert_listen_fails(EADDRNOTAVAIL, false, OUTCOME_NO_CONNECTION,
			    "test: here: 127.0.0.1 is not an address of this host (99)\n");
	/* One in a VRF, for example. */
	fake.address_count = 1;
	address_to_socket(&loopback, &fake.storage[0]);
	assert_listen_fails(EADDRNOTAVAIL, false, OUTCOME_NO_CONNECTION,
			    "test: here: this process cannot use 127.0.0.1: its interface is down, or in another VRF "
			    "(99)\n"
			    "test: hint: ip address show to 127.0.0.1; in a VRF: ip vrf exec VRF rdmatest ...\n");
	fake.address_count = 0;
	assert_listen_fails(EAFNOSUPPORT, false, OUTCOME_NO_CONNECTION,
			    "test: here: this kernel has no IPv4, or a sandbox forbids it (97)\n");
	assert_listen_fails(EMFILE, false, OUTCOME_INTERNAL,
			    "test: here: opening UDP port 4791 on 127.0.0.1: Too many open files (24)\n");
}

static void assert_open_fails(int error, enum outcome outcome, const char *text)
{
	struct error reason = { 0 };
	struct capture capture;

	fake.netlink_error = error;
	capture_begin(&capture);
	assert_int_equal(soft_sockets_open(&fake.transport, &reason), outcome);
	log_report(&test_log, &reason);
	assert_string_equal(capture_end(&capture), text);
}

/* A sandbox forbids netlink: the transport names it, before there is a peer. */
TEST(netlink_errors, begin, end)
{
	assert_open_fails(EAFNOSUPPORT, OUTCOME_NO_DEVICE,
			  "test: creating a netlink socket: Address family not supported by protocol (97)\n"
			  "test: hint: allow AF_NETLINK, by which soft finds routes: a sandbox forbids it (seccomp, or "
			  "systemd's RestrictAddressFamilies=)\n");
	assert_open_fails(EMFILE, OUTCOME_INTERNAL, "test: creating a netlink socket: Too many open files (24)\n");
}

/* As with a multicast route through an interface without an address. */
TEST(route_has_no_source, begin, end)
{
	struct capture capture;
	struct soft_path path;
	enum outcome outcome;

	fake.route = (struct route){ .source.family = ADDRESS_IP4, .interface = 2, .mtu = 1500 };
	fake.bind_error = EADDRINUSE;
	capture_begin(&capture);
	outcome = soft_path_find(&here_endpoint, NULL, &group, &path);
	log_report(&test_log, &fake.transport.base.error);
	assert_string_equal(capture_end(&capture),
			    "test: here: resolving the address: the route to it has no source address\n");
	assert_int_equal(outcome, OUTCOME_NO_CONNECTION);
	assert_null(fake.transport.sockets);
}

/* The interface and the MTU are the route's, of a path to a peer and of the path back. */
TEST(paths_are_the_routes, begin, end)
{
	static const struct {
		uint32_t route, path;
	} mtus[] = { { 65536, 4096 }, { 9000, 4096 }, { 1500, 1024 }, { 1280, 1024 }, { 68, 256 }, { 0, 256 } };
	const struct address here = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 } };
	const struct address there = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 } };
	struct soft_path path, back;

	for (size_t i = 0; i < LENGTH(mtus); i++) {
		fake.route = (struct route){ .source = here, .interface = 7, .mtu = mtus[i].route };
		fake.transport.route.at = 0;
		assert_int_equal(soft_path_find(&here_endpoint, &here, &there, &path), OUTCOME_OK);
		back = (struct soft_path){ .socket = path.socket, .local = here, .peer = there };
		assert_int_equal(soft_path_route(&fake.transport, &back), 0);
		assert_int_equal(path.mtu, mtus[i].path);
		assert_int_equal(path.interface, 7);
		assert_int_equal(back.mtu, mtus[i].path);
		assert_int_equal(back.interface, 7);
	}
	soft_sockets_close(&fake.transport);
}

/* As from rtnetlink. */
TEST(kernel_has_no_ip6, begin, end)
{
	const struct address peer = { .family = ADDRESS_IP6, .bytes = { 0xfd, [15] = 1 } };
	struct capture capture;
	struct soft_path path;

	fake.route_error = EAFNOSUPPORT;
	capture_begin(&capture);
	assert_int_equal(soft_path_find(&here_endpoint, NULL, &peer, &path), OUTCOME_NO_CONNECTION);
	log_report(&test_log, &fake.transport.base.error);
	assert_string_equal(capture_end(&capture),
			    "test: here: this kernel has no IPv6, or a sandbox forbids it (97)\n");
}

static unsigned interface_after(int64_t wait, const struct address *local, const struct address *peer)
{
	struct soft_path path = { .local = *local, .peer = *peer };

	fake_clock_pass(wait);
	assert_int_equal(soft_path_route(&fake.transport, &path), fake.route_error);
	return path.interface;
}

/* Many connections between two addresses take one look-up in 100 ms, and a change is seen after that. */
TEST(route_is_kept_for_100_ms, begin, end)
{
	const struct address here = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 } };
	const struct address there = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 } };

	fake.route = (struct route){ .interface = 7, .mtu = 1500 };
	assert_int_equal(interface_after(0, &here, &there), 7);
	fake.route.interface = 8;
	assert_int_equal(interface_after(100 * CLOCK_NS_PER_MS, &here, &there), 7);
	assert_int_equal(fake.routes, 1);
	assert_int_equal(interface_after(1, &here, &there), 8);
	fake.route.interface = 9;
	assert_int_equal(interface_after(0, &there, &here), 9);
	fake.route_error = ENETUNREACH;
	assert_int_equal(interface_after(CLOCK_NS_PER_S, &here, &there), 9);
	fake.route_error = 0;
	fake.route.interface = 6;
	assert_int_equal(interface_after(0, &here, &there), 6);
}

/* Returns how many sockets a poller looks at. */
static size_t polled_sockets(void)
{
	const struct soft_socket *socket = fake.transport.sockets;
	size_t count = 0;

	for (; socket && socket->users; socket = socket->next)
		count++;
	for (; socket; socket = socket->next)
		assert_int_equal(socket->users, 0);
	return count;
}

static unsigned senders(void)
{
	unsigned count = 0;

	for (const struct soft_socket *sender = fake.transport.senders; sender; sender = sender->next)
		count++;
	return count;
}

/*
 * Each connection of --paths has a UDP port. A server's connections share the ports that its clients name, up to a
 * limit.
 */
TEST(senders_have_ports, begin, end)
{
	struct soft_path first, second, third;

	assert_int_equal(soft_socket_listen(&here_endpoint, &loopback), OUTCOME_OK);
	first = second = third = (struct soft_path){ .socket = fake.transport.sockets, .local = loopback };
	assert_ptr_equal(soft_path_sender(&first), fake.transport.sockets);
	assert_int_equal(soft_path_leave_from(&first, UDP_PORT_FIRST, 4), 0);
	assert_int_equal(soft_path_leave_from(&second, UDP_PORT_FIRST + 1, 4), 0);
	assert_int_equal(soft_path_leave_from(&third, UDP_PORT_FIRST, 4), 0);
	assert_int_equal(soft_path_sender(&first)->port, UDP_PORT_FIRST);
	assert_int_equal(soft_path_sender(&second)->port, UDP_PORT_FIRST + 1);
	assert_ptr_equal(third.sender, first.sender);
	assert_int_equal(senders(), 2);
	/* Not among those that a poller reads. */
	assert_null(fake.transport.sockets->next);
	soft_path_release(&first);
	assert_null(first.sender);
	assert_int_equal(third.sender->port, UDP_PORT_FIRST);
	soft_path_release(&second);
	assert_int_equal(senders(), 1);
	for (uint16_t port = UDP_PORT_FIRST + 1; port < UDP_PORT_FIRST + UDP_SENDERS_MAX; port++)
		assert_int_equal(soft_path_leave_from(&first, port, 0), 0);
	assert_int_equal(senders(), UDP_SENDERS_MAX);
	assert_int_equal(soft_path_leave_from(&second, UDP_PORT_FIRST + UDP_SENDERS_MAX, 4), EUSERS);
	assert_null(second.sender);
	assert_int_equal(soft_path_leave_from(&second, UDP_PORT_FIRST + 1, 0), 0);
	soft_sockets_close(&fake.transport);
	assert_int_equal(senders(), 0);
}

/* The last user closes it. If another process has a port, the path keeps its own. */
TEST(senders_are_closed, begin, end)
{
	struct soft_path path, copy;

	assert_int_equal(soft_socket_listen(&here_endpoint, &loopback), OUTCOME_OK);
	path = (struct soft_path){ .socket = fake.transport.sockets, .local = loopback };
	assert_int_equal(soft_path_leave_from(&path, UDP_PORT_FIRST, 0), 0);
	copy = path;
	soft_path_share(&copy);
	soft_path_release(&path);
	assert_int_equal(senders(), 1);
	soft_path_release(&copy);
	assert_int_equal(senders(), 0);
	fake.taken = UDP_PORT_FIRST;
	assert_int_equal(soft_path_leave_from(&path, UDP_PORT_FIRST, 4), 0);
	assert_int_equal(soft_path_sender(&path)->port, UDP_PORT_FIRST + 4);
	soft_path_release(&path);
	fake.bind_error = EADDRINUSE;
	assert_int_equal(soft_path_leave_from(&path, UDP_PORT_FIRST, 0), EADDRINUSE);
	assert_ptr_equal(soft_path_sender(&path), fake.transport.sockets);
	soft_sockets_close(&fake.transport);
}

/* The sockets with queue pairs come first, whatever the number of addresses. */
TEST(sockets_with_queue_pairs_come_first, begin, end)
{
	static const struct address late = { .family = ADDRESS_IP4, .bytes = { 127, 91, 0, 9 } };
	struct soft_socket *sockets[4];

	for (size_t i = 0; i < LENGTH(sockets); i++) {
		const struct address address = { .family = ADDRESS_IP4, .bytes = { 127, 91, 0, (uint8_t)(i + 1) } };

		assert_int_equal(soft_socket_listen(&here_endpoint, &address), OUTCOME_OK);
		sockets[i] = fake.transport.sockets;
	}
	for (unsigned turn = 0; turn < 2; turn++) {
		assert_int_equal(polled_sockets(), 0);
		for (size_t i = 0; i < LENGTH(sockets); i++) {
			soft_socket_use(sockets[i], 1);
			assert_int_equal(polled_sockets(), i + 1);
		}
		sockets[2]->send_error = EPERM;
		sockets[2]->path_mtu = 1280;
		soft_socket_use(sockets[2], 1);
		/* Not a cause of the new one's failures. */
		assert_int_equal(sockets[2]->send_error, 0);
		assert_int_equal(sockets[2]->path_mtu, 0);
		soft_socket_use(sockets[2], -1);
		for (size_t i = 0; i < LENGTH(sockets); i++) {
			assert_int_equal(polled_sockets(), 4 - i);
			soft_socket_use(sockets[i], -1);
		}
	}
	/* A later address comes after them. */
	soft_socket_use(sockets[0], 1);
	assert_int_equal(soft_socket_listen(&here_endpoint, &late), OUTCOME_OK);
	assert_int_equal(polled_sockets(), 1);
	soft_sockets_close(&fake.transport);
}

static void addresses_are(struct soft_transport *transport, size_t count, uint8_t first)
{
	for (size_t i = 0; i < count; i++)
		address_to_socket(
			&(struct address){ .family = ADDRESS_IP4, .bytes = { 10, 0, 0, (uint8_t)(first + i) } },
			&fake.storage[i]);
	fake.address_count = count;
	if (fake.addresses_changed)
		fake.addresses_changed(transport);
}

/* Returns the last bytes of the addresses with sockets, in decimal digits, and a digit 1 for 127.0.0.1. */
static unsigned served(const struct soft_transport *transport)
{
	unsigned digits = 0;

	for (const struct soft_socket *socket = transport->sockets; socket; socket = socket->next)
		digits += socket->address.bytes[0] == 127 ? 1 : 10u * socket->address.bytes[3];
	return digits;
}

/* The users of 10.0.0.2's socket. */
typedef void user(struct soft_transport *transport, struct soft_socket *socket, bool used);

static void use_endpoint(struct soft_transport *transport, struct soft_socket *socket, bool used)
{
	static struct soft_endpoint endpoint;

	endpoint.path.socket = socket;
	transport->endpoints = used ? &endpoint : NULL;
}

static void use_listener(struct soft_transport *transport, struct soft_socket *socket, bool used)
{
	static struct soft_endpoint listener;

	listener.base.local = socket->address;
	transport->listeners->next = used ? &listener : NULL;
}

static void use_cm_id(struct soft_transport *transport, struct soft_socket *socket, bool used)
{
	static struct soft_cm_id *cm_id;

	if (used)
		cm_id = soft_cm_id_create(transport->cm, &(struct soft_path){ .socket = socket });
	else
		soft_cm_id_free(cm_id);
}

static void use_request(struct soft_transport *transport, struct soft_socket *socket, bool used)
{
	transport->cm->requests[0].socket = socket;
	transport->cm->waiting.count = used;
}

/* A listener on the any address has a socket for each address. A removed address's socket stays while in use. */
TEST(removed_addresses_have_no_sockets, begin, end)
{
	static user *const use[] = { use_endpoint, use_listener, use_cm_id, use_request };
	struct soft_endpoint listener = { .base = { .name = "any", .options.path = &path_unset } };
	struct loop *loop = loop_create();
	struct transport *transport;
	struct soft_transport *soft;

	assert_int_equal(transport_open("soft", loop, &test_log, &(struct error){ 0 }, &transport), OUTCOME_OK);
	soft = soft_of(transport);
	listener.base.transport = transport;
	listener.base.state = ENDPOINT_LISTENING;
	listener.base.local.family = ADDRESS_IP4;
	soft->listeners = &listener;
	addresses_are(soft, 2, 2);
	assert_int_equal(soft_socket_listen(&listener.base, &listener.base.local), OUTCOME_OK);
	assert_int_equal(served(soft), 51);
	addresses_are(soft, 1, 3);
	assert_int_equal(served(soft), 31);
	for (size_t i = 0; i < LENGTH(use); i++) {
		addresses_are(soft, 1, 2);
		assert_int_equal(served(soft), 21);
		use[i](soft, soft->sockets, true);
		addresses_are(soft, 1, 3);
		assert_int_equal(served(soft), 51);
		use[i](soft, soft->sockets, false);
		addresses_are(soft, 1, 4);
		assert_int_equal(served(soft), 41);
	}
	soft->listeners = NULL;
	transport_close(transport);
	loop_destroy(loop);
}

/* TTL 64, as the Linux CM uses for RoCE v2 groups: the default of 1 would end at the first router. */
TEST(multicast_ttl_is_64, begin, end)
{
	static const struct address here[] = {
		{ .family = ADDRESS_IP4, .bytes = { 127, 0, 0, 1 } },
		{ .family = ADDRESS_IP6, .bytes = { [15] = 1 } },
	};

	for (size_t i = 0; i < LENGTH(here); i++) {
		bool four = here[i].family == ADDRESS_IP4;
		struct soft_path path;
		socklen_t length = sizeof(int);
		int hops = 0;

		assert_int_equal(soft_socket_listen(&here_endpoint, &here[i]), OUTCOME_OK);
		path = (struct soft_path){ fake.transport.sockets, .local = here[i], .interface = ROUTE_LOOPBACK };
		assert_true(soft_socket_multicast(&path, true));
		assert_int_equal(getsockopt(fake.transport.sockets->fd, four ? IPPROTO_IP : IPPROTO_IPV6,
					    four ? IP_MULTICAST_TTL : IPV6_MULTICAST_HOPS, &hops, &length),
				 0);
		assert_int_equal(hops, 64);
	}
	soft_sockets_close(&fake.transport);
}

/* The error is pending when sending returns: the loopback interface delivers at once. */
static bool has_error(int fd)
{
	struct pollfd poll_fd = { .fd = fd };

	return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLERR);
}

static void assert_error_is_taken(struct soft_socket *socket)
{
	assert_true(has_error(socket->fd));
	for (unsigned turns = 0; turns < 2; turns++)
		soft_packet_io_readable(socket);
	assert_false(has_error(socket->fd));
}

/* An ICMP error is pending from a packet to a closed port. First case: the next packet goes to another address. Second
 * case: both packets are sent in one call. */
TEST(socket_errors_are_cleared, begin, end)
{
	static const uint8_t payload[256];
	const struct address here = { .family = ADDRESS_IP4, .bytes = { 127, 91, 0, 1 } };
	const struct packet packet = {
		.opcode = OPCODE_DATAGRAM, .destination = 1, .payload = payload, .length = sizeof(payload)
	};
	struct loop *loop = loop_create();
	struct soft_path path = { .peer = { .family = ADDRESS_IP4, .bytes = { 127, 91, 0, 2 } } };
	struct transport *transport;
	struct soft_socket *socket;

	fake.real_bind = true;
	assert_int_equal(transport_open("soft", loop, &test_log, &(struct error){ 0 }, &transport), OUTCOME_OK);
	/* With rdma_rxe loaded the port is held on all addresses. */
	if (soft_socket_listen(
		    &(struct endpoint){ .transport = transport, .name = "here", .options.path = &path_unset }, &here)) {
		transport_close(transport);
		loop_destroy(loop);
		skip();
	}
	socket = soft_of(transport)->sockets;
	path.socket = socket;
	soft_transmit(soft_of(transport), &path, &packet);
	soft_flush(soft_of(transport));
	assert_true(has_error(socket->fd));
	path.peer = here;
	soft_transmit(soft_of(transport), &path, &packet);
	soft_flush(soft_of(transport));
	assert_error_is_taken(socket);

	path.peer.bytes[3] = 2;
	soft_transmit(soft_of(transport), &path, &packet);
	path.peer = here;
	soft_transmit(soft_of(transport), &path, &packet);
	soft_flush(soft_of(transport));
	assert_error_is_taken(socket);
	transport_close(transport);
	loop_destroy(loop);
}
