/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the requester does about loss. It shows in three ways: the peer says so (a sequence NAK, once), a READ response
 * or an acknowledgement passes something missing, or nothing comes: the time-out follows the measured round trips and
 * doubles. Each time all is sent again from the oldest packet that is missing. Losses shrink the window and round trips
 * without them let it grow, as in TCP.
 */
#include "core/clock.h"
#include "transport/soft/delivery.h"
#include "transport/soft/queue.h"

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

void recovery_connect(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;
	size_t most = soft_socket_window(queue->path.socket, queue->path.mtu);

	requester->window_most = most > WINDOW_MOST ? WINDOW_MOST : most < WINDOW_LEAST ? WINDOW_LEAST : (uint32_t)most;
	requester->threshold = requester->window_most < WINDOW_DOUBLED ? requester->window_most : WINDOW_DOUBLED;
	requester->window = requester->window_most < WINDOW_FIRST ? requester->window_most : WINDOW_FIRST;
}

/* ---- time ---- */

static void alarmed(void *owner);

/* The alarm may come too early, and finds a later deadline then: cheaper than to move it with every packet. */
static void set_deadline(struct soft_queue *queue, int64_t deadline)
{
	struct requester *requester = &queue->requester;
	int64_t wait = deadline - queue_now(queue);

	requester->deadline = deadline;
	if (!deadline || (requester->alarm && requester->alarm <= deadline))
		return;
	requester->alarm = deadline;
	loop_timer_start(queue->transport->base.loop, &queue->timer, wait > 0 ? wait : 0, alarmed, queue);
}

/* Work may wait for hours or for ever where the peer asked for that; our own question whether it lives may not. */
static int64_t timeout_of(const struct soft_queue *queue)
{
	const struct requester *requester = &queue->requester;
	bool probing = requester->count && (requester->ring[requester->head].probe || queue->doubted);
	bool clamped = probing && (!queue->ack_timeout || queue->ack_timeout > TIMEOUT_PROBE);

	return clamped ? TIMEOUT_PROBE : queue->ack_timeout;
}

/* From the last answer, or from the first packet under way. Something must have been agreed on. */
static int64_t current_timeout(const struct soft_queue *queue)
{
	const struct requester *requester = &queue->requester;
	int64_t agreed = timeout_of(queue);
	int64_t longest = agreed / TRIES;
	int64_t timeout = TIMEOUT_FIRST;
	int64_t margin = 4 * requester->variation;

	if (requester->round_trip)
		timeout = requester->round_trip + (margin > VARIATION_LEAST ? margin : VARIATION_LEAST);
	if (timeout < TIMEOUT_CAREFUL >> requester->losses)
		timeout = TIMEOUT_CAREFUL >> requester->losses;
	if (timeout > agreed)
		timeout = agreed;
	if (timeout < TIMEOUT_LEAST)
		timeout = TIMEOUT_LEAST;
	if (longest < TIMEOUT_LONGEST)
		longest = TIMEOUT_LONGEST;
	/* The first again may as well have been lost by chance. */
	if (requester->hasty > 1)
		timeout <<= requester->hasty - 1;
	if (requester->hasty && timeout > longest)
		timeout = longest;
	return timeout;
}

void recovery_expect(struct soft_queue *queue)
{
	if (timeout_of(queue))
		set_deadline(queue, queue_now(queue) + current_timeout(queue));
	else
		queue->requester.deadline = 0;
}

/*
 * Many queues at once may keep a network or a peer busy for longer than the time-out of each. As long as what was sent
 * before is answered, by whatever queue, and nothing that was sent later, ours has had no turn yet: by the order of
 * sending, as in RACK (RFC 8985), but across queues.
 */
static bool is_behind(struct soft_queue *queue)
{
	const struct soft_transport *transport = queue->transport;

	return transport->answered < queue->requester.asked_last &&
	       queue_now(queue) - transport->answered_at < current_timeout(queue);
}

/* As TCP does it: RFC 6298. */
static void measure(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;
	int64_t taken = queue_now(queue) - requester->timed_at;
	int64_t error = taken - requester->round_trip;

	if (queue->transport->answered < requester->timed_as)
		queue->transport->answered = requester->timed_as;
	queue->transport->answered_at = queue_now(queue);
	requester->timing = false;
	requester->hasty = 0;
	if (requester->losses && ++requester->calm == CALM_ROUNDS) {
		requester->calm = 0;
		requester->losses--;
	}
	if (taken <= 0)
		taken = 1;
	if (!requester->round_trip) {
		requester->round_trip = taken;
		requester->variation = taken / 2;
		return;
	}
	requester->variation += ((error < 0 ? -error : error) - requester->variation) / 4;
	requester->round_trip += error / 8;
	if (requester->round_trip <= 0)
		requester->round_trip = 1;
}

/* Queues that are busy at once share the buffers: in all likelihood their packets meet in one, at the peer or here. */
uint32_t recovery_window(const struct soft_queue *queue)
{
	const struct requester *requester = &queue->requester;
	uint32_t share = requester->window_most / queue->transport->busy_queues;
	uint32_t window = requester->window;

	if (window > share)
		window = share < WINDOW_LEAST ? WINDOW_LEAST : share;
	if (requester->not_ready > 1)
		return 1;
	return requester->not_ready && window > WINDOW_NOT_READY ? WINDOW_NOT_READY : window;
}

/* The first packet of its time that was never sent before is timed. */
void recovery_time(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;

	requester->asked_last = ++queue->transport->asked;
	if (requester->timing || requester->cursor != requester->sent)
		return;
	requester->timing = true;
	requester->timed_psn = requester->cursor;
	requester->timed_at = queue_now(queue);
	requester->timed_as = requester->asked_last;
}

/*
 * Work that is not reported leaves it to later work to ask, if that comes soon. Where there are pauses it may not, and
 * would have to be sent again: harmless, but the peer's device counts it, and operators look at what it counts.
 */
bool recovery_is_eager(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;
	int64_t now = queue_now(queue);

	if (now - requester->unreported_at >= PAUSE)
		requester->eager = EAGER;
	requester->unreported_at = now;
	if (!requester->eager)
		return now - requester->unasked_since >= UNASKED_LONGEST;
	requester->eager--;
	return true;
}

/* ---- losses ---- */

static void go_back(struct requester *requester)
{
	requester->cursor = requester->oldest;
	requester->next = 0;
	requester->reads = 0;
	requester->unasked = 0;
	requester->timing = false;
}

/* Pays for a loss with a part of the window, once for all that was under way when it happened. */
static void shrink(struct requester *requester)
{
	uint32_t window = requester->window - requester->window * 3 / 10;

	if (requester->recovering)
		return;
	requester->recovering = true;
	requester->calm = 0;
	if (requester->losses < LOSSES_MOST)
		requester->losses++;
	requester->recovered = requester->sent;
	requester->window = window < WINDOW_LEAST ? WINDOW_LEAST : window;
	requester->threshold = requester->window;
	requester->gained = 0;
}

/*
 * The oldest packet, or what it asked for, is missing. The news of one loss may come many times, and it takes a while
 * before what is sent now can show: news of the same PSN do not count until then.
 */
static void send_again(struct soft_queue *queue, int64_t while_old)
{
	struct requester *requester = &queue->requester;
	int64_t now = queue_now(queue);
	bool anew = requester->resent != requester->oldest || !requester->resent_at;

	/* Ends that disagree on what comes next would keep each other busy; the time-out ends that. */
	if (requester->resends >= RESENDS_SOON && while_old < TIMEOUT_LEAST)
		while_old = TIMEOUT_LEAST;
	if (requester->waits || requester->cursor == requester->oldest ||
	    (!anew && now - requester->resent_at < while_old))
		return;
	if (anew)
		requester->resends = 0;
	else if (requester->resends < RESENDS_SOON)
		requester->resends++;
	requester->resent = requester->oldest;
	requester->resent_at = now;
	requester->hasty = 0;
	shrink(requester);
	go_back(requester);
}

/* The peer said it, once for each time it was lost: only copies of that are old news. */
void recovery_told(struct soft_queue *queue)
{
	int64_t round_trip = queue->requester.round_trip;

	send_again(queue, round_trip ? round_trip / 2 : TIMEOUT_LEAST);
}

/* An answer came past it. Others that do may have been on their way when it was sent again. */
void recovery_passed(struct soft_queue *queue)
{
	int64_t round_trip = queue->requester.round_trip;

	send_again(queue, round_trip ? round_trip - round_trip / 8 : TIMEOUT_LEAST);
}

void recovery_wait(struct soft_queue *queue, int64_t nanoseconds)
{
	struct requester *requester = &queue->requester;
	int64_t doubled = nanoseconds << requester->not_ready;

	if (doubled > NOT_READY_WAIT)
		doubled = NOT_READY_WAIT;
	if (nanoseconds < doubled)
		nanoseconds = doubled;
	if (requester->not_ready < NOT_READY_MOST)
		requester->not_ready++;
	requester->timeouts = 0;
	requester->quiet_since = queue_now(queue);
	go_back(requester);
	requester->waits = true;
	set_deadline(queue, queue_now(queue) + nanoseconds);
}

void recovery_doubt(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;

	if (requester->deadline)
		return;
	requester->timeouts = 0;
	requester->quiet_since = queue_now(queue);
	recovery_expect(queue);
}

void recovery_trust(struct soft_queue *queue)
{
	if (!queue->requester.waits && !timeout_of(queue))
		queue->requester.deadline = 0;
}

static bool is_given_up(struct soft_queue *queue)
{
	const struct requester *requester = &queue->requester;
	int64_t rounds = queue->retry_count + 1;

	return requester->timeouts > TRIES * rounds &&
	       queue_now(queue) - requester->quiet_since >= rounds * timeout_of(queue);
}

static void time_out(struct soft_queue *queue)
{
	struct requester *requester = &queue->requester;

	if (timeout_of(queue) && is_behind(queue)) {
		recovery_expect(queue);
		return;
	}
	/* Nothing that is under way has asked for an answer. Sent again it does; that is no loss yet. */
	if (requester->unasked >= ((requester->cursor - requester->oldest) & PSN_MASK)) {
		go_back(requester);
		requester_transmit(queue);
		recovery_expect(queue);
		return;
	}
	if (requester->timeouts < TIMEOUTS_MOST)
		requester->timeouts++;
	if (requester->hasty <= DOUBLINGS_MOST)
		requester->hasty++;
	if (is_given_up(queue)) {
		requester_give_up(queue);
		return;
	}
	requester->recovering = false;
	shrink(requester);
	if (requester->timeouts > TIMEOUTS_RANDOM)
		requester->window = 1;
	requester->resent = requester->oldest;
	requester->resent_at = queue_now(queue);
	go_back(requester);
	requester_transmit(queue);
	recovery_expect(queue);
}

static void alarmed(void *owner)
{
	struct soft_queue *queue = owner;
	struct requester *requester = &queue->requester;

	soft_enter(queue->transport);
	requester->alarm = 0;
	if (!requester->deadline) {
		/* All is answered. */
	} else if (queue_now(queue) < requester->deadline) {
		set_deadline(queue, requester->deadline);
	} else if (requester->waits) {
		requester->waits = false;
		requester->deadline = 0;
		requester_transmit(queue);
	} else {
		time_out(queue);
	}
	soft_leave(queue->transport);
}

static void grow(struct requester *requester, uint32_t packets)
{
	if (requester->window < requester->threshold) {
		requester->window += packets;
	} else {
		requester->gained += packets;
		if (requester->gained >= requester->window) {
			requester->gained = 0;
			requester->window++;
		}
	}
	if (requester->window > requester->window_most)
		requester->window = requester->window_most;
}

/* The oldest PSN has moved on from where it was. */
void recovery_progress(struct soft_queue *queue, uint32_t before)
{
	struct requester *requester = &queue->requester;
	uint32_t packets = (requester->oldest - before) & PSN_MASK;

	if (requester->timing && psn_before(requester->timed_psn, requester->oldest))
		measure(queue);
	/* A window that is not used says nothing. */
	if (2 * ((requester->cursor - before) & PSN_MASK) >= requester->window)
		grow(requester, packets);
	/* Late answers may be for packets that were to be sent again. */
	if (psn_before(requester->cursor, requester->oldest))
		go_back(requester);
	if (requester->recovering && !psn_before(requester->oldest, requester->recovered))
		requester->recovering = false;
	requester->timeouts = 0;
	requester->not_ready = 0;
	requester->quiet_since = queue_now(queue);
	if (requester->waits)
		return;
	if (requester->cursor == requester->oldest)
		requester->deadline = 0;
	else
		recovery_expect(queue);
}
