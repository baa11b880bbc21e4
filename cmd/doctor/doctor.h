/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor checks RDMA's requirements on this machine. Each file calls only those below it:
 *
 *   doctor.c     options, the checks one after the other, the verdict
 *   target.c     the route to ADDRESS
 *   paths.c      comparison of the paths to it
 *   trace.c      the routers of a path; the links where a peer answers
 *   ping.c       pings to it, by size, and for --load
 *   soft.c       the transport soft, which pings itself
 *   route.c      the local addresses that lead to a device, as the RDMA CM resolves them
 *   kernel.c     release, modules, namespaces, device files, locked memory: most is core/host.h's
 *   devices.c    RDMA devices, ports and GIDs
 *   slow.c       causes of slow runs: a PCIe link, this process's processors
 *   probe.c      attempts: opens a transport, waits for an event, pings
 *   findings.c   findings as text and for the report
 *
 * Devices and addresses are tried before files are read, which explain failures. A problem is a failure if the selected
 * transport cannot work with it. It is a warning if it concerns only the other transport, or if the selected one may
 * still work, for example with another device.
 */
#pragma once

#include <sys/socket.h>

#include "cmd/child_run.h"
#include "cmd/command.h"
#include "cmd/doctor/devices.h"
#include "cmd/lookup.h"
#include "core/host.h"
#include "core/interface.h"

struct doctor_options {
	struct common_options common;
	const char *address;
	const char *source;
	int64_t port;
	int64_t paths;	  /* 0: one */
	int64_t udp_port; /* the path's; 0: not given */
	bool load;
};

/* The status after a passed ping, which a program without rping has not tried. */
#define FINDING_PINGED (COMMAND_rping ? FINDING_OK : FINDING_READ)

struct finding {
	struct finding *next;
	enum finding_status status;
	struct error error; /* object: name of the check; cause: text of the finding; hint: the remedy */
};

/* The caller zeroes it. */
struct findings {
	struct finding *first, *last;
	uint64_t counts[FINDING_STATUSES];
	bool new_group; /* print an empty line before the next finding */
};

/* An operation's errors, of which the first one matters, and an endpoint's last event. */
struct probe {
	struct log log; /* for the operation */
	struct errors errors;
	enum event_kind event;	     /* 0: none */
	enum outcome outcome;	     /* the event's */
	struct transport *transport; /* for pings */
};

struct doctor {
	struct run *run;
	const struct doctor_options *options;
	uint64_t given;	  /* bits of the given options for another host */
	const char *name; /* the target's, as given */
	struct host host;
	bool verbs_selected;
	struct device *devices;
	bool rxe_holds_port; /* UDP port 4791 in this network namespace */
	bool usable;	     /* a device is usable */

	struct transport *verbs; /* NULL if it cannot be opened; the selected one is open from the start */
	struct channel *verbs_channel;
	struct error verbs_error; /* the first error of its opening and of the routes */
	struct transport *soft;
	struct channel *soft_channel;

	struct probe probe;
	char pinged[ADDRESS_TEXT_SIZE]; /* the host of the last ping; "": its server could not listen */
	unsigned silences;		/* addresses that have not reached themselves */
	struct resolver source;		/* for --source */
	struct resolver resolver;	/* for the target */
	struct error lookup_error;	/* if it has no address */
	enum fabric fabric;		/* of the device on the route there */
	uint32_t mtu;			/* that port's; 0: unknown */
	char netdev[SYSFS_TEXT_SIZE];	/* that route's interface; "": unknown */
	struct address local;		/* that route's local address, port 0 */
	struct paths *paths;		/* to the target; NULL: not requested, and no router on the way */
	bool silent;			/* that device does not reach itself */
	bool unanswered;		/* no ping is known to have arrived there */
	bool unexplained;		/* and no cause is known */
	struct findings findings;
};

static inline struct doctor *doctor_of(struct host *host)
{
	return (struct doctor *)((char *)host - offsetof(struct doctor, host));
}

/* ---- findings.c: prints each finding when it is added, and keeps it for the report ---- */

/* host_add(), for doctor->host. A no-op once the run has ended. */
#define finding_add(doctor, ...) host_add(&(doctor)->host, __VA_ARGS__)
/* Prints and keeps a finding: doctor->host.found. */
void finding_found(struct host *host, enum finding_status status, const struct error *error);
void finding_add_error(struct doctor *doctor, enum finding_status status, const char *check, const struct error *error);

uint64_t findings_count(const struct findings *findings);
/* Adds the findings to a list of a report. member is a struct findings. */
void findings_report(struct report *report, const void *member);
void findings_free(struct findings *findings);

/* ---- probe.c ---- */

/* Clears doctor->probe: its log keeps the errors of the next operation. */
void probe_begin(struct doctor *doctor);
/* Begins a probe, opens a transport, unless it is open, and creates a channel. */
enum outcome probe_open(struct doctor *doctor, const char *name, struct transport **transport,
			struct channel **channel);
/* Keeps the error of an operation that was a call of this transport. */
void probe_failed(struct doctor *doctor, struct transport *transport);
/* Creates an endpoint for probe_wait(). */
enum outcome probe_create(struct doctor *doctor, enum endpoint_kind kind, struct channel *channel,
			  enum port_space port_space, const struct path_options *path, struct endpoint **endpoint);
/* Runs the loop until an endpoint has this event. If it failed, keeps the error and returns the outcome. */
enum outcome probe_wait(struct doctor *doctor, enum event_kind wanted);
/*
 * Runs an rping client with these options on doctor->probe.transport, and stops it. timeout: per phase, nanoseconds.
 * The caller frees ping.
 */
void probe_ping(struct doctor *doctor, const char *host, int64_t timeout, const char *options, struct child_run *ping,
		struct ping_facts *facts);
/* Begins a probe: an rping server on a local address, and one ping to it. Returns the outcome, and keeps the error. */
enum outcome probe_itself(struct doctor *doctor, struct transport *transport, const struct address *address,
			  int64_t timeout);

/* ---- kernel.c ---- */

/* Kernel, modules, network namespaces, the files in /dev/infiniband, and the locked memory limit. */
void kernel_check(struct doctor *doctor);
/* Marks a device: doctor->host.unusable. */
void kernel_unusable(struct host *host, const char *name);

/* ---- devices.c ---- */

/* Finds whether soft-RoCE's socket is in this network namespace, and which devices work only in another one. */
void devices_find_rxe(struct doctor *doctor);
/* Each device, its ports and GIDs. */
void devices_check(struct doctor *doctor);

/* ---- slow.c ---- */

/* A warning for each device with a suboptimal PCIe link or NUMA node, and for a slow processor. */
void slow_check(struct doctor *doctor);

/* ---- route.c ---- */

/*
 * Resolves every local address, and pings it over its device. Sets each device's addresses and interface, and its
 * ports' MTU.
 */
void route_check(struct doctor *doctor);
/* Adds a finding for each device: the addresses that lead to it, and their RoCE version. */
void route_report(struct doctor *doctor);

/* ---- soft.c ---- */

/* Makes soft ping itself. */
void soft_check(struct doctor *doctor);
/* Warns of a card on that interface, which may consume soft's packets. Returns whether there is one. */
bool soft_warn_card(struct doctor *doctor, const char *interface);

/* ---- ping.c ---- */

/* Pings the address, and finds the size from which on no ping is answered. */
void ping_check(struct doctor *doctor, const struct address *address);
/*
 * Adds the error of a failure at the address. A path option without which pings pass is the cause: tries without all of
 * them, then without each.
 */
void ping_blame(struct doctor *doctor, const struct address *address, const char *check, const struct error *failure);

/* Begins a probe: runs an rping client with these options, and the path options. The caller frees ping. */
void ping_send(struct doctor *doctor, const char *host, const char *options, struct child_run *ping,
	       struct ping_facts *facts);

/* ---- trace.c ---- */

enum {
	TRACE_HOPS_MAX = 30
};

/* The meaning of an error queue message for a packet. */
enum trace_answer {
	TRACE_OTHER,	  /* none, or for another host */
	TRACE_ROUTER,	  /* its hop limit expired at a router */
	TRACE_REFUSED,	  /* it gets no further, whatever its hop limit */
	TRACE_CLOSED,	  /* the same: port unreachable */
	TRACE_PROHIBITED, /* the same, by a firewall */
};

struct trace {
	uint16_t port;				/* UDP source port */
	bool asked;				/* the port was available */
	unsigned limit;				/* the last hop to try; 0: TRACE_HOPS_MAX */
	unsigned hops;				/* up to the last answering router */
	struct address routers[TRACE_HOPS_MAX]; /* ADDRESS_NONE: it did not answer */
	enum trace_answer refusal;		/* TRACE_CLOSED or TRACE_PROHIBITED: what it met, ... */
	struct address refuser;			/* ... from here */
};

/*
 * Reads a message from recvmsg() with MSG_ERRQUEUE on a socket that sends to the peer. from: who answered;
 * ADDRESS_NONE: this host's kernel, or nobody.
 */
enum trace_answer trace_read_answer(const struct msghdr *message, const struct address *peer, struct address *from);
/* Asks for an IPv4 peer on each link, and reports those where it answers, unless it does so on its route's. */
void trace_links(struct doctor *doctor, const struct address *peer);
/* Finds the routers of paths from doctor->local, with packets of that many bytes. Takes --timeout at most. */
void trace_routers(struct doctor *doctor, const struct address *peer, size_t size, struct trace *traces, size_t count);
/*
 * Writes who refuses packets to the peer's RoCE port, and what to do, if somebody does. A device does not report ICMP
 * errors: an ordinary socket's packets meet the same firewalls. Silence says nothing: the peer's device drops them,
 * too.
 */
bool trace_refusal(struct doctor *doctor, const struct address *peer, char text[ERROR_HINT_SIZE]);
/* Whether that router has answered. */
bool trace_has(const struct trace *trace, const struct address *router);

/* ---- paths.c ---- */

/* Begins: without --paths finds the path's routers, before the target is resolved and the transport has its port. */
void paths_trace(struct doctor *doctor, const struct endpoint *target, const struct address *peer);
/* Pings the address over each of --paths, and reports their routers, and where bad ones differ. */
void paths_check(struct doctor *doctor);

/* ---- target.c ---- */

/* Looks options->source and options->address up, before the first endpoint exists. */
void target_lookup(struct doctor *doctor);
/* Resolves the route to it and pings it. */
void target_check(struct doctor *doctor);
