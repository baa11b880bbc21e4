/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport soft, which connects to itself at a loopback address. */
#include "cmd/doctor/doctor.h"
#include "core/interface.h"

enum {
	LOOPBACK_TRIED = 16, /* 127.0.0.1 and following: each soft process needs its own address */
};

static enum outcome listen_at_loopback(struct doctor *doctor, struct endpoint **listener, struct address *address)
{
	enum outcome outcome = OUTCOME_FAILED;

	for (uint8_t last = 1; outcome && last <= LOOPBACK_TRIED; last++) {
		*address = (struct address){ .family = ADDRESS_IP4, .bytes = { 127, 0, 0, last } };
		endpoint_destroy(*listener);
		outcome = probe_create(doctor, ENDPOINT_LISTENER, doctor->soft_channel, PORT_SPACE_TCP, listener);
		if (outcome)
			return outcome;
		outcome = endpoint_listen(*listener, address);
		if (outcome)
			probe_failed(doctor, doctor->soft);
		else
			doctor->probe.errors.count = 0; /* of addresses in use */
	}
	return outcome;
}

static enum outcome connect_to_itself(struct doctor *doctor, struct address *address)
{
	struct endpoint *listener = NULL, *client = NULL;
	enum outcome outcome = listen_at_loopback(doctor, &listener, address);

	if (!outcome)
		outcome = probe_create(doctor, ENDPOINT_CONNECTION, doctor->soft_channel, PORT_SPACE_TCP, &client);
	if (!outcome)
		outcome = endpoint_resolve(client, address, &listener->local);
	if (!outcome)
		outcome = probe_wait(doctor, EVENT_ROUTE_RESOLVED);
	if (!outcome)
		outcome = endpoint_create_qp(client);
	if (!outcome)
		outcome = endpoint_connect(client, NULL, 0);
	if (!outcome)
		outcome = probe_wait(doctor, EVENT_REQUEST);
	if (!outcome)
		outcome = endpoint_create_qp(doctor->probe.request);
	if (!outcome)
		outcome = endpoint_accept(doctor->probe.request, NULL, 0);
	if (!outcome)
		outcome = probe_wait(doctor, EVENT_ESTABLISHED);
	probe_failed(doctor, doctor->soft);
	endpoint_destroy(doctor->probe.request);
	endpoint_destroy(client);
	endpoint_destroy(listener);
	return outcome;
}

void soft_check(struct doctor *doctor)
{
	struct address address;
	char host[ADDRESS_TEXT_SIZE];
	enum outcome outcome;

	if (doctor->rxe_holds_port) {
		finding_add(doctor, FINDING_OK, "soft",
			    "this kernel's soft-RoCE holds UDP port 4791, which --transport soft needs too");
		return;
	}
	outcome = probe_open(doctor, "soft", &doctor->soft, &doctor->soft_channel);
	if (outcome == OUTCOME_USAGE) /* soft is not built in */
		return;
	if (!outcome && interface_is_down("lo")) { /* another host may answer */
		finding_add(doctor, FINDING_WARN, "soft",
			    "this host cannot send to itself: the interface lo is down\n%s",
			    remedy_find(PROBLEM_LOOPBACK, doctor->host.facts, NULL, NULL).text);
	} else if (!outcome) {
		outcome = connect_to_itself(doctor, &address);
		if (!outcome)
			finding_add(doctor, FINDING_OK, "soft", "--transport soft works at %s and needs no RDMA device",
				    address_host(&address, host));
	}
	if (outcome)
		finding_add_error(doctor, doctor->verbs_selected ? FINDING_WARN : FINDING_FAIL, "soft",
				  &doctor->probe.errors.first);
	else if (!doctor->verbs_selected)
		doctor->environment->transport = doctor->soft;
}
