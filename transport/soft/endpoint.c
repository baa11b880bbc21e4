/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: resolving, listening, joining, and calls to the connection manager and queue pair. */
#include "transport/soft/soft.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <stdlib.h>

#include "transport/soft/base/queue.h"
#include "transport/soft/base/random.h"
#include "transport/soft/cm/cm_internal.h"
#include "transport/soft/qp/qp.h"

enum {
	PORT_FIRST = 32768, /* ephemeral ports, Linux's default range */
	PORT_COUNT = 28232,
	GROUP_QKEY_UDP = 0x01234567 /* the kernel's RDMA_UDP_QKEY */
};

enum outcome soft_channel_create(struct transport *transport, struct channel **result)
{
	*result = &soft_of(transport)->channel;
	return OUTCOME_OK;
}

/* NULL without memory. */
static struct soft_endpoint *endpoint_new(struct soft_transport *transport, enum endpoint_kind kind,
					  const struct endpoint_options *options)
{
	struct soft_endpoint **list = kind == ENDPOINT_LISTENER ? &transport->listeners : &transport->endpoints;
	struct soft_endpoint *endpoint = calloc(1, sizeof(*endpoint));

	if (!endpoint)
		return NULL;
	endpoint_initialise(&endpoint->base, &transport->channel, kind, options);
	endpoint->next = *list;
	endpoint->pprev = list;
	if (endpoint->next)
		endpoint->next->pprev = &endpoint->next;
	*list = endpoint;
	return endpoint;
}

static void endpoint_remove(struct soft_endpoint *endpoint)
{
	*endpoint->pprev = endpoint->next;
	if (endpoint->next)
		endpoint->next->pprev = endpoint->pprev;
}

enum outcome soft_endpoint_create(struct channel *channel, enum endpoint_kind kind,
				  const struct endpoint_options *options, struct endpoint **result)
{
	struct soft_transport *transport = soft_of(channel->transport);
	struct soft_endpoint *endpoint = endpoint_new(transport, kind, options);

	if (!endpoint)
		return transport_no_memory(&transport->base.error, NULL, "creating an endpoint");
	*result = &endpoint->base;
	return OUTCOME_OK;
}

void soft_endpoint_destroy(struct endpoint *base)
{
	struct soft_transport *transport = soft_of(base->transport);
	struct soft_endpoint *endpoint = soft_endpoint_of(base);

	loop_timer_stop(&endpoint->deferred);
	endpoint->next_destroyed = transport->destroyed_endpoints;
	transport->destroyed_endpoints = endpoint;
	soft_reap_later(transport);
}

void soft_endpoint_free(struct soft_endpoint *endpoint)
{
	struct soft_transport *transport = soft_of(endpoint->base.transport);

	if (endpoint_is_group(&endpoint->base) && endpoint->group_socket)
		soft_group_socket_leave(endpoint->group_socket);
	if (endpoint->base.kind == ENDPOINT_LISTENER)
		for (struct soft_endpoint *other = transport->endpoints; other; other = other->next)
			if (other->listener == endpoint)
				other->listener = NULL;
	soft_cm_release(endpoint);
	soft_qp_destroy(endpoint->qp);
	soft_path_release(&endpoint->path);
	soft_queue_detach(endpoint);
	endpoint_remove(endpoint);
	free(endpoint);
}

/* A connecting endpoint's port is only shown to the peer in the REQ. */
static uint16_t find_free_port(struct endpoint *base)
{
	struct soft_transport *transport = soft_of(base->transport);
	uint16_t port;

	do
		port = (uint16_t)(PORT_FIRST + soft_random(&transport->random) % PORT_COUNT);
	while (soft_listener_find(transport, base->options.port_space, port, &base->local));
	return port;
}

enum outcome soft_listen(struct endpoint *base)
{
	struct soft_transport *transport = soft_of(base->transport);
	const struct soft_endpoint *other;
	enum outcome outcome = soft_socket_listen(base, &base->local);

	if (outcome)
		return outcome;
	base->domain = &transport->domain;
	if (!base->local.port)
		base->local.port = find_free_port(base);
	other = soft_listener_find(transport, base->options.port_space, base->local.port, &base->local);
	/* A listener on the any address accepts requests without another listener. */
	if (!other || !address_same_host(&other->base.local, &base->local))
		return OUTCOME_OK;
	return endpoint_no_connection(base, "binding", EADDRINUSE, "the port is in use");
}

/* With the address the route is known, too. */
static void endpoint_address_resolved(void *context)
{
	struct soft_endpoint *endpoint = context;
	struct soft_transport *transport = soft_of(endpoint->base.transport);

	soft_callback_begin(transport);
	endpoint->base.domain = &transport->domain;
	endpoint->base.max_datagram = endpoint->path.mtu;
	endpoint_deliver_kind(&endpoint->base, EVENT_ADDRESS_RESOLVED);
	if (endpoint->base.kind == ENDPOINT_CONNECTION && endpoint->base.state == ENDPOINT_ADDRESS_RESOLVED) {
		endpoint_enter(&endpoint->base, ENDPOINT_RESOLVING_ROUTE);
		endpoint_deliver_kind(&endpoint->base, EVENT_ROUTE_RESOLVED);
	}
	soft_callback_end(transport);
}

static void set_loopback(struct address *address)
{
	address->bytes[address->family == ADDRESS_IP4 ? 3 : 15] = 1;
	if (address->family == ADDRESS_IP4)
		address->bytes[0] = 127;
}

enum outcome soft_resolve(struct endpoint *base)
{
	struct soft_endpoint *endpoint = soft_endpoint_of(base);
	struct address peer = base->peer;
	enum outcome outcome;

	/* As in librdmacm, the any address is this host. */
	if (address_is_any(&peer))
		set_loopback(&peer);
	outcome = soft_path_find(base, base->local.family ? &base->local : NULL, &peer, &endpoint->path);
	if (outcome)
		return outcome;
	base->local = endpoint->path.local;
	base->local.port = find_free_port(base);
	loop_timer_start(base->transport->loop, &endpoint->deferred, 0, endpoint_address_resolved, endpoint);
	return OUTCOME_OK;
}

/*
 * A full member joins through the socket API, so that the kernel sends IGMP or MLD, and receives the group's datagrams.
 * A send-only full member only learns the group's address.
 */
static void group_joined(void *context)
{
	struct soft_endpoint *endpoint = context;
	struct soft_transport *transport = soft_of(endpoint->base.transport);

	soft_callback_begin(transport);
	endpoint_deliver(&endpoint->base, &(struct endpoint_event){ .kind = EVENT_JOINED, .group = &endpoint->group });
	soft_callback_end(transport);
}

enum outcome soft_join(struct endpoint *base)
{
	struct soft_endpoint *endpoint = soft_endpoint_of(base);
	const struct address *group = &endpoint->path.peer;
	enum outcome outcome;

	if (!address_is_multicast(group)) {
		endpoint_no_connection(base, "joining the group", 0,
				       "only a subnet manager assigns groups, and UDP has none");
		return OUTCOME_USAGE;
	}
	if (!base->options.send_only) {
		outcome = soft_group_socket_join(base, &endpoint->path, &endpoint->group_socket);
		if (outcome)
			return outcome;
	}
	if (!soft_socket_multicast(&endpoint->path, !base->options.no_loopback)) {
		error_errno(endpoint_error(base), base->name, errno, "choosing the group's interface");
		return OUTCOME_NO_CONNECTION;
	}
	endpoint->group = (struct group_address){ .qpn = GROUP_QPN, .qkey = GROUP_QKEY_UDP };
	soft_cm_gid(group, endpoint->group.gid);
	soft_qp_join(endpoint->qp, GROUP_QKEY_UDP);
	loop_timer_start(base->transport->loop, &endpoint->deferred, 0, group_joined, endpoint);
	return OUTCOME_OK;
}

enum outcome soft_post(struct endpoint *base, const struct work *work, size_t count)
{
	return soft_qp_post(soft_endpoint_of(base)->qp, work, count);
}

static bool is_prohibited(const struct soft_icmp *icmp)
{
	return icmp->peer.family == ADDRESS_IP4
		       ? icmp->type == ICMP_UNREACH &&
				 (icmp->code == ICMP_UNREACH_NET_PROHIB || icmp->code == ICMP_UNREACH_HOST_PROHIB ||
				  icmp->code == ICMP_UNREACH_FILTER_PROHIB)
		       : icmp->type == ICMP6_DST_UNREACH && icmp->code == ICMP6_DST_UNREACH_ADMIN;
}

/* A router has dropped a packet whose hop limit has expired. */
static bool is_hop_limit(const struct soft_icmp *icmp)
{
	return icmp->code == ICMP_TIMXCEED_INTRANS &&
	       icmp->type == (icmp->peer.family == ADDRESS_IP4 ? ICMP_TIMXCEED : ICMP6_TIME_EXCEEDED);
}

/*
 * The kernel's errno text covers several causes. The kernel itself reports "host unreachable" if ARP or NDP finds no
 * neighbour.
 */
static const char *icmp_text(const struct soft_icmp *icmp, const struct address *local, char text[ROUTE_CAUSE_SIZE])
{
	char host[ADDRESS_TEXT_SIZE];
	struct route route;

	if (is_prohibited(icmp))
		return "prohibited by a firewall";
	if (icmp->error == ECONNREFUSED)
		return "port unreachable";
	if (is_hop_limit(icmp))
		return "hop limit exceeded";
	if (icmp->error == EHOSTUNREACH && address_same_host(&icmp->from, local))
		return WITH_EXTRAS && route_look_up(&icmp->peer, local, &route) && !address_is_any(&route.gateway)
			       ? log_text(text, ROUTE_CAUSE_SIZE, "the gateway %s does not answer on the link",
					  address_host(&route.gateway, host))
			       : "no neighbour on the link answers";
	return strerror(icmp->error);
}

#define HOST_ANSWERED "its host is up (ICMP from a closed port): "
#define STOPPED	      "its process is stopped or too busy, or a firewall drops UDP port 4791"

void soft_timeout_cause(const struct endpoint *base, char text[ENDPOINT_TIMEOUT_CAUSE_SIZE])
{
	const struct soft_endpoint *endpoint = (const struct soft_endpoint *)base;
	const struct soft_socket *socket = endpoint->path.socket;
	const struct soft_socket *sender = soft_path_sender(&endpoint->path);
	uint32_t dropped = socket ? soft_socket_dropped(socket) : 0;
	const struct soft_icmp *icmp = &endpoint->icmp;
	int send_error = sender ? sender->send_error : 0;
	char host[ADDRESS_TEXT_SIZE], why[ROUTE_CAUSE_SIZE];

	if (WITH_EXTRAS && send_error == ENOBUFS)
		log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE,
			 "; this host's interface drops packets: a full queue, or a veth whose far end has a smaller "
			 "MTU (%d)",
			 send_error);
	else if (send_error)
		log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "; the local kernel refused to send: %s (%d)",
			 WITH_DIAGNOSTICS && send_error != EPERM &&
					 route_cause(&endpoint->path.local, &endpoint->path.peer, why)
				 ? why
				 : strerror(send_error),
			 send_error);
	else if (icmp->error)
		log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "; ICMP type %u code %u from %s: %s", icmp->type,
			 icmp->code, address_host(&icmp->from, host), icmp_text(icmp, &endpoint->path.local, why));
	else if (sender && sender->path_mtu)
		log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE,
			 "; ICMP: packets too long for the path (%" PRIu32 "), reduce the MTU to %" PRIu32,
			 sender->path_mtu, soft_packet_mtu(sender->path_mtu));
	else if (dropped)
		log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE,
			 "; %" PRIu32 " packets dropped: this socket's receive buffer was full, see net.core.rmem_max",
			 dropped);
	else if (base->state >= ENDPOINT_ESTABLISHED && soft_has_probed(endpoint, SOFT_PROBE_ANSWERED))
		log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "; " HOST_ANSWERED STOPPED);
	if (WITH_DIAGNOSTICS && (!*text || icmp->error) &&
	    route_strays(&endpoint->path.local, &endpoint->path.peer, why))
		log_add(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "", "; %s: " ROUTE_STRAYS_HINT, why);
}

/* A client has also probed the host, if there was time. */
static void hint_at_silence(const struct soft_endpoint *endpoint, struct error *error)
{
	const char *silent = "if the server there shows no line about this client, ",
		   *lines = "; if it does, that line has the cause";
	const char *asked = soft_has_probed(endpoint, SOFT_PROBE_SENT) ? " (a closed port there sent no ICMP)" : "";
	char life[ROUTE_CAUSE_SIZE], interface[IF_NAMESIZE] = "";

	if_indextoname(endpoint->path.interface, interface);
	if (soft_has_probed(endpoint, SOFT_PROBE_ANSWERED))
		error_hint(error, HOST_ANSWERED "%s" STOPPED "%s", silent, lines);
	else if (SOFT_PROBES && route_answers(&endpoint->path.local, &endpoint->path.peer, life))
		error_hint(error, "its host was up %s: %sa firewall drops UDP%s, or its process is stopped%s", life,
			   silent, asked, lines);
	else
		error_hint(
			error,
			"%sno packet arrives: its host is down, a firewall drops UDP port 4791%s, or %s is the wrong "
			"interface (-I, ip route)%s",
			silent, asked, interface, lines);
}

/*
 * A peer waits between its requests. If all arrive at once, they have waited here: an idle process has no timer that
 * would show it.
 */
static void hint_at_delay(const struct soft_endpoint *endpoint, struct error *error)
{
	const struct soft_cm_id *cm_id = endpoint->cm_id;

	if (error->kind != ERROR_NO_REPLY || !cm_id || cm_id->repeats < 2 || endpoint->base.transport->explained ||
	    clock_now() - endpoint->base.began >= CM_FIRST_INTERVAL)
		return;
	error_hint(
		error,
		"this process was stopped, paused or too busy: the peer sent its request %u times and gave up before "
		"it was read",
		cm_id->repeats + 1);
	endpoint->base.transport->explained = true;
}

/*
 * A rejection names its sender, whose rules must change. Silence has several causes: keeps the one that the facts
 * allow, unless a deadline ended the wait.
 */
void soft_explain(const struct endpoint *base, struct error *error)
{
	const struct soft_endpoint *endpoint = (const struct soft_endpoint *)base;
	const struct soft_icmp *icmp = &endpoint->icmp;
	const struct soft_socket *sender = soft_path_sender(&endpoint->path);
	bool loopback = address_is_loopback(&endpoint->path.local);
	char interface[IF_NAMESIZE] = "";
	char host[ADDRESS_TEXT_SIZE], why[ROUTE_CAUSE_SIZE] = "";

	if (WITH_EXTRAS && base->state == ENDPOINT_ACCEPTING)
		hint_at_delay(endpoint, error);
	if (WITH_EXTRAS && sender && sender->send_error == EPERM && error->kind)
		error_hint(error, "this host's firewall forbids it (nft list ruleset), or IPAddressDeny= of a service");
	if (icmp->error && error->kind &&
	    (is_prohibited(icmp) || (icmp->error == ECONNREFUSED && !address_same_host(&icmp->from, &icmp->peer)))) {
		error->kind = ERROR_BLOCKED;
		error_hint(error, "let %s pass UDP port 4791 both ways", address_host(&icmp->from, host));
	} else if (base->state == ENDPOINT_CONNECTING && error->kind == ERROR_NO_REPLY && sender &&
		   !sender->send_error &&
		   (icmp->error || !(base->transport->explained || loop_deadline_passed(base->transport->loop)))) {
		if (icmp->error)
			(is_hop_limit(icmp) ? route_hops : route_cause)(&endpoint->path.local, &endpoint->path.peer,
									why);
		if (icmp->error && !*why)
			log_text(why, sizeof(why), "is the address right, and its host up?%s%s",
				 if_indextoname(endpoint->path.interface, interface) ? " packets to it leave by " : "",
				 interface);
		if (!*why && !loopback)
			hint_at_silence(endpoint, error);
		else
			error_hint(error, "%s",
				   *why ? why
					: "this host's firewall drops UDP port 4791 even on loopback (nft list "
					  "ruleset), or "
					  "the process there does not answer");
	}
}

void soft_endpoint_path(const struct endpoint *base, struct path *path)
{
	const struct soft_endpoint *endpoint = (const struct soft_endpoint *)base;

	path->device = base->domain->device;
	path->gid_type = "RoCE v2";
	soft_cm_gid(&endpoint->path.local, path->gid);
	if_indextoname(endpoint->path.interface, path->interface);
	path->mtu = endpoint->path.mtu;
	if (endpoint->cm_id)
		path->peer_qpn = endpoint->cm_id->agreement.peer_qpn;
}

struct soft_endpoint *soft_request_create(struct soft_endpoint *listener, const struct soft_path *path,
					  const struct address *peer)
{
	struct soft_transport *transport = soft_of(listener->base.transport);
	struct soft_endpoint *endpoint = endpoint_new(transport, ENDPOINT_CONNECTION, &listener->base.options);

	if (!endpoint)
		return NULL;
	endpoint->listener = listener;
	endpoint->path = *path;
	endpoint->base.domain = &transport->domain;
	endpoint->base.local = path->local;
	endpoint->base.local.port = listener->base.local.port;
	endpoint->base.peer = *peer;
	endpoint_set_name(&endpoint->base);
	endpoint_enter(&endpoint->base, ENDPOINT_REQUESTED);
	return endpoint;
}

void soft_request_report(struct soft_endpoint *endpoint, const uint8_t *data, size_t length)
{
	struct soft_endpoint *listener = endpoint->listener;

	if (!listener || listener->base.state != ENDPOINT_LISTENING) {
		endpoint_destroy(&endpoint->base);
		return;
	}
	endpoint_deliver_request(&listener->base, &endpoint->base, data, length);
}
