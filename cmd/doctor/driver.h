/* SPDX-License-Identifier: BSD-2-Clause */
/* Which parts one RDMA device needs: the card's driver, the module that adds RDMA to it, the library in user space. */
#ifndef CMD_DOCTOR_DRIVER_H
#define CMD_DOCTOR_DRIVER_H

#include <stdbool.h>

#include "cmd/doctor/sysfs.h"

/* The names are in it, and not pointed to: a pointer costs the loader more than they are long. */
struct driver {
	char card[12];	   /* the PCI driver; "" of a device in software */
	char module[15];   /* gives the card its RDMA device */
	char provider[11]; /* of libibverbs: "mlx5" */
	bool always;	   /* every card of that driver is made for RDMA */
};

enum {
	DRIVER_CARDS = 16
};

/* The cards, then the two devices in software. */
extern const struct driver driver_table[DRIVER_CARDS + 2];
#define driver_rxe (&driver_table[DRIVER_CARDS])
#define driver_siw (&driver_table[DRIVER_CARDS + 1])

/* The row of a PCI driver, or NULL. */
const struct driver *driver_of_card(const char *card);

enum provider_state {
	PROVIDER_UNKNOWN, /* the library's folder is not known, or the program has it inside */
	PROVIDER_FOUND,
	PROVIDER_NO_FILE,   /* no /etc/libibverbs.d/NAME.driver */
	PROVIDER_NO_LIBRARY /* no libNAME-rdmav*.so */
};

/*
 * What libibverbs has loaded is found wherever it was. What it has not is looked for where it looks usually. file gets
 * the name of the library.
 */
enum provider_state provider_find(const char *root, const char *provider, char file[SYSFS_NAME_SIZE]);

#endif
