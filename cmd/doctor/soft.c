/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport soft, which pings itself at a loopback address. */
#include <stdlib.h>

#include "cmd/doctor/doctor.h"
#include "core/interface.h"
#include "core/route_cause.h"

enum {
	LOOPBACK_TRIED = 16, /* 127.0.0.1 and following: each soft process needs its own address */
};

static enum outcome ping_itself(struct doctor *doctor, struct address *address)
{
	enum outcome outcome = OUTCOME_FAILED;

	for (uint8_t last = 1; outcome && last <= LOOPBACK_TRIED; last++) {
		*address = (struct address){ .family = ADDRESS_IP4, .bytes = { 127, 0, 0, last } };
		outcome = probe_itself(doctor, doctor->soft, address, doctor->options->common.timeout);
		if (*doctor->pinged)
			break;
	}
	return outcome;
}

bool soft_warn_card(struct doctor *doctor, const char *interface)
{
	char device[SYSFS_TEXT_SIZE];

	if (!host_find_card(interface, device))
		return false;
	finding_add(doctor, FINDING_WARN, "soft",
		    "the RDMA device %s may take UDP port 4791 of %s from the kernel: use verbs", device, interface);
	return true;
}

/* The ping has passed over the loopback interface. */
static void warn_any_card(struct doctor *doctor)
{
	struct interface_address *list;
	size_t count = interface_list(NULL, &list);

	for (size_t i = 0; i < count && !soft_warn_card(doctor, list[i].name); i++)
		;
	free(list);
}

void soft_check(struct doctor *doctor)
{
	struct address address;
	char host[ADDRESS_TEXT_SIZE], why[ROUTE_CAUSE_SIZE];
	enum outcome outcome;

	if (doctor->rxe_holds_port) {
		finding_add(doctor, FINDING_READ, "soft",
			    "not usable here: soft-RoCE in this kernel has UDP port 4791");
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
		outcome = ping_itself(doctor, &address);
		if (!outcome)
			finding_add(doctor, FINDING_PINGED, "soft",
				    "--transport soft works at %s and needs no RDMA device",
				    address_host(&address, host));
	}
	if (outcome)
		finding_add_error(doctor, doctor->verbs_selected ? FINDING_WARN : FINDING_FAIL, "soft",
				  &doctor->probe.errors.first);
	else if (!doctor->verbs_selected)
		doctor->run->transport = doctor->soft;
	if (!doctor->verbs_selected && !doctor->options->address)
		warn_any_card(doctor);
	if (!doctor->verbs_selected && route_cause_port(&(struct address){ 0 }, why))
		finding_add(doctor, FINDING_WARN, "address", "%s", why);
}
