/* SPDX-License-Identifier: BSD-2-Clause */
/* A problem's cause and remedy in view of the facts. A remedy that cannot work is not offered. */
#pragma once

enum {
	REMEDY_SIZE = 256
};

/* "@" in their rows is the name given here. */
enum problem {
	PROBLEM_NONE,	      /* no cause and no remedy is known */
	PROBLEM_ADDRESS,      /* no address leads to a device; @: its interface */
	PROBLEM_PORT,	      /* a port is not active; @: its interface */
	PROBLEM_VIRTUAL,      /* the port of a virtual function is down */
	PROBLEM_MODULES,      /* not loaded; @: their names */
	PROBLEM_MODULE_ORDER, /* ib_uverbs was loaded after rdma_cm */
	PROBLEM_NO_MODULES,   /* the kernel has none to load */
	PROBLEM_MEMORY,	      /* the limit of locked memory */
	PROBLEM_NO_DEVICE,    /* @: an interface for a software device */
	PROBLEM_RXE,	      /* soft-RoCE has the port of the transport soft */
	PROBLEM_FILE,	      /* @: the path of a device file */
	PROBLEM_LOOPBACK,     /* the loopback interface is down */
};

enum fact {
	/* The process: remedy_facts(). */
	FACT_CONTAINER = 1 << 0,   /* privileges_in_container() */
	FACT_PRIVATE_DEV = 1 << 1, /* privileges_dev_is_private() */
	FACT_ADMIN = 1 << 2,	   /* root here may change interfaces */
	FACT_MODULES = 1 << 3,	   /* root here may load modules */
	FACT_MKNOD = 1 << 4,	   /* root here may make device files */
	FACT_LIMITS = 1 << 5,	   /* root here may raise limits */
	FACT_ROOT = 1 << 6,

	/* The interface of a device or port. */
	FACT_NAMED = 1 << 7, /* also of others: the name is known */
	FACT_HERE = 1 << 8,  /* in this network namespace */
	FACT_NAMESAKE = 1 << 9,
	FACT_UP = 1 << 10,
	FACT_LINK = 1 << 11,
	FACT_ADDRESS = 1 << 12, /* has one that is not link-local */
	FACT_TUNNEL = 1 << 13,	/* has no link-layer address */
	FACT_VRF = 1 << 14,

	/* A device or port. The last six are InfiniBand's, but for FACT_NO_GUID. */
	FACT_NO_CM = 1 << 15,  /* the driver does not support the RDMA CM */
	FACT_USABLE = 1 << 16, /* another device is usable */
	FACT_INFINIBAND = 1 << 17,
	FACT_UNMANAGED = 1 << 18, /* no subnet manager has found it */
	FACT_INACTIVE = 1 << 19,  /* waits for the subnet manager */
	FACT_DISABLED = 1 << 20,
	FACT_NO_GUID = 1 << 21,	 /* a node without: librdmacm does not find it */
	FACT_SLOW = 1 << 22,	 /* one lane, or the lowest speed */
	FACT_NO_IPOIB = 1 << 23, /* its interfaces' module is not loaded */

	/* The kernel and its limits. */
	FACT_FIRST_NETWORK = 1 << 24, /* the kernel's own network namespace, or unknown */
	FACT_EXCLUSIVE = 1 << 25,     /* network namespaces do not share devices */
	FACT_RXE = 1 << 26,	      /* the kernel may have the module */
	FACT_SIW = 1 << 27,
	FACT_APART = 1 << 28,  /* an old kernel, which may use RoCE only in its own network namespace */
	FACT_UBUNTU = 1 << 29, /* its kernel, with most modules in a separate package */
	FACT_SEALED = 1 << 30, /* no module can be loaded or unloaded until the next boot */

	/* A device file. Same bits as an interface or port. */
	FACT_NUMBER = 1 << 8, /* the device's number is known */
	FACT_MISSING = 1 << 9,
	FACT_STALE = 1 << 10,	  /* not a device, or another one */
	FACT_REFUSED = 1 << 11,	  /* by a control group's device rules */
	FACT_FORBIDDEN = 1 << 12, /* by the file's mode */
	FACT_FOREIGN = 1 << 13,	  /* the same, and no user here owns it */
	FACT_NODEV = 1 << 14,	  /* by the file system's mount option */
	FACT_LABELLED = 1 << 15,  /* by SELinux or AppArmor, the only cause left */

	/* The locked memory limit. Same bits again. */
	FACT_SLURM = 1 << 8, /* a Slurm job */
	FACT_PBS = 1 << 9,
	FACT_ALLOWED = 1 << 10,	  /* limits.conf has a higher one */
	FACT_MAY_RAISE = 1 << 11, /* the hard limit is unlimited */

	/* Modules. Same bits again. */
	FACT_ABSENT = 1 << 8, /* missing from this kernel's files */
	FACT_GONE = 1 << 9,   /* another kernel has files, and this one has none */
};

/*
 * The remedy, "" for none. For PROBLEM_ADDRESS the cause comes first, to be appended to the finding's text, and the
 * remedy is on its own line.
 */
struct remedy {
	char text[REMEDY_SIZE];
};

/* The process's facts. */
unsigned remedy_facts(void);

/*
 * name may be NULL or "", else facts gets FACT_NAMED. number replaces "#": for PROBLEM_FILE mknod(1)'s "10 124", for
 * PROBLEM_PORT the port number, with FACT_UNMANAGED its GUID, else the kernel release.
 */
struct remedy remedy_find(enum problem problem, unsigned facts, const char *name, const char *number);
