/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 in user space over UDP port 4791: the backend as its own files and the registry see it.
 *
 *   endpoint.c   the endpoints of transport.h: resolve, listen, options, what the manager tells
 *   manager.c    the connection manager: REQ, REP, RTU, REJ, MRA, DREQ, DREP on queue pair 1
 *   queue.c      queue pairs: requester.c and responder.c for connections, datagram.c for groups
 *   region.c     memory with keys
 *   socket.c     one UDP socket per local address; receiving and sending in batches
 *   delivery.c   what goes up: events and completions, in two queues as a kernel has them
 *   wire.c, icrc.c, mad.c   formats
 *
 * A packet goes  socket -> icrc -> wire -> queue (by destination number) or manager (number 1).
 * Everything runs in call-backs of the loop; each ends with soft_flush(), which sends what was queued.
 */
#ifndef TRANSPORT_SOFT_SOFT_H
#define TRANSPORT_SOFT_SOFT_H

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "transport/backend.h"
#include "transport/soft/icrc.h"
#include "transport/soft/wire.h"

extern const struct backend soft_backend;

enum {
	SOFT_QUEUES_MOST = 1 << 16,
	SOFT_LONGEST_MESSAGE = 8 << 20, /* as soft-RoCE; any message has fewer packets than half the PSNs */
	SOFT_DEEPEST_QUEUE = 16384,
	SOFT_READS_AT_ONCE = 16, /* RDMA READs under way in one direction of a connection */
	/* Of a type of service. ECN's two bits would promise that a mark of congestion is answered, which is not so. */
	SOFT_DSCP = 0xfc,
};

struct soft_queue;
struct soft_socket;
struct soft_link; /* the connection manager's side of an endpoint: manager.c */

struct soft_transport {
	struct transport base;
	uint64_t guid; /* random: a peer tells processes apart by it */
	struct soft_channel *channels;
	struct soft_socket *sockets;
	int addresses_fd; /* tells of new local addresses, while ... */
	bool addresses_watched;
	struct loop_io addresses_changed;
	struct soft_endpoint *listeners; /* few, and looked through for each request */
	struct soft_endpoint *endpoints; /* all others */
	struct soft_endpoint *destroyed; /* wait for the reaper, as do regions */
	struct soft_region *unwanted;
	bool reaping;
	struct soft_queue_table *queues;   /* by number: queue.c */
	uint32_t busy_queues;		   /* with work under way, which share the window of a socket */
	uint64_t asked;			   /* packets of all queues that asked for an answer, so far */
	uint64_t answered;		   /* the latest of them, so counted, that was answered */
	int64_t answered_at;		   /* when the last answer came */
	struct soft_region_table *regions; /* by key: region.c */
	struct soft_manager *manager;	   /* its links, by identifier: manager.c */
	struct soft_delivery *delivery;	   /* delivery.c */
	struct soft_wire *wire;		   /* packets on their way in and out: socket.c */
	struct domain domain;		   /* the one "device" */
	struct loop_timer reaper;
	struct loop_poller poller; /* of all sockets */
	struct icrc_table icrc;
};

/* Nothing repeats a datagram: those that this host did not take, the last of what its queue transmitted. */
struct soft_unsent {
	uint32_t count;
	int error; /* errno of the first; 0: there was no room, and may be soon */
};

/* Where a queue pair's packets, or the manager's, go. */
struct soft_path {
	struct soft_socket *socket; /* of the local address; lives until the transport is closed */
	struct address local;
	struct address peer;
	uint32_t mtu;		    /* payload bytes of a packet: 256, 512, 1024, 2048 or 4096 */
	uint8_t type_of_service;    /* within SOFT_DSCP */
	struct soft_unsent *unsent; /* NULL: what is not taken is lost like what gets lost on its way */
};

struct soft_endpoint {
	struct endpoint base;
	struct soft_queue *queue;
	struct soft_link *link;
	struct loop_timer later;		    /* an event of ours that is due in the next turn */
	struct soft_endpoint *listener;		    /* that the request came to, while both live */
	unsigned asked;				    /* of a listener: requests that no command has answered yet */
	bool starved;				    /* some news of it found no memory: it fails */
	int no_way;				    /* errno: what ICMP has said since the peer was last heard; 0 */
	struct soft_socket *group_socket;	    /* bound to the group, of a full member */
	struct soft_endpoint *next, **link_to_this; /* among the listeners, or the others */
	struct soft_endpoint *next_destroyed;
	struct soft_path path; /* known from EVENT_ADDRESS_RESOLVED on */
	struct group_address group;
};

static inline struct soft_transport *soft_of(struct transport *transport)
{
	return (struct soft_transport *)transport;
}

static inline struct soft_endpoint *soft_endpoint_of(struct endpoint *endpoint)
{
	return (struct soft_endpoint *)endpoint;
}

/* 64 bits that nobody can guess: soft.c. */
uint64_t soft_random(void);

/* ---- socket.c ---- */

/*
 * The path to a peer: finds or opens the socket of the local address from which it is reached (source, or as the
 * routing table says if that is NULL or any; 127.0.0.x: one that is free). On failure the cause was told.
 */
enum outcome soft_path_find(struct soft_transport *transport, const char *name, const struct address *source,
			    const struct address *peer, struct soft_path *path);
/* The way back to where a packet came from: local is the socket's address, and no port is set. */
void soft_path_back(struct soft_socket *socket, const struct address *from, struct soft_path *path);
/* The interface that has a local address; false if none is found. */
bool soft_interface_name(const struct address *local, char name[IF_NAMESIZE]);
/* Whether that interface is the loopback, where IP_MULTICAST_LOOP has no effect: all that is sent comes back. */
bool soft_is_loopback(const struct address *local);
/*
 * Opens the socket of a local address, or those of all for the any address (of its family; IPv6 any: both), and of
 * those that come later.
 */
enum outcome soft_socket_listen(struct soft_transport *transport, const char *name, const struct address *address);

/* Queues a packet for sending; its payload must stay until soft_flush(). Sending never waits: what does not fit is
 * lost. */
void soft_transmit(struct soft_transport *transport, const struct soft_path *path, const struct packet *packet);
void soft_flush(struct soft_transport *transport);

/*
 * Packets with that many bytes of payload that may be under way to us without overflowing the socket's buffer; or from
 * us, if the peer has one like ours. At least 1.
 */
size_t soft_socket_window(const struct soft_socket *socket, size_t payload);
/* Packets that the socket has dropped so far, nearly always because its buffer was full. */
uint32_t soft_socket_dropped(const struct soft_socket *socket);
/* The errno with which this host refuses to send from there; 0 if it took the last packet. */
int soft_socket_refusal(const struct soft_socket *socket);
/* Somebody on a path said that packets from there are too long for it. */
bool soft_socket_is_narrow(const struct soft_socket *socket);

/* endpoint.c: what an endpoint's options say of each packet. */
void soft_apply_options(const struct endpoint *endpoint, struct soft_path *path);

/* ---- queue.c: queue pairs ---- */

/* What the two managers agreed on. */
struct soft_agreement {
	struct soft_path path;
	uint32_t peer_queue;
	uint32_t first_psn_sent; /* of our requests: the peer's starting PSN, see below */
	uint32_t
		first_psn_expected; /* of the peer's: our starting PSN. A REQ or REP says where its *receiver* begins */
	unsigned retry_count;	    /* 0-7 */
	unsigned rnr_retry_count;   /* 0-7; 7 for ever */
	unsigned ack_timeout;	    /* 0-31: 4.096 us x 2^n; 0 never retransmits */
	unsigned reads_out;	    /* of ours under way at once */
	unsigned reads_in;	    /* of the peer's */
};

/*
 * Makes the queue pair of an endpoint (a connection's, or a group's datagram queue), as deep as its options say, with a
 * random number that this process has not used before. It takes receives at once.
 */
enum outcome soft_queue_create(struct soft_endpoint *endpoint);
void soft_queue_destroy(struct soft_queue *queue);
uint32_t soft_queue_number(const struct soft_queue *queue);

/* A connection's queue may receive from here on; and send from soft_queue_start() on. */
void soft_queue_connect(struct soft_queue *queue, const struct soft_agreement *agreement);
void soft_queue_start(struct soft_queue *queue);
/*
 * Into the error state: nothing new is sent or taken any more, posted work is dropped without a word. What the peer
 * repeats, because the acknowledgement was lost, is acknowledged again until the queue is destroyed.
 */
void soft_queue_stop(struct soft_queue *queue);
/* Whether some work that the command will hear of waits for the peer's acknowledgement. */
bool soft_queue_is_waiting(const struct soft_queue *queue);

/* Where a group's queue sends to. */
void soft_queue_aim(struct soft_queue *queue, const struct soft_path *path, uint32_t queue_key);

/* The contract of endpoint_post(). Nothing is reported before the next turn of the loop. */
enum outcome soft_queue_post(struct soft_queue *queue, const struct work *work, size_t count);

/* One packet from that address, whose ICRC is good if the case holds. */
void soft_queue_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
			const struct packet *packet, const struct icrc_case *open);
/* A datagram to a group, for the queue of every member that joined by that socket. */
void soft_queue_receive_group(struct soft_transport *transport, const struct soft_socket *socket,
			      const struct address *from, const struct packet *packet, const struct icrc_case *open);

/* Sends a probe (a zero-length RDMA WRITE) after some silence, so that a peer that is gone is noticed. */
void soft_queue_probe(struct soft_queue *queue);
/* The path says that nothing listens there: probes, and fails with SOFT_UNREACHABLE without an answer in 1 to 1.5 s. */
void soft_queue_doubt(struct soft_queue *queue);

/* ---- region.c ---- */

enum outcome soft_region_create(struct domain *domain, size_t length, unsigned access, struct region **region);
void soft_region_destroy(struct region *region);
void soft_region_free(struct soft_region *region);
/*
 * The bytes a peer asks for, or NULL if the key is not one of ours, its right is missing, or the range leaves the
 * region. access: one of REGION_REMOTE_READ and REGION_REMOTE_WRITE. length 0 is refused nowhere and reaches nothing.
 */
uint8_t *soft_region_reach(struct soft_transport *transport, uint32_t key, uint64_t address, uint64_t length,
			   unsigned access);

/* ---- manager.c: the connection manager ---- */

/* NULL when memory is short. Closing says a last word to peers that have not answered yet, and flushes. */
struct soft_manager *soft_manager_open(struct soft_transport *transport);
void soft_manager_close(struct soft_manager *manager);

/* Active side: sends REQ from the endpoint's queue over its path, and goes on from there. */
enum outcome soft_manager_connect(struct soft_endpoint *endpoint, const void *data, size_t length);
/* Passive side, of an endpoint that soft_requested() was told of. */
enum outcome soft_manager_accept(struct soft_endpoint *endpoint, const void *data, size_t length);
enum outcome soft_manager_reject(struct soft_endpoint *endpoint, const void *data, size_t length);
enum outcome soft_manager_disconnect(struct soft_endpoint *endpoint);
/* The endpoint goes: the peer is told if it has to be; late answers are still given for a while. */
void soft_manager_forget(struct soft_endpoint *endpoint);
/* One MAD, 256 bytes, from queue pair 1 of that address, if the case holds. */
void soft_manager_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
			  const uint8_t *bytes, size_t length, const struct icrc_case *open);
/* The queue of the endpoint got its first valid packet, which is as good as the peer's RTU. */
void soft_manager_heard(struct soft_endpoint *endpoint);
/*
 * ICMP says that a packet of ours did not come to that address, and quotes its beginning. ECONNREFUSED, nothing holds
 * port 4791 there: what was connecting with it fails, what is established doubts. Any other errno may pass, and is told
 * should the peer stay silent. Anybody can forge such a message, and the kernel compares its addresses and ports only:
 * one that does not quote the identifier or queue number of a link is not believed.
 */
void soft_manager_unreachable(struct soft_transport *transport, const struct soft_socket *socket,
			      const struct address *peer, int error, const uint8_t *quoted, size_t length);
#define SOFT_UNREACHABLE "nothing holds UDP port 4791 there (no RoCE v2)"

/* ---- endpoint.c: what the manager and the queues tell ---- */

/* The listener of a service id, for a request that came in at that local address; NULL: nobody listens. */
struct soft_endpoint *soft_listener_find(struct soft_transport *transport, enum port_space port_space, uint16_t port,
					 const struct address *local);
/* A new connection in ENDPOINT_REQUESTED for a listener; NULL without memory. Its link is the manager's to set. */
struct soft_endpoint *soft_requested_create(struct soft_endpoint *listener, const struct soft_path *path,
					    const struct address *peer);
/* Delivers SOFT_EVENT_REQUESTED: tells the listener of its new connection. */
void soft_requested(struct soft_endpoint *endpoint, const uint8_t *data, size_t length);

/* ---- delivery.c: upwards ---- */

/* The connection events of a kernel, so that the order in which they are told can be as wild as there. */
enum soft_event_kind {
	SOFT_EVENT_REQUESTED = 1,
	SOFT_EVENT_ESTABLISHED,
	SOFT_EVENT_DISCONNECTED,
	SOFT_EVENT_FAILED,
};

/*
 * Queues an event for an endpoint (data is copied). For SOFT_EVENT_FAILED what failed is told when the event is
 * delivered: cause in words, and a code with its name ("reject reason", "errno"); nothing if soft_tell() queued it.
 */
void soft_tell(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data, size_t length);
void soft_tell_failure(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code);
/* The same (code name "reject reason") for a peer that refused with data of its user; the command gets a copy. */
void soft_tell_refusal(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data, size_t length);
/* Memory is short: the endpoint fails with that, as late as news would be told; a listener refuses who asked. */
void soft_starve(struct soft_endpoint *endpoint);
/* Queues a completion for the endpoint. */
void soft_complete(struct soft_endpoint *endpoint, const struct completion *completion, unsigned raw);

#endif
