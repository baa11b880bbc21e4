/* SPDX-License-Identifier: BSD-2-Clause */
/* A soft transport on the simulated network. */
#pragma once

#include "transport/soft/net/socket.h"

struct soft_transport *stack_open(void);
void stack_close(struct soft_transport *transport);
/* Returns the socket at the address, and opens it if needed. */
struct soft_socket *stack_socket(struct soft_transport *transport, const struct address *address);
