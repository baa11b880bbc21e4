/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager of the user-space backend with both ends in this process: the real one, with a network and a
 * clock that are played here. The network drops, doubles and reorders by a seeded die; time is what the next thing in
 * the agenda says. Queue pairs and the delivery of events are replaced at link time (cm.wrap).
 */
#ifndef TEST_NETWORK_CM_H
#define TEST_NETWORK_CM_H

#include "test/unit/unit.h"

#include "core/clock.h"
#include "test/network/vectors.h"
#include "transport/soft/delivery.h"
#include "transport/soft/manager.h"

enum {
	HOSTS = 3, /* two that talk, one that is hostile */
	OUTGOING_MOST = 4096,
	PORT = 7174,
	DATA_SIZE = 8,
};

struct host;
struct party;

struct thing {
	int64_t due;
	uint64_t order;
	struct loop_timer *timer; /* one of these three */
	struct flight *flight;
	struct intention *intention;
};

struct flight {
	struct address from, to;
	uint8_t bytes[MAD_SIZE];
};

struct intention {
	struct party *party;
	void (*act)(struct party *party);
};

struct soft_socket {
	struct host *host;
};

struct soft_queue {
	uint32_t number;
	enum {
		QUEUE_RESET,
		QUEUE_CONNECTED,
		QUEUE_STARTED,
		QUEUE_STOPPED
	} state;
	unsigned probes, doubts;
	bool waiting; /* for an acknowledgement */
	struct soft_agreement agreement;
};

struct host {
	struct soft_transport transport;
	struct soft_socket socket, other; /* other: of another address of this host's */
	struct address address;
	uint32_t mtu;
	struct soft_endpoint listener, second; /* on PORT and PORT + 1 */
	bool listens;
	struct {
		struct soft_path path;
		const uint8_t *payload;
	} outgoing[OUTGOING_MOST];
	size_t outgoing_count;
	unsigned entered;
};

/* One end of a connection, as a command would hold it. */
struct party {
	struct soft_endpoint endpoint;
	struct soft_queue queue;
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
	struct thing *agenda; /* a heap by time */
	size_t count, room;
	uint64_t order;
	int64_t now;
	uint64_t die;
	unsigned drop, twice; /* per cent */
	int64_t slowest;      /* of a flight; the fastest takes none */
	bool (*allowed)(const struct flight *flight);
	struct flight seen[64]; /* the last ones that left */
	size_t seen_count;
	unsigned flown;
	struct host hosts[HOSTS];
	struct party *parties;
	void (*requested)(struct party *party); /* the command's answer to a request */
	void (*established)(struct party *party);
	uint32_t next_queue;
};

extern struct world world; /* of the test at hand */
extern const struct icrc_case icrc_good;

uint64_t world_random(void);
bool world_chance(unsigned per_cent);
int64_t world_time(int64_t most);
void world_call(struct party *party, int64_t delay, void (*act)(struct party *party));
struct host *host_at(const struct address *address);
void world_arrive(const struct flight *flight);
void world_flush(void);
void world_run(int64_t time);
void world_drain(void);
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
enum link_state state_of(const struct party *party);
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
void check_agreement(const struct party *one, const struct party *other);
/* What ICMP quotes of a packet to that queue pair of the peer: a message from that identifier if it is 1. */
void unreachable(struct host *host, const struct host *peer, int error, uint32_t queue, uint32_t id, size_t length);
void refuse(struct host *host, const struct host *peer, uint32_t queue, uint32_t id, size_t length);
void refuse_message(struct host *host, const struct party *party);
/* As captured, but for what it would have learnt from us. */
struct mad captured(const char *name, const struct party *to);
/* Everything a message could change. */
uint64_t fingerprint(void);
/* A message of every kind for a link, as its peer would write it. */
struct mad mad_forge(enum mad_kind kind, const struct party *target, const struct host *peer);

#define WORLD_TEST(function) cmocka_unit_test_setup_teardown(function, world_open, world_close)

#endif
