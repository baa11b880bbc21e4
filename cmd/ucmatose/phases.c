/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The phases of a run, which all connections enter together:
 *
 *   connecting     until each connection is established or has failed, or no more are expected
 *   pausing        a server gives stock clients on iWARP time to get ready
 *   transferring   until each connection has all its messages or has failed
 *   settling       a server waits until its device has sent the last acknowledgements
 *   closing        -m migrates all endpoints to a new event channel; the server disconnects
 *
 * and the verdict.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/ucmatose/ucmatose.h"
#include "core/units.h"

/*
 * A receive completes before the device has sent the acknowledgement. A disconnect at that moment makes the client's
 * last send fail.
 */
#define SETTLE_TIME (10 * CLOCK_NS_PER_MS)
/*
 * On iWARP the server must not send before the client's QP is ready, and a stock client does not report that. A message
 * that arrives too early is stuck until another one arrives.
 */
#define PAUSE_TIME (100 * CLOCK_NS_PER_MS)
/* Time for further requests of a client whose options differ: the rejection of each carries our options. */
#define MISMATCH_TIME (500 * CLOCK_NS_PER_MS)

enum {
	FAILED_LISTED_MAX = 16
};

void ucmatose_progressed(struct ucmatose *run)
{
	run->progress = clock_now();
}

uint32_t ucmatose_connection_count(const struct ucmatose *run)
{
	return run->begun - run->in_state[CONNECTION_NEW];
}

bool ucmatose_wants_more(const struct ucmatose *run)
{
	return run->phase == UCMATOSE_CONNECTING && !run->no_more_connections &&
	       ucmatose_connection_count(run) < run->wanted;
}

static uint32_t connections_alive(const struct ucmatose *run)
{
	return ucmatose_connection_count(run) - run->in_state[CONNECTION_CLOSED] - run->in_state[CONNECTION_FAILED];
}

/* The time without progress after which the run ends. */
static int64_t progress_timeout(const struct ucmatose *run)
{
	int64_t timeout = run->options->common.timeout;

	if (run->is_server && run->phase == UCMATOSE_CONNECTING && run->mismatched && !connections_alive(run))
		return timeout < MISMATCH_TIME ? timeout : MISMATCH_TIME;
	/* The server waits one timeout for a connection that failed here, before it sends on the others. */
	if (!run->is_server && run->in_state[CONNECTION_FAILED])
		return 2 * timeout;
	return timeout;
}

enum {
	STALL_TEXT_SIZE = LOOP_PHASE_TEXT_SIZE + 48
};

/* Returns text: that nothing more came within the limit, in those words, or that the deadline has passed. */
static const char *stall_text(const struct ucmatose *run, const char *words, int64_t limit, char text[STALL_TEXT_SIZE])
{
	const struct loop *loop = run->environment->loop;
	char passed[LOOP_PHASE_TEXT_SIZE];

	if (loop_deadline_passed(loop))
		snprintf(text, STALL_TEXT_SIZE, ": %s", loop_phase_text(loop, limit, passed));
	else
		snprintf(text, STALL_TEXT_SIZE, "%s for %g s", words, units_seconds(limit));
	return text;
}

static void fail_stalled(struct ucmatose_connection *connection, int64_t limit)
{
	struct ucmatose *run = connection->run;
	const struct log *log = &run->environment->log;
	char text[STALL_TEXT_SIZE];
	const char *name = connection->endpoint ? connection->endpoint->name : NULL;

	switch (connection->state) {
	case CONNECTION_SENDING:
		log_error(log, name,
			  "connection %" PRIu32 ": the peer acknowledged %" PRIu64 " of %" PRIu64 " messages%s",
			  connection->index, connection->acknowledged, run->messages,
			  stall_text(run, ", then none", limit, text));
		break;
	case CONNECTION_RECEIVING:
		log_error(log, name, "connection %" PRIu32 ": received %" PRIu64 " of %" PRIu64 " messages%s",
			  connection->index, connection->received, run->messages,
			  stall_text(run, ", then none", limit, text));
		break;
	case CONNECTION_TRANSFERRED:
		/* The server disconnects once all connections have their messages; the transport limits that. */
		if (run->phase != UCMATOSE_CLOSING || run->is_server)
			return;
		log_error(log, name, "connection %" PRIu32 ": all messages are transferred%s", connection->index,
			  stall_text(run, ", but the server has not disconnected", limit, text));
		break;
	default:
		return; /* the transport has the deadlines of the other states */
	}
	ucmatose_connection_fail(connection, OUTCOME_FAILED);
}

static void fail_missing(struct ucmatose *run, int64_t limit)
{
	uint32_t requested = ucmatose_connection_count(run);
	char text[STALL_TEXT_SIZE];

	if (requested || !run->mismatched) /* else the mismatch is already logged */
		log_error(&run->environment->log, NULL,
			  "received only %" PRIu32 " of %" PRIu32 " connection requests%s", requested, run->wanted,
			  stall_text(run, ", and no more", limit, text));
	environment_record_outcome(run->environment, OUTCOME_FAILED);
	run->no_more_connections = true;
}

static void progress_timed_out(void *context)
{
	struct ucmatose *run = context;
	int64_t limit = progress_timeout(run); /* read once: a connection that fails below doubles it */
	int64_t left = run->progress + limit - clock_now();

	if (left > 0 && !loop_deadline_passed(run->environment->loop)) {
		loop_phase_start(run->environment->loop, &run->progress_timer, left, progress_timed_out, run);
		return;
	}
	if (ucmatose_wants_more(run))
		fail_missing(run, limit);
	else if (run->phase == UCMATOSE_TRANSFERRING || run->phase == UCMATOSE_CLOSING)
		for (uint32_t i = 0; i < run->begun; i++)
			fail_stalled(&run->connections[i], limit);
	ucmatose_progressed(run);
	ucmatose_start_progress_timer(run);
	ucmatose_advance(run);
}

void ucmatose_start_progress_timer(struct ucmatose *run)
{
	loop_phase_start(run->environment->loop, &run->progress_timer, progress_timeout(run), progress_timed_out, run);
}

static void begin_transfer(struct ucmatose *run)
{
	run->phase = UCMATOSE_TRANSFERRING;
	ucmatose_progressed(run);
	ucmatose_start_progress_timer(run);
	if (!connections_alive(run))
		return;
	if (!run->is_server) {
		ucmatose_figures_restart(&run->figures, ACTIVITY_RECEIVING, clock_now());
		if (run->messages)
			environment_print(run->environment, "receiving data transfers");
		return;
	}
	if (run->messages)
		environment_print(run->environment, "initiating data transfers");
	for (uint32_t i = 0; i < run->begun; i++)
		if (run->connections[i].state == CONNECTION_ESTABLISHED)
			ucmatose_transfer_begin(&run->connections[i]);
	if (run->messages)
		environment_print(run->environment, "completing sends");
}

static bool needs_pause(const struct ucmatose *run)
{
	for (uint32_t i = 0; run->is_server && run->messages && i < run->begun; i++) {
		const struct ucmatose_connection *connection = &run->connections[i];

		if (connection->state == CONNECTION_ESTABLISHED && !connection->peer_is_ours &&
		    connection->endpoint->domain->fabric == FABRIC_IWARP)
			return true;
	}
	return false;
}

static void iwarp_pause_over(void *context)
{
	begin_transfer(context);
	ucmatose_advance(context);
}

/* No connection is pending any more. */
static void all_connected(struct ucmatose *run)
{
	if (connections_alive(run) && !environment_setup_done(run->environment, NULL, NULL)) {
		run->phase = UCMATOSE_ENDED;
		return;
	}
	if (!needs_pause(run)) {
		begin_transfer(run);
		return;
	}
	run->phase = UCMATOSE_PAUSING;
	loop_timer_start(run->environment->loop, &run->phase_timer, PAUSE_TIME, iwarp_pause_over, run);
}

static enum outcome migrate(struct ucmatose *run)
{
	struct channel *channel;
	enum outcome outcome;

	environment_print(run->environment, "migrating to new event channel");
	outcome = channel_create(run->environment->transport, &channel);
	if (outcome)
		return outcome;
	if (run->listener)
		outcome = endpoint_migrate(run->listener, channel);
	for (uint32_t i = 0; !outcome && i < run->begun; i++)
		if (run->connections[i].endpoint)
			outcome = endpoint_migrate(run->connections[i].endpoint, channel);
	if (outcome)
		return outcome; /* some endpoints have moved, some have not: transport_close() frees both channels */
	channel_destroy(run->channel);
	run->channel = channel;
	return OUTCOME_OK;
}

/* A peer that fails one of them may fail all: then none waits for the others. */
static void disconnect_more(struct ucmatose *run)
{
	while (run->ended < run->begun &&
	       (run->in_state[CONNECTION_DISCONNECTING] < UNDER_WAY_MAX || run->in_state[CONNECTION_FAILED])) {
		struct ucmatose_connection *connection = &run->connections[run->ended++];

		if (connection->state == CONNECTION_TRANSFERRED && connection->peer_disconnected)
			ucmatose_connection_close(connection);
		else if (connection->state == CONNECTION_TRANSFERRED && run->is_server)
			ucmatose_connection_disconnect(connection);
	}
}

static void start_closing(void *context)
{
	struct ucmatose *run = context;

	run->phase = UCMATOSE_CLOSING;
	ucmatose_progressed(run);
	if (run->options->migrate && connections_alive(run))
		environment_record_outcome(run->environment, migrate(run));
	if (run->is_server)
		environment_print(run->environment, "cmatose: disconnecting");
	ucmatose_advance(run);
}

static void all_transferred(struct ucmatose *run)
{
	run->phase = UCMATOSE_SETTLING;
	if (run->messages && !run->in_state[CONNECTION_FAILED] && ucmatose_connection_count(run) == run->wanted)
		environment_print(run->environment, "data transfers complete");
	loop_timer_start(run->environment->loop, &run->phase_timer, run->is_server ? SETTLE_TIME : 0, start_closing,
			 run);
}

/* Prints the line between the two directions of the transfer. */
static void print_half(struct ucmatose *run)
{
	enum connection_state first_half = run->is_server ? CONNECTION_SENDING : CONNECTION_RECEIVING;

	if (run->half_printed || !run->messages || run->in_state[first_half] ||
	    run->in_state[CONNECTION_FAILED] == run->begun)
		return;
	run->half_printed = true;
	environment_print(run->environment, run->is_server ? "receiving data transfers" : "sending replies");
}

static bool is_verified(const struct ucmatose_connection *connection)
{
	return connection->state == CONNECTION_CLOSED && connection->received == connection->run->messages &&
	       connection->acknowledged == connection->run->messages;
}

/* Logs the failures of the run as a whole; each connection has logged its own. */
static void log_failures(struct ucmatose *run, uint32_t verified)
{
	const struct log *log = &run->environment->log;
	char list[FAILED_LISTED_MAX * 12 + 8] = "";
	size_t length = 0;
	uint32_t failed = run->in_state[CONNECTION_FAILED];
	uint32_t listed = 0;

	if (run->interruption) {
		if (run->interruption == INTERRUPTION_SIGNAL) /* a deadline is already logged */
			log_error(log, NULL, "interrupted: %" PRIu32 " of %" PRIu32 " connection%s completed", verified,
				  run->wanted, units_plural(run->wanted));
		dial_hint(&run->dial);
		return;
	}
	if (run->wanted == 1 || (run->mismatched && !run->is_server))
		return;
	for (uint32_t i = 0; i < run->begun && listed < FAILED_LISTED_MAX; i++)
		if (run->connections[i].state == CONNECTION_FAILED) {
			length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%" PRIu32,
						   listed ? ", " : "", i);
			listed++;
		}
	if (failed)
		log_error(log, NULL,
			  "%" PRIu32 " of %" PRIu32 " connections failed (number %s%s); %" PRIu32 " completed", failed,
			  run->wanted, list, listed < failed ? ", ..." : "", verified);
	if (!run->is_server && run->begun < run->wanted)
		log_error(log, NULL, "%" PRIu32 " connection%s not tried after the first one failed",
			  run->wanted - run->begun, run->wanted - run->begun == 1 ? " was" : "s were");
}

static void finish_passed(const struct ucmatose *run, const struct verdict *verdict)
{
	uint64_t messages = run->messages * run->wanted;
	const char *plural = units_plural((uint64_t)run->options->size);
	char sent[160] = " established and disconnected", stock[80] = "", refused[40] = "";
	uint32_t ours = 0;

	for (uint32_t i = 0; i < run->begun; i++)
		ours += run->connections[i].peer_is_ours;
	if (run->messages)
		snprintf(sent, sizeof(sent), ", %" PRIu64 " message%s of %" PRId64 " byte%s each way %s", messages,
			 units_plural(messages), run->options->size, plural,
			 ours ? "verified" : "received, lengths checked");
	if (run->messages && ours && ours < run->wanted)
		snprintf(stock, sizeof(stock), " (%" PRIu32 " connection%s with a stock peer: only lengths checked)",
			 run->wanted - ours, units_plural(run->wanted - ours));
	if (run->figures.refused)
		snprintf(refused, sizeof(refused), ", %" PRIu64 " more refused", run->figures.refused);
	environment_finish(run->environment, OUTCOME_OK, verdict, "%" PRIu32 " connection%s%s%s%s", run->wanted,
			   units_plural(run->wanted), sent, stock, refused);
}

static void ucmatose_finish(struct ucmatose *run)
{
	struct environment *environment = run->environment;
	const struct verdict verdict = {
		.device = run->device,
		.has_figures = run->figures.activities[ACTIVITY_CONNECTING].count,
	};
	uint32_t verified = 0;

	run->phase = UCMATOSE_ENDED;
	loop_timer_stop(&run->progress_timer);
	for (uint32_t i = 0; i < run->begun; i++)
		verified += is_verified(&run->connections[i]);
	if (!run->interruption)
		environment_print(run->environment, "test complete");
	if (!environment->outcome) {
		finish_passed(run, &verdict);
		return;
	}
	log_failures(run, verified);
	environment_finish(environment, OUTCOME_OK, &verdict, "%" PRIu32 " of %" PRIu32 " connection%s completed%s",
			   verified, run->wanted, units_plural(run->wanted),
			   run->is_server && run->mismatched ? ", a client with other options was refused" : "");
}

void ucmatose_fail_start(struct ucmatose *run, enum outcome outcome)
{
	environment_record_outcome(run->environment, outcome);
	ucmatose_finish(run);
}

void ucmatose_begin_connecting(struct ucmatose *run)
{
	run->phase = UCMATOSE_CONNECTING;
	ucmatose_advance(run);
}

void ucmatose_advance(struct ucmatose *run)
{
	if (run->phase == UCMATOSE_CLOSING)
		disconnect_more(run);
	if (run->phase == UCMATOSE_CONNECTING) {
		if (!run->is_server)
			ucmatose_client_connect_more(run);
		if (ucmatose_wants_more(run) || run->in_state[CONNECTION_CONNECTING])
			return;
		all_connected(run);
	}
	if (run->phase == UCMATOSE_TRANSFERRING) {
		print_half(run);
		if (run->in_state[CONNECTION_ESTABLISHED] || run->in_state[CONNECTION_SENDING] ||
		    run->in_state[CONNECTION_RECEIVING])
			return;
		if (connections_alive(run) || run->in_state[CONNECTION_CLOSED])
			all_transferred(run);
		else
			ucmatose_finish(run);
	} else if ((run->phase == UCMATOSE_CLOSING || run->phase == UCMATOSE_INTERRUPTED) && !connections_alive(run)) {
		if (run->is_server && run->phase == UCMATOSE_CLOSING)
			environment_print(run->environment, "disconnected");
		ucmatose_finish(run);
	}
}

void ucmatose_interrupt(void *state, enum interruption reason)
{
	struct ucmatose *run = state;

	if (run->phase == UCMATOSE_ENDED)
		return;
	environment_record_outcome(run->environment, OUTCOME_FAILED);
	run->interruption = reason;
	run->phase = UCMATOSE_INTERRUPTED;
	run->no_more_connections = true;
	loop_timer_stop(&run->phase_timer);
	loop_timer_stop(&run->progress_timer);
	dial_interrupt(&run->dial);
	endpoint_destroy(run->listener);
	run->listener = NULL;
	for (uint32_t i = 0; i < run->begun; i++) {
		struct ucmatose_connection *connection = &run->connections[i];

		if (connection->state == CONNECTION_CONNECTING)
			ucmatose_connection_fail(connection, OUTCOME_FAILED);
		else if (connection->endpoint && connection->peer_disconnected)
			ucmatose_connection_close(connection);
		else if (connection->endpoint && connection->state != CONNECTION_DISCONNECTING)
			ucmatose_connection_disconnect(connection);
	}
	ucmatose_advance(run);
}
