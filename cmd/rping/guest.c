/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/guest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/hello.h"
#include "core/payload.h"
#include "core/quantity.h"

enum guest_state {
	GUEST_ASKING,
	GUEST_ACCEPTING,
	GUEST_GREETED,
	GUEST_IDLE,
	GUEST_ANSWERED,
	GUEST_PROVING,
	GUEST_READING,
	GUEST_AWAITING_SINK,
	GUEST_SETTLING,
	GUEST_LEAVING,
};

/*
 * A client may take its time between two pings, but not in the middle of one, nor before the first: who connects and
 * says nothing would hold a server without -P for ever. Accepting and leaving have the transport's deadlines.
 */
static const struct state_row guest_states[] = {
	[GUEST_ASKING] = { "asking to connect", STATE_BIT(GUEST_ACCEPTING) },
	[GUEST_ACCEPTING] = { "accepting", STATE_BIT(GUEST_GREETED) },
	[GUEST_GREETED] = { "waiting for it to begin", STATE_BIT(GUEST_READING) | STATE_BIT(GUEST_LEAVING), true },
	[GUEST_IDLE] = { "waiting for the next ping", STATE_BIT(GUEST_READING) | STATE_BIT(GUEST_LEAVING) },
	[GUEST_ANSWERED] = { "waiting for the next ping, which proves that its answer arrived",
			     STATE_BIT(GUEST_READING) | STATE_BIT(GUEST_PROVING) | STATE_BIT(GUEST_SETTLING) |
				     STATE_BIT(GUEST_LEAVING) },
	[GUEST_PROVING] = { "waiting for the news that its answer arrived",
			    STATE_BIT(GUEST_IDLE) | STATE_BIT(GUEST_READING) | STATE_BIT(GUEST_SETTLING) |
				    STATE_BIT(GUEST_LEAVING) },
	[GUEST_READING] = { "reading it", STATE_BIT(GUEST_AWAITING_SINK) | STATE_BIT(GUEST_LEAVING), true },
	[GUEST_AWAITING_SINK] = { "waiting for the client's sink", STATE_BIT(GUEST_ANSWERED) | STATE_BIT(GUEST_LEAVING),
				  true },
	[GUEST_SETTLING] = { "waiting for the news that its answer arrived", STATE_BIT(GUEST_LEAVING), true },
	[GUEST_LEAVING] = { "disconnecting", 0 },
};

/* The one message of a server, in its mailbox: a go-ahead is all zeros. */
enum {
	GO_AHEAD
};

static void idle_too_long(void *owner);
static void prove(void *owner);
static void timed_out(void *owner);
static void unconfirmed(void *owner);

/*
 * Half of --timeout for a proof of the answer to come by itself, the other half for the one that is requested: a client
 * that is gone is noticed in --timeout, also between two pings that are further apart. A run that ends with -P allows
 * the half, too, before all of it cuts the run short.
 */
static void enter(struct guest *guest, enum guest_state state)
{
	int64_t idle = guest->options->idle_timeout, half = guest->state.timeout / 2;
	struct loop_timer *deadline = &guest->state.deadline;
	struct loop *loop = guest->state.loop;

	state_enter(&guest->state, state, guest->endpoint->name);
	if (idle && ((state == GUEST_ANSWERED && idle <= half) || (state == GUEST_GREETED && idle < 2 * half)))
		loop_timer_start(loop, deadline, idle, idle_too_long, guest);
	else if (state == GUEST_ANSWERED)
		loop_timer_start(loop, deadline, half, prove, guest);
	else if (state == GUEST_PROVING || (state == GUEST_SETTLING && guest->options->persistent))
		loop_timer_start(loop, deadline, half, unconfirmed, guest);
	else if (state == GUEST_IDLE && idle)
		loop_timer_start(loop, deadline, idle - half, idle_too_long, guest);
}

/* Anybody can connect and say nothing as often as it likes, and the log is not to grow by that. */
static bool is_worth_telling(struct guest *guest)
{
	if (guest->answered || guest->is_told)
		return true;
	if (!guest->is_untold)
		guest->is_told = log_allows(guest->silent);
	guest->is_untold = !guest->is_told;
	return guest->is_told;
}

bool guest_is_connected(const struct guest *guest)
{
	return guest->state.now >= GUEST_GREETED;
}

/* Nothing may touch the guest after this: its owner has freed it. */
static void end(struct guest *guest, enum outcome outcome)
{
	guest->ended(guest->owner, guest, outcome, guest_is_connected(guest));
}

/* What a guest was worth that has gone in order. */
static enum outcome verdict(struct guest *guest)
{
	const struct endpoint *endpoint = guest->endpoint;
	bool dismissed = guest->state.now == GUEST_LEAVING;
	/* A server with -P is ended from outside by its nature, and its clients with it. */
	bool by_nature = dismissed && guest->options->persistent;
	bool cut_off = guest->overdue || (dismissed && !by_nature && !guest->answered);
	/* The only client has shown nothing if it did not ping. */
	bool alone = !guest->options->persistent || guest->options->one_off;
	uint64_t wanted = guest->promised ? guest->promised : alone;
	char pings[PINGS_TEXT_SIZE];

	if (!cut_off && (guest->answered >= wanted || by_nature))
		return OUTCOME_OK;
	/* That the deadline has passed has been told. */
	if (!guest->overdue && is_worth_telling(guest))
		log_error(guest->log, endpoint->name, "%s ended early, after %s%s", dismissed ? "we" : "the client",
			  rping_pings_text(guest->answered, guest->promised, pings), dismissed ? ": interrupted" : "");
	return OUTCOME_FAILED;
}

void guest_say_verdict(struct guest *guest, enum outcome outcome)
{
	const struct endpoint *endpoint = guest->endpoint;
	char pings[PINGS_TEXT_SIZE];
	char sizes[48];

	if (!is_worth_telling(guest))
		return;
	if (outcome) {
		fprintf(environment_output(guest->environment), "%s: FAILED: %s from %s answered (%s, %s)\n",
			guest->log->name, rping_pings_text(guest->answered, guest->promised, pings), endpoint->name,
			transport_name(endpoint->transport), endpoint->domain->device);
		return;
	}
	if (guest->unproven) {
		fprintf(environment_output(guest->environment),
			"%s: %s from %s answered, and one whose answer is unconfirmed (%s, %s)\n", guest->log->name,
			rping_pings_text(guest->answered, 0, pings), endpoint->name,
			transport_name(endpoint->transport), endpoint->domain->device);
		return;
	}
	if (!guest->answered) {
		fprintf(environment_output(guest->environment), "%s: %s came and went without a ping (%s, %s)\n",
			guest->log->name, endpoint->name, transport_name(endpoint->transport),
			endpoint->domain->device);
		return;
	}
	if (guest->shortest == guest->longest)
		snprintf(sizes, sizeof(sizes), "%" PRIu32, guest->longest);
	else
		snprintf(sizes, sizeof(sizes), "%" PRIu32 " to %" PRIu32, guest->shortest, guest->longest);
	fprintf(environment_output(guest->environment), "%s: %s of %s byte%s from %s %sanswered (%s, %s%s)\n",
		guest->log->name, rping_pings_text(guest->answered, 0, pings), sizes, quantity_plural(guest->longest),
		endpoint->name, guest->options->validate ? "verified and " : "", transport_name(endpoint->transport),
		endpoint->domain->device, guest->options->validate ? "" : RPING_NOT_COMPARED);
}

static void timed_out(void *owner)
{
	struct guest *guest = owner;
	char silence[ENDPOINT_SILENCE_SIZE];

	if (is_worth_telling(guest))
		log_error(guest->log, guest->endpoint->name, "ping %" PRIu64 ": %s: timed out after %g s%s",
			  guest->answered, state_text(&guest->state), quantity_seconds(guest->state.timeout),
			  endpoint_silence(guest->endpoint, silence));
	end(guest, OUTCOME_FAILED);
}

/*
 * Nothing says that the last answer arrived, nor that it did not. The queue pair of a client that has all of them may
 * be gone, and its disconnect late: that is no failure of a server that goes on. One client alone has to leave in
 * order.
 */
static void unconfirmed(void *owner)
{
	struct guest *guest = owner;
	bool may_be_all = guest->answered + 1 >= guest->promised || guest->state.now == GUEST_SETTLING;

	if (guest->options->persistent && may_be_all)
		end(guest, OUTCOME_OK);
	else
		timed_out(guest);
}

/* Something says that the last answer arrived, or, as no failure of it was reported, that it may be taken for that. */
static void answer_arrived(struct guest *guest)
{
	if (!guest->unproven)
		return;
	guest->unproven = false;
	if (!guest->answered || guest->length < guest->shortest)
		guest->shortest = guest->length;
	if (guest->length > guest->longest)
		guest->longest = guest->length;
	guest->answered++;
}

static void idle_too_long(void *owner)
{
	struct guest *guest = owner;
	char pings[PINGS_TEXT_SIZE];

	answer_arrived(guest);
	if (is_worth_telling(guest))
		log_error(guest->log, guest->endpoint->name, "nothing came for %g s after %s (--idle-timeout)",
			  quantity_seconds(guest->options->idle_timeout),
			  rping_pings_text(guest->answered, guest->promised, pings));
	end(guest, OUTCOME_FAILED);
}

/* The cycle of a ping. Every step returns how it went; guest_completed() ends the guest if it went wrong. */

static enum outcome out_of_order(struct guest *guest)
{
	log_error(guest->log, guest->endpoint->name, "ping %" PRIu64 ": a message out of order, while %s",
		  guest->answered, state_text(&guest->state));
	return OUTCOME_FAILED;
}

static enum outcome check_advertisement(struct guest *guest, const char *what, const struct advertisement *memory,
					uint32_t least)
{
	const char *fault = advertisement_fault(memory, least, PING_SIZE_MOST);

	if (!fault)
		return OUTCOME_OK;
	log_error(guest->log, guest->endpoint->name,
		  "ping %" PRIu64 ": the client's %s of %" PRIu32 " bytes cannot be used: %s", guest->answered, what,
		  memory->size, fault);
	return OUTCOME_FAILED;
}

/*
 * Makes the buffer long enough. It grows by doubling, so that a client whose pings get longer and longer does not make
 * us register memory for each.
 */
static enum outcome reserve(struct guest *guest, uint32_t length)
{
	size_t room = guest->buffer ? guest->buffer->length : 0;

	if (room >= length)
		return OUTCOME_OK;
	room *= 2;
	if (room < length)
		room = length;
	if (room > PING_SIZE_MOST)
		room = PING_SIZE_MOST;
	/* The last WRITE has arrived, but the queue may not know yet: the next READ's completion tells. */
	region_destroy(guest->outgrown);
	guest->outgrown = guest->buffer;
	guest->buffer = NULL;
	free(guest->expected);
	guest->expected = NULL;
	if (guest->options->validate) {
		guest->expected = malloc(room);
		if (!guest->expected) {
			log_error(guest->log, guest->endpoint->name, "out of memory");
			return OUTCOME_INTERNAL;
		}
	}
	return region_create(guest->endpoint->domain, room, REGION_READ_SINK, &guest->buffer);
}

static enum outcome read_source(struct guest *guest, const struct advertisement *source)
{
	enum outcome outcome = check_advertisement(guest, "source", source, 1);

	if (!outcome)
		outcome = reserve(guest, source->size);
	if (outcome)
		return outcome;
	guest->length = source->size;
	enter(guest, GUEST_READING);
	return endpoint_post(guest->endpoint,
			     &(struct work){
				     .kind = WORK_READ,
				     .region = guest->buffer,
				     .length = guest->length,
				     .remote_address = source->address,
				     .remote_key = source->key,
			     },
			     1);
}

/* A ping's text follows from its number alone, whoever sends it. */
static enum outcome compare(struct guest *guest)
{
	struct payload_difference difference;

	payload_ping_fill(guest->expected, guest->length, ping_number(guest->answered));
	if (payload_equal(guest->expected, guest->buffer->memory, guest->length, &difference))
		return OUTCOME_OK;
	log_error(guest->log, guest->endpoint->name,
		  "ping %" PRIu64 ": what was read differs at byte %zu of %" PRIu32 ": expected 0x%02x, found 0x%02x",
		  guest->answered, difference.position, guest->length, difference.expected, difference.found);
	return OUTCOME_FAILED;
}

static enum outcome source_read(struct guest *guest)
{
	const struct rping_options *options = guest->options;
	struct work go_ahead = mailbox_send(&guest->mailbox, GO_AHEAD);

	rping_classic_completion(guest->environment, "rdma read");
	region_destroy(guest->outgrown);
	guest->outgrown = NULL;
	if (options->validate && compare(guest))
		return OUTCOME_FAILED;
	if (options->verbose)
		ping_print(environment_output(guest->environment), "server ping data", guest->buffer->memory,
			   guest->length);
	/* The next ping's READ is later on the same queue, and its completion covers this one. */
	go_ahead.silent = true;
	enter(guest, GUEST_AWAITING_SINK);
	return endpoint_post(guest->endpoint, &go_ahead, 1);
}

/*
 * The queue keeps its order, so that the go-ahead may follow the WRITE at once: a round trip less. That they arrived is
 * proven by what the client does next. A report of it would wake us for nothing else; only their failure is reported.
 */
static enum outcome write_sink(struct guest *guest, const struct advertisement *sink)
{
	enum outcome outcome = check_advertisement(guest, "sink", sink, guest->length);
	struct work works[] = {
		{
			.kind = WORK_WRITE,
			.region = guest->buffer,
			.length = guest->length,
			.remote_address = sink->address,
			.remote_key = sink->key,
			.silent = true,
		},
		mailbox_send(&guest->mailbox, GO_AHEAD),
	};

	if (outcome)
		return outcome;
	works[1].silent = true;
	guest->unproven = true;
	enter(guest, GUEST_ANSWERED);
	return endpoint_post(guest->endpoint, works, sizeof(works) / sizeof(works[0]));
}

static enum outcome leave(struct guest *guest)
{
	enter(guest, GUEST_LEAVING);
	return endpoint_disconnect(guest->endpoint);
}

/* A WRITE of nothing, which touches no memory, is reported when all before it has arrived. */
static enum outcome ask_for_proof(struct guest *guest, enum guest_state state)
{
	enter(guest, state);
	return endpoint_post(guest->endpoint, &(struct work){ .kind = WORK_WRITE, .region = guest->buffer }, 1);
}

static void prove(void *owner)
{
	struct guest *guest = owner;
	enum outcome outcome = ask_for_proof(guest, GUEST_PROVING);

	if (outcome)
		end(guest, outcome);
}

/* The proof may be late: then the client's next message was one, or it has left. */
static enum outcome proven(struct guest *guest)
{
	bool settles = guest->state.now == GUEST_SETTLING;

	if (!settles && guest->state.now != GUEST_PROVING)
		return OUTCOME_OK;
	answer_arrived(guest);
	if (settles)
		return leave(guest);
	enter(guest, GUEST_IDLE);
	return OUTCOME_OK;
}

static enum outcome message_came(struct guest *guest, const struct completion *completion)
{
	struct advertisement memory;
	enum outcome outcome = mailbox_take(&guest->mailbox, guest->endpoint, completion, &memory);

	if (outcome)
		return outcome;
	if (guest->unproven)
		rping_classic_completion(guest->environment, "rdma write");
	if (guest->unproven || guest->state.now == GUEST_AWAITING_SINK)
		rping_classic_completion(guest->environment, "send");
	rping_classic_completion(guest->environment, "recv");
	switch ((enum guest_state)guest->state.now) {
	case GUEST_GREETED:
	case GUEST_IDLE:
	case GUEST_ANSWERED:
	case GUEST_PROVING:
		answer_arrived(guest);
		return read_source(guest, &memory);
	case GUEST_AWAITING_SINK:
		return write_sink(guest, &memory);
	case GUEST_SETTLING:
		return proven(guest);
	default:
		return out_of_order(guest);
	}
}

static void guest_completed(void *owner, struct endpoint *endpoint, const struct completion *completion)
{
	struct guest *guest = owner;
	enum outcome outcome = OUTCOME_FAILED;

	(void)endpoint;
	if (completion->status == COMPLETION_OK) {
		if (completion->kind == WORK_RECEIVE)
			outcome = message_came(guest, completion);
		else if (completion->kind == WORK_READ)
			outcome = source_read(guest);
		else
			outcome = proven(guest);
	}
	if (outcome)
		end(guest, outcome);
}

/* The connection. */

static void client_left(struct guest *guest)
{
	switch ((enum guest_state)guest->state.now) {
	case GUEST_GREETED:
	case GUEST_IDLE:
	case GUEST_ANSWERED:
	case GUEST_PROVING:
	case GUEST_SETTLING:
		/* Nobody leaves in order a moment too soon: this, too, proves that the last answer arrived. */
		answer_arrived(guest);
		end(guest, verdict(guest));
		break;
	case GUEST_LEAVING:
		end(guest, verdict(guest));
		break;
	default:
		log_error(guest->log, guest->endpoint->name, "ping %" PRIu64 ": %s: the client went away in the middle",
			  guest->answered, state_text(&guest->state));
		end(guest, OUTCOME_FAILED);
		break;
	}
}

static void guest_event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct guest *guest = owner;

	rping_classic_event(guest->environment, guest->options, endpoint, event->kind);
	switch (event->kind) {
	case EVENT_ESTABLISHED:
		++*guest->connected;
		enter(guest, GUEST_GREETED);
		break;
	case EVENT_DISCONNECTED:
		client_left(guest);
		break;
	case EVENT_FAILED:
		end(guest, event->outcome);
		break;
	default:
		break;
	}
}

static const struct endpoint_handlers guest_handlers = {
	.event = guest_event,
	.completion = guest_completed,
};

struct guest *guest_create(struct guest **list, struct environment *environment, const struct rping_options *options,
			   struct endpoint *request, const uint8_t *private_data, size_t length)
{
	struct guest *guest = calloc(1, sizeof(*guest));
	struct hello hello;

	if (!guest)
		return NULL;
	guest->options = options;
	guest->log = &environment->log;
	guest->environment = environment;
	guest->endpoint = request;
	guest->state = (struct state){
		.rows = guest_states,
		.loop = environment->loop,
		.log = &environment->log,
		.timeout = options->common.timeout,
		.expired = timed_out,
		.owner = guest,
	};
	guest->promised =
		hello_read(private_data, length, HELLO_RPING, &hello) ? hello.count : (uint64_t)options->count;
	guest->link = list;
	guest->next = *list;
	if (guest->next)
		guest->next->link = &guest->next;
	*list = guest;
	request->handlers = &guest_handlers;
	request->owner = guest;
	return guest;
}

/* Before the acceptance: the client's first message may come together with the news that it is connected. */
enum outcome guest_prepare(struct guest *guest)
{
	enum outcome outcome = mailbox_create(&guest->mailbox, guest->endpoint->domain);

	if (!outcome)
		outcome = endpoint_open_queue(guest->endpoint);
	if (!outcome)
		outcome = mailbox_open(&guest->mailbox, guest->endpoint);
	return outcome;
}

void guest_refuse(struct guest *guest, const char *reason)
{
	endpoint_reject(guest->endpoint, reason, strlen(reason) + 1);
	guest->endpoint = NULL;
}

enum outcome guest_accept(struct guest *guest, guest_callback *ended, void *owner)
{
	struct hello hello = { .tool = HELLO_RPING, .capacity = PING_SIZE_MOST };
	uint8_t bytes[HELLO_SIZE];

	guest->ended = ended;
	guest->owner = owner;
	hello_write(&hello, bytes);
	enter(guest, GUEST_ACCEPTING);
	return endpoint_accept(guest->endpoint, bytes, sizeof(bytes));
}

void guest_dismiss(struct guest *guest, enum interruption reason)
{
	enum outcome outcome;

	if (guest->state.now >= GUEST_SETTLING)
		return;
	if (!guest_is_connected(guest)) {
		end(guest, OUTCOME_FAILED);
		return;
	}
	guest->overdue = reason == INTERRUPTION_DEADLINE;
	outcome = guest->unproven && !guest->overdue ? ask_for_proof(guest, GUEST_SETTLING) : leave(guest);
	if (outcome)
		end(guest, outcome);
}

void guest_destroy(struct guest *guest)
{
	if (guest_is_connected(guest))
		--*guest->connected;
	state_stop(&guest->state);
	endpoint_destroy(guest->endpoint);
	mailbox_destroy(&guest->mailbox);
	region_destroy(guest->buffer);
	region_destroy(guest->outgrown);
	free(guest->expected);
	*guest->link = guest->next;
	if (guest->next)
		guest->next->link = guest->link;
	free(guest);
}
