/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of mckey: a run and its members. A member is a datagram QP that joins the group.
 *
 *   mckey.c       options, the phases of a run, its result lines, start and stop
 *   addresses.c   resolves -m, -M and -b
 *   member.c      the states of a member: resolve, create the QP, join
 *   sender.c      -s: sends datagrams, at the pace of --rate
 *   receiver.c    posts receives, counts and checks datagrams, detects the end
 *   statistics.c  receive statistics of each sender, and the receiver's result lines
 *   figures.c     counts and times, for the report
 *   source.c      the table of sending QPs
 *   window.c      the sequence window of a sending QP at a receiving QP
 *   datagram.c    the format of a datagram
 */
#ifndef CMD_MCKEY_MCKEY_H
#define CMD_MCKEY_MCKEY_H

#include "cmd/command.h"
#include "cmd/mckey/source.h"
#include "cmd/repeats.h"
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
	int64_t idle_timeout;
	int64_t pause; /* only if given, else by the fabric */
	int64_t rate;  /* datagrams per second of each QP; 0: no limit */
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
	bool ever_joined;      /* stays true after a failure */
	struct region *region; /* slots x slot_size bytes */
	uint32_t slots;	       /* of a sender: outstanding sends, at most; of a receiver: receives */
	uint32_t slot_size;
	uint64_t posted;    /* of -C */
	uint64_t sent;	    /* completed */
	int64_t due;	    /* earliest time of the next datagram, with --rate */
	int64_t join_began; /* before the address of the group is resolved */
};

enum mckey_phase {
	MCKEY_STARTING = 0,
	MCKEY_JOINING, /* until every member has joined or failed */
	MCKEY_PAUSING, /* a sender waits until the fabric forwards the group */
	MCKEY_SENDING,
	MCKEY_RECEIVING,
	MCKEY_ENDING, /* the result is printed; events and completions are ignored */
};

/* Receive statistics of one sender, summed over all members that joined. */
struct statistics {
	uint64_t arrived;
	uint64_t missing;    /* during the run only gaps in the sequence */
	uint64_t expected;   /* at least -C for each member */
	uint64_t duplicated; /* or too late to tell */
	uint64_t out_of_order;
	uint64_t wrong_length;
	uint64_t damaged;
	uint64_t total;	       /* -C of the sender; 0: its datagrams have no mark */
	uint64_t other_counts; /* of all senders: those with another -C */
	bool good;	       /* window_good() of every member */
};

/* The figures of the report, summed over all senders and members. */
struct mckey_figures {
	const char *role;
	const char *target;
	struct path path;	      /* of the member that joined first */
	struct group_address address; /* of the group, once a member has joined */
	uint64_t asked;		      /* members */
	uint64_t joined;	      /* members that ever joined */
	uint64_t join_failures;
	struct histogram join; /* join times */
	uint64_t size;
	uint64_t sent;
	struct statistics received; /* of all senders */
	uint64_t foreign;	    /* received datagrams that no mckey sent */
	uint64_t unfollowed;
	struct rate rate;	     /* of datagrams, without the first one of each QP, or QP pair */
	const struct mckey_run *run; /* for the list of senders */
};

struct mckey_run {
	struct environment *environment;
	const struct mckey_options *options;
	const struct log *log;
	struct repeats repeats; /* of the members */
	enum mckey_phase phase;
	int64_t progress;     /* time of the last progress, for the idle timer */
	bool hinted;	      /* a hint was printed; members that fail alike print no more */
	bool interrupted;     /* by a signal or --deadline */
	bool deadline_passed; /* by --deadline, which is already reported */

	struct member *members;
	size_t member_count;
	size_t joins_pending; /* members that have neither joined nor failed */
	size_t joined;	      /* members in the group now */

	uint64_t count; /* datagrams of each sending QP; 0: only join */
	uint32_t size;	/* bytes of a datagram */

	bool ended; /* expected datagrams that have not arrived are lost */

	struct address group;
	struct address source;		  /* local address of -b */
	const char *group_text;		  /* as typed: the object of messages about the group */
	struct path_options path_options; /* as given on the command line */
	struct channel *channel;
	struct loop_timer step;	 /* to the next phase: start, end of the pause, end of the run */
	struct loop_timer pace;	 /* a sender's next datagrams are due */
	struct loop_timer idle;	 /* time without progress */
	struct loop_timer grace; /* waits for senders that start late */
	struct source_table sources;
	int64_t traffic_began; /* start of sending, or first datagram received; 0 before */
	int64_t traffic_ended; /* last send completion, or last counted datagram */
	struct mckey_figures figures, before;
	bool ended_in_traffic;	/* the last interval lasts until the end, as the others do */
	struct verdict verdict; /* its device is known once a member is resolved */
	char verdict_text[512]; /* printed in the next turn of the loop */
	uint8_t pattern[DATAGRAM_SIZE_MAX + PAYLOAD_PATTERN];
};

/* addresses.c */
/* Rejects wrong numeric addresses before a device is opened. */
enum outcome addresses_check(const struct mckey_options *options, const struct log *log);
/* Looks run->group and run->source up. */
enum outcome addresses_look_up(struct mckey_run *run);

/* mckey.c */
/* Prints a hint, unless the run has printed one. */
void mckey_hint(struct mckey_run *run, const char *text);
/* Prints the result and ends the run in the next turn of the loop. */
void mckey_end(struct mckey_run *run, enum outcome outcome);
/* Starts every member. */
void mckey_join(struct mckey_run *run);
/* A member has joined or failed: goes to the next phase, or ends the run, if it was the last. */
void mckey_member_changed(struct mckey_run *run);

/* member.c */
void member_start(struct member *member);
void member_fail(struct member *member, enum outcome outcome);
void member_release(struct member *member);

/* sender.c */
enum {
	SENDER_SLOTS = 64
};

void sender_start(struct mckey_run *run);
void sender_completion(struct member *member, const struct completion *completion);
/* How many datagrams the member may post now by --rate, at most the given number. */
uint32_t sender_pace_allows(struct member *member, uint32_t max, int64_t now);
/* Ends the run if every member has sent its datagrams or failed. */
void sender_check_end(struct mckey_run *run);
/* Prints the sender's result lines and logs unsent datagrams. */
void sender_print(struct mckey_run *run);

/* receiver.c */
/* Number of receives of the member's QP. The device must be known. */
uint32_t receiver_depth(const struct member *member);
/* Registers memory and posts the receives. */
enum outcome receiver_prepare(struct member *member);
void receiver_start(struct mckey_run *run);
void receiver_completion(struct member *member, const struct completion *completion);
/* Ends the run if no member is joined, or soon if all datagrams have arrived. */
void receiver_check_end(struct mckey_run *run);
/* Whether every member has all datagrams of every known sender; false without a sender. */
bool receiver_has_all(const struct mckey_run *run);

/* statistics.c */
/* Prints the receiver's result lines and logs loss and damage. */
void statistics_print(struct mckey_run *run);
struct statistics statistics_of(const struct mckey_run *run, const struct source *source);
struct statistics statistics_of_all(const struct mckey_run *run);

/* figures.c */
void mckey_figures_joined(struct member *member, const struct group_address *address);
/* Counts a datagram sent or received. first: the first of its QP, or pair of source and receiving QP. */
void mckey_figures_counted(struct mckey_run *run, uint32_t length, bool first);
struct figures mckey_figures_update(void *state);

#endif
