/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the connection manager, for its own files:
 *
 *   manager.c   opening, closing; MADs in and out
 *   link.c      a link: its identifiers, how it is found again, its states, its repeats, its time after death
 *   active.c    the end that connects
 *   passive.c   the end that is asked
 *   ending.c    how a link ends: disconnected, forgotten, refused, unreachable
 *
 * A link is one end of a connection as the connection manager sees it. It is made with the connection and may outlive
 * the endpoint, so that late and repeated messages still get the right answer.
 *
 *      active                          passive              what is said on the way
 *
 *      NEW                             NEW
 *       | soft_cm_connect()        |
 *       v                               |
 *      REQ_SENT -------- REQ ---------> | listener found    REQ again until an answer; MRA: "I live, wait"
 *       |                               v
 *       |                              REQ_RECEIVED         SOFT_EVENT_REQUESTED
 *       |                               | soft_cm_accept()
 *       |<-------------- REP ---------- v
 *       v                              REP_SENT             REP again until an answer
 *      ESTABLISHED ----- RTU ---------> | (or any packet of the connection: an RTU may be lost)
 *       |                               v
 *       |                              ESTABLISHED          SOFT_EVENT_ESTABLISHED at both ends
 *       |                               |
 *       |     either end, or both at once: soft_cm_disconnect(), or its endpoint goes
 *       v                               |
 *      DREQ_SENT ------- DREQ --------> v
 *       |                              ENDED                SOFT_EVENT_DISCONNECTED
 *       v <------------- DREP --------- '
 *      ENDED
 *
 * REJ in place of an answer: who says it enters REJECTED (and says it again to whoever did not hear it), who hears it
 * enters ENDED with SOFT_EVENT_FAILED. ENDED and REJECTED links are remembered for a while, then freed.
 *
 * Who is believed. Our identifiers cannot be guessed, and a message changes a link only if it names both identifiers of
 * it (as far as both were shown) and comes from the address of its peer. Messages that fit no link get the same answer
 * whether an identifier in them was right or not.
 */
#ifndef TRANSPORT_SOFT_CM_CM_INTERNAL_H
#define TRANSPORT_SOFT_CM_CM_INTERNAL_H

#include "core/clock.h"
#include "transport/soft/cm/cm.h"
#include "transport/soft/number.h"
#include "transport/soft/qp/qp.h"
#include "transport/soft/wire/bytes.h"
#include "transport/soft/wire/mad.h"

enum {
	CM_BACKLOG = 1024,	 /* of a listener that sets none: requests not answered yet, and ... */
	CM_REPEATED_MOST = 64,	 /* more half-open ones, and REPs are repeated only to those who ask again */
	CM_ORPHANS_MOST = 1024,	 /* DREQs repeated for endpoints that are gone */
	CM_TIMEWAIT_MOST = 4096, /* ended links remembered */
	CM_ORPHAN_REPEATS = 5,	 /* of the DREQ of an endpoint that is gone: 3.1 s */
	CM_REPEATS = 40,	 /* of any message, if nobody sets a limit: 73 s, as long as a stock peer tries */
	CM_SLOWEST_REPEAT = 5,	 /* the repeat from which on the interval grows no more */
	CM_OUTGOING = 64,	 /* MADs between two flushes */
	CM_LAST_COPIES = 2,	 /* more of a DREQ or DREP when the transport is closed */
	CM_RETRIES = 7,		 /* of a queue, and of one whose peer has no receive posted: 7 is for ever */
};

#define CM_FIRST_REPEAT	 (100 * CLOCK_NS_PER_MS)  /* doubled with each repeat ... */
#define CM_LAST_REPEAT	 (2000 * CLOCK_NS_PER_MS) /* ... up to this */
#define CM_TIMEWAIT_TIME (20 * CLOCK_NS_PER_S)	  /* of ended links, after the last message for one */
#define CM_DREP_RECENT	 (1 * CLOCK_NS_PER_S)	  /* peers that may not have heard the DREP */
#define CM_DRAIN_TIME	 (500 * CLOCK_NS_PER_MS)  /* of a peer that leaves, for its last acknowledgements */

enum cm_state {
	CM_IDLE = 0,
	CM_REQ_SENT,
	CM_REQ_RECEIVED,
	CM_REP_SENT,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_TIMEWAIT, /* nothing more is due; the last message is said again to who asks again */
	CM_REJECTED, /* the same, and the last message is our REJ */
};

/* How links are found. */
enum cm_index {
	CM_BY_ID,   /* our identifier */
	CM_BY_PEER, /* the peer's address, GUID and identifier */
	CM_BY_QPN,  /* the peer's address and queue pair, of a link that lives; all but the first: GUID too */
	CM_INDEXES,
};

struct cm_table {
	struct soft_cm_id **buckets;
	size_t size; /* a power of two */
	size_t count;
};

/* Oldest first. */
struct cm_list {
	struct soft_cm_id *first, **last;
	unsigned count;
};

struct soft_cm_id {
	struct soft_cm *cm;
	struct soft_endpoint *endpoint; /* NULL once it is gone */
	enum cm_state state;
	bool active;
	bool peer_known;  /* its identifier, GUID and queue pair */
	unsigned indexed; /* bit N: it is in the table of index N */
	uint32_t local_id;
	uint32_t remote_id;
	uint64_t peer_guid;
	uint64_t transaction;	   /* of REQ, and everything up to RTU */
	bool dreq_received;	   /* the peer wants to disconnect ... */
	uint64_t dreq_transaction; /* ... with this transaction */
	int64_t drep_sent_at;	   /* when it was let go; 0 before */
	uint32_t qp;		   /* number of our queue pair; 0 before accepting */
	unsigned repeats;
	struct soft_cm_id *next_in[CM_INDEXES];
	struct cm_list *list; /* of those that are in its state; NULL in most states */
	struct soft_cm_id *next_listed, **link_to_this;
	struct soft_agreement agreement; /* the path, and what was offered or agreed on */
	uint32_t hash[CM_INDEXES];
	struct loop_timer timer;
	uint8_t message[MAD_SIZE]; /* what was said last */
};

struct soft_cm {
	struct soft_transport *transport;
	struct cm_table tables[CM_INDEXES];
	uint64_t secret; /* of the hashes */
	struct soft_number_keys identifiers;
	uint32_t counter; /* of them */
	unsigned half_open;
	unsigned dying;
	struct cm_list unconfirmed; /* in REP_SENT */
	struct cm_list ended;
	uint32_t psn; /* of the next packet; nobody looks at it */
	unsigned outgoing_count;
	uint8_t outgoing[CM_OUTGOING][MAD_SIZE]; /* must stay as they are until soft_flush() */
};

/* ---- link.c ---- */

/* A new link with an identifier that this transport never used before. NULL when memory is short. */
struct soft_cm_id *soft_cm_id_create(struct soft_cm *cm, const struct soft_path *path);
/* Frees a link that never began, or any link when the manager is closed. */
void soft_cm_id_free(struct soft_cm_id *cm_id);

void soft_cm_id_attach(struct soft_cm_id *cm_id, struct soft_endpoint *endpoint);
/* The endpoint goes. */
void soft_cm_id_detach(struct soft_cm_id *cm_id);

/*
 * The one setter of a link's state: refuses what has no place in its life, traces, counts, and ends the repeats. An
 * ended link frees itself some time later; its endpoint has none from then on.
 */
bool soft_cm_id_enter(struct soft_cm_id *cm_id, enum cm_state state);

/* An ended link was asked for once more: it is remembered from now on. */
void soft_cm_id_keep(struct soft_cm_id *cm_id);

/* Sends the message of the link, and again from time to time while its state waits for an answer. */
void soft_cm_id_send(struct soft_cm_id *cm_id);
/* Sends it once more, out of turn, because the peer repeated what it answers. */
void soft_cm_id_resend(struct soft_cm_id *cm_id);
/* The peer lives but needs time: repeats become rare, and start counting anew. */
void soft_cm_id_mra_received(struct soft_cm_id *cm_id);

/* What the peer is called from now on. Returns false when memory is short. */
bool soft_cm_id_set_peer(struct soft_cm_id *cm_id, uint64_t guid, uint32_t remote_id, uint32_t qp);
/* A new identifier, for a request that is made anew after it was refused. */
void soft_cm_id_renew(struct soft_cm_id *cm_id);

/*
 * The link of our identifier, if it is its peer that speaks, to the address that it has to do with, and under the
 * peer's identifier if that is known.
 */
struct soft_cm_id *soft_cm_id_find(struct soft_cm *cm, uint32_t id, uint32_t remote_id,
				   const struct soft_socket *socket, const struct address *from);
/* By the peer's own identifier, with its GUID; to the same address. */
struct soft_cm_id *soft_cm_id_find_peer(struct soft_cm *cm, uint64_t guid, uint32_t remote_id,
					const struct soft_socket *socket, const struct address *from);
/* By its queue pair, which has one connection only, to whichever of our addresses. */
struct soft_cm_id *soft_cm_id_find_qpn(struct soft_cm *cm, uint64_t guid, uint32_t qp, const struct address *from);

/*
 * The link that sent a packet to that queue pair of the peer, or a message under our identifier (if it is not 0). Of
 * several with that number at one address it is the first.
 */
struct soft_cm_id *soft_cm_id_find_sender(const struct soft_cm *cm, uint32_t id, uint32_t qp,
					  const struct soft_socket *socket, const struct address *peer);

/* ---- manager.c ---- */

/* Sends 256 bytes from queue pair 1 to queue pair 1 over that path; they are copied. */
void soft_cm_send(struct soft_cm *cm, const struct soft_path *path, const uint8_t bytes[MAD_SIZE]);
/* The GID of an IP address. */
void soft_cm_gid(const struct address *address, uint8_t gid[MAD_GID_SIZE]);
/* True if it can be the number of a connection's queue pair. */
bool soft_cm_is_qpn(uint32_t number);

static inline unsigned soft_cm_least(unsigned one, unsigned other)
{
	return one < other ? one : other;
}

/* ---- active.c ---- */

void soft_cm_rep_received(struct soft_cm_id *cm_id, const struct mad *rep);
/* Asks again with the path MTU of that code, if it is less than the one refused. */
bool soft_cm_retry_req(struct soft_cm_id *cm_id, unsigned code);

/* ---- passive.c ---- */

void soft_cm_req_received(struct soft_cm *cm, struct soft_socket *socket, const struct address *from,
			  const struct mad *req);
/* The peer has confirmed: by RTU, a packet of the connection, or whatever it says only to an established one. */
void soft_cm_rtu_received(struct soft_cm_id *cm_id);

/* ---- ending.c ---- */

/* What came in. */
void soft_cm_rej_received(struct soft_cm_id *cm_id, const struct mad *rej);
void soft_cm_dreq_received(struct soft_cm_id *cm_id, const struct mad *dreq);
void soft_cm_drep_received(struct soft_cm_id *cm_id);
/* Repeated often enough without an answer. */
void soft_cm_unanswered(struct soft_cm_id *cm_id);

/* The connection fails at this end: its queue stops and its endpoint is told. */
void soft_cm_fail(struct soft_cm_id *cm_id, const char *cause, const char *code_name, int code);
/* Says REJ, with private data of the user (NULL: none). */
void soft_cm_send_rej(struct soft_cm_id *cm_id, uint16_t reason, const void *data, size_t length);
/* Says the REJ of a rejected link again, to a message that shows that the peer has not heard it. */
void soft_cm_resend_rej(struct soft_cm_id *cm_id, const struct mad *heard);
/* Refuses without a word, because others need its place: whoever says RTU after all, or REQ again, hears of it then. */
void soft_cm_evict(struct soft_cm_id *cm_id);
/* Says DREP to a peer that wants to leave. */
void soft_cm_send_drep(struct soft_cm_id *cm_id);
/* Says DREP, link or not. */
void soft_cm_reply_drep(struct soft_cm *cm, const struct soft_path *path, const struct mad *dreq);

#endif
