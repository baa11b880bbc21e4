/* SPDX-License-Identifier: BSD-2-Clause */
/* What a problem's cause and remedy are in view of the facts. A remedy that cannot work is not offered. */
#ifndef CMD_DOCTOR_REMEDY_H
#define CMD_DOCTOR_REMEDY_H

enum {
	REMEDY_SIZE = 256
};

/* "@" in their rows is the name given here. */
enum problem {
	PROBLEM_NONE,	      /* no cause and no remedy is known */
	PROBLEM_ADDRESS,      /* no address leads to a device; @: its interface */
	PROBLEM_PORT,	      /* a port is not active; @: its interface */
	PROBLEM_MODULES,      /* not loaded; @: their names */
	PROBLEM_MODULE_ORDER, /* ib_uverbs was loaded after rdma_cm */
	PROBLEM_NO_MODULES,   /* none that could be loaded */
	PROBLEM_MEMORY,	      /* the limit of locked memory */
	PROBLEM_PROVIDER,     /* no library for a device */
	PROBLEM_NO_DEVICE,    /* @: an interface for a software device */
	PROBLEM_UDP_PORT,     /* soft-RoCE holds it; @: one of its devices */
	PROBLEM_LENGTH,	      /* long packets are lost */
	PROBLEM_LOOPBACK,     /* the loopback interface is down */
};

enum fact {
	/* The process. */
	FACT_CONTAINER = 1 << 0, /* privileges_in_container() */
	FACT_ADMIN = 1 << 1,	 /* root here may change interfaces */
	FACT_DEBIAN = 1 << 2,
	FACT_FEDORA = 1 << 3,
	FACT_FIRST_NETWORK = 1 << 4, /* the network namespace of process 1, or unknown */

	/* The interface of a device or port. */
	FACT_NAMED = 1 << 5, /* also of others: the name is known */
	FACT_HERE = 1 << 6,  /* in this network namespace */
	FACT_NAMESAKE = 1 << 7,
	FACT_UP = 1 << 8,
	FACT_LINK = 1 << 9,
	FACT_ADDRESS = 1 << 10, /* has one that is not link-local */
	FACT_TUNNEL = 1 << 11,	/* has no link-layer address */
	FACT_VRF = 1 << 12,

	/* A device or port. */
	FACT_NO_CM = 1 << 13,  /* its driver does not support the RDMA CM */
	FACT_USABLE = 1 << 14, /* another device is */
	FACT_INFINIBAND = 1 << 15,
	FACT_INIT = 1 << 16, /* the port waits for a subnet manager */

	/* Others. */
	FACT_MAY_RAISE = 1 << 17, /* the hard limit of locked memory is unlimited */
	FACT_RXE = 1 << 18,	  /* the kernel may have the module */
	FACT_SIW = 1 << 19,
	FACT_EXCLUSIVE = 1 << 20, /* network namespaces do not share devices */
};

struct remedy {
	char cause[REMEDY_SIZE];
	char text[REMEDY_SIZE]; /* "" for none */
};

/* name may be NULL or "", else facts gets FACT_NAMED. */
struct remedy remedy_find(enum problem problem, unsigned facts, const char *name);

#endif
