/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One UDP socket on port 4791 per local address, and one per joined group and interface. No socket is bound to the any
 * address: the ICRC covers the destination address, and other processes could not bind their 127.0.0.x.
 */
#include "transport/soft/net/socket.h"

#include <time.h> /* linux/errqueue.h needs struct timespec */

#include <errno.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/host.h"
#include "core/interface.h"
#include "core/route.h"
#include "core/route_cause.h"
#include "transport/soft/base/queue.h"

enum {
	BUFFER_SIZE = 8 << 20, /* SO_RCVBUF and SO_SNDBUF, bytes */
	LOOPBACK_MAX = 254,    /* own_loopback_socket() tries 127.0.0.1 to 127.0.0.254 */
	MTU_CODE_LEAST = 1,
	SKB_OVERHEAD = 512,	/* at most: headers, headroom, struct skb_shared_info */
	SKB_SIZE = 256,		/* Linux's struct sk_buff */
	SPARE_DESCRIPTORS = 16, /* for route look-ups, report files, ... */
	GROUP_HOPS = 64,	/* as in Linux's rdma_cm; a socket's default is 1 */
};

#define RESOLVING "resolving the address"

/* A look-up takes four system calls, and many connections are made between the same two addresses at once. */
#define ROUTE_KEPT (100 * CLOCK_NS_PER_MS)

static bool set_option(int fd, int level, int name, int value)
{
	return !setsockopt(fd, level, name, &value, sizeof(value));
}

/* SO_RCVBUFFORCE exceeds net.core.rmem_max but needs CAP_NET_ADMIN. Returns the size of the receive buffer. */
static size_t enlarge_buffers(int fd)
{
	int size = 0;
	socklen_t length = sizeof(size);

	if (!set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_SIZE))
		set_option(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_SIZE);
	if (!set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_SIZE))
		set_option(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_SIZE);
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &length);
	return (size_t)size;
}

/*
 * MTU_DISCOVER_PROBE sets DF, so that IPv4 packets have identification 0, which the ICRC covers; it also ignores ICMP's
 * path MTU, which anybody can forge. RECVERR queues ICMP errors. NO_CHECK6_RX accepts soft-RoCE's IPv6 packets without
 * a UDP checksum. UDP_GRO receives many packets of a sender in one message.
 */
static void socket_set_options(int fd, enum address_family family)
{
	set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
	if (family == ADDRESS_IP4) {
		set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
		set_option(fd, IPPROTO_IP, IP_RECVERR, 1);
		set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	} else {
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
		set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
		set_option(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
		set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
		set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	}
}

static struct soft_socket **list_of(const struct soft_socket *socket)
{
	return socket->port == UDP_PORT_ROCE ? &socket->transport->sockets : &socket->transport->senders;
}

/*
 * Returns NULL with errno on failure. SO_REUSEADDR shares a group's port with other processes, and a sender's port,
 * which receives nothing, with a process that traces its path. Two runs never share a sender's port: each has its
 * address's port 4791 to itself.
 */
static struct soft_socket *socket_open(struct soft_transport *transport, const struct address *address, uint16_t port,
				       bool group)
{
	struct soft_socket *socket_ = calloc(1, sizeof(*socket_));
	struct sockaddr_storage storage;
	struct address bound = *address;
	socklen_t length;
	int error;

	if (!socket_)
		return NULL;
	bound.port = port;
	length = (socklen_t)address_to_socket(&bound, &storage);
	socket_->transport = transport;
	socket_->address = *address;
	socket_->port = port;
	socket_->group = group;
	socket_->fd = socket(address->family == ADDRESS_IP4 ? AF_INET : AF_INET6,
			     SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
	if (socket_->fd < 0)
		goto failed;
	socket_set_options(socket_->fd, address->family);
	if ((group || port != UDP_PORT_ROCE) && !set_option(socket_->fd, SOL_SOCKET, SO_REUSEADDR, 1))
		goto failed;
	socket_->buffer = enlarge_buffers(socket_->fd);
	if (bind(socket_->fd, (struct sockaddr *)&storage, length))
		goto failed;
	socket_->next = *list_of(socket_);
	*list_of(socket_) = socket_;
	soft_socket_use(socket_, 0);
	loop_io_start(transport->base.loop, &socket_->readable, socket_->fd,
		      port == UDP_PORT_ROCE ? soft_packet_io_readable : soft_packet_io_sender_readable, socket_);
	return socket_;
failed:
	error = errno;
	if (socket_->fd >= 0)
		close(socket_->fd);
	free(socket_);
	errno = error;
	return NULL;
}

static void socket_unlink(struct soft_socket *socket)
{
	struct soft_socket **slot = list_of(socket);

	while (*slot != socket)
		slot = &(*slot)->next;
	*slot = socket->next;
}

void soft_socket_use(struct soft_socket *socket, int change)
{
	struct soft_socket **slot = list_of(socket);

	socket_unlink(socket);
	socket->users += (unsigned)change;
	while (!socket->users && *slot && (*slot)->users)
		slot = &(*slot)->next;
	socket->next = *slot;
	*slot = socket;
	if (change > 0) {
		socket->send_error = 0;
		socket->path_mtu = 0;
		socket->dropped += soft_socket_dropped(socket);
	}
}

static void socket_close(struct soft_socket *socket)
{
	socket_unlink(socket);
	loop_io_stop(&socket->readable);
	close(socket->fd);
	free(socket);
}

static struct soft_socket *socket_find(struct soft_transport *transport, const struct address *address)
{
	for (struct soft_socket *socket = transport->sockets; socket; socket = socket->next)
		if (!socket->group && address_same_host(&socket->address, address))
			return socket;
	return NULL;
}

static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

static enum outcome socket_outcome(int error)
{
	return is_shortage(error) ? OUTCOME_INTERNAL : OUTCOME_NO_CONNECTION;
}

enum outcome soft_sockets_open(struct soft_transport *transport, struct error *reason)
{
	int error;

	transport->addresses_fd = -1;
	transport->vrf = route_vrf();
	transport->routes_fd = route_open();
	if (transport->routes_fd >= 0)
		return OUTCOME_OK;
	error = errno;
	error_errno(reason, NULL, error, "creating a netlink socket");
	if (error == EAFNOSUPPORT || error == EPERM || error == EACCES)
		error_hint(reason, "allow AF_NETLINK, by which soft finds routes: a sandbox forbids it (seccomp, or "
				   "systemd's RestrictAddressFamilies=)");
	return is_shortage(error) ? OUTCOME_INTERNAL : OUTCOME_NO_DEVICE;
}

/* All targets of a list have the same local address: its holder is looked up once. */
static void report_holder(const struct endpoint *endpoint, const struct address *address, const char *text)
{
	struct holder *holder = &soft_of(endpoint->transport)->holder;
	struct error *reason = endpoint_error(endpoint);
	struct failure failure = { .object = endpoint->name, .code = EADDRINUSE };
	struct address held = *address;

	held.port = UDP_PORT_ROCE;
	if (WITH_DIAGNOSTICS)
		holder_find(holder, &held);
	if (holder->is_own)
		failure.kind = ERROR_HELD;
	error_failure(reason, &failure, "%s holds UDP port 4791 on %s",
		      *holder->text ? holder->text : "another process", text);
	if (address_is_loopback(address) && address->family == ADDRESS_IP6)
		error_hint(reason, "IPv6 has one loopback address, for one soft process: use 127.0.0.1, which a server "
				   "on ::0 serves too");
	error_hint(reason,
		   "only one soft process per local address, and a server without -a takes all of them: stop that "
		   "process%s, or give each an address of its own (-a; client: -I)",
		   *holder->text ? "" : " (ss -lunp sport = 4791)");
}

static enum outcome socket_report_error(const struct endpoint *endpoint, const struct address *address, int error)
{
	const struct failure failure = { .object = endpoint->name, .code = error };
	struct error *reason = endpoint_error(endpoint);
	char text[ADDRESS_TEXT_SIZE], why[ROUTE_CAUSE_SIZE], interface[IF_NAMESIZE];

	address_host(address, text);
	if (error == EADDRINUSE && host_rxe_holds_port("")) {
		error_failure(reason, &failure,
			      "the kernel's soft-RoCE (rdma_rxe) holds UDP port 4791 in this network namespace");
		if (WITH_DIAGNOSTICS)
			host_hint_rxe(reason);
		return OUTCOME_NO_DEVICE;
	}
	if (error == EADDRINUSE) {
		report_holder(endpoint, address, text);
	} else if (error == EADDRNOTAVAIL && WITH_DIAGNOSTICS && route_cause_local(address, why)) {
		error_failure(reason, &failure, "%s", why);
	} else if (error == EADDRNOTAVAIL && WITH_DIAGNOSTICS && interface_of(address, interface)) {
		error_failure(reason, &failure, "this process cannot use %s: its interface is down, or in another VRF",
			      text);
		error_hint(reason, "ip address show to %s; in a VRF: ip vrf exec VRF rdmatest ...", text);
	} else if (error == EAFNOSUPPORT) {
		error_failure(reason, &failure, "this kernel has no %s, or a sandbox forbids it",
			      address->family == ADDRESS_IP4 ? "IPv4" : "IPv6");
	} else if (error == EADDRNOTAVAIL) {
		error_failure(reason, &failure, "%s is not an address of this host", text);
	} else {
		error_errno(reason, endpoint->name, error, "opening UDP port 4791 on %s", text);
	}
	return socket_outcome(error);
}

/* Finds or opens the socket of an address. */
static enum outcome socket_get(const struct endpoint *endpoint, const struct address *address,
			       struct soft_socket **result)
{
	struct soft_transport *transport = soft_of(endpoint->transport);

	*result = socket_find(transport, address);
	if (!*result)
		*result = socket_open(transport, address, UDP_PORT_ROCE, false);
	return *result ? OUTCOME_OK : socket_report_error(endpoint, address, errno);
}

/* Finds or opens a socket on a free 127.0.0.x. Skips the peer's address, which its server may not have bound yet. */
static struct soft_socket *own_loopback_socket(struct soft_transport *transport, const struct address *peer)
{
	struct address address = { .family = ADDRESS_IP4, .bytes = { 127, 0, 0, 1 } };

	for (struct soft_socket *socket = transport->sockets; socket; socket = socket->next)
		if (!socket->group && socket->address.family == ADDRESS_IP4 && address_is_loopback(&socket->address))
			return socket;
	for (int last = 1; last <= LOOPBACK_MAX; last++) {
		struct soft_socket *socket;

		address.bytes[3] = (uint8_t)last;
		if (peer && address_same_host(&address, peer))
			continue;
		socket = socket_open(transport, &address, UDP_PORT_ROCE, false);
		if (socket || errno != EADDRINUSE)
			return socket;
	}
	return NULL;
}

/* fe80::, ff02:: or ff12:: (RFC 4291, 2.7). */
static bool is_link_scope(const struct address *address)
{
	return address_is_link_local(address) ||
	       (address->family == ADDRESS_IP6 && address->bytes[0] == 0xff && (address->bytes[1] & 0x0f) == 2);
}

uint32_t soft_packet_mtu(uint32_t mtu)
{
	unsigned code = mtu_code(mtu > PACKET_OVERHEAD_MAX ? mtu - PACKET_OVERHEAD_MAX : 0);

	return mtu_bytes(code ? code : MTU_CODE_LEAST);
}

int soft_path_route(struct soft_transport *transport, struct soft_path *path)
{
	struct soft_route *kept = &transport->route;
	int64_t now = clock_now();
	int error = 0;

	if (!kept->at || now - kept->at > ROUTE_KEPT || !address_same_host(&kept->peer, &path->peer) ||
	    !address_same_host(&kept->local, &path->local)) {
		*kept = (struct soft_route){ .peer = path->peer, .local = path->local };
		error = route_find(transport->routes_fd, transport->vrf, &path->peer, &path->local, &kept->route);
		if (!error)
			kept->at = now;
		if (WITH_REPORT && WITH_EXTRAS && !error && !transport->watched) {
			transport->watched = kept->route.interface;
			transport->losses_before = route_link(transport->routes_fd, transport->watched).losses;
		}
	}
	if (address_is_any(&path->local))
		path->local = kept->route.source;
	path->interface = kept->route.interface;
	path->mtu = soft_packet_mtu(kept->route.mtu);
	return error;
}

/* Opens the socket of the route's local address. */
static enum outcome open_route_socket(const struct endpoint *endpoint, struct soft_path *path)
{
	struct soft_transport *transport = soft_of(endpoint->transport);

	if (address_is_any(&path->local))
		return endpoint_no_connection(endpoint, RESOLVING, 0, "the route to it has no source address");
	/* The peer may be another process of this host, which has bound that address. */
	if ((address_is_loopback(&path->local) || address_same_host(&path->local, &path->peer)) &&
	    path->local.family == ADDRESS_IP4 && !socket_find(transport, &path->local)) {
		path->socket = own_loopback_socket(transport, &path->peer);
		if (!path->socket)
			return socket_report_error(endpoint, &path->local, errno);
		path->local = path->socket->address;
		return OUTCOME_OK;
	}
	return socket_get(endpoint, &path->local, &path->socket);
}

void soft_path_apply_options(struct soft_path *path, const struct endpoint *endpoint)
{
	int type_of_service = path_type_of_service(endpoint->options.path);
	int64_t mtu = endpoint_option(endpoint, mtu);

	if (type_of_service != PATH_UNSET)
		path->type_of_service = (uint8_t)(type_of_service & SOFT_DSCP);
	if (mtu != PATH_UNSET && (uint32_t)mtu < path->mtu)
		path->mtu = (uint32_t)mtu;
}

/* Reports why packets cannot take the route. given: the command gave the source. error: of the look-up. */
static enum outcome check_route(const struct endpoint *endpoint, const struct soft_path *path, bool given, int error)
{
	bool stays_here = address_is_loopback(&path->local) && path->interface != ROUTE_LOOPBACK;
	char host[ADDRESS_TEXT_SIZE], cause[ROUTE_CAUSE_SIZE];

	if (!given && error == EINVAL)
		return endpoint_no_connection(endpoint, RESOLVING, error,
					      "a route of this host drops packets to it: blackhole");
	if (!given && error == EACCES)
		return endpoint_no_connection(endpoint, RESOLVING, error,
					      "a route of this host forbids packets to it: prohibit");
	if (error == EINVAL || (!error && stays_here)) {
		log_text(cause, sizeof(cause), "%s is not a usable source: packets from it never leave this host",
			 address_host(&path->local, host));
		return endpoint_no_connection(endpoint, RESOLVING, EINVAL, cause);
	}
	if (error == EAFNOSUPPORT)
		return socket_report_error(endpoint, &path->peer, error);
	if (error) {
		endpoint_no_connection(endpoint, RESOLVING, error, strerror(error));
		return socket_outcome(error);
	}
	if (WITH_DIAGNOSTICS && soft_of(endpoint->transport)->route.route.is_broadcast &&
	    route_cause(&path->local, &path->peer, cause))
		return endpoint_no_connection(endpoint, RESOLVING, EACCES, cause);
	return OUTCOME_OK;
}

enum outcome soft_path_find(const struct endpoint *endpoint, const struct address *source, const struct address *peer,
			    struct soft_path *path)
{
	bool given = source && !address_is_any(source);
	enum outcome outcome = OUTCOME_OK;

	*path = (struct soft_path){ .peer = *peer, .local.family = peer->family };
	path->peer.port = UDP_PORT_ROCE;
	if (source && source->family != peer->family)
		return endpoint_no_connection(endpoint, NULL, 0,
					      "the source and the destination are not of the same address family");
	if (given) {
		path->local = *source;
		outcome = socket_get(endpoint, &path->local, &path->socket);
	}
	if (outcome)
		return outcome;
	if (address_is_link_local(peer) && !peer->scope && !path->local.scope)
		return endpoint_no_connection(endpoint, RESOLVING, EINVAL,
					      "a link-local address needs an interface: ADDRESS%INTERFACE");
	outcome = check_route(endpoint, path, given, soft_path_route(soft_of(endpoint->transport), path));
	if (outcome)
		return outcome;
	if (is_link_scope(peer) && !peer->scope)
		path->peer.scope = path->interface;
	soft_path_apply_options(path, endpoint);
	return given ? OUTCOME_OK : open_route_socket(endpoint, path);
}

/* ---- senders ---- */

/* NULL: no path uses that port. */
static struct soft_socket *find_sender(const struct soft_path *path, uint16_t port, unsigned *count)
{
	struct soft_socket *found = NULL;

	*count = 0;
	for (struct soft_socket *sender = path->socket->transport->senders; sender; sender = sender->next) {
		++*count;
		if (sender->port == port && address_same_host(&sender->address, &path->local))
			found = sender;
	}
	return found;
}

int soft_path_leave_from(struct soft_path *path, uint16_t port, unsigned step)
{
	struct soft_socket *sender;
	unsigned next = port, count;

	do {
		sender = find_sender(path, (uint16_t)next, &count);
		if (!sender && count >= UDP_SENDERS_MAX)
			return EUSERS;
		if (!sender)
			sender = socket_open(path->socket->transport, &path->local, (uint16_t)next, false);
		next += step;
	} while (!sender && errno == EADDRINUSE && step && next <= UINT16_MAX);
	if (!sender)
		return errno;
	soft_socket_use(sender, 1);
	path->sender = sender;
	return 0;
}

void soft_path_share(const struct soft_path *path)
{
	if (path->sender)
		soft_socket_use(path->sender, 1);
}

/* Its last packets may be queued. */
void soft_path_release(struct soft_path *path)
{
	struct soft_socket *sender = path->sender;

	path->sender = NULL;
	if (!sender)
		return;
	soft_socket_use(sender, -1);
	if (sender->users)
		return;
	soft_flush(sender->transport);
	socket_close(sender);
}

/* The first call may merely report an earlier packet's ICMP error. */
void soft_probe_host(struct soft_endpoint *endpoint)
{
	struct soft_socket *sender = soft_path_sender(&endpoint->path);
	struct address closed = endpoint->path.peer;
	struct sockaddr_storage to;
	socklen_t length;

	if (!SOFT_PROBES || !endpoint->connects || endpoint->probe)
		return;
	closed.port = UDP_PORT_CLOSED;
	length = (socklen_t)address_to_socket(&closed, &to);
	for (unsigned tries = 0; tries < 2 && !endpoint->probe; tries++) {
		if (!sendto(sender->fd, NULL, 0, MSG_DONTWAIT, (struct sockaddr *)&to, length)) {
			endpoint->probe = SOFT_PROBE_SENT;
			sender->transport->probes++;
		} else {
			sender->errors_queued = true;
		}
	}
}

/* As socket_open(), but reserves descriptors for other uses; the kernel assigns the lowest free number. */
static bool open_one_of_many(struct soft_transport *transport, const struct address *address, rlim_t limit)
{
	struct soft_socket *socket = socket_open(transport, address, UDP_PORT_ROCE, false);

	if (!socket || (rlim_t)socket->fd + SPARE_DESCRIPTORS < limit)
		return socket;
	socket_close(socket);
	errno = EMFILE;
	return false;
}

/*
 * Opens a socket on every local address of any's family but 127.x.x.x. Returns the errno for *failed, if another
 * process has that address. Addresses beyond this process's limits are left out.
 */
static int open_all_local(struct soft_transport *transport, const struct address *any, struct address *failed)
{
	struct ifaddrs *list;
	struct rlimit limit;
	char host[ADDRESS_TEXT_SIZE];
	unsigned left_out = 0;
	int error = 0;

	*failed = *any;
	if (getifaddrs(&list))
		return errno;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
		struct address address;

		if (!entry->ifa_addr || !address_from_socket(entry->ifa_addr, &address))
			continue;
		if ((address.family == ADDRESS_IP4 ? address_is_loopback(&address) : any->family == ADDRESS_IP4) ||
		    socket_find(transport, &address) || open_one_of_many(transport, &address, limit.rlim_cur))
			continue;
		/* Any other error: the address is not usable yet (tentative), and netlink reports when it is. */
		if (socket_outcome(errno) == OUTCOME_INTERNAL && !left_out++)
			address_host(&address, host);
		if (!error && errno == EADDRINUSE && !address_is_loopback(&address)) {
			error = errno;
			*failed = address;
		}
	}
	freeifaddrs(list);
	if (left_out && log_allows(&transport->base.request_log_limit))
		log_hint(transport->base.log,
			 "not listening on %u of this host's addresses, the first %s: the open-file limit is %ju "
			 "(ulimit -n)",
			 left_out, host, (uintmax_t)limit.rlim_cur);
	return error;
}

/* Closes the sockets of addresses that this host no longer has. Those in use are left until the next change. */
static void close_removed(struct soft_transport *transport)
{
	struct soft_socket *next;
	struct ifaddrs *list;

	if (getifaddrs(&list))
		return;
	for (struct soft_socket *socket = transport->sockets; socket; socket = next) {
		next = socket->next;
		/* 127.x.x.x is local without being in the list. */
		if (!socket->group && !address_is_loopback(&socket->address) &&
		    !interface_entry(list, &socket->address) && !soft_handlers.socket_in_use(socket))
			socket_close(socket);
	}
	freeifaddrs(list);
}

/* Loop callback: the listeners on the any address have a socket for each address of this host. */
static void addresses_changed(void *context)
{
	struct soft_transport *transport = context;
	struct address failed;
	uint8_t messages[4096]; /* discarded: getifaddrs(3) gives the current addresses */

	while (read(transport->addresses_fd, messages, sizeof(messages)) > 0)
		;
	soft_callback_begin(transport);
	close_removed(transport);
	for (struct soft_endpoint *listener = transport->listeners; listener; listener = listener->next)
		if (listener->base.state == ENDPOINT_LISTENING && address_is_any(&listener->base.local))
			open_all_local(transport, &listener->base.local, &failed);
	soft_callback_end(transport);
}

/* Without it, later addresses are not served. */
static void watch_addresses(struct soft_transport *transport)
{
	struct sockaddr_nl groups = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	int fd;

	if (transport->addresses_fd >= 0)
		return;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0 || bind(fd, (struct sockaddr *)&groups, sizeof(groups))) {
		if (fd >= 0)
			close(fd);
		return;
	}
	transport->addresses_fd = fd;
	loop_io_start(transport->base.loop, &transport->addresses_changed, fd, addresses_changed, transport);
}

/*
 * Opens a free 127.0.0.x and every other local address of the family. Fails if another process has bound one of the
 * latter: peers that use it would not reach this listener.
 */
static enum outcome listen_on_all_local(const struct endpoint *listener, const struct address *any)
{
	struct soft_transport *transport = soft_of(listener->transport);
	struct address failed = { .family = ADDRESS_IP4, .bytes = { 127, 0, 0, 1 } };
	int error = 0;

	/* First, so that no address is missed. */
	watch_addresses(transport);
	/* While lo is down it has no address. */
	if (!own_loopback_socket(transport, NULL) && errno != EADDRNOTAVAIL)
		error = errno;
	else
		error = open_all_local(transport, any, &failed);
	return error ? socket_report_error(listener, &failed, error) : OUTCOME_OK;
}

enum outcome soft_socket_listen(const struct endpoint *listener, const struct address *address)
{
	struct soft_socket *socket;

	return address_is_any(address) ? listen_on_all_local(listener, address)
				       : socket_get(listener, address, &socket);
}

/* The kernel charges skb->truesize to SO_RCVBUF: the data, rounded up to a power of two, and struct sk_buff. */
static size_t packet_truesize(size_t payload)
{
	size_t memory = 256;

	while (memory < payload + SKB_OVERHEAD)
		memory *= 2;
	return memory + SKB_SIZE;
}

/* A quarter of the buffer is reserved for acknowledgements and the peer's own requests. */
size_t soft_socket_window(const struct soft_socket *socket, size_t payload)
{
	size_t packets = (socket->buffer - socket->buffer / 4) / packet_truesize(payload);

	return packets ? packets : 1;
}

uint32_t soft_socket_dropped(const struct soft_socket *socket)
{
	uint32_t information[SK_MEMINFO_VARS] = { 0 };
	socklen_t length = sizeof(information);

	getsockopt(socket->fd, SOL_SOCKET, SO_MEMINFO, information, &length);
	return information[SK_MEMINFO_DROPS] - socket->dropped;
}

void soft_local_addresses(const struct endpoint *listener, char text[ENDPOINT_ADDRESSES_SIZE])
{
	const struct soft_socket *socket = soft_of(listener->transport)->sockets;

	for (; socket && address_is_any(&listener->local); socket = socket->next)
		if (!socket->group &&
		    (listener->local.family != ADDRESS_IP4 || socket->address.family == ADDRESS_IP4) &&
		    !path_add_local(text, &socket->address))
			return;
}

void soft_sockets_close(struct soft_transport *transport)
{
	if (transport->addresses_fd >= 0) {
		loop_io_stop(&transport->addresses_changed);
		close(transport->addresses_fd);
	}
	if (transport->routes_fd >= 0)
		close(transport->routes_fd);
	transport->addresses_fd = transport->routes_fd = -1;
	while (transport->sockets)
		socket_close(transport->sockets);
	while (transport->senders)
		socket_close(transport->senders);
}

static bool join_group(const struct soft_socket *socket, unsigned interface)
{
	struct ip_mreqn ip4 = { .imr_ifindex = (int)interface };
	struct ipv6_mreq ip6 = { .ipv6mr_interface = interface };

	memcpy(&ip4.imr_multiaddr, socket->address.bytes, sizeof(ip4.imr_multiaddr));
	memcpy(&ip6.ipv6mr_multiaddr, socket->address.bytes, sizeof(ip6.ipv6mr_multiaddr));
	return socket->address.family == ADDRESS_IP4
		       ? !setsockopt(socket->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &ip4, sizeof(ip4))
		       : !setsockopt(socket->fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &ip6, sizeof(ip6));
}

enum outcome soft_group_socket_join(const struct endpoint *endpoint, const struct soft_path *path,
				    struct soft_socket **result)
{
	struct soft_transport *transport = soft_of(endpoint->transport);
	struct soft_socket *socket = transport->sockets;
	int error;

	*result = NULL;
	while (socket && !(socket->group && socket->interface == path->interface &&
			   address_same_host(&socket->address, &path->peer)))
		socket = socket->next;
	if (!socket) {
		socket = socket_open(transport, &path->peer, UDP_PORT_ROCE, true);
		if (!socket)
			return socket_report_error(endpoint, &path->peer, errno);
		if (!join_group(socket, path->interface)) {
			error = errno;
			error_errno(endpoint_error(endpoint), endpoint->name, error, "joining the group");
			socket_close(socket);
			return socket_outcome(error);
		}
	}
	socket->interface = path->interface;
	soft_socket_use(socket, 1);
	*result = socket;
	return OUTCOME_OK;
}

/* Closing the socket leaves the group. */
void soft_group_socket_leave(struct soft_socket *socket)
{
	soft_socket_use(socket, -1);
	if (!socket->users)
		socket_close(socket);
}

bool soft_socket_multicast(const struct soft_path *path, bool loopback)
{
	const struct ip_mreqn four = { .imr_ifindex = (int)path->interface };
	int fd = path->socket->fd;

	if (path->local.family == ADDRESS_IP4)
		return !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &four, sizeof(four)) &&
		       set_option(fd, IPPROTO_IP, IP_MULTICAST_LOOP, loopback) &&
		       set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, GROUP_HOPS);
	return set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)path->interface) &&
	       set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, loopback) &&
	       set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, GROUP_HOPS);
}
