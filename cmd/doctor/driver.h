/* SPDX-License-Identifier: BSD-2-Clause */
/* Which parts one RDMA device needs: the card's driver, the module that adds RDMA to it, the library in user space. */
#ifndef CMD_DOCTOR_DRIVER_H
#define CMD_DOCTOR_DRIVER_H

#include <stdbool.h>

#include "cmd/doctor/machine.h"

struct driver {
	const char *card;     /* the PCI driver; NULL of a device in software */
	const char *module;   /* gives the card its RDMA device */
	const char *provider; /* of libibverbs: "mlx5" */
	bool always;	      /* every card of that driver is made for RDMA */
};

/* The table ends with a NULL provider. */
extern const struct driver driver_table[];
extern const struct driver driver_rxe, driver_siw;

/* The row of a PCI driver, or NULL. */
const struct driver *driver_of_card(const char *card);

enum provider_state {
	PROVIDER_UNKNOWN, /* the library's folder is not known, or the program has it inside */
	PROVIDER_FOUND,
	PROVIDER_NO_FILE,   /* no /etc/libibverbs.d/NAME.driver */
	PROVIDER_NO_LIBRARY /* no libNAME-rdmav*.so */
};

/* Looks where libibverbs looks. file gets the name of the library if it is found. */
enum provider_state provider_find(const char *root, const char *provider, char file[MACHINE_NAME_SIZE]);

#endif
