/* SPDX-License-Identifier: BSD-2-Clause */
/* The rdma-core backend: open, close and the reaper. */
#include "transport/verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

/* Frees endpoints before the regions and domains that they use. */
static void reap(void *context)
{
	struct verbs_transport *transport = context;

	while (transport->destroyed_endpoints) {
		struct verbs_endpoint *endpoint = transport->destroyed_endpoints;

		transport->destroyed_endpoints = endpoint->next;
		verbs_endpoint_free(endpoint);
	}
	while (transport->destroyed_regions) {
		struct verbs_region *region = transport->destroyed_regions;

		transport->destroyed_regions = region->next;
		verbs_region_free(region);
	}
	if (WITH_DIAGNOSTICS)
		verbs_domains_reap(transport);
}

static enum outcome verbs_open(struct loop *loop, const struct log *log, struct error *reason,
			       struct transport **transport)
{
	struct verbs_transport *verbs = calloc(1, sizeof(*verbs));

	if (verbs)
		verbs->slots = calloc(VERBS_SLOTS_MAX, sizeof(*verbs->slots));
	if (!verbs || !verbs->slots) {
		free(verbs);
		return verbs_error_resources(reason, NULL, "opening the transport", ENOMEM);
	}
	verbs->base.loop = loop;
	verbs->base.log = log;
	verbs->reap = reap;
	*transport = &verbs->base;
	return OUTCOME_OK;
}

static void verbs_close(struct transport *transport)
{
	struct verbs_transport *verbs = verbs_of(transport);

	for (uint32_t slot = 0; slot < verbs->slot_count; slot++)
		if (verbs->slots[slot].endpoint)
			endpoint_destroy(&verbs->slots[slot].endpoint->base);
	reap(verbs);
	loop_timer_stop(&verbs->reaper);
	while (verbs->domains)
		verbs_domain_destroy(verbs->domains);
	if (WITH_REPORT)
		verbs_counters_free(verbs);
	while (verbs->names) {
		struct verbs_name *name = verbs->names;

		verbs->names = name->next;
		free(name);
	}
	while (verbs->channels) {
		struct verbs_channel *channel = verbs->channels;

		verbs->channels = channel->next;
		verbs_channel_free(channel);
	}
	free(verbs->slots);
	free(verbs);
}

const struct backend verbs_backend = {
	.name = "verbs",
	.opens_devices = true,
	.open = verbs_open,
	.close = TRANSPORT_CLEANS_UP ? verbs_close : NULL,
	.channel_create = verbs_channel_create,
	.region_create = verbs_region_create,
	.region_destroy = verbs_region_destroy,
	.endpoint_create = verbs_endpoint_create,
	.endpoint_destroy = verbs_endpoint_destroy,
	.listen = verbs_listen,
	.resolve = verbs_resolve,
	.create_qp = verbs_create_qp,
	.connect = verbs_connect,
	.accept = verbs_accept,
	.reject = verbs_reject,
	.disconnect = verbs_disconnect,
	.join = verbs_join,
	.post = verbs_post,
	.migrate = verbs_migrate,
	.check_path = WITH_EXTRAS ? verbs_check_path : NULL,
	.source_fits = WITH_EXTRAS ? verbs_source_fits : NULL,
	.source_path = WITH_EXTRAS ? verbs_source_path : NULL,
	.local_addresses = WITH_EXTRAS ? path_local_addresses : NULL,
	.path = WITH_REPORT || COMMAND_doctor ? verbs_path : NULL,
	.counters = WITH_REPORT ? verbs_counters_update : NULL,
	.timeout_cause = WITH_DIAGNOSTICS ? verbs_timeout_cause : NULL,
#if WITH_EXTRAS
	.unsupported = {
		[FEATURE_MTU] = "the connection manager takes it from the port: set the MTU of the interface",
	},
#endif
};
