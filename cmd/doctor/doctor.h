/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of doctor: what RDMA needs on this machine, looked at part by part.
 *
 *   doctor.c     options, the order of the parts, the verdict
 *   findings.c   what was found, as text and for the report
 *   sysfs.c      reading /sys and /proc, with bounds
 *   driver.c     card, module and library of a device
 *   survey.c     the devices of /sys/class/infiniband
 *   kernel.c     release, modules, namespaces, cards without an RDMA device
 *   access.c     device files, locked memory
 *   devices.c    what the survey found
 *   route.c      which local addresses lead to which device, by asking the connection manager
 *   udp.c        who holds the port of RoCE v2
 *   target.c     the address that was asked about: route, and a ping
 *   probe.c      attempts whose errors become findings
 *
 * A part fails if the transport that is to work here cannot do without it. What only the other transport needs, or what
 * may work all the same, is a warning.
 */
#ifndef CMD_DOCTOR_DOCTOR_H
#define CMD_DOCTOR_DOCTOR_H

#include "cmd/child_run.h"
#include "cmd/command.h"
#include "cmd/doctor/findings.h"
#include "cmd/doctor/survey.h"

struct doctor_options {
	struct common_options common;
	const char *address;
	int64_t port;
};

enum {
	DOCTOR_ROUTES_MOST = 64
};

/* Something that is tried: the first error and hint of its log become a finding. */
struct probe {
	struct log log;
	bool failed;
	struct error error;
	char hint[FINDING_TEXT_SIZE];
};

struct doctor {
	struct environment *environment;
	const struct doctor_options *options;
	const char *root;		   /* of /sys and /proc */
	enum finding_status verbs_failure; /* what a failure of verbs is: FINDING_FAIL if that is to work */
	enum finding_status soft_failure;
	struct device *devices;
	bool usable; /* a device is of use */

	struct transport *verbs; /* NULL if it cannot be opened */
	struct channel *verbs_channel;
	struct transport *soft; /* if it is what is to work here */
	struct channel *soft_channel;

	unsigned route_count;
	unsigned route_next; /* to be resolved */
	struct endpoint *route;

	struct endpoint *target;
	size_t target_count;
	size_t target_next;
	enum fabric fabric; /* of the device that leads there */
	struct probe probe;
	struct findings findings;
	struct loop_timer step;
	struct address routes[DOCTOR_ROUTES_MOST]; /* local addresses */
	struct resolver resolver;
	struct address targets[ADDRESS_RESOLVE_MOST];
	struct child_run_values arguments;
	struct child_run ping;
};

/* Kernel, modules, network namespaces, and cards that might have RDMA. */
void kernel_check(struct findings *findings, const char *root, const struct device *devices,
		  enum finding_status failure);
/* False if it is known that this kernel has no such module: none loaded or built in, and no file of it. */
bool kernel_may_have(const char *root, const char *module);

/* The files below /dev/infiniband. */
void access_check_files(struct findings *findings, const char *root, const struct device *devices,
			enum finding_status failure);
/* How much memory may be locked. */
void access_check_memory(struct findings *findings, const char *root);

/* A finding for each device, port, and GID. */
void devices_check(struct findings *findings, const char *root, const struct device *devices,
		   enum finding_status failure);

/*
 * Resolves every local address, one after the other, then calls doctor_routes_known(). The devices learn which lead to
 * them, and their ports the MTU.
 */
void route_check(struct doctor *doctor);
void doctor_routes_known(struct doctor *doctor);
/* A finding for each device: who leads to it. */
void route_tell(struct doctor *doctor);
/* The interface of a local address; "" if it is none. */
void route_interface(const struct address *address, char name[SYSFS_NAME_SIZE]);
void route_stop(struct doctor *doctor);

/* The UDP port of RoCE v2. True if the kernel itself holds it. */
bool udp_check(struct findings *findings, const char *root, enum finding_status failure);

/* Looks for a route to the address of the options and pings it, then calls doctor_target_known(). */
void target_check(struct doctor *doctor);
void doctor_target_known(struct doctor *doctor);
void target_stop(struct doctor *doctor);

/* Forgets the last probe. What is tried from now on uses doctor->probe.log. */
void probe_begin(struct doctor *doctor);
/* Begins a probe, opens a transport and makes a channel on it. */
enum outcome probe_open(struct doctor *doctor, const char *name, struct transport **transport,
			struct channel **channel);
/* Makes the probe's error a finding. remedy, which may be NULL, is for an error without a hint. */
void probe_report(struct doctor *doctor, enum finding_status status, const char *check, const char *remedy);

#endif
