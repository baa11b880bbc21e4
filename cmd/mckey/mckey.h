/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mckey's internal interface. A run has members: datagram QPs, each of which joins the group. Each file calls only
 * those below it:
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
#pragma once

#include "cmd/command.h"
#include "core/payload.h"
#include "core/units.h"

/* ---- datagram.c ---- */

/*
 * The format of our datagrams, which lets a receiver detect lost, repeated, late and damaged ones: a mark, if the
 * datagram has room for it, and a byte pattern.
 *
 *   0       4         8          12      16         20 bytes
 *   | magic | version | sequence | total | checksum |     network byte order
 *
 * The stock tool sends uninitialized heap memory, which must not look like a mark: a reader checks magic, version and
 * checksum, which covers the mark, the length and the QP number. Datagrams shorter than the mark are not checked.
 */
enum {
	DATAGRAM_MARK_SIZE = 20,
	DATAGRAM_SIZE_MAX = 4096, /* for any MTU */
};

struct datagram_mark {
	uint32_t sequence; /* from 0 */
	uint32_t total;	   /* the sender's -C, above sequence; 0: no mark */
};

/* Writes a datagram of size bytes with the mark, if there is room, and its part of the pattern (core/payload.h). */
void datagram_write(uint8_t *memory, size_t size, const uint8_t *pattern, uint32_t qpn,
		    const struct datagram_mark *mark);

/*
 * Reads the mark of a datagram from QP qpn: one without a mark is a stock sender's, short, or has a damaged mark. If
 * the mark is valid and the pattern is not, fills *difference and returns false.
 */
bool datagram_read(const uint8_t *memory, size_t size, const uint8_t *pattern, uint32_t qpn, struct datagram_mark *mark,
		   struct payload_difference *difference);

/*
 * Sets family and bytes of a zeroed address to the sender's, from the bytes in front of the datagram: a GRH or IPv6
 * header or, if may_be_ip4, an IPv4 header in the last 20 of them. Without one it stays zeroed.
 */
void datagram_source(const uint8_t header[DATAGRAM_HEADER_SIZE], bool may_be_ip4, struct address *source);

/* ---- flow.c ---- */

/*
 * Arrivals from each sender. A sender is a sending QP, identified by its number and its host's address, because
 * soft-RoCE assigns the same numbers on every host. A flow is a sender's datagrams at one member. Its memory does not
 * depend on their number.
 */
enum {
	SENDERS_MAX = 1024, /* any host may send to a group */
	FLOWS_MAX = 32768,  /* from all senders: 34 MB */
	FLOW_WINDOW = 256,  /* how late a datagram may be, to be distinguished from a repeated one */
	SENDER_NAME_SIZE = ADDRESS_TEXT_SIZE + 32,
};

struct counts {
	uint64_t received;
	uint64_t lost;
	uint64_t duplicated; /* or too late to be distinguished */
	uint64_t out_of_order;
	uint64_t damaged;
	uint64_t unnumbered; /* senders */
};

struct flow {
	uint64_t arrived;	    /* different datagrams */
	uint32_t next;		    /* above the highest number */
	uint32_t seen[FLOW_WINDOW]; /* the highest with the same remainder, plus 1 */
};

struct sender {
	struct sender *next; /* the last leads to the first */
	uint32_t qpn;
	bool numbered;		/* a datagram had a mark */
	struct address address; /* ADDRESS_NONE: unknown */
	uint64_t unmarked;
	struct counts counts; /* at arrival: see sender_counts() */
	struct flow flows[];  /* one for each member */
};

struct senders {
	uint32_t members;
	uint32_t count;
	struct sender *found; /* the last one */
};

/* Returns NULL for a new sender. */
struct sender *sender_find(struct senders *senders, uint32_t qpn, const struct address *address);
/* A new sender, zeroed, with its number and address. */
void sender_add(struct senders *senders, struct sender *sender);
/* "QP 17 at 10.0.0.1". Returns text. */
const char *sender_name(const struct sender *sender, char text[SENDER_NAME_SIZE]);

/* Counts a datagram. Returns false for a repeated or late one. */
bool flow_count(struct flow *flow, struct sender *sender, const struct datagram_mark *mark, bool damaged);

/* Lost: missing numbers below expected, or below the highest. */
struct counts sender_counts(const struct senders *senders, const struct sender *sender, uint64_t expected);
struct counts senders_counts(const struct senders *senders, uint64_t expected);

/* ---- a run ---- */

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

struct mckey;

struct member {
	struct mckey *mckey;
	struct endpoint *endpoint;
	bool joined;
	int64_t join_time;     /* for resolving the group's address and joining */
	struct region *region; /* slots x slot_size bytes */
	uint32_t slots;	       /* outstanding sends, at most, or receives */
	uint32_t slot_size;
	uint32_t posted, sent; /* a sender's datagrams */
};

/* Hot members first: small offsets encode in fewer bytes. */
struct mckey_figures {
	const char *target; /* the group as typed: the object of messages about it */
	uint64_t asked;	    /* members */
	uint64_t joined;
	uint64_t size; /* bytes of a datagram */
	uint64_t sent;
	uint64_t foreign; /* received, not from an mckey of this test */
	uint64_t failed;  /* members */
	struct counts received;
	struct rate rate;
	const struct mckey *mckey; /* for the list of senders */
	const char *role;
	struct path path;	    /* the first joined member's */
	struct group_address group; /* zeros before joining */
	struct histogram join;	    /* join times */
};

struct mckey {
	struct run *run;
	const struct mckey_options *options;
	const struct log *log;
	struct member *members;
	int64_t progress;     /* time of the last datagram, or of a sender's post with none outstanding */
	uint32_t count;	      /* datagrams per sending QP; 0: only join */
	uint32_t incomplete;  /* flows with less than count */
	uint32_t outstanding; /* sends */
	bool began;	      /* the set-up is done */
	bool recheck;	      /* less time may remain */
	bool differs;	      /* a sender has another -C or -S */
	struct senders senders;
	struct mckey_figures figures, before;
	struct channel *channel;
	const char *cause;   /* why datagrams are missing: ": interrupted"; NULL: none */
	struct rate traffic; /* without the first datagram of each QP, or of each flow */
	uint64_t allowed;    /* with --rate: posts that each member may have made by now */
	int64_t due;	     /* time of the next allowed post */
	uint64_t expected;   /* per flow: 0 during the run, when only gaps are losses */
	struct address group, source;
	const char *device;	  /* for the verdict; NULL: none yet */
	struct loop_timer timer;  /* until sending starts, more datagrams are due, or a silence ends */
	char silence[64];	  /* cause */
	char arrived[DROPS_SIZE]; /* hint */
	uint8_t pattern[DATAGRAM_SIZE_MAX + PAYLOAD_PATTERN];
};

/* The result against the request: "9 of 10 datagrams sent to 239.1.1.1". */
struct mckey_result {
	uint64_t done, asked;
	const char *noun, *verb;
	const char *note, *object; /* after the verb; "" for none */
	const char *hint;	   /* a possible cause; NULL: none */
};

/* addresses.c */
/* Rejects wrong numeric addresses before a device is opened. */
enum outcome addresses_check(const struct mckey_options *options, const struct log *log);
/* Looks mckey->group and mckey->source up. */
enum outcome addresses_look_up(struct mckey *mckey);

/* member.c */
enum outcome member_start(struct mckey *mckey, struct member *member, const struct endpoint_handlers *handlers);
/* The group's address is resolved. */
enum outcome member_join(struct member *member);
/* After a failure before joining: explains failures with one likely cause. */
void member_hint(const struct member *member);

/*
 * sender.c and receiver.c
 *
 * X_time_left() returns how long the run may go on without progress, or until a sender's pace allows more. 0: all is
 * done, or the cause is noted. X_result() is for an ended run: prints and logs unfinished work, and fills *result.
 */
/* Nanoseconds between joining and sending. */
int64_t sender_pause(const struct mckey *mckey);
/* Posts as many datagrams as send queues and pace allow. */
enum outcome sender_send(struct mckey *mckey);
enum outcome sender_completed(struct member *member);
int64_t sender_time_left(struct mckey *mckey);
void sender_result(const struct mckey *mckey, struct mckey_result *result);

/* The QP and its memory exist; the group is not joined yet. */
enum outcome receiver_prepare(struct member *member);
enum outcome receiver_completed(struct member *member, const struct completion *completion);
int64_t receiver_time_left(struct mckey *mckey);
void receiver_result(struct mckey *mckey, struct mckey_result *result);

/* figures.c */
void mckey_figures_joined(struct member *member, const struct group_address *group);
/* Counts a sent or received datagram, perhaps the first of its QP or flow. */
void mckey_figures_counted(struct mckey *mckey, bool first);
struct figures mckey_figures_update(void *state);
