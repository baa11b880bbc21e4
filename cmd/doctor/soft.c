/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport soft, which connects to itself at a loopback address. */
#include "cmd/doctor/doctor.h"
#include "core/interface.h"

enum {
	LOOPBACK_TRIED = 16, /* 127.0.0.1 and following: each soft process needs its own address */
};

static void soft_finish(struct doctor *doctor, bool connected)
{
	char host[ADDRESS_TEXT_SIZE];

	if (!connected && doctor->soft)
		finding_probe_failed(doctor, doctor->soft);
	soft_stop(doctor);
	if (connected)
		finding_add(doctor, FINDING_OK, "soft", "--transport soft works at %s and needs no RDMA device",
			    address_host(&doctor->soft_address, host));
	else
		finding_add_error(doctor, doctor->soft_failure, "soft", &doctor->probe.errors.first);
	if (connected && doctor->soft_failure == FINDING_FAIL)
		doctor->environment->transport = doctor->soft;
	doctor->next(doctor);
}

/* Of both ends. */
static void soft_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct doctor *doctor = context;
	enum outcome outcome = OUTCOME_OK;

	switch (event->kind) {
	case EVENT_REQUEST:
		endpoint = doctor->soft_ends[SOFT_SERVER] = event->request;
		endpoint->handlers = doctor->soft_ends[SOFT_LISTENER]->handlers;
		endpoint->context = doctor;
		outcome = endpoint_create_qp(endpoint);
		if (!outcome)
			outcome = endpoint_accept(endpoint, NULL, 0);
		break;
	case EVENT_ADDRESS_RESOLVED:
		outcome = endpoint_create_qp(endpoint);
		break;
	case EVENT_ROUTE_RESOLVED:
		outcome = endpoint_connect(endpoint, NULL, 0);
		break;
	default:
		if (endpoint == doctor->soft_ends[SOFT_CLIENT] || event->kind == EVENT_FAILED)
			soft_finish(doctor, event->kind == EVENT_ESTABLISHED);
		return;
	}
	if (outcome)
		soft_finish(doctor, false);
}

static enum outcome soft_start(struct doctor *doctor)
{
	static const struct endpoint_handlers handlers = { .event = soft_event };
	const struct endpoint_options options = {
		.port_space = PORT_SPACE_TCP,
		.timeout = doctor->options->common.timeout,
		.send_depth = 1,
		.receive_depth = 1,
	};
	struct endpoint **ends = doctor->soft_ends;
	struct address *address = &doctor->soft_address;
	enum outcome outcome = OUTCOME_FAILED;

	for (uint8_t last = 1; outcome && last <= LOOPBACK_TRIED; last++) {
		*address = (struct address){ .family = ADDRESS_IP4, .bytes = { 127, 0, 0, last } };
		endpoint_destroy(ends[SOFT_LISTENER]);
		outcome = endpoint_create(ENDPOINT_LISTENER, doctor->soft_channel, &options, &handlers, doctor,
					  &ends[SOFT_LISTENER]);
		if (outcome)
			return outcome;
		outcome = endpoint_listen(ends[SOFT_LISTENER], address);
		if (outcome)
			finding_probe_failed(doctor, doctor->soft);
	}
	if (!outcome)
		outcome = endpoint_create(ENDPOINT_CONNECTION, doctor->soft_channel, &options, &handlers, doctor,
					  &ends[SOFT_CLIENT]);
	if (outcome)
		return outcome;
	return endpoint_resolve(ends[SOFT_CLIENT], address, &ends[SOFT_LISTENER]->local);
}

void soft_check(struct doctor *doctor, doctor_step *next)
{
	enum outcome outcome;

	if (doctor->rxe_holds_port && doctor->soft_failure != FINDING_FAIL) {
		finding_add(doctor, FINDING_OK, "soft",
			    "this kernel's soft-RoCE holds UDP port 4791, which --transport soft needs too");
		next(doctor);
		return;
	}
	outcome = doctor_open(doctor, "soft", &doctor->soft, &doctor->soft_channel);
	doctor->next = next;
	if (!outcome && interface_is_down("lo")) {
		/* Another host may answer. */
		finding_add(doctor, FINDING_WARN, "soft",
			    "this host cannot send to itself: the interface lo is down\n%s",
			    remedy_find(PROBLEM_LOOPBACK, doctor->facts, NULL, NULL).text);
		if (doctor->soft_failure == FINDING_FAIL)
			doctor->environment->transport = doctor->soft;
		next(doctor);
		return;
	}
	if (!outcome)
		outcome = soft_start(doctor);
	if (outcome == OUTCOME_USAGE) /* soft is not built in */
		next(doctor);
	else if (outcome)
		soft_finish(doctor, false);
}

void soft_stop(struct doctor *doctor)
{
	for (size_t i = 0; i < SOFT_ENDS; i++) {
		endpoint_destroy(doctor->soft_ends[i]);
		doctor->soft_ends[i] = NULL;
	}
}
