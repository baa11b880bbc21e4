/* SPDX-License-Identifier: BSD-2-Clause */
/* The RDMA devices, as /sys/class/infiniband has them. */
#ifndef CMD_DOCTOR_SURVEY_H
#define CMD_DOCTOR_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/doctor/driver.h"
#include "cmd/doctor/sysfs.h"
#include "core/address.h"

enum {
	SURVEY_DEVICES_MOST = 64,
	SURVEY_PORTS_MOST = 8,
	SURVEY_GIDS_MOST = 16,	     /* kept of a port; the others are counted */
	SURVEY_GID_TABLE_MOST = 512, /* entries looked at */
	SURVEY_WORD_SIZE = 32,
};

struct gid {
	unsigned index;
	struct address address; /* the IP address in it, or on InfiniBand the GID itself */
	char type[SURVEY_WORD_SIZE];
	char netdev[SURVEY_WORD_SIZE];
};

struct port {
	unsigned number;
	bool active;
	bool initialising;
	char state[SURVEY_WORD_SIZE]; /* "ACTIVE", "DOWN" */
	char physical_state[SURVEY_WORD_SIZE];
	char link_layer[SURVEY_WORD_SIZE]; /* "InfiniBand", "Ethernet" */
	char rate[SURVEY_WORD_SIZE];
	uint32_t mtu; /* the active one; 0 while nothing has told it */
	struct gid gids[SURVEY_GIDS_MOST];
	unsigned gid_count;
	unsigned gids_left_out;
};

struct device {
	struct device *next;
	const struct driver *driver; /* NULL if unknown */
	char name[SYSFS_NAME_SIZE];
	char card[SYSFS_NAME_SIZE];   /* its PCI driver, "" if there is none */
	char verbs[SYSFS_NAME_SIZE];  /* "uverbs0", "" if there is none */
	char netdev[SYSFS_NAME_SIZE]; /* "" if unknown */
	char firmware[SURVEY_WORD_SIZE];
	struct port ports[SURVEY_PORTS_MOST + 1]; /* the last one is never counted */
	unsigned port_count;
	bool ports_left_out;

	/* Filled by who looks for the local addresses that lead to it. */
	unsigned address_count;
	char addresses[128]; /* some of them */
};

/* Owned by the caller, and freed by survey_free(). */
struct device *survey_read(const char *root);
void survey_free(struct device *devices);

struct device *survey_find(struct device *devices, const char *name);

/* The GID that connections from that address use: of RoCE v2, else any. NULL if there is none, as on iWARP. */
const struct gid *survey_gid(const struct port *port, const struct address *address);

#endif
