/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/rejection.h"

const char *rejection_text(int reason)
{
	switch (reason) {
	case 1:
		return "the peer has no queue pair left";
	case REJECTED_NO_RESOURCES:
		return "the peer is out of resources";
	case REJECTED_TIMEOUT:
		return "the peer's connection manager timed out";
	case 5:
	case 35:
		return "the peer does not support the request";
	case REJECTED_INVALID_ID:
	case 7:
		return "the peer does not know the connection";
	case REJECTED_NO_LISTENER:
		return "nobody listens there";
	case REJECTED_TRANSPORT:
		return "the peer does not support the kind of transport";
	case REJECTED_STALE:
		return "the peer still has an older connection of this queue pair";
	case REJECTED_GID:
	case 13:
		return "the peer does not accept the address";
	case REJECTED_MTU:
		return "the peer does not accept the path MTU";
	case REJECTED_BY_CONSUMER:
		return "refused by the peer";
	default:
		return "the peer's connection manager refused";
	}
}
