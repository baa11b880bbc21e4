/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor checks what RDMA needs on this machine. Each file calls only those below it:
 *
 *   doctor.c     options, the checks one after the other, the verdict
 *   target.c     the route to ADDRESS, and a ping
 *   soft.c       the transport soft, which connects to itself
 *   route.c      the local addresses that lead to a device, as the RDMA CM resolves them
 *   kernel.c     release, modules, namespaces, cards without an RDMA device, device files, locked memory
 *   devices.c    RDMA devices, ports and GIDs
 *   probe.c      what is tried: opens a transport, waits for an event
 *   findings.c   findings as text and for the report
 *
 * Devices and addresses are tried before files are read, which explain what failed. A problem is a failure if the
 * selected transport cannot work with it. It is a warning if it concerns only the other transport, or if the selected
 * one may work nevertheless, as with another device.
 */
#ifndef CMD_DOCTOR_DOCTOR_H
#define CMD_DOCTOR_DOCTOR_H

#include "cmd/doctor/devices.h"
#include "cmd/doctor/findings.h"
#include "cmd/lookup.h"
#include "cmd/run.h"
#include "core/interface.h"

struct doctor_options {
	struct common_options common;
	const char *address;
	int64_t port;
};

/* The errors of an operation, of which the first one is of interest, and the last event of an endpoint. */
struct probe {
	struct log log; /* for the operation */
	struct errors errors;
	enum event_kind event; /* 0: none */
	enum outcome outcome;  /* of it */
	struct endpoint *request;
};

struct doctor {
	struct environment *environment;
	const struct doctor_options *options;
	const char *name; /* of the target, as given */
	const char *root; /* of /sys and /proc */
	bool verbs_selected;
	enum finding_status
		verbs_failure; /* FINDING_FAIL if verbs is selected and no device is usable, else FINDING_WARN */
	enum finding_status soft_failure; /* FINDING_FAIL if soft is selected, else FINDING_WARN */
	unsigned facts;			  /* of the process and the kernel: enum fact */
	struct device *devices;
	bool rxe_holds_port; /* UDP port 4791, of this network namespace */
	bool usable;	     /* a device is usable */

	struct transport *verbs; /* NULL if it cannot be opened */
	struct channel *verbs_channel;
	struct error verbs_error; /* the first error of its opening and of the routes */
	struct transport *soft;
	struct channel *soft_channel;

	struct probe probe;
	struct resolver resolver;  /* of the target */
	struct error lookup_error; /* if it has no address */
	enum fabric fabric;	   /* of the device on the route to it */
	uint32_t mtu;		   /* of that port */
	struct findings findings;
};

/* Clears doctor->probe: its log keeps the errors of the next operation. */
void probe_begin(struct doctor *doctor);
/* Begins a probe, opens a transport and creates a channel. */
enum outcome probe_open(struct doctor *doctor, const char *name, struct transport **transport,
			struct channel **channel);
/* The operation was a call of this transport: keeps its error. */
void probe_failed(struct doctor *doctor, struct transport *transport);
/* Creates an endpoint for probe_wait(). */
enum outcome probe_create(struct doctor *doctor, enum endpoint_kind kind, struct channel *channel,
			  enum port_space port_space, struct endpoint **endpoint);
/* Runs the loop until an endpoint has this event. Returns the outcome if it has failed, and keeps the error. */
enum outcome probe_wait(struct doctor *doctor, enum event_kind wanted);

/* Sets doctor->facts. */
void kernel_read_facts(struct doctor *doctor);
/* Kernel, modules, network namespaces, and cards without an RDMA device. */
void kernel_check(struct doctor *doctor);
/* Returns false if this kernel is known to have no such module: it is not loaded, built in or installed. */
bool kernel_may_have(const char *root, const char *module);
/* The files in /dev/infiniband. Marks the devices whose file cannot be opened. */
void kernel_check_files(struct doctor *doctor);
/* The limit of locked memory. */
void kernel_check_memory(struct doctor *doctor);

/* Whether the socket of soft-RoCE is in this network namespace, and which devices work in another one only. */
void devices_find_rxe(struct doctor *doctor);
/* Each device, its ports and GIDs. */
void devices_check(struct doctor *doctor);

/* Resolves every local address. Sets the addresses and the interface of each device, and the MTU of its ports. */
void route_check(struct doctor *doctor);
/* Adds a finding for each device: the addresses that lead to it. */
void route_report(struct doctor *doctor);
/* Gets the name of the interface that has the address; "" for none. */
void route_interface(const struct address *address, char name[SYSFS_TEXT_SIZE]);

/* Connects soft to itself. */
void soft_check(struct doctor *doctor);

/* Looks options->address up, before the first endpoint exists. */
void target_lookup(struct doctor *doctor);
/* Resolves the route to it and pings it. */
void target_check(struct doctor *doctor);

#endif
