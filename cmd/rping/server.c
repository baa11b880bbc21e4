/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server: one listener, and a guest (guest.h) for every client that asks to connect. Without -P there is one guest
 * at a time, and the first that gets connected decides the run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/rping/guest.h"
#include "cmd/rping/rping.h"

static const char busy[] = "busy with another client";
static const char out_of_resources[] = "out of resources";

struct rping_server {
	struct environment *environment;
	const struct rping_options *options;
	const struct log *log;
	struct resolver lookup;
	struct channel *channel;
	struct endpoint *listener; /* NULL before the look-up, and again once no more clients are wanted */
	struct guest *guests;
	bool ending;
	bool finished;

	/* Of guests that have ended. Who never got connected is not counted. */
	uint64_t served;
	uint64_t failed;
	uint64_t pings;
};

static void server_finish(struct rping_server *server, enum outcome outcome)
{
	endpoint_destroy(server->listener);
	server->listener = NULL;
	server->finished = true;
	environment_finish(server->environment, outcome);
}

/* The end of a server that was told to end and has no guests left; without -P it has spoken of its one guest. */
static void server_ended(struct rping_server *server)
{
	char pings[PINGS_TEXT_SIZE];

	if (server->finished)
		return;
	if (!server->options->persistent) {
		log_error(server->log, NULL, "ended early, before a client was served");
		server_finish(server, OUTCOME_FAILED);
		return;
	}
	environment_summary(server->environment);
	fprintf(environment_output(server->environment), "%s: served %" PRIu64 " client%s, %s", server->log->name,
		server->served, server->served == 1 ? "" : "s", rping_pings_text(server->pings, 0, pings));
	if (server->failed)
		fprintf(environment_output(server->environment), ", %" PRIu64 " client%s failed", server->failed,
			server->failed == 1 ? "" : "s");
	fputc('\n', environment_output(server->environment));
	server_finish(server, server->failed ? OUTCOME_FAILED : OUTCOME_OK);
}

static void guest_ended(void *owner, struct guest *guest, enum outcome outcome, bool connected)
{
	struct rping_server *server = owner;

	if (connected && outcome)
		server->failed++;
	else if (connected)
		server->served++;
	server->pings += guest->answered;
	guest_destroy(guest);
	if (connected && !server->options->persistent) {
		server_finish(server, outcome);
		return;
	}
	/* A request that came to nothing is its sender's affair. */
	if (connected)
		environment_note(server->environment, outcome);
	if (server->ending && !server->guests)
		server_ended(server);
}

/* We cannot serve a client, for want of memory or the like: without -P that is the end, as nobody else would end it. */
static void cannot_serve(struct rping_server *server, enum outcome outcome)
{
	if (server->options->persistent)
		environment_note(server->environment, outcome);
	else
		server_finish(server, outcome);
}

static void client_asks(struct rping_server *server, const struct endpoint_event *event)
{
	struct endpoint *request = event->request;
	struct guest *guest;
	enum outcome outcome;

	if (server->guests && !server->options->persistent) {
		log_debug(server->log, "%s: refused: %s", request->name, busy);
		endpoint_reject(request, busy, sizeof(busy));
		return;
	}
	guest = guest_create(&server->guests, server->environment, server->options, request, event->private_data,
			     event->private_length);
	if (!guest) {
		log_error(server->log, request->name, "out of memory");
		endpoint_reject(request, out_of_resources, sizeof(out_of_resources));
		cannot_serve(server, OUTCOME_INTERNAL);
		return;
	}
	outcome = guest_prepare(guest);
	if (outcome) {
		guest_refuse(guest, out_of_resources);
		guest_destroy(guest);
		cannot_serve(server, outcome);
		return;
	}
	if (guest_accept(guest, guest_ended, server))
		guest_destroy(guest);
}

/* Its device is gone, say. Guests of the same device hear of it themselves; those of another one may finish. */
static void listener_failed(struct rping_server *server, enum outcome outcome)
{
	environment_note(server->environment, outcome);
	if (!server->guests) {
		server_finish(server, outcome);
		return;
	}
	server->ending = true;
	endpoint_destroy(server->listener);
	server->listener = NULL;
}

static void listener_event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct rping_server *server = owner;

	(void)endpoint;
	if (event->kind == EVENT_REQUEST)
		client_asks(server, event);
	else if (event->kind == EVENT_FAILED)
		listener_failed(server, event->outcome);
}

static const struct endpoint_handlers listener_handlers = {
	.event = listener_event,
};

static enum outcome listen_at(struct rping_server *server, struct address address)
{
	struct endpoint_options options = rping_endpoint_options(server->options);
	enum outcome outcome = endpoint_create(ENDPOINT_LISTENER, server->channel, &options, &listener_handlers, server,
					       &server->listener);

	if (outcome)
		return outcome;
	address.port = (uint16_t)server->options->port;
	outcome = endpoint_listen(server->listener, &address);
	if (!outcome)
		environment_ready(server->environment);
	return outcome;
}

static void address_found(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct rping_server *server = owner;

	if (count)
		outcome = listen_at(server, addresses[0]);
	if (outcome)
		server_finish(server, outcome);
}

/* The way in and out. */

enum outcome rping_server_start(struct environment *environment, const struct rping_options *options,
				struct rping_server **result)
{
	struct rping_server *server = calloc(1, sizeof(*server));
	enum outcome outcome;

	if (!server) {
		log_error(&environment->log, NULL, "out of memory");
		return OUTCOME_INTERNAL;
	}
	outcome = channel_create(environment->transport, &server->channel);
	if (outcome) {
		free(server);
		return outcome;
	}
	server->environment = environment;
	server->options = options;
	server->log = &environment->log;
	resolver_start(&server->lookup, environment->loop, server->log,
		       options->addresses.count ? options->addresses.texts[0] : "0.0.0.0", ADDRESS_FORMAT_ANY,
		       options->common.timeout, address_found, server);
	*result = server;
	return OUTCOME_OK;
}

void rping_server_interrupt(struct rping_server *server, enum interruption reason)
{
	struct guest *next;

	if (!server)
		return;
	server->ending = true;
	resolver_stop(&server->lookup);
	endpoint_destroy(server->listener);
	server->listener = NULL;
	for (struct guest *guest = server->guests; guest; guest = next) {
		next = guest->next;
		guest_dismiss(guest, reason);
	}
	if (!server->guests)
		server_ended(server);
}

void rping_server_report(struct rping_server *server, struct report *report)
{
	uint64_t pings = server->pings;
	uint64_t connected = 0;

	for (const struct guest *guest = server->guests; guest; guest = guest->next) {
		pings += guest->answered;
		connected++;
	}
	report_text(report, "role", "server");
	report_object(report, "clients");
	report_count(report, "served", server->served);
	report_count(report, "failed", server->failed);
	report_count(report, "connected", connected);
	report_end(report);
	report_object(report, "pings");
	report_count(report, "answered", pings);
	report_end(report);
}

/* The channel is still in use by the endpoints on their way out; transport_close() frees it after them. */
void rping_server_stop(struct rping_server *server)
{
	if (!server)
		return;
	resolver_stop(&server->lookup);
	while (server->guests)
		guest_destroy(server->guests);
	endpoint_destroy(server->listener);
	free(server);
}
