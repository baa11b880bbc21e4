/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces device.c without WITH_DIAGNOSTICS: a failed or removed device ends its endpoints, and stays open until the
 * end of the run. Its asynchronous events are not read: they only explain other failures.
 */
#include <errno.h>
#include <fcntl.h>

#include "transport/verbs/verbs.h"

void verbs_watch(struct transport *transport, struct loop_io *io, int fd, loop_callback *callback, void *context)
{
	fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	loop_io_start(transport->loop, io, fd, callback, context);
}

void verbs_domain_failed(struct verbs_domain *domain, int error, const char *what)
{
	struct verbs_transport *transport = verbs_of(domain->base.transport);

	if (domain->base.removed)
		return;
	domain->base.removed = true;
	loop_io_stop(&domain->completion_readable);
	log_errno(transport->base.log, domain->base.device, error, "%s", what);
	for (uint32_t slot = 0; slot < transport->slot_count; slot++) {
		struct verbs_endpoint *endpoint = transport->slots[slot].endpoint;

		if (endpoint && endpoint->base.domain == &domain->base && endpoint->base.state < ENDPOINT_FAILED)
			endpoint_fail(&endpoint->base, OUTCOME_FAILED);
	}
}

void verbs_domain_removed(struct verbs_domain *domain)
{
	verbs_domain_failed(domain, ENODEV, "the device");
}

void verbs_domain_unplugged(struct verbs_domain *domain)
{
	verbs_domain_removed(domain);
}

void verbs_device_watch(struct verbs_domain *domain)
{
	(void)domain;
}

void verbs_device_bind(struct verbs_domain *domain, struct rdma_cm_id *id, const struct endpoint_options *options)
{
	(void)domain;
	(void)id;
	(void)options;
}

void verbs_device_release(struct verbs_domain *domain)
{
	(void)domain;
}
