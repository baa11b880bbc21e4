/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/dial.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/units.h"

#define PAUSE (100 * CLOCK_NS_PER_MS)

struct held_message {
	struct error error; /* a hint is its cause */
	bool is_hint;
};

/* ---- held messages ---- */

static void held_forget(struct dial *dial)
{
	free(dial->held);
	dial->held = NULL;
	dial->held_count = 0;
}

static bool held_add(struct dial *dial, const struct held_message *message)
{
	struct held_message *held;

	if (!dial->attempting)
		return false;
	dial->absent = dial->absent || message->error.kind != ERROR_OTHER;
	if (dial->stale)
		held_forget(dial);
	dial->stale = false;
	held = realloc(dial->held, (dial->held_count + 1) * sizeof(*held));
	if (!held)
		return false;
	dial->held = held;
	held[dial->held_count++] = *message;
	return true;
}

static void report_error(const struct log *log, const struct error *error)
{
	struct dial *dial = log->context;

	if (!held_add(dial, &(struct held_message){ .error = *error }))
		log_report(dial->options.log, error);
}

static void report_hint(const struct log *log, const char *text)
{
	struct dial *dial = log->context;
	struct held_message message = { .is_hint = true };

	log_text(message.error.cause, sizeof(message.error.cause), "%s", text);
	if (!held_add(dial, &message))
		log_hint(dial->options.log, "%s", text);
}

static const struct log_sink sink = { .error = report_error, .hint = report_hint };

static void held_report(struct dial *dial, bool as_hints)
{
	const struct log *log = dial->options.log;
	char text[ERROR_TEXT_SIZE];

	for (size_t i = 0; i < dial->held_count; i++) {
		const struct error *error = &dial->held[i].error;

		if (dial->held[i].is_hint)
			log_hint(log, "%s", error->cause);
		else if (as_hints)
			log_hint(log, "%s: %s", error->object, error_text(error, text));
		else
			log_report(log, error);
	}
	held_forget(dial);
}

const struct error *dial_error(const struct dial *dial)
{
	const struct error *found = NULL;

	for (size_t i = 0; i < dial->held_count; i++) {
		const struct error *error = &dial->held[i].error;

		if (!dial->held[i].is_hint && (!found || found->kind == ERROR_OTHER || error->kind != ERROR_OTHER))
			found = error;
	}
	return found;
}

/* ---- attempts ---- */

static enum outcome connect_next(struct dial *dial)
{
	enum outcome outcome = OUTCOME_NO_CONNECTION;

	/* At the deadline the error of the last attempt is what ended the run. */
	while (outcome && dial->address_next < dial->resolver.count &&
	       !(dial->held_count && loop_deadline_passed(dial->options.environment->loop))) {
		dial->address = dial->resolver.addresses[dial->address_next++];
		address_text(&dial->address, dial->name);
		if (WITH_NAMES && dial->address_next > 1 && !EXTRA(dial->until)) {
			held_report(dial, true);
			log_hint(dial->options.log, "trying the next address of %s: %s", dial->options.host,
				 dial->name);
		}
		outcome = dial->options.handlers->connect(dial->options.context);
	}
	return outcome;
}

static void pause_over(void *context)
{
	struct dial *dial = context;

	dial->options.handlers->resumed(dial->options.context);
}

/* The last round starts when --wait-server expires. */
static bool pause_before_next_round(struct dial *dial)
{
	int64_t left = dial->until - clock_now();

	if (!WITH_EXTRAS || !dial->absent || left <= 0 || loop_deadline_passed(dial->options.environment->loop))
		return false;
	dial->absent = false;
	dial->stale = true;
	loop_phase_start(dial->options.environment->loop, &dial->pause, left < PAUSE ? left : PAUSE, pause_over, dial);
	return true;
}

static void attempt_ended(struct dial *dial, enum outcome outcome)
{
	const struct dial_handlers *handlers = dial->options.handlers;

	if (!outcome)
		return;
	if (outcome == OUTCOME_NO_CONNECTION && pause_before_next_round(dial))
		handlers->paused(dial->options.context);
	else
		handlers->failed(dial->options.context, outcome);
}

void dial_begin(struct dial *dial)
{
	dial->attempting = true;
	dial->address_next = 0;
	attempt_ended(dial, connect_next(dial));
}

void dial_failed(struct dial *dial, enum outcome outcome, bool busy)
{
	dial->absent = dial->absent || busy;
	if (dial->address_next < dial->resolver.count)
		outcome = connect_next(dial);
	attempt_ended(dial, outcome);
}

static void hint_waited(const struct dial_options *options)
{
	log_hint(options->log, "no server within %g s (--wait-server)", units_seconds(options->wait_server));
}

void dial_give_up(struct dial *dial)
{
	const struct dial_options *options = &dial->options;
	const struct error *error = dial_error(dial);
	enum error_kind kind = error ? error->kind : ERROR_OTHER;
	bool ended = loop_deadline_passed(options->environment->loop);
	bool waited = EXTRA(dial->until) && dial->held_count && (ended || (dial->absent && clock_now() >= dial->until));
	char text[LOOP_PHASE_TEXT_SIZE];

	dial->attempting = false;
	held_report(dial, false);
	if (kind == ERROR_NO_LISTENER && !waited && options->server)
		log_hint(options->log, "if host and port are right, run there: rdmatest %s%s -p %u --transport %s",
			 options->server, EXTRA(dial->address.family == ADDRESS_IP6) ? " --ipv6" : "", options->port,
			 transport_name(options->transport));
	if (COMMAND_doctor && kind == ERROR_NO_REPLY && !waited && options->server)
		log_hint(options->log, "to check the way there: rdmatest doctor %s --transport %s", options->host,
			 transport_name(options->transport));
	if (waited && ended)
		log_hint(options->log, "--wait-server: %s", loop_phase_text(options->environment->loop, 0, text));
	else if (waited)
		hint_waited(options);
	dial_stop(dial);
}

void dial_interrupt(struct dial *dial)
{
	loop_timer_stop(&dial->pause);
	dial->attempting = false;
	dial->address_next = dial->resolver.count;
}

void dial_hint(struct dial *dial)
{
	const struct error *error = dial_error(dial);
	char text[ERROR_TEXT_SIZE];

	if (error)
		log_hint(dial->options.log, "last error of %s: %s", dial->name, error_text(error, text));
	dial_stop(dial);
}

void dial_initialise(struct dial *dial, const struct dial_options *options)
{
	*dial = (struct dial){ .options = *options, .log = *options->log };
	dial->log.sink = &sink;
	dial->log.context = dial;
}

void dial_look_up(struct dial *dial)
{
	const struct dial_options *options = &dial->options;

	if (EXTRA(options->wait_server))
		dial->until = clock_now() + options->wait_server;
	resolver_start(&dial->resolver, options->log, options->host, options->format, EXTRA(options->wait_server));
}

enum outcome dial_looked_up(struct dial *dial, enum address_family source)
{
	const struct dial_options *options = &dial->options;
	enum outcome outcome = lookup_finish(&dial->resolver, options->environment, options->common, source);

	if (outcome == OUTCOME_NO_CONNECTION && EXTRA(dial->until) && clock_now() >= dial->until)
		hint_waited(options);
	for (size_t i = 0; i < dial->resolver.count; i++)
		dial->resolver.addresses[i].port = options->port;
	return outcome;
}

void dial_stop(struct dial *dial)
{
	dial_interrupt(dial);
	dial->until = 0;
	held_forget(dial);
}
