/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of queue pairs, for queue.c, requester.c, recovery.c, responder.c and datagram.c, and for soft.c, which
 * opens and closes their table. A connection's queue pair has two halves that share only the wire:
 *
 *   requester    our SENDs, WRITEs and READs out; the peer's acknowledgements and READ responses in
 *   responder    the peer's SENDs, WRITEs and READs in; our acknowledgements and READ responses out
 *
 * A group's queue pair uses the rings of both, in datagram.c.
 *
 * How the rest calls this, besides soft.h: each batch of received packets ends with soft_qp_batch_end(), before
 * soft_flush(). A queue that is stopped calls nobody any more; its endpoint's memory may go after soft_qp_destroy().
 */
#ifndef TRANSPORT_SOFT_QP_QP_INTERNAL_H
#define TRANSPORT_SOFT_QP_QP_INTERNAL_H

#include "transport/soft/qp/qp.h"
#include "transport/soft/table.h"

enum qp_state {
	QP_INIT = 0, /* takes receives */
	QP_RTR,	     /* and packets */
	QP_RTS,	     /* and sends */
	QP_REFUSED,  /* told the peer that its request was wrong, and repeats only that */
	QP_DRAINING, /* takes nothing new, and acknowledges what the peer repeats */
	QP_ERROR,
};

enum {
	PSN_AHEAD_MOST = 1 << 20, /* a peer that runs further ahead of what we expect is none */
};

/* One SEND, WRITE or READ of ours, or a datagram. */
struct request {
	uint8_t *memory;
	uint64_t remote_address;
	uint32_t remote_key;
	uint32_t length;
	uint32_t tag;
	uint32_t immediate;
	uint32_t psn;	  /* its first */
	uint32_t packets; /* a READ has one for each packet of its response */
	uint8_t kind;	  /* enum work_kind */
	bool silent;
	bool has_immediate;
	bool probe; /* not the command's */
};

/* One receive of ours. */
struct receive {
	uint8_t *memory;
	uint32_t length;
	uint32_t tag;
};

struct requester {
	struct request *ring; /* one more than the command may use: the probe's */
	uint32_t capacity;
	uint32_t head; /* the oldest unfinished one */
	uint32_t count;
	uint32_t next; /* the one that next_psn lies in, counted from head */

	/* PSNs, each at or behind the one above */
	uint32_t unacked_psn; /* not acknowledged; of a READ: not received */
	uint32_t next_psn;    /* to be sent next */
	uint32_t highest_psn; /* never sent so far */
	uint32_t end_psn;     /* of all that was posted */

	/* How much may be under way: packets from unacked_psn to next_psn. */
	uint32_t cwnd;
	uint32_t cwnd_most;
	uint32_t ssthresh;  /* where doubling the window ends */
	uint32_t gained;    /* acknowledged packets towards the next step of the window */
	uint32_t recovered; /* losses before this PSN belong to the one that was already paid for */
	uint32_t unasked;   /* packets since the last that asked for an acknowledgement */
	uint8_t ack_quota;  /* packets that will ask although they need not, because there was a pause lately */
	uint8_t reads;	    /* READ requests between unacked_psn and next_psn */
	uint8_t reads_most;
	uint32_t read_slice; /* packets of a READ request: long READs are several requests */
	bool recovering;
	uint8_t losses;		    /* lately */
	uint8_t samples_since_loss; /* round trips measured since the last one */

	bool rnr_waiting; /* until deadline, because the peer was not ready */
	bool rtt_timing;
	uint8_t rnr_naks; /* times in a row */
	uint8_t timeouts; /* as well */
	/*
	 * Time-outs since a round trip was measured, or something was certainly lost. What is sent again measures none:
	 * only a time-out that stays doubled learns of a peer that has become slow, and thousands that do not learn
	 * keep it so.
	 */
	uint8_t backoff;
	uint32_t rtt_psn;
	int64_t rtt_sent_at;
	uint64_t rtt_order;    /* counted as in soft_transport.asked ... */
	uint64_t last_order;   /* and the last that asked */
	int64_t unasked_since; /* when the first of the unasked packets was sent */
	int64_t unreported_at; /* when the last work that is not reported was sent */
	int64_t srtt;	       /* smoothed, with its variation; 0 before the first measurement */
	int64_t rttvar;
	int64_t deadline;     /* of the next acknowledgement, or of the wait; 0 for none */
	int64_t alarm;	      /* when the timer will call back; 0 if it will not */
	int64_t silent_since; /* the last sign of life while something was under way */
	uint32_t resent;      /* the last PSN that was sent anew because it was missed, and when */
	int64_t resent_at;
	uint8_t resends; /* of it, more than once */
};

enum resource_state {
	RESOURCE_FREE = 0,
	RESOURCE_NEW,	   /* responses are due that were never sent */
	RESOURCE_REPEATED, /* all were sent, and some are due again */
	RESOURCE_ANSWERED,
};

/*
 * A responder resource (IBTA 9.7.5): a READ of the peer, which may come again until later ones take its place. The key
 * is looked up for each response: the region may go any time.
 */
struct resource {
	uint64_t address;
	uint32_t key;
	uint32_t length;
	uint32_t psn; /* its first */
	uint32_t msn;
	/* The responses that are due. */
	uint32_t next_psn;
	uint32_t left; /* bytes */
	uint8_t state; /* enum resource_state */
	bool begun;
};

struct responder {
	struct receive *ring;
	uint32_t capacity;
	uint32_t head;
	uint32_t count;

	uint32_t epsn;	    /* PSN */
	uint32_t acked_psn; /* the PSN of the last ACK */
	uint32_t msn;
	uint32_t taken;	    /* PSNs so far, at most half a turn: only those can be repeated */
	uint32_t read_last; /* the last of them, which belong to READs: so many, at most half a turn */
	bool lossy;	    /* some were missing, or came again */

	/* The message that is arriving. */
	uint16_t kind;	 /* FORM_SEND or FORM_WRITE bit; 0 between messages */
	uint32_t offset; /* of the next byte of a SEND in its receive */
	struct {
		uint64_t address; /* of the next byte of a WRITE */
		uint32_t key;
		uint32_t left;
	} write;

	/* What is to be said. */
	bool ack_due;
	bool nak_due; /* with this syndrome */
	bool gap;     /* told once that something is missing; the highest PSN behind the gap since */
	uint8_t syndrome;
	uint8_t reminders; /* of the gap that are left */
	uint32_t gap_end;
	const char *wrong; /* what the peer did, if it was refused for good; NULL if a receive tells it */
	bool final;	   /* refused for good */
	bool final_told;   /* to our own command as well */
	struct resource resources[SOFT_READS_AT_ONCE]; /* a ring */
	uint8_t reads_most;			       /* of the peer under way: so many of them are used */
	uint8_t oldest;
	uint8_t due; /* resources with responses to send */
};

struct soft_qp {
	struct soft_transport *transport;
	struct soft_endpoint *endpoint;
	struct requester requester;
	enum qp_state state;
	uint32_t peer_qpn;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	bool pending; /* in the table's list of those with something to say */
	bool heard;   /* some valid packet */
	bool unheard; /* what a group's would send only comes back to this host, which is not wanted */
	struct soft_qp *next_pending;
	struct soft_qp *next_group, **link_to_this; /* among the groups' queues */
	int64_t ack_timeout;			    /* nanoseconds; 0 for ever */
	int64_t heard_at;
	int64_t patience;  /* silence before the next probe */
	int64_t suspected; /* since the path said that the peer is gone; 0 if it did not, or the peer has spoken since
			    */
	uint32_t qkey;
	uint32_t unreported;	   /* datagrams handed to the socket, from the head of the requester's ring on */
	struct soft_unsent unsent; /* of these */
	struct soft_table_entry by_number;
	struct soft_path path;
	struct responder responder;
	struct loop_timer timer; /* of the requester, or of datagrams that were sent */
};

/* The time, read once for each batch of packets. */
int64_t qp_now(struct soft_qp *qp);
/* A valid packet came. */
void qp_heard(struct soft_qp *qp);
/* Lets soft_qp_batch_end() call responder_answer(). */
void qp_pend(struct soft_qp *qp);
/* The work failed, which ends the queue: nothing else is reported. */
void qp_fail(struct soft_qp *qp, enum work_kind kind, uint32_t tag, enum completion_status status, unsigned raw);
/* What ends the queue belongs to no work of ours. */
void qp_fail_alone(struct soft_qp *qp, const char *cause, const char *code_name, int code);
/* The packets of so many bytes; a message without any has one too. */
uint32_t qp_packets(const struct soft_qp *qp, uint32_t length);
/* A packet to the peer's queue. */
void qp_send(struct soft_qp *qp, struct packet *packet);

#endif
