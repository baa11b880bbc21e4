/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of mckey. A run has members: datagram QPs, each of which joins the group.
 * Each file calls only those below it:
 *
 *   mckey.c      options; the callbacks, and the end of a run
 *   addresses.c  -m, -M and -b: checked, and looked up
 *   member.c     a member resolves the group, creates its QP, and joins
 *   sender.c     -s: numbers and sends datagrams, at the pace of --rate
 *   receiver.c   receives, verifies and counts datagrams
 *   figures.c    counts and times, for the report
 *   flow.c       what has arrived of each sender
 *   datagram.c   the format of a datagram
 */
#ifndef CMD_MCKEY_MCKEY_H
#define CMD_MCKEY_MCKEY_H

#include "cmd/mckey/flow.h"
#include "cmd/run.h"
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

struct mckey_run;

struct member {
	struct mckey_run *run;
	struct endpoint *endpoint;
	bool joined;
	int64_t join_time;     /* of resolving the group's address and of joining */
	struct region *region; /* slots x slot_size bytes */
	uint32_t slots;	       /* outstanding sends, at most, or receives */
	uint32_t slot_size;
	uint64_t posted, sent; /* datagrams of a sender */
};

/* What a sender and a receiver do differently. */
struct role {
	/* The QP and its memory exist, the group is not joined. */
	enum outcome (*prepare)(struct member *member);
	enum outcome (*completed)(struct member *member, const struct completion *completion);
	bool (*is_complete)(const struct mckey_run *run);
	/* How long the run may go on without progress. If not any more, it notes the cause and returns 0. */
	int64_t (*time_left)(struct mckey_run *run);
	/* The run has ended: prints what was done, records and logs what was not. Writes the verdict. */
	void (*result)(struct mckey_run *run, char *verdict, size_t size);
};

struct mckey_figures {
	const char *role;
	const char *target;	    /* the group as typed: the object of messages about it */
	struct path path;	    /* of the member that joined first */
	struct group_address group; /* zeros before */
	uint64_t asked;		    /* members */
	uint64_t joined;
	uint64_t failed;
	struct histogram join; /* join times */
	uint64_t size;	       /* bytes of a datagram */
	uint64_t sent;
	struct counts received;
	uint64_t foreign; /* received datagrams that no mckey sent */
	struct rate rate;
	const struct mckey_run *run; /* for the list of senders */
};

struct mckey_run {
	struct environment *environment;
	const struct mckey_options *options;
	const struct log *log;
	const struct role *role;
	struct channel *channel;
	struct member *members;
	uint64_t count;	      /* datagrams of each sending QP; 0: only join */
	int64_t progress;     /* time of the last datagram; also when a sender posts with none outstanding */
	struct rate traffic;  /* without the first datagram of each QP, or of each flow */
	uint64_t allowed;     /* that each member may have posted by now, with --rate */
	int64_t due;	      /* when it may post one more */
	uint64_t expected;    /* of each flow: 0 during the run, as only gaps are losses then */
	size_t incomplete;    /* flows with less than count */
	bool began;	      /* the set-up is done */
	bool recheck;	      /* the time that is left may have become less */
	bool ending;	      /* events and completions are ignored */
	bool deadline_passed; /* run.c has said so */
	bool differs;	      /* a sender has another -C or -S */
	char cause[64];	      /* of what is missing: ": interrupted" */
	struct senders senders;
	struct address group, source;
	struct path_options path_options;
	const char *device;	   /* for the verdict; NULL: none yet */
	struct loop_timer step;	   /* to what comes next: joining, sending, more datagrams */
	struct loop_timer silence; /* no progress */
	struct mckey_figures figures, before;
	uint8_t pattern[DATAGRAM_SIZE_MAX + PAYLOAD_PATTERN];
};

/* addresses.c */
/* Rejects wrong numeric addresses before a device is opened. */
enum outcome addresses_check(const struct mckey_options *options, const struct log *log);
/* Looks run->group and run->source up. */
enum outcome addresses_look_up(struct mckey_run *run);

/* member.c */
enum outcome member_start(struct member *member, const struct endpoint_handlers *handlers);
/* The address of the group is resolved. */
enum outcome member_join(struct member *member);
/* After a failure before it has joined: the failures that have one likely cause. */
void member_hint(const struct member *member);

/* sender.c */
extern const struct role sender_role;
/* Nanoseconds between joining and sending. */
int64_t sender_pause(const struct mckey_run *run);
/* Posts what send queues and pace allow. */
enum outcome sender_send(struct mckey_run *run);
/* Nanoseconds until the pace allows another datagram; 0 if none waits for it. */
int64_t sender_next(const struct mckey_run *run);

/* receiver.c */
extern const struct role receiver_role;

/* figures.c */
void mckey_figures_joined(struct member *member, const struct group_address *group);
/* Counts a datagram sent or received, which may be the first one of its QP or flow. */
void mckey_figures_counted(struct mckey_run *run, bool first);
struct figures mckey_figures_update(void *state);

#endif
