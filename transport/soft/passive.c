/* SPDX-License-Identifier: BSD-2-Clause */
/* The end that is asked: hears REQ, says REP, hears RTU. */
#include "transport/soft/manager.h"

#include <errno.h>
#include <string.h>

#include "transport/soft/delivery.h"

enum {
	ACK_DELAY = 15, /* as stock devices: 134 ms until an acknowledgement goes out */
	PATIENCE = 20,	/* an MRA asks for 4.3 s, as long as a stock peer waits by itself */
	NOT_REFUSED = 0,
};

/* ---- REQ ---- */

/* Says no to a request that gets no link. information: one byte, or none if it is 0. */
static void turn_away(struct soft_manager *manager, const struct soft_path *path, const struct mad *req,
		      uint16_t reason, uint8_t information)
{
	uint8_t bytes[MAD_SIZE];
	struct mad mad = {
		.kind = MAD_REJ,
		.transaction = req->transaction,
		.remote_id = req->local_id,
		.rej = {
			.answered = MAD_ANSWERED_REQ,
			.reason = reason,
			.information_length = information ? 1 : 0,
			.information = &information,
		},
	};

	mad_write(&mad, bytes);
	soft_manager_send(manager, path, bytes);
}

static void ask_for_patience(const struct soft_link *link)
{
	uint8_t bytes[MAD_SIZE];
	struct mad mad = {
		.kind = MAD_MRA,
		.transaction = link->transaction,
		.local_id = link->id,
		.remote_id = link->peer_id,
		.mra = { .answered = MAD_ANSWERED_REQ, .service_timeout = PATIENCE },
	};

	mad_write(&mad, bytes);
	soft_manager_send(link->manager, &link->agreement.path, bytes);
}

/* A request that we know already: it was repeated, or came twice, or late. */
static void repeated(struct soft_link *link, const struct mad *req)
{
	switch (link->state) {
	case LINK_REQ_RECEIVED:
		ask_for_patience(link);
		break;
	case LINK_REP_SENT:
		soft_link_say_again(link);
		break;
	case LINK_REJECTED:
		soft_ending_repeat(link, req);
		break;
	case LINK_ENDED:
		turn_away(link->manager, &link->agreement.path, req, MAD_REASON_STALE, 0);
		soft_link_remember(link);
		break;
	default:
		break;
	}
}

static bool same_address(const struct address *address, const uint8_t bytes[16])
{
	return !memcmp(address->bytes, bytes, address->family == ADDRESS_IP4 ? 4 : 16);
}

/* Everything of a peer goes back to where its packets come from, so that it may not name another address. */
static uint16_t check_addresses(const struct soft_path *path, const struct mad *mad, const struct mad_address *address)
{
	uint8_t gid[MAD_GID_SIZE];

	if (address->version != (path->peer.family == ADDRESS_IP4 ? 4 : 6) ||
	    !same_address(&path->peer, address->source) || !same_address(&path->local, address->destination))
		return MAD_REASON_CONSUMER;
	soft_manager_gid(&path->peer, gid);
	if (memcmp(gid, mad->req.path.local_gid, sizeof(gid)))
		return MAD_REASON_GID;
	soft_manager_gid(&path->local, gid);
	if (memcmp(gid, mad->req.path.remote_gid, sizeof(gid)))
		return MAD_REASON_GID;
	return NOT_REFUSED;
}

static uint16_t check_request(const struct soft_path *path, const struct mad *mad, struct mad_address *address)
{
	const struct mad_req *req = &mad->req;

	if (req->transport != MAD_TRANSPORT_RC)
		return MAD_REASON_TRANSPORT;
	/* An endpoint of AF_IB sends none, and is refused by every IP listener. */
	if (!mad_address_parse(mad->private_data, mad->private_length, address))
		return MAD_REASON_CONSUMER;
	if (!soft_manager_is_queue(req->queue_number) || !mad->local_id)
		return MAD_REASON_CONSUMER;
	if (!mtu_bytes(req->path_mtu) || mtu_bytes(req->path_mtu) > path->mtu)
		return MAD_REASON_MTU;
	return check_addresses(path, mad, address);
}

/* What the request settles for our queue. */
static void agree(struct soft_link *link, const struct mad_req *req)
{
	struct soft_agreement *agreement = &link->agreement;

	agreement->path.mtu = mtu_bytes(req->path_mtu);
	agreement->first_psn_sent = req->starting_psn;
	agreement->retry_count = req->retry_count;
	agreement->rnr_retry_count = req->rnr_retry_count;
	agreement->ack_timeout = req->path.ack_timeout;
	agreement->reads_out = soft_manager_least(req->responder_resources, SOFT_READS_AT_ONCE);
	agreement->reads_in = soft_manager_least(req->initiator_depth, SOFT_READS_AT_ONCE);
}

/* Returns false if memory is short. */
static bool begin(struct soft_manager *manager, struct soft_endpoint *listener, const struct soft_path *path,
		  const struct mad *mad, const struct mad_address *address)
{
	struct soft_link *link = soft_link_create(manager, path);
	struct soft_endpoint *endpoint;
	struct address peer = path->peer;

	if (!link)
		return false;
	agree(link, &mad->req);
	link->transaction = mad->transaction;
	peer.port = address->port;
	if (!soft_link_set_peer(link, mad->req.ca_guid, mad->local_id, mad->req.queue_number)) {
		soft_link_free(link);
		return false;
	}
	endpoint = soft_requested_create(listener, &link->agreement.path, &peer);
	if (!endpoint) {
		soft_link_free(link);
		return false;
	}
	soft_link_attach(link, endpoint);
	soft_link_enter(link, LINK_REQ_RECEIVED);
	soft_tell(endpoint, SOFT_EVENT_REQUESTED, mad->private_data + MAD_ADDRESS_SIZE, MAD_REQ_USER_PRIVATE);
	return true;
}

/*
 * Half-open connections are bounded, and a peer that is there confirms in a round trip: the oldest that has not makes
 * room, so that requests from addresses where nobody is keep nobody out.
 */
static bool has_room(struct soft_manager *manager, const struct soft_endpoint *listener)
{
	int64_t chosen = endpoint_option(&listener->base, backlog);
	unsigned backlog = chosen == PATH_UNSET ? MANAGER_BACKLOG : (unsigned)chosen;

	if (listener->asked >= backlog) {
		log_debug(manager->transport->base.log, "%s: a request is dropped: %u wait for an answer",
			  listener->base.name, listener->asked);
		return false;
	}
	while (manager->half_open >= 2 * backlog && manager->unconfirmed.first) {
		if (endpoint_is_worth_telling(&listener->base))
			log_error(manager->transport->base.log, listener->base.name,
				  "%u connections are half open, the most: the oldest give way to new ones (--backlog)",
				  manager->half_open);
		soft_ending_give_way(manager->unconfirmed.first);
	}
	return true;
}

void soft_passive_request(struct soft_manager *manager, struct soft_socket *socket, const struct address *from,
			  const struct mad *mad)
{
	const struct mad_req *req = &mad->req;
	struct soft_endpoint *listener = NULL;
	struct soft_link *link;
	struct soft_path path;
	struct mad_address address;
	uint16_t port_space, port, reason;

	link = soft_link_find_peer(manager, req->ca_guid, mad->local_id, socket, from);
	if (link) {
		repeated(link, mad);
		return;
	}
	soft_path_back(socket, from, &path);
	path.type_of_service = req->path.traffic_class & SOFT_DSCP;
	/* One queue pair, two connections: one of them is dead. Which, its probe will tell: anybody may say a REQ. */
	link = soft_link_find_queue(manager, req->ca_guid, req->queue_number, from);
	if (link) {
		turn_away(manager, &path, mad, MAD_REASON_STALE, 0);
		if (link->state == LINK_ESTABLISHED)
			soft_queue_probe(link->endpoint->queue);
		return;
	}
	if (mad_service_split(req->service_id, &port_space, &port))
		listener = soft_listener_find(manager->transport, (enum port_space)port_space, port, &path.local);
	if (!listener) {
		turn_away(manager, &path, mad, MAD_REASON_SERVICE_ID, 0);
		return;
	}
	soft_apply_options(&listener->base, &path);
	reason = check_request(&path, mad, &address);
	if (reason != NOT_REFUSED) {
		turn_away(manager, &path, mad, reason, reason == MAD_REASON_MTU ? (uint8_t)mtu_code(path.mtu) : 0);
		return;
	}
	if (has_room(manager, listener) && !begin(manager, listener, &path, mad, &address)) {
		turn_away(manager, &path, mad, MAD_REASON_NO_RESOURCES, 0);
		soft_starve(listener);
	}
}

/* ---- REP ---- */

static void write_reply(struct soft_link *link, const void *data, size_t length)
{
	const struct soft_agreement *agreement = &link->agreement;
	int64_t rnr_retry = endpoint_option(&link->endpoint->base, rnr_retry);
	struct mad mad = {
		.kind = MAD_REP,
		.transaction = link->transaction,
		.local_id = link->id,
		.remote_id = link->peer_id,
		.rep = {
			.queue_number = link->queue,
			.starting_psn = agreement->first_psn_expected,
			.responder_resources = (uint8_t)agreement->reads_in,
			.initiator_depth = (uint8_t)agreement->reads_out,
			.target_ack_delay = ACK_DELAY,
			.rnr_retry_count = (uint8_t)(rnr_retry == PATH_UNSET ? MANAGER_RETRIES : rnr_retry),
			.ca_guid = link->manager->transport->guid,
		},
		.private_data = data,
		.private_length = length,
	};

	mad_write(&mad, link->message);
}

enum outcome soft_manager_accept(struct soft_endpoint *endpoint, const void *data, size_t length)
{
	struct soft_transport *transport = soft_of(endpoint->base.transport);
	struct soft_link *link = endpoint->link;
	int64_t ack_timeout = endpoint_option(&endpoint->base, ack_timeout);

	/* The peer gave up meanwhile: that news is under way to the command. */
	if (!link || link->state == LINK_ENDED)
		return OUTCOME_OK;
	link->queue = soft_queue_number(endpoint->queue);
	link->agreement.first_psn_expected = (uint32_t)soft_random() & PSN_MASK;
	if (ack_timeout != PATH_UNSET)
		link->agreement.ack_timeout = (unsigned)ack_timeout;
	write_reply(link, data, length);
	soft_queue_connect(endpoint->queue, &link->agreement);
	soft_link_enter(link, LINK_REP_SENT);
	soft_link_say(link);
	soft_stir(transport);
	return OUTCOME_OK;
}

/* ---- RTU ---- */

void soft_passive_ready(struct soft_link *link)
{
	if (link->state != LINK_REP_SENT)
		return;
	soft_link_enter(link, LINK_ESTABLISHED);
	soft_queue_start(link->endpoint->queue);
	soft_tell(link->endpoint, SOFT_EVENT_ESTABLISHED, NULL, 0);
}

void soft_manager_heard(struct soft_endpoint *endpoint)
{
	if (endpoint->link)
		soft_passive_ready(endpoint->link);
}
