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
	case 14:
		return "the peer does not accept the service level";
	case 15:
		return "the peer does not accept the traffic class";
	case 16:
		return "the peer does not accept the hop limit";
	case 17:
		return "the peer does not accept the packet rate";
	case 18:
	case 19:
	case 20:
	case 21:
	case 22:
	case 23:
	case 33:
		return "the peer does not accept the alternate path";
	case 24:
	case 25:
		return "the peer redirects the connection, which is not supported";
	case REJECTED_MTU:
		return "the peer does not accept the path MTU";
	case 27:
		return "the peer has too few resources for RDMA READs";
	case REJECTED_BY_CONSUMER:
		return "refused by the peer";
	case 29:
		return "the peer does not accept the RNR retry count";
	case 30:
		return "the peer already has a connection of this identifier";
	case 31:
		return "the peer does not support this CM class version";
	case 32:
		return "the peer does not accept the flow label";
	default:
		return "the peer's connection manager refused";
	}
}
