/* SPDX-License-Identifier: BSD-2-Clause */
/* The user-space backend: open, close, the reaper, dispatch of received packets. */
#include "transport/soft/soft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/soft/base/queue.h"
#include "transport/soft/base/random.h"
#include "transport/soft/cm/cm.h"
#include "transport/soft/qp/qp.h"
#include "transport/soft/wire/mad.h"

/* Endpoints before regions: a queue pair may use a region. The flushes send queued data, then REJ and DREQ. */
static void soft_reap(void *context)
{
	struct soft_transport *transport = context;

	transport->reap_scheduled = false;
	soft_callback_begin(transport);
	soft_flush(transport);
	while (transport->destroyed_endpoints) {
		struct soft_endpoint *endpoint = transport->destroyed_endpoints;

		transport->destroyed_endpoints = endpoint->next_destroyed;
		soft_endpoint_free(endpoint);
	}
	soft_flush(transport);
	while (transport->destroyed_regions) {
		struct soft_region *region = transport->destroyed_regions;

		transport->destroyed_regions = region->next;
		soft_region_free(region);
	}
	soft_callback_end(transport);
}

static void input_management(struct soft_socket *socket, const struct address *from, const struct packet *packet,
			     bool damaged)
{
	if (packet->opcode == OPCODE_DATAGRAM && packet->datagram.key == MAD_QKEY)
		soft_cm_receive(socket->transport, socket, from, packet->payload, packet->length, damaged);
}

/* The addresses in a management datagram show whether a NAT has changed its packet. */
static void input_damaged(struct soft_socket *socket, const struct address *from, const struct packet *packet)
{
	struct soft_transport *transport = socket->transport;

	soft_count(transport,
		   soft_qp_is_peer(transport, socket, from, packet->destination) ? SOFT_DAMAGED : SOFT_STRAY);
	if (packet->destination == MAD_QPN && !socket->group)
		input_management(socket, from, packet, true);
}

static void input_packet(struct soft_socket *socket, const struct address *from, const struct packet *packet,
			 bool damaged)
{
	soft_count(socket->transport, SOFT_RECEIVED);
	if (damaged)
		input_damaged(socket, from, packet);
	else if (socket->group)
		soft_qp_receive_group(socket->transport, socket, from, packet);
	else if (packet->destination == MAD_QPN)
		input_management(socket, from, packet, false);
	else
		soft_qp_receive(socket->transport, socket, from, packet);
}

static bool socket_in_use(const struct soft_socket *socket)
{
	const struct soft_endpoint *endpoint;

	for (endpoint = socket->transport->endpoints; endpoint; endpoint = endpoint->next)
		if (endpoint->path.socket == socket)
			return true;
	for (endpoint = socket->transport->listeners; endpoint; endpoint = endpoint->next)
		if (address_same_host(&endpoint->base.local, &socket->address))
			return true;
	return soft_cm_uses(socket->transport->cm, socket);
}

const struct soft_handlers soft_handlers = {
	.deliver = soft_deliver,
	.reap = soft_reap,
	.packet = input_packet,
	.icmp = soft_cm_unreachable,
	.socket_in_use = socket_in_use,
	.first_packet = soft_cm_first_packet,
	.requested = soft_request_create,
};

static void begin_counts(struct soft_transport *transport)
{
	/* In the order of enum soft_count: the names of equivalent hw_counters of mlx5 and rxe, if any. */
	const char *name = "out_of_sequence\0duplicate_request\0icrc_error\0stray_icrc_error\0"
			   "packet_seq_err\0implied_nak_seq_err\0ack_timeout\0late_responses\0resent_packets\0"
			   "resumed_reads\0repeated_requests\0duplicate_response\0"
			   "rnr_nak_retry_err\0send_rnr_err\0send_seq_err\0send_drops\0link_downed\0sent_"
			   "packets\0received_packets";

	transport->base.counters = transport->counts;
	for (struct network_counter *count = transport->counts; count < transport->counts + SOFT_COUNTS; count++) {
		count->name = name;
		count->device = transport->domain.device;
		count->next = count + 1 < transport->counts + SOFT_COUNTS ? count + 1 : NULL;
		name += strlen(name) + 1;
	}
}

static void look_at_link(struct transport *base)
{
	struct soft_transport *transport = soft_of(base);
	uint32_t losses = transport->watched ? route_link(transport->routes_fd, transport->watched).losses : 0;

	if (losses > transport->losses_before)
		transport->counts[SOFT_LINK_LOSSES].increase = losses - transport->losses_before;
}

static void destroy_all(struct soft_endpoint *endpoint)
{
	for (; endpoint; endpoint = endpoint->next)
		endpoint_destroy(&endpoint->base);
}

static void soft_close(struct transport *base)
{
	struct soft_transport *transport = soft_of(base);

	destroy_all(transport->listeners);
	destroy_all(transport->endpoints);
	if (transport->cm)
		soft_reap(transport);
	loop_timer_stop(&transport->reaper);
	loop_poller_stop(transport->base.loop, &transport->poller);
	soft_cm_close(transport->cm);
	soft_sockets_close(transport);
	soft_packet_io_close(transport->packet_io);
	soft_table_close(&transport->regions);
	soft_qp_table_close(transport->qps);
	soft_queue_close(transport->queue);
	free(transport);
}

static enum outcome soft_open(struct loop *loop, const struct log *log, struct error *reason, struct transport **result)
{
	struct soft_transport *transport;
	enum outcome outcome;

	if (!soft_random_works()) {
		error_errno(reason, NULL, errno, "getting random numbers");
		return OUTCOME_INTERNAL;
	}
	transport = calloc(1, sizeof(*transport));
	if (!transport)
		return transport_no_memory(reason, NULL, "opening the transport");
	transport->base.loop = loop;
	transport->base.log = log;
	transport->channel.transport = &transport->base;
	icrc_prepare(&transport->icrc);
	transport->guid = soft_random(&transport->random);
	soft_table_open(&transport->regions);
	transport->domain = (struct domain){
		.transport = &transport->base,
		.device = "udp",
		.fabric = FABRIC_ROCE,
		.multicast = true,
		.ip6_multicast = true,
		.max_message = SOFT_LONGEST_MESSAGE,
		.max_qp_wr = SOFT_QP_DEPTH_MAX,
	};
	if (WITH_REPORT)
		begin_counts(transport);
	outcome = soft_sockets_open(transport, reason);
	if (outcome) {
		soft_close(&transport->base);
		return outcome;
	}
	/* The connection manager last: without it soft_close() has nothing to send. */
	if (!(transport->queue = soft_queue_open(transport)) || !(transport->qps = soft_qp_table_open(transport)) ||
	    !(transport->packet_io = soft_packet_io_open()) || !(transport->cm = soft_cm_open(transport))) {
		soft_close(&transport->base);
		return transport_no_memory(reason, NULL, "opening the transport");
	}
	/* NULL: sockets always wake the loop. */
	loop_poller_start(loop, &transport->poller, soft_packet_io_poll, NULL, transport);
	*result = &transport->base;
	return OUTCOME_OK;
}

const struct backend soft_backend = {
	.name = "soft",
	.open = soft_open,
	.close = soft_close,
	.channel_create = soft_channel_create,
	.region_create = soft_region_create,
	.region_destroy = soft_region_destroy,
	.endpoint_create = soft_endpoint_create,
	.endpoint_destroy = soft_endpoint_destroy,
	.listen = soft_listen,
	.resolve = soft_resolve,
	.create_qp = soft_qp_create,
	.connect = soft_cm_connect,
	.accept = soft_cm_accept,
	.reject = soft_cm_reject,
	.disconnect = soft_cm_disconnect,
	.join = soft_join,
	.post = soft_post,
	.path = WITH_REPORT || COMMAND_doctor ? soft_endpoint_path : NULL,
	.counters = WITH_REPORT && WITH_EXTRAS ? look_at_link : NULL,
	.timeout_cause = soft_timeout_cause,
	.explain = WITH_DIAGNOSTICS ? soft_explain : NULL,
	.local_addresses = soft_local_addresses,
	.unsupported = {
#if WITH_EXTRAS
		[FEATURE_DEVICE] = "a local address or its interface chooses the path",
		[FEATURE_PORT] = "a local address or its interface chooses the path",
		[FEATURE_GID_INDEX] = "there is no GID table: a local address is the GID",
		[FEATURE_SERVICE_LEVEL] = "UDP has none: the type of service or DSCP marks the packets",
		[FEATURE_INLINE] = "no device fetches messages from memory",
#endif
		[FEATURE_NATIVE_GID] = "InfiniBand's own addresses need InfiniBand: there is only IP",
		[FEATURE_IPOIB] = "an InfiniBand subnet manager makes its groups, and UDP has none",
	},
};
