/* SPDX-License-Identifier: BSD-2-Clause */
/* The two ends of a run, what each wants, and the network between them. */
#include "test/walk/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "test/network/network.h"
#include "test/network/rules.h"
#include "transport/soft/cm/cm_internal.h"
#include "transport/soft/delivery.h"
#include "transport/soft/qp/qp_internal.h"

enum {
	PORT = 7174,
	SERVER = 1, /* the last byte of an address */
	CLIENT = 2,
	WORKS_MOST = 6,
	AREA = 1024, /* bytes for each work, of each kind of memory */
	SCRIBBLE = 0xa5,
	UNDER_WAY_MOST = 64,
	HELD_MOST = WALK_DEPTH_MOST,
	OVERTAKERS_MOST = 3,
	RELEASES_MOST = 2,
	MTU = 356, /* of the interfaces ... */
	PAYLOAD = 256,
	BUFFER = 212992,
};

/* A message that comes twice within this is known; the manager remembers connections that ended for 20 s. */
#define MEMORY (19 * CLOCK_NS_PER_S)
/* Both ends have learnt the end by then, whatever the network did. A peer that says nothing is given up in 73 s. */
#define TIME_MOST (150 * CLOCK_NS_PER_S)
/* The same where packets were only lost, repeated or late, but no timer came before them. */
#define TIME_USUAL (5 * CLOCK_NS_PER_S)
/* What is remembered of connections that have ended is forgotten by then. */
#define TIME_FORGOTTEN (30 * CLOCK_NS_PER_S)

/* How an end may end. */
enum ending {
	OPEN = 0,
	FINISHED = 1, /* disconnected in order */
	BROKEN = 2,   /* told that it failed */
	GONE = 4,     /* its own command destroyed it */
	UNASKED = 8,  /* the passive end: no request came */
};

/* Who ends it, and when. */
enum manner {
	SERVER_ENDS = 1, /* when everything came and its own messages are acknowledged */
	CLIENT_ENDS,	 /* the same at the other end */
	BOTH_END,	 /* each as soon as it is established */
	CLIENT_GIVES_UP, /* at once after it asked */
	CLIENT_LEAVES,	 /* without a word, established */
	SERVER_LEAVES,
	SERVER_IGNORES, /* asked */
	SERVER_REFUSES,
};

struct plan {
	enum work_kind kind; /* 0 ends a list */
	uint32_t length;
};

struct scenario {
	const char *name;
	enum manner manner;
	struct plan client[WORKS_MOST + 1], server[WORKS_MOST + 1];
	bool nobody;				 /* listens */
	bool unready;				 /* the server posts its receives late */
	unsigned client_endings, server_endings; /* unless the network breaks */
};

/* Who READs must end it: an end that goes answers no READ again whose response was lost. */
static const struct scenario scenarios[] = {
	{ "connect", SERVER_ENDS, .client_endings = FINISHED, .server_endings = FINISHED },
	{ "both", BOTH_END, .client_endings = FINISHED, .server_endings = FINISHED },
	{ "nobody", SERVER_ENDS, .nobody = true, .client_endings = BROKEN, .server_endings = UNASKED },
	{ "refuse", SERVER_REFUSES, .client_endings = BROKEN, .server_endings = GONE },
	{ "ignore", SERVER_IGNORES, .client_endings = BROKEN, .server_endings = GONE },
	{ "give-up", CLIENT_GIVES_UP, .client_endings = GONE, .server_endings = BROKEN | UNASKED },
	{ "client-leaves", CLIENT_LEAVES, .client_endings = GONE, .server_endings = FINISHED },
	{ "server-leaves", SERVER_LEAVES, .client_endings = FINISHED, .server_endings = GONE },
	{ "send", SERVER_ENDS, { { WORK_SEND, 600 } }, .client_endings = FINISHED, .server_endings = FINISHED },
	{ "reply",
	  CLIENT_ENDS,
	  { { WORK_SEND, 10 } },
	  { { WORK_SEND, 300 } },
	  .client_endings = FINISHED,
	  .server_endings = FINISHED },
	{ "write",
	  SERVER_ENDS,
	  { { WORK_WRITE, 600 }, { WORK_SEND, 1 } },
	  .client_endings = FINISHED,
	  .server_endings = FINISHED },
	{ "read", CLIENT_ENDS, { { WORK_READ, 600 } }, .client_endings = FINISHED, .server_endings = FINISHED },
	{ "unready",
	  SERVER_ENDS,
	  { { WORK_SEND, 300 }, { WORK_SEND, 0 } },
	  .unready = true,
	  .client_endings = FINISHED,
	  .server_endings = FINISHED },
	{ "talk",
	  CLIENT_ENDS,
	  { { WORK_SEND, 300 }, { WORK_READ, 300 }, { WORK_WRITE, 300 }, { WORK_READ, 1 }, { WORK_SEND, 256 } },
	  { { WORK_SEND, 257 }, { WORK_WRITE, 10 }, { WORK_SEND, 0 } },
	  .client_endings = FINISHED,
	  .server_endings = FINISHED },
};

struct side {
	struct scene *scene;
	struct transport *transport;
	struct channel *channel;
	struct endpoint *endpoint;
	const struct plan *plans, *peer_plans;
	unsigned count, sends; /* of plans; messages that are to come */
	unsigned done, received, receives;
	unsigned writes_seen;		     /* plans of the peer whose WRITEs were looked at */
	struct region *local, *inbox, *open; /* open: to the peer */
	bool established, done_with;
	enum ending ending;
	int64_t ended_at;
};

struct scene {
	const struct scenario *scenario;
	struct choices *choices;
	struct endpoint *listener;
	struct side client, server;
	struct frame under_way[UNDER_WAY_MOST], held[HELD_MOST];
	unsigned under_way_count, held_count;
	int64_t began;
	bool cut;     /* nothing arrives any more */
	bool hurried; /* a timer was due before what was under way */
	bool tail;    /* both ends have ended: what was held back comes, and nothing is chosen */
	struct loop_timer late;
	struct rules rules;
};

static struct side *other(const struct side *side)
{
	return side == &side->scene->client ? &side->scene->server : &side->scene->client;
}

/* ---- memory ---- */

static uint8_t pattern(const struct side *side, unsigned work, size_t at)
{
	return (uint8_t)((side == &side->scene->client ? 3 : 101) + work * 31 + at * 7 + (at >> 8));
}

static void fill(const struct side *owner, struct region *region, unsigned work)
{
	for (size_t at = 0; at < AREA; at++)
		region->memory[work * AREA + at] = pattern(owner, work, at);
}

/* What is there is what that side sent, and is written over: whoever writes it again shows. */
static void check_and_scribble(const struct side *sender, struct region *region, unsigned place, unsigned work,
			       const char *what)
{
	uint8_t *bytes = region->memory + place * AREA;

	for (size_t at = 0; at < sender->plans[work].length; at++)
		if (bytes[at] != pattern(sender, work, at))
			violation("%s %u differs at byte %zu", what, work, at);
	memset(bytes, SCRIBBLE, AREA);
}

static void check_scribble(const struct region *region, unsigned place, const char *what)
{
	for (size_t at = 0; at < AREA; at++)
		if (region->memory[place * AREA + at] != SCRIBBLE)
			violation("%s %u is written again at byte %zu", what, place, at);
}

static void open_memory(struct side *side)
{
	struct domain *domain = side->endpoint->domain;

	if (region_create(domain, WORKS_MOST * AREA, REGION_READ_SINK, &side->local) ||
	    region_create(domain, WORKS_MOST * AREA, REGION_LOCAL, &side->inbox) ||
	    region_create(domain, WORKS_MOST * AREA, REGION_REMOTE_READ | REGION_REMOTE_WRITE, &side->open))
		abort();
	for (unsigned work = 0; work < WORKS_MOST; work++) {
		/* Of a READ the source is in the other end's open memory. */
		if (work < side->count && side->plans[work].kind != WORK_READ)
			fill(side, side->local, work);
		fill(other(side), side->open, work);
		if (other(side)->plans[work].kind == WORK_WRITE)
			memset(side->open->memory + work * AREA, 0, AREA);
	}
}

static void check_end(const struct side *side)
{
	if (!side->local)
		return;
	for (unsigned place = 0; place < side->received; place++)
		check_scribble(side->inbox, place, "message");
	for (unsigned work = 0; work < side->done; work++)
		if (side->plans[work].kind == WORK_READ)
			check_scribble(side->local, work, "what was read by work");
	for (unsigned work = 0; work < side->writes_seen; work++)
		if (side->peer_plans[work].kind == WORK_WRITE)
			check_scribble(side->open, work, "what was written by work");
}

/* ---- the ends ---- */

static void ended(struct side *side, enum ending ending)
{
	if (side->ending)
		violation("an end is told twice");
	side->ending = ending;
	side->ended_at = network->now;
}

static void leave(struct side *side)
{
	endpoint_destroy(side->endpoint);
	side->endpoint = NULL;
	ended(side, GONE);
}

static void disconnect(struct side *side)
{
	if (side->done_with || side->endpoint->state != ENDPOINT_ESTABLISHED)
		return;
	side->done_with = true;
	if (endpoint_disconnect(side->endpoint))
		violation("a connection cannot be ended");
}

static void look(struct side *side)
{
	bool through = side->established && side->done == side->count && side->received == side->sends;
	bool is_server = side == &side->scene->server;

	switch (side->scene->scenario->manner) {
	case SERVER_ENDS:
	case CLIENT_ENDS:
		if (through && is_server == (side->scene->scenario->manner == SERVER_ENDS))
			disconnect(side);
		break;
	case BOTH_END:
		if (side->established)
			disconnect(side);
		break;
	case CLIENT_LEAVES:
	case SERVER_LEAVES:
		if (side->established && is_server == (side->scene->scenario->manner == SERVER_LEAVES))
			leave(side);
		break;
	default:
		break;
	}
}

static void post_receives(struct side *side)
{
	for (; side->receives < side->sends; side->receives++)
		if (endpoint_post(side->endpoint,
				  &(struct work){ .kind = WORK_RECEIVE,
						  .tag = side->receives,
						  .region = side->inbox,
						  .offset = side->receives * AREA,
						  .length = AREA },
				  1))
			violation("a receive cannot be posted");
}

static void post_late(void *owner)
{
	struct side *side = owner;

	soft_enter(soft_of(side->transport));
	if (side->endpoint && !side->ending)
		post_receives(side);
	soft_leave(soft_of(side->transport));
}

static void prepare(struct side *side)
{
	if (endpoint_open_queue(side->endpoint))
		abort();
	open_memory(side);
	if (side->scene->scenario->unready && side == &side->scene->server)
		loop_timer_start(NULL, &side->scene->late, 3 * CLOCK_NS_PER_MS, post_late, side);
	else
		post_receives(side);
}

static void post_works(struct side *side)
{
	const struct region *remote = other(side)->open;

	for (unsigned work = 0; work < side->count; work++)
		if (endpoint_post(side->endpoint,
				  &(struct work){ .kind = side->plans[work].kind,
						  .tag = 100 + work,
						  .region = side->local,
						  .offset = work * AREA,
						  .length = side->plans[work].length,
						  .remote_address = (uintptr_t)(remote->memory + work * AREA),
						  .remote_key = remote->remote_key },
				  1))
			violation("a work cannot be posted");
}

static void message_came(struct side *side, const struct completion *completion)
{
	const struct side *sender = other(side);
	unsigned send = 0, work = 0;

	if (completion->tag != side->received || side->received == side->sends)
		violation("message %u comes as number %u of %u", completion->tag, side->received, side->sends);
	for (;; work++)
		if (sender->plans[work].kind == WORK_SEND && send++ == side->received)
			break;
	if (completion->length != sender->plans[work].length)
		violation("message %u has %u bytes", side->received, completion->length);
	check_and_scribble(sender, side->inbox, side->received, work, "the message of work");
	side->received++;
	/* What was written before it was sent is there. */
	for (; side->writes_seen < work; side->writes_seen++)
		if (sender->plans[side->writes_seen].kind == WORK_WRITE)
			check_and_scribble(sender, side->open, side->writes_seen, side->writes_seen,
					   "what was written by");
}

static void work_done(struct side *side, const struct completion *completion)
{
	const struct plan *plan = &side->plans[side->done];

	if (side->done == side->count || completion->tag != 100 + side->done || completion->kind != plan->kind)
		violation("work %u completes as number %u of %u", completion->tag - 100, side->done, side->count);
	if (plan->kind == WORK_READ)
		check_and_scribble(side, side->local, side->done, side->done, "what was read by");
	side->done++;
}

static void completed(void *owner, struct endpoint *endpoint, const struct completion *completion)
{
	struct side *side = owner;

	if (endpoint != side->endpoint || side->ending)
		violation("a completion after the end");
	if (!side->established)
		violation("a completion before the connection is established");
	if (completion->status) {
		ended(side, BROKEN);
		return;
	}
	if (completion->kind == WORK_RECEIVE)
		message_came(side, completion);
	else
		work_done(side, completion);
	look(side);
}

static void event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event);

static const struct endpoint_handlers handlers = { .event = event, .completion = completed };

static void requested(struct scene *scene, struct endpoint *request)
{
	struct side *server = &scene->server;

	request->handlers = &handlers;
	request->owner = server;
	if (server->endpoint || server->ending) {
		if (!server->ending || network->now - server->ended_at < MEMORY)
			violation("one request is told twice");
		endpoint_reject(request, NULL, 0);
		return;
	}
	server->endpoint = request;
	if (scene->scenario->manner == SERVER_REFUSES) {
		endpoint_reject(request, "no", 3);
		server->endpoint = NULL;
		ended(server, GONE);
	} else if (scene->scenario->manner == SERVER_IGNORES) {
		leave(server);
	} else {
		prepare(server);
		if (endpoint_accept(request, "yes", 4))
			violation("a request cannot be accepted");
	}
}

static void event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct side *side = owner;

	if (event->kind == EVENT_REQUEST) {
		requested(owner, event->request);
		return;
	}
	if (endpoint != side->endpoint)
		violation("an event of an endpoint that is gone");
	switch (event->kind) {
	case EVENT_ADDRESS_RESOLVED:
		prepare(side);
		break;
	case EVENT_ROUTE_RESOLVED:
		if (endpoint_connect(endpoint, "walk", 5))
			violation("a connection cannot be asked for");
		if (side->scene->scenario->manner == CLIENT_GIVES_UP)
			leave(side);
		break;
	case EVENT_ESTABLISHED:
		if (side->established || side->ending)
			violation("a connection is established twice");
		side->established = true;
		post_works(side);
		look(side);
		break;
	case EVENT_DISCONNECTED:
		if (!side->established)
			violation("a connection ends in order that was none");
		ended(side, FINISHED);
		break;
	case EVENT_FAILED:
		/* After a failed completion this is no news. */
		if (side->ending != BROKEN)
			ended(side, BROKEN);
		break;
	default:
		violation("an event of kind %d", (int)event->kind);
	}
}

/* ---- forgers ---- */

/*
 * Any user of the peer's host can send with the right address, and may know every number that is not random: what is no
 * packet of the connection changes nothing, whenever it comes.
 */

static const struct icrc_pending good = { .result = ICRC_GOOD };

static void forge_packet(struct soft_qp *qp, uint8_t opcode, uint32_t psn, uint64_t address, uint32_t key,
			 uint32_t length)
{
	struct soft_qp before = *qp;
	struct packet packet = {
		.opcode = opcode,
		.ack_request = true,
		.pkey = PACKET_PKEY,
		.destination = soft_qp_qpn(qp),
		.psn = psn,
		.remote = { .address = address, .key = key, .length = length },
	};

	soft_qp_receive(qp->transport, qp->path.socket, &qp->path.peer, &packet, &good);
	if (memcmp(&before, qp, sizeof(before)) != 0)
		violation("a forged packet with opcode %u, PSN %u changes a queue pair", opcode, psn);
}

/* The peer rejects with reason time-out, by what every user of its host can know: its GUID and identifier. */
static void forge_rejection(const struct soft_cm_id *cm_id)
{
	uint8_t guid[8], bytes[MAD_SIZE];
	struct mad mad = {
		.kind = MAD_REJ,
		.local_id = cm_id->remote_id,
		.rej = { .answered = MAD_ANSWERED_OTHER,
			 .reason = MAD_REASON_TIMEOUT,
			 .information = guid,
			 .information_length = sizeof(guid) },
	};
	struct soft_cm_id before = *cm_id;

	bytes_write(guid, sizeof(guid), cm_id->peer_guid);
	mad_write(&mad, bytes);
	soft_cm_receive(cm_id->cm->transport, cm_id->agreement.path.socket, &cm_id->agreement.path.peer, bytes,
			MAD_SIZE, &good);
	if (memcmp(&before, cm_id, sizeof(before)) != 0)
		violation("a REJ without our identifier changes a connection in state %d", (int)before.state);
}

static void forge(const struct side *side)
{
	struct soft_endpoint *endpoint = soft_endpoint_of(side->endpoint);
	struct soft_qp *qp = endpoint ? endpoint->qp : NULL;
	const struct responder *responder = qp ? &qp->responder : NULL;

	/* READs again that are no part of one, */
	for (unsigned place = 0; qp && place < responder->reads_max; place++) {
		const struct resource read = responder->resources[place];

		forge_packet(qp, OPCODE_READ_REQUEST, read.psn, read.address, read.key + 1, read.length);
		forge_packet(qp, OPCODE_READ_REQUEST, read.psn, read.address + 1, read.key, read.length);
		forge_packet(qp, OPCODE_READ_REQUEST, read.psn, read.address, read.key, read.length + 1);
	}
	/* and WRITEs in place of a READ, or from before the first packet. */
	for (uint32_t behind = 1; qp && behind <= 8; behind++)
		if (behind <= responder->trailing_read_psns || behind > responder->psns_received)
			forge_packet(qp, OPCODE_WRITE_ONLY, (responder->epsn - behind) & PSN_MASK, 0, 0, 0);
	if (endpoint && endpoint->cm_id && endpoint->cm_id->state >= CM_ESTABLISHED)
		forge_rejection(endpoint->cm_id);
}

/* ---- the network ---- */

static void copy_frame(struct frame *to, const struct frame *from)
{
	memcpy(to, from, offsetof(struct frame, bytes) + from->length);
}

static bool catch_frame(void *owner, const struct frame *frame)
{
	struct scene *scene = owner;
	struct packet packet;

	if (!packet_parse(frame->bytes, frame->length, &packet))
		violation("a packet is none");
	rules_check(&scene->rules, frame->from.bytes[3] == CLIENT, &packet, PAYLOAD);
	if (scene->cut)
		return true;
	if (scene->under_way_count == UNDER_WAY_MOST)
		violation("more than %d packets are under way", UNDER_WAY_MOST);
	copy_frame(&scene->under_way[scene->under_way_count++], frame);
	return true;
}

static void take_out(struct frame *frames, unsigned *count, unsigned place, struct frame *taken)
{
	copy_frame(taken, &frames[place]);
	for (--*count; place < *count; place++)
		copy_frame(&frames[place], &frames[place + 1]);
}

static void arrive(struct frame *frames, unsigned *count, unsigned place)
{
	struct frame frame;

	take_out(frames, count, place, &frame);
	network_deliver(&frame);
}

static void hold_back(struct scene *scene)
{
	if (scene->held_count < HELD_MOST)
		copy_frame(&scene->held[scene->held_count++], &scene->under_way[0]);
}

/* All that are under way to where the oldest one goes. */
static void arrive_together(struct scene *scene)
{
	struct address to = scene->under_way[0].to;

	for (unsigned place = 0; place < scene->under_way_count;)
		if (address_same_host(&scene->under_way[place].to, &to))
			arrive(scene->under_way, &scene->under_way_count, place);
		else
			place++;
}

static void tick(const struct scene *scene)
{
	int64_t most = scene->cut || scene->hurried ? TIME_MOST : TIME_USUAL;

	if (!network_tick() && !scene->under_way_count)
		violation("nothing will ever happen, and an end does not know the end (%d, %d)",
			  (int)scene->client.ending, (int)scene->server.ending);
	if (network->now - scene->began > most)
		violation("no end in %lld s (%d, %d)", (long long)(most / CLOCK_NS_PER_S), (int)scene->client.ending,
			  (int)scene->server.ending);
}

static void cut(struct scene *scene)
{
	scene->cut = true;
	scene->under_way_count = 0;
	scene->held_count = 0;
}

static unsigned least(unsigned one, unsigned most)
{
	return one < most ? one : most;
}

/* In the order of walk.h. */
static void step(struct scene *scene)
{
	unsigned overtakers = scene->under_way_count ? least(scene->under_way_count - 1, OVERTAKERS_MOST) : 0;
	unsigned releases = least(scene->held_count, RELEASES_MOST);
	bool any = scene->under_way_count;
	unsigned count = 1 + overtakers + (any ? 3 : 0) + (overtakers ? 1 : 0) + releases + 1;
	unsigned choice = scene->cut || scene->tail ? 0 : choose(scene->choices, count);

	if (!choice && any)
		arrive(scene->under_way, &scene->under_way_count, 0);
	else if (!choice)
		tick(scene);
	else if (choice <= overtakers)
		arrive(scene->under_way, &scene->under_way_count, choice);
	else if (choice -= overtakers, choice <= releases)
		arrive(scene->held, &scene->held_count, choice - 1);
	else if (choice -= releases, choice == 1)
		cut(scene);
	else if (choice == 2) {
		scene->hurried = true;
		tick(scene);
	} else if (choice == 3) {
		struct frame frame;

		hold_back(scene);
		take_out(scene->under_way, &scene->under_way_count, 0, &frame);
	} else if (choice == 4) {
		hold_back(scene);
		arrive(scene->under_way, &scene->under_way_count, 0);
	} else {
		arrive_together(scene);
	}
	network_run_due();
	forge(&scene->client);
	forge(&scene->server);
}

static bool is_over(const struct scene *scene)
{
	bool asked = scene->server.endpoint || scene->server.ending;

	return !scene->under_way_count && scene->client.ending && (!asked || scene->server.ending);
}

/* ---- a run ---- */

static const struct log quiet = { .name = "walk" };

static void open_side(struct side *side, struct scene *scene, const struct plan *plans, const struct plan *peer_plans)
{
	side->scene = scene;
	side->plans = plans;
	side->peer_plans = peer_plans;
	while (plans[side->count].kind)
		side->count++;
	for (; peer_plans->kind; peer_plans++)
		side->sends += peer_plans->kind == WORK_SEND;
	if (transport_open("soft", NULL, &quiet, &side->transport) || channel_create(side->transport, &side->channel))
		abort();
}

static void open_scene(struct scene *scene)
{
	struct endpoint_options options = { .port_space = PORT_SPACE_TCP,
					    .send_depth = WORKS_MOST,
					    .receive_depth = WORKS_MOST };
	struct address here = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, SERVER }, .port = PORT };
	struct address there = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, CLIENT } };

	network_open(1, MTU, BUFFER);
	network->intercept = catch_frame;
	network->intercept_owner = scene;
	scene->began = network->now;
	open_side(&scene->server, scene, scene->scenario->server, scene->scenario->client);
	open_side(&scene->client, scene, scene->scenario->client, scene->scenario->server);
	if (endpoint_create(ENDPOINT_LISTENER, scene->server.channel, &options, &handlers, scene, &scene->listener) ||
	    endpoint_listen(scene->listener, &here))
		abort();
	here.port = scene->scenario->nobody ? PORT + 1 : PORT;
	if (endpoint_create(ENDPOINT_CONNECTION, scene->client.channel, &options, &handlers, &scene->client,
			    &scene->client.endpoint) ||
	    endpoint_resolve(scene->client.endpoint, &there, &here))
		abort();
	network_run_due();
}

/* Where both ends end in order everything was done, and each knows it. */
static void check_done(const struct side *side, const char *name)
{
	if (side->received != side->sends)
		violation("the %s has %u of %u messages at its end", name, side->received, side->sends);
	if (side->done != side->count)
		violation("the %s knows of %u of %u works that they are done", name, side->done, side->count);
}

static void check_ending(const struct side *side, unsigned allowed, const char *name)
{
	unsigned ending = side->ending ? side->ending : UNASKED;

	check_end(side);
	if (side->scene->cut)
		return;
	if (!(ending & allowed))
		violation("the %s ends wrong: %u, not %u", name, ending, allowed);
	if (ending == FINISHED && other(side)->ending == FINISHED)
		check_done(side, name);
}

static void check_forgotten(const struct side *side, const char *name)
{
	const struct soft_cm *cm = soft_of(side->transport)->cm;

	for (unsigned index = 0; index < CM_INDEXES; index++)
		if (cm->tables[index].count)
			violation("the %s remembers %zu connections for ever", name, cm->tables[index].count);
	if (cm->half_open || cm->orphans || cm->timewait.count || cm->rep_sent.count)
		violation("the %s counts connections that are gone: %u half open, %u orphans, %u in timewait", name,
			  cm->half_open, cm->orphans, cm->timewait.count);
}

static void close_side(struct side *side)
{
	endpoint_destroy(side->endpoint);
	region_destroy(side->local);
	region_destroy(side->inbox);
	region_destroy(side->open);
	network_run_due();
}

void scenario_run(const struct scenario *scenario, struct choices *choices)
{
	static struct scene scene; /* large, and not worth clearing whole */

	memset(&scene.listener, 0, offsetof(struct scene, under_way) - offsetof(struct scene, listener));
	scene.scenario = scenario;
	scene.choices = choices;
	scene.under_way_count = scene.held_count = 0;
	scene.cut = scene.tail = scene.hurried = false;
	scene.late = (struct loop_timer){ 0 };
	scene.rules = (struct rules){ 0 };
	open_scene(&scene);
	while (!is_over(&scene) || scene.held_count) {
		if (is_over(&scene)) {
			/* Late packets change nothing. */
			scene.tail = true;
			while (scene.held_count)
				arrive(scene.held, &scene.held_count, 0);
			network_run_due();
		} else {
			step(&scene);
		}
	}
	check_ending(&scene.client, scenario->client_endings, "client");
	check_ending(&scene.server, scenario->server_endings, "server");
	loop_timer_stop(&scene.late);
	close_side(&scene.client);
	close_side(&scene.server);
	network->intercept = NULL;
	network_advance(TIME_FORGOTTEN, UINT32_MAX);
	check_forgotten(&scene.client, "client");
	check_forgotten(&scene.server, "server");
	transport_close(scene.client.transport);
	transport_close(scene.server.transport);
	network_close();
}

const struct scenario *scenario_next(const struct scenario *scenario)
{
	if (!scenario)
		return scenarios;
	return ++scenario < scenarios + sizeof(scenarios) / sizeof(scenarios[0]) ? scenario : NULL;
}

const struct scenario *scenario_find(const char *name)
{
	const struct scenario *scenario = scenario_next(NULL);

	while (scenario && strcmp(scenario->name, name) != 0)
		scenario = scenario_next(scenario);
	return scenario;
}

const char *scenario_name(const struct scenario *scenario)
{
	return scenario->name;
}
