/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of transport.h: check what is the same for every backend, then go through its table. */
#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

#include "transport/backend.h"
#include "transport/path.h"

static const struct backend *find_backend(const char *name)
{
	const struct backend *const *backend = backend_registry;

	while (*backend && name && strcmp((*backend)->name, name))
		backend++;
	return *backend;
}

enum outcome transport_open(const char *name, struct loop *loop, const struct log *log, struct transport **transport)
{
	const struct backend *found = find_backend(name);
	char names[64] = "";

	*transport = NULL;
	if (found)
		return found->open(loop, log, transport);
	for (const struct backend *const *backend = backend_registry; *backend; backend++) {
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", (*backend)->name);
	}
	log_error(log, "transport", "'%s' is not one of those built in: %s", name ? name : "", names);
	return OUTCOME_USAGE;
}

const char *transport_name(const struct transport *transport)
{
	return transport->backend->name;
}

bool transport_opens_devices(const char *name)
{
	const struct backend *backend = find_backend(name);

	return backend && backend->opens_devices;
}

const struct path_refusal *transport_refusals(const char **name)
{
	static const struct path_refusal none[] = { { 0 } };
	const struct backend *backend = find_backend(*name);

	if (!backend)
		return none;
	*name = backend->name;
	return backend->refusals;
}

void transport_spin(struct transport *transport, int64_t nanoseconds)
{
	transport->spin = nanoseconds;
	loop_spin(transport->loop, nanoseconds);
}

void transport_close(struct transport *transport)
{
	if (transport)
		transport->backend->close(transport);
}

enum outcome channel_create(struct transport *transport, struct channel **channel)
{
	return transport->backend->channel_create(transport, channel);
}

void channel_destroy(struct channel *channel)
{
	channel->transport->backend->channel_destroy(channel);
}

enum outcome region_create(struct domain *domain, size_t length, unsigned access, struct region **region)
{
	return domain->transport->backend->region_create(domain, length, access, region);
}

void region_destroy(struct region *region)
{
	if (region)
		region->domain->transport->backend->region_destroy(region);
}

enum outcome endpoint_create(enum endpoint_kind kind, struct channel *channel, const struct endpoint_options *options,
			     const struct endpoint_handlers *handlers, void *owner, struct endpoint **endpoint)
{
	enum outcome outcome = channel->transport->backend->endpoint_create(channel, kind, options, endpoint);

	if (outcome)
		return outcome;
	(*endpoint)->handlers = handlers;
	(*endpoint)->owner = owner;
	return OUTCOME_OK;
}

void endpoint_destroy(struct endpoint *endpoint)
{
	if (!endpoint || endpoint->state == ENDPOINT_DESTROYED)
		return;
	endpoint_enter(endpoint, ENDPOINT_DESTROYED);
	endpoint->transport->backend->endpoint_destroy(endpoint);
}

enum outcome endpoint_listen(struct endpoint *endpoint, const struct address *address)
{
	struct address local = *address;
	enum outcome outcome;

	endpoint->local = local;
	endpoint_name(endpoint);
	outcome = path_find_interface(endpoint, &local);
	endpoint->local = local;
	if (!outcome)
		outcome = endpoint->transport->backend->listen(endpoint, &local);
	if (outcome)
		return outcome;
	endpoint_name(endpoint);
	endpoint_enter(endpoint, ENDPOINT_LISTENING);
	return OUTCOME_OK;
}

enum outcome endpoint_resolve(struct endpoint *endpoint, const struct address *source,
			      const struct address *destination)
{
	struct address local = { .family = ADDRESS_NONE };
	enum outcome outcome;

	endpoint->peer = *destination;
	endpoint_name(endpoint);
	if (source)
		local = *source;
	outcome = path_find_source(endpoint, destination->family, &local);
	if (!outcome)
		outcome = endpoint->transport->backend->resolve(endpoint, local.family ? &local : NULL, destination);
	if (!outcome)
		endpoint_enter(endpoint, ENDPOINT_RESOLVING_ADDRESS);
	return outcome;
}

enum outcome endpoint_open_queue(struct endpoint *endpoint)
{
	return endpoint->transport->backend->open_queue(endpoint);
}

enum outcome endpoint_connect(struct endpoint *endpoint, const void *data, size_t length)
{
	enum outcome outcome = endpoint->transport->backend->connect(endpoint, data, length);

	if (!outcome)
		endpoint_enter(endpoint, ENDPOINT_CONNECTING);
	return outcome;
}

enum outcome endpoint_accept(struct endpoint *endpoint, const void *data, size_t length)
{
	enum outcome outcome = endpoint->transport->backend->accept(endpoint, data, length);

	if (!outcome)
		endpoint_enter(endpoint, ENDPOINT_ACCEPTING);
	return outcome;
}

void endpoint_reject(struct endpoint *endpoint, const void *data, size_t length)
{
	endpoint->transport->backend->reject(endpoint, data, length);
	endpoint_destroy(endpoint);
}

enum outcome endpoint_disconnect(struct endpoint *endpoint)
{
	enum outcome outcome = endpoint->transport->backend->disconnect(endpoint);

	if (!outcome)
		endpoint_enter(endpoint, ENDPOINT_DISCONNECTING);
	return outcome;
}

enum outcome endpoint_join(struct endpoint *endpoint, void *context)
{
	enum outcome outcome = endpoint->transport->backend->join(endpoint, context);

	if (!outcome)
		endpoint_enter(endpoint, ENDPOINT_JOINING);
	return outcome;
}

enum outcome endpoint_leave(struct endpoint *endpoint)
{
	if (endpoint->state != ENDPOINT_JOINED)
		return OUTCOME_OK;

	enum outcome outcome = endpoint->transport->backend->leave(endpoint);

	endpoint_enter(endpoint, ENDPOINT_ADDRESS_RESOLVED);
	return outcome;
}

enum outcome endpoint_post(struct endpoint *endpoint, const struct work *work, size_t count)
{
	return endpoint->transport->backend->post(endpoint, work, count);
}

void endpoint_path(const struct endpoint *endpoint, struct path *path)
{
	memset(path, 0, sizeof(*path));
	path->gid_index = PATH_UNSET;
	path->queue_number = endpoint->queue_number;
	if (endpoint->domain && endpoint->transport->backend->path)
		endpoint->transport->backend->path(endpoint, path);
}

const char *endpoint_silence(const struct endpoint *endpoint, char text[ENDPOINT_SILENCE_SIZE])
{
	*text = '\0';
	if (endpoint->transport->backend->silence)
		endpoint->transport->backend->silence(endpoint, text);
	return text;
}

enum outcome endpoint_migrate(struct endpoint *endpoint, struct channel *channel)
{
	enum outcome outcome = endpoint->transport->backend->migrate(endpoint, channel);

	if (!outcome)
		endpoint->channel = channel;
	return outcome;
}
