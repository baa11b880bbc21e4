/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager's internal interface.
 * Each file calls only those below it:
 *
 *   cm.c             open, close, MAD input
 *   cm_active.c      active side: sends REQ and RTU, receives REP
 *   cm_passive.c     passive side: receives REQ and RTU, sends REP
 *   cm_disconnect.c  received REJ, DREQ, DREP, ICMP errors, release by the endpoint
 *   cm_message.c     sending, sending again until there is an answer, REJ
 *   cm_id.c          cm_ids and listeners: look-up, identifiers, states, timewait
 *
 * A cm_id is one side of a connection. It may outlive its endpoint, to answer late and duplicate messages.
 *
 *      active                          passive
 *
 *      IDLE                            IDLE
 *       | soft_cm_connect()             |
 *       v                               |
 *      REQ_SENT -------- REQ ---------> | listener found    REQ is resent until an answer; MRA slows that down
 *       |                               v
 *       |                              REQ_RECEIVED         SOFT_EVENT_REQUESTED
 *       |                               | soft_cm_accept()
 *       |<-------------- REP ---------- v
 *       v                              REP_SENT             REP is resent until an answer
 *      ESTABLISHED ----- RTU ---------> | (or any packet of the connection: an RTU may be lost)
 *       |                               v
 *       |                              ESTABLISHED          SOFT_EVENT_ESTABLISHED on both sides
 *       |                               |
 *       |     either side or both: soft_cm_disconnect(), or the endpoint is destroyed
 *       v                               |
 *      DREQ_SENT ------- DREQ --------> v
 *       |                              TIMEWAIT             SOFT_EVENT_DISCONNECTED
 *       v <------------- DREP --------- '
 *      TIMEWAIT
 *
 * REJ in place of an answer: its sender enters REJECTED and resends the REJ to a peer that missed it; its receiver
 * enters TIMEWAIT with SOFT_EVENT_FAILED (after its DREQ SOFT_EVENT_DISCONNECTED; a REJ for the MTU is answered by
 * another REQ). Both states end after CM_TIMEWAIT_TIME, when the cm_id is freed.
 *
 * Local identifiers cannot be guessed. A message changes a cm_id only if it comes from the peer's address and names
 * both identifiers (as far as each has been sent; the REJ of a timeout may name its sender's GUID in place of ours). A
 * message that matches no cm_id gets the same answer whether or not one of its identifiers is right.
 */
#pragma once

#include "core/clock.h"
#include "transport/soft/base/random.h"
#include "transport/soft/cm/cm.h"
#include "transport/soft/qp/qp.h"
#include "transport/soft/wire/bytes.h"

enum {
	CM_BACKLOG = 1024,	      /* pending requests of a listener, by default */
	CM_RESEND_HALF_OPEN_MAX = 64, /* with more half-open cm_ids only a duplicate REQ resends a REP */
	CM_ORPHANS_MAX = 1024,	      /* cm_ids without endpoint that resend DREQ */
	CM_TIMEWAIT_MAX = 4096,	      /* cm_ids in timewait */
	CM_REQUESTS_MAX = 1024,	      /* REQs that wait for a turn of the loop */
	CM_REQUESTS_IN_TURN = 16,     /* of the loop: other packets are read in between */
	CM_ORPHAN_RESENDS = 5,	      /* of an orphan's DREQ: 3.1 s */
	CM_RESENDS = 40,	      /* of any other message: 73 s, as a stock peer */
	CM_BACKOFF_STEPS = 5,	      /* resends until the interval is the longest */
	CM_PROBE_RESENDS = 3,	      /* until a client probes the peer's host: 0.7 s */
	CM_OUTGOING = 64,	      /* MADs between two flushes */
	CM_CLOSE_COPIES = 2,	      /* extra copies of each DREQ and DREP when the transport closes */
	CM_QP_RETRIES = 7,	      /* retry count and RNR retry count; for RNR, 7 is infinite */
};

#define CM_FIRST_INTERVAL   (100 * CLOCK_NS_PER_MS)  /* doubled with each resend ... */
#define CM_LONGEST_INTERVAL (2000 * CLOCK_NS_PER_MS) /* ... up to this */
#define CM_TIMEWAIT_TIME    (20 * CLOCK_NS_PER_S)    /* after the last message for the cm_id */
#define CM_DREP_RECENT	    (1 * CLOCK_NS_PER_S)     /* a younger DREP may be lost: closing copies it */
#define CM_DRAIN_TIME	    (500 * CLOCK_NS_PER_MS)  /* after a kernel's DREQ, for its last acknowledgements */

enum cm_state {
	CM_IDLE = 0,
	CM_REQ_SENT,
	CM_REQ_RECEIVED,
	CM_REP_SENT,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_TIMEWAIT, /* IBTA 12.9.8: a duplicate message is answered again */
	CM_REJECTED, /* timewait after our REJ */
};

enum cm_index {
	CM_BY_ID,   /* local identifier */
	CM_BY_PEER, /* peer's address, GUID and identifier */
	CM_BY_QPN,  /* peer's address and QPN, until timewait; of a QPN's further cm_ids its GUID too */
	CM_INDEXES,
};

struct soft_cm_id {
	struct soft_cm *cm;
	struct soft_endpoint *endpoint; /* NULL: destroyed */
	enum cm_state state;
	bool active;
	bool awaited;	 /* the peer has requested more time with an MRA */
	bool peer_known; /* remote_id, peer_guid and agreement.peer_qpn are set */
	uint32_t local_id;
	uint32_t remote_id;
	uint64_t peer_guid;
	uint64_t transaction;	   /* from REQ to RTU */
	bool dreq_received;	   /* drains, then sends DREP */
	uint64_t dreq_transaction; /* of the peer's DREQ */
	int64_t drep_sent_at;	   /* clock; 0: not sent */
	uint32_t local_qpn;	   /* 0 before soft_cm_accept() */
	unsigned resends;
	unsigned repeats; /* of the REQ: the peer's, or before an MRA our own */
	struct soft_table_entry entries[CM_INDEXES];
	struct soft_link by_state;	 /* in its state's list, if that has one */
	struct soft_path path;		 /* the MADs' path; the endpoint's, which may be destroyed, has the MTU */
	struct soft_agreement agreement; /* the offered or negotiated values */
	struct loop_timer timer;
	uint8_t message[MAD_SIZE]; /* the last one sent */
};

/* A REQ that waits for its turn. */
struct soft_request {
	struct soft_socket *socket;
	struct address peer;
	uint8_t bytes[MAD_SIZE];
};

struct soft_cm {
	struct soft_transport *transport;
	struct soft_table tables[CM_INDEXES];
	uint64_t secret;    /* keys the hashes */
	unsigned half_open; /* cm_ids in CM_REQ_RECEIVED and CM_REP_SENT */
	unsigned orphans;   /* in CM_DREQ_SENT without endpoint */
	struct soft_list rep_sent;
	unsigned requests_in_turn;     /* REQs taken since next_turn was started */
	struct loop_timer next_turn;   /* of the loop */
	struct soft_ring waiting;      /* in requests */
	struct soft_list timewait;     /* and rejected */
	uint64_t reported_transaction; /* the last request changed by a NAT */
	uint32_t psn;		       /* the next MAD's; UD receivers ignore it */
	unsigned outgoing_count;
	uint8_t outgoing[CM_OUTGOING][MAD_SIZE]; /* unchanged until soft_flush() */
	struct soft_request requests[CM_REQUESTS_MAX];
};

/* ---- cm_id.c ---- */

/* With an unused identifier. NULL without memory. */
struct soft_cm_id *soft_cm_id_create(struct soft_cm *cm, const struct soft_path *path);
/* Before the first message, at the end of timewait, or when the connection manager closes. */
void soft_cm_id_free(struct soft_cm_id *cm_id);
void soft_cm_id_attach(struct soft_cm_id *cm_id, struct soft_endpoint *endpoint);
void soft_cm_id_detach(struct soft_cm_id *cm_id);

/*
 * The one setter of the state: checks and logs the transition, updates the counters and stops the timer. A timer frees
 * the cm_id after timewait and clears endpoint->cm_id.
 */
void soft_cm_id_enter(struct soft_cm_id *cm_id, enum cm_state state);

/* A message has arrived in timewait. */
void soft_cm_id_restart_timewait(struct soft_cm_id *cm_id);

void soft_cm_id_set_peer(struct soft_cm_id *cm_id, uint64_t guid, uint32_t remote_id, uint32_t qpn);
/* A new local identifier, for a REQ that is sent again after a REJ. */
void soft_cm_id_renew(struct soft_cm_id *cm_id);

/* By local identifier, if the addresses match, and the peer's identifier if that is known. */
struct soft_cm_id *soft_cm_id_find(struct soft_cm *cm, uint32_t id, uint32_t remote_id, const struct soft_path *path);
/* By the peer's GUID and identifier, if the addresses match. */
struct soft_cm_id *soft_cm_id_find_peer(struct soft_cm *cm, uint64_t guid, uint32_t remote_id,
					const struct soft_path *path);
/* By the peer's queue pair, which has only one connection, at any local address. */
struct soft_cm_id *soft_cm_id_find_qpn(struct soft_cm *cm, uint64_t guid, uint32_t qpn, const struct address *from);

/* By local identifier, or if that is 0 by the peer's QPN: the first of several at one address. */
struct soft_cm_id *soft_cm_id_find_sender(const struct soft_cm *cm, uint32_t id, uint32_t qpn,
					  const struct soft_socket *socket, const struct address *peer);

/* ---- cm_message.c ---- */

/* From QP 1 to QP 1. */
void soft_cm_send(struct soft_cm *cm, const struct soft_path *path, const struct mad *mad);
/* A reply to a message without a cm_id, to be completed. */
struct mad soft_cm_reply(const struct mad *received, enum mad_kind kind);
/* True if a connection may use that QPN. */
bool soft_cm_is_qpn(uint32_t number);

/* A message from this cm_id, to be completed. */
struct mad soft_cm_id_mad(const struct soft_cm_id *cm_id, enum mad_kind kind);
/* Sends a message, keeps it in cm_id->message, and resends it while the state waits for an answer. */
void soft_cm_id_send(struct soft_cm_id *cm_id, const struct mad *mad);
/* Resends the last message now, because the peer resent its own. */
void soft_cm_id_resend(struct soft_cm_id *cm_id);
/* The peer needs time: resends go on at the longest interval, counted from CM_BACKOFF_STEPS. */
void soft_cm_id_mra_received(struct soft_cm_id *cm_id);

void soft_cm_stop_qp(const struct soft_cm_id *cm_id);
/* SOFT_EVENT_DISCONNECTED, if the endpoint is not destroyed. */
void soft_cm_report_disconnected(const struct soft_cm_id *cm_id);
/* Stops the queue pair and reports SOFT_EVENT_FAILED, or SOFT_EVENT_DISCONNECTED after our DREQ. */
void soft_cm_fail(struct soft_cm_id *cm_id, const char *cause, int error);
/* data: private data of the user, or NULL. */
void soft_cm_send_rej(struct soft_cm_id *cm_id, uint16_t reason, const void *data, size_t length);
/* The received message shows that the peer missed our REJ. */
void soft_cm_resend_rej(struct soft_cm_id *cm_id, const struct mad *received);
/* Enters CM_REJECTED to make room, but sends no REJ before the peer sends RTU or REQ again. */
void soft_cm_evict(struct soft_cm_id *cm_id);

/* ---- cm_active.c ---- */

void soft_cm_rep_received(struct soft_cm_id *cm_id, const struct mad *rep);
/* Sends REQ again if the peer accepts a smaller MTU. */
bool soft_cm_retry_req(struct soft_cm_id *cm_id, const struct mad_rej *rej);

/* ---- cm_passive.c ---- */

/* path: the return path, whose route is not known yet. */
void soft_cm_req_received(struct soft_cm *cm, struct soft_path *path, const struct mad *req);
/* A MAD with a wrong ICRC is not answered; a request changed by a NAT is reported. */
void soft_cm_damaged_received(struct soft_cm *cm, const struct soft_path *path, const struct mad *mad);
/* Also for a packet of the connection or a DREQ, which imply a lost RTU. */
void soft_cm_rtu_received(struct soft_cm_id *cm_id);

/* ---- cm_disconnect.c ---- */

void soft_cm_rej_received(struct soft_cm_id *cm_id, const struct mad *rej);
void soft_cm_dreq_received(struct soft_cm_id *cm_id, const struct mad *dreq);
void soft_cm_drep_received(struct soft_cm_id *cm_id);

void soft_cm_send_drep(struct soft_cm_id *cm_id);
