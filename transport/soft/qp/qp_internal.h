/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The internal interface of queue pairs.
 * Each file calls only those below it:
 *
 *   qp.c          creation, QPNs, posting, packet dispatch, batches of replies, keepalive
 *   datagram.c    the queue pair of a group, which posts to the rings of both halves and completes from them
 *   responder.c   receives the peer's SENDs, WRITEs and READs; sends acknowledgements and READ responses
 *   requester.c   sends our SENDs, WRITEs and READs; receives acknowledgements and READ responses
 *   recovery.c    when the requester sends again, and how much may be outstanding
 *   common.c      the end of a queue pair's work, and what all of them have in common
 *   region.c      memory regions
 *
 * Requester and responder share only the path. Each batch of received packets ends with soft_qp_batch_end(), before
 * soft_flush(). After it has stopped, a queue pair reports its error at most.
 */
#pragma once

#include "transport/soft/base/random.h"
#include "transport/soft/qp/qp.h"

enum qp_state {
	QP_INIT = 0, /* accepts receives */
	QP_RTR,	     /* receives packets */
	QP_RTS,	     /* sends */
	QP_NAK_SENT, /* sent a fatal NAK, and only repeats it */
	QP_DRAINING, /* only acknowledges repeated requests, or repeats a fatal NAK */
	QP_ERROR,
};

enum {
	PSN_AHEAD_MAX = 1 << 20, /* further beyond epsn: dropped, because no peer sends so far ahead */
	QPN_ROUNDS = 6,
};

/* A posted SEND, WRITE or READ, a probe, or a datagram. */
struct request {
	uint8_t *memory;
	uint64_t remote_address;
	uint32_t remote_key;
	uint32_t length;
	uint32_t tag;
	uint32_t immediate;
	uint32_t psn;	  /* the first */
	uint32_t packets; /* a READ's response packets, which take a PSN each */
	uint8_t kind;	  /* enum work_kind */
	bool unsignalled;
	bool has_immediate;
	bool probe; /* not the command's work */
};

/* A posted receive. */
struct receive {
	uint8_t *memory;
	uint32_t length;
	uint32_t tag;
};

/*
 *      unacked_psn <= next_psn <= highest_psn <= end_psn
 *
 * Times are of the loop's clock, in nanoseconds.
 */
struct requester {
	struct request *requests; /* send_depth + 1: one for the probe */
	struct soft_ring ring;	  /* the incomplete ones */
	uint32_t next_request;	  /* the request of next_psn, counted from the oldest */

	uint32_t unacked_psn; /* oldest without acknowledgement; of a READ: without response */
	uint32_t next_psn;    /* sent next */
	uint32_t highest_psn; /* lowest that was never sent */
	uint32_t end_psn;     /* after the last posted request */

	/* Congestion window, in packets from unacked_psn to next_psn. */
	uint32_t cwnd;
	uint32_t cwnd_max;
	uint32_t ssthresh;
	uint32_t cwnd_counter;		    /* packets acknowledged since cwnd last grew, above ssthresh */
	uint32_t recovery_point;	    /* highest_psn when the recovery began */
	uint32_t packets_since_ack_request; /* sent after the last packet with AckReq */
	uint8_t ack_request_quota;	    /* unsignalled requests that set AckReq after a pause */
	uint8_t outstanding_reads;	    /* READ requests between unacked_psn and next_psn */
	uint8_t reads_max;		    /* of them */
	uint32_t read_slice;		    /* response packets of a READ request; a long READ is split into slices */
	bool in_recovery; /* a loss reduced cwnd; ends when unacked_psn reaches recovery_point, or with a timeout */

	bool probing;		      /* some request is a probe */
	bool rnr_waiting;	      /* until deadline, after an RNR NAK */
	bool rtt_timing;	      /* rtt_psn is being timed */
	uint8_t rnr_naks;	      /* consecutive */
	uint8_t consecutive_timeouts; /* since the last progress or RNR NAK */
	/*
	 * Timeouts since the last RTT sample, detected loss, or reply so soon that it answers a resent packet. The RTO
	 * is doubled for each but the first. A packet resent by a timeout gives no RTT sample (Karn's algorithm), so
	 * only the doubled RTO adapts to a slower peer. Thousands of queue pairs with a short RTO would keep the peer
	 * slow.
	 */
	uint8_t backoff;
	uint32_t rtt_psn;
	uint32_t ambiguous_psn; /* replies before it may answer an earlier transmission; not before unacked_psn */
	uint32_t once_psn;	/* highest_psn at the last resend: later packets were sent once */
	int64_t rtt_sent_at;
	uint64_t rtt_packet_number;  /* soft_transport.packet_number of rtt_psn */
	uint64_t last_packet_number; /* and that of the last packet that requested a reply */
	int64_t last_unsignalled_at; /* send time of the last unsignalled request */
	int64_t srtt;		     /* RFC 6298; 0 before the first sample */
	int64_t rttvar;
	int64_t deadline;	    /* retransmission timeout, or end of rnr_waiting; 0: none */
	int64_t timer_at;	    /* expiry of the timer, which may be before deadline; 0: not running */
	int64_t unanswered_since;   /* the last progress or RNR NAK, or the first packet sent after idleness */
	uint32_t retransmitted_psn; /* unacked_psn of the last retransmission */
	int64_t retransmitted_at;   /* 0: no retransmission yet */
	uint8_t retransmissions;    /* further ones for retransmitted_psn */
};

enum resource_state {
	RESOURCE_FREE = 0,
	RESOURCE_NEW,	   /* some responses were never sent */
	RESOURCE_REPEATED, /* all were sent; some must be sent again */
	RESOURCE_SENT,
};

/*
 * A responder resource (IBTA 9.7.5): a peer's READ, kept to repeat its responses until a later READ reuses the slot.
 * Each response looks the key up again: the region may be destroyed at any time.
 */
struct resource {
	uint64_t address;
	uint32_t key;
	uint32_t length;
	uint32_t psn; /* the first */
	uint32_t msn;
	uint32_t next_psn;   /* of the next response */
	uint32_t bytes_left; /* from next_psn on */
	uint8_t state;	     /* enum resource_state */
	bool first_sent;     /* the response of opcode FIRST was sent */
};

struct responder {
	struct receive *receives;
	struct soft_ring ring;

	uint32_t epsn;
	uint32_t acked_psn; /* the PSN of the last ACK */
	uint32_t msn;
	uint32_t psns_received;	     /* before epsn, at most PSN_HALF: only these can be repeated */
	uint32_t trailing_read_psns; /* the last PSNs before epsn that belong to READs, at most PSN_HALF */
	bool loss_seen;		     /* a packet was missing or repeated */

	/* The incomplete message. */
	uint16_t message_form; /* FORM_SEND or FORM_WRITE; 0: none */
	uint32_t offset;       /* of a SEND: bytes received */
	struct {
		uint64_t address; /* of the next byte */
		uint32_t key;
		uint32_t bytes_left;
	} write;

	/* The scheduled reply. */
	bool ack_due;
	bool nak_due; /* with syndrome */
	bool gap;     /* a NAK or RNR NAK of epsn is due or sent */
	uint8_t syndrome;
	uint8_t gap_naks_left; /* further NAKs of the gap */
	uint32_t gap_last_psn; /* of the latest packet beyond the gap */
	const char *cause;     /* of a fatal NAK; NULL: the failed receive reports it */
	bool fatal;	       /* the NAK ends the connection */
	bool fatal_reported;   /* to our command */

	struct resource resources[SOFT_READS_AT_ONCE]; /* a ring of reads_max */
	uint8_t reads_max;			       /* outstanding READs of the peer */
	uint8_t oldest;				       /* the resource that the next READ reuses */
	uint8_t resources_due;			       /* with responses to send */
};

struct soft_qp {
	struct soft_transport *transport;
	struct soft_endpoint *endpoint;
	struct requester requester;
	enum qp_state state;
	uint32_t peer_qpn;
	uint8_t retry_limit;
	uint8_t rnr_retry_limit;    /* 7: none */
	bool packet_received;	    /* at least one valid packet */
	bool drop_sends;	    /* a group's on the loopback interface with no_loopback: there are no receivers */
	bool awaits_buffer;	    /* of the socket, before it sends further datagrams */
	struct soft_link scheduled; /* with a reply to send */
	int64_t ack_timeout;	    /* nanoseconds; 0: no timeout */
	int64_t last_packet_at;
	int64_t probe_interval; /* silence before the next probe */
	int64_t suspected_at;	/* the ICMP error's time; 0: none since the peer's last packet */
	uint32_t qkey;
	uint32_t sent_datagrams;   /* from the head of the requester's ring: passed to the socket, not completed */
	struct soft_unsent unsent; /* those that the socket did not send */
	struct soft_table_entry by_qpn;
	struct responder responder;
	struct loop_timer timer; /* of the requester, or of sent datagrams */
};

struct soft_qp_table {
	struct soft_transport *transport;
	struct soft_table by_qpn;
	uint64_t qpn_keys[QPN_ROUNDS]; /* secret */
	uint32_t qpn_counter;
	struct soft_list scheduled; /* with a reply to send */
	struct loop_timer keepalive_timer;
	bool keepalive_running;
	size_t keepalive_start; /* the bucket of by_qpn with which the next period begins */
	int64_t now;		/* 0: read the clock */
};

/* Counted from the oldest. */
static inline struct request *qp_request_at(const struct requester *requester, uint32_t index)
{
	return &requester->requests[soft_ring_at(&requester->ring, index)];
}

static inline bool qp_is_probe_oldest(const struct requester *requester)
{
	return requester->ring.count && qp_request_at(requester, 0)->probe;
}

static inline struct receive *qp_oldest_receive(const struct responder *responder)
{
	return &responder->receives[responder->ring.head];
}

/* ---- common.c ---- */

/* The clock, read once for each batch of packets. */
int64_t qp_now(struct soft_qp *qp);
/* A valid packet has arrived from the peer. */
void qp_valid_packet(struct soft_qp *qp);
/* The next soft_qp_batch_end() calls responder_reply(). */
void qp_schedule_reply(struct soft_qp *qp);
/* Stops the timer and drops all work. */
void qp_halt(struct soft_qp *qp, enum qp_state state);
/* The work fails: enters the error state; no other work completes. error: as for soft_complete(). */
void qp_fail_work(struct soft_qp *qp, enum work_kind kind, uint32_t tag, enum completion_status status, int error);
/* Enters the error state, for a cause other than posted work. */
void qp_fail_connection(struct soft_qp *qp, const char *cause, const char *code_name, int code);
/* Packets for a message of that many bytes; 1 for an empty one. */
uint32_t qp_packets(const struct soft_qp *qp, uint32_t length);
/* Sends to the peer's queue pair. */
void qp_send(struct soft_qp *qp, struct packet *packet);

/* ---- responder.c ---- */

void responder_connect(struct soft_qp *qp, const struct soft_agreement *agreement);
void responder_receive(struct soft_qp *qp, const struct packet *packet);
/* Sends the scheduled reply. False if READ responses are left for the next turn of the loop. */
bool responder_reply(struct soft_qp *qp);
/* Sends the last ACKs before the queue pair enters QP_DRAINING. */
void responder_drain(struct soft_qp *qp);

/* The oldest receive has that many bytes; the packet has the last of them. */
void responder_complete_receive(struct soft_qp *qp, const struct packet *packet, uint32_t length);

/* ---- recovery.c ---- */

void recovery_connect(struct soft_qp *qp);
/* Packets that may be outstanding. Some request must be posted. */
uint32_t recovery_window(const struct soft_qp *qp);
/* A READ request or a packet with AckReq is about to be sent. */
void recovery_sent(struct soft_qp *qp, uint32_t psn);
/* True if the last packet of an unsignalled request should set AckReq. */
bool recovery_wants_ack(struct soft_qp *qp);
/* Sets the deadline to the retransmission timeout, unless ack_timeout is 0. */
void recovery_arm(struct soft_qp *qp);
enum recovery_step {
	RECOVERY_WAITS,
	RECOVERY_RESENDS, /* or probes */
	RECOVERY_FAILS,	  /* the retries are exhausted */
};

/* The deadline has passed without a reply. Sets the next one. */
enum recovery_step recovery_timed_out(struct soft_qp *qp);
/* unacked_psn has advanced. */
void recovery_progress(struct soft_qp *qp, uint32_t old_unacked_psn);
/* The oldest outstanding packet is missing: the peer sent a sequence NAK, or a reply to a later packet. */
void recovery_nak(struct soft_qp *qp);
void recovery_implied_nak(struct soft_qp *qp);
/* The peer sent an RNR NAK for the oldest outstanding packet. */
void recovery_rnr(struct soft_qp *qp, int64_t nanoseconds);

/* ---- requester.c ---- */

void requester_connect(struct soft_qp *qp, const struct soft_agreement *agreement);
void requester_post(struct soft_qp *qp, const struct work *work);
/* Posts a zero-length WRITE without completion: its ACK or NAK tells whether what was sent before has arrived. */
void requester_probe(struct soft_qp *qp);
/* Sends what the window allows. */
void requester_transmit(struct soft_qp *qp);
/* An acknowledgement or a READ response. */
void requester_receive(struct soft_qp *qp, const struct packet *packet);

/* The oldest request is done: reports its completion, unless it is unsignalled. */
void requester_complete_oldest(struct soft_qp *qp);
/*
 * ICMP reported the peer's port closed: outstanding work serves as the probe. Without an ACK timeout it gets a
 * probe's, until the peer sends a valid packet.
 */
void requester_suspect(struct soft_qp *qp);

/* ---- datagram.c ---- */

/* Sends as many datagrams as one turn of the loop allows. They complete in the next turn. */
void datagram_transmit(struct soft_qp *qp);
void datagram_receive(struct soft_qp *qp, const struct address *from, const struct address *to,
		      const struct packet *packet);
