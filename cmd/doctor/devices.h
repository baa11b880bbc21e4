/* SPDX-License-Identifier: BSD-2-Clause */
/* The RDMA devices in /sys/class/infiniband, with their ports and GIDs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/address.h"
#include "core/log.h"
#include "core/sysfs.h"

enum {
	DEVICES_MAX = 64,
	DEVICE_PORTS_MAX = 8,
	PORT_GIDS_MAX = 16,	  /* GIDs kept per port; further ones are counted */
	PORT_GID_TABLE_MAX = 512, /* table entries read per port */
};

struct gid {
	unsigned index;
	struct address address; /* Ethernet: the IP address in the GID; InfiniBand: the GID */
	char type[SYSFS_TEXT_SIZE];
	char netdev[SYSFS_TEXT_SIZE];
};

struct port {
	unsigned number;
	bool active;
	bool managed;			      /* InfiniBand: a subnet manager has configured it */
	char state[SYSFS_TEXT_SIZE];	      /* "ACTIVE", "DOWN" */
	char physical_state[SYSFS_TEXT_SIZE]; /* "LinkUp", "Polling", "Disabled" */
	uint16_t partition;		      /* P_Key 0, used by all connections; 0 if unknown */
	char link_layer[SYSFS_TEXT_SIZE];     /* "InfiniBand", "Ethernet" */
	char rate[SYSFS_TEXT_SIZE];
	char netdev[SYSFS_TEXT_SIZE]; /* its interface; "" if unknown */
	uint32_t mtu;		      /* the active MTU, set by route.c; 0 if unknown */
	char roce[SYSFS_TEXT_SIZE];   /* the connections' GID type, if configfs has it; else "" */
	struct gid gids[PORT_GIDS_MAX];
	unsigned gid_count;
	unsigned gids_left_out;
	bool gids_full; /* Ethernet: no entry of the table is free */
};

struct device {
	struct device *next;
	char name[SYSFS_TEXT_SIZE];
	char driver[SYSFS_TEXT_SIZE]; /* the card's, or the module of a software device; "" if unknown */
	bool iwarp;		      /* a card, or siw */
	char firmware[SYSFS_TEXT_SIZE];
	struct port ports[DEVICE_PORTS_MAX + 1]; /* one spare element, never counted in port_count */
	unsigned port_count;
	bool ports_left_out;
	char bond[SYSFS_TEXT_SIZE]; /* the bond that has its interface; "" for none */

	bool elsewhere;	       /* soft-RoCE that works only in another network namespace */
	bool cannot_be_opened; /* its file cannot; set by kernel.c */

	/* Set by route.c. */
	unsigned address_count; /* local addresses with a passed ping over this device */
	char addresses[128];	/* the first of them, as a list */
	bool link_local;	/* it is a link-local one */
	struct error silence;	/* the first address whose ping failed, or passed only within this host (object) */
	char silent[SYSFS_TEXT_SIZE]; /* its interface */
	bool within_host;	      /* it reaches itself */
	bool may_work;		      /* an address passes, or may pass to another host */
	bool roce_v2;		      /* connections from one of them use RoCE v2 */
	const struct port *v1;	      /* a port whose connections use RoCE v1; NULL: none */
	bool registers;		      /* memory, though perhaps little */
	struct error memory;	      /* why no, or only little, memory can be registered */
};

/* The caller frees the list with devices_free(). */
struct device *devices_read(const char *root);
void devices_free(struct device *devices);

bool devices_is_rxe(const struct device *device);
struct device *devices_find(struct device *devices, const char *name);
/* The same, or a new one with only a name, as without /sys. NULL: no memory. */
struct device *devices_need(struct device **devices, const char *name);

/*
 * The port's GID for connections from this address, NULL without one, as on iWARP. Linux's RDMA CM uses one GID type
 * per port: RoCE v2 if the device supports it, unless configfs has another.
 */
const struct gid *devices_gid(const struct port *port, const struct address *address);

/* Whether no GID of the port has that type: then the error says so, with the remedy. False if unknown. */
bool devices_lacks_mode(const struct device *device, const struct port *port, struct error *error);

/* The port's and its interface's facts for remedy_find(). */
unsigned devices_facts(const struct port *port);
