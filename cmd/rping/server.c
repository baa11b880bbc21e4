/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server: one listener, and a session (session.h) for each connection request. Without -P it serves one client at a
 * time. A one-shot server ends with its first client and has the outcome of that session.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/lookup.h"
#include "cmd/request.h"
#include "cmd/rping/rping.h"
#include "cmd/rping/session.h"
#include "core/units.h"

struct server_figures {
	const char *role;
	const char *target;
	uint64_t served; /* without failure */
	uint64_t failed;
	uint64_t connected;
	uint64_t answered; /* pings, also of established sessions */
	uint64_t verified;
};

static const char limit_reached[] = "client limit reached";
static const char out_of_memory[] = "out of memory";

struct rping_server {
	const struct rping_options *options;
	struct environment *environment;
	const struct log *log;
	struct channel *channel;
	struct endpoint *listener; /* NULL before it listens and after stop_listening() */
	struct session *sessions;
	uint64_t limit;			/* clients to serve; 0: any number */
	uint64_t connected;		/* established sessions */
	bool one_shot;			/* ends with the first client */
	bool listened;			/* else there is nothing to summarise */
	bool idle_expired;		/* ends because of --idle-timeout */
	enum interruption interruption; /* the reason of an interruption; 0: none */
	bool ending;

	uint64_t pings;		/* of ended sessions that were established */
	struct loop_timer idle; /* --idle-timeout, while there is no session */
	struct server_figures figures, before;
	struct loop_timer begin;	/* of the look-up, from the loop */
	struct log_limit no_ping_limit; /* limits lines about clients without a ping */
};

_Static_assert(!offsetof(struct rping_server, options), "is_server() reads it in a state of unknown role");

static uint64_t ended_sessions(const struct rping_server *server)
{
	return server->figures.served + server->figures.failed;
}

/* Returns the outcome of a server without sessions, and reports an early end. */
static enum outcome server_verdict(const struct rping_server *server)
{
	uint64_t limit = EXTRA(server->limit);
	uint64_t required = limit ? limit : server->one_shot || server->idle_expired;
	const char *interrupted = server->interruption ? ": interrupted" : "";

	if (ended_sessions(server) >= required)
		return server->figures.failed ? OUTCOME_FAILED : OUTCOME_OK;
	if (server->interruption == INTERRUPTION_DEADLINE)
		return OUTCOME_FAILED; /* run.c has reported the deadline */
	if (server->idle_expired)
		log_error(server->log, NULL, "no %sclient came for %g s (--idle-timeout)",
			  ended_sessions(server) ? "further " : "", units_seconds(server->options->idle_timeout));
	else if (server->one_shot)
		log_error(server->log, NULL, "ended early, before a client was served%s", interrupted);
	else
		log_error(server->log, NULL, "ended early, after %" PRIu64 " of %" PRIu64 " clients%s",
			  ended_sessions(server), limit, interrupted);
	return OUTCOME_FAILED;
}

static void stop_listening(struct rping_server *server)
{
	server->ending = true;
	loop_timer_stop(&server->begin);
	loop_timer_stop(&server->idle);
	endpoint_destroy(server->listener);
	server->listener = NULL;
}

static void server_finish(struct rping_server *server, enum outcome outcome)
{
	char pings[PINGS_TEXT_SIZE], failures[48] = "";

	if (server->figures.failed)
		snprintf(failures, sizeof(failures), ", %" PRIu64 " client%s failed", server->figures.failed,
			 units_plural(server->figures.failed));
	stop_listening(server);
	environment_finish(server->environment, outcome,
			   server->one_shot || !server->listened ? &verdict_empty : &verdict_with_figures,
			   "served %" PRIu64 " client%s, %s%s", server->figures.served,
			   units_plural(server->figures.served), rping_pings_text(server->pings, 0, pings), failures);
}

/* Ends the run when the server listens no more and has no sessions. */
static void server_shut_down(struct rping_server *server)
{
	if (!server->environment->ended)
		server_finish(server, server_verdict(server));
}

/* No client connected for --idle-timeout. */
static void server_idle_expired(void *context)
{
	struct rping_server *server = context;

	server->idle_expired = true;
	stop_listening(server);
	server_shut_down(server);
}

static void server_update_idle_timer(struct rping_server *server)
{
	if (server->options->idle_timeout && !server->sessions && !server->ending)
		loop_timer_start(server->environment->loop, &server->idle, server->options->idle_timeout,
				 server_idle_expired, server);
	else
		loop_timer_stop(&server->idle);
}

/* Adds an ended session that was established to the totals. */
static void count_session(struct rping_server *server, const struct session *session, enum outcome outcome)
{
	struct report *report = environment_begin_record(server->environment, "client");

	if (outcome)
		server->figures.failed++;
	else
		server->figures.served++;
	server->pings += session->answered;
	environment_record_outcome(server->environment, outcome);
	if (!report)
		return;
	report_text(report, "peer", session->endpoint->name);
	report_count(report, "pings", session->answered);
	report_text(report, "verdict", outcome ? "fail" : "pass");
	environment_end_record(server->environment);
}

/* Records that resources for a client are missing. A one-shot server ends, because it would wait for ever. */
static void note_resource_failure(struct rping_server *server, enum outcome outcome)
{
	if (server->one_shot)
		server_finish(server, outcome);
	else
		environment_record_outcome(server->environment, outcome);
}

/* A request that was not established is a failure of the server only if resources were missing here. */
static void session_ended(void *context, struct session *session, enum outcome outcome, bool connected)
{
	struct rping_server *server = context;
	char text[RPING_VERDICT_SIZE];
	struct verdict verdict;

	if (connected) {
		count_session(server, session, outcome);
		session->counted = true;
		verdict = session_verdict_text(session, outcome, text);
		if (server->one_shot) {
			environment_finish(server->environment, outcome, &verdict, "%s", text);
			stop_listening(server);
		} else if (session_may_log(session)) {
			environment_print_result(server->environment, outcome, &verdict, "%s", text);
		}
	}
	session_destroy(session);
	if (server->environment->ended)
		return;
	if (!connected && outcome == OUTCOME_INTERNAL)
		note_resource_failure(server, outcome);
	if (EXTRA(server->limit) && ended_sessions(server) >= server->limit)
		stop_listening(server);
	if (server->ending && !server->sessions)
		server_shut_down(server);
	else
		server_update_idle_timer(server);
}

/* Returns the reason to reject a new client, or NULL to accept it. */
static const char *reject_reason(const struct rping_server *server)
{
	uint64_t ended = ended_sessions(server);
	uint64_t with_pending = ended;

	if (server->sessions && !server->options->persistent)
		return HELLO_BUSY;
	/* Pending requests do not count, because forged ones would block clients. The backlog limits them. */
	if (server->connected >= RPING_CLIENTS_MAX)
		return HELLO_BUSY;
	if (!EXTRA(server->limit))
		return NULL;
	if (ended + server->connected >= server->limit)
		return limit_reached;
	for (const struct session *session = server->sessions; session; session = session->next)
		with_pending++;
	return with_pending >= server->limit ? HELLO_BUSY : NULL;
}

/* The transport rejected a client for lack of resources. Ignored if the server would have rejected the client, too. */
static void server_request_failed(struct rping_server *server, enum outcome outcome)
{
	if (!reject_reason(server))
		note_resource_failure(server, outcome);
}

static void connection_requested(struct rping_server *server, const struct endpoint_event *event)
{
	struct endpoint *request = event->request;
	const char *reason = reject_reason(server);
	struct session *session;
	enum outcome outcome;

	rping_classic_event(server->environment, server->options, request, event->kind);
	if (reason) {
		log_debug(server->log, "%s: rejected: %s", request->name, reason);
		endpoint_reject(request, reason, strlen(reason) + 1);
		return;
	}
	session = session_create(&server->sessions, server->environment, server->options, request, event->private_data,
				 event->private_length);
	if (!session) {
		log_error(server->log, request->name, out_of_memory);
		endpoint_reject(request, out_of_memory, sizeof(out_of_memory));
		note_resource_failure(server, OUTCOME_INTERNAL);
		return;
	}
	session->no_ping_limit = &server->no_ping_limit;
	session->connected = &server->connected;
	session->ended = session_ended;
	session->context = server;
	outcome = request_accept(server->environment, request, session_accept, session);
	if (outcome) {
		session->endpoint = NULL;
		session_destroy(session);
	}
	server_update_idle_timer(server);
	if (outcome && outcome != OUTCOME_NO_CONNECTION)
		note_resource_failure(server, outcome);
}

/* For example its device was removed: sessions of that device get their own events, sessions of others may finish. */
static void listener_failed(struct rping_server *server, enum outcome outcome)
{
	environment_record_outcome(server->environment, outcome);
	stop_listening(server);
	if (!server->sessions)
		server_finish(server, outcome);
}

static void listener_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct rping_server *server = context;

	(void)endpoint;
	if (event->kind == EVENT_REQUEST)
		connection_requested(server, event);
	else if (event->kind == EVENT_REQUEST_FAILED)
		server_request_failed(server, event->outcome);
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
	if (outcome)
		return outcome;
	server->listened = true;
	server_update_idle_timer(server);
	environment_listens(server->environment, server->listener, rping_listen_address(server->options),
			    server->log->name, "ready");
	return OUTCOME_OK;
}

static void server_begin(void *context)
{
	struct rping_server *server = context;
	const struct rping_options *options = server->options;
	struct resolver local;
	enum outcome outcome = lookup(&local, server->environment, &options->common, rping_listen_address(options),
				      ADDRESS_FORMAT_ANY);

	if (!outcome)
		outcome = listen_at(server, local.addresses[0]);
	if (outcome)
		server_finish(server, outcome);
}

/* ---- start and stop ---- */

enum outcome rping_server_start(struct environment *environment, const struct rping_options *options, void **state)
{
	struct rping_server *server = *state = environment_allocate(environment, 1, sizeof(*server));
	enum outcome outcome;

	if (!server)
		return OUTCOME_INTERNAL;
	server->options = options;
	outcome = channel_create(environment->transport, &server->channel);
	if (outcome)
		return outcome;
	server->environment = environment;
	server->log = &environment->log;
	server->limit = EXTRA((uint64_t)options->max_clients);
	server->one_shot = !options->persistent && server->limit <= 1;
	loop_timer_start(environment->loop, &server->begin, 0, server_begin, server);
	return OUTCOME_OK;
}

void rping_server_interrupt(void *state, enum interruption reason)
{
	struct rping_server *server = state;
	struct session *next;

	server->interruption = reason;
	stop_listening(server);
	for (struct session *session = server->sessions; session; session = next) {
		next = session->next;
		session_interrupt(session, reason);
	}
	if (!server->sessions)
		server_shut_down(server);
}

static const struct figure server_figures[] = {
	FIGURE(TEXT, "role", struct server_figures, role, .flags = FIGURE_LABEL),
	FIGURE(TEXT, "target", struct server_figures, target, .flags = FIGURE_LABEL),
	FIGURES_OPEN("served"),
	FIGURE(COUNT, "clients", struct server_figures, served),
	FIGURE(COUNT, "failed", struct server_figures, failed, .flags = FIGURE_NOT_0),
	FIGURE(GAUGE, "connected", struct server_figures, connected),
	FIGURES_CLOSE,
	FIGURES_OPEN("pings"),
	FIGURE(COUNT, "answered", struct server_figures, answered),
	FIGURE(COUNT, "verified", struct server_figures, verified),
	FIGURES_CLOSE,
	FIGURES_END,
};

struct figures rping_server_figures(void *state)
{
	struct rping_server *server = state;
	struct server_figures *figures = &server->figures;

	figures->role = "server";
	figures->target = rping_listen_address(server->options);
	figures->connected = 0;
	figures->answered = server->pings;
	for (const struct session *session = server->sessions; session; session = session->next) {
		if (session->counted)
			continue;
		figures->answered += session->answered;
		figures->connected += session_is_connected(session);
	}
	figures->verified = server->options->validate ? figures->answered : 0;
	return (struct figures){ server_figures, figures, &server->before, sizeof(*figures) };
}

/* Endpoints still use the channel while they are destroyed: transport_close() frees it. */
void rping_server_stop(void *state)
{
	struct rping_server *server = state;

	loop_timer_stop(&server->begin);
	loop_timer_stop(&server->idle);
	while (server->sessions)
		session_destroy(server->sessions);
	endpoint_destroy(server->listener);
	free(server);
}
