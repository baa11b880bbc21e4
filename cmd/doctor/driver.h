/* SPDX-License-Identifier: BSD-2-Clause */
/* The drivers of an RDMA device: the card's PCI driver, the RDMA module, and the libibverbs provider. */
#ifndef CMD_DOCTOR_DRIVER_H
#define CMD_DOCTOR_DRIVER_H

#include <stdbool.h>

#include "core/sysfs.h"

/* The names are arrays: a pointer with its relocation would need more space than the name. */
struct driver {
	char card[12];	   /* PCI driver; "" of a software device */
	char module[15];   /* kernel module that creates the RDMA device */
	char provider[11]; /* libibverbs provider, as in "libmlx5-rdmav34.so" */
	bool always;	   /* every card of this PCI driver supports RDMA */
	bool no_cm;	   /* the RDMA CM does not support its devices */
};

enum {
	DRIVER_CARDS = 16
};

/* The cards, then the two software devices. */
extern const struct driver driver_table[DRIVER_CARDS + 2];
#define driver_rxe (&driver_table[DRIVER_CARDS])
#define driver_siw (&driver_table[DRIVER_CARDS + 1])

/* The row of a PCI driver, or NULL. */
const struct driver *driver_of_card(const char *card);

enum provider_state {
	PROVIDER_UNKNOWN, /* libibverbs is not a mapped file: linked statically, or /proc is not readable */
	PROVIDER_FOUND,
	PROVIDER_NO_FILE,   /* no /etc/libibverbs.d/NAME.driver */
	PROVIDER_NO_LIBRARY /* no libNAME-rdmav*.so */
};

/*
 * Looks for the provider among the mapped files of this process, then in the directory libibverbs next to
 * libibverbs.so. file gets the name of the provider's library.
 */
enum provider_state provider_find(const char *root, const char *provider, char file[SYSFS_TEXT_SIZE]);

#endif
