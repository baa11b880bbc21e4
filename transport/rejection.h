/* SPDX-License-Identifier: BSD-2-Clause */
/* The reasons of a REJ: IBTA volume 1, 12.6.7.2. */
#ifndef TRANSPORT_REJECTION_H
#define TRANSPORT_REJECTION_H

/* Those that we send or decide by. */
enum rejection {
	REJECTED_NO_RESOURCES = 3,
	REJECTED_TIMEOUT = 4,
	REJECTED_INVALID_ID = 6,
	REJECTED_NO_LISTENER = 8, /* invalid service ID */
	REJECTED_TRANSPORT = 9,
	REJECTED_STALE = 10,
	REJECTED_GID = 12,
	REJECTED_MTU = 26,	   /* information: mtu_code() of an acceptable MTU */
	REJECTED_BY_CONSUMER = 28, /* the peer's program rejected, with private data */
};

/* Returns the text of a reason, or of an unknown one. */
const char *rejection_text(int reason);

#endif
