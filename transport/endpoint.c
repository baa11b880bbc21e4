/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state machine of an endpoint, its deadlines, and the order of its events and completions.
 *
 *   connection:  IDLE -> RESOLVING_ADDRESS -> ADDRESS_RESOLVED -> RESOLVING_ROUTE -> ROUTE_RESOLVED -> CONNECTING -.
 *                                                            REQUESTED -> ACCEPTING ------------------------------+
 *                                                                                                                 v
 *                                                      DISCONNECTED <- (DISCONNECTING <-) ESTABLISHED <-----------'
 *   listener:    IDLE -> LISTENING
 *   group:       IDLE -> RESOLVING_ADDRESS -> ADDRESS_RESOLVED -> JOINING -> JOINED
 *
 * Every state may lead to FAILED and to DESTROYED.
 */
#include <errno.h>
#include <string.h>

#include "core/clock.h"
#include "core/host.h"
#include "core/units.h"
#include "transport/backend.h"

#define BIT(state) (1u << ENDPOINT_##state)
#define ENDED	   (BIT(FAILED) | BIT(DESTROYED))
/* States with a timer. */
#define WAITING                                                                                                        \
	(BIT(RESOLVING_ADDRESS) | BIT(RESOLVING_ROUTE) | BIT(CONNECTING) | BIT(ACCEPTING) | BIT(DISCONNECTING) |       \
	 BIT(JOINING))

/* Texts of states without a timer: for traces only. */
#define TRACED(text) (WITH_DIAGNOSTICS ? text : NULL)

static const char *const state_texts[] = {
	[ENDPOINT_IDLE] = TRACED("idle"),
	[ENDPOINT_RESOLVING_ADDRESS] = "resolving the address",
	[ENDPOINT_ADDRESS_RESOLVED] = TRACED("address resolved"),
	[ENDPOINT_RESOLVING_ROUTE] = "resolving the route",
	[ENDPOINT_ROUTE_RESOLVED] = TRACED("route resolved"),
	[ENDPOINT_CONNECTING] = "connecting",
	[ENDPOINT_LISTENING] = "listening",
	[ENDPOINT_REQUESTED] = TRACED("requested"),
	[ENDPOINT_ACCEPTING] = "accepting",
	[ENDPOINT_ESTABLISHED] = TRACED("established"),
	[ENDPOINT_DISCONNECTING] = "disconnecting",
	[ENDPOINT_DISCONNECTED] = TRACED("disconnected"),
	[ENDPOINT_JOINING] = "joining",
	[ENDPOINT_JOINED] = TRACED("joined"),
	[ENDPOINT_FAILED] = TRACED("failed"),
	[ENDPOINT_DESTROYED] = TRACED("destroyed"),
};

static const uint16_t next_states[] = {
	[ENDPOINT_IDLE] = BIT(RESOLVING_ADDRESS) | BIT(LISTENING) | BIT(REQUESTED) | ENDED,
	[ENDPOINT_RESOLVING_ADDRESS] = BIT(ADDRESS_RESOLVED) | ENDED,
	[ENDPOINT_ADDRESS_RESOLVED] = BIT(RESOLVING_ROUTE) | BIT(JOINING) | ENDED,
	[ENDPOINT_RESOLVING_ROUTE] = BIT(ROUTE_RESOLVED) | ENDED,
	[ENDPOINT_ROUTE_RESOLVED] = BIT(CONNECTING) | ENDED,
	[ENDPOINT_CONNECTING] = BIT(ESTABLISHED) | ENDED,
	[ENDPOINT_LISTENING] = ENDED,
	[ENDPOINT_REQUESTED] = BIT(ACCEPTING) | ENDED,
	[ENDPOINT_ACCEPTING] = BIT(ESTABLISHED) | ENDED,
	[ENDPOINT_ESTABLISHED] = BIT(DISCONNECTING) | BIT(DISCONNECTED) | ENDED,
	[ENDPOINT_DISCONNECTING] = BIT(DISCONNECTED) | ENDED,
	[ENDPOINT_DISCONNECTED] = ENDED,
	[ENDPOINT_JOINING] = BIT(JOINED) | ENDED,
	[ENDPOINT_JOINED] = ENDED,
	[ENDPOINT_FAILED] = BIT(DESTROYED),
	[ENDPOINT_DESTROYED] = BIT(DESTROYED),
};

const char *endpoint_state_text(enum endpoint_state state)
{
	return state_texts[state];
}

void endpoint_initialise(struct endpoint *endpoint, struct channel *channel, enum endpoint_kind kind,
			 const struct endpoint_options *options)
{
	endpoint->transport = channel->transport;
	endpoint->channel = channel;
	endpoint->kind = kind;
	endpoint->options = *options;
	if (!options->path)
		endpoint->options.path = &path_unset;
}

bool endpoint_take_log_line(const struct endpoint *endpoint)
{
	return (endpoint->state != ENDPOINT_ACCEPTING && endpoint->state != ENDPOINT_LISTENING) ||
	       log_allows(&endpoint->transport->request_log_limit);
}

/* Anybody can send requests to a server, so the lines about them are limited. */
static void limit_errors(const struct endpoint *endpoint)
{
	if (error_is_set(endpoint_error(endpoint)) && !endpoint_take_log_line(endpoint))
		error_clear(endpoint_error(endpoint));
}

/* ECONNREFUSED over UDP: no process holds the port. */
enum error_kind endpoint_errno_kind(int error)
{
	if (error == ECONNREFUSED)
		return ERROR_NO_LISTENER;
	return error == ETIMEDOUT || error == EHOSTUNREACH ? ERROR_NO_REPLY : ERROR_OTHER;
}

enum error_kind endpoint_rejection_kind(int reason)
{
	if (WITH_DIAGNOSTICS && reason == REJECTED_TIMEOUT)
		return ERROR_NO_REPLY;
	if (WITH_DIAGNOSTICS && reason == REJECTED_STALE)
		return ERROR_STALE;
	return reason == REJECTED_NO_LISTENER ? ERROR_NO_LISTENER : ERROR_OTHER;
}

/* The option that limits a wait to less than two round trips, or NULL. */
static const char *short_limit(const struct endpoint *endpoint)
{
	const struct path_options *path = endpoint->options.path;
	int64_t least = 2 * endpoint->took, timeout = endpoint->options.timeout;
	int64_t tries = path->retry == PATH_UNSET ? 8 : path->retry + 1;

	if (loop_deadline_passed(endpoint->transport->loop))
		return NULL;
	if (timeout && timeout < least)
		return "timeout";
	return path->ack_timeout > 0 && tries * (4096LL << path->ack_timeout) < least ? "ACK timeout, or more retries"
										      : NULL;
}

#define TOLD_AFTER (2 * CLOCK_NS_PER_S)
#define ASK_PAUSE  (100 * CLOCK_NS_PER_MS)

/* The silence is this process's own if it was stopped; "" if it was not. */
static const char *still_text(const struct endpoint *endpoint, char text[ENDPOINT_TIMEOUT_CAUSE_SIZE])
{
	int64_t still = WITH_EXTRAS ? loop_stood_still(endpoint->transport->loop) : 0;
	char time[UNITS_TEXT_SIZE];

	return still ? log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE,
				"this process stood still for %s: it was stopped or paused, or its output blocked",
				units_time(still, time))
		     : "";
}

/* During a flood of failing requests, the kernel's tables must not be read for each. */
static bool has_just_asked(const struct endpoint *endpoint)
{
	struct transport *transport = endpoint->transport;
	int64_t now = clock_now();

	if (endpoint->state != ENDPOINT_ACCEPTING)
		return false;
	if (transport->asked_at && now - transport->asked_at < ASK_PAUSE)
		return true;
	transport->asked_at = now;
	return false;
}

/* From the kernel's tables. Soft tells its strays itself, beside an ICMP error. */
static bool find_route_cause(const struct endpoint *endpoint, char why[ROUTE_CAUSE_SIZE])
{
	return (backend_of(endpoint->transport)->opens_devices &&
		route_is_elsewhere(&endpoint->local, &endpoint->peer, why)) ||
	       route_cause(&endpoint->local, &endpoint->peer, why);
}

const char *endpoint_timeout_cause(const struct endpoint *endpoint, char text[ENDPOINT_TIMEOUT_CAUSE_SIZE])
{
	char why[ROUTE_CAUSE_SIZE], dropped[DROPS_SIZE], time[UNITS_TEXT_SIZE];
	char still[ENDPOINT_TIMEOUT_CAUSE_SIZE];
	const char *limit;

	if (!WITH_DIAGNOSTICS)
		return "";
	*text = '\0';
	if (has_just_asked(endpoint))
		return text;
	if (*still_text(endpoint, still))
		log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "; %s", still);
	else if (backend_of(endpoint->transport)->timeout_cause)
		backend_of(endpoint->transport)->timeout_cause(endpoint, text);
	if (!*text && find_route_cause(endpoint, why))
		log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "; %s", why);
	if (!*text && endpoint->took && (limit = short_limit(endpoint)))
		log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "; connecting took %s: try a longer %s",
			 units_time(endpoint->took, time), limit);
	if (drops_since(&endpoint->transport->drops, dropped))
		log_add(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "", "; %s", dropped);
	endpoint->transport->explained = *text;
	return text;
}

void endpoint_timed_out(void *context)
{
	struct endpoint *endpoint = context;
	char cause[ENDPOINT_TIMEOUT_CAUSE_SIZE], text[LOOP_PHASE_TEXT_SIZE];

	error_failure(endpoint_error(endpoint),
		      &(struct failure){ .object = endpoint->name,
					 .phase = state_texts[endpoint->state],
					 .kind = endpoint->state <= ENDPOINT_ACCEPTING ? ERROR_NO_REPLY : ERROR_OTHER },
		      "%s%s", loop_phase_text(endpoint->transport->loop, endpoint->options.timeout, text),
		      endpoint_timeout_cause(endpoint, cause));
	endpoint_fail(endpoint, endpoint_outcome(endpoint));
}

/* One line suffices at a terminal, for any of many endpoints. */
static void tell_what_is_waited_for(void *context)
{
	struct endpoint *endpoint = context;
	struct transport *transport = endpoint->transport;
	struct log log = *transport->log;
	char cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];

	log.errors = NULL; /* it is no hint of an earlier error */
	if (transport->tells)
		log_hint(&log, "%s: still %s%s", endpoint->name, state_texts[endpoint->state],
			 endpoint_timeout_cause(endpoint, cause));
	transport->tells = false;
}

bool endpoint_enter(struct endpoint *endpoint, enum endpoint_state state)
{
	bool waits = WAITING >> state & 1;

	if (WITH_DIAGNOSTICS &&
	    !log_transition(state_texts, next_states, endpoint->state, state, endpoint->transport->log, "%s",
			    endpoint->name[0] ? endpoint->name : "endpoint"))
		return false;
	endpoint->state = state;
	if (WITH_REPORT && waits && !endpoint->began)
		endpoint->began = clock_now();
	if (waits && endpoint->options.timeout)
		loop_phase_start(endpoint->transport->loop, &endpoint->timer, endpoint->options.timeout,
				 endpoint_timed_out, endpoint);
	else
		loop_timer_stop(&endpoint->timer);
	if (WITH_DIAGNOSTICS && waits && state != ENDPOINT_ACCEPTING && endpoint->transport->tells)
		loop_timer_start(endpoint->transport->loop, &endpoint->slow, TOLD_AFTER, tell_what_is_waited_for,
				 endpoint);
	else
		loop_timer_stop(&endpoint->slow);
	return true;
}

void endpoint_set_name(struct endpoint *endpoint)
{
	if (endpoint->kind == ENDPOINT_LISTENER)
		address_text(&endpoint->local, endpoint->name);
	else if (endpoint_is_group(endpoint))
		address_host(&endpoint->peer, endpoint->name);
	else
		address_text(&endpoint->peer, endpoint->name);
}

enum outcome endpoint_outcome(const struct endpoint *endpoint)
{
	const unsigned after = BIT(ESTABLISHED) | BIT(DISCONNECTING) | BIT(DISCONNECTED) | BIT(JOINED) | BIT(LISTENING);

	return after >> endpoint->state & 1 ? OUTCOME_FAILED : OUTCOME_NO_CONNECTION;
}

enum outcome transport_no_memory(struct error *error, const char *object, const char *phase)
{
	error_errno(error, object, ENOMEM, "%s", phase);
	return OUTCOME_INTERNAL;
}

/* There is no route, or an unusable address: the kernel's tables often show more than its errno. */
static void hint_at_route(const struct endpoint *endpoint, int code)
{
	char why[ROUTE_CAUSE_SIZE];

	if (route_cause_local(&endpoint->local, why) ||
	    ((code == ENETUNREACH || code == EHOSTUNREACH) && find_route_cause(endpoint, why)))
		error_hint(endpoint_error(endpoint), "%s", why);
}

enum outcome endpoint_no_connection(const struct endpoint *endpoint, const char *phase, int code, const char *cause)
{
	error_failure(
		endpoint_error(endpoint),
		&(struct failure){
			.object = endpoint->name, .phase = phase, .code = code, .kind = endpoint_errno_kind(code) },
		"%s", cause);
	if (WITH_DIAGNOSTICS)
		hint_at_route(endpoint, code);
	return OUTCOME_NO_CONNECTION;
}

/* The state after an event; 0: unchanged. */
static const uint8_t event_states[] = {
	[EVENT_ADDRESS_RESOLVED] = ENDPOINT_ADDRESS_RESOLVED,
	[EVENT_ROUTE_RESOLVED] = ENDPOINT_ROUTE_RESOLVED,
	[EVENT_ESTABLISHED] = ENDPOINT_ESTABLISHED,
	[EVENT_DISCONNECTED] = ENDPOINT_DISCONNECTED,
	[EVENT_JOINED] = ENDPOINT_JOINED,
	[EVENT_FAILED] = ENDPOINT_FAILED,
};

/* Soft's hint has several causes of the silence; no other is known. */
static void suspect_card(const struct endpoint *endpoint, struct error *error)
{
	char cause[ENDPOINT_TIMEOUT_CAUSE_SIZE], device[SYSFS_TEXT_SIZE];
	struct path path = { .interface = "" };

	if (endpoint->state != ENDPOINT_CONNECTING || error->kind != ERROR_NO_REPLY || !*error->hint ||
	    *endpoint_timeout_cause(endpoint, cause) || !backend_of(endpoint->transport)->path)
		return;
	backend_of(endpoint->transport)->path(endpoint, &path);
	if (host_find_card(path.interface, device))
		log_add(error->hint, sizeof(error->hint), "; ",
			"or the RDMA device %s takes UDP port 4791 of %s from the kernel: use verbs", device,
			path.interface);
}

/*
 * Only a longer limit would show whether the path works: a connection manager's step may take a second. Either end may
 * have given up.
 */
static void hint_at_timeout(const struct endpoint *endpoint, struct error *error)
{
	int64_t waited = clock_now() - endpoint->began;
	bool own = endpoint->options.timeout && waited >= endpoint->options.timeout;
	char time[UNITS_TEXT_SIZE];

	if (endpoint->began && waited < CLOCK_NS_PER_S && (own || endpoint->state == ENDPOINT_ACCEPTING) &&
	    !address_is_loopback(&endpoint->local))
		log_add(error->hint, sizeof(error->hint), "; ",
			"gave up after %s: %s timeout may be shorter than a round trip", units_time(waited, time),
			own ? "this" : "the peer's");
}

static void explain(const struct endpoint *endpoint)
{
	struct error *error = endpoint_error(endpoint);
	bool silent = error->kind == ERROR_NO_REPLY && !loop_deadline_passed(endpoint->transport->loop);
	char why[ROUTE_CAUSE_SIZE], still[ENDPOINT_TIMEOUT_CAUSE_SIZE];

	if (silent && *still_text(endpoint, still)) {
		if (!endpoint->transport->explained)
			error_hint(error, "%s", still);
		return;
	}
	if (silent && !endpoint->transport->explained && route_doubt(&endpoint->local, &endpoint->peer, why))
		error_hint(error, "%s", why);
	if (WITH_SOFT && backend_of(endpoint->transport)->explain) {
		backend_of(endpoint->transport)->explain(endpoint, error);
		suspect_card(endpoint, error);
	}
	/*
	 * The peer's request has arrived, but its next packet has not, or our reply was lost. After a deadline the wait
	 * may merely have been too short.
	 */
	if (endpoint->state == ENDPOINT_ACCEPTING && silent)
		error_hint(error, "%s",
			   route_cause(&endpoint->local, &endpoint->peer, why) && !strstr(error->cause, why)
				   ? why
				   : "requests arrive, answers do not: a firewall or route passes one direction only");
	if (silent && !endpoint->transport->explained)
		hint_at_timeout(endpoint, error);
}

static void note_untried(const struct endpoint *endpoint)
{
	struct transport *transport = endpoint->transport;

	if (endpoint->state != ENDPOINT_CONNECTING)
		return;
	transport->untried = 0;
	if (endpoint->domain->fabric != FABRIC_ROCE || address_is_loopback(&endpoint->peer) ||
	    address_same_host(&endpoint->local, &endpoint->peer))
		return;
	if (path_type_of_service(endpoint->options.path) == PATH_UNSET)
		transport->untried |= UNTRIED_CLASS;
	if (!backend_of(transport)->opens_devices)
		transport->untried |= UNTRIED_PATH;
}

void endpoint_deliver(struct endpoint *endpoint, struct endpoint_event *event)
{
	bool failed = event->kind == EVENT_FAILED, has_error = failed || event->kind == EVENT_REQUEST_FAILED;

	/* The deadline may already have ended the endpoint in this turn of the loop. */
	if (endpoint->state >= ENDPOINT_FAILED)
		return;
	if (!has_error)
		error_clear(endpoint_error(endpoint));
	else if (!failed || endpoint->kind != ENDPOINT_LISTENER)
		limit_errors(endpoint);
	/* Not for an error whose line was one too many. */
	if (WITH_DIAGNOSTICS && failed && error_is_set(endpoint_error(endpoint)))
		explain(endpoint);
	if (WITH_REPORT && endpoint->began)
		event->took = clock_now() - endpoint->began;
	if (WITH_REPORT && event->kind == EVENT_ESTABLISHED)
		endpoint->took = event->took;
	if (WITH_EXTRAS && event->kind == EVENT_ESTABLISHED && endpoint->domain)
		note_untried(endpoint);
	endpoint->began = 0;
	if (!event->private_length)
		event->private_data = NULL;
	if (event_states[event->kind])
		endpoint_enter(endpoint, event_states[event->kind]);
	endpoint->handlers->event(endpoint->context, endpoint, event);
}

static void deliver(struct endpoint *endpoint, enum event_kind kind, enum outcome outcome, const uint8_t *private_data,
		    size_t length)
{
	endpoint_deliver(endpoint, &(struct endpoint_event){
					   .kind = kind,
					   .outcome = outcome,
					   .private_data = private_data,
					   .private_length = length,
				   });
}

void endpoint_deliver_kind(struct endpoint *endpoint, enum event_kind kind)
{
	deliver(endpoint, kind, OUTCOME_OK, NULL, 0);
}

void endpoint_destroy(struct endpoint *endpoint)
{
	if (!endpoint || endpoint->state == ENDPOINT_DESTROYED)
		return;
	endpoint_enter(endpoint, ENDPOINT_DESTROYED);
	backend_of(endpoint->transport)->endpoint_destroy(endpoint);
}

void endpoint_reject(struct endpoint *endpoint, const void *data, size_t length)
{
	backend_of(endpoint->transport)->reject(endpoint, data, length);
	endpoint_destroy(endpoint);
}

void endpoint_request_failed(struct endpoint *listener, enum outcome outcome)
{
	if (outcome != OUTCOME_NO_CONNECTION)
		deliver(listener, EVENT_REQUEST_FAILED, outcome, NULL, 0);
}

void endpoint_refuse(struct endpoint *listener, struct endpoint *request, enum outcome outcome)
{
	struct error *error = endpoint_error(listener);
	char cause[PRIVATE_DATA_MAX];

	log_text(cause, sizeof(cause), "%s", WITH_DIAGNOSTICS ? error->cause : "");
	endpoint_reject(request, cause, strlen(cause));
	if (WITH_DIAGNOSTICS && outcome == OUTCOME_NO_CONNECTION) {
		limit_errors(listener);
		log_report(listener->transport->log, error);
		error_clear(error);
	}
	endpoint_request_failed(listener, outcome);
}

void endpoint_deliver_request(struct endpoint *listener, struct endpoint *request, const uint8_t *private_data,
			      size_t length)
{
	if (!path_has_interface(request)) {
		path_exclude(request);
		endpoint_refuse(listener, request, OUTCOME_NO_CONNECTION);
		return;
	}
	request->handlers = listener->handlers;
	request->context = listener->context;
	endpoint_deliver(listener, &(struct endpoint_event){
					   .kind = EVENT_REQUEST,
					   .request = request,
					   .private_data = private_data,
					   .private_length = length,
				   });
}

void endpoint_request_no_memory(struct endpoint *listener)
{
	error_set(endpoint_error(listener), listener->name, "refused a connection request: out of memory");
	endpoint_request_failed(listener, OUTCOME_INTERNAL);
}

void endpoint_fail(struct endpoint *endpoint, enum outcome outcome)
{
	deliver(endpoint, EVENT_FAILED, outcome, NULL, 0);
}

void endpoint_rejected(struct endpoint *endpoint, const uint8_t *private_data, size_t length)
{
	deliver(endpoint, EVENT_FAILED, endpoint_outcome(endpoint), private_data, length);
}

const char *endpoint_reject_text(const uint8_t *data, size_t length, char text[ENDPOINT_REJECT_TEXT_SIZE])
{
	int count = 0;

	while (data && count < PRIVATE_DATA_MAX && (size_t)count < length && data[count] >= ' ' && data[count] <= '~')
		count++;
	if (!count)
		return "";
	log_text(text, ENDPOINT_REJECT_TEXT_SIZE, ": \"%.*s\"", count, (const char *)data);
	return text;
}

void endpoint_established(struct endpoint *endpoint, const uint8_t *private_data, size_t length)
{
	if (endpoint->state == ENDPOINT_CONNECTING || endpoint->state == ENDPOINT_ACCEPTING)
		deliver(endpoint, EVENT_ESTABLISHED, OUTCOME_OK, private_data, length);
}

static void fill_completion_error(struct endpoint *endpoint, const struct completion *completion, const char *code_name,
				  int code, const char *words)
{
	bool unanswered = completion->status == COMPLETION_RETRY_EXCEEDED;
	char cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];

	error_failure(endpoint_error(endpoint),
		      &(struct failure){ .object = endpoint->name, .code_name = code_name, .code = code },
		      "%s failed: %s%s", work_kind_text(completion->kind),
		      words || !(WITH_DIAGNOSTICS || WITH_SOFT) ? words : completion_status_text(completion->status),
		      unanswered ? endpoint_timeout_cause(endpoint, cause) : "");
}

void endpoint_complete(struct endpoint *endpoint, const struct completion *completion, const char *code_name, int code,
		       const char *words)
{
	/* The peer's first message may come before the event of the connection; on iWARP at either end. */
	if (completion->status == COMPLETION_OK)
		endpoint_established(endpoint, NULL, 0);
	if (endpoint->kind == ENDPOINT_CONNECTION && endpoint->state != ENDPOINT_ESTABLISHED)
		return;
	if (endpoint_is_group(endpoint) && endpoint->state >= ENDPOINT_FAILED)
		return;
	if (completion->status != COMPLETION_OK)
		fill_completion_error(endpoint, completion, code_name, code, words);
	endpoint->handlers->completion(endpoint->context, endpoint, completion);
}

const char *completion_status_text(enum completion_status status)
{
	static const char *const texts[] = {
		[COMPLETION_OK] = "success",
		[COMPLETION_LENGTH] = "the message is longer than the receive buffer",
		[COMPLETION_PROTECTION] = "local memory protection error",
		[COMPLETION_REMOTE_ACCESS] = "remote access error: the peer's key, bounds or access rights",
		[COMPLETION_REMOTE_REQUEST] =
			"the peer rejected the request as invalid, or as too long for its receive",
		[COMPLETION_REMOTE_OPERATION] = "the peer could not execute it",
		[COMPLETION_RETRY_EXCEEDED] = "the peer does not answer, retries exceeded",
		[COMPLETION_RNR_EXCEEDED] = "the peer has no receive posted, retries exceeded",
	};

	return status < sizeof(texts) / sizeof(*texts) ? texts[status] : NULL;
}

const char *work_kind_text(enum work_kind kind)
{
	static const char *const texts[] = {
		[WORK_SEND] = "send",
		[WORK_RECEIVE] = "receive",
		[WORK_READ] = "RDMA READ",
		[WORK_WRITE] = "RDMA WRITE",
	};

	return texts[kind];
}

const char *rejection_text(int reason)
{
	switch (reason) {
	case 1:
		return "the peer has no queue pair left";
	case REJECTED_NO_RESOURCES:
		return "the peer is out of resources";
	case REJECTED_TIMEOUT:
		return "the peer's connection manager timed out";
	case 5:
	case 35:
		return "the peer does not support the request";
	case REJECTED_INVALID_ID:
	case 7:
		return "the peer does not know the connection";
	case REJECTED_NO_LISTENER:
		return "nobody listens there";
	case REJECTED_TRANSPORT:
		return "the peer does not support the kind of transport";
	case REJECTED_STALE:
		return "the peer still has an older connection of this queue pair";
	case REJECTED_GID:
	case 13:
		return "the peer does not accept the address";
	case REJECTED_MTU:
		return "the peer does not accept the path MTU: give both interfaces the same MTU";
	case REJECTED_BY_CONSUMER:
		return "refused by the peer";
	default:
		return "the peer's connection manager refused";
	}
}
