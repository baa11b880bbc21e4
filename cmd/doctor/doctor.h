/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor checks what RDMA needs on this machine.
 *
 *   doctor.c     options, the sequence of checks, the verdict
 *   findings.c   findings as text and for the report
 *   kernel.c     release, modules, namespaces, cards without an RDMA device, device files, locked memory
 *   devices.c    RDMA devices, ports and GIDs
 *   route.c      the local addresses that lead to a device, as the RDMA CM resolves them
 *   soft.c       the transport soft, which connects to itself
 *   target.c     the route to ADDRESS, and a ping
 *
 * Devices and addresses are tried before files are read, which explain what failed. A problem is a failure if the
 * selected transport cannot work with it. It is a warning if it concerns only the other transport, or if the selected
 * one may work nevertheless, as with another device.
 */
#ifndef CMD_DOCTOR_DOCTOR_H
#define CMD_DOCTOR_DOCTOR_H

#include "cmd/child_run.h"
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

enum soft_end {
	SOFT_LISTENER,
	SOFT_CLIENT,
	SOFT_SERVER,
	SOFT_ENDS
};

struct doctor;
typedef void doctor_step(struct doctor *doctor);

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
	struct endpoint *soft_ends[SOFT_ENDS];
	struct address soft_address;

	struct probe probe;
	struct probe resolver_probe; /* the error of the target's look-up */
	doctor_step *next;	     /* called when the running check of routes or of the target is complete */
	unsigned route_count;
	unsigned route_next; /* index of the next one to resolve */
	struct endpoint *route;

	struct endpoint *target;
	size_t target_next;
	enum fabric fabric; /* of the device on the route to the target */
	uint32_t mtu;	    /* of its port */
	struct findings findings;
	struct loop_timer step;
	struct address routes[INTERFACE_ADDRESSES_MAX]; /* local addresses */
	struct resolver resolver;			/* of the target */
	struct child_run ping;
};

/* Begins a probe, opens a transport and creates a channel. */
enum outcome doctor_open(struct doctor *doctor, const char *name, struct transport **transport,
			 struct channel **channel);

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

/*
 * Resolves every local address, one after the other, then calls next. Sets the addresses and the interface of each
 * device, and the MTU of its ports.
 */
void route_check(struct doctor *doctor, doctor_step *next);
/* Adds a finding for each device: the addresses that lead to it. */
void route_report(struct doctor *doctor);
/* Gets the name of the interface that has the address; "" for none. */
void route_interface(const struct address *address, char name[SYSFS_TEXT_SIZE]);
void route_stop(struct doctor *doctor);

/* Connects soft to itself, then calls next. */
void soft_check(struct doctor *doctor, doctor_step *next);
void soft_stop(struct doctor *doctor);

/* Looks options->address up, before the first endpoint exists. */
void target_lookup(struct doctor *doctor);
/* Resolves the route to it and pings it, then calls next. */
void target_check(struct doctor *doctor, doctor_step *next);
void target_stop(struct doctor *doctor);

#endif
