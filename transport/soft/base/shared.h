/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state that the layers of this backend share, and the calls that go up.
 * Each file calls only those below it:
 *
 *   queue.c      events and completions for the command, turns of the loop
 *   container.c  hash tables, lists
 *   random.c     random numbers, a hash
 */
#pragma once

#include "core/holder.h"
#include "core/route.h"
#include "transport/backend.h"
#include "transport/soft/base/container.h"
#include "transport/soft/base/random.h"
#include "transport/soft/wire/icrc.h"

enum {
	SOFT_QPS_MAX = 1 << 16,
	SOFT_LONGEST_MESSAGE = 8 << 20, /* bytes, as in soft-RoCE: fewer packets than half the PSNs */
	SOFT_QP_DEPTH_MAX = 16384,
	SOFT_READS_AT_ONCE = 16, /* outstanding RDMA READs in one direction of a connection */
	/* The type of service without ECN's two bits: we do not react to congestion marks. */
	SOFT_DSCP = 0xfc,
	SOFT_NETWORK_CONTROL = 0xc0, /* from here on: CS6 and CS7, for routing protocols (RFC 4594) */
};

struct packet;
struct soft_transport;
struct soft_endpoint;
struct soft_socket;
struct soft_path;
struct soft_icmp;

/*
 * A layer's reports to those above it. All other calls go down. There is one table, soft.c's: the compiler makes these
 * calls direct, and lower files name no upper ones.
 */
extern const struct soft_handlers {
	/*
	 * soft_callback_end(): delivers queued entries, acknowledges received packets and sends. Returns whether some
	 * replies are left for the next turn of the loop.
	 */
	bool (*deliver)(struct soft_transport *transport);
	/* soft_reap_later()'s timer. */
	void (*reap)(void *transport);
	/* net: a packet from that address. damaged: its ICRC is wrong. */
	void (*packet)(struct soft_socket *socket, const struct address *from, const struct packet *packet,
		       bool damaged);
	/* net: an ICMP error, which quotes the first bytes of a packet. */
	void (*icmp)(struct soft_transport *transport, const struct soft_socket *socket, const struct soft_icmp *icmp,
		     const uint8_t *quoted, size_t length);
	/* net: whether an endpoint or a cm_id has that socket. */
	bool (*socket_in_use)(const struct soft_socket *socket);
	/* qp: the first valid packet of a connection. */
	void (*first_packet)(struct soft_endpoint *endpoint);
	/* cm: returns a new connection in ENDPOINT_REQUESTED; NULL without memory. The caller sets its cm_id. */
	struct soft_endpoint *(*requested)(struct soft_endpoint *listener, const struct soft_path *path,
					   const struct address *peer);
} soft_handlers;

/* Losses and other causes of late packets. transport_counters() reports them; soft.c has their names. */
enum soft_count {
	SOFT_OUT_OF_SEQUENCE, /* requests beyond the expected PSN */
	SOFT_DUPLICATES,      /* requests that were executed before */
	SOFT_DAMAGED,	      /* packets of a connection's peer with a wrong ICRC */
	SOFT_STRAY,	      /* the same from anybody else: they say nothing about a path */
	SOFT_SEQUENCE_NAKS,   /* received */
	SOFT_IMPLIED_NAKS,    /* a response of a READ is missing */
	SOFT_TIMEOUTS,	      /* the reply may be lost or late */
	SOFT_LATE,	      /* it was late */
	SOFT_RESENT,	      /* packets of requests */
	SOFT_RESUMED_READS,   /* READs repeated from a later response on */
	SOFT_REPEATED_REQS,   /* connection requests, after a long wait */
	SOFT_RESPONSES_TWICE, /* READ responses to a request sent once: the network duplicates packets */
	SOFT_RNR_NAKS,	      /* received */
	SOFT_RNR_NAKS_SENT,
	SOFT_SEQUENCE_NAKS_SENT,
	SOFT_SEND_DROPS,  /* packets that this host's own queue of the interface has dropped */
	SOFT_LINK_LOSSES, /* of the interface of the first route */
	SOFT_SENT,	  /* packets of any kind */
	SOFT_RECEIVED,	  /* the same, of any sender */
	SOFT_COUNTS,
};

/* Datagrams that the kernel did not accept: the queue pair's last ones. They are not retransmitted. */
struct soft_unsent {
	uint32_t count;
	int error; /* errno of the first; 0: no buffer space for now */
};

/* The path of a queue pair's or the connection manager's packets. */
struct soft_path {
	struct soft_socket *socket; /* of the local address; owned by the transport until it is closed */
	struct soft_socket *sender; /* soft_path_leave_from()'s; NULL: the socket also sends */
	struct address local;
	struct address peer;
	unsigned interface;	    /* the route's, an index */
	uint32_t mtu;		    /* payload bytes of a packet: 256, 512, 1024, 2048 or 4096 */
	uint8_t type_of_service;    /* only bits of SOFT_DSCP */
	struct soft_unsent *unsent; /* counts packets that the kernel does not accept; NULL: they are lost */
};

/* An ICMP error for a packet to the peer. Firewalls and routers send them too, and anybody can forge one. */
struct soft_icmp {
	struct address peer, from;
	int error; /* errno; 0: no ICMP error */
	uint8_t type, code;
};

/* A client without an answer elicits an ICMP error from the peer's host, which shows that the host is up. */
enum soft_probe {
	SOFT_PROBE_NONE,
	SOFT_PROBE_SENT,
	SOFT_PROBE_ANSWERED,
};
#define SOFT_PROBES WITH_EXTRAS

struct soft_endpoint {
	struct endpoint base;
	struct soft_qp *qp;
	struct soft_cm_id *cm_id;
	struct loop_timer deferred;	     /* an event in the next turn of the loop */
	struct soft_endpoint *listener;	     /* of a request; NULL once destroyed */
	unsigned pending_requests;	     /* of a listener: requests without accept or reject */
	bool no_memory;			     /* it fails in the next soft_callback_end() */
	bool connects;			     /* this is the client */
	enum soft_probe probe;		     /* the present silence's */
	struct soft_icmp icmp;		     /* the last one since a packet of the peer */
	struct soft_socket *group_socket;    /* a full member's, bound to the group */
	struct soft_endpoint *next, **pprev; /* the transport's listeners or endpoints */
	struct soft_endpoint *next_destroyed;
	struct soft_path path; /* known from EVENT_ADDRESS_RESOLVED on */
	struct group_address group;
};

/* The last route that was looked up. */
struct soft_route {
	struct address peer, local; /* as requested */
	struct route route;
	int64_t at; /* clock; 0: none */
};

struct soft_transport {
	struct transport base;
	uint64_t guid;		/* random: the CA GUID of this process */
	struct channel channel; /* the only one: it has no descriptor, timers of the loop deliver its events */
	struct soft_socket *sockets;
	struct soft_socket *senders; /* with their own ports, each in use */
	unsigned probes;	     /* soft_probe_host()'s unanswered ones: further answers are forged */
	int routes_fd;		     /* rtnetlink, for look-ups of routes */
	unsigned watched;	     /* the index of the interface of the first route; 0: none yet */
	uint32_t losses_before;	     /* of its link */
	unsigned vrf;		     /* of route_vrf() */
	int addresses_fd;	     /* rtnetlink, for changes of local addresses; -1: not watched */
	struct loop_io addresses_changed;
	struct soft_endpoint *listeners;	   /* few: searched for each request */
	struct soft_endpoint *endpoints;	   /* all others */
	struct soft_endpoint *destroyed_endpoints; /* freed by the reaper */
	struct soft_region *destroyed_regions;
	bool reap_scheduled;
	bool no_memory;		   /* of some endpoint */
	struct soft_qp_table *qps; /* by QPN */
	uint32_t busy_qps;	   /* with outstanding work; they share a socket's window */
	uint64_t packet_number;	   /* counts READs and packets with AckReq, of all queue pairs */
	uint64_t largest_acked;	   /* the highest acknowledged one of those that were timed */
	int64_t last_ack_at;	   /* clock, the last acknowledgement's */
	struct soft_table regions; /* by key */
	uint8_t empty;		   /* the address of every empty range */
	struct soft_cm *cm;
	struct soft_queue *queue;
	struct soft_packet_io *packet_io;
	struct domain domain; /* the one "device" */
	struct loop_timer reaper;
	struct loop_poller poller; /* of all sockets */
	struct soft_route route;
	struct holder holder; /* the process that holds the port of an unbindable address */
	struct soft_random random;
	struct network_counter counts[SOFT_COUNTS];
	struct icrc_table icrc;
};

static inline void soft_count(struct soft_transport *transport, enum soft_count count)
{
	if (WITH_REPORT)
		transport->counts[count].increase++;
}

/* Its probe is always SOFT_PROBE_NONE if probes are not built in. */
static inline bool soft_has_probed(const struct soft_endpoint *endpoint, enum soft_probe probe)
{
	return SOFT_PROBES && endpoint->probe == probe;
}

static inline struct soft_transport *soft_of(struct transport *transport)
{
	return (struct soft_transport *)transport;
}

static inline struct soft_endpoint *soft_endpoint_of(struct endpoint *endpoint)
{
	return (struct soft_endpoint *)endpoint;
}
