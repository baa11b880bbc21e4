/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager chooses device, port and GID by the local address. To select them by name, this file finds a
 * local address that belongs to them.
 */
#include "transport/backend.h"

#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "core/host.h"
#include "core/interface.h"

enum {
	NAMES_SIZE = 256
};

const struct path_options path_unset = PATH_OPEN;

int path_type_of_service(const struct path_options *options)
{
	return (int)(!WITH_EXTRAS || options->dscp == PATH_UNSET ? options->type_of_service : options->dscp << 2);
}

static bool names_device(const struct path_options *options)
{
	return options->device || options->port != PATH_UNSET || options->gid_index != PATH_UNSET;
}

enum outcome transport_check_path(struct transport *transport, const struct path_options *options)
{
	char names[ERROR_CAUSE_SIZE / 2];

	if (options->interface && !interface_exists(options->interface, names, sizeof(names))) {
		error_set(&transport->error, NULL, "no interface %s here: %s", options->interface, names);
		return OUTCOME_USAGE;
	}
	return names_device(options) && backend_of(transport)->check_path
		       ? backend_of(transport)->check_path(transport, options)
		       : OUTCOME_OK;
}

/* candidate: an address of the options' interface, if they name one. */
static bool path_fits(const struct endpoint *endpoint, const struct interface_address *candidate,
		      enum address_family family)
{
	const struct path_options *options = endpoint->options.path;
	const struct backend *backend = backend_of(endpoint->transport);

	if (candidate->address.family != family)
		return false;
	return !names_device(options) || !backend->source_fits ||
	       backend->source_fits(endpoint->transport, options, &candidate->address);
}

static bool listens_anywhere(const struct endpoint *listener)
{
	return listener->local.family != ADDRESS_GID && address_is_any(&listener->local);
}

/* Over verbs the any address means both families, else 0.0.0.0 only IPv4. */
static bool is_ip4_only(const struct endpoint *listener)
{
	return !backend_of(listener->transport)->source_fits && listener->local.family == ADDRESS_IP4;
}

/* Of a listener on the any address. */
static bool is_served(const struct endpoint *listener, const struct interface_address *entry)
{
	const struct path_options *options = listener->options.path;
	const struct backend *backend = backend_of(listener->transport);

	return path_fits(listener, entry, is_ip4_only(listener) ? ADDRESS_IP4 : entry->address.family) &&
	       (names_device(options) || !backend->source_fits ||
		backend->source_fits(listener->transport, options, &entry->address));
}

bool path_add_local(char text[ENDPOINT_ADDRESSES_SIZE], const struct address *address)
{
	size_t used = strlen(text);
	bool room = used + ADDRESS_TEXT_SIZE + sizeof(", ...)") <= ENDPOINT_ADDRESSES_SIZE;
	char host[ADDRESS_TEXT_SIZE];

	log_text(text + used, ENDPOINT_ADDRESSES_SIZE - used, "%s%s", used ? ", " : " (",
		 room ? address_host(address, host) : "...");
	return room;
}

void path_local_addresses(const struct endpoint *listener, char text[ENDPOINT_ADDRESSES_SIZE])
{
	struct interface_address *list = NULL;
	size_t count = listens_anywhere(listener) ? interface_list(listener->options.path->interface, &list) : 0;

	for (size_t i = 0; i < count; i++)
		/* These come last; a client needs a scope of its own for them. */
		if (!list[i].loopback && !(*text && address_is_link_local(&list[i].address)) &&
		    is_served(listener, &list[i]) && !path_add_local(text, &list[i].address))
			break;
	free(list);
}

static bool is_unset(const struct address *source)
{
	return source->family == ADDRESS_NONE || address_is_any(source);
}

/* Writes the options' names: "interface eth0, device rxe0". Returns text. */
static const char *path_names(const struct path_options *options, char text[NAMES_SIZE])
{
	*text = '\0';
	if (options->interface)
		log_add(text, NAMES_SIZE, ", ", "interface %s", options->interface);
	if (options->device)
		log_add(text, NAMES_SIZE, ", ", "device %s", options->device);
	if (options->port != PATH_UNSET)
		log_add(text, NAMES_SIZE, ", ", "port %d", (int)options->port);
	if (options->gid_index != PATH_UNSET)
		log_add(text, NAMES_SIZE, ", ", "GID index %d", (int)options->gid_index);
	return text;
}

void path_exclude(const struct endpoint *request)
{
	char names[NAMES_SIZE];

	error_failure(endpoint_error(request), &(struct failure){ .object = request->name, .phase = "rejected" },
		      "only %s is served", path_names(request->options.path, names));
}

/* The loopback interface has every 127.x.x.x; no IPv6 address of an interface begins with 127 (0x7f). */
static bool has_address(const struct interface_address *entry, const struct address *address)
{
	struct address wanted = *address;

	/* The options' interface implies the scope, which the kernel omits in a request's addresses. */
	if (!wanted.scope)
		wanted.scope = entry->address.scope;
	return address_same_host(&entry->address, &wanted) ||
	       (entry->address.bytes[0] == 127 && address->bytes[0] == 127);
}

/*
 * Names what the source, or the addresses of the family or any, belong to instead: each one's GID index, if one is
 * requested, else its interface, device and port.
 */
static void hint_at_others(const struct endpoint *endpoint, enum address_family family, const struct address *source,
			   struct error *error)
{
	const struct path_options *options = endpoint->options.path;
	const struct backend *backend = backend_of(endpoint->transport);
	struct interface_address *list = NULL;
	char host[ADDRESS_TEXT_SIZE], text[ERROR_HINT_SIZE] = "";
	bool gid = options->gid_index != PATH_UNSET;
	size_t count = interface_list(gid ? options->interface : NULL, &list);
	struct path path;

	for (size_t i = 0; i < count; i++) {
		const struct address *address = &list[i].address;

		if ((family && address->family != family) ||
		    (is_unset(source) ? !backend->source_path && (list[i].loopback || address_is_link_local(address))
				      : !has_address(&list[i], source)))
			continue;
		if (!backend->source_path)
			log_add(text, sizeof(text), ", ", "%s is on %s", address_host(address, host), list[i].name);
		else if (!backend->source_path(endpoint->transport, gid ? options : &path_unset, address, &path))
			continue;
		else if (!gid)
			log_add(text, sizeof(text), ", ", "%s on %s belongs to %s/%u", address_host(address, host),
				list[i].name, path.device, path.port);
		else if (path.gid_index != PATH_UNSET)
			log_add(text, sizeof(text), ", ", "%s has GID index %d", address_host(address, host),
				path.gid_index);
	}
	free(list);
	if (*text)
		error_hint(error, "%s", text);
}

bool endpoint_is_reachable(const struct endpoint *listener, struct error *reason)
{
	const struct path_options *options = listener->options.path;
	struct interface_address *list;
	char names[NAMES_SIZE];
	bool served = false;
	size_t count;

	if (!listens_anywhere(listener))
		return true;
	count = interface_list(options->interface, &list);
	for (size_t i = 0; i < count && !served; i++)
		served = is_served(listener, &list[i]);
	free(list);
	if (served)
		return true;
	if (!options->interface && !backend_of(listener->transport)->source_fits)
		return true;
	host_no_address(reason);
	if (WITH_EXTRAS && *path_names(options, names)) {
		error_set(reason, NULL, "no %saddress of this host belongs to %s", is_ip4_only(listener) ? "IPv4 " : "",
			  names);
		hint_at_others(listener, is_ip4_only(listener) ? ADDRESS_IP4 : ADDRESS_NONE, &listener->local, reason);
	}
	return false;
}

static enum outcome path_no_source(const struct endpoint *endpoint, enum address_family family,
				   const struct address *source)
{
	const struct path_options *options = endpoint->options.path;
	bool down = options->interface && interface_is_down(options->interface);
	char names[NAMES_SIZE], host[ADDRESS_TEXT_SIZE];

	path_names(options, names);
	if (is_unset(source))
		error_set(endpoint_error(endpoint), endpoint->name, "no local %s address belongs to %s",
			  family == ADDRESS_IP4 ? "IPv4" : "IPv6", names);
	else
		error_set(endpoint_error(endpoint), endpoint->name, "the local address %s does not belong to %s",
			  address_host(source, host), names);
	if (down)
		error_hint(endpoint_error(endpoint), "the interface %s is down", options->interface);
	if (WITH_EXTRAS)
		hint_at_others(endpoint, family, source, endpoint_error(endpoint));
	return is_unset(source) || down ? OUTCOME_NO_CONNECTION : OUTCOME_USAGE;
}

enum outcome path_find_source(const struct endpoint *endpoint, enum address_family family, struct address *source)
{
	const struct path_options *options = endpoint->options.path;
	const struct interface_address *found = NULL, *other = NULL;
	char one[ADDRESS_TEXT_SIZE], two[ADDRESS_TEXT_SIZE];
	enum outcome outcome = OUTCOME_OK;
	struct interface_address *list;
	uint16_t port = source->port;
	size_t count;

	/* A native GID group may have an IP source. */
	if (family == ADDRESS_GID)
		family = source->family;
	if (!WITH_EXTRAS || (!options->interface && !names_device(options)) || family == ADDRESS_GID)
		return OUTCOME_OK;
	count = interface_list(options->interface, &list);
	for (size_t i = 0; i < count && !other; i++) {
		if ((!is_unset(source) && !has_address(&list[i], source)) || !path_fits(endpoint, &list[i], family))
			continue;
		/* A GID table entry has one address: this one is another device's. */
		if (found && options->gid_index != PATH_UNSET && !options->device)
			other = &list[i];
		if (!found)
			found = &list[i];
	}
	if (!found) {
		outcome = path_no_source(endpoint, family, source);
	} else if (other) {
		error_set(endpoint_error(endpoint), endpoint->name,
			  "GID index %d belongs to %s and to %s: name the device or interface", (int)options->gid_index,
			  address_host(&found->address, one), address_host(&other->address, two));
		outcome = OUTCOME_USAGE;
	} else if (!is_unset(source)) {
		source->scope = found->address.scope;
	} else if (!found->loopback) { /* else the backend chooses: soft needs an address of its own */
		*source = found->address;
		source->port = port;
	}
	free(list);
	return outcome;
}

static const char *option_interface(const struct endpoint *endpoint)
{
	return WITH_EXTRAS ? endpoint->options.path->interface : NULL;
}

void path_find_interface(const struct endpoint *endpoint, struct address *local)
{
	const char *name = option_interface(endpoint);

	if (name && address_is_link_local(local) && !local->scope)
		local->scope = interface_index(name);
}

bool path_has_interface(const struct endpoint *endpoint)
{
	const char *name = option_interface(endpoint);
	struct interface_address *list = NULL;
	size_t count = name ? interface_list(name, &list) : 0;
	bool found = !name;

	for (size_t i = 0; i < count && !found; i++)
		found = has_address(&list[i], &endpoint->local);
	free(list);
	return found;
}
