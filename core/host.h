/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's requirements for RDMA, read from /sys, /proc and /dev: modules, devices, their files, locked memory. Two
 * callers: doctor prints every finding, and a run with a failed call takes the first failure as its cause.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/log.h"
#include "core/remedy.h"
#include "core/sysfs.h"

#define HOST_NETNS_MODE "/sys/module/ib_core/parameters/netns_mode"

/* As root: the port's connections use GIDs of that type, "IB/RoCE v1" or "RoCE v2". */
#define HOST_ROCE_MODE(device, port, type)                                                                             \
	"cd /sys/kernel/config/rdma_cm && mkdir -p " device " && echo " type " >" device "/ports/" port                \
	"/default_roce_mode"

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
	/* The status of findings that make devices unusable: FINDING_FAIL, or FINDING_WARN if a device is usable. */
	enum finding_status failure;
	/* Whether libibverbs lists a device, given by its "uverbs0". NULL: unknown. */
	bool (*is_listed)(const char *file);
	/* Called for each finding. error->object is the check's name, the cause its text, the hint the remedy. */
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
 * Adds a finding. After a line feed the text may have the remedy, after another the code of an error. Control
 * characters are replaced.
 */
void host_add(struct host *host, enum finding_status status, const char *check, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Whether a socket on the any address holds UDP port 4791: then no address can be bound. */
bool host_port_is_held(const char *root);
/* Whether that is soft-RoCE's, which holds it while its module is loaded, since Linux 7 while it has a device. */
bool host_rxe_holds_port(const char *root);
/* Adds a hint to soft's error: soft-RoCE holds that port. */
void host_hint_rxe(struct error *error);

/*
 * Whether a card has a RoCE v2 GID on that interface; then writes its name. It may consume packets to UDP port 4791
 * before the kernel sees them: the kernel's documents say so of mlx5 (devlink's enable_roce).
 */
bool host_find_card(const char *interface, char device[SYSFS_TEXT_SIZE]);

/* The modules that every device needs. Without a device, missing ones are no failure. */
void host_find_modules(struct host *host);
/* Adds a finding without a device, or if /sys cannot be read. */
void host_find_none(struct host *host);
/* Adds a finding beside devices: network cards that are passed to other users of devices, or have no driver. */
void host_find_held(struct host *host);
/* The connection manager's file. */
void host_find_manager(struct host *host);
/* Each device's file and provider. */
void host_find_devices(struct host *host);
/* enum fact: why no address leads to the device, whatever its interface. */
unsigned host_device_facts(const char *root, const char *device);
/* Sets the error: no address leads to a device, with the cause if each device has one. */
void host_no_address(struct error *error);
/* Whether this process may lock that much memory, in bytes: always without a limit. */
bool host_memory_allows(uint64_t bytes);
/* Whether locked memory is limited; then writes the limit and a remedy. */
bool host_memory_is_limited(char text[HOST_MEMORY_SIZE], struct remedy *remedy);

/*
 * Finds why no device can be used; with route, why a route's device cannot. Returns 0 if unknown, else the errno value
 * of the failed read of /sys, or ENODEV. is_listed(NULL): whether any device is listed.
 */
int host_cause(struct error *cause, bool (*is_listed)(const char *file), bool route);
