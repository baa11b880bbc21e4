/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of delivery.c, for soft.c and the receiving call-backs. */
#ifndef TRANSPORT_SOFT_DELIVERY_H
#define TRANSPORT_SOFT_DELIVERY_H

#include "transport/soft/soft.h"

/* NULL when memory is short. */
struct soft_delivery *soft_delivery_open(struct soft_transport *transport);
void soft_delivery_close(struct soft_delivery *delivery);

/*
 * Every call-back of the loop that enters the backend calls soft_enter() first and soft_leave() last: the latter hands
 * up what was queued, acknowledges what was received, and sends.
 */
void soft_enter(struct soft_transport *transport);
void soft_leave(struct soft_transport *transport);

/* Something was queued outside of such a call-back: it leaves in the next turn of the loop. */
void soft_stir(struct soft_transport *transport);

/* Forgets what is queued for an endpoint that is being freed. */
void soft_delivery_forget(struct soft_endpoint *endpoint);

#endif
