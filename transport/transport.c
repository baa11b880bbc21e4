/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of transport.h: check the call, then call the backend. */
#include "transport/transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/spelling.h"
#include "transport/backend.h"
#include "transport/path.h"

static const struct backend *find_backend(const char *name)
{
	const struct backend *const *backend = backend_registry;

	while (*backend && name && strcmp((*backend)->name, name))
		backend++;
	return *backend;
}

enum outcome transport_open(const char *name, struct loop *loop, const struct log *log, struct error *error,
			    struct transport **transport)
{
	const struct backend *found = find_backend(name);
	const char *nearest = NULL;
	char names[64] = "";

	*transport = NULL;
	if (found)
		return found->open(loop, log, error, transport);
	for (const struct backend *const *backend = backend_registry; *backend; backend++) {
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", (*backend)->name);
		if (name && spelling_distance(name, (*backend)->name) < SPELLING_FAR)
			nearest = (*backend)->name;
	}
	error_set(error, "transport", "'%s' is not one of those built in: %s", name ? name : "", names);
	if (nearest)
		error_hint(error, "did you mean %s?", nearest);
	return OUTCOME_USAGE;
}

const char *transport_name(const struct transport *transport)
{
	return backend_of(transport)->name;
}

bool transport_opens_devices(const char *name)
{
	const struct backend *backend = find_backend(name);

	return backend && backend->opens_devices;
}

const char *transport_unsupported(const char **name, enum transport_feature feature)
{
	const struct backend *backend = find_backend(*name);

	if (!backend)
		return NULL;
	*name = backend->name;
	return backend->unsupported[feature];
}

void transport_spin(struct transport *transport, int64_t nanoseconds)
{
	transport->spin = nanoseconds;
	loop_spin(transport->loop, nanoseconds);
}

void transport_close(struct transport *transport)
{
	if (transport)
		backend_of(transport)->close(transport);
}

enum outcome channel_create(struct transport *transport, struct channel **channel)
{
	return backend_of(transport)->channel_create(transport, channel);
}

void channel_destroy(struct channel *channel)
{
	const struct backend *backend = backend_of(channel->transport);

	if (backend->channel_destroy)
		backend->channel_destroy(channel);
}

enum outcome region_create(struct domain *domain, size_t length, unsigned access, struct region **region)
{
	return backend_of(domain->transport)->region_create(domain, length, access, region);
}

void region_destroy(struct region *region)
{
	if (region)
		backend_of(region->domain->transport)->region_destroy(region);
}

enum outcome endpoint_create(enum endpoint_kind kind, struct channel *channel, const struct endpoint_options *options,
			     const struct endpoint_handlers *handlers, void *context, struct endpoint **endpoint)
{
	enum outcome outcome = backend_of(channel->transport)->endpoint_create(channel, kind, options, endpoint);

	if (outcome)
		return outcome;
	(*endpoint)->handlers = handlers;
	(*endpoint)->context = context;
	return OUTCOME_OK;
}

void endpoint_destroy(struct endpoint *endpoint)
{
	if (!endpoint || endpoint->state == ENDPOINT_DESTROYED)
		return;
	endpoint_enter(endpoint, ENDPOINT_DESTROYED);
	backend_of(endpoint->transport)->endpoint_destroy(endpoint);
}

/* ---- calls: a misuse is a bug of the command, and does not reach the backend ---- */

enum call {
	CALL_LISTEN,
	CALL_RESOLVE,
	CALL_CREATE_QP,
	CALL_CONNECT,
	CALL_ACCEPT,
	CALL_DISCONNECT,
	CALL_JOIN,
	CALL_POST,
};

#define BIT(name) (1u << ENDPOINT_##name)

static const struct call_row {
	uint8_t kinds;
	bool qp; /* the endpoint must have a queue pair; else it must have none */
	uint16_t states;
	uint8_t next; /* enum endpoint_state after a success; not set where the state stays */
} calls[] = {
	[CALL_LISTEN] = { BIT(LISTENER), false, BIT(IDLE), ENDPOINT_LISTENING },
	[CALL_RESOLVE] = { BIT(CONNECTION) | BIT(GROUP), false, BIT(IDLE), ENDPOINT_RESOLVING_ADDRESS },
	[CALL_CREATE_QP] = { BIT(CONNECTION) | BIT(GROUP), false,
			     BIT(ADDRESS_RESOLVED) | BIT(RESOLVING_ROUTE) | BIT(ROUTE_RESOLVED) | BIT(REQUESTED) },
	[CALL_CONNECT] = { BIT(CONNECTION), true, BIT(ROUTE_RESOLVED), ENDPOINT_CONNECTING },
	[CALL_ACCEPT] = { BIT(CONNECTION), true, BIT(REQUESTED), ENDPOINT_ACCEPTING },
	[CALL_DISCONNECT] = { BIT(CONNECTION), true, BIT(ESTABLISHED), ENDPOINT_DISCONNECTING },
	[CALL_JOIN] = { BIT(GROUP), true, BIT(ADDRESS_RESOLVED), ENDPOINT_JOINING },
	[CALL_POST] = { BIT(CONNECTION) | BIT(GROUP), true, (uint16_t)~(BIT(IDLE) | BIT(LISTENING) | BIT(DESTROYED)) },
};

static bool call_allowed(struct endpoint *endpoint, enum call call, size_t private_length)
{
	const struct call_row *row = &calls[call];
	bool qp = endpoint->qpn;

	if (row->kinds >> endpoint->kind & 1 && row->states >> endpoint->state & 1 && row->qp == qp &&
	    private_length <= PRIVATE_DATA_MAX) {
		if (WITH_REPORT && row->next)
			endpoint->began = clock_now();
		return true;
	}
	error_failure(endpoint_error(endpoint),
		      &(struct failure){ .object = endpoint->name,
					 .phase = row->next ? endpoint_state_text(row->next) : NULL },
		      "defect: the endpoint is %s, %s a queue pair; %zu bytes of private data",
		      endpoint_state_text(endpoint->state), qp ? "with" : "without", private_length);
	return false;
}

/* After the backend's function of a call: enters the next state unless it failed. Returns its outcome. */
static enum outcome call_returned(struct endpoint *endpoint, enum call call, enum outcome outcome)
{
	if (!outcome)
		endpoint_enter(endpoint, calls[call].next);
	return outcome;
}

/* A WRITE with immediate data would consume a receive of the peer, which no command expects. */
static int work_error(const struct work *work)
{
	if (work->offset > work->region->length || work->length > work->region->length - work->offset)
		return EFAULT;
	return work->has_immediate && work->kind != WORK_SEND ? EINVAL : 0;
}

enum outcome endpoint_listen(struct endpoint *endpoint, const struct address *address)
{
	enum outcome outcome;

	if (!call_allowed(endpoint, CALL_LISTEN, 0))
		return OUTCOME_INTERNAL;
	endpoint->local = *address;
	endpoint_set_name(endpoint);
	outcome = path_find_interface(endpoint, &endpoint->local);
	if (!outcome)
		outcome = backend_of(endpoint->transport)->listen(endpoint, &endpoint->local);
	if (!outcome)
		endpoint_set_name(endpoint);
	return call_returned(endpoint, CALL_LISTEN, outcome);
}

enum outcome endpoint_resolve(struct endpoint *endpoint, const struct address *source,
			      const struct address *destination)
{
	struct address local = { .family = ADDRESS_NONE };
	enum outcome outcome;

	if (!call_allowed(endpoint, CALL_RESOLVE, 0))
		return OUTCOME_INTERNAL;
	endpoint->peer = *destination;
	endpoint_set_name(endpoint);
	if (source)
		local = *source;
	outcome = path_find_source(endpoint, destination->family, &local);
	if (!outcome)
		outcome = path_find_interface(endpoint, &endpoint->peer);
	if (!outcome)
		outcome = backend_of(endpoint->transport)
				  ->resolve(endpoint, local.family ? &local : NULL, &endpoint->peer);
	return call_returned(endpoint, CALL_RESOLVE, outcome);
}

enum outcome endpoint_create_qp(struct endpoint *endpoint)
{
	if (!call_allowed(endpoint, CALL_CREATE_QP, 0))
		return OUTCOME_INTERNAL;
	return backend_of(endpoint->transport)->create_qp(endpoint);
}

enum outcome endpoint_connect(struct endpoint *endpoint, const void *data, size_t length)
{
	if (!call_allowed(endpoint, CALL_CONNECT, length))
		return OUTCOME_INTERNAL;
	return call_returned(endpoint, CALL_CONNECT, backend_of(endpoint->transport)->connect(endpoint, data, length));
}

enum outcome endpoint_accept(struct endpoint *endpoint, const void *data, size_t length)
{
	if (!call_allowed(endpoint, CALL_ACCEPT, length))
		return OUTCOME_INTERNAL;
	return call_returned(endpoint, CALL_ACCEPT, backend_of(endpoint->transport)->accept(endpoint, data, length));
}

void endpoint_reject(struct endpoint *endpoint, const void *data, size_t length)
{
	backend_of(endpoint->transport)->reject(endpoint, data, length);
	endpoint_destroy(endpoint);
}

enum outcome endpoint_disconnect(struct endpoint *endpoint)
{
	if (!call_allowed(endpoint, CALL_DISCONNECT, 0))
		return OUTCOME_INTERNAL;
	return call_returned(endpoint, CALL_DISCONNECT, backend_of(endpoint->transport)->disconnect(endpoint));
}

enum outcome endpoint_join(struct endpoint *endpoint, void *context)
{
	if (!call_allowed(endpoint, CALL_JOIN, 0))
		return OUTCOME_INTERNAL;
	return call_returned(endpoint, CALL_JOIN, backend_of(endpoint->transport)->join(endpoint, context));
}

enum outcome endpoint_post(struct endpoint *endpoint, const struct work *work, size_t count)
{
	if (!call_allowed(endpoint, CALL_POST, 0))
		return OUTCOME_INTERNAL;
	for (size_t index = 0; index < count; index++) {
		int error = work_error(&work[index]);

		if (work[index].kind == WORK_READ && endpoint->no_reads) {
			error_set(endpoint_error(endpoint), endpoint->name,
				  "the peer allows no RDMA READ (responder resources 0)");
			return OUTCOME_FAILED;
		}
		if (!error)
			continue;
		error_errno(endpoint_error(endpoint), endpoint->name, error, "posting a %s",
			    work_kind_text(work[index].kind));
		return OUTCOME_INTERNAL;
	}
	return backend_of(endpoint->transport)->post(endpoint, work, count);
}

void endpoint_path(const struct endpoint *endpoint, struct path *path)
{
	memset(path, 0, sizeof(*path));
	path->gid_index = PATH_UNSET;
	path->qpn = endpoint->qpn;
	if (endpoint->domain && backend_of(endpoint->transport)->path)
		backend_of(endpoint->transport)->path(endpoint, path);
}

const char *endpoint_timeout_cause(const struct endpoint *endpoint, char text[ENDPOINT_TIMEOUT_CAUSE_SIZE])
{
	*text = '\0';
	if (backend_of(endpoint->transport)->timeout_cause)
		backend_of(endpoint->transport)->timeout_cause(endpoint, text);
	return text;
}

const char *endpoint_local_addresses(const struct endpoint *listener, char text[ENDPOINT_ADDRESSES_SIZE])
{
	*text = '\0';
	if (backend_of(listener->transport)->local_addresses)
		backend_of(listener->transport)->local_addresses(listener, text);
	return text;
}

enum outcome endpoint_migrate(struct endpoint *endpoint, struct channel *channel)
{
	enum outcome (*migrate)(struct endpoint *, struct channel *) = backend_of(endpoint->transport)->migrate;
	enum outcome outcome = migrate ? migrate(endpoint, channel) : OUTCOME_OK;

	if (!outcome)
		endpoint->channel = channel;
	return outcome;
}
