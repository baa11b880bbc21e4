/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss recovery of the requester. Two kinds of reply show a loss: a sequence NAK, and one whose PSN is beyond a READ
 * with missing responses (an implied NAK). The requester then sends everything again from the oldest missing packet on
 * (go-back-N).
 *
 * Without a reply there is a timeout, which follows the measured round trips and doubles (RFC 6298). It sends one new
 * packet, a probe: the peer's reply shows, as above, that an earlier packet was lost, or else that the peer was merely
 * late. If there is a probe already, or other packets wait for the window, it resends the last one (the tail loss probe
 * of RFC 8985), and so does each further timeout. Every second one also resends the oldest, because a kernel sends
 * only one NAK, which may be lost. So few packets barely load a busy peer, and the timeout can be short.
 *
 * A loss reduces the congestion window, and acknowledgements increase it, as in TCP.
 */
#include "transport/soft/qp/qp_internal.h"

#include "core/clock.h"
#include "transport/soft/base/queue.h"

enum {
	/* Packets. */
	CWND_INITIAL = 32,
	CWND_MIN = 4, /* 1 after two timeouts */
	CWND_MAX = 1024,
	SSTHRESH_INITIAL = 128,
	CWND_RNR = 8, /* after an RNR NAK, because the peer would drop most of a larger window; 1 after another */

	/* Counters stop there. */
	TIMEOUTS_MAX = 200,
	RTO_DOUBLINGS_MAX = 10,
	RNR_NAKS_MAX = 7,

	TIMEOUTS_PER_RETRY = 4, /* our RTO is shorter than a device's ACK timeout */
	RESENDS_IMMEDIATE = 4,	/* of the same PSN; after them, holdoff is at least RTO_MIN */
	ACK_REQUEST_QUOTA = 64, /* unsignalled requests after a pause */
};

#define RTO_MIN CLOCK_NS_PER_MS
/* Before the first RTT sample: about the local CA ACK delay of stock devices (15: 134 ms). */
#define RTO_UNMEASURED	  (128 * CLOCK_NS_PER_MS)
#define RTO_BACKOFF_MAX	  (64 * CLOCK_NS_PER_MS) /* or longer: ack_timeout / TIMEOUTS_PER_RETRY, the RTO itself */
#define RTO_MARGIN_MIN	  (250 * CLOCK_NS_PER_US)
#define PROBE_ACK_TIMEOUT (2 * CLOCK_NS_PER_S) /* maximum; about the ack_timeout of stock peers */
#define HOST_PROBE_AFTER  (500 * CLOCK_NS_PER_MS)
#define RNR_BACKOFF_MAX	  (5 * CLOCK_NS_PER_MS) /* limit of the doubled wait; the peer's RNR timer may be longer */

void recovery_connect(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	size_t max = soft_socket_window(qp->endpoint->path.socket, qp->endpoint->path.mtu);

	requester->cwnd_max = max > CWND_MAX ? CWND_MAX : max < CWND_MIN ? CWND_MIN : (uint32_t)max;
	requester->ssthresh = requester->cwnd_max < SSTHRESH_INITIAL ? requester->cwnd_max : SSTHRESH_INITIAL;
	requester->cwnd = requester->cwnd_max < CWND_INITIAL ? requester->cwnd_max : CWND_INITIAL;
}

/* ---- timeouts ---- */

/* ack_timeout may be 0 or hours. A probe, or work that serves as one, waits at most PROBE_ACK_TIMEOUT. */
static int64_t limited_ack_timeout(const struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;
	bool probing = qp_is_probe_oldest(requester) || (requester->ring.count && qp->suspected_at);
	bool clamped = probing && (!qp->ack_timeout || qp->ack_timeout > PROBE_ACK_TIMEOUT);

	return clamped ? PROBE_ACK_TIMEOUT : qp->ack_timeout;
}

/* The retransmission timeout (RFC 6298), if limited_ack_timeout() is not 0. */
static int64_t current_rto(const struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;
	int64_t ack_timeout = limited_ack_timeout(qp);
	int64_t backoff_max = ack_timeout / TIMEOUTS_PER_RETRY;
	int64_t rto = RTO_UNMEASURED;
	int64_t margin = 4 * requester->rttvar;

	if (requester->srtt)
		rto = requester->srtt + (margin > RTO_MARGIN_MIN ? margin : RTO_MARGIN_MIN);
	if (rto > ack_timeout)
		rto = ack_timeout;
	if (rto < RTO_MIN)
		rto = RTO_MIN;
	if (backoff_max < RTO_BACKOFF_MAX)
		backoff_max = RTO_BACKOFF_MAX;
	if (backoff_max < rto)
		backoff_max = rto;
	/* The first retransmission may be lost by chance: no doubling yet. */
	if (requester->backoff > 1)
		rto <<= requester->backoff - 1;
	if (requester->backoff && rto > backoff_max)
		rto = backoff_max;
	return rto;
}

void recovery_arm(struct soft_qp *qp)
{
	qp->requester.deadline = limited_ack_timeout(qp) ? qp_now(qp) + current_rto(qp) : 0;
}

/*
 * Many queue pairs together may keep a network or a peer busy for longer than each RTO. While acknowledgements arrive,
 * on any queue pair, and none is for a packet sent after ours, ours may still be queued. RACK (RFC 8985) uses the
 * sending order too, but within one connection.
 */
static bool may_be_queued(struct soft_qp *qp)
{
	const struct soft_transport *transport = qp->transport;

	return transport->largest_acked < qp->requester.last_packet_number &&
	       qp_now(qp) - transport->last_ack_at < current_rto(qp);
}

/* RFC 6298. */
static void rtt_sample(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	int64_t rtt = qp_now(qp) - requester->rtt_sent_at + 1; /* an srtt of 0 means none */
	int64_t error = rtt - requester->srtt;

	if (qp->transport->largest_acked < requester->rtt_packet_number)
		qp->transport->largest_acked = requester->rtt_packet_number;
	requester->rtt_timing = false;
	requester->backoff = 0;
	if (!requester->srtt) {
		requester->srtt = rtt;
		requester->rttvar = rtt / 2;
		return;
	}
	requester->rttvar += ((error < 0 ? -error : error) - requester->rttvar) >> 2;
	requester->srtt += error >> 3;
}

/* Busy queue pairs share cwnd_max, because their packets probably share one socket buffer, at the peer or here. */
uint32_t recovery_window(const struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;
	uint32_t share = requester->cwnd_max / qp->transport->busy_qps;
	uint32_t window = requester->cwnd;

	if (window > share)
		window = share < CWND_MIN ? CWND_MIN : share;
	if (requester->rnr_naks > 1)
		return 1;
	return requester->rnr_naks && window > CWND_RNR ? CWND_RNR : window;
}

/*
 * Times one packet at a time, and none resent by a timeout: the reply may be to the earlier one (Karn's algorithm).
 * Those that go_back() resends may be timed: the peer dropped their first copies.
 */
void recovery_sent(struct soft_qp *qp, uint32_t psn)
{
	struct requester *requester = &qp->requester;

	requester->packets_since_ack_request = 0;
	requester->last_packet_number = ++qp->transport->packet_number;
	if (requester->rtt_timing || psn_before(psn, requester->ambiguous_psn))
		return;
	requester->rtt_timing = true;
	requester->rtt_psn = psn;
	requester->rtt_sent_at = qp_now(qp);
	requester->rtt_packet_number = requester->last_packet_number;
}

/*
 * Unsignalled work leaves AckReq to later work, if that comes before the timeout. After a pause it may not, and the
 * timeout would send a probe.
 */
bool recovery_wants_ack(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;
	int64_t now = qp_now(qp);

	if (now - requester->last_unsignalled_at >= RTO_MIN)
		requester->ack_request_quota = ACK_REQUEST_QUOTA;
	requester->last_unsignalled_at = now;
	if (!requester->ack_request_quota)
		return false;
	requester->ack_request_quota--;
	return true;
}

/* ---- losses ---- */

static void go_back(struct requester *requester)
{
	requester->next_psn = requester->ambiguous_psn = requester->unacked_psn;
	requester->once_psn = requester->highest_psn;
	requester->next_request = 0;
	requester->outstanding_reads = 0;
	requester->packets_since_ack_request = 0;
	requester->rtt_timing = false;
}

/* To 70 %, as in CUBIC. Once for all packets that were outstanding at the loss. */
static void reduce_cwnd(struct requester *requester)
{
	uint32_t cwnd = requester->cwnd - requester->cwnd * 3 / 10;

	if (requester->in_recovery)
		return;
	requester->in_recovery = true;
	requester->recovery_point = requester->highest_psn;
	requester->cwnd = cwnd < CWND_MIN ? CWND_MIN : cwnd;
	requester->ssthresh = requester->cwnd;
	requester->cwnd_counter = 0;
}

/*
 * The oldest packet, or the response to it, is missing. Many replies may report one loss, and a retransmission takes
 * effect after about a round trip: within holdoff, further reports of the same PSN are ignored.
 */
static void retransmit(struct soft_qp *qp, enum soft_count cause, int64_t holdoff)
{
	struct requester *requester = &qp->requester;
	int64_t now = qp_now(qp);
	bool first = requester->retransmitted_psn != requester->unacked_psn || !requester->retransmitted_at;

	/* Otherwise two sides that disagree on the next PSN would exchange NAKs and retransmissions without pause. */
	if ((!requester->srtt || requester->retransmissions >= RESENDS_IMMEDIATE) && holdoff < RTO_MIN)
		holdoff = RTO_MIN;
	if (requester->rnr_waiting || requester->next_psn == requester->unacked_psn ||
	    (!first && now - requester->retransmitted_at < holdoff))
		return;
	if (first)
		requester->retransmissions = 0;
	else if (requester->retransmissions < RESENDS_IMMEDIATE)
		requester->retransmissions++;
	soft_count(qp->transport, cause);
	*(cause == SOFT_SEQUENCE_NAKS ? &qp->endpoint->base.losses.out : &qp->endpoint->base.losses.back) +=
		WITH_EXTRAS;
	requester->retransmitted_psn = requester->unacked_psn;
	requester->retransmitted_at = now;
	requester->backoff = 0;
	reduce_cwnd(requester);
	go_back(requester);
}

/* The peer sends one NAK for each loss: only a duplicate of it comes within half a round trip. */
void recovery_nak(struct soft_qp *qp)
{
	retransmit(qp, SOFT_SEQUENCE_NAKS, qp->requester.srtt / 2);
}

/* Replies that imply the same loss come for a round trip after the retransmission. */
void recovery_implied_nak(struct soft_qp *qp)
{
	int64_t srtt = qp->requester.srtt;

	retransmit(qp, SOFT_IMPLIED_NAKS, srtt - srtt / 8);
}

void recovery_rnr(struct soft_qp *qp, int64_t nanoseconds)
{
	struct requester *requester = &qp->requester;
	int64_t doubled = nanoseconds << requester->rnr_naks;

	soft_count(qp->transport, SOFT_RNR_NAKS);
	if (doubled > RNR_BACKOFF_MAX)
		doubled = RNR_BACKOFF_MAX;
	if (nanoseconds < doubled)
		nanoseconds = doubled;
	if (requester->rnr_naks < RNR_NAKS_MAX)
		requester->rnr_naks++;
	requester->consecutive_timeouts = 0;
	requester->unanswered_since = qp_now(qp);
	go_back(requester);
	requester->rnr_waiting = true;
	requester->deadline = qp_now(qp) + nanoseconds;
}

/*
 * A stock queue pair fails after retry_limit + 1 ACK timeouts in a row. Ours has shorter timeouts: it fails after more
 * than TIMEOUTS_PER_RETRY times as many, which also took at least as long.
 */
static bool are_retries_exhausted(struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;
	int64_t tries = qp->retry_limit + 1;

	return requester->consecutive_timeouts > TIMEOUTS_PER_RETRY * tries &&
	       qp_now(qp) - requester->unanswered_since >= tries * limited_ack_timeout(qp);
}

/* A new silence begins with a timeout. A short one is caused by random losses, or a busy peer. */
static void probe_host(struct soft_qp *qp)
{
	const struct requester *requester = &qp->requester;

	if (requester->consecutive_timeouts == 1)
		qp->endpoint->probe = SOFT_PROBE_NONE;
	else if (qp_now(qp) - requester->unanswered_since >= HOST_PROBE_AFTER)
		soft_probe_host(qp->endpoint);
}

enum recovery_step recovery_timed_out(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;

	recovery_arm(qp);
	if (!requester->deadline || may_be_queued(qp) || !soft_may_resend(qp->endpoint->path.socket))
		return RECOVERY_WAITS;
	soft_count(qp->transport, SOFT_TIMEOUTS);
	if (requester->consecutive_timeouts < TIMEOUTS_MAX)
		requester->consecutive_timeouts++;
	if (requester->backoff <= RTO_DOUBLINGS_MAX)
		requester->backoff++;
	if (SOFT_PROBES)
		probe_host(qp);
	if (are_retries_exhausted(qp))
		return RECOVERY_FAILS;
	if (requester->consecutive_timeouts == 2) {
		requester->in_recovery = false;
		reduce_cwnd(requester);
		requester->cwnd = 1;
	}
	recovery_arm(qp);
	return RECOVERY_RESENDS;
}

/* Slow start below ssthresh, congestion avoidance above. */
static void increase_cwnd(struct requester *requester, uint32_t packets)
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

/* A PSN compares only with those in the half of their range around it. */
static void keep_near(uint32_t *psn, uint32_t least)
{
	if (psn_before(*psn, least))
		*psn = least;
}

/* What the reply shows about the round trip. */
static void judge_delay(struct soft_qp *qp)
{
	struct requester *requester = &qp->requester;

	if (requester->rtt_timing && psn_before(requester->rtt_psn, requester->unacked_psn))
		rtt_sample(qp);
	/* A reply so soon after the resent packet answers it, not an earlier copy. */
	else if (!requester->rtt_timing && qp_now(qp) - requester->rtt_sent_at < 2 * requester->srtt)
		requester->backoff = 0;
	/* A reply to the packets before the probe: they were late, not lost. */
	else if (requester->consecutive_timeouts && requester->rtt_timing && !requester->in_recovery &&
		 qp_is_probe_oldest(requester))
		soft_count(qp->transport, SOFT_LATE);
}

/* Moves PSNs that must not stay behind unacked_psn. */
static void follow_unacked(struct requester *requester)
{
	/* A late acknowledgement covers packets that go_back() has scheduled for retransmission. */
	if (psn_before(requester->next_psn, requester->unacked_psn))
		go_back(requester);
	if (requester->in_recovery && !psn_before(requester->unacked_psn, requester->recovery_point))
		requester->in_recovery = false;
	keep_near(&requester->ambiguous_psn, requester->unacked_psn);
	keep_near(&requester->once_psn, psn_add(requester->unacked_psn, PSN_MASK - PSN_HALF / 2));
}

void recovery_progress(struct soft_qp *qp, uint32_t old_unacked_psn)
{
	struct requester *requester = &qp->requester;

	judge_delay(qp);
	/* A window with less than half in use does not grow. */
	if (2 * ((requester->next_psn - old_unacked_psn) & PSN_MASK) >= requester->cwnd)
		increase_cwnd(requester, (requester->unacked_psn - old_unacked_psn) & PSN_MASK);
	follow_unacked(requester);
	qp->transport->last_ack_at = requester->unanswered_since = qp_now(qp);
	requester->consecutive_timeouts = 0;
	requester->rnr_naks = 0;
	if (requester->rnr_waiting)
		return;
	if (requester->next_psn == requester->unacked_psn)
		requester->deadline = 0;
	else
		recovery_arm(qp);
}
