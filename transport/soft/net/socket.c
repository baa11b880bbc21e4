/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One UDP socket on port 4791 per local address, and one per group and interface where it was joined. No socket is
 * bound to the any address: the ICRC covers the address a packet was sent to, and an any socket would take the port of
 * every 127.0.0.x away from other processes.
 */
#include "transport/soft/net/socket.h"

#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/errqueue.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "transport/soft/delivery.h"
#include "transport/soft/net/packet_io.h"
#include "transport/soft/net/port_holder.h"

enum {
	BUFFER_WANTED = 8 << 20, /* bytes in a socket's buffers, where the system lets us */
	LOOPBACK_MOST = 254,	 /* 127.0.0.1 to 127.0.0.254 are tried */
	MTU_CODE_LEAST = 1,
	PACKET_AROUND = 512,	  /* at most: headers, room for the device's, the end of the buffer */
	PACKET_DESCRIPTION = 256, /* struct sk_buff of Linux */
	GROUP_HOPS = 64,	  /* as Linux's connection manager has it; a socket's own is 1 */
};

static bool set_option(int fd, int level, int name, int value)
{
	return !setsockopt(fd, level, name, &value, sizeof(value));
}

/* Asks for large buffers, beyond the system's limit where we may. Returns what the receive buffer holds. */
static size_t enlarge_buffers(int fd)
{
	int size = 0;
	socklen_t length = sizeof(size);

	if (!set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_WANTED))
		set_option(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_WANTED);
	if (!set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_WANTED))
		set_option(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_WANTED);
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &length);
	return (size_t)size;
}

/*
 * Never fragmented, so that an IPv4 packet has identification 0 and we know the header that its ICRC covers; and sent
 * whatever ICMP says of the path's MTU, as anybody can forge that. Errors of the path come back; IPv6 packets without a
 * checksum, which soft-RoCE sends, are let in. Where the kernel can it hands over many packets of a sender at once.
 */
static void prepare(int fd, enum address_family family)
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

static bool is_loopback4(const struct address *address)
{
	return address->family == ADDRESS_IP4 && address->bytes[0] == 127;
}

static bool is_loopback(const struct address *address)
{
	static const uint8_t one[16] = { [15] = 1 };

	return is_loopback4(address) || (address->family == ADDRESS_IP6 && !memcmp(address->bytes, one, sizeof(one)));
}

/* 127.0.0.2 and its like are not listed one by one. */
bool soft_interface_name(const struct address *local, char name[IF_NAMESIZE])
{
	struct ifaddrs *list, *entry;

	if (getifaddrs(&list))
		return false;
	for (entry = list; entry; entry = entry->ifa_next) {
		struct address address;

		if (entry->ifa_addr &&
		    (entry->ifa_addr->sa_family == AF_INET || entry->ifa_addr->sa_family == AF_INET6) &&
		    address_from_socket((struct sockaddr_storage *)(void *)entry->ifa_addr, &address) &&
		    address.family == local->family && !memcmp(address.bytes, local->bytes, sizeof(address.bytes)))
			break;
		if (is_loopback4(local) && (entry->ifa_flags & IFF_LOOPBACK))
			break;
	}
	if (entry)
		snprintf(name, IF_NAMESIZE, "%s", entry->ifa_name);
	freeifaddrs(list);
	return entry != NULL;
}

bool soft_is_loopback(const struct address *local)
{
	char name[IF_NAMESIZE];

	return is_loopback(local) || (soft_interface_name(local, name) && !strcmp(name, "lo"));
}

/* The MTU of the interface that has the address, or of the loopback if none is found. */
static int interface_mtu(const struct address *local)
{
	struct ifreq request = { 0 };
	int mtu = 65536, fd;

	if (!soft_interface_name(local, request.ifr_name))
		return mtu;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !ioctl(fd, SIOCGIFMTU, &request))
		mtu = request.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return mtu;
}

/* Looked up at most once a second: any stranger can make us ask. */
static uint32_t path_mtu(struct soft_socket *socket)
{
	int64_t now = clock_now();
	int room;
	unsigned code;

	if (socket->mtu && now < socket->mtu_old)
		return socket->mtu;
	room = interface_mtu(&socket->address) - PACKET_OVERHEAD_MOST;
	code = mtu_code(room > 0 ? (size_t)room : 0);
	socket->mtu = mtu_bytes(code ? code : MTU_CODE_LEAST);
	socket->mtu_old = now + CLOCK_NS_PER_S;
	return socket->mtu;
}

/* An open socket of that address, or NULL with errno. Group sockets are shared with other processes. */
static struct soft_socket *open_socket(struct soft_transport *transport, const struct address *address, bool group)
{
	struct soft_socket *socket_ = calloc(1, sizeof(*socket_));
	struct sockaddr_storage storage;
	struct address bound = *address;
	socklen_t length;
	int error;

	if (!socket_)
		return NULL;
	bound.port = PACKET_PORT;
	length = (socklen_t)address_to_socket(&bound, &storage);
	socket_->transport = transport;
	socket_->address = *address;
	socket_->address.port = 0;
	socket_->group = group;
	socket_->fd = socket(address->family == ADDRESS_IP4 ? AF_INET : AF_INET6,
			     SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
	if (socket_->fd < 0)
		goto failed;
	prepare(socket_->fd, address->family);
	if (group && !set_option(socket_->fd, SOL_SOCKET, SO_REUSEADDR, 1))
		goto failed;
	socket_->buffer = enlarge_buffers(socket_->fd);
	if (bind(socket_->fd, (struct sockaddr *)&storage, length))
		goto failed;
	socket_->next = transport->sockets;
	transport->sockets = socket_;
	loop_io_start(transport->base.loop, &socket_->readable, socket_->fd, soft_packet_io_readable, socket_);
	return socket_;
failed:
	error = errno;
	if (socket_->fd >= 0)
		close(socket_->fd);
	free(socket_);
	errno = error;
	return NULL;
}

static struct soft_socket *find_socket(struct soft_transport *transport, const struct address *address)
{
	for (struct soft_socket *socket = transport->sockets; socket; socket = socket->next)
		if (!socket->group && address_same_host(&socket->address, address))
			return socket;
	return NULL;
}

/* The kernel's soft-RoCE binds the any address as soon as its module is loaded. */
static bool kernel_holds_port(void)
{
	FILE *table = access("/sys/module/rdma_rxe", F_OK) ? NULL : fopen("/proc/net/udp", "re");
	char line[256];
	bool held = false;

	if (!table)
		return false;
	while (!held && fgets(line, sizeof(line), table))
		held = strstr(line, " 00000000:12B7 ") != NULL;
	fclose(table);
	return held;
}

static enum outcome outcome_of(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS ? OUTCOME_INTERNAL
											 : OUTCOME_NO_CONNECTION;
}

static const char *hint_of(const struct address *address)
{
	if (is_loopback4(address))
		return "each soft process needs its own local address: use another (127.0.0.2, ...), or end the other "
		       "process";
	if (is_loopback(address))
		return "IPv6 has one loopback address, for one soft process: use 127.0.0.1, which a server on ::0 "
		       "serves too";
	return "each soft process needs its own local address: end the other process, or use another address of this "
	       "host";
}

static enum outcome explain(struct soft_transport *transport, const char *name, const struct address *address,
			    int error)
{
	const struct log *log = transport->base.log;
	char text[ADDRESS_TEXT_SIZE];

	if (error == EADDRINUSE && kernel_holds_port()) {
		log_error(log, name, "the kernel's soft-RoCE (rdma_rxe) holds UDP port 4791 on this machine (%d)",
			  error);
		log_hint(log,
			 "use the verbs transport, or run in a network namespace of its own, or: modprobe -r rdma_rxe");
		return OUTCOME_NO_DEVICE;
	}
	if (error == EADDRINUSE) {
		int process = soft_port_holder(address);

		address_host(address, text);
		if (process)
			log_error(log, name, "process %d holds UDP port 4791 on %s (%d)", process, text, error);
		else
			log_error(log, name, "another process holds UDP port 4791 on %s (%d)", text, error);
		log_hint(log, "%s", hint_of(address));
	} else if (error == EADDRNOTAVAIL) {
		log_error(log, name, "%s is not an address of this host (%d)", address_host(address, text), error);
	} else {
		log_errno(log, name, error, "opening UDP port 4791 on %s", address_host(address, text));
	}
	return outcome_of(error);
}

/* The socket of an address, opened if need be. */
static enum outcome socket_of(struct soft_transport *transport, const char *name, const struct address *address,
			      struct soft_socket **result)
{
	*result = find_socket(transport, address);
	if (!*result)
		*result = open_socket(transport, address, false);
	return *result ? OUTCOME_OK : explain(transport, name, address, errno);
}

/*
 * Our 127.0.0.x: the one we have, else the first that no other process holds; not the peer's own, which its server may
 * still be about to take.
 */
static struct soft_socket *loopback_socket(struct soft_transport *transport, const struct address *peer)
{
	struct address address = { .family = ADDRESS_IP4, .bytes = { 127, 0, 0, 1 } };

	for (struct soft_socket *socket = transport->sockets; socket; socket = socket->next)
		if (!socket->group && is_loopback4(&socket->address))
			return socket;
	for (int last = 1; last <= LOOPBACK_MOST; last++) {
		struct soft_socket *socket;

		address.bytes[3] = (uint8_t)last;
		if (peer && address_same_host(&address, peer))
			continue;
		socket = open_socket(transport, &address, false);
		if (socket || errno != EADDRINUSE)
			return socket;
	}
	return NULL;
}

/* The local address from which the routing table sends to a peer; the any address if it has none for a group. */
static int route_source(const struct address *peer, struct address *source)
{
	struct sockaddr_storage storage;
	struct address target = *peer;
	socklen_t length;
	int error = 0;
	int fd = socket(peer->family == ADDRESS_IP4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	target.port = PACKET_PORT;
	length = (socklen_t)address_to_socket(&target, &storage);
	if (connect(fd, (struct sockaddr *)&storage, length))
		error = errno;
	length = sizeof(storage);
	if (!error && getsockname(fd, (struct sockaddr *)&storage, &length))
		error = errno;
	if (!error)
		address_from_socket(&storage, source);
	close(fd);
	source->port = 0;
	return error;
}

/* The index of the interface that has a local address; 0 lets the kernel choose. */
static unsigned interface_of(const struct address *local)
{
	char name[IF_NAMESIZE];

	return soft_interface_name(local, name) ? if_nametoindex(name) : 0;
}

/* A host's fe80::, a group's ff02:: or ff12::. */
static bool is_of_one_link(const struct address *address)
{
	return address_is_link_local(address) ||
	       (address->family == ADDRESS_IP6 && address->bytes[0] == 0xff && (address->bytes[1] & 0x0f) == 2);
}

enum outcome soft_path_find(struct soft_transport *transport, const char *name, const struct address *source,
			    const struct address *peer, struct soft_path *path)
{
	const struct log *log = transport->base.log;
	struct address local;
	enum outcome outcome = OUTCOME_OK;

	*path = (struct soft_path){ .peer = *peer };
	path->peer.port = PACKET_PORT;
	if (source && source->family != peer->family) {
		log_error(log, name, "the source and the destination are not of the same address family");
		return OUTCOME_NO_CONNECTION;
	}
	if (source && !address_is_any(source)) {
		local = *source;
		local.port = 0;
	} else {
		int error = route_source(peer, &local);

		if (error) {
			log_errno(log, name, error, "resolving the address");
			return outcome_of(error);
		}
		if (address_is_any(&local)) {
			log_error(log, name, "resolving the address: the route that leads there has no local address");
			return OUTCOME_NO_CONNECTION;
		}
		/* The peer may be another process here: on its own address, so that we need a different one. */
		if ((is_loopback4(&local) || address_same_host(&local, peer)) && local.family == ADDRESS_IP4 &&
		    !find_socket(transport, &local)) {
			path->socket = loopback_socket(transport, peer);
			if (!path->socket)
				return explain(transport, name, &local, errno);
			local = path->socket->address;
		}
	}
	if (!path->socket)
		outcome = socket_of(transport, name, &local, &path->socket);
	path->local = local;
	if (is_of_one_link(peer) && !peer->scope)
		path->peer.scope = interface_of(&local);
	if (!outcome)
		path->mtu = path_mtu(path->socket);
	return outcome;
}

void soft_path_back(struct soft_socket *socket, const struct address *from, struct soft_path *path)
{
	*path = (struct soft_path){
		.socket = socket,
		.local = socket->address,
		.peer = *from,
		.mtu = path_mtu(socket),
	};
	path->peer.port = 0;
}

/*
 * Opens the sockets of all local addresses but 127.x.x.x, of the family that the any address stands for. Returns the
 * errno of the first that failed, whose address *failed is.
 */
static int open_all(struct soft_transport *transport, const struct address *any, struct address *failed)
{
	struct ifaddrs *list;
	int error = 0;

	*failed = *any;
	if (getifaddrs(&list))
		return errno;
	for (struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
		struct address address;

		if (!entry->ifa_addr ||
		    (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6) ||
		    !address_from_socket((struct sockaddr_storage *)(void *)entry->ifa_addr, &address))
			continue;
		if (is_loopback4(&address) || (address.family == ADDRESS_IP6 && any->family == ADDRESS_IP4) ||
		    find_socket(transport, &address) || open_socket(transport, &address, false))
			continue;
		/* Another address may not be usable yet, and is told of again when it is. */
		if (!error &&
		    (outcome_of(errno) == OUTCOME_INTERNAL || (errno == EADDRINUSE && !is_loopback(&address)))) {
			error = errno;
			*failed = address;
		}
	}
	freeifaddrs(list);
	return error;
}

/* A listener on the any address serves those as well that come while it listens. */
static void addresses_changed(void *owner)
{
	struct soft_transport *transport = owner;
	struct address failed;
	uint8_t news[4096]; /* read to be gone: getifaddrs(3) says what is there now */

	while (read(transport->addresses_fd, news, sizeof(news)) > 0)
		;
	soft_enter(transport);
	for (struct soft_endpoint *listener = transport->listeners; listener; listener = listener->next)
		if (listener->base.state == ENDPOINT_LISTENING && address_is_any(&listener->base.local))
			open_all(transport, &listener->base.local, &failed);
	soft_leave(transport);
}

static void watch_addresses(struct soft_transport *transport)
{
	struct sockaddr_nl groups = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	int fd;

	if (transport->addresses_watched)
		return;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0 || bind(fd, (struct sockaddr *)&groups, sizeof(groups))) {
		log_debug(transport->base.log, "addresses that come later will not be noticed (errno %d)", errno);
		if (fd >= 0)
			close(fd);
		return;
	}
	transport->addresses_fd = fd;
	transport->addresses_watched = true;
	loop_io_start(transport->base.loop, &transport->addresses_changed, fd, addresses_changed, transport);
}

/*
 * Every local address of the family, and a 127.0.0.x of our own. One that another process holds would be deaf to this
 * one's peers; on the loopback each has its own.
 */
static enum outcome listen_on_all(struct soft_transport *transport, const char *name, const struct address *any)
{
	struct address failed = { .family = ADDRESS_IP4, .bytes = { 127, 0, 0, 1 } };
	int error = 0;

	/* From before the first look, so that nothing comes between. */
	watch_addresses(transport);
	if (!loopback_socket(transport, NULL))
		error = errno;
	else
		error = open_all(transport, any, &failed);
	return error ? explain(transport, name, &failed, error) : OUTCOME_OK;
}

enum outcome soft_socket_listen(struct soft_transport *transport, const char *name, const struct address *address)
{
	struct soft_socket *socket;

	if (address->family == ADDRESS_GID) {
		log_error(transport->base.log, name, "native InfiniBand addresses need InfiniBand: soft has IP only");
		return OUTCOME_USAGE;
	}
	return address_is_any(address) ? listen_on_all(transport, name, address)
				       : socket_of(transport, name, address, &socket);
}

/*
 * The kernel accounts a packet with the memory that it lies in: headers, payload and the end of a buffer together in a
 * power of two, and what describes the buffer.
 */
static size_t accounted(size_t payload)
{
	size_t memory = 256;

	while (memory < payload + PACKET_AROUND)
		memory *= 2;
	return memory + PACKET_DESCRIPTION;
}

/* A quarter is left for acknowledgements and what the peer has to say. */
size_t soft_socket_window(const struct soft_socket *socket, size_t payload)
{
	size_t packets = (socket->buffer - socket->buffer / 4) / accounted(payload);

	return packets ? packets : 1;
}

uint32_t soft_socket_dropped(const struct soft_socket *socket)
{
	uint32_t information[SK_MEMINFO_VARS] = { 0 };
	socklen_t length = sizeof(information);

	getsockopt(socket->fd, SOL_SOCKET, SO_MEMINFO, information, &length);
	return information[SK_MEMINFO_DROPS];
}

void soft_served(const struct endpoint *listener, char text[ENDPOINT_SERVED_SIZE])
{
	const struct soft_socket *socket = soft_of(listener->transport)->sockets;
	size_t used = 0;

	for (; socket && address_is_any(&listener->local); socket = socket->next) {
		char host[ADDRESS_TEXT_SIZE];
		bool room = used + ADDRESS_TEXT_SIZE + sizeof(", ...)") <= ENDPOINT_SERVED_SIZE;

		if (socket->group || (listener->local.family == ADDRESS_IP4 && socket->address.family != ADDRESS_IP4))
			continue;
		used += (size_t)sprintf(text + used, "%s%s", used ? ", " : " (",
					room ? address_host(&socket->address, host) : "...");
		if (!room)
			break;
	}
	if (used)
		strcpy(text + used, ")");
}

int soft_socket_refusal(const struct soft_socket *socket)
{
	return socket->refusal;
}

bool soft_socket_is_narrow(const struct soft_socket *socket)
{
	return socket->narrow;
}

static void close_socket(struct soft_socket *socket)
{
	struct soft_socket **cm_id = &socket->transport->sockets;
	char text[ADDRESS_TEXT_SIZE];

	while (*cm_id != socket)
		cm_id = &(*cm_id)->next;
	*cm_id = socket->next;
	loop_io_stop(&socket->readable);
	soft_packet_io_forget(socket);
	if (soft_socket_dropped(socket))
		log_debug(socket->transport->base.log,
			  "%s: %" PRIu32 " packets were dropped, for want of room in the socket's buffer",
			  address_host(&socket->address, text), soft_socket_dropped(socket));
	close(socket->fd);
	free(socket);
}

void soft_sockets_close(struct soft_transport *transport)
{
	if (transport->addresses_watched) {
		loop_io_stop(&transport->addresses_changed);
		close(transport->addresses_fd);
	}
	transport->addresses_watched = false;
	while (transport->sockets)
		close_socket(transport->sockets);
}

static bool change_membership(const struct soft_socket *socket, const struct address *local, bool join)
{
	if (socket->address.family == ADDRESS_IP4) {
		struct ip_mreqn request = { .imr_ifindex = (int)interface_of(local) };

		memcpy(&request.imr_multiaddr, socket->address.bytes, 4);
		memcpy(&request.imr_address, local->bytes, 4);
		return !setsockopt(socket->fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &request,
				   sizeof(request));
	}
	struct ipv6_mreq request = { .ipv6mr_interface = interface_of(local) };

	memcpy(&request.ipv6mr_multiaddr, socket->address.bytes, 16);
	return !setsockopt(socket->fd, IPPROTO_IPV6, join ? IPV6_ADD_MEMBERSHIP : IPV6_DROP_MEMBERSHIP, &request,
			   sizeof(request));
}

enum outcome soft_group_socket_join(struct soft_transport *transport, const char *name, const struct soft_socket *local,
				    const struct address *group, struct soft_socket **result)
{
	struct soft_socket *socket = transport->sockets;
	unsigned interface = interface_of(&local->address);
	int error;

	*result = NULL;
	while (socket &&
	       !(socket->group && socket->interface == interface && address_same_host(&socket->address, group)))
		socket = socket->next;
	if (!socket) {
		socket = open_socket(transport, group, true);
		if (!socket)
			return explain(transport, name, group, errno);
		if (!change_membership(socket, &local->address, true)) {
			error = errno;
			log_errno(transport->base.log, name, error, "joining the group");
			close_socket(socket);
			return outcome_of(error);
		}
	}
	socket->interface = interface;
	socket->members++;
	*result = socket;
	return OUTCOME_OK;
}

/* Closing the socket leaves the group. */
void soft_group_socket_leave(struct soft_socket *socket)
{
	if (!--socket->members)
		close_socket(socket);
}

bool soft_socket_multicast(const struct soft_socket *socket, bool loopback)
{
	unsigned index = interface_of(&socket->address);

	if (socket->address.family == ADDRESS_IP4) {
		struct ip_mreqn request = { .imr_ifindex = (int)index };

		memcpy(&request.imr_address, socket->address.bytes, 4);
		return !setsockopt(socket->fd, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof(request)) &&
		       set_option(socket->fd, IPPROTO_IP, IP_MULTICAST_LOOP, loopback) &&
		       set_option(socket->fd, IPPROTO_IP, IP_MULTICAST_TTL, GROUP_HOPS);
	}
	return set_option(socket->fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)index) &&
	       set_option(socket->fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, loopback) &&
	       set_option(socket->fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, GROUP_HOPS);
}
