/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "cmd/ucmatose/ucmatose.h"
#include "core/units.h"

static const char *const names[] = {
	"new", "connecting", "sending", "receiving", "transferred", "disconnecting", "established", "closed", "failed",
};

void ucmatose_connection_enter(struct ucmatose_connection *connection, enum connection_state state)
{
	struct ucmatose *ucmatose = connection->ucmatose;

	log_debug(&ucmatose->run->log, "connection %" PRIu32 ": %s -> %s", connection->index, names[connection->state],
		  names[state]);
	ucmatose->in_state[connection->state]--;
	ucmatose->in_state[state]++;
	connection->state = state;
	ucmatose_figures_begin(ucmatose, state);
}

struct ucmatose_connection *ucmatose_connection_next(struct ucmatose *ucmatose, enum connection_state state)
{
	struct ucmatose_connection *connection;

	while (ucmatose->connections[ucmatose->next].state != state)
		ucmatose->next++;
	connection = &ucmatose->connections[ucmatose->next];
	connection->ucmatose = ucmatose;
	connection->index = ucmatose->next;
	ucmatose_connection_enter(connection, state + 1);
	return connection;
}

void ucmatose_connection_reset(struct ucmatose_connection *connection)
{
	endpoint_destroy(connection->endpoint);
	*connection = (struct ucmatose_connection){
		.ucmatose = connection->ucmatose,
		.index = connection->index,
		.state = connection->state,
		.stale = connection->stale,
	};
}

void ucmatose_connection_end(struct ucmatose_connection *connection, enum connection_state state)
{
	struct report *report;

	ucmatose_connection_enter(connection, state);
	report = run_begin_record(connection->ucmatose->run, "connection");
	if (report) {
		report_count(report, "index", connection->index);
		report_text(report, "peer", connection->endpoint ? connection->endpoint->name : NULL);
		report_text(report, "state", names[state]);
		report_count(report, "sent", connection->acknowledged);
		report_count(report, "received", connection->received);
		report_close(report);
	}
	ucmatose_connection_reset(connection);
}

void ucmatose_connection_check(struct ucmatose_connection *connection, enum outcome outcome)
{
	if (!outcome)
		return;
	run_record_outcome(connection->ucmatose->run, outcome);
	ucmatose_connection_end(connection, CONNECTION_FAILED);
}

void ucmatose_connection_fail(struct ucmatose_connection *connection, const char *cause)
{
	const struct ucmatose *ucmatose = connection->ucmatose;
	char text[ENDPOINT_TIMEOUT_CAUSE_SIZE];

	log_error(&ucmatose->run->log, connection->endpoint->name,
		  "connection %" PRIu32 " (%s): %s: sent %" PRIu32 ", received %" PRIu32 " of %" PRIu32 " message%s%s",
		  connection->index, WITH_DIAGNOSTICS ? names[connection->state] : "failed", cause,
		  connection->acknowledged, connection->received, ucmatose->messages, units_plural(ucmatose->messages),
		  endpoint_timeout_cause(connection->endpoint, text));
	ucmatose_connection_check(connection, OUTCOME_FAILED);
}

void ucmatose_hello_write(struct ucmatose *ucmatose, uint32_t index)
{
	const struct hello hello = {
		.tool = HELLO_UCMATOSE,
		.run = ucmatose->client_id,
		.capacity = ucmatose->size,
		.connections = ucmatose->wanted,
		.count = ucmatose->messages,
		.connection = index,
		.window = ucmatose->slots,
	};

	hello_write(&hello, ucmatose->hello);
}

bool ucmatose_hello_agrees(const struct ucmatose *ucmatose, const char *object, const struct hello *hello)
{
	/* Without messages, sizes may differ. */
	if (hello->connections == ucmatose->wanted && hello->count == ucmatose->messages &&
	    (!ucmatose->messages || hello->capacity == ucmatose->size))
		return true;
	error_clear(&ucmatose->run->transport->error); /* the REJ's text would repeat this error */
	log_error(&ucmatose->run->log, object,
		  "the two ends do not agree: the peer runs with -c %" PRIu32 " -C %" PRIu64 " -S %" PRIu32
		  ", this end with -c %" PRIu32 " -C %" PRIu32 " -S %" PRIu32,
		  hello->connections, hello->count, hello->capacity, ucmatose->wanted, ucmatose->messages,
		  ucmatose->size);
	return false;
}

void ucmatose_hello_apply(struct ucmatose_connection *connection, const struct hello *hello)
{
	connection->peer_is_ours = true;
	connection->peer_window = connection->ucmatose->messages ? hello->window : 0;
	/* The seeds of the two directions differ: a device that returns our own message fails the check. */
	connection->send_seed = 2 * connection->index + connection->ucmatose->is_server;
	connection->receive_seed = 2 * hello->connection + !connection->ucmatose->is_server;
}
