/* SPDX-License-Identifier: BSD-2-Clause */
/* How a link ends: refused, disconnected, forgotten, unanswered, unreachable. */
#include "transport/soft/manager.h"

#include <errno.h>
#include <string.h>

#include "transport/soft/delivery.h"

static void stop_queue(const struct soft_link *link)
{
	if (link->endpoint && link->endpoint->queue)
		soft_queue_stop(link->endpoint->queue);
}

/* An endpoint that is gone need not be told. */
static void tell_disconnected(const struct soft_link *link)
{
	if (link->endpoint)
		soft_tell(link->endpoint, SOFT_EVENT_DISCONNECTED, NULL, 0);
}

void soft_ending_fail(struct soft_link *link, const char *cause, const char *code_name, int code)
{
	bool leaving = link->state == LINK_DREQ_SENT;

	stop_queue(link);
	soft_link_enter(link, LINK_ENDED);
	/* Who was leaving has got what it wanted. */
	if (leaving)
		tell_disconnected(link);
	else
		soft_tell_failure(link->endpoint, cause, code_name, code);
}

/* ---- REJ ---- */

static void reject(struct soft_link *link, uint16_t reason, const void *data, size_t length)
{
	uint8_t guid[8];
	struct mad mad = {
		.kind = MAD_REJ,
		.transaction = link->transaction,
		.local_id = link->id,
		.remote_id = link->peer_id,
		.rej = { .answered = MAD_ANSWERED_OTHER, .reason = reason },
		.private_data = data,
		.private_length = length,
	};

	/* The peer has not been shown our identifier yet. */
	if (link->state == LINK_REQ_RECEIVED) {
		mad.local_id = 0;
		mad.rej.answered = MAD_ANSWERED_REQ;
	}
	/* By this the peer finds its link if we do not know its identifier. */
	if (reason == MAD_REASON_TIMEOUT) {
		bytes_write(guid, sizeof(guid), link->manager->transport->guid);
		mad.rej.information = guid;
		mad.rej.information_length = sizeof(guid);
	}
	mad_write(&mad, link->message);
	soft_link_enter(link, LINK_REJECTED);
}

void soft_ending_refuse(struct soft_link *link, uint16_t reason, const void *data, size_t length)
{
	reject(link, reason, data, length);
	soft_link_say(link);
}

/* The command hears of it, the user does not: there may be a hundred thousand a second. */
void soft_ending_give_way(struct soft_link *link)
{
	stop_queue(link);
	reject(link, MAD_REASON_NO_RESOURCES, NULL, 0);
	soft_tell(link->endpoint, SOFT_EVENT_FAILED, NULL, 0);
}

void soft_ending_repeat(struct soft_link *link, const struct mad *heard)
{
	uint8_t before[MAD_SIZE], bytes[MAD_SIZE];
	struct mad mad;

	memcpy(before, link->message, sizeof(before));
	if (!mad_parse(before, sizeof(before), &mad))
		return;
	mad.local_id = heard->kind == MAD_REQ ? 0 : link->id;
	mad.remote_id = heard->local_id;
	mad.rej.answered = heard->kind == MAD_REQ   ? MAD_ANSWERED_REQ
			   : heard->kind == MAD_REP ? MAD_ANSWERED_REP
						    : MAD_ANSWERED_OTHER;
	mad_write(&mad, bytes);
	soft_manager_send(link->manager, &link->agreement.path, bytes);
	soft_link_remember(link);
}

enum outcome soft_manager_reject(struct soft_endpoint *endpoint, const void *data, size_t length)
{
	struct soft_link *link = endpoint->link;

	if (link && link->state == LINK_REQ_RECEIVED) {
		soft_ending_refuse(link, MAD_REASON_CONSUMER, data,
				   length < MAD_REJ_PRIVATE ? length : MAD_REJ_PRIVATE);
		soft_stir(link->manager->transport);
	}
	return OUTCOME_OK;
}

void soft_ending_rejected(struct soft_link *link, const struct mad *mad)
{
	const struct mad_rej *rej = &mad->rej;

	if (rej->reason == MAD_REASON_MTU && rej->information_length >= 1 &&
	    soft_active_retry(link, rej->information[0]))
		return;
	switch (link->state) {
	case LINK_REQ_SENT:
	case LINK_REQ_RECEIVED:
	case LINK_REP_SENT:
	case LINK_ESTABLISHED:
		stop_queue(link);
		soft_link_enter(link, LINK_ENDED);
		soft_tell_refusal(link->endpoint, rejection_text(rej->reason), rej->reason, mad->private_data,
				  mad->private_length);
		break;
	case LINK_DREQ_SENT:
		soft_link_enter(link, LINK_ENDED);
		tell_disconnected(link);
		break;
	default:
		break;
	}
}

/* ---- DREQ and DREP ---- */

/* random, not the request's transaction: this is a new one. */
static void say_goodbye(struct soft_link *link)
{
	struct mad mad = {
		.kind = MAD_DREQ,
		.transaction = soft_random(),
		.local_id = link->id,
		.remote_id = link->peer_id,
		.dreq = { .remote_queue_number = link->agreement.peer_queue },
	};

	mad_write(&mad, link->message);
	soft_link_enter(link, LINK_DREQ_SENT);
	soft_link_say(link);
}

enum outcome soft_manager_disconnect(struct soft_endpoint *endpoint)
{
	struct soft_link *link = endpoint->link;

	/* Else the peer was faster, and that news is under way to the command. */
	if (link && link->state == LINK_ESTABLISHED) {
		stop_queue(link);
		say_goodbye(link);
		soft_stir(link->manager->transport);
	}
	return OUTCOME_OK;
}

void soft_ending_confirm(struct soft_manager *manager, const struct soft_path *path, const struct mad *dreq)
{
	uint8_t bytes[MAD_SIZE];
	struct mad mad = {
		.kind = MAD_DREP,
		.transaction = dreq->transaction,
		.local_id = dreq->remote_id,
		.remote_id = dreq->local_id,
	};

	mad_write(&mad, bytes);
	soft_manager_send(manager, path, bytes);
}

void soft_ending_let_go(struct soft_link *link)
{
	struct mad dreq = { .transaction = link->goodbye, .local_id = link->peer_id, .remote_id = link->id };

	soft_ending_confirm(link->manager, &link->agreement.path, &dreq);
	link->left_at = clock_now();
}

static void end_with(struct soft_link *link)
{
	stop_queue(link);
	soft_ending_let_go(link);
	soft_link_enter(link, LINK_ENDED);
	tell_disconnected(link);
}

static void stayed_long_enough(void *owner)
{
	struct soft_link *link = owner;
	struct soft_transport *transport = link->manager->transport;

	soft_enter(transport);
	end_with(link);
	soft_leave(transport);
}

/*
 * The peer leaves, but our last messages may have reached it: their acknowledgement was lost, or the DREQ was faster.
 * One of ours acknowledges repeats until it got its DREP, so the queue has some time to hear that; and the repeated
 * DREQ tells when to look again.
 */
static bool must_stay(struct soft_link *link)
{
	if (link->state != LINK_ESTABLISHED || !soft_queue_is_waiting(link->endpoint->queue))
		return false;
	if (!link->leaving)
		loop_timer_start(link->manager->transport->base.loop, &link->timer, MANAGER_STAY, stayed_long_enough,
				 link);
	link->leaving = true;
	return true;
}

void soft_ending_disconnected(struct soft_link *link, const struct mad *dreq)
{
	if (!link->peer_known || dreq->dreq.remote_queue_number != link->queue)
		return;
	/* It did confirm, but that was lost or overtaken: nobody disconnects before. */
	soft_passive_ready(link);
	switch (link->state) {
	case LINK_ESTABLISHED:
	case LINK_DREQ_SENT: /* both at once */
		link->goodbye = dreq->transaction;
		if (!must_stay(link))
			end_with(link);
		break;
	case LINK_ENDED:
	case LINK_REJECTED:
		soft_ending_confirm(link->manager, &link->agreement.path, dreq);
		soft_link_remember(link);
		break;
	default:
		break;
	}
}

void soft_ending_confirmed(struct soft_link *link)
{
	if (link->state != LINK_DREQ_SENT)
		return;
	soft_link_enter(link, LINK_ENDED);
	tell_disconnected(link);
}

/* ---- nobody answers ---- */

void soft_ending_unanswered(struct soft_link *link)
{
	if (link->state == LINK_REQ_SENT || link->state == LINK_REP_SENT) {
		stop_queue(link);
		soft_ending_refuse(link, MAD_REASON_TIMEOUT, NULL, 0);
		soft_tell_failure(link->endpoint, "the peer's connection manager does not answer", "errno", ETIMEDOUT);
	} else {
		soft_ending_confirmed(link);
	}
}

enum {
	/* Where a quoted packet has them. */
	AT_DESTINATION = 5,
	AT_MAD = PACKET_BASE_SIZE + 8,
	AT_ID = AT_MAD + 24,
	AT_ID_END = AT_ID + 4,
};

void soft_manager_unreachable(struct soft_transport *transport, const struct soft_socket *socket,
			      const struct address *peer, int error, const uint8_t *quoted, size_t length)
{
	uint32_t destination = length < PACKET_BASE_SIZE ? 0 : (uint32_t)bytes_read(quoted + AT_DESTINATION, 3);
	bool message = destination == MAD_QUEUE_NUMBER && length >= AT_ID_END;
	uint32_t id = message ? (uint32_t)bytes_read(quoted + AT_ID, 4) : 0;
	struct soft_link *link = soft_link_find_sender(transport->manager, id, destination, socket, peer);

	if (!link)
		return;
	if (error != ECONNREFUSED) {
		if (link->endpoint)
			link->endpoint->no_way = error;
	} else if (link->state == LINK_ESTABLISHED) {
		soft_queue_doubt(link->endpoint->queue);
	} else if (message && link->state < LINK_ENDED) {
		soft_ending_fail(link, SOFT_UNREACHABLE, "errno", ECONNREFUSED);
	}
}

/* ---- the endpoint goes ---- */

void soft_manager_forget(struct soft_endpoint *endpoint)
{
	struct soft_link *link = endpoint->link;

	if (!link)
		return;
	switch (link->state) {
	case LINK_NEW:
		soft_link_free(link);
		return;
	case LINK_REQ_SENT:
		soft_ending_refuse(link, MAD_REASON_TIMEOUT, NULL, 0);
		break;
	case LINK_REQ_RECEIVED:
	case LINK_REP_SENT:
		soft_ending_refuse(link, MAD_REASON_CONSUMER, NULL, 0);
		break;
	case LINK_ESTABLISHED:
		stop_queue(link);
		say_goodbye(link);
		break;
	default:
		break;
	}
	soft_stir(link->manager->transport);
	soft_link_detach(link);
}
