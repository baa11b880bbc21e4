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

void ucmatose_release(struct ucmatose *ucmatose)
{
	loop_timer_stop(&ucmatose->pause);
	loop_timer_stop(&ucmatose->silence);
	dial_stop(&ucmatose->dial);
	for (uint32_t i = 0; i < ucmatose->wanted; i++)
		ucmatose_connection_reset(&ucmatose->connections[i]);
	endpoint_destroy(ucmatose->listener);
	ucmatose->listener = NULL;
}

void ucmatose_finish(struct ucmatose *ucmatose, enum outcome outcome)
{
	const char *plural = units_plural(ucmatose->wanted);
	uint64_t messages = (uint64_t)ucmatose->messages * ucmatose->wanted;

	run_record_outcome(ucmatose->run, outcome);
	if (ucmatose->phase != PHASE_ENDED)
		run_print(ucmatose->run, "test complete");
	ucmatose->phase = PHASE_ENDED;
	ucmatose_release(ucmatose);
	if (ucmatose->run->outcome)
		run_finish(ucmatose->run, OUTCOME_OK, ucmatose->device,
			   "%" PRIu32 " of %" PRIu32 " connection%s completed", ucmatose->in_state[CONNECTION_CLOSED],
			   ucmatose->wanted, plural);
	else if (!ucmatose->messages)
		run_finish(ucmatose->run, OUTCOME_OK, ucmatose->device,
			   "%" PRIu32 " connection%s established and disconnected", ucmatose->wanted, plural);
	else
		run_finish(ucmatose->run, OUTCOME_OK, ucmatose->device,
			   "%" PRIu32 " connection%s, %" PRIu64 " message%s of %" PRIu32 " byte%s each way %s",
			   ucmatose->wanted, plural, messages, units_plural(messages), ucmatose->size,
			   units_plural(ucmatose->size), ucmatose->stock ? "received, lengths checked" : "verified");
}

/* ---- when a phase is over ---- */

bool ucmatose_wants_more(const struct ucmatose *ucmatose)
{
	return ucmatose->phase == PHASE_CONNECTING && !ucmatose->no_more && ucmatose->in_state[CONNECTION_NEW];
}

uint32_t ucmatose_good(const struct ucmatose *ucmatose)
{
	return ucmatose->wanted - ucmatose->in_state[CONNECTION_NEW] - ucmatose->in_state[CONNECTION_FAILED];
}

#define BIT(state) (1 << CONNECTION_##state)

bool ucmatose_phase_is_over(const struct ucmatose *ucmatose)
{
	/* The states in which the next phase waits for a connection of a client and of a server. */
	static const uint8_t awaited[][2] = {
		[PHASE_CONNECTING] = { BIT(CONNECTING), BIT(CONNECTING) },
		[PHASE_FIRST_HALF] = { BIT(RECEIVING), BIT(SENDING) },
		[PHASE_SECOND_HALF] = { BIT(SENDING) | BIT(RECEIVING), BIT(SENDING) | BIT(RECEIVING) },
		[PHASE_CLOSING] = { BIT(TRANSFERRED), BIT(TRANSFERRED) | BIT(DISCONNECTING) },
	};

	for (int state = CONNECTION_CONNECTING; state < CONNECTION_CLOSED; state++)
		if (ucmatose->in_state[state] && awaited[ucmatose->phase][ucmatose->is_server] >> state & 1)
			return false;
	return !ucmatose_wants_more(ucmatose);
}

/* ---- the next phase's first steps ---- */

uint32_t ucmatose_phase_pause(const struct ucmatose *ucmatose)
{
	if (ucmatose->phase == PHASE_CONNECTING && ucmatose->stock_iwarp)
		return STOCK_IWARP_TIME;
	if (ucmatose->phase != PHASE_SECOND_HALF)
		return 0;
	/* A client's endpoints must not be migrated in their callbacks. */
	return ucmatose->is_server ? SETTLE_TIME : 1;
}

/* The stock tool's line about the messages. */
static void say(const struct ucmatose *ucmatose, const char *line)
{
	if (ucmatose->messages)
		run_print(ucmatose->run, "%s", line);
}

static void begin_first_half(struct ucmatose *ucmatose)
{
	if (!run_setup_done(ucmatose->run, NULL, NULL)) {
		ucmatose->phase = PHASE_ENDED;
		return;
	}
	if (!ucmatose->is_server) { /* each of its connections has begun when it was established */
		ucmatose_figures_restart(ucmatose, CONNECTION_RECEIVING);
		say(ucmatose, "receiving data transfers");
		return;
	}
	say(ucmatose, "initiating data transfers");
	for (uint32_t i = 0; i < ucmatose->wanted; i++) {
		struct ucmatose_connection *connection = &ucmatose->connections[i];

		if (connection->state == CONNECTION_ESTABLISHED)
			ucmatose_connection_check(connection, ucmatose_messages_begin(connection));
	}
	say(ucmatose, "completing sends");
}

/* The channel left is freed with the transport. */
static enum outcome migrate(struct ucmatose *ucmatose)
{
	enum outcome outcome;

	run_print(ucmatose->run, "migrating to new event channel");
	outcome = channel_create(ucmatose->run->transport, &ucmatose->channel);
	if (!outcome && ucmatose->listener)
		outcome = endpoint_migrate(ucmatose->listener, ucmatose->channel);
	for (uint32_t i = 0; !outcome && i < ucmatose->wanted; i++)
		if (ucmatose->connections[i].endpoint)
			outcome = endpoint_migrate(ucmatose->connections[i].endpoint, ucmatose->channel);
	return outcome;
}

static void begin_closing(struct ucmatose *ucmatose)
{
	if (ucmatose_good(ucmatose) == ucmatose->wanted)
		say(ucmatose, "data transfers complete");
	if (ucmatose->options->migrate)
		run_record_outcome(ucmatose->run, migrate(ucmatose));
	if (!ucmatose->is_server)
		return;
	run_print(ucmatose->run, "cmatose: disconnecting");
	ucmatose->next = 0;
}

/* A peer that fails one connection may fail all: then none waits for the others. */
void ucmatose_disconnect_more(struct ucmatose *ucmatose)
{
	const uint32_t *in = ucmatose->in_state;

	while (in[CONNECTION_TRANSFERRED] && (in[CONNECTION_DISCONNECTING] < UNDER_WAY_MAX || in[CONNECTION_FAILED])) {
		struct ucmatose_connection *connection = ucmatose_connection_next(ucmatose, CONNECTION_TRANSFERRED);

		ucmatose_connection_check(connection, endpoint_disconnect(connection->endpoint));
	}
}

void ucmatose_next_phase(struct ucmatose *ucmatose)
{
	const bool closed = ucmatose->phase == PHASE_CLOSING;

	if (closed && ucmatose->is_server)
		run_print(ucmatose->run, "disconnected");
	if (closed || !ucmatose_good(ucmatose)) {
		ucmatose_finish(ucmatose, OUTCOME_OK);
		return;
	}
	ucmatose->phase++;
	if (ucmatose->phase == PHASE_FIRST_HALF)
		begin_first_half(ucmatose);
	else if (ucmatose->phase == PHASE_SECOND_HALF)
		say(ucmatose, ucmatose->is_server ? "receiving data transfers" : "sending replies");
	else
		begin_closing(ucmatose);
}
