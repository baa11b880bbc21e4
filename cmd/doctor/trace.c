/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path's routers, found as by traceroute: a router at which a packet's hop limit expires answers with an ICMP error,
 * which the kernel gives to the sending socket (ip(7), IP_RECVERR), so no privilege is needed. Routers choose among
 * equal paths by addresses and ports, so these packets have the RDMA packets' addresses and ports. Where those have
 * their sequence number, these have the hop: most routers quote it.
 *
 *   hop 1, 2, ...   ask --> an answer: that router, next hop
 *                       --> silence: an unknown router, next hop
 *   ends            at an answer of the host, or after SILENT_MAX silent hops: a host does not answer at its RoCE port
 *   a late answer   has its packet's hop; of a router that does not quote that, it counts for the present hop
 *   further rounds  ask the silent hops again, up to the longest path, after a pause: routers answer once a second
 */
#include <time.h> /* linux/errqueue.h needs struct timespec */

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/neighbour.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdlib.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/doctor/doctor.h"
#include "core/route.h"

enum {
	PORT_DISCARD = 9, /* RFC 863 */
	SILENT_MAX = 3,
	ROUNDS = 4,
	HOP_AT = 11,	 /* in the UDP payload: the end of the PSN, and of the BTH */
	LONGEST = 9000,	 /* bytes of UDP payload */
	DSCP = 0xfc,	 /* of a type of service; the rest is ECN */
	ANSWERS_MAX = 8, /* read in a turn of the loop */
	SEND_TRIES = 3,
};

#define ANSWER_TIME (250 * CLOCK_NS_PER_MS)
#define ROUND_PAUSE CLOCK_NS_PER_S

struct tracer {
	struct doctor *doctor;
	struct address peer;
	size_t size;
	unsigned limit;		/* hops tried in this round */
	unsigned active;	/* paths */
	bool again;		/* a later round */
	uint8_t bytes[LONGEST]; /* zeros, except the hop */
};

struct path_trace {
	struct tracer *tracer;
	struct trace *trace;
	int fd;
	unsigned hop, silent; /* silent: hops in a row */
	struct loop_io readable;
	struct loop_timer timer;
	bool active;
};

static void path_ends(struct path_trace *path)
{
	struct tracer *tracer = path->tracer;

	loop_timer_stop(&path->timer);
	if (!path->active)
		return;
	path->active = false;
	if (!--tracer->active)
		loop_stop(tracer->doctor->run->loop);
}

/* An ICMP error of an earlier packet fails one call. */
static bool send_probe(const struct path_trace *path)
{
	struct tracer *tracer = path->tracer;
	bool four = tracer->peer.family == ADDRESS_IP4;
	int hops = (int)path->hop + 1;
	struct sockaddr_storage to;
	socklen_t length = (socklen_t)address_to_socket(&tracer->peer, &to);
	ssize_t sent = -1;

	if (setsockopt(path->fd, four ? IPPROTO_IP : IPPROTO_IPV6, four ? IP_TTL : IPV6_UNICAST_HOPS, &hops,
		       sizeof(hops)))
		return false;
	/* Not 0: routers that quote less may pad with zeros (RFC 4884). */
	tracer->bytes[HOP_AT] = (uint8_t)hops;
	for (unsigned tries = 0; sent < 0 && tries < SEND_TRIES; tries++)
		sent = sendto(path->fd, tracer->bytes, tracer->size, MSG_DONTWAIT, (struct sockaddr *)&to, length);
	return sent >= 0;
}

static void hop_is_silent(void *context);

static unsigned limit_of(const struct tracer *tracer, const struct trace *trace)
{
	return MIN(tracer->limit, trace->limit ? trace->limit : TRACE_HOPS_MAX);
}

/* Tries the next hop with an unknown router. */
static void ask(struct path_trace *path)
{
	struct tracer *tracer = path->tracer;
	unsigned limit = limit_of(tracer, path->trace);

	while (path->hop < limit && path->trace->routers[path->hop].family)
		path->hop++;
	if (path->hop >= limit || (path->silent >= SILENT_MAX && !tracer->again) || !send_probe(path))
		path_ends(path);
	else
		loop_timer_start(tracer->doctor->run->loop, &path->timer, ANSWER_TIME, hop_is_silent, path);
}

static void hop_is_silent(void *context)
{
	struct path_trace *path = context;

	path->hop++;
	path->silent++;
	ask(path);
}

/* Without a quoted hop, the previous router's answer is a late one, and any other one is the present hop's. */
static void router_answered(struct path_trace *path, const struct address *router, unsigned hop, bool quoted)
{
	struct trace *trace = path->trace;

	if (!quoted && hop && address_same_host(&trace->routers[hop - 1], router))
		return;
	trace->routers[hop] = *router;
	trace->hops = MAX(trace->hops, hop + 1);
	path->silent = 0;
	if (path->active && hop == path->hop)
		ask(path);
}

bool trace_has(const struct trace *trace, const struct address *router)
{
	for (unsigned hop = 0; hop < trace->hops; hop++)
		if (trace->routers[hop].family && address_same_host(&trace->routers[hop], router))
			return true;
	return false;
}

/* Bytes cut off by the kernel are 0. */
static bool read_address(const void *bytes, size_t length, struct address *address)
{
	struct sockaddr_storage whole = { .ss_family = AF_UNSPEC };

	memcpy(&whole, bytes, MIN(length, sizeof(whole)));
	return address_from_socket(&whole, address);
}

/* 9, 10 and 13 are a firewall's codes; it may also send 3, as a host without such a port does. */
static enum trace_answer refusal_of(bool four, uint8_t type, uint8_t code)
{
	if (type != (four ? ICMP_DEST_UNREACH : ICMP6_DST_UNREACH))
		return TRACE_REFUSED;
	if (code == (four ? ICMP_PORT_UNREACH : ICMP6_DST_UNREACH_NOPORT))
		return TRACE_CLOSED;
	return (four ? code == ICMP_NET_ANO || code == ICMP_HOST_ANO || code == ICMP_PKT_FILTERED
		     : code == ICMP6_DST_UNREACH_ADMIN)
		       ? TRACE_PROHIBITED
		       : TRACE_REFUSED;
}

enum trace_answer trace_read_answer(const struct msghdr *message, const struct address *peer, struct address *from)
{
	const struct cmsghdr *row = CMSG_FIRSTHDR(message);
	bool four = peer->family == ADDRESS_IP4;
	const uint8_t origin = four ? SO_EE_ORIGIN_ICMP : SO_EE_ORIGIN_ICMP6;
	struct sock_extended_err error;
	struct address to;

	*from = (struct address){ .family = ADDRESS_NONE };
	if (!row || row->cmsg_len < CMSG_LEN(sizeof(error)) || row->cmsg_len > message->msg_controllen ||
	    row->cmsg_level != (four ? IPPROTO_IP : IPPROTO_IPV6) ||
	    row->cmsg_type != (four ? IP_RECVERR : IPV6_RECVERR))
		return TRACE_OTHER;
	/* The port may have been another socket's, and its packets to another host. */
	if (!read_address(message->msg_name, message->msg_namelen, &to) || !address_same_host(&to, peer))
		return TRACE_OTHER;
	memcpy(&error, CMSG_DATA(row), sizeof(error));
	if (error.ee_origin == SO_EE_ORIGIN_LOCAL)
		return TRACE_REFUSED;
	if (error.ee_origin != origin ||
	    !read_address(CMSG_DATA(row) + sizeof(error), row->cmsg_len - CMSG_LEN(sizeof(error)), from) ||
	    from->family != peer->family)
		return TRACE_OTHER;
	return error.ee_type == (four ? ICMP_TIMXCEED : ICMP6_TIME_EXCEEDED)
		       ? TRACE_ROUTER
		       : refusal_of(four, error.ee_type, error.ee_code);
}

/* Reads one answer. Returns false if there is none. */
static bool read_answer(struct path_trace *path)
{
	union {
		struct cmsghdr header;
		uint8_t bytes[256];
	} control;
	uint8_t bytes[HOP_AT + 1];
	struct iovec element = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct sockaddr_storage name;
	struct msghdr header = {
		.msg_name = &name,
		.msg_namelen = sizeof(name),
		.msg_iov = &element,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct address from;
	ssize_t length = recvmsg(path->fd, &header, MSG_ERRQUEUE | MSG_DONTWAIT);
	bool quoted = length > HOP_AT && bytes[HOP_AT];
	unsigned hop = quoted ? bytes[HOP_AT] - 1u : path->hop;
	enum trace_answer answer;

	if (length < 0)
		return false;
	answer = trace_read_answer(&header, &path->tracer->peer, &from);
	if (answer == TRACE_OTHER || hop > path->hop || hop >= TRACE_HOPS_MAX || !(quoted || path->active))
		return true;
	/*
	 * A refusing sender is a router, too, if it has not answered before. For a silent neighbour this host itself is
	 * the sender.
	 */
	if (answer == TRACE_ROUTER ||
	    (from.family && !address_same_host(&from, &path->tracer->peer) &&
	     !address_same_host(&from, &path->tracer->doctor->local) && !trace_has(path->trace, &from)))
		router_answered(path, &from, hop, quoted);
	if (answer > TRACE_REFUSED) {
		path->trace->refusal = answer;
		path->trace->refuser = from;
	}
	if (answer >= TRACE_REFUSED)
		path_ends(path);
	return true;
}

/* Only routers send to the port; an error fails a call, which also clears it. */
static void trace_readable(void *context)
{
	struct path_trace *path = context;
	unsigned count = 0;

	while (count < ANSWERS_MAX && (recv(path->fd, NULL, 0, MSG_DONTWAIT) >= 0 || errno != EAGAIN))
		count++;
	while (count++ < 2 * ANSWERS_MAX && read_answer(path))
		;
}

/*
 * With the pings' DSCP, by which a router may choose a path, and DF, so that none fragments a long packet. If soft also
 * has the port, the newest socket gets the answers. A connected socket would get them, too, but Linux may then choose
 * the path by its own hash.
 */
static int open_socket(const struct address *local, uint16_t port, const struct path_options *options)
{
	int service = MAX(path_type_of_service(options), 0) & DSCP;
	bool four = local->family == ADDRESS_IP4;
	int level = four ? IPPROTO_IP : IPPROTO_IPV6, on = 1, probe = four ? IP_PMTUDISC_PROBE : IPV6_PMTUDISC_PROBE;
	struct address bound = *local;
	struct sockaddr_storage storage;
	socklen_t length;
	int fd = socket(four ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	bound.port = port;
	length = (socklen_t)address_to_socket(&bound, &storage);
	if (fd < 0)
		return -1;
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
	    !bind(fd, (struct sockaddr *)&storage, length) &&
	    !setsockopt(fd, level, four ? IP_TOS : IPV6_TCLASS, &service, sizeof(service)) &&
	    !setsockopt(fd, level, four ? IP_RECVERR : IPV6_RECVERR, &on, sizeof(on)) &&
	    !setsockopt(fd, level, four ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &probe, sizeof(probe)))
		return fd;
	close(fd);
	return -1;
}

static void time_is_over(void *context)
{
	loop_stop(((struct doctor *)context)->run->loop);
}

/* Whether to retry a silent hop in the next round, up to its path's limit, else up to the longest path. */
static bool has_silent(struct tracer *tracer, const struct trace *traces, size_t count)
{
	bool silent = false;

	tracer->limit = 0;
	for (size_t i = 0; i < count; i++)
		tracer->limit = MAX(tracer->limit, traces[i].limit ? traces[i].limit : traces[i].hops);
	for (size_t i = 0; i < count; i++)
		for (unsigned hop = 0; hop < limit_of(tracer, &traces[i]); hop++)
			silent |= traces[i].asked && !traces[i].routers[hop].family;
	return silent;
}

static void run_round(struct tracer *tracer, struct path_trace *paths, size_t count)
{
	struct doctor *doctor = tracer->doctor;

	for (size_t i = 0; i < count; i++) {
		struct path_trace *path = &paths[i];

		if (path->fd < 0)
			continue;
		path->active = true;
		path->hop = path->silent = 0;
		tracer->active++;
	}
	for (size_t i = 0; i < count; i++)
		if (paths[i].active)
			ask(&paths[i]);
	if (tracer->active)
		run_wait(doctor->run);
}

void trace_routers(struct doctor *doctor, const struct address *peer, size_t size, struct trace *traces, size_t count)
{
	struct tracer tracer = { .doctor = doctor, .peer = *peer, .limit = TRACE_HOPS_MAX };
	struct path_trace *paths = run_allocate(doctor->run, count, sizeof(*paths));
	struct loop *loop = doctor->run->loop;
	struct loop_timer timer = { 0 };
	int64_t end = clock_now() + doctor->options->common.timeout;

	tracer.peer.port = UDP_PORT_ROCE;
	/* At least a BTH: a shorter packet over IPv6 crashes a host with the soft-RoCE of Linux 6.1. */
	tracer.size = MAX(MIN(size, sizeof(tracer.bytes)), HOP_AT + 1);
	for (size_t i = 0; paths && i < count; i++) {
		paths[i].tracer = &tracer;
		paths[i].trace = &traces[i];
		paths[i].fd = open_socket(&doctor->local, traces[i].port, &doctor->options->common.path);
		traces[i].asked = paths[i].fd >= 0;
		if (traces[i].asked)
			loop_io_start(loop, &paths[i].readable, paths[i].fd, trace_readable, &paths[i]);
	}
	for (unsigned round = 0; paths && round < ROUNDS && !doctor->run->ended; round++) {
		if (round && (!has_silent(&tracer, traces, count) || clock_now() + ROUND_PAUSE > end))
			break;
		tracer.again = round;
		if (round) {
			loop_timer_start(loop, &timer, ROUND_PAUSE, time_is_over, doctor);
			run_wait(doctor->run);
		}
		loop_timer_start(loop, &timer, end - clock_now(), time_is_over, doctor);
		run_round(&tracer, paths, count);
		loop_timer_stop(&timer);
		for (size_t i = 0; i < count; i++)
			path_ends(&paths[i]);
	}
	for (size_t i = 0; paths && i < count; i++) {
		if (paths[i].fd < 0)
			continue;
		loop_io_stop(&paths[i].readable);
		close(paths[i].fd);
	}
	free(paths);
}

bool trace_refusal(struct doctor *doctor, const struct address *peer, char text[ERROR_HINT_SIZE])
{
	struct trace trace = { .port = 0 };
	char host[ADDRESS_TEXT_SIZE];

	trace_routers(doctor, peer, 0, &trace, 1);
	address_host(&trace.refuser, host);
	if (trace.refusal == TRACE_PROHIBITED)
		log_text(text, ERROR_HINT_SIZE,
			 "let %s pass UDP port 4791 both ways: its firewall has just refused a packet", host);
	else if (trace.refusal == TRACE_CLOSED)
		log_text(text, ERROR_HINT_SIZE,
			 "%s has just called UDP port 4791 unreachable: a firewall rejects it, or no RDMA device there "
			 "has the address (run there: rdmatest doctor)",
			 host);
	return trace.refusal;
}

/* The kernel takes a host without a route by that interface as on its link, and asks for it there. */
void trace_links(struct doctor *doctor, const struct address *peer)
{
	struct if_nameindex *list = if_nameindex();
	int tables = route_open(), fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct loop_timer timer = { 0 };
	struct sockaddr_storage to;
	struct address closed = *peer;
	struct route route = { .interface = 0 };
	socklen_t length;
	char host[ADDRESS_TEXT_SIZE];
	bool known;

	/* Any port but 4791, where old kernels do not survive an empty packet. */
	closed.port = PORT_DISCARD;
	length = (socklen_t)address_to_socket(&closed, &to);
	for (struct if_nameindex *entry = list; entry && entry->if_index; entry++) {
		uint32_t index = htonl(entry->if_index);

		setsockopt(fd, IPPROTO_IP, IP_UNICAST_IF, &index, sizeof(index));
		sendto(fd, NULL, 0, MSG_DONTWAIT, (struct sockaddr *)&to, length);
	}
	loop_timer_start(doctor->run->loop, &timer, ANSWER_TIME, time_is_over, doctor);
	run_wait(doctor->run);
	loop_timer_stop(&timer);
	route_look_up(peer, &doctor->local, &route);
	address_host(peer, host);
	/* A peer may answer on a further link, too. */
	known = route_neighbour(tables, route.interface, peer).length;
	for (struct if_nameindex *entry = list; !known && entry && entry->if_index; entry++)
		if (route_neighbour(tables, entry->if_index, peer).state & NUD_REACHABLE)
			finding_add(doctor, FINDING_WARN, "route",
				    "%s answers ARP on %s, but no route leads there\n"
				    "ip route add %s dev %s, and there the way back",
				    host, entry->if_name, host, entry->if_name);
	if (list)
		if_freenameindex(list);
	close(fd);
	close(tables);
}
