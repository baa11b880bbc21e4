/* SPDX-License-Identifier: BSD-2-Clause */
/* One soft transport on the simulated network, for tests of its parts. */
#ifndef TEST_NETWORK_STACK_H
#define TEST_NETWORK_STACK_H

#include "transport/soft/net/icrc_state.h"
#include "transport/soft/net/socket.h"

struct soft_transport *stack_open(void);
void stack_close(struct soft_transport *transport);
/* Its socket at an address, opened if need be. */
struct soft_socket *stack_socket(struct soft_transport *transport, const struct address *address);

extern const struct icrc_pending icrc_good;

#endif
