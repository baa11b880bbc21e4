/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The phases of a run, which all connections enter together, and the verdict. A phase ends when the last connection is
 * ready for the next one, or has failed:
 *
 *   connecting    until each connection is established, or no more are expected
 *   first half    the server sends its messages
 *   second half   the client sends
 *   closing       -m migrates all endpoints to a new event channel; the server disconnects
 */
#include <inttypes.h>

#include "cmd/ucmatose/ucmatose.h"
#include "core/units.h"

/*
 * A receive completes before the device has sent the acknowledgement. A disconnect then would make the client's last
 * send fail.
 */
#define SETTLE_TIME (10 * CLOCK_NS_PER_MS)
/*
 * On iWARP the server must not send before the client's QP is ready, and a stock client does not report that. A message
 * that arrives too early is stuck until another one arrives.
 */
#define STOCK_IWARP_TIME (100 * CLOCK_NS_PER_MS)

/* ---- the end ---- */

void ucmatose_release(struct ucmatose *run)
{
	loop_timer_stop(&run->pause);
	loop_timer_stop(&run->silence);
	dial_stop(&run->dial);
	for (uint32_t i = 0; i < run->wanted; i++)
		ucmatose_connection_reset(&run->connections[i]);
	endpoint_destroy(run->listener);
	run->listener = NULL;
}

void ucmatose_finish(struct ucmatose *run, enum outcome outcome)
{
	const char *plural = units_plural(run->wanted);
	uint64_t messages = (uint64_t)run->messages * run->wanted;

	environment_record_outcome(run->environment, outcome);
	if (run->phase != PHASE_ENDED)
		environment_print(run->environment, "test complete");
	run->phase = PHASE_ENDED;
	ucmatose_release(run);
	if (run->environment->outcome)
		environment_finish(run->environment, OUTCOME_OK, run->device,
				   "%" PRIu32 " of %" PRIu32 " connection%s completed",
				   run->in_state[CONNECTION_CLOSED], run->wanted, plural);
	else if (!run->messages)
		environment_finish(run->environment, OUTCOME_OK, run->device,
				   "%" PRIu32 " connection%s established and disconnected", run->wanted, plural);
	else
		environment_finish(run->environment, OUTCOME_OK, run->device,
				   "%" PRIu32 " connection%s, %" PRIu64 " message%s of %" PRIu32 " byte%s each way %s",
				   run->wanted, plural, messages, units_plural(messages), run->size,
				   units_plural(run->size), run->stock ? "received, lengths checked" : "verified");
}

/* ---- when a phase is over ---- */

bool ucmatose_wants_more(const struct ucmatose *run)
{
	return run->phase == PHASE_CONNECTING && !run->no_more && run->in_state[CONNECTION_NEW];
}

uint32_t ucmatose_good(const struct ucmatose *run)
{
	return run->wanted - run->in_state[CONNECTION_NEW] - run->in_state[CONNECTION_FAILED];
}

#define BIT(state) (1 << CONNECTION_##state)

bool ucmatose_phase_is_over(const struct ucmatose *run)
{
	/* The states in which the next phase waits for a connection of a client and of a server. */
	static const uint8_t awaited[][2] = {
		[PHASE_CONNECTING] = { BIT(CONNECTING), BIT(CONNECTING) },
		[PHASE_FIRST_HALF] = { BIT(RECEIVING), BIT(SENDING) },
		[PHASE_SECOND_HALF] = { BIT(SENDING) | BIT(RECEIVING), BIT(SENDING) | BIT(RECEIVING) },
		[PHASE_CLOSING] = { BIT(TRANSFERRED), BIT(TRANSFERRED) | BIT(DISCONNECTING) },
	};

	for (int state = CONNECTION_CONNECTING; state < CONNECTION_CLOSED; state++)
		if (run->in_state[state] && awaited[run->phase][run->is_server] >> state & 1)
			return false;
	return !ucmatose_wants_more(run);
}

/* ---- the next phase's first steps ---- */

uint32_t ucmatose_phase_pause(const struct ucmatose *run)
{
	if (run->phase == PHASE_CONNECTING && run->stock_iwarp)
		return STOCK_IWARP_TIME;
	if (run->phase != PHASE_SECOND_HALF)
		return 0;
	/* A client's endpoints must not be migrated in their callbacks. */
	return run->is_server ? SETTLE_TIME : 1;
}

/* The stock tool's line about the messages. */
static void say(const struct ucmatose *run, const char *line)
{
	if (run->messages)
		environment_print(run->environment, "%s", line);
}

static void begin_first_half(struct ucmatose *run)
{
	if (!environment_ready(run->environment, NULL, NULL)) {
		run->phase = PHASE_ENDED;
		return;
	}
	if (!run->is_server) { /* each of its connections has begun when it was established */
		ucmatose_figures_restart(run, CONNECTION_RECEIVING);
		say(run, "receiving data transfers");
		return;
	}
	say(run, "initiating data transfers");
	for (uint32_t i = 0; i < run->wanted; i++) {
		struct ucmatose_connection *connection = &run->connections[i];

		if (connection->state == CONNECTION_ESTABLISHED)
			ucmatose_connection_check(connection, ucmatose_messages_begin(connection));
	}
	say(run, "completing sends");
}

/* The channel left is freed with the transport. */
static enum outcome migrate(struct ucmatose *run)
{
	enum outcome outcome;

	environment_print(run->environment, "migrating to new event channel");
	outcome = channel_create(run->environment->transport, &run->channel);
	if (!outcome && run->listener)
		outcome = endpoint_migrate(run->listener, run->channel);
	for (uint32_t i = 0; !outcome && i < run->wanted; i++)
		if (run->connections[i].endpoint)
			outcome = endpoint_migrate(run->connections[i].endpoint, run->channel);
	return outcome;
}

static void begin_closing(struct ucmatose *run)
{
	if (ucmatose_good(run) == run->wanted)
		say(run, "data transfers complete");
	if (run->options->migrate)
		environment_record_outcome(run->environment, migrate(run));
	if (!run->is_server)
		return;
	environment_print(run->environment, "cmatose: disconnecting");
	run->next = 0;
}

/* A peer that fails one connection may fail all: then none waits for the others. */
void ucmatose_disconnect_more(struct ucmatose *run)
{
	const uint32_t *in = run->in_state;

	while (in[CONNECTION_TRANSFERRED] && (in[CONNECTION_DISCONNECTING] < UNDER_WAY_MAX || in[CONNECTION_FAILED])) {
		struct ucmatose_connection *connection = ucmatose_connection_next(run, CONNECTION_TRANSFERRED);

		ucmatose_connection_check(connection, endpoint_disconnect(connection->endpoint));
	}
}

void ucmatose_next_phase(struct ucmatose *run)
{
	const bool closed = run->phase == PHASE_CLOSING;

	if (closed && run->is_server)
		environment_print(run->environment, "disconnected");
	if (closed || !ucmatose_good(run)) {
		ucmatose_finish(run, OUTCOME_OK);
		return;
	}
	run->phase++;
	if (run->phase == PHASE_FIRST_HALF)
		begin_first_half(run);
	else if (run->phase == PHASE_SECOND_HALF)
		say(run, run->is_server ? "receiving data transfers" : "sending replies");
	else
		begin_closing(run);
}
