/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager of the user-space backend with both ends in this process, over the simulated network. Its
 * queue pairs, endpoints and the delivery of events are replaced at link time (cm.wrap).
 */
#ifndef TEST_NETWORK_CM_H
#define TEST_NETWORK_CM_H

#include "test/unit/unit.h"

#include "test/network/network.h"
#include "test/network/stack.h"
#include "test/network/vectors.h"
#include "transport/soft/cm/cm_internal.h"
#include "transport/soft/delivery.h"

enum {
	HOSTS = 3, /* two that talk, one that is hostile */
	PORT = 7174,
	DATA_SIZE = 8,
	MTU = 1024,
};

struct host;
struct party;

struct flight {
	struct address from, to;
	uint8_t bytes[MAD_SIZE];
};

struct soft_qp {
	uint32_t number;
	enum {
		QP_RESET,
		QP_CONNECTED,
		QP_RTS,
		QP_ERROR
	} state;
	unsigned probes, doubts;
	bool waiting; /* for an acknowledgement */
	struct soft_agreement agreement;
};

struct host {
	struct soft_transport *transport;
	struct address address;
	struct soft_socket *socket, *other;    /* other: of another address of this host's */
	uint32_t mtu;			       /* of the paths that it asks for */
	struct soft_endpoint listener, second; /* on PORT and PORT + 1 */
	bool listens;
	unsigned entered;
};

/* One end of a connection, as a command would hold it. */
struct party {
	struct soft_endpoint endpoint;
	struct soft_qp qp;
	struct host *host;
	struct party *next;
	unsigned told[SOFT_EVENT_FAILED + 1];
	enum soft_event_kind last;
	int code;
	const char *code_name;
	char cause[120];
	uint8_t data[256];
	size_t data_length;
	bool gone;
	unsigned number; /* the connection's in a storm */
};

struct world {
	struct host hosts[HOSTS];
	bool (*allowed)(const struct flight *flight); /* to arrive; NULL: all are */
	struct flight seen[64];			      /* the last ones that left */
	size_t seen_count;
	struct party *parties;
	struct call *calls;
	void (*requested)(struct party *party); /* the command's answer to a request */
	void (*established)(struct party *party);
	uint32_t next_queue;
};

extern struct world world; /* of the test at hand */

bool world_chance(unsigned per_cent);
int64_t world_time(int64_t most);
/* A command does that so much later. */
void world_call(struct party *party, int64_t delay, void (*act)(struct party *party));
struct host *host_at(const struct address *address);
/* Is there at once, whatever else is under way. */
void world_arrive(const struct flight *flight);
/* All that was queued for sending leaves. */
void world_flush(void);
/* An address of its own instead of the one it had. */
void host_move(struct host *host, const struct address *address);
/* Its manager is closed, as at the end of a process; nothing reaches it any more. */
void host_stop(struct host *host);
struct party *party_create(struct host *host);
int world_open(void **state);
void forget_parties(void);
int world_close(void **state);

/* ---- what commands do, and messages: cm_ends.c ---- */

struct party *connect_from(struct host *host, const struct host *to, uint16_t port);
struct party *connect_one(void);
void do_accept(struct party *party);
void do_forget(struct party *party);
void do_reject(struct party *party);
bool is_up(const struct party *party);
void do_disconnect(struct party *party);
void do_hear(struct party *party);
/* The other end, if the request got there: the newest party of host B that was asked. */
struct party *guest(void);
enum cm_state state_of(const struct party *party);
bool mad_of_flight(const struct flight *flight, struct mad *mad);
/* The last one of a kind that left a host. mad points into the world's memory. */
const struct flight *last_of(enum mad_kind kind, const struct host *host, struct mad *mad);
unsigned count_of(enum mad_kind kind);
void world_inject(const struct host *from, const struct host *to, const struct mad *mad);
bool no_ready(const struct flight *flight);
bool no_reply(const struct flight *flight);
bool no_goodbye(const struct flight *flight);
bool no_refusal(const struct flight *flight);
bool nothing_at_all(const struct flight *flight);
void check_nothing_left(void);
void forget_all(void);
unsigned count_up(void);
/* A pair that is connected, over a perfect network. */
struct party *connect_pair(struct party **other);
/* Asks for a connection, which the other end accepts, while only some messages arrive: 50 ms of that. */
struct party *connect_without(bool (*allowed)(const struct flight *flight));
void check_agreement(const struct party *one, const struct party *other);
/* What ICMP quotes of a packet to that queue pair of the peer: a message from that identifier if it is 1. */
void unreachable(struct host *host, const struct host *peer, int error, uint32_t qp, uint32_t id, size_t length);
void refuse(struct host *host, const struct host *peer, uint32_t qp, uint32_t id, size_t length);
void refuse_message(struct host *host, const struct party *party);
/* As captured, but for what it would have learnt from us. */
struct mad captured(const char *name, const struct party *to);
/* Everything a message could change. */
uint64_t fingerprint(void);
/* A message of every kind for a link, as its peer would write it. */
struct mad mad_forge(enum mad_kind kind, const struct party *target, const struct host *peer);

#define WORLD_TEST(function) cmocka_unit_test_setup_teardown(function, world_open, world_close)

#endif
