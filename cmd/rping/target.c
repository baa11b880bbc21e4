/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/rping/target_state.h"
#include "core/units.h"

/* The resolver limits the time of a lookup, the transport those of connecting and disconnecting. */
static const struct state_row target_states[] = {
	[TARGET_WAITING] = { "waiting to connect",
			     STATE_BIT(TARGET_RESOLVING) | STATE_BIT(TARGET_CONNECTING) | STATE_BIT(TARGET_DONE) },
	[TARGET_RESOLVING] = { "looking up", STATE_BIT(TARGET_CONNECTING) | STATE_BIT(TARGET_DONE) },
	[TARGET_CONNECTING] = { "connecting", STATE_BIT(TARGET_CONNECTING) | STATE_BIT(TARGET_WAITING) |
						      STATE_BIT(TARGET_SOURCE_ADVERTISED) |
						      STATE_BIT(TARGET_DISCONNECTING) | STATE_BIT(TARGET_DONE) },
	[TARGET_SOURCE_ADVERTISED] = { "waiting for the server to read the ping",
				       STATE_BIT(TARGET_SINK_ADVERTISED) | STATE_BIT(TARGET_DISCONNECTING) |
					       STATE_BIT(TARGET_DONE),
				       true },
	[TARGET_SINK_ADVERTISED] = { "waiting for the server to write the ping back",
				     STATE_BIT(TARGET_SOURCE_ADVERTISED) | STATE_BIT(TARGET_DRAINING) |
					     STATE_BIT(TARGET_PACING) | STATE_BIT(TARGET_DISCONNECTING) |
					     STATE_BIT(TARGET_DONE),
				     true },
	[TARGET_DRAINING] = { "waiting for send completions",
			      STATE_BIT(TARGET_SOURCE_ADVERTISED) | STATE_BIT(TARGET_PACING) |
				      STATE_BIT(TARGET_DISCONNECTING) | STATE_BIT(TARGET_DONE),
			      true },
	[TARGET_PACING] = { "waiting for the next slot",
			    STATE_BIT(TARGET_SOURCE_ADVERTISED) | STATE_BIT(TARGET_DRAINING) |
				    STATE_BIT(TARGET_DISCONNECTING) | STATE_BIT(TARGET_DONE) },
	[TARGET_DISCONNECTING] = { "disconnecting", STATE_BIT(TARGET_DONE) },
	[TARGET_DONE] = { "done", 0 },
};

const char *target_name(const struct target *target)
{
	return target->dial.name[0] ? target->dial.name : target->address;
}

void target_enter(struct target *target, enum target_state state)
{
	state_enter(&target->state, state, target->endpoint ? target->endpoint->name : target->address);
}

void target_notify(struct target *target, enum target_event event)
{
	target->all->event(target->all->context, target, event);
}

/* ---- errors ---- */

static void record_error(struct target *target, const char *text)
{
	if (!target->error)
		target->error = strdup(text);
}

static void error_reported(const struct log *log, const struct error *error)
{
	struct target *target = log->context;
	char text[ERROR_TEXT_SIZE];

	if (!target->ended)
		record_error(target, error_text(error, text));
	log_report(&target->all->environment->log, error);
}

static void hint_reported(const struct log *log, const char *text)
{
	const struct target *target = log->context;

	log_hint(&target->all->environment->log, "%s", text);
}

static const struct log_sink sink = { .error = error_reported, .hint = hint_reported };

/* ---- end ---- */

void target_finish(struct target *target, enum outcome outcome)
{
	const struct error *error = dial_error(&target->dial);
	char text[ERROR_TEXT_SIZE];

	if (target->ended)
		return;
	if (outcome && error)
		record_error(target, error_text(error, text));
	if (outcome)
		dial_give_up(&target->dial);
	dial_stop(&target->dial);
	target_enter(target, TARGET_DONE);
	target_connection_drop(target);
	target->outcome = outcome;
	target->ended = true;
	target_notify(target, TARGET_ENDED);
}

static uint64_t requested_count(const struct target *target)
{
	return (uint64_t)target->all->options->count;
}

static uint64_t answered(const struct target *target)
{
	return target->record.counts.answered;
}

bool target_has_more(const struct target *target)
{
	return !requested_count(target) || answered(target) < requested_count(target);
}

const char *target_pings_text(const struct target *target, char text[PINGS_TEXT_SIZE])
{
	return rping_pings_text(answered(target), requested_count(target), text);
}

/* Reports an interruption at that progress. run.c has reported a passed deadline, once for all targets. */
static void report_interrupted(struct target *target, const char *text)
{
	if (target->deadline_passed)
		record_error(target, text);
	else
		log_error(target->state.log, target_name(target), "%s: interrupted", text);
}

/* True if all requested pings are done. An open-ended run is always complete. */
static bool is_complete(const struct target *target)
{
	if (requested_count(target) && !target_has_more(target))
		return true;
	return target->duration_passed || (!requested_count(target) && !target->all->options->duration);
}

enum outcome target_verdict(struct target *target)
{
	char pings[PINGS_TEXT_SIZE];
	char text[PINGS_TEXT_SIZE + 32];

	if (target->outcome)
		return target->outcome;
	if (!target->deadline_passed && answered(target) && is_complete(target))
		return OUTCOME_OK;
	snprintf(text, sizeof(text), "ended early, after %s", target_pings_text(target, pings));
	report_interrupted(target, text);
	return OUTCOME_FAILED;
}

void target_disconnect(struct target *target, enum outcome outcome)
{
	target->outcome = outcome;
	loop_timer_stop(&target->pace_timer);
	target_enter(target, TARGET_DISCONNECTING);
	outcome = endpoint_disconnect(target->endpoint);
	if (outcome)
		target_finish(target, target->outcome ? target->outcome : outcome);
}

static void target_timed_out(void *context)
{
	struct target *target = context;
	char silence[ENDPOINT_TIMEOUT_CAUSE_SIZE];

	log_failure(target->state.log,
		    &(struct failure){ .object = target->endpoint->name, .phase = state_text(&target->state) },
		    "timed out after %g s in ping %" PRIu64 "%s", units_seconds(target->state.timeout), target->done,
		    endpoint_timeout_cause(target->endpoint, silence));
	target_finish(target, OUTCOME_FAILED);
}

void target_prepare(struct target *target, struct targets *all, const char *address, uint16_t port)
{
	int64_t rate = all->options->rate;

	target->all = all;
	target->address = address;
	target->log = all->environment->log;
	target->log.sink = &sink;
	target->log.context = target;
	dial_initialise(&target->dial, &(struct dial_options){
					       .handlers = &target_dial_handlers,
					       .context = target,
					       .loop = all->environment->loop,
					       .log = &target->log,
					       .family = &all->options->common.family,
					       .format = ADDRESS_FORMAT_ANY,
					       .host = address,
					       .port = port,
					       .timeout = all->options->common.timeout,
					       .wait_server = all->options->wait_server,
				       });
	target->pace.period = rate ? CLOCK_NS_PER_S / rate : all->options->interval;
	target->state = (struct state){
		.rows = target_states,
		.loop = all->environment->loop,
		.log = &target->log,
		.timeout = all->options->common.timeout,
		.expired = target_timed_out,
		.context = target,
	};
}

static void interrupt_before_ping(struct target *target)
{
	char text[96];

	dial_interrupt(&target->dial);
	snprintf(text, sizeof(text), "ended early, before the first ping, while %s", state_text(&target->state));
	report_interrupted(target, text);
	if (!target->all->several)
		dial_hint(&target->dial);
	dial_stop(&target->dial);
}

void target_interrupt(struct target *target, enum interruption reason)
{
	target->deadline_passed = reason == INTERRUPTION_DEADLINE;
	target->last = true;
	if (reason == INTERRUPTION_NO_READER && target->state.now != TARGET_PACING)
		return;
	switch ((enum target_state)target->state.now) {
	case TARGET_WAITING:
	case TARGET_RESOLVING:
	case TARGET_CONNECTING:
		interrupt_before_ping(target);
		target_finish(target, OUTCOME_FAILED);
		break;
	case TARGET_SOURCE_ADVERTISED:
	case TARGET_SINK_ADVERTISED:
	case TARGET_DRAINING:
		/*
		 * A signal: the ping is completed first. A deadline: over soft, a server that waits for the rest of a
		 * ping would not answer a DREQ in the remaining time.
		 */
		if (target->deadline_passed)
			target_finish(target, target_verdict(target));
		break;
	case TARGET_PACING:
		target_cycle_continue(target);
		break;
	case TARGET_DISCONNECTING:
	case TARGET_DONE:
		break;
	}
}

void target_report(const struct target *target, struct report *report)
{
	/* The name must be the only field before the figures: it is their label for Prometheus. */
	report_text(report, "target", target_name(target));
	ping_record_report(&target->record, target->size, report);
	if (!report->format->omits_empty) {
		connect_times_report(&target->times, report);
		report_flag(report, "failed", target->ended && target->outcome);
		path_report(report, &target->path);
	}
	report_text(report, "verdict", !target->ended ? NULL : target->outcome ? "fail" : "pass");
	report_text(report, "error", target->error);
}

/* Endpoints still use the channel while they are destroyed: transport_close() frees it. */
void target_release(struct target *target)
{
	dial_stop(&target->dial);
	target_connection_drop(target);
	free(target->error);
	target->error = NULL;
}
