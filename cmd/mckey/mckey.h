/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of mckey: a run, and its members, each of which is a datagram queue that joins the group.
 *
 *   mckey.c     options, start and stop
 *   addresses.c what -m, -M and -b stand for
 *   run.c       the phases of a run, and its end
 *   member.c    the life of one member: resolve, queue, join, leave
 *   sender.c    what the members do with -s
 *   pace.c      when they do it
 *   receiver.c  what they do without
 *   statistics.c  what each sender's datagrams came to
 *   figures.c   what is counted and timed, for the report
 *   source.c    the senders that a receiver has heard of
 *   window.c    what came from one sending queue to one receiving queue
 *   datagram.c  what is inside a datagram
 */
#ifndef CMD_MCKEY_MCKEY_H
#define CMD_MCKEY_MCKEY_H

#include "cmd/command.h"
#include "cmd/mckey/source.h"
#include "core/units.h"

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
	int64_t rate;  /* datagrams each second, of each queue pair; 0 for as fast as it goes */
	int64_t interval;
	int64_t duration; /* 0: -C of them */
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
	uint64_t total;	 /* to be sent: -C, or DATAGRAM_OPEN until --duration is over */
	uint64_t posted; /* of these: handed to the device */
	uint64_t sent;	 /* completed */
	int64_t due;	 /* when the next one may go, if they go at a pace */
	int64_t asked;	 /* when it asked for the group's route and then to join */
};

enum run_phase {
	RUN_LOOKING_UP = 0, /* names to addresses */
	RUN_JOINING,	    /* until every member has joined or failed */
	RUN_PAUSING,	    /* a sender gives the fabric time to learn the group */
	RUN_SENDING,
	RUN_RECEIVING,
	RUN_ENDING, /* the end is due in the next turn of the loop; nothing counts any more */
};

/* What came from one sender to all members. */
struct statistics {
	uint64_t arrived;
	uint64_t missing; /* during the run only what is missing between those that came */
	uint64_t wanted;  /* at least -C from the sender to each member */
	uint64_t repeated;
	uint64_t late;
	uint64_t out_of_order;
	uint64_t wrong_length;
	uint64_t damaged;
	uint64_t total; /* that the sender sends to each; 0 if it does not say */
	uint64_t count; /* its -C; also */
	bool good;
};

struct counters {
	uint64_t datagrams;
	uint64_t bytes;
};

/* What datagrams there were, of all senders and members together. */
struct traffic {
	struct counters counted; /* sent, or received */
	struct counters firsts;	 /* of these */
	uint64_t lost;
	uint64_t duplicated;
	uint64_t out_of_order;
	uint64_t damaged;
	uint64_t wrong_length;
	uint64_t foreign;
	uint64_t unfollowed;
	size_t joined;
	size_t join_failures;
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
	int64_t progress;     /* when there was some, on the monotonic clock */
	bool hinted;	      /* one hint is enough, also with a thousand connections */
	bool interrupted;     /* before its end */
	bool deadline_passed; /* and by that, which is told already; the last line says how far it got */

	struct member *members;
	size_t member_count;
	size_t undecided; /* members that have neither joined nor failed */
	size_t joined;	  /* and not failed since */
	size_t join_failures;

	uint64_t count; /* datagrams of each connection, or DATAGRAM_OPEN; 0 only joins */
	uint32_t size;	/* bytes of each */

	struct counters counted; /* sent, or received without repetitions, by all of them */
	struct counters firsts;	 /* of these the first one of each queue: it starts the clock */

	size_t joins; /* members that ever joined */
	bool ended;   /* what has not come is lost */

	uint64_t foreign; /* datagrams that no mckey sent */
	struct address group;
	struct address source;
	const char *group_text;	 /* as the user typed it: what messages about the group name */
	struct path_options way; /* as --device and the like ask for */
	struct path path;	 /* of the queue that joined last */
	struct channel *channel;
	struct group_address address; /* of the group, once a member has joined */
	struct loop_timer step;	      /* to the next phase: the first one, the pause, the end */
	struct loop_timer pace;	      /* a sender's next datagrams are due */
	struct loop_timer over;	      /* --duration of a receiver */
	struct loop_timer idle;	      /* a sender's or receiver's longest time without progress */
	struct loop_timer grace;      /* a chance for senders that start late */
	struct resolver resolver;
	struct source_table heard;
	struct found_addresses groups;
	struct found_addresses sources;
	int64_t traffic_began; /* sending began, or the first datagram came; 0 before that */
	int64_t traffic_ended; /* the last completion, or the last datagram that counts */
	int64_t interval_began;
	struct traffic before_interval;
	struct histogram join; /* their times */
	struct histogram interval_join;
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
/* The last of these: with "FAILED: " in front of a run that has failed. */
void run_verdict(const struct mckey_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A hint under an error; only the first one of a run is printed. */
void run_hint(struct mckey_run *run, const char *text);
/* Notes the outcome and ends the run in the next turn of the loop. */
void run_end(struct mckey_run *run, enum outcome outcome);
/* Starts every member. */
void run_join(struct mckey_run *run);
/* A member has joined or failed. */
void run_settled(struct mckey_run *run);

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
/* Hands over as many datagrams as there is room and time for. */
void sender_fill(struct member *member);
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

/* statistics.c */
void receiver_report(struct mckey_run *run);
struct statistics statistics_of(const struct mckey_run *run, const struct source *source);

/* pace.c */
/* How many datagrams the member may hand over at once now, at most the given number. */
uint32_t pace_allows(struct member *member, uint32_t most, int64_t now);
/* True if no datagram is due any more after the one that goes now, because of --duration. */
bool pace_is_last(const struct mckey_run *run, int64_t now);
/* Calls sender_fill() for every member when it is time. */
void pace_start(struct mckey_run *run);

/* figures.c */
void figures_joined(struct member *member, const struct group_address *address);
/* A datagram of that many bytes was sent, or came; first: from its queue, to the one of ours that took it. */
void figures_counted(struct mckey_run *run, uint32_t length, bool first);
void figures_report(const struct mckey_run *run, struct report *report, enum report_span span);
void figures_next_interval(struct mckey_run *run);

#endif
