/* SPDX-License-Identifier: BSD-2-Clause */
/* A link: its identifiers, how it is found again, its states, its repeats, its time after death. */
#include "transport/soft/manager.h"

#include <stdlib.h>
#include <string.h>

#include "transport/soft/delivery.h"

#define BIT(state) (1u << (state))

enum {
	FIRST_TABLE_SIZE = 64,
	HALF_BITS = 16, /* of an identifier */
	NO_GUID = 0,
};

struct state_row {
	const char *text;
	unsigned next;
	bool repeats; /* the message, until the peer answers it */
	bool half_open;
};

#define OVER (BIT(LINK_ENDED) | BIT(LINK_REJECTED))

/* clang-format off */
static const struct state_row states[] = {
	/*                      text            next                                    repeats  half open */
	[LINK_NEW] =          { "new",          BIT(LINK_REQ_SENT) | BIT(LINK_REQ_RECEIVED), false, false },
	[LINK_REQ_SENT] =     { "REQ sent",     BIT(LINK_ESTABLISHED) | OVER,           true,    false },
	[LINK_REQ_RECEIVED] = { "REQ received", BIT(LINK_REP_SENT) | OVER,              false,   true },
	[LINK_REP_SENT] =     { "REP sent",     BIT(LINK_ESTABLISHED) | OVER,           true,    true },
	[LINK_ESTABLISHED] =  { "established",  BIT(LINK_DREQ_SENT) | BIT(LINK_ENDED),  false,   false },
	[LINK_DREQ_SENT] =    { "DREQ sent",    BIT(LINK_ENDED),                        true,    false },
	[LINK_ENDED] =        { "ended",        0,                                      false,   false },
	[LINK_REJECTED] =     { "rejected",     0,                                      false,   false },
};
/* clang-format on */

/* ---- finding ---- */

/* With a secret in it, so that peers cannot choose numbers that all fall into one bucket. */
static uint32_t hash_of(const struct soft_manager *manager, const struct address *from, uint64_t guid, uint32_t number)
{
	uint64_t words[2] = { 0 };
	uint64_t hash;

	memcpy(words, from->bytes, from->family == ADDRESS_IP4 ? 4 : sizeof(from->bytes));
	hash = soft_number_mix(manager->secret ^ words[0]);
	hash = soft_number_mix(hash ^ words[1]);
	hash = soft_number_mix(hash ^ guid);
	return (uint32_t)soft_number_mix(hash ^ number);
}

static uint32_t hash_of_id(const struct soft_manager *manager, uint32_t id)
{
	return (uint32_t)soft_number_mix(manager->secret ^ id);
}

static struct soft_link *first_in(const struct link_table *table, uint32_t hash)
{
	return table->size ? table->buckets[hash & (table->size - 1)] : NULL;
}

static void put(struct link_table *table, enum link_index index, struct soft_link *link)
{
	struct soft_link **bucket = &table->buckets[link->hash[index] & (table->size - 1)];

	link->next_in[index] = *bucket;
	*bucket = link;
}

/* Returns false if there is no table at all. One that cannot grow works on, with longer chains. */
static bool make_room(struct link_table *table, enum link_index index)
{
	struct link_table larger = { .size = table->size ? table->size * 2 : FIRST_TABLE_SIZE, .count = table->count };

	if (table->count < table->size)
		return true;
	larger.buckets = calloc(larger.size, sizeof(*larger.buckets));
	if (!larger.buckets)
		return table->size;
	for (size_t i = 0; i < table->size; i++) {
		struct soft_link *next;

		for (struct soft_link *link = table->buckets[i]; link; link = next) {
			next = link->next_in[index];
			put(&larger, index, link);
		}
	}
	free(table->buckets);
	*table = larger;
	return true;
}

static void take_out(struct soft_link *link, enum link_index index)
{
	struct link_table *table = &link->manager->tables[index];
	struct soft_link **place;

	if (!(link->indexed & BIT(index)))
		return;
	link->indexed &= ~BIT(index);
	place = &table->buckets[link->hash[index] & (table->size - 1)];
	while (*place != link)
		place = &(*place)->next_in[index];
	*place = link->next_in[index];
	table->count--;
}

/* Anew, if it is in the table already. */
static bool insert(struct soft_link *link, enum link_index index, uint32_t hash)
{
	struct link_table *table = &link->manager->tables[index];

	take_out(link, index);
	if (!make_room(table, index))
		return false;
	link->hash[index] = hash;
	put(table, index, link);
	table->count++;
	link->indexed |= BIT(index);
	return true;
}

static bool is_peer(const struct soft_link *link, const struct address *from)
{
	return address_same_host(&link->agreement.path.peer, from);
}

static struct soft_link *find_id(const struct soft_manager *manager, uint32_t id)
{
	uint32_t hash = hash_of_id(manager, id);
	struct soft_link *link = first_in(&manager->tables[LINK_BY_ID], hash);

	while (link && link->id != id)
		link = link->next_in[LINK_BY_ID];
	return link;
}

static bool is_between(const struct soft_link *link, const struct soft_socket *socket, const struct address *from)
{
	return link->agreement.path.socket == socket && is_peer(link, from);
}

struct soft_link *soft_link_find(struct soft_manager *manager, uint32_t id, uint32_t peer_id,
				 const struct soft_socket *socket, const struct address *from)
{
	struct soft_link *link = find_id(manager, id);

	if (!link || !is_between(link, socket, from) || (link->peer_known && link->peer_id != peer_id))
		return NULL;
	return link;
}

struct soft_link *soft_link_find_peer(struct soft_manager *manager, uint64_t guid, uint32_t peer_id,
				      const struct soft_socket *socket, const struct address *from)
{
	uint32_t hash = hash_of(manager, from, guid, peer_id);
	struct soft_link *link = first_in(&manager->tables[LINK_BY_PEER], hash);

	while (link && !(link->peer_id == peer_id && link->peer_guid == guid && is_between(link, socket, from)))
		link = link->next_in[LINK_BY_PEER];
	return link;
}

/*
 * The first link of a queue pair lies under its address and number alone. Anybody may name that number with ever new
 * GUIDs: further links lie under theirs too, so that no chain gets long by that.
 */
static struct soft_link *first_of_queue(const struct soft_manager *manager, uint64_t guid, uint32_t queue,
					const struct address *from)
{
	return first_in(&manager->tables[LINK_BY_QUEUE], hash_of(manager, from, guid, queue));
}

static bool is_of_queue(const struct soft_link *link, uint32_t queue, const struct address *from)
{
	return link->agreement.peer_queue == queue && is_peer(link, from);
}

/* By its hash too: a further link may lie in the same chain by chance. */
static struct soft_link *find_any(const struct soft_manager *manager, uint32_t queue, const struct address *from)
{
	uint32_t hash = hash_of(manager, from, NO_GUID, queue);
	struct soft_link *link = first_in(&manager->tables[LINK_BY_QUEUE], hash);

	while (link && !(link->hash[LINK_BY_QUEUE] == hash && is_of_queue(link, queue, from)))
		link = link->next_in[LINK_BY_QUEUE];
	return link;
}

struct soft_link *soft_link_find_queue(struct soft_manager *manager, uint64_t guid, uint32_t queue,
				       const struct address *from)
{
	const uint64_t places[] = { NO_GUID, guid };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct soft_link *link = first_of_queue(manager, places[i], queue, from);

		while (link && !(link->peer_guid == guid && is_of_queue(link, queue, from)))
			link = link->next_in[LINK_BY_QUEUE];
		if (link)
			return link;
	}
	return NULL;
}

struct soft_link *soft_link_find_sender(const struct soft_manager *manager, uint32_t id, uint32_t queue,
					const struct soft_socket *socket, const struct address *peer)
{
	struct soft_link *link = id ? find_id(manager, id) : find_any(manager, queue, peer);

	return link && is_between(link, socket, peer) ? link : NULL;
}

/* ---- identifiers ---- */

/* 0 means "none" in some messages. The look-up matters only after 2^32 connections. */
static uint32_t next_id(struct soft_manager *manager)
{
	uint32_t id;

	do
		id = soft_number(&manager->identifiers, HALF_BITS, manager->counter++);
	while (!id || find_id(manager, id));
	return id;
}

struct soft_link *soft_link_create(struct soft_manager *manager, const struct soft_path *path)
{
	struct soft_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->manager = manager;
	link->agreement.path = *path;
	link->id = next_id(manager);
	if (!insert(link, LINK_BY_ID, hash_of_id(manager, link->id))) {
		free(link);
		return NULL;
	}
	return link;
}

void soft_link_attach(struct soft_link *link, struct soft_endpoint *endpoint)
{
	link->endpoint = endpoint;
	endpoint->link = link;
}

void soft_link_rename(struct soft_link *link)
{
	link->id = next_id(link->manager);
	insert(link, LINK_BY_ID, hash_of_id(link->manager, link->id));
}

bool soft_link_set_peer(struct soft_link *link, uint64_t guid, uint32_t peer_id, uint32_t queue)
{
	const struct address *peer = &link->agreement.path.peer;
	uint64_t place = find_any(link->manager, queue, peer) ? guid : NO_GUID;

	link->peer_guid = guid;
	link->peer_id = peer_id;
	link->agreement.peer_queue = queue;
	link->peer_known = insert(link, LINK_BY_PEER, hash_of(link->manager, peer, guid, peer_id)) &&
			   insert(link, LINK_BY_QUEUE, hash_of(link->manager, peer, place, queue));
	return link->peer_known;
}

/* ---- lists ---- */

static void append(struct link_list *list, struct soft_link *link)
{
	link->list = list;
	link->next_listed = NULL;
	link->link_to_this = list->last;
	*list->last = link;
	list->last = &link->next_listed;
	list->count++;
}

static void take_out_of_list(struct soft_link *link)
{
	if (!link->list)
		return;
	*link->link_to_this = link->next_listed;
	if (link->next_listed)
		link->next_listed->link_to_this = link->link_to_this;
	else
		link->list->last = link->link_to_this;
	link->list->count--;
	link->list = NULL;
}

/* ---- ended links ---- */

void soft_link_free(struct soft_link *link)
{
	loop_timer_stop(&link->timer);
	for (unsigned index = 0; index < LINK_INDEXES; index++)
		take_out(link, (enum link_index)index);
	take_out_of_list(link);
	if (link->endpoint)
		link->endpoint->link = NULL;
	free(link);
}

/* An endpoint without a link is done: there is nothing more to be said for it. */
static void memory_over(void *owner)
{
	soft_link_free(owner);
}

void soft_link_remember(struct soft_link *link)
{
	loop_timer_start(link->manager->transport->base.loop, &link->timer, MANAGER_MEMORY, memory_over, link);
}

static void begin_memory(struct soft_link *link)
{
	struct soft_manager *manager = link->manager;

	take_out(link, LINK_BY_QUEUE);
	append(&manager->ended, link);
	soft_link_remember(link);
	if (manager->ended.count > MANAGER_ENDED_MOST)
		soft_link_free(manager->ended.first);
}

void soft_link_detach(struct soft_link *link)
{
	struct soft_manager *manager = link->manager;

	link->endpoint->link = NULL;
	link->endpoint = NULL;
	if (link->state != LINK_DREQ_SENT)
		return;
	manager->dying++;
	if (manager->dying > MANAGER_DYING_MOST)
		soft_link_enter(link, LINK_ENDED);
}

/* ---- states ---- */

bool soft_link_enter(struct soft_link *link, enum link_state state)
{
	struct soft_manager *manager = link->manager;
	const struct log *log = manager->transport->base.log;
	const struct state_row *before = &states[link->state];
	const struct state_row *after = &states[state];
	char host[ADDRESS_TEXT_SIZE];

	address_host(&link->agreement.path.peer, host);
	if (!(before->next & BIT(state))) {
		log_error(log, host, "defect: a link cannot go from %s to %s", before->text, after->text);
		return false;
	}
	log_debug(log, "%s: link %08x: %s -> %s", host, link->id, before->text, after->text);
	loop_timer_stop(&link->timer);
	manager->half_open += after->half_open;
	manager->half_open -= before->half_open;
	if (link->endpoint && link->endpoint->listener) {
		link->endpoint->listener->asked += state == LINK_REQ_RECEIVED;
		link->endpoint->listener->asked -= link->state == LINK_REQ_RECEIVED;
	}
	if (link->state == LINK_DREQ_SENT && !link->endpoint)
		manager->dying--;
	link->state = state;
	take_out_of_list(link);
	if (state == LINK_REP_SENT)
		append(&manager->unconfirmed, link);
	if (state == LINK_ENDED || state == LINK_REJECTED)
		begin_memory(link);
	return true;
}

/* ---- what is said, again and again ---- */

static void unanswered(void *owner);

/* Links that began at once need not repeat at once: an eighth more or less, by their random identifiers. */
static int64_t interval_of(const struct soft_link *link)
{
	int64_t interval = MANAGER_LAST_REPEAT;

	if (link->repeats < MANAGER_SLOWEST)
		interval = MANAGER_FIRST_REPEAT << link->repeats;
	return interval + interval / 64 * ((int64_t)(link->id % 16) - 8);
}

/* In a flood most who asked are not there: nobody is sent more than it sent itself. */
static bool may_repeat(const struct soft_link *link)
{
	return link->state != LINK_REP_SENT || link->manager->half_open <= MANAGER_REPEATED_MOST;
}

static void wait_for_answer(struct soft_link *link)
{
	loop_timer_start(link->manager->transport->base.loop, &link->timer, interval_of(link), unanswered, link);
}

static void unanswered(void *owner)
{
	struct soft_link *link = owner;
	struct soft_transport *transport = link->manager->transport;

	soft_enter(transport);
	if (link->repeats >= (link->endpoint ? (unsigned)MANAGER_REPEATS : (unsigned)MANAGER_DYING_REPEATS)) {
		soft_ending_unanswered(link);
	} else {
		link->repeats++;
		if (may_repeat(link))
			soft_manager_send(link->manager, &link->agreement.path, link->message);
		wait_for_answer(link);
	}
	soft_leave(transport);
}

void soft_link_say(struct soft_link *link)
{
	soft_manager_send(link->manager, &link->agreement.path, link->message);
	link->repeats = 0;
	if (states[link->state].repeats)
		wait_for_answer(link);
}

void soft_link_say_again(struct soft_link *link)
{
	soft_manager_send(link->manager, &link->agreement.path, link->message);
}

void soft_link_be_patient(struct soft_link *link)
{
	link->repeats = MANAGER_SLOWEST;
	wait_for_answer(link);
}
