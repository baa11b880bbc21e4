/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/dial.h"

#include <stdlib.h>

#include "cmd/command.h"
#include "core/clock.h"
#include "core/interface.h"
#include "core/units.h"

#define PAUSE	    (100 * CLOCK_NS_PER_MS)
#define LOOKUP_EACH CLOCK_NS_PER_S /* in an outage */

enum {
	STALE_MAX = 64 /* repeated attempts: a peer may reject them without end */
};

/* Without both there is one attempt, and no hint: its error stays the transport's. */
#define KEEPS_ERROR (WITH_NAMES || WITH_DIAGNOSTICS)

/* A look-up while the loop runs. */
struct dial_lookup {
	struct resolver resolver;
	struct lookup lookup;
	struct log log; /* silent in an outage, whose attempts have errors of their own */
	struct loop_io readable;
	struct loop_timer timer;
};

static void look_up_again(struct dial *dial);

/* ---- attempts ---- */

static bool is_in_outage(const struct dial *dial)
{
	return dial->until == DIAL_FOREVER;
}

static void forget_error(struct dial *dial)
{
	free(dial->error);
	dial->error = NULL;
}

/* Takes over the transport's error. If it cannot be stored, reports it now. */
static void keep_error(struct dial *dial, enum outcome outcome)
{
	struct error *error = &dial->options.run->transport->error;

	if (!KEEPS_ERROR || !error_is_set(error))
		return;
	dial->may_retry |= error->kind != ERROR_OTHER && error->kind != ERROR_HELD;
	if (!dial->error)
		dial->error = calloc(1, sizeof(*dial->error));
	if (!dial->error)
		run_report_error(dial->options.run);
	else if (error->kind != ERROR_OTHER || dial->error->kind == ERROR_OTHER || outcome == OUTCOME_INTERNAL)
		*dial->error = *error;
	error_clear(error);
}

/* Demotes the previous failure to a hint. */
static void hint_next(struct dial *dial)
{
	const struct log *log = &dial->options.run->log;
	char text[ERROR_TEXT_SIZE];

	if (dial->error)
		log_hint(log, "%s: %s", dial->error->object, error_text(dial->error, text));
	log_hint(log, "trying the next address of %s: %s", dial->options.host, dial->name);
	forget_error(dial);
}

static enum outcome connect_once(struct dial *dial)
{
	enum outcome outcome = dial->options.handlers->connect(dial->options.context);

	if (outcome)
		keep_error(dial, outcome);
	return outcome;
}

/* After an attempt with that outcome. The next address would not help if this host lacks memory or the like. */
static enum outcome connect_next(struct dial *dial, enum outcome outcome)
{
	/* Once the deadline has passed, keeps the last attempt's error and starts no other. */
	while (outcome && outcome != OUTCOME_INTERNAL && dial->address_next < dial->resolver.count &&
	       !(dial->error && loop_deadline_passed(dial->options.run->loop))) {
		dial->address = dial->resolver.addresses[dial->address_next++];
		dial->address.port = dial->options.port;
		address_text(&dial->address, dial->name);
		if (WITH_NAMES && dial->address_next > 1 && !EXTRA(dial->until))
			hint_next(dial);
		outcome = connect_once(dial);
	}
	return outcome;
}

static void pause_over(void *context)
{
	struct dial *dial = context;

	/* First: it may look up names that never had an address. */
	if (dial->options.handlers->resumed)
		dial->options.handlers->resumed(dial->options.context);
	else
		dial_begin(dial);
	if (is_in_outage(dial))
		look_up_again(dial);
}

/* The last round starts when --wait-server expires. */
static bool pause_before_next_round(struct dial *dial)
{
	struct loop *loop = dial->options.run->loop;
	int64_t left = dial->until - clock_now();

	if (!WITH_EXTRAS || !(dial->may_retry || is_in_outage(dial)) || left <= 0 || loop_deadline_passed(loop))
		return false;
	dial->may_retry = false;
	if (dial->error)
		dial->error->kind = ERROR_OTHER; /* any error of the next round replaces it */
	loop_phase_start(loop, &dial->pause, left < PAUSE ? left : PAUSE, pause_over, dial);
	return true;
}

static void attempt_ended(struct dial *dial, enum outcome outcome)
{
	const struct dial_handlers *handlers = dial->options.handlers;

	if (!outcome)
		return;
	if (outcome != OUTCOME_NO_CONNECTION || !pause_before_next_round(dial))
		handlers->failed(dial->options.context, outcome);
	else if (handlers->paused)
		handlers->paused(dial->options.context);
}

void dial_again(struct dial *dial)
{
	dial->until = DIAL_FOREVER;
	attempt_ended(dial, OUTCOME_NO_CONNECTION);
}

void dial_begin(struct dial *dial)
{
	dial->address_next = 0;
	dial->stale = 0;
	attempt_ended(dial, connect_next(dial, OUTCOME_NO_CONNECTION));
}

bool dial_repeats(const struct dial *dial, unsigned *stale)
{
	const struct run *run = dial->options.run;
	struct error *error = &run->transport->error;

	if (!KEEPS_ERROR || *stale >= STALE_MAX || !error_is_set(error) || error->kind != ERROR_STALE ||
	    loop_deadline_passed(run->loop))
		return false;
	log_debug(&run->log, "%s: %s: once more", error->object, error->cause);
	error_clear(error);
	++*stale;
	return true;
}

void dial_failed(struct dial *dial, enum outcome outcome)
{
	if (dial_repeats(dial, &dial->stale))
		outcome = connect_once(dial);
	else
		keep_error(dial, outcome);
	attempt_ended(dial, connect_next(dial, outcome));
}

enum {
	HINT_WAITED = 8 /* in addition to enum error_kind */
};

/* With a list of targets one hint of each kind suffices. */
static bool is_first_hint(const struct dial_options *options, unsigned kind)
{
	unsigned bit = 1U << kind, given = options->shared->hinted;

	options->shared->hinted |= bit;
	return !(given & bit);
}

static void hint_waited(const struct dial_options *options, bool at_deadline)
{
	char limit[UNITS_TEXT_SIZE], text[LOOP_PHASE_TEXT_SIZE];

	if (!is_first_hint(options, HINT_WAITED))
		return;
	if (at_deadline)
		log_hint(&options->run->log, "--wait-server: %s", loop_phase_text(options->run->loop, 0, text));
	else
		log_hint(&options->run->log, "no server within %s (--wait-server)",
			 units_duration(options->wait_server, limit));
}

/* One of a host's several addresses may be without a server. */
static const char *resolved_to(const struct dial *dial, char text[ERROR_HINT_SIZE])
{
	char host[ADDRESS_TEXT_SIZE];
	struct address address;

	*text = '\0';
	if (dial->resolver.count == 1 && !address_parse(dial->options.host, dial->options.format, &address))
		log_text(text, ERROR_HINT_SIZE, "%s is %s, but the server may listen on another address; ",
			 dial->options.host, address_host(&dial->address, host));
	return text;
}

static void hint_server(struct dial *dial)
{
	const struct dial_options *options = &dial->options;
	char interface[IF_NAMESIZE], name[ERROR_HINT_SIZE];
	const char *where;

	if (!interface_of(&dial->address, interface))
		where = "if the host and port are right, start a server there";
	else if (address_is_loopback(&dial->address))
		where = "if the port is right, start a server here";
	else
		where = "this host itself has the address; if another has it, too, change one; if the port is right, "
			"run";
	error_hint(dial->error, "%s%s: rdmatest %s%s -p %u --transport %s", resolved_to(dial, name), where,
		   options->server, dial->address.family == ADDRESS_IP6 ? " --ipv6" : "", options->port,
		   transport_name(options->run->transport));
}

/* Doctor tries the path options, which the transport's own hint does not consider. */
static void hint_doctor(struct dial *dial)
{
	const struct dial_options *options = &dial->options;
	const struct run *run = options->run;
	char words[PATH_WORDS_SIZE];

	common_path_words(run->command->options, run->given, options->common, words);
	if (*words)
		*dial->error->hint = '\0';
	error_hint(dial->error, "to check the path: rdmatest doctor %s -p %u%s --transport %s", options->host,
		   options->port, words, transport_name(run->transport));
}

/* With --wait-server an absent server is what was waited for: its error has no hint of what to try. */
static void report_with_hints(struct dial *dial)
{
	const struct dial_options *options = &dial->options;
	const struct run *run = options->run;
	struct error *error = dial->error;
	bool at_deadline = loop_deadline_passed(run->loop);
	bool waited = EXTRA(options->wait_server) && dial->until &&
		      (at_deadline || (dial->may_retry && clock_now() >= dial->until));

	if (error->kind && !is_first_hint(options, error->kind))
		*error->hint = '\0';
	else if (error->kind == ERROR_NO_LISTENER && !waited)
		hint_server(dial);
	else if (COMMAND_doctor && error->kind == ERROR_NO_REPLY && !waited && !run->ping) /* not in doctor's ping */
		hint_doctor(dial);
	log_report(&run->log, error);
	if (waited && (at_deadline || !*error->hint))
		hint_waited(options, at_deadline);
}

void dial_give_up(struct dial *dial)
{
	if (!KEEPS_ERROR)
		run_report_error(dial->options.run);
	else if (dial->error)
		report_with_hints(dial);
	dial_stop(dial);
}

void dial_hint(struct dial *dial)
{
	char text[ERROR_TEXT_SIZE];

	if (dial->error)
		log_hint(&dial->options.run->log, "last error of %s: %s", dial->name, error_text(dial->error, text));
	dial_stop(dial);
}

/* ---- the look-up ---- */

static void start_look_up(struct dial *dial, struct resolver *resolver, const struct log *log)
{
	const struct dial_options *options = &dial->options;

	if (EXTRA(options->wait_server) && !dial->until)
		dial->until = clock_now() + options->wait_server;
	resolver_start_by(&options->shared->process, resolver, log, options->host, options->format,
			  is_in_outage(dial) ? 0 : EXTRA(options->wait_server));
	if (resolver->child)
		dial->looked_up = clock_now();
}

static enum outcome end_look_up(struct dial *dial, enum outcome outcome)
{
	if (outcome == OUTCOME_NO_CONNECTION && EXTRA(dial->until) && clock_now() >= dial->until)
		hint_waited(&dial->options, false);
	return outcome;
}

enum outcome dial_look_up(struct dial *dial)
{
	const struct dial_options *options = &dial->options;

	start_look_up(dial, &dial->resolver, &options->run->log);
	return end_look_up(dial,
			   lookup_finish(&dial->resolver, options->run, options->common, options->source->family));
}

static void stop_look_up(struct dial *dial)
{
	struct dial_lookup *beside = dial->lookup;

	if (!WITH_NAMES || !beside)
		return;
	dial->lookup = NULL;
	dial->options.shared->looking--;
	loop_io_stop(&beside->readable);
	loop_timer_stop(&beside->timer);
	lookup_stop(&beside->lookup);
	free(beside);
}

static void look_up_on(void *dial);

/*
 * Returns true when it is over. In an outage a round of attempts continues with the first of the new addresses, and a
 * failure leaves the old ones.
 */
static bool continue_look_up(struct dial *dial)
{
	struct dial_lookup *beside = dial->lookup;
	struct loop *loop = dial->options.run->loop;
	enum outcome outcome;

	loop_io_stop(&beside->readable);
	if (!lookup_continue(&beside->lookup)) {
		if (beside->resolver.child)
			loop_io_start(loop, &beside->readable, beside->resolver.pipe, look_up_on, dial);
		loop_timer_start(loop, &beside->timer, beside->lookup.next - clock_now(), look_up_on, dial);
		return false;
	}
	outcome = lookup_result(&beside->lookup, dial->options.common, dial->options.source->family);
	if (!outcome || !is_in_outage(dial)) {
		dial->resolver = beside->resolver;
		dial->resolver.log = &dial->options.run->log;
		dial->address_next = 0;
		end_look_up(dial, outcome);
	}
	stop_look_up(dial);
	return true;
}

static void look_up_on(void *context)
{
	struct dial *dial = context;

	if (continue_look_up(dial) && !is_in_outage(dial))
		dial->options.handlers->looked_up(dial->options.context);
}

bool dial_look_up_beside(struct dial *dial)
{
	const struct run *run = dial->options.run;
	struct dial_lookup *beside;

	if (!WITH_NAMES) {
		dial_look_up(dial);
		return true;
	}
	beside = dial->lookup = run_allocate(run, 1, sizeof(*beside));
	if (!beside) {
		dial->resolver.outcome = OUTCOME_INTERNAL;
		return true;
	}
	dial->options.shared->looking++;
	beside->log = run->log;
	if (is_in_outage(dial)) {
		beside->log.silent = true;
		beside->log.errors = NULL;
		beside->log.reported = NULL;
	}
	start_look_up(dial, &beside->resolver, &beside->log);
	lookup_begin(&beside->lookup, &beside->resolver, run, dial->options.common, clock_now());
	beside->lookup.hinted = &dial->options.shared->hinted;
	beside->lookup.brief = is_in_outage(dial);
	beside->lookup.may_ask &= !beside->lookup.brief;
	return continue_look_up(dial);
}

static void look_up_again(struct dial *dial)
{
	if (WITH_NAMES && dial->looked_up && !dial->lookup && clock_now() - dial->looked_up >= LOOKUP_EACH &&
	    dial->options.shared->looking < DIAL_LOOKUPS_MAX)
		dial_look_up_beside(dial);
}

void dial_stop(struct dial *dial)
{
	if (!KEEPS_ERROR)
		return;
	loop_timer_stop(&dial->pause);
	stop_look_up(dial);
	dial->address_next = dial->resolver.count;
	dial->until = 0;
	forget_error(dial);
}
