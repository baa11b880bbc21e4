/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RTM_GETROUTE. A connected UDP socket would not reveal the interface, and its IP_MTU includes path MTUs from ICMP
 * messages, which anybody can forge.
 */
#include "core/route.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ATTRIBUTES_MAX = 4096 /* bytes */
};

struct message {
	struct nlmsghdr header;
	union {
		struct rtmsg route;
		struct ndmsg neighbour;
		struct ifinfomsg link;
		struct nlmsgerr error;
	};
	uint8_t rest[ATTRIBUTES_MAX];
};

static size_t address_size(const struct address *address)
{
	return address->family == ADDRESS_IP4 ? 4 : sizeof(address->bytes);
}

static void add_attribute(struct message *message, unsigned short type, const void *value, size_t length)
{
	const struct rtattr row = { .rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(length) };
	uint8_t *end = (uint8_t *)message + message->header.nlmsg_len;

	memcpy(end, &row, sizeof(row));
	memcpy(end + sizeof(row), value, length);
	message->header.nlmsg_len += (uint32_t)RTA_SPACE(length);
}

/* Copies up to size bytes of an attribute's value and returns their number; 0 if there is no such attribute. */
static size_t read_attribute(const void *rows, size_t length, unsigned type, void *value, size_t size)
{
	const struct rtattr *row = rows;

	for (size_t step; RTA_OK(row, (int)length); row = (const void *)((const uint8_t *)row + step)) {
		step = MIN(RTA_ALIGN(row->rta_len), length);
		length -= step;
		if (row->rta_type == type) {
			size = MIN(size, RTA_PAYLOAD(row));
			memcpy(value, (const uint8_t *)row + RTA_LENGTH(0), size);
			return size;
		}
	}
	return 0;
}

/* Sends a request, and reads the reply, of the same kind of header. Returns 0 or an errno. */
static int ask_kernel(int fd, struct message *message, size_t header)
{
	ssize_t received;

	/* The kernel answers within write(2). */
	if (write(fd, message, message->header.nlmsg_len) < 0 ||
	    (received = recv(fd, message, sizeof(*message), MSG_DONTWAIT)) < 0)
		return errno;
	if (message->header.nlmsg_len < NLMSG_SPACE(header) || message->header.nlmsg_len > (size_t)received)
		return EMSGSIZE;
	if (message->header.nlmsg_type != NLMSG_ERROR)
		return 0;
	/* A kernel without IPv6 does not know this request. */
	return message->error.error == -EOPNOTSUPP ? EAFNOSUPPORT : -message->error.error;
}

/* Returns 0 if there is no such interface. */
static uint32_t interface_mtu(int fd, unsigned index)
{
	struct ifreq request = { .ifr_ifindex = (int)index };

	return ioctl(fd, SIOCGIFNAME, &request) || ioctl(fd, SIOCGIFMTU, &request) ? 0 : (uint32_t)request.ifr_mtu;
}

static int parse_route(int fd, const struct message *reply, const struct address *to, struct route *route)
{
	const uint8_t *rows = (const uint8_t *)&reply->route + NLMSG_ALIGN(sizeof(reply->route));
	size_t length = reply->header.nlmsg_len - NLMSG_SPACE(sizeof(reply->route));
	struct rta_cacheinfo cache = { 0 };
	uint32_t metrics[64];
	size_t metrics_length;
	uint32_t mtu = 0;

	*route = (struct route){
		.source.family = to->family,
		.gateway.family = to->family,
		.is_local = reply->route.rtm_type == RTN_LOCAL,
		.is_broadcast = reply->route.rtm_type == RTN_BROADCAST,
	};
	read_attribute(rows, length, RTA_OIF, &route->interface, sizeof(route->interface));
	read_attribute(rows, length, RTA_PREFSRC, route->source.bytes, address_size(to));
	read_attribute(rows, length, RTA_GATEWAY, route->gateway.bytes, address_size(to));
	if (address_is_link_local(&route->source))
		route->source.scope = route->interface;
	read_attribute(rows, length, RTA_CACHEINFO, &cache, sizeof(cache));
	metrics_length = read_attribute(rows, length, RTA_METRICS, metrics, sizeof(metrics));
	read_attribute(metrics, metrics_length, RTAX_HOPLIMIT, &route->hop_limit, sizeof(route->hop_limit));
	route->mtu = interface_mtu(fd, route->interface);
	/* An expiring route's MTU was learned from ICMP. */
	if (!cache.rta_expires && read_attribute(metrics, metrics_length, RTAX_MTU, &mtu, sizeof(mtu)) &&
	    mtu < route->mtu)
		route->mtu = mtu;
	return -(int)cache.rta_error;
}

/* source: NULL for none. interface: of departure (end: RTA_OIF) or arrival (RTA_IIF); 0 for any. */
static int query_at(int fd, const struct address *to, const struct address *source, unsigned short end,
		    unsigned interface, unsigned flags, struct route *route)
{
	struct message message = {
		.header = { .nlmsg_len = NLMSG_SPACE(sizeof(message.route)),
			    .nlmsg_type = RTM_GETROUTE,
			    .nlmsg_flags = NLM_F_REQUEST },
		.route = { .rtm_family = to->family == ADDRESS_IP4 ? AF_INET : AF_INET6,
			   .rtm_dst_len = (unsigned char)(8 * address_size(to)),
			   .rtm_flags = flags },
	};
	int error;

	add_attribute(&message, RTA_DST, to->bytes, address_size(to));
	if (source) {
		message.route.rtm_src_len = message.route.rtm_dst_len;
		add_attribute(&message, RTA_SRC, source->bytes, address_size(source));
	}
	if (interface)
		add_attribute(&message, end, &interface, sizeof(interface));
	error = ask_kernel(fd, &message, sizeof(message.route));
	return error ? error : parse_route(fd, &message, to, route);
}

static int query(int fd, const struct address *to, const struct address *source, unsigned interface, unsigned flags,
		 struct route *route)
{
	return query_at(fd, to, source, RTA_OIF, interface, flags, route);
}

/*
 * Like the kernel, sends to a group through the source address's interface. But an address on the loopback interface
 * may belong to the host, not to one interface; then the group's route decides.
 */
static int find_group_route(int fd, unsigned vrf, const struct address *group, const struct address *source,
			    struct route *route)
{
	unsigned interface = group->scope ? group->scope : source->scope;

	/* FIB_MATCH: the address's own entry; packets to it use the loopback interface. */
	if (!interface && !address_is_any(source) && !query(fd, source, NULL, vrf, RTM_F_FIB_MATCH, route))
		interface = route->interface;
	if (!interface || address_is_any(source))
		return query(fd, group, NULL, interface ? interface : vrf, 0, route);
	if (interface == ROUTE_LOOPBACK && !address_is_loopback(source) && !query(fd, group, NULL, vrf, 0, route))
		return 0;
	*route = (struct route){ .interface = interface, .mtu = interface_mtu(fd, interface) };
	return 0;
}

static int find_peer_route(int fd, unsigned vrf, const struct address *peer, const struct address *source,
			   struct route *route)
{
	unsigned interface = peer->scope ? peer->scope : source->scope ? source->scope : vrf;
	struct address found = *source;
	int error = 0;

	if (address_is_any(source)) {
		error = query(fd, peer, NULL, interface, 0, route);
		found = route->source;
	}
	/* Again with the source: the kernel chooses among equal paths by both addresses. */
	if (!error && !address_is_any(&found))
		error = query(fd, peer, &found, interface, 0, route);
	route->source = found;
	return error;
}

int route_open(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

/* A BPF program of the process's control group binds each new IP socket; rtnetlink does not know. */
unsigned route_vrf(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char name[IF_NAMESIZE] = "";
	socklen_t length = sizeof(name);

	getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &length);
	if (fd >= 0)
		close(fd);
	return if_nametoindex(name);
}

int route_find(int fd, unsigned vrf, const struct address *peer, const struct address *source, struct route *route)
{
	return address_is_multicast(peer) ? find_group_route(fd, vrf, peer, source, route)
					  : find_peer_route(fd, vrf, peer, source, route);
}

bool route_look_up(const struct address *peer, const struct address *source, struct route *route)
{
	int fd = route_open();
	bool found = fd >= 0 && !route_find(fd, route_vrf(), peer, source, route);

	if (fd >= 0)
		close(fd);
	return found;
}

bool route_by_interface(int fd, const struct address *peer, const struct address *source, unsigned interface,
			struct route *route)
{
	/* FIB_MATCH: without a table entry IPv4 treats any peer as on the interface's link. */
	int error = query(fd, peer, source, interface, RTM_F_FIB_MATCH, route);

	/* An entry of several paths is shown without the one that the packets take. */
	if (!error && !route->interface)
		error = query(fd, peer, source, interface, 0, route);
	/* IPv6 may find another interface's entry. */
	return !error && route->interface == interface;
}

bool route_arrives(int fd, const struct address *peer, const struct address *local, unsigned interface)
{
	struct route route;

	return !query_at(fd, local, peer, RTA_IIF, interface, 0, &route);
}

struct route_neighbour route_neighbour(int fd, unsigned interface, const struct address *address)
{
	struct message message = {
		.header = { .nlmsg_len = NLMSG_SPACE(sizeof(message.neighbour)),
			    .nlmsg_type = RTM_GETNEIGH,
			    .nlmsg_flags = NLM_F_REQUEST },
		.neighbour = { .ndm_family = address->family == ADDRESS_IP4 ? AF_INET : AF_INET6,
			       .ndm_ifindex = (int)interface },
	};
	struct route_neighbour neighbour = { .state = 0 };
	struct nda_cacheinfo cache;
	const uint8_t *rows;
	size_t length;

	add_attribute(&message, NDA_DST, address->bytes, address_size(address));
	if (ask_kernel(fd, &message, sizeof(message.neighbour)))
		return neighbour;
	rows = (const uint8_t *)&message + NLMSG_SPACE(sizeof(message.neighbour));
	length = message.header.nlmsg_len - NLMSG_SPACE(sizeof(message.neighbour));
	neighbour.state = message.neighbour.ndm_state;
	neighbour.length = read_attribute(rows, length, NDA_LLADDR, neighbour.bytes, sizeof(neighbour.bytes));
	if (read_attribute(rows, length, NDA_CACHEINFO, &cache, sizeof(cache)))
		neighbour.confirmed = cache.ndm_confirmed / (unsigned)sysconf(_SC_CLK_TCK);
	return neighbour;
}

/* Returns the bytes of the value at the end of a path of nested attributes; 0 if there is none. */
static size_t read_nested(const void *rows, size_t length, unsigned outer, unsigned inner, void *value, size_t size)
{
	uint8_t nest[1024];

	length = read_attribute(rows, length, outer, nest, sizeof(nest));
	return read_attribute(nest, length, inner, value, size);
}

struct route_link route_link(int fd, unsigned interface)
{
	struct message message = {
		.header = { .nlmsg_len = NLMSG_SPACE(sizeof(message.link)),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST },
		.link = { .ifi_index = (int)interface },
	};
	const uint8_t *rows = (const uint8_t *)&message + NLMSG_SPACE(sizeof(message.link));
	struct route_link link = { .bridge = 0 };
	char port[ROUTE_KIND_SIZE] = "";
	uint8_t info[1024], state = 0;
	size_t length, size;

	if (ask_kernel(fd, &message, sizeof(message.link)))
		return link;
	length = message.header.nlmsg_len - NLMSG_SPACE(sizeof(message.link));
	size = read_attribute(rows, length, IFLA_LINKINFO, info, sizeof(info));
	read_attribute(info, size, IFLA_INFO_KIND, link.kind, sizeof(link.kind) - 1);
	read_attribute(info, size, IFLA_INFO_SLAVE_KIND, port, sizeof(port) - 1);
	if (!strcmp(port, "bridge")) {
		read_attribute(rows, length, IFLA_MASTER, &link.bridge, sizeof(link.bridge));
		read_nested(info, size, IFLA_INFO_SLAVE_DATA, IFLA_BRPORT_STATE, &state, sizeof(state));
	}
	link.waits = state == BR_STATE_LISTENING || state == BR_STATE_LEARNING;
	read_nested(rows, length, IFLA_XDP, IFLA_XDP_ATTACHED, &link.program, sizeof(link.program));
	read_attribute(rows, length, IFLA_CARRIER_DOWN_COUNT, &link.losses, sizeof(link.losses));
	return link;
}
