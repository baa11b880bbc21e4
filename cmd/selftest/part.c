/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One command against itself: the server, once that is ready the client, then both to their ends. If one of them fails
 * the other is ended too, and not listened to, as what it would say follows from that.
 */
#include <string.h>

#include "cmd/selftest/selftest.h"
#include "core/units.h"

/* Above what an end does for itself within --timeout; a receiver waits a moment longer for what comes late. */
#define MARGIN CLOCK_NS_PER_S

static const struct command *find_command(const char *name)
{
	const struct command *const *row = command_table;

	while (strcmp((*row)->name, name))
		row++;
	return *row;
}

static void limit_passed(void *owner);

static void start_limit(struct part *part)
{
	loop_timer_start(part->environment->loop, &part->limit, part->timeout + MARGIN, limit_passed, part);
}

static void interrupt_both(struct part *part, enum interruption reason)
{
	start_limit(part);
	end_interrupt(&part->server, reason);
	end_interrupt(&part->client, reason);
}

/* The first time one end is still at work, the second time it does not end as it should. */
static void limit_passed(void *owner)
{
	struct part *part = owner;
	struct end *left = part->server.running ? &part->server : &part->client;

	if (!part->outcome) {
		log_error(&left->environment.log, NULL, "not done %g s after its peer",
			  units_seconds(part->timeout + MARGIN));
		part->outcome = OUTCOME_FAILED;
	}
	if (!left->interrupted) {
		interrupt_both(part, INTERRUPTION_SIGNAL);
		return;
	}
	end_cut(&part->server);
	end_cut(&part->client);
	part->over(part->owner);
}

static void go_on(struct part *part)
{
	bool waits = part->server.running || part->client.running;

	if (!waits) {
		loop_timer_stop(&part->limit);
		part->over(part->owner);
	} else if (part->outcome) {
		part->server.environment.log.sink = part->client.environment.log.sink = &log_discard;
		interrupt_both(part, INTERRUPTION_SIGNAL);
	} else {
		start_limit(part);
	}
}

static void end_over(struct end *end)
{
	struct part *part = end->owner;

	if (!part->outcome)
		part->outcome = end->environment.outcome;
	/* A server that has ended well before it had a client has not done its part. */
	if (!part->outcome && !part->client_tried)
		part->outcome = OUTCOME_FAILED;
	go_on(part);
}

static void server_ready(struct end *server)
{
	struct part *part = server->owner;

	if (server->interrupted || part->client_tried)
		return;
	part->client_tried = true;
	part->client.over = end_over;
	part->client.owner = part;
	end_start(&part->client, part->environment, find_command(part->row->command), "client", part->row->client,
		  &part->values);
	if (!part->client.running)
		end_over(&part->client);
}

static void start_failed(void *owner)
{
	end_over(owner);
}

void part_start(struct part *part)
{
	struct end *server = &part->server;

	server->ready = server_ready;
	server->over = end_over;
	server->owner = part;
	end_start(server, part->environment, find_command(part->row->command), "server", part->row->server,
		  &part->values);
	if (!server->running)
		loop_timer_start(part->environment->loop, &server->step, 0, start_failed, server);
}

void part_interrupt(struct part *part, enum interruption reason)
{
	interrupt_both(part, reason);
}

void part_release(struct part *part)
{
	loop_timer_stop(&part->limit);
	end_release(&part->client);
	end_release(&part->server);
	memset(part, 0, sizeof(*part));
}
