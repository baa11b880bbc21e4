/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server: one listener, and a session for each connection request. Without -P it serves one client at a time; a
 * one-shot server ends with its first client and has that session's outcome. An error ends only one session.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/hello.h"
#include "cmd/lookup.h"
#include "cmd/rping/session.h"
#include "core/units.h"

/* ---- the end ---- */

static uint64_t ended_sessions(const struct rping_server *server)
{
	return server->figures.served + server->figures.failed;
}

static bool is_limit_reached(const struct rping_server *server, uint64_t clients)
{
	return server->limit && clients >= server->limit;
}

/* Returns the outcome of a server without sessions, and reports an early end. */
static enum outcome server_verdict(const struct rping_server *server)
{
	uint64_t ended = ended_sessions(server);
	char limit[UNITS_TEXT_SIZE];

	if (ended >= (server->limit ? server->limit : server->idle_expired))
		return server->figures.failed ? OUTCOME_FAILED : OUTCOME_OK;
	if (server->idle_expired)
		log_error(&server->run->log, NULL, "no client came for %s (--idle-timeout)",
			  units_duration(server->options->idle_timeout, limit));
	else if (server->interruption == INTERRUPTION_SIGNAL) /* command.c has reported a deadline */
		log_error(&server->run->log, NULL, "interrupted after %" PRIu64 " of %" PRIu64 " clients", ended,
			  server->limit);
	return OUTCOME_FAILED;
}

static void stop_listening(struct rping_server *server)
{
	server->ending = true;
	loop_timer_stop(&server->idle);
	endpoint_destroy(server->listener);
	server->listener = NULL;
}

static void server_finish(struct rping_server *server, enum outcome outcome)
{
	const struct server_figures *figures = &server->figures;
	const char *failures = "";
	char text[48];

	if (figures->failed)
		failures = log_text(text, sizeof(text), ", %" PRIu64 " client%s failed", figures->failed,
				    units_plural(figures->failed));
	run_finish(server->run, outcome, NULL, "served %" PRIu64 " client%s, %" PRIu64 " ping%s%s", figures->served,
		   units_plural(figures->served), figures->answered, units_plural(figures->answered), failures);
}

/* Called after each change: a server with all its clients stops listening, and one without sessions then ends. */
static void server_advance(struct rping_server *server)
{
	if (is_limit_reached(server, ended_sessions(server)))
		stop_listening(server);
	if (server->ending && !server->sessions && !server->run->ended)
		server_finish(server, server_verdict(server));
}

static void idle_expired(void *context)
{
	struct rping_server *server = context;

	server->idle_expired = true;
	stop_listening(server);
	server_advance(server);
}

/* Called when a client has come or gone. A request is no client yet: it may be forged, or refused. */
static void watch_idle(struct rping_server *server)
{
	if (server->options->idle_timeout && !server->figures.connected && !server->ending)
		loop_timer_start(server->run->loop, &server->idle, server->options->idle_timeout, idle_expired, server);
	else
		loop_timer_stop(&server->idle);
}

/* Resources for a client are missing. A one-shot server ends, because it would wait forever. */
static void note_resource_failure(struct rping_server *server, enum outcome outcome)
{
	run_record_outcome(server->run, outcome);
	if (outcome && server->one_shot)
		stop_listening(server);
}

/* ---- callbacks of a session ---- */

static void session_destroy(struct session *session)
{
	session->server->session_count--;
	peer_close(&session->peer);
	*session->link = session->next;
	if (session->next)
		session->next->link = session->link;
	free(session);
}

/* Adds an ended session that was established to the totals. A client that leaves without a ping was not served. */
static void count_session(struct rping_server *server, const struct session *session, enum outcome outcome)
{
	server->figures.connected--;
	server->figures.failed += outcome != OUTCOME_OK;
	server->figures.served += !outcome && session->peer.pings;
	watch_idle(server);
	run_record_outcome(server->run, outcome);
}

static void add_record(const struct session *session, enum outcome outcome)
{
	struct report *report = run_begin_record(session->server->run, "client");

	if (!report)
		return;
	report_text(report, "peer", session->peer.name);
	report_count(report, "pings", session->peer.pings);
	report_text(report, "verdict", outcome ? "fail" : "pass");
	report_close(report);
}

/* Ends a session, and perhaps the server. */
static void session_end(struct session *session, enum outcome outcome)
{
	const struct peer *peer = &session->peer;
	struct rping_server *server = session->server;

	log_report(peer->log, &server->run->transport->error);
	error_clear(&server->run->transport->error);
	if (session_is_connected(session)) {
		count_session(server, session, outcome);
		if (!peer->log->silent) {
			add_record(session, outcome);
			peer_print_result(peer, outcome, server->one_shot);
		}
	} else if (outcome == OUTCOME_INTERNAL) {
		note_resource_failure(server, outcome);
	}
	session_destroy(session);
	server_advance(server);
}

static void session_end_if_failed(struct session *session, enum outcome outcome)
{
	if (outcome)
		session_end(session, outcome);
}

static void session_expired(void *context)
{
	session_end_if_failed(context, session_expire(context));
}

static void session_completed(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	(void)endpoint;
	session_end_if_failed(context, session_complete(context, completion));
}

static void session_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct session *session = context;

	(void)endpoint;
	peer_print_event(&session->peer, event->kind);
	if (event->kind == EVENT_ESTABLISHED) {
		session_established(session);
		watch_idle(session->server);
	} else if (event->kind == EVENT_DISCONNECTED) {
		session_end(session, session_verdict(session));
	} else if (event->kind == EVENT_FAILED) {
		session_end(session, event->outcome);
	}
}

static const struct endpoint_handlers session_handlers = {
	.event = session_event,
	.completion = session_completed,
};

/* ---- callbacks of the listener ---- */

/*
 * With -P pending requests do not count as connected: forged ones would block clients. The backlog limits them. They do
 * count for --max-clients, which limits how many a run ever serves.
 */
static bool is_busy(const struct rping_server *server)
{
	if (!server->options->persistent)
		return server->sessions;
	return server->figures.connected >= RPING_CLIENTS_MAX ||
	       is_limit_reached(server, ended_sessions(server) + server->session_count);
}

static void add_session(struct rping_server *server, struct session *session, const struct endpoint_event *event)
{
	const struct log *log = &server->run->log;

	session_prepare(session, server, server->one_shot || log_allows(&server->no_ping_limit) ? log : &server->silent,
			event);
	session->peer.expired = session_expired;
	session->link = &server->sessions;
	session->next = server->sessions;
	if (session->next)
		session->next->link = &session->next;
	server->sessions = session;
	server->session_count++;
	event->request->handlers = &session_handlers;
	event->request->context = session;
	peer_print_event(&session->peer, event->kind);
}

static void connection_requested(struct rping_server *server, const struct endpoint_event *event)
{
	struct session *session;
	enum outcome outcome;

	if (request_is_foreign(server->run, event, HELLO_RPING))
		return;
	if (is_busy(server)) {
		log_debug(&server->run->log, "%s: rejected: " HELLO_BUSY, event->request->name);
		endpoint_reject(event->request, HELLO_BUSY, sizeof(HELLO_BUSY));
		return;
	}
	session = run_allocate(server->run, 1, sizeof(*session));
	if (session)
		add_session(server, session, event);
	outcome = session_accept(session);
	if (outcome)
		request_refuse(server->run, event->request);
	if (outcome && session) {
		session->peer.endpoint = NULL;
		session_end(session, outcome);
	} else {
		note_resource_failure(server, outcome);
	}
}

static void listener_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct rping_server *server = context;

	(void)endpoint;
	run_report_error(server->run);
	if (event->kind == EVENT_REQUEST)
		connection_requested(server, event);
	/* The transport lacked resources for a client, which a busy server would have rejected anyway. */
	else if (event->kind == EVENT_FAILED || !is_busy(server))
		note_resource_failure(server, event->outcome);
	/* The listener's device may be removed: its sessions get own events, those of other devices may finish. */
	if (event->kind == EVENT_FAILED)
		stop_listening(server);
	server_advance(server);
}

static const struct endpoint_handlers listener_handlers = {
	.event = listener_event,
};

static enum outcome listen_at(struct rping_server *server, struct address *address)
{
	enum outcome outcome = peer_create_endpoint(ENDPOINT_LISTENER, server->channel, server->options,
						    &listener_handlers, server, &server->listener);

	address->port = (uint16_t)server->options->port;
	if (!outcome)
		outcome = endpoint_listen(server->listener, address);
	if (outcome)
		return outcome;
	server->listened = true;
	watch_idle(server);
	run_listens(server->run, server->listener, server->host, server->run->log.name, "ready");
	return OUTCOME_OK;
}

/* ---- start and stop ---- */

/* Scripts write a device name after -d, which a stock server ignores. */
const char *rping_listen_address(const struct rping_options *options)
{
	if (options->addresses.count && !host_is_device(options->addresses.texts[0]))
		return options->addresses.texts[0];
	return options->common.family.ip6 ? "::" : "0.0.0.0";
}

enum outcome rping_server_start(struct run *run, const struct rping_options *options, void **state)
{
	struct rping_server *server = *state = run_allocate(run, 1, sizeof(*server));
	struct resolver local;
	enum outcome outcome;

	if (!server)
		return OUTCOME_INTERNAL;
	server->options = options;
	server->run = run;
	server->host = rping_listen_address(options);
	outcome = channel_create(run->transport, &server->channel);
	if (outcome)
		return outcome;
	server->silent = run->log;
	server->silent.silent = true;
	server->silent.reported = NULL;
	server->limit = EXTRA(options->max_clients) ? (uint64_t)options->max_clients : !options->persistent;
	server->one_shot = !options->persistent && server->limit == 1;
	outcome = lookup(&local, run, &options->common, server->host, ADDRESS_FORMAT_ANY);
	if (!outcome) {
		outcome = listen_at(server, &local.addresses[0]);
		/* As in ping -s 100 -c 5 ADDRESS. */
		if (WITH_HELP && outcome && options->count && options->addresses.count)
			error_hint(&run->transport->error,
				   "-s is a server here; to ping: %s -C %d %s -p %d --transport %s", run->log.name,
				   (int)options->count, server->host, (int)options->port,
				   transport_name(run->transport));
	}
	if (outcome)
		server_finish(server, outcome);
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
		session_end_if_failed(session, session_interrupt(session, reason));
	}
	server_advance(server);
}

static const struct figure server_figures[] = {
	FIGURE(TEXT, "role", struct server_figures, role, .flags = FIGURE_LABEL),
	FIGURE(TEXT, "target", struct server_figures, target, .flags = FIGURE_LABEL),
	FIGURES_OPEN("served"),
	FIGURE(COUNT, "clients", struct server_figures, served, .forms = IN_FULL),
	FIGURE(COUNT, "failed", struct server_figures, failed, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	FIGURE(GAUGE, "connected", struct server_figures, connected, .flags = FIGURE_UNLESS_0),
	FIGURES_CLOSE,
	FIGURES_OPEN("pings"),
	FIGURE(COUNT, "answered", struct server_figures, answered),
	FIGURE(COUNT, "verified", struct server_figures, verified, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	FIGURES_CLOSE,
	FIGURES_END,
};

struct figures rping_server_figures(void *state)
{
	struct rping_server *server = state;
	struct server_figures *figures = &server->figures;

	figures->role = "server";
	figures->target = server->host;
	figures->verified = server->options->validate ? figures->answered : 0;
	return (struct figures){ server_figures,
				 figures,
				 &server->before,
				 sizeof(*figures),
				 .summarised = server->one_shot ? ended_sessions(server) : server->listened,
				 .under_way = figures->connected };
}

/* Endpoints still use the channel while they are destroyed: transport_close() frees it. */
void rping_server_stop(void *state)
{
	struct rping_server *server = state;

	loop_timer_stop(&server->idle);
	while (server->sessions)
		session_destroy(server->sessions);
	endpoint_destroy(server->listener);
	free(server);
}
