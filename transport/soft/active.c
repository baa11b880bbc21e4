/* SPDX-License-Identifier: BSD-2-Clause */
/* The end that connects: says REQ, hears REP, says RTU. */
#include "transport/soft/manager.h"

#include <errno.h>
#include <string.h>

#include "transport/soft/delivery.h"

/* What a stock peer asks for, unless another reason is given. */
enum {
	READS_OFFERED = 4,	   /* RDMA READs at once in each direction; a stock rping needs one */
	RESPONSE_TIMEOUT = 20,	   /* 4.3 s that a stock peer may take */
	OUR_RESPONSE_TIMEOUT = 18, /* 1.1 s: a kernel repeats a REP that was lost no sooner */
	RETRIES_MOST = 15,
	/*
	 * 1.1 s, of the passive queue, too, instead of the usual 2.1: a kernel waits that long for every lost packet
	 * that no other follows; and eight times that, after which a peer is given up, is less than the time-out of a
	 * command, which would know no reason.
	 */
	ACK_TIMEOUT = 18,
	PERMISSIVE_LID = 0xffff,
	HOP_LIMIT = 64,
	PACKET_RATE = 3, /* 10 Gb/s: nobody paces by it, but 0 is no rate */
};

_Static_assert((int)PRIVATE_DATA_MOST <= (int)MAD_REQ_USER_PRIVATE, "what a command may say fits into a REQ");
_Static_assert((int)READS_OFFERED <= (int)SOFT_READS_AT_ONCE, "we offer no more READs than the queue can do");

static void address_header(const struct soft_endpoint *endpoint, uint8_t private_data[MAD_ADDRESS_SIZE])
{
	const struct soft_path *path = &endpoint->path;
	struct mad_address address = {
		.version = path->local.family == ADDRESS_IP4 ? 4 : 6,
		.port = endpoint->base.local.port,
	};

	memcpy(address.source, path->local.bytes, sizeof(address.source));
	memcpy(address.destination, path->peer.bytes, sizeof(address.destination));
	mad_address_write(&address, private_data);
}

static void write_request(struct soft_link *link, const void *data, size_t length)
{
	const struct soft_endpoint *endpoint = link->endpoint;
	const struct soft_agreement *agreement = &link->agreement;
	const struct soft_path *path = &agreement->path;
	uint8_t private_data[MAD_REQ_PRIVATE] = { 0 };
	struct mad mad = {
		.kind = MAD_REQ,
		.transaction = link->transaction,
		.local_id = link->id,
		.req = {
			.service_id = mad_service_id((uint16_t)endpoint->base.options.port_space,
						     endpoint->base.peer.port),
			.ca_guid = link->manager->transport->guid,
			.queue_number = link->queue,
			.responder_resources = (uint8_t)agreement->reads_in,
			.initiator_depth = (uint8_t)agreement->reads_out,
			.remote_response_timeout = RESPONSE_TIMEOUT,
			.transport = MAD_TRANSPORT_RC,
			.starting_psn = agreement->first_psn_expected,
			.local_response_timeout = OUR_RESPONSE_TIMEOUT,
			.retry_count = (uint8_t)agreement->retry_count,
			.pkey = PACKET_PKEY,
			.path_mtu = (uint8_t)mtu_code(path->mtu),
			.rnr_retry_count = (uint8_t)agreement->rnr_retry_count,
			.max_cm_retries = RETRIES_MOST,
			.path = {
				.local_lid = PERMISSIVE_LID,
				.remote_lid = PERMISSIVE_LID,
				.packet_rate = PACKET_RATE,
				.traffic_class = path->type_of_service,
				.hop_limit = HOP_LIMIT,
				.ack_timeout = (uint8_t)agreement->ack_timeout,
			},
		},
		.private_data = private_data,
		.private_length = MAD_ADDRESS_SIZE + length,
	};

	soft_manager_gid(&path->local, mad.req.path.local_gid);
	soft_manager_gid(&path->peer, mad.req.path.remote_gid);
	address_header(endpoint, private_data);
	if (length)
		memcpy(private_data + MAD_ADDRESS_SIZE, data, length);
	mad_write(&mad, link->message);
}

enum outcome soft_manager_connect(struct soft_endpoint *endpoint, const void *data, size_t length)
{
	struct soft_transport *transport = soft_of(endpoint->base.transport);
	const struct log *log = transport->base.log;
	int64_t ack_timeout = endpoint_option(&endpoint->base, ack_timeout);
	int64_t retry = endpoint_option(&endpoint->base, retry);
	int64_t rnr_retry = endpoint_option(&endpoint->base, rnr_retry);
	struct soft_link *link;

	link = soft_link_create(transport->manager, &endpoint->path);
	if (!link) {
		log_errno(log, endpoint->base.name, ENOMEM, "connecting");
		return OUTCOME_INTERNAL;
	}
	soft_link_attach(link, endpoint);
	link->active = true;
	link->queue = soft_queue_number(endpoint->queue);
	link->transaction = soft_random();
	link->agreement.first_psn_expected = (uint32_t)soft_random() & PSN_MASK;
	link->agreement.retry_count = retry == PATH_UNSET ? MANAGER_RETRIES : (unsigned)retry;
	link->agreement.rnr_retry_count = rnr_retry == PATH_UNSET ? MANAGER_RETRIES : (unsigned)rnr_retry;
	link->agreement.ack_timeout = ack_timeout == PATH_UNSET ? ACK_TIMEOUT : (unsigned)ack_timeout;
	link->agreement.reads_in = READS_OFFERED;
	link->agreement.reads_out = READS_OFFERED;
	write_request(link, data, length);
	soft_link_enter(link, LINK_REQ_SENT);
	soft_link_say(link);
	soft_stir(transport);
	return OUTCOME_OK;
}

static void write_ready(struct soft_link *link)
{
	struct mad mad = {
		.kind = MAD_RTU,
		.transaction = link->transaction,
		.local_id = link->id,
		.remote_id = link->peer_id,
	};

	mad_write(&mad, link->message);
}

static void established(struct soft_link *link, const struct mad *mad)
{
	const struct mad_rep *rep = &mad->rep;
	struct soft_endpoint *endpoint = link->endpoint;
	struct soft_agreement *agreement = &link->agreement;
	struct soft_link *older;

	if (!soft_manager_is_queue(rep->queue_number)) {
		link->peer_id = mad->local_id;
		soft_ending_refuse(link, MAD_REASON_CONSUMER, NULL, 0);
		soft_tell_failure(endpoint, "the peer's answer names no queue pair", "queue pair",
				  (int)rep->queue_number);
		return;
	}
	/* The answer is proven to be the peer's own: where it uses the queue pair anew, the older connection is gone.
	 */
	older = soft_link_find_queue(link->manager, rep->ca_guid, rep->queue_number, &agreement->path.peer);
	if (older)
		soft_ending_fail(older, "the peer has begun anew with the same queue pair", "errno", ECONNRESET);
	if (!soft_link_set_peer(link, rep->ca_guid, mad->local_id, rep->queue_number)) {
		soft_starve(endpoint);
		return;
	}
	agreement->first_psn_sent = rep->starting_psn;
	agreement->rnr_retry_count = rep->rnr_retry_count;
	agreement->reads_out = soft_manager_least(agreement->reads_out, rep->responder_resources);
	agreement->reads_in = soft_manager_least(agreement->reads_in, rep->initiator_depth);
	soft_queue_connect(endpoint->queue, agreement);
	soft_queue_start(endpoint->queue);
	soft_link_enter(link, LINK_ESTABLISHED);
	write_ready(link);
	soft_link_say(link);
	soft_tell(endpoint, SOFT_EVENT_ESTABLISHED, mad->private_data, mad->private_length);
}

void soft_active_reply(struct soft_link *link, const struct mad *rep)
{
	switch (link->state) {
	case LINK_REQ_SENT:
		established(link, rep);
		break;
	case LINK_ESTABLISHED: /* it did not hear our RTU */
		if (link->active)
			soft_link_say_again(link);
		break;
	case LINK_REJECTED: /* nor that we gave up */
		soft_ending_repeat(link, rep);
		break;
	default:
		break;
	}
}

bool soft_active_retry(struct soft_link *link, unsigned code)
{
	uint8_t before[MAD_SIZE];
	struct mad mad;

	memcpy(before, link->message, sizeof(before));
	if (link->state != LINK_REQ_SENT || !mtu_bytes(code) || mtu_bytes(code) >= link->agreement.path.mtu ||
	    !mad_parse(before, sizeof(before), &mad))
		return false;
	link->agreement.path.mtu = mtu_bytes(code);
	link->endpoint->path.mtu = mtu_bytes(code);
	link->transaction = soft_random();
	soft_link_rename(link);
	mad.transaction = link->transaction;
	mad.local_id = link->id;
	mad.req.path_mtu = (uint8_t)code;
	mad_write(&mad, link->message);
	soft_link_say(link);
	return true;
}
