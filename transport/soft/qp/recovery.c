/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the requester does about loss. It shows in three ways: the peer says so (a sequence NAK, once), a READ response
 * or an acknowledgement passes something missing, or nothing comes: the time-out follows the measured round trips and
 * doubles. Each time all is sent again from the oldest packet that is missing. Losses shrink the window and round trips
 * without them let it grow, as in TCP.
 */
#include "transport/soft/qp/recovery.h"

#include "core/clock.h"
#include "transport/soft/delivery.h"
#include "transport/soft/qp/requester.h"

enum {
	WINDOW_FIRST = 32,
	WINDOW_LEAST = 4,     /* but for a peer that is silent for long */
	WINDOW_MOST = 1024,   /* packets */
	WINDOW_DOUBLED = 128, /* up to there it doubles with each round trip */
	WINDOW_NOT_READY = 8, /* after the peer had no receive: most of more would be dropped; then one packet asks */
	TRIES = 4,	      /* in each of the retry_count rounds, which all fail before the peer is given up */
	TIMEOUTS_MOST = 200,  /* counted */
	TIMEOUTS_RANDOM = 5,  /* in a row, that a bad network may have; more need patience */
	DOUBLINGS_MOST = 10,
	NOT_READY_MOST = 7, /* counted */
	LOSSES_MOST = 6,    /* counted */
	RESENDS_SOON = 4,   /* of the same PSN, as soon as it is missed */
	CALM_ROUNDS = 64,   /* measured without a loss make one forgotten */
	EAGER = 64,	    /* packets after a pause */
};

/* Before anything was measured; peers that must be scheduled first are slower than any wire. */
#define TIMEOUT_FIRST (40 * CLOCK_NS_PER_MS)
#define TIMEOUT_LEAST (2 * CLOCK_NS_PER_MS)
/*
 * As long as stock devices say that an acknowledgement may take. A busy peer does take tens of milliseconds now and
 * then, and to repeat everything would make that worse; but on a network that loses packets nobody can wait for that
 * with each. So it is halved with each loss, down to the least.
 */
#define TIMEOUT_CAREFUL (128 * CLOCK_NS_PER_MS)
#define TIMEOUT_LONGEST (64 * CLOCK_NS_PER_MS) /* unless a longer one was agreed on */
#define TIMEOUT_PROBE	(2 * CLOCK_NS_PER_S)   /* at most, whatever was agreed on: as what connecting ends ask for */
#define NOT_READY_WAIT	(5 * CLOCK_NS_PER_MS)  /* up to there waits double, for a peer that stays without receive */
#define VARIATION_LEAST (250 * CLOCK_NS_PER_US)
#define UNASKED_LONGEST (8 * CLOCK_NS_PER_MS) /* both well before the time-out */
#define PAUSE		(64 * CLOCK_NS_PER_MS)

void recovery_connect(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	size_t most = soft_socket_window(qp->path.socket, qp->path.mtu);

	requester->cwnd_max = most > WINDOW_MOST ? WINDOW_MOST : most < WINDOW_LEAST ? WINDOW_LEAST : (uint32_t)most;
	requester->ssthresh = requester->cwnd_max < WINDOW_DOUBLED ? requester->cwnd_max : WINDOW_DOUBLED;
	requester->cwnd = requester->cwnd_max < WINDOW_FIRST ? requester->cwnd_max : WINDOW_FIRST;
}

/* ---- time ---- */

static void alarmed(void *owner);

/* The alarm may come too early, and finds a later deadline then: cheaper than to move it with every packet. */
static void set_deadline(struct soft_qp *qp, int64_t deadline)
{
	struct requester *requester = &qp->requester;
	int64_t wait = deadline - qp_now(qp);

	requester->deadline = deadline;
	if (!deadline || (requester->timer_at && requester->timer_at <= deadline))
		return;
	requester->timer_at = deadline;
	loop_timer_start(qp->transport->base.loop, &qp->timer, wait > 0 ? wait : 0, alarmed, qp);
}

/* Work may wait for hours or for ever where the peer asked for that; our own question whether it lives may not. */
static int64_t timeout_of(const struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;
	bool probing = requester->count && (requester->ring[requester->head].probe || qp->suspected_at);
	bool clamped = probing && (!qp->ack_timeout || qp->ack_timeout > TIMEOUT_PROBE);

	return clamped ? TIMEOUT_PROBE : qp->ack_timeout;
}

/* From the last answer, or from the first packet under way. Something must have been agreed on. */
static int64_t current_timeout(const struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;
	int64_t agreed = timeout_of(qp);
	int64_t longest = agreed / TRIES;
	int64_t timeout = TIMEOUT_FIRST;
	int64_t margin = 4 * requester->rttvar;

	if (requester->srtt)
		timeout = requester->srtt + (margin > VARIATION_LEAST ? margin : VARIATION_LEAST);
	if (timeout < TIMEOUT_CAREFUL >> requester->recent_losses)
		timeout = TIMEOUT_CAREFUL >> requester->recent_losses;
	if (timeout > agreed)
		timeout = agreed;
	if (timeout < TIMEOUT_LEAST)
		timeout = TIMEOUT_LEAST;
	if (longest < TIMEOUT_LONGEST)
		longest = TIMEOUT_LONGEST;
	/* The first again may as well have been lost by chance. */
	if (requester->backoff > 1)
		timeout <<= requester->backoff - 1;
	if (requester->backoff && timeout > longest)
		timeout = longest;
	return timeout;
}

void recovery_arm(struct soft_qp *qp)
{
	if (timeout_of(qp))
		set_deadline(qp, qp_now(qp) + current_timeout(qp));
	else
		qp->requester.deadline = 0;
}

/*
 * Many queues at once may keep a network or a peer busy for longer than the time-out of each. As long as what was sent
 * before is answered, by whatever queue, and nothing that was sent later, ours has had no turn yet: by the order of
 * sending, as in RACK (RFC 8985), but across queues.
 */
static bool is_behind(struct soft_qp *qp)
{
	const struct soft_transport *transport = qp->transport;

	return transport->acked_send_order < qp->requester.last_send_order &&
	       qp_now(qp) - transport->last_ack_at < current_timeout(qp);
}

/* As TCP does it: RFC 6298. */
static void measure(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	int64_t taken = qp_now(qp) - requester->rtt_sent_at;
	int64_t error = taken - requester->srtt;

	if (qp->transport->acked_send_order < requester->rtt_send_order)
		qp->transport->acked_send_order = requester->rtt_send_order;
	requester->rtt_timing = false;
	requester->backoff = 0;
	if (requester->recent_losses && ++requester->rtt_samples_since_loss == CALM_ROUNDS) {
		requester->rtt_samples_since_loss = 0;
		requester->recent_losses--;
	}
	if (taken <= 0)
		taken = 1;
	if (!requester->srtt) {
		requester->srtt = taken;
		requester->rttvar = taken / 2;
		return;
	}
	requester->rttvar += ((error < 0 ? -error : error) - requester->rttvar) / 4;
	requester->srtt += error / 8;
	if (requester->srtt <= 0)
		requester->srtt = 1;
}

/* Queues that are busy at once share the buffers: in all likelihood their packets meet in one, at the peer or here. */
uint32_t recovery_window(const struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;
	uint32_t share = requester->cwnd_max / qp->transport->busy_qps;
	uint32_t window = requester->cwnd;

	if (window > share)
		window = share < WINDOW_LEAST ? WINDOW_LEAST : share;
	if (requester->rnr_naks > 1)
		return 1;
	return requester->rnr_naks && window > WINDOW_NOT_READY ? WINDOW_NOT_READY : window;
}

/* The first packet of its time that was never sent before is timed. */
void recovery_sent(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;

	requester->last_send_order = ++qp->transport->send_order;
	if (requester->rtt_timing || requester->next_psn != requester->highest_psn)
		return;
	requester->rtt_timing = true;
	requester->rtt_psn = requester->next_psn;
	requester->rtt_sent_at = qp_now(qp);
	requester->rtt_send_order = requester->last_send_order;
}

/*
 * Work that is not reported leaves it to later work to ask, if that comes soon. Where there are pauses it may not, and
 * would have to be sent again: harmless, but the peer's device counts it, and operators look at what it counts.
 */
bool recovery_wants_ack(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	int64_t now = qp_now(qp);

	if (now - requester->last_unsignalled_at >= PAUSE)
		requester->ack_request_quota = EAGER;
	requester->last_unsignalled_at = now;
	if (!requester->ack_request_quota)
		return now - requester->since_ack_request_at >= UNASKED_LONGEST;
	requester->ack_request_quota--;
	return true;
}

/* ---- losses ---- */

static void go_back(struct requester *requester)
{
	requester->next_psn = requester->unacked_psn;
	requester->next_request = 0;
	requester->outstanding_reads = 0;
	requester->since_ack_request = 0;
	requester->rtt_timing = false;
}

/* Pays for a loss with a part of the window, once for all that was under way when it happened. */
static void shrink(struct requester *requester)
{
	uint32_t window = requester->cwnd - requester->cwnd * 3 / 10;

	if (requester->in_recovery)
		return;
	requester->in_recovery = true;
	requester->rtt_samples_since_loss = 0;
	if (requester->recent_losses < LOSSES_MOST)
		requester->recent_losses++;
	requester->recover_psn = requester->highest_psn;
	requester->cwnd = window < WINDOW_LEAST ? WINDOW_LEAST : window;
	requester->ssthresh = requester->cwnd;
	requester->cwnd_counter = 0;
}

/*
 * The oldest packet, or what it asked for, is missing. The news of one loss may come many times, and it takes a while
 * before what is sent now can show: news of the same PSN do not count until then.
 */
static void send_again(struct soft_qp *qp, int64_t while_old)
{
	struct requester *requester = &qp->requester;
	int64_t now = qp_now(qp);
	bool anew = requester->resent_psn != requester->unacked_psn || !requester->resent_at;

	/* Ends that disagree on what comes next would keep each other busy; the time-out ends that. */
	if (requester->resends >= RESENDS_SOON && while_old < TIMEOUT_LEAST)
		while_old = TIMEOUT_LEAST;
	if (requester->rnr_waiting || requester->next_psn == requester->unacked_psn ||
	    (!anew && now - requester->resent_at < while_old))
		return;
	if (anew)
		requester->resends = 0;
	else if (requester->resends < RESENDS_SOON)
		requester->resends++;
	requester->resent_psn = requester->unacked_psn;
	requester->resent_at = now;
	requester->backoff = 0;
	shrink(requester);
	go_back(requester);
}

/* The peer said it, once for each time it was lost: only copies of that are old news. */
void recovery_nak(struct soft_qp *qp)
{
	int64_t srtt = qp->requester.srtt;

	send_again(qp, srtt ? srtt / 2 : TIMEOUT_LEAST);
}

/* An answer came past it. Others that do may have been on their way when it was sent again. */
void recovery_implied_nak(struct soft_qp *qp)
{
	int64_t srtt = qp->requester.srtt;

	send_again(qp, srtt ? srtt - srtt / 8 : TIMEOUT_LEAST);
}

void recovery_rnr(struct soft_qp *qp, int64_t nanoseconds)
{
	struct requester *requester = &qp->requester;
	int64_t doubled = nanoseconds << requester->rnr_naks;

	if (doubled > NOT_READY_WAIT)
		doubled = NOT_READY_WAIT;
	if (nanoseconds < doubled)
		nanoseconds = doubled;
	if (requester->rnr_naks < NOT_READY_MOST)
		requester->rnr_naks++;
	requester->timeouts = 0;
	requester->unanswered_since = qp_now(qp);
	go_back(requester);
	requester->rnr_waiting = true;
	set_deadline(qp, qp_now(qp) + nanoseconds);
}

void recovery_suspect(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;

	if (requester->deadline)
		return;
	requester->timeouts = 0;
	requester->unanswered_since = qp_now(qp);
	recovery_arm(qp);
}

void recovery_confirm(struct soft_qp *qp)
{
	if (!qp->requester.rnr_waiting && !timeout_of(qp))
		qp->requester.deadline = 0;
}

static bool is_given_up(struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;
	int64_t rounds = qp->retry_count + 1;

	return requester->timeouts > TRIES * rounds &&
	       qp_now(qp) - requester->unanswered_since >= rounds * timeout_of(qp);
}

static void time_out(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;

	if (timeout_of(qp) && is_behind(qp)) {
		recovery_arm(qp);
		return;
	}
	/* Nothing that is under way has asked for an answer. Sent again it does; that is no loss yet. */
	if (requester->since_ack_request >= ((requester->next_psn - requester->unacked_psn) & PSN_MASK)) {
		go_back(requester);
		requester_transmit(qp);
		recovery_arm(qp);
		return;
	}
	if (requester->timeouts < TIMEOUTS_MOST)
		requester->timeouts++;
	if (requester->backoff <= DOUBLINGS_MOST)
		requester->backoff++;
	if (is_given_up(qp)) {
		requester_retries_exhausted(qp);
		return;
	}
	requester->in_recovery = false;
	shrink(requester);
	if (requester->timeouts > TIMEOUTS_RANDOM)
		requester->cwnd = 1;
	requester->resent_psn = requester->unacked_psn;
	requester->resent_at = qp_now(qp);
	go_back(requester);
	requester_transmit(qp);
	recovery_arm(qp);
}

static void alarmed(void *owner)
{
	struct soft_qp *qp = owner;
	struct requester *requester = &qp->requester;

	soft_enter(qp->transport);
	requester->timer_at = 0;
	if (!requester->deadline) {
		/* All is answered. */
	} else if (qp_now(qp) < requester->deadline) {
		set_deadline(qp, requester->deadline);
	} else if (requester->rnr_waiting) {
		requester->rnr_waiting = false;
		requester->deadline = 0;
		requester_transmit(qp);
	} else {
		time_out(qp);
	}
	soft_leave(qp->transport);
}

static void grow(struct requester *requester, uint32_t packets)
{
	if (requester->cwnd < requester->ssthresh) {
		requester->cwnd += packets;
	} else {
		requester->cwnd_counter += packets;
		if (requester->cwnd_counter >= requester->cwnd) {
			requester->cwnd_counter = 0;
			requester->cwnd++;
		}
	}
	if (requester->cwnd > requester->cwnd_max)
		requester->cwnd = requester->cwnd_max;
}

/* The oldest PSN has moved on from where it was. */
void recovery_progress(struct soft_qp *qp, uint32_t before)
{
	struct requester *requester = &qp->requester;
	uint32_t packets = (requester->unacked_psn - before) & PSN_MASK;

	if (requester->rtt_timing && psn_before(requester->rtt_psn, requester->unacked_psn))
		measure(qp);
	/* A window that is not used says nothing. */
	if (2 * ((requester->next_psn - before) & PSN_MASK) >= requester->cwnd)
		grow(requester, packets);
	/* Late answers may be for packets that were to be sent again. */
	if (psn_before(requester->next_psn, requester->unacked_psn))
		go_back(requester);
	if (requester->in_recovery && !psn_before(requester->unacked_psn, requester->recover_psn))
		requester->in_recovery = false;
	qp->transport->last_ack_at = qp_now(qp);
	requester->timeouts = 0;
	requester->rnr_naks = 0;
	requester->unanswered_since = qp_now(qp);
	if (requester->rnr_waiting)
		return;
	if (requester->next_psn == requester->unacked_psn)
		requester->deadline = 0;
	else
		recovery_arm(qp);
}
