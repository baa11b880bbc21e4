/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of transport.h: call the backend, and enter the next state. */
#include "transport/transport.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "transport/backend.h"

/* Returns the backend of that name, or the default. */
static const struct backend *backend_named(const char *name)
{
	return SEVERAL_BACKENDS && name && !strcmp(name, soft_backend.name) ? &soft_backend : DEFAULT_BACKEND;
}

static bool is_built_in(const char *name)
{
	return !name || !strcmp(name, backend_named(name)->name);
}

enum outcome transport_open(const char *name, struct loop *loop, const struct log *log, struct error *error,
			    struct transport **transport)
{
	enum outcome outcome;

	*transport = NULL;
	if (!is_built_in(name)) {
		error_set(error, "transport", "'%s' is not one of those built in: %s", name,
			  SEVERAL_BACKENDS ? "verbs, soft" : DEFAULT_BACKEND->name);
		return OUTCOME_USAGE;
	}
	outcome = backend_named(name)->open(loop, log, error, transport);
	if (!outcome && SEVERAL_BACKENDS)
		(*transport)->backend = backend_named(name);
	if (WITH_DIAGNOSTICS && !outcome) {
		drops_read(&(*transport)->drops);
		(*transport)->tells = isatty(STDERR_FILENO);
	}
	return outcome;
}

const char *transport_name(const struct transport *transport)
{
	return backend_of(transport)->name;
}

bool transport_opens_devices(const char *name)
{
	return (!SEVERAL_BACKENDS || is_built_in(name)) && backend_named(name)->opens_devices;
}

struct unsupported transport_unsupported(const char *name, enum transport_feature feature)
{
	const struct backend *backend = backend_named(name);

	return (struct unsupported){ backend->name, is_built_in(name) ? backend->unsupported[feature] : NULL };
}

void transport_spin(struct transport *transport, int64_t nanoseconds)
{
	transport->spin = nanoseconds;
	loop_spin(transport->loop, nanoseconds);
}

const struct network_counter *transport_counters(struct transport *transport)
{
	if (!transport)
		return NULL;
	if (backend_of(transport)->counters)
		backend_of(transport)->counters(transport);
	return transport->counters;
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

/* ---- calls ---- */

#define BIT(name) (1u << ENDPOINT_##name)

/* Misuse is a defect of the command: the tests assert. */
#define assert_call(endpoint, kinds, states, has_qp)                                                                   \
	assert((kinds) >> (endpoint)->kind & 1 && (states) >> (endpoint)->state & 1 && !(endpoint)->qpn == !(has_qp))

/* Called before a call that an event answers. */
static const struct backend *begin_call(struct endpoint *endpoint)
{
	if (WITH_REPORT)
		endpoint->began = clock_now();
	return backend_of(endpoint->transport);
}

/* Called after it: enters the next state unless it failed. Returns its outcome. */
static enum outcome end_call(struct endpoint *endpoint, enum endpoint_state next, enum outcome outcome)
{
	if (!outcome)
		endpoint_enter(endpoint, next);
	return outcome;
}

enum outcome endpoint_listen(struct endpoint *endpoint, const struct address *address)
{
	enum outcome outcome = OUTCOME_OK;

	assert_call(endpoint, BIT(LISTENER), BIT(IDLE), false);
	endpoint->local = *address;
	endpoint_set_name(endpoint);
	path_find_interface(endpoint, &endpoint->local);
	if (!address_is_any(address))
		outcome = path_find_source(endpoint, address->family, &endpoint->local);
	if (!outcome)
		outcome = begin_call(endpoint)->listen(endpoint);
	if (!outcome)
		endpoint_set_name(endpoint);
	return end_call(endpoint, ENDPOINT_LISTENING, outcome);
}

enum outcome endpoint_resolve(struct endpoint *endpoint, const struct address *source,
			      const struct address *destination)
{
	const struct backend *backend = begin_call(endpoint);
	enum outcome outcome;

	assert_call(endpoint, BIT(CONNECTION) | BIT(GROUP), BIT(IDLE), false);
	endpoint->peer = *destination;
	endpoint_set_name(endpoint);
	if (source)
		endpoint->local = *source;
	path_find_interface(endpoint, &endpoint->peer);
	outcome = path_find_source(endpoint, destination->family, &endpoint->local);
	if (!outcome)
		outcome = backend->resolve(endpoint);
	return end_call(endpoint, ENDPOINT_RESOLVING_ADDRESS, outcome);
}

enum outcome endpoint_create_qp(struct endpoint *endpoint)
{
	assert_call(endpoint, BIT(CONNECTION) | BIT(GROUP),
		    BIT(ADDRESS_RESOLVED) | BIT(RESOLVING_ROUTE) | BIT(ROUTE_RESOLVED) | BIT(REQUESTED), false);
	return backend_of(endpoint->transport)->create_qp(endpoint);
}

enum outcome endpoint_connect(struct endpoint *endpoint, const void *data, size_t length)
{
	assert_call(endpoint, BIT(CONNECTION), BIT(ROUTE_RESOLVED), true);
	assert(length <= PRIVATE_DATA_MAX);
	return end_call(endpoint, ENDPOINT_CONNECTING, begin_call(endpoint)->connect(endpoint, data, length));
}

enum outcome endpoint_accept(struct endpoint *endpoint, const void *data, size_t length)
{
	assert_call(endpoint, BIT(CONNECTION), BIT(REQUESTED), true);
	assert(length <= PRIVATE_DATA_MAX);
	return end_call(endpoint, ENDPOINT_ACCEPTING, begin_call(endpoint)->accept(endpoint, data, length));
}

enum outcome endpoint_disconnect(struct endpoint *endpoint)
{
	assert_call(endpoint, BIT(CONNECTION), BIT(ESTABLISHED), true);
	return end_call(endpoint, ENDPOINT_DISCONNECTING, begin_call(endpoint)->disconnect(endpoint));
}

enum outcome endpoint_join(struct endpoint *endpoint)
{
	assert_call(endpoint, BIT(GROUP), BIT(ADDRESS_RESOLVED), true);
	return end_call(endpoint, ENDPOINT_JOINING, begin_call(endpoint)->join(endpoint));
}

enum outcome endpoint_post(struct endpoint *endpoint, const struct work *work, size_t count)
{
	assert_call(endpoint, BIT(CONNECTION) | BIT(GROUP), ~(BIT(IDLE) | BIT(LISTENING) | BIT(DESTROYED)), true);
	assert(work->kind == WORK_RECEIVE || endpoint->state >= ENDPOINT_ESTABLISHED);
	for (size_t index = 0; index < count; index++) {
		assert(work[index].offset <= work[index].region->length &&
		       work[index].length <= work[index].region->length - work[index].offset);
		/* A WRITE with immediate data would consume one of the peer's receives, which no command expects. */
		assert(!work[index].has_immediate || work[index].kind == WORK_SEND);
		assert(work[index].kind != WORK_READ || !index);
	}
	if (work->kind == WORK_READ && endpoint->no_reads) {
		error_set(endpoint_error(endpoint), endpoint->name,
			  "the peer does not allow RDMA READs (responder_resources 0)");
		return OUTCOME_FAILED;
	}
	return backend_of(endpoint->transport)->post(endpoint, work, count);
}

void endpoint_path(const struct endpoint *endpoint, struct path *path)
{
	memset(path, 0, sizeof(*path));
	path->peer = endpoint->peer;
	path->gid_index = PATH_UNSET;
	path->qpn = endpoint->qpn;
	if (endpoint->domain && backend_of(endpoint->transport)->path)
		backend_of(endpoint->transport)->path(endpoint, path);
}

const char *endpoint_local_addresses(const struct endpoint *listener, char text[ENDPOINT_ADDRESSES_SIZE])
{
	*text = '\0';
	if (backend_of(listener->transport)->local_addresses)
		backend_of(listener->transport)->local_addresses(listener, text);
	return *text ? strcat(text, ")") : text;
}

enum outcome endpoint_migrate(struct endpoint *endpoint, struct channel *channel)
{
	enum outcome (*migrate)(struct endpoint *, struct channel *) = backend_of(endpoint->transport)->migrate;
	enum outcome outcome = migrate ? migrate(endpoint, channel) : OUTCOME_OK;

	if (!outcome)
		endpoint->channel = channel;
	return outcome;
}
