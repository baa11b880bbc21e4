/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/stack.h"

#include "test/unit/unit.h"
#include "transport/soft/soft.h"

struct soft_transport *stack_open(void)
{
	static const struct log quiet = { .name = "test" };
	struct transport *transport;

	assert_int_equal(transport_open("soft", NULL, &quiet, &(struct error){ 0 }, &transport), OUTCOME_OK);
	return soft_of(transport);
}

void stack_close(struct soft_transport *transport)
{
	soft_backend.close(&transport->base);
}

struct soft_socket *stack_socket(struct soft_transport *transport, const struct address *address)
{
	const struct endpoint endpoint = { .transport = &transport->base, .name = "test", .options.path = &path_unset };
	struct soft_path path;

	assert_int_equal(soft_path_find(&endpoint, address, address, &path), OUTCOME_OK);
	return path.socket;
}
