/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of mckey: a run, and its members, each of which is a datagram queue that joins the group.
 *
 *   mckey.c     options, start and stop
 *   addresses.c what -m, -M and -b stand for
 *   run.c       the phases of a run, and its end
 *   member.c    the life of one member: resolve, queue, join, leave
 *   sender.c    what the members do with -s
 *   receiver.c  what they do without
 *   receipt.c   what is said of it at the end
 *   source.c    the senders that a receiver has heard of
 *   stream.c    what came from one sending queue to one receiving queue
 *   datagram.c  what is inside a datagram
 */
#ifndef CMD_MCKEY_MCKEY_H
#define CMD_MCKEY_MCKEY_H

#include "cmd/command.h"
#include "cmd/mckey/source.h"

struct mckey_options {
	struct common_options common;
	const char *group;
	const char *gid;
	const char *bind;
	bool sender;
	int64_t connections;
	int64_t count;
	int64_t size;
	int64_t port_space;
	bool send_only;
	bool no_loopback;
	bool own_queue;
	int64_t idle_timeout;
	int64_t pause; /* PAUSE_OF_FABRIC: what the fabric needs */
};

enum {
	PAUSE_OF_FABRIC = -1
};

enum member_state {
	MEMBER_IDLE = 0,
	MEMBER_RESOLVING,
	MEMBER_JOINING,
	MEMBER_JOINED,
	MEMBER_FAILED,
};

struct member {
	struct mckey_run *run;
	struct endpoint *endpoint;
	enum member_state state;
	bool took_part;	       /* it joined, whatever came later */
	struct region *region; /* slots x slot_size bytes */
	uint32_t slots;	       /* datagrams in flight, or receives posted */
	uint32_t slot_size;
	uint32_t posted; /* of -C: handed to the device */
	uint32_t sent;	 /* completed */
};

enum run_phase {
	RUN_LOOKING_UP = 0, /* names to addresses */
	RUN_JOINING,	    /* until every member has joined or failed */
	RUN_PAUSING,	    /* a sender gives the fabric time to learn the group */
	RUN_SENDING,
	RUN_RECEIVING,
	RUN_ENDING, /* the end is due in the next turn of the loop; nothing counts any more */
};

/* What a name or number on the command line stands for. */
struct found_addresses {
	struct address addresses[ADDRESS_RESOLVE_MOST];
	size_t count;
};

struct mckey_run {
	struct environment *environment;
	const struct mckey_options *options;
	const struct log *log;
	enum run_phase phase;
	struct resolver resolver;
	struct found_addresses groups;
	struct found_addresses sources;
	struct address group;
	struct address source;
	const char *group_text; /* as the user typed it: what messages about the group name */
	struct channel *channel;
	struct loop_timer step;	 /* to the next phase: the first one, the pause, the end */
	struct loop_timer idle;	 /* a sender's or receiver's longest time without progress */
	int64_t progress;	 /* when there was some, on the monotonic clock */
	bool hinted;		 /* one hint is enough, also with a thousand connections */
	const char *interrupted; /* by what the run ended before its end, or NULL */

	struct member *members;
	size_t member_count;
	size_t undecided; /* members that have neither joined nor failed */
	size_t joined;	  /* and not failed since */
	size_t join_failures;

	uint32_t count; /* datagrams of each connection; 0 only joins */
	uint32_t size;	/* bytes of each */

	size_t sending; /* members that have not sent all yet */
	uint64_t sent;	/* by all of them */

	struct source_table heard;
	uint64_t foreign;	 /* datagrams that no mckey sent */
	struct loop_timer grace; /* a chance for senders that start late */
};

/* addresses.c */
/* Refuses what is wrong by its numbers alone. */
enum outcome addresses_check(const struct mckey_options *options, const struct log *log);
/* Finds run->group and run->source, then joins. */
void addresses_look_up(struct mckey_run *run);

/* run.c */
/* A line that scripts know from the stock tool, among the results. */
void run_say(const struct mckey_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line of our own, among the results: "<name>: <what> (<backend>, <device>)". */
void run_tell(const struct mckey_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A hint under an error; only the first one of a run is printed. */
void run_hint(struct mckey_run *run, const char *text);
/* Notes the outcome and ends the run in the next turn of the loop. */
void run_end(struct mckey_run *run, enum outcome outcome);
/* Starts every member. */
void run_join(struct mckey_run *run);
/* A member has joined or failed. */
void run_settled(struct mckey_run *run);
/* "s", unless it is one. */
const char *plural(uint64_t count);

/* member.c */
void member_start(struct member *member);
void member_fail(struct member *member, enum outcome outcome);
/* Leaves the group, if the member is in it. */
enum outcome member_leave(struct member *member);
void member_release(struct member *member);

/* sender.c */
enum {
	SENDER_SLOTS = 64
};

void sender_start(struct mckey_run *run);
void sender_completion(struct member *member, const struct completion *completion);
/* A member has finished or failed. */
void sender_settled(struct mckey_run *run);
void sender_report(struct mckey_run *run);

/* receiver.c */
/* How many receives the member's queue takes: after the device is known, before the queue is made. */
uint32_t receiver_depth(const struct member *member);
/* Makes the member's memory and posts its receives. */
enum outcome receiver_prepare(struct member *member);
void receiver_start(struct mckey_run *run);
void receiver_completion(struct member *member, const struct completion *completion);
void receiver_settled(struct mckey_run *run);
/* Something came, and from every sender heard of every member has all that is expected. */
bool receiver_has_all(const struct mckey_run *run);

/* receipt.c */
void receiver_report(struct mckey_run *run);

#endif
