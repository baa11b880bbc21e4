/* SPDX-License-Identifier: BSD-2-Clause */
/* Our addresses as sockaddrs of librdmacm: AF_INET, AF_INET6, and for a native GID AF_IB with a service id. */
#include <endian.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/verbs/verbs.h"

enum {
	PKEY_DEFAULT = 0xffff
};

/* A struct sockaddr_ib has its address where a struct sockaddr_in6 has it. */
_Static_assert(offsetof(struct sockaddr_ib, sib_addr) == offsetof(struct sockaddr_in6, sin6_addr), "another place");

struct sockaddr *verbs_socket_address(const struct address *address, const struct endpoint_options *options,
				      struct sockaddr_storage *socket_address)
{
	struct sockaddr_ib *native = (struct sockaddr_ib *)socket_address;

	if (address->family == ADDRESS_NONE)
		return NULL;
	address_to_socket(address, socket_address);
	if (HAS_GIDS && address->family == ADDRESS_GID) {
		native->sib_family = AF_IB;
		native->sib_pkey = htobe16(PKEY_DEFAULT);
		native->sib_scope_id = address->scope;
		/* The service id of a port, and a mask of its significant bits, as rdma_getaddrinfo(3) builds them. */
		native->sib_sid = htobe64(((uint64_t)options->port_space << 16) + address->port);
		native->sib_sid_mask = htobe64(RDMA_IB_IP_PS_MASK | (address->port ? RDMA_IB_IP_PORT_MASK : 0));
	}
	return (struct sockaddr *)socket_address;
}

void verbs_address(const struct sockaddr *socket_address, struct address *address)
{
	const struct sockaddr_ib *native = (const struct sockaddr_ib *)socket_address;

	address_from_socket(socket_address, address);
	if (HAS_GIDS && native->sib_family == AF_IB) {
		address->family = ADDRESS_GID;
		address->port = (uint16_t)be64toh(native->sib_sid);
		memcpy(address->bytes, native->sib_addr.sib_raw, sizeof(address->bytes));
	}
}
