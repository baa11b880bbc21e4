/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What RDMA needs of this host, as /sys, /proc and /dev have it: modules, devices, their files, locked memory. There
 * are two readers: doctor prints every finding, and a run whose call has failed takes the first failure as its cause.
 */
#ifndef CORE_HOST_H
#define CORE_HOST_H

#include <stdbool.h>

#include "core/log.h"
#include "core/remedy.h"
#include "core/sysfs.h"

#define HOST_NETNS_MODE "/sys/module/ib_core/parameters/netns_mode"

enum {
	HOST_MEMORY_SIZE = 128
};

enum finding_status {
	FINDING_READ, /* looked up, and not tried */
	FINDING_OK,   /* tried */
	FINDING_WARN, /* the selected transport may work nevertheless */
	FINDING_FAIL,
	FINDING_STATUSES,
};

struct host {
	const char *root; /* of /sys, /proc and /dev: "", except in tests */
	/* Of what keeps devices from being used: FINDING_FAIL, or FINDING_WARN if one is usable. */
	enum finding_status failure;
	/* Whether libibverbs lists a device by its "uverbs0". NULL: unknown. */
	bool (*is_listed)(const char *file);
	/* Gets each finding. error->object is the name of the check, the cause its text, the hint the remedy. */
	void (*found)(struct host *host, enum finding_status status, const struct error *error);
	/* Called for a device whose file or provider host_find_devices() cannot use. NULL: not wanted. */
	void (*unusable)(struct host *host, const char *device);
	struct error *cause; /* of host_cause() */

	/* Set by host_read(). */
	unsigned facts;	  /* enum fact, of the process and the kernel */
	int error;	  /* errno value with which /sys cannot be read, or 0 */
	bool has_devices; /* in this network namespace */
};

void host_read(struct host *host);

/*
 * Makes a finding of the text, after a line feed the remedy if there is one, and after another the code of an error.
 * Control characters are replaced.
 */
void host_add(struct host *host, enum finding_status status, const char *check, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Whether a socket at the any address has UDP port 4791. Then no address can be bound. */
bool host_port_is_held(const char *root);
/* Whether it is soft-RoCE's: from its module's load on, since Linux 7 while it has a device. */
bool host_rxe_holds_port(const char *root);
/* Adds the hint to an error of the transport soft: soft-RoCE has that port. */
void host_hint_rxe(struct error *error);

/*
 * Whether a card has a GID of RoCE v2 on that interface; then writes its name. It may take UDP port 4791 before the
 * kernel sees a packet: of mlx5 the kernel's documents say so (devlink's enable_roce).
 */
bool host_find_card(const char *interface, char device[SYSFS_TEXT_SIZE]);

/* The modules that every device needs. Without a device, missing ones are no failure. */
void host_find_modules(struct host *host);
/* That there is no device, or that /sys cannot be read. Nothing if there is one. */
void host_find_none(struct host *host);
/* The file of the connection manager. */
void host_find_manager(struct host *host);
/* The file of each device, and its provider. */
void host_find_devices(struct host *host);
/* enum fact: what keeps every address from leading to the device without regard to an interface. */
unsigned host_device_facts(const char *root, const char *device);
/* Sets the error: no address leads to a device, with the cause if each device has one. */
void host_no_address(struct error *error);
/* Whether less memory than any amount may be locked. Then writes that, and a remedy. */
bool host_memory_is_limited(char text[HOST_MEMORY_SIZE], struct remedy *remedy);

/*
 * Finds why no device can be used; with route, why the device of a route cannot. Returns 0 if that is not known, else
 * the errno value that kept /sys from being read, or ENODEV. is_listed(NULL): whether any device is listed.
 */
int host_cause(struct error *cause, bool (*is_listed)(const char *file), bool route);

#endif
