/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection manager of soft with both peers in this process, on the simulated network. Queue pairs, endpoints and
 * the delivery of events are replaced at link time (cm.wrap). */
#pragma once

#include <limits.h>

#include "test/unit/unit.h"

#include "test/network/network.h"
#include "test/network/stack.h"
#include "test/network/vectors.h"
#include "transport/soft/base/queue.h"
#include "transport/soft/cm/cm_internal.h"

enum {
	HOSTS = 3, /* two peers and an attacker */
	PORT = 7174,
	DATA_SIZE = 8,
	MTU = 1024,
};

enum {
	DROP_REJ = 1 << MAD_REJ,
	DROP_REP = 1 << MAD_REP,
	DROP_RTU = 1 << MAD_RTU,
	DROP_DREQ = 1 << MAD_DREQ,
	DROP_DREP = 1 << MAD_DREP,
	DROP_ALL = INT_MAX
};

struct host;
struct conn;

struct sent_mad {
	struct address from, to;
	uint8_t bytes[MAD_SIZE];
};

struct soft_qp {
	uint32_t qpn;
	enum {
		QP_RESET,
		QP_CONNECTED,
		QP_RTS,
		QP_ERROR
	} state;
	unsigned probes, suspects;
	bool unacked;		  /* for soft_qp_has_signalled_work() */
	uint32_t last_ack, acked; /* sent and received with a DREQ */
	struct soft_agreement agreement;
};

struct host {
	struct soft_transport *transport;
	struct address address;
	struct soft_socket *socket, *other;    /* other: bound to another address of this host */
	uint32_t mtu;			       /* of the host's paths */
	struct soft_endpoint listener, second; /* on PORT and PORT + 1 */
	bool listens;
	unsigned entered;
};

/* One endpoint, and the events that it got. */
struct conn {
	struct soft_endpoint endpoint;
	struct soft_qp qp;
	struct host *host;
	struct conn *next;
	unsigned events[SOFT_EVENT_FAILED + 1];
	enum soft_event_kind last;
	int code;
	const char *code_name;
	char cause[120];
	uint8_t data[256];
	size_t data_length;
	bool released;
	struct loop_timer requested; /* until cm_hosts.requested() is called */
};

struct cm_hosts {
	struct host hosts[HOSTS];
	unsigned dropped;	   /* kinds of MADs, as bits: DROP_REP */
	const struct host *silent; /* a host that gets none, or NULL */
	struct sent_mad sent[64];  /* the last MADs that hosts sent */
	size_t sent_count;
	struct conn *conns;
	void (*requested)(struct conn *conn); /* called for each request */
	uint32_t next_qpn;
};

extern struct cm_hosts cm_hosts;

/* Delivers the MAD at once. */
void testbed_deliver(const struct sent_mad *sent_mad);
/* Sends the packets in the send batches of all hosts. */
void testbed_flush(void);
/* Closes the CM of the host, as when a process exits. The host gets no more MADs. */
void host_exit(struct host *host);
struct conn *conn_create(struct host *host);
int testbed_open(void **state);
int testbed_close(void **state);

/* ---- actions of commands, and MADs: cm_ends.c ---- */

struct conn *connect_from(struct host *host, const struct host *to, uint16_t port);
struct conn *connect_one(void);
struct conn *connect_for_1_ms(void);
void do_accept(struct conn *conn);
void do_release(struct conn *conn);
void do_reject(struct conn *conn);
bool is_established(const struct conn *conn);
void do_disconnect(struct conn *conn);
/* The newest endpoint that got a request, or NULL. */
struct conn *passive_conn(void);
enum cm_state state_of(const struct conn *conn);
bool parse_sent(const struct sent_mad *sent_mad, struct mad *mad);
/* Returns the last MAD of a kind that a host sent, or NULL. mad points into cm_hosts.sent. */
const struct sent_mad *last_sent(enum mad_kind kind, const struct host *host, struct mad *mad);
unsigned count_sent(enum mad_kind kind);
void testbed_inject(const struct host *from, const struct host *to, const struct mad *mad);
void release_all(void);
/* Returns a connected endpoint; other is its peer. */
struct conn *connect_pair(struct conn **other);
/* Connects for 50 ms, while MADs of these kinds are dropped. The peer accepts. */
struct conn *connect_dropping(unsigned dropped);
void check_agreement(const struct conn *one, const struct conn *other);
/* Delivers an ICMP error that quotes a packet to the QPN at the peer, or a MAD with the identifier if the QPN is 1. */
void icmp_unreachable(struct host *host, const struct host *peer, int error, uint32_t qp, uint32_t id, size_t length);
void icmp_port_unreachable(struct host *host, const struct host *peer, uint32_t qp, uint32_t id, size_t length);
void icmp_for_mad(struct host *host, const struct conn *conn);
/* Returns a captured MAD with the identifiers of the endpoint. */
struct mad captured(const char *name, const struct conn *to);
/* Returns a hash of all state that a MAD could change. */
uint64_t state_hash(void);
/* Returns a MAD of that kind for a cm_id, with the fields that its peer would write. */
struct mad mad_forge(enum mad_kind kind, const struct conn *target, const struct host *peer);
