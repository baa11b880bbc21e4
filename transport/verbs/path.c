/* SPDX-License-Identifier: BSD-2-Clause */
/* The device, port and GID of an id: checks them against the options and reports them. */
#include "transport/verbs/verbs.h"

#include <string.h>
#include <unistd.h>

#include "core/host.h"
#include "core/interface.h"
#include "core/route.h"

enum {
	OTHERS_SIZE = ERROR_CAUSE_SIZE / 2
};

static const char *device_name(const struct rdma_cm_id *id)
{
	return id->verbs->device->name;
}

/*
 * Returns the index of the source GID, or PATH_UNSET while librdmacm has no address vector. On RoCE two entries have
 * the same GID, one for v1 and one for v2: only the address vector has the index.
 */
static int64_t gid_index_of(const struct rdma_cm_id *id)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_RTR };
	int mask;

	if (rdma_init_qp_attr((struct rdma_cm_id *)(uintptr_t)id, &attributes, &mask) || !(mask & IBV_QP_AV) ||
	    !attributes.ah_attr.is_global)
		return PATH_UNSET;
	return attributes.ah_attr.grh.sgid_index;
}

/* Whether index is the source GID's; without an address vector, whether the port's entry there equals it. */
static bool has_gid(const struct rdma_cm_id *id, int64_t index)
{
	int64_t used = gid_index_of(id);
	union ibv_gid gid;

	if (used != PATH_UNSET)
		return used == index;
	return !ibv_query_gid(id->verbs, id->port_num, (int)index, &gid) &&
	       !memcmp(&gid, &id->route.addr.addr.ibaddr.sgid, sizeof(gid));
}

/* Returns the first option that the id does not fulfil, or NULL. */
static const char *unmet_option(const struct rdma_cm_id *id, const struct path_options *options)
{
	if (options->device && strcmp(options->device, device_name(id)) != 0)
		return "device";
	if (options->port != PATH_UNSET && options->port != id->port_num)
		return "port";
	if (options->gid_index != PATH_UNSET && !has_gid(id, options->gid_index))
		return "GID index";
	return NULL;
}

/* ---- what options name, and what there is instead ---- */

/* Whether the port has that entry in its GID table; else others gets the existing ones: "rxe0/1: 0 1". */
static bool port_has_gid(struct ibv_context *context, uint8_t port, int64_t wanted, char others[OTHERS_SIZE])
{
	struct ibv_port_attr attributes = { .gid_tbl_len = 0 };
	struct ibv_gid_entry entry;

	log_add(others, OTHERS_SIZE, "; ", "%s/%u:", ibv_get_device_name(context->device), port);
	ibv_query_port(context, port, &attributes);
	for (int i = 0; i < attributes.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(context, port, (uint32_t)i, &entry, 0))
			continue;
		if (i == wanted)
			return true;
		log_add(others, OTHERS_SIZE, " ", "%d", i);
	}
	return false;
}

/* Whether a device has the port and the GID index; if not, sets the error. others: earlier devices' entries. */
static enum outcome check_ports(struct ibv_context *context, const struct path_options *options, struct error *reason,
				char others[OTHERS_SIZE])
{
	struct ibv_device_attr device;

	if (ibv_query_device(context, &device))
		return OUTCOME_OK;
	if (options->port > device.phys_port_cnt) {
		error_set(reason, NULL, "no port %d here: %s has %u", (int)options->port, options->device,
			  device.phys_port_cnt);
		return OUTCOME_USAGE;
	}
	if (options->gid_index == PATH_UNSET)
		return OUTCOME_OK;
	for (unsigned port = 1; port <= device.phys_port_cnt; port++)
		if ((options->port == PATH_UNSET || options->port == port) &&
		    port_has_gid(context, (uint8_t)port, options->gid_index, others))
			return OUTCOME_OK;
	error_set(reason, NULL, "no GID index %d here: %s", (int)options->gid_index, others);
	return OUTCOME_USAGE;
}

/* The same for a device that may not be open. librdmacm reports one that cannot be opened. */
static enum outcome check_named(struct ibv_device *device, const struct path_options *options, struct error *reason,
				char others[OTHERS_SIZE])
{
	struct ibv_context *context =
		options->port == PATH_UNSET && options->gid_index == PATH_UNSET ? NULL : ibv_open_device(device);
	enum outcome outcome;

	if (!context)
		return OUTCOME_OK;
	outcome = check_ports(context, options, reason, others);
	ibv_close_device(context);
	return outcome;
}

enum outcome verbs_check_path(struct transport *transport, const struct path_options *options)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	char names[OTHERS_SIZE] = "", others[OTHERS_SIZE] = "";
	enum outcome outcome = OUTCOME_USAGE;
	bool found = false;

	for (struct ibv_device **device = devices; device && *device && outcome; device++) {
		const char *name = ibv_get_device_name(*device);

		if (!options->device || !strcmp(options->device, name)) {
			found = true;
			outcome = check_named(*device, options, &transport->error, others);
		}
		log_add(names, sizeof(names), ", ", "%s", name);
	}
	if (devices)
		ibv_free_device_list(devices);
	/* Without any device a later call says why. */
	if (!*names)
		return OUTCOME_OK;
	if (!outcome) /* of another device */
		error_clear(&transport->error);
	if (!found)
		error_set(&transport->error, NULL, "no device %s here: %s", options->device, names);
	return outcome;
}

/* ---- which device an address has ---- */

/*
 * Binds an id to the address, which gives it the device. path: gets it, and the index of its last GID; NULL: not
 * wanted. On RoCE that is the one for v2, which the connection manager prefers.
 */
static bool bind_source(struct transport *transport, const struct path_options *options, const struct address *source,
			struct path *path)
{
	struct endpoint_options address_options = { .port_space = PORT_SPACE_TCP, .path = options };
	struct sockaddr_storage storage;
	const char *device = NULL;
	struct ibv_port_attr port;
	struct rdma_cm_id *id;
	bool fits;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return false;
	fits = !rdma_bind_addr(id, verbs_socket_address(source, &address_options, &storage)) && id->verbs;
	/* librdmacm has opened the device, and no longer closes it by itself. */
	if (fits)
		device = verbs_domain_watch(verbs_of(transport), id, &address_options);
	fits = fits && !unmet_option(id, options);
	if (fits && path) {
		path->device = device;
		path->port = id->port_num;
	}
	if (fits && path && !ibv_query_port(id->verbs, id->port_num, &port))
		for (int i = port.gid_tbl_len; i-- && path->gid_index == PATH_UNSET;)
			if (has_gid(id, i))
				path->gid_index = i;
	rdma_destroy_id(id);
	return fits;
}

bool verbs_source_fits(struct transport *transport, const struct path_options *options, const struct address *source)
{
	return bind_source(transport, options, source, NULL);
}

bool verbs_source_path(struct transport *transport, const struct path_options *options, const struct address *source,
		       struct path *path)
{
	struct path_options device = *options;

	device.gid_index = PATH_UNSET;
	*path = (struct path){ .gid_index = PATH_UNSET };
	return bind_source(transport, &device, source, path) && path->device;
}

void verbs_hint_route(const struct endpoint *endpoint)
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	bool listens = endpoint->kind == ENDPOINT_LISTENER;
	size_t count = interface_addresses(list);
	char start[ADDRESS_TEXT_SIZE + IF_NAMESIZE + 64] = "", addresses[4 * ADDRESS_TEXT_SIZE] = "";
	char host[ADDRESS_TEXT_SIZE];
	struct route route = { 0 };
	struct error reason;
	int fd = route_open();

	if (listens)
		route.source = endpoint->local;
	else
		route_find(fd, 0, &endpoint->peer, &(struct address){ .family = endpoint->peer.family }, &route);
	close(fd);
	for (size_t i = 0; i < count; i++) {
		const struct address *address = &list[i].address;

		address_host(address, host);
		if (address_same_host(address, &route.source))
			log_text(start, sizeof(start), "%s%s%s on %s; ", listens ? "" : "the route to it starts at ",
				 host, listens ? " is" : "", list[i].name);
		if (!list[i].loopback && !address_is_link_local(address) &&
		    verbs_source_fits(endpoint->transport, &path_unset, address))
			log_add(addresses, sizeof(addresses), ", ", "%s", host);
	}
	/* No route starts at an address of another host. */
	if (listens && !*start)
		return;
	if (*addresses)
		error_hint(endpoint_error(endpoint), "%sthese addresses of this host have an RDMA device: %s%s", start,
			   addresses,
			   endpoint_is_group(endpoint) ? " (-b ADDRESS)"
			   : listens		       ? ""
						       : "; use the peer's address in one of their networks");
	else {
		host_no_address(&reason);
		error_hint(endpoint_error(endpoint), "%s%s%s%s", start, reason.cause, *reason.hint ? "; " : "",
			   reason.hint);
	}
}

enum outcome verbs_gid_check(struct verbs_endpoint *endpoint)
{
	int64_t wanted = endpoint_option(&endpoint->base, gid_index), used;
	struct error *reason = endpoint_error(&endpoint->base);

	if (wanted == PATH_UNSET)
		return OUTCOME_OK;
	used = endpoint_is_group(&endpoint->base) ? endpoint->group_gid_index : gid_index_of(endpoint->id);
	if (used == PATH_UNSET || used == wanted)
		return OUTCOME_OK;
	error_set(reason, endpoint->base.name,
		  "the connection manager uses GID index %d of %s, port %u, not the requested %d", (int)used,
		  device_name(endpoint->id), endpoint->id->port_num, (int)wanted);
	error_hint(reason,
		   "to change its RoCE version, to IB/RoCE v1 or RoCE v2: " HOST_ROCE_MODE("%s", "%u", "VERSION"),
		   device_name(endpoint->id), device_name(endpoint->id), endpoint->id->port_num);
	return OUTCOME_NO_CONNECTION;
}

enum outcome verbs_path_check(struct verbs_endpoint *endpoint)
{
	const struct path_options *options = endpoint->base.options.path;
	const char *option = WITH_EXTRAS ? unmet_option(endpoint->id, options) : NULL;

	if (!option)
		return OUTCOME_OK;
	if (endpoint->base.state == ENDPOINT_REQUESTED)
		path_exclude(&endpoint->base);
	else
		error_set(endpoint_error(&endpoint->base), endpoint->base.name,
			  "the local address belongs to the device %s, port %u, not to the requested %s",
			  device_name(endpoint->id), endpoint->id->port_num, option);
	return OUTCOME_NO_CONNECTION;
}

static const char *type_text(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	default:
		return "IB";
	}
}

/* Finds the source GID's entry in the port's table: at index, or if that is unknown the first equal one. */
static bool verbs_find_gid(const struct rdma_cm_id *id, int64_t index, struct ibv_gid_entry *entry)
{
	struct ibv_port_attr port;

	if (index != PATH_UNSET && !ibv_query_gid_ex(id->verbs, id->port_num, (uint32_t)index, entry, 0))
		return true;
	if (ibv_query_port(id->verbs, id->port_num, &port))
		return false;
	for (uint32_t i = 0; i < (uint32_t)port.gid_tbl_len; i++)
		if (!ibv_query_gid_ex(id->verbs, id->port_num, i, entry, 0) &&
		    !memcmp(&entry->gid, &id->route.addr.addr.ibaddr.sgid, sizeof(entry->gid)))
			return true;
	return false;
}

void verbs_path(const struct endpoint *base, struct path *path)
{
	const struct verbs_endpoint *endpoint = (const struct verbs_endpoint *)base;
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_init_attr initial;
	struct ibv_gid_entry entry;

	path->device = base->domain->device;
	path->port = endpoint->id->port_num;
	path->mtu = base->max_datagram;
	if (base->kind == ENDPOINT_CONNECTION && base->domain->fabric != FABRIC_IWARP && endpoint->qp &&
	    !ibv_query_qp(endpoint->qp, &attributes, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN, &initial)) {
		/* enum ibv_mtu: 1 is 256 bytes, 2 is 512, ... */
		path->mtu = 128u << attributes.path_mtu;
		path->peer_qpn = attributes.dest_qp_num;
	}
	if (!verbs_find_gid(endpoint->id,
			    endpoint_is_group(base) ? endpoint->group_gid_index : gid_index_of(endpoint->id), &entry))
		return;
	path->gid_index = (int)entry.gid_index;
	memcpy(path->gid, entry.gid.raw, sizeof(path->gid));
	path->gid_type = type_text(entry.gid_type);
	if_indextoname(entry.ndev_ifindex, path->interface);
}
