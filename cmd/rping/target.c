/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/rping/target_state.h"
#include "core/units.h"

/* The resolver and the transport have the deadlines of lookup, connecting and disconnecting. */
static const struct state_row target_states[] = {
	[TARGET_WAITING] = { "waiting to connect",
			     STATE_BIT(TARGET_LOOKING_UP) | STATE_BIT(TARGET_CONNECTING) | STATE_BIT(TARGET_DONE) },
	[TARGET_LOOKING_UP] = { "looking up", STATE_BIT(TARGET_CONNECTING) | STATE_BIT(TARGET_DONE) },
	[TARGET_CONNECTING] = { "connecting", STATE_BIT(TARGET_CONNECTING) | STATE_BIT(TARGET_WAITING) |
						      STATE_BIT(TARGET_OFFERING_SOURCE) | STATE_BIT(TARGET_LEAVING) |
						      STATE_BIT(TARGET_DONE) },
	[TARGET_OFFERING_SOURCE] = { "waiting for the server to read it",
				     STATE_BIT(TARGET_OFFERING_SINK) | STATE_BIT(TARGET_LEAVING) |
					     STATE_BIT(TARGET_DONE),
				     true },
	[TARGET_OFFERING_SINK] = { "waiting for the server to write it back",
				   STATE_BIT(TARGET_OFFERING_SOURCE) | STATE_BIT(TARGET_SETTLING) |
					   STATE_BIT(TARGET_RESTING) | STATE_BIT(TARGET_LEAVING) |
					   STATE_BIT(TARGET_DONE),
				   true },
	[TARGET_SETTLING] = { "waiting for the acknowledgement of what it sent",
			      STATE_BIT(TARGET_OFFERING_SOURCE) | STATE_BIT(TARGET_RESTING) |
				      STATE_BIT(TARGET_LEAVING) | STATE_BIT(TARGET_DONE),
			      true },
	[TARGET_RESTING] = { "waiting for its time", STATE_BIT(TARGET_OFFERING_SOURCE) | STATE_BIT(TARGET_SETTLING) |
							     STATE_BIT(TARGET_LEAVING) | STATE_BIT(TARGET_DONE) },
	[TARGET_LEAVING] = { "disconnecting", STATE_BIT(TARGET_DONE) },
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

void target_tell(struct target *target, enum target_news news)
{
	target->all->news(target->all->owner, target, news);
}

/* ---- errors ---- */

static void keep_error(struct target *target, const char *text)
{
	if (!target->error)
		target->error = strdup(text);
}

static void error_reported(const struct log *log, const struct error *error)
{
	struct target *target = log->context;
	char text[ERROR_TEXT_SIZE];

	if (!target->ended)
		keep_error(target, error_text(error, text));
	log_report(&target->all->environment->log, error);
}

static void hint_reported(const struct log *log, const char *text)
{
	const struct target *target = log->context;

	log_hint(&target->all->environment->log, "%s", text);
}

static const struct log_sink sink = { .error = error_reported, .hint = hint_reported };

/* ---- its end ---- */

void target_finish(struct target *target, enum outcome outcome)
{
	if (target->ended)
		return;
	if (outcome)
		dial_give_up(&target->dial);
	dial_stop(&target->dial);
	target_enter(target, TARGET_DONE);
	target_connection_drop(target);
	target->outcome = outcome;
	target->ended = true;
	target_tell(target, TARGET_ENDED);
}

static uint64_t count_asked(const struct target *target)
{
	return (uint64_t)target->all->options->count;
}

static uint64_t answered(const struct target *target)
{
	return target->record.counts.answered;
}

bool target_more_asked(const struct target *target)
{
	return !count_asked(target) || answered(target) < count_asked(target);
}

const char *target_pings_text(const struct target *target, char text[PINGS_TEXT_SIZE])
{
	return rping_pings_text(answered(target), count_asked(target), text);
}

/* text: the progress. A passed deadline is already reported, for all targets. */
static void cut_off(struct target *target, const char *text)
{
	if (target->overdue)
		keep_error(target, text);
	else
		log_error(target->state.log, target_name(target), "%s: interrupted", text);
}

/* True if all pings that were requested are done; an open-ended run may stop at any time. */
static bool is_complete(const struct target *target)
{
	if (count_asked(target) && !target_more_asked(target))
		return true;
	return target->timed || (!count_asked(target) && !target->all->options->duration);
}

enum outcome target_verdict(struct target *target)
{
	char pings[PINGS_TEXT_SIZE];
	char text[PINGS_TEXT_SIZE + 32];

	if (target->outcome)
		return target->outcome;
	if (!target->overdue && answered(target) && is_complete(target))
		return OUTCOME_OK;
	snprintf(text, sizeof(text), "ended early, after %s", target_pings_text(target, pings));
	cut_off(target, text);
	return OUTCOME_FAILED;
}

void target_leave(struct target *target, enum outcome outcome)
{
	target->outcome = outcome;
	loop_timer_stop(&target->beat);
	target_enter(target, TARGET_LEAVING);
	outcome = endpoint_disconnect(target->endpoint);
	if (outcome)
		target_finish(target, target->outcome ? target->outcome : outcome);
}

static void step_timed_out(void *owner)
{
	struct target *target = owner;
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
					       .owner = target,
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
		.expired = step_timed_out,
		.owner = target,
	};
}

static void cut_off_without_ping(struct target *target)
{
	char text[96];

	dial_interrupt(&target->dial);
	snprintf(text, sizeof(text), "ended early, before the first ping, while %s", state_text(&target->state));
	cut_off(target, text);
	if (!target->all->several)
		dial_hint(&target->dial);
	dial_stop(&target->dial);
}

void target_interrupt(struct target *target, enum interruption reason)
{
	target->overdue = reason == INTERRUPTION_DEADLINE;
	target->last = true;
	if (reason == INTERRUPTION_NO_READER && target->state.now != TARGET_RESTING)
		return;
	switch ((enum target_state)target->state.now) {
	case TARGET_WAITING:
	case TARGET_LOOKING_UP:
	case TARGET_CONNECTING:
		cut_off_without_ping(target);
		target_finish(target, OUTCOME_FAILED);
		break;
	case TARGET_OFFERING_SOURCE:
	case TARGET_OFFERING_SINK:
	case TARGET_SETTLING:
		/* Over soft, a server that waits for the rest of a ping does not answer the DREQ in the time that is
		 * left. */
		if (target->overdue)
			target_finish(target, target_verdict(target));
		break;
	case TARGET_RESTING:
		target_cycle_go_on(target);
		break;
	case TARGET_LEAVING:
	case TARGET_DONE:
		break;
	}
}

void target_report(const struct target *target, struct report *report)
{
	/* Only the name comes before the figures: it is their label for Prometheus. */
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

/* Endpoints that are being destroyed still use the channel: transport_close() frees it after them. */
void target_release(struct target *target)
{
	dial_stop(&target->dial);
	target_connection_drop(target);
	free(target->error);
	target->error = NULL;
}
