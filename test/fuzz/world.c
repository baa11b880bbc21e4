/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/fuzz/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "transport/soft/cm/cm_internal.h"
#include "transport/soft/qp/qp_internal.h"
#include "transport/soft/wire/bytes.h"
#include "transport/soft/wire/mad.h"

enum {
	HERE = 0,
	THERE = 1,
	PATTERN = 0xa5, /* must not change */
	CONTROL_TALKS = 4,
};

#define IP4(...)                                                                                                       \
	{                                                                                                              \
		.family = ADDRESS_IP4, .bytes = { __VA_ARGS__ }                                                        \
	}
#define IP6(...)                                                                                                       \
	{                                                                                                              \
		.family = ADDRESS_IP6, .bytes = { __VA_ARGS__ }                                                        \
	}

static const struct address addresses[] = {
	IP4(10, 0, 0, 1),	   IP4(10, 0, 0, 2),	IP4(10, 0, 0, 3),    IP4(10, 0, 0, 9),
	IP6(0xfd, [15] = 1),	   IP6(0xfd, [15] = 2), IP6(0xfd, [15] = 9), IP4(239, 1, 1, 4),
	IP6(0xff, 0x0e, [15] = 4), IP4(239, 1, 1, 5),	IP4(127, 0, 0, 1),   IP4(255, 1, 1, 255),
};

struct address world_address(unsigned number)
{
	return addresses[number % (sizeof(addresses) / sizeof(addresses[0]))];
}

static bool is_control_address(const struct address *address)
{
	return address_same_host(address, &addresses[2]);
}

/* ---- an end's objects ---- */

static uint8_t *slot_at(const struct end *end, unsigned slot)
{
	return end->regions[REGION_RECEIVES]->memory + SLOT_GAP + slot * (SLOT_LENGTH + SLOT_GAP);
}

static void check_pattern(const uint8_t *bytes, size_t length, const char *what)
{
	if (!length || (bytes[0] == PATTERN && !memcmp(bytes, bytes + 1, length - 1)))
		return;
	for (size_t index = 0; index < length; index++)
		if (bytes[index] != PATTERN)
			violation("%s changed at byte %zu", what, index);
}

static void make_regions(struct end *end)
{
	static const unsigned access[REGIONS] = {
		[REGION_SINK] = REGION_READ_SINK,
		[REGION_WRITABLE] = REGION_REMOTE_WRITE,
		[REGION_READABLE] = REGION_REMOTE_READ,
	};

	for (unsigned index = 0; index < REGIONS; index++) {
		size_t length = index == REGION_RECEIVES ? SLOT_GAP + SLOTS * (SLOT_LENGTH + SLOT_GAP) : REGION_LENGTH;

		MUST(region_create(end->endpoint->domain, length, access[index], &end->regions[index]));
		memset(end->regions[index]->memory, PATTERN, length);
	}
}

static void check_regions(const struct end *end)
{
	if (!end->regions[0])
		return;
	check_pattern(end->regions[REGION_SOURCE]->memory, REGION_LENGTH, "the source of sends");
	if (end->regions[REGION_READABLE])
		check_pattern(end->regions[REGION_READABLE]->memory, REGION_LENGTH, "memory that may only be read");
	check_pattern(end->regions[REGION_RECEIVES]->memory, SLOT_GAP, "memory before the receives");
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		const uint8_t *bytes = slot_at(end, slot);

		check_pattern(bytes + SLOT_LENGTH, SLOT_GAP, "memory between receives");
		if (!end->busy[slot])
			check_pattern(bytes, SLOT_LENGTH, "a receive that was not posted");
	}
}

static void drop_regions(struct end *end)
{
	check_regions(end);
	for (unsigned index = 0; index < REGIONS; index++) {
		region_destroy(end->regions[index]);
		end->regions[index] = NULL;
	}
}

void world_drop_region(struct end *end, enum world_region region)
{
	if (region != REGION_WRITABLE && region != REGION_READABLE)
		return;
	region_destroy(end->regions[region]);
	end->regions[region] = NULL;
}

void world_destroy(struct end *end)
{
	if (!end->endpoint)
		return;
	endpoint_destroy(end->endpoint);
	end->endpoint = NULL;
	drop_regions(end);
}

/* ---- posting ---- */

void world_post_receives(struct end *end, unsigned count)
{
	if (!end_queue(end))
		return;
	for (unsigned slot = 0; slot < SLOTS && count; slot++) {
		struct work work = {
			.kind = WORK_RECEIVE,
			.tag = slot,
			.region = end->regions[REGION_RECEIVES],
			.offset = SLOT_GAP + slot * (SLOT_LENGTH + SLOT_GAP),
			.length = SLOT_LENGTH,
		};

		if (end->busy[slot])
			continue;
		MUST(endpoint_post(end->endpoint, &work, 1));
		end->busy[slot] = true;
		count--;
	}
}

/* Work that a command must not post: the transport asserts. */
static bool is_misuse(const struct endpoint *endpoint, const struct work *work)
{
	bool group = endpoint->kind == ENDPOINT_GROUP;

	return work->offset > work->region->length || work->length > work->region->length - work->offset ||
	       work->length > (group ? endpoint->max_datagram : endpoint->domain->max_message) ||
	       (work->kind != WORK_SEND && (group || work->has_immediate));
}

void world_post(struct end *end, const struct work *work)
{
	struct work copy = *work;

	if (!end_queue(end) || !(end->established || end->joined) || end->sent_count == SENDS ||
	    is_misuse(end->endpoint, work))
		return;
	copy.tag = SLOTS + end->next_tag++ % (WORK_TAG_MAX - SLOTS);
	end->sent[end->sent_count++] = (struct sent){ copy.tag, copy.kind, copy.unsignalled };
	if (endpoint_post(end->endpoint, &copy, 1))
		end->sent_count--;
}

static void talk(struct end *end)
{
	uint32_t length = 1 + end->said * 331 % SLOT_LENGTH;
	struct region *region = end->regions[REGION_SINK];
	struct work work = { .kind = WORK_SEND, .region = region, .length = length };

	if (end->said != end->done || end->sent_count)
		return;
	for (uint32_t index = 0; index < length; index++)
		region->memory[index] = (uint8_t)(end->said * 7 + index + end->host);
	end->said++;
	world_post(end, &work);
}

void world_talk(struct world *world)
{
	if (world->tainted)
		return;
	for (unsigned index = 0; index < 2; index++)
		if (world->ends[index].control && world->ends[index].endpoint && world->ends[index].established)
			talk(&world->ends[index]);
}

/* ---- events and completions ---- */

static void heard(struct end *end, unsigned slot, uint32_t length)
{
	const uint8_t *bytes = slot_at(end, slot);
	uint32_t expected = 1 + end->heard * 331 % SLOT_LENGTH;

	if (length != expected)
		violation("the control hears %u bytes as its message %u of %u", length, end->heard, expected);
	for (uint32_t index = 0; index < length; index++)
		if (bytes[index] != (uint8_t)(end->heard * 7 + index + 1 - end->host))
			violation("the control's message %u differs at byte %u", end->heard, index);
	end->heard++;
}

static void received(struct end *end, const struct completion *completion)
{
	size_t length = completion->length + (end->endpoint->kind == ENDPOINT_GROUP ? DATAGRAM_HEADER_SIZE : 0);
	uint8_t *bytes;

	if (completion->tag >= SLOTS || !end->busy[completion->tag])
		violation("a receive completes that was not posted");
	end->busy[completion->tag] = false;
	bytes = slot_at(end, completion->tag);
	/* Part of a failed message may have arrived. */
	if (completion->status) {
		memset(bytes, PATTERN, SLOT_LENGTH);
		return;
	}
	if (length > SLOT_LENGTH)
		violation("a receive is longer than its memory");
	check_pattern(bytes + length, SLOT_LENGTH - length, "a receive beyond its length");
	if (end->control && !end->world->tainted)
		heard(end, completion->tag, completion->length);
	memset(bytes, PATTERN, SLOT_LENGTH);
	if (end->control)
		world_post_receives(end, 1);
}

static void finished(struct end *end, const struct completion *completion)
{
	unsigned place = 0;

	while (place < end->sent_count && end->sent[place].tag != completion->tag)
		place++;
	if (place == end->sent_count || end->sent[place].kind != completion->kind)
		violation("a %s completes that was not posted", work_kind_text(completion->kind));
	if (completion->status)
		return;
	if (end->sent[place].unsignalled)
		violation("a silent work is reported");
	for (unsigned before = 0; before < place; before++)
		if (!end->sent[before].unsignalled)
			violation("works complete out of order");
	end->sent_count -= place + 1;
	memmove(end->sent, end->sent + place + 1, end->sent_count * sizeof(end->sent[0]));
	if (end->control && completion->kind == WORK_SEND)
		end->done++;
}

static void completed(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	struct world *world = context;
	struct end *end = world->ends;

	while (end < world->ends + WORLD_ENDS && end->endpoint != endpoint)
		end++;
	if (end == world->ends + WORLD_ENDS)
		violation("a completion of an endpoint that is gone");
	if (end->failed)
		violation("a completion after a failed one");
	if (endpoint->kind == ENDPOINT_CONNECTION && !end->established)
		violation("a completion before the connection is established");
	if (completion->kind == WORK_RECEIVE)
		received(end, completion);
	else
		finished(end, completion);
	end->failed = completion->status;
	if (end->failed && end->control && !world->tainted)
		violation("the control's %s fails: %s", work_kind_text(completion->kind),
			  completion_status_text(completion->status));
}

static void event(void *context, struct endpoint *endpoint, const struct endpoint_event *event);

static const struct endpoint_handlers handlers = { .event = event, .completion = completed };

static struct end *free_end(struct world *world)
{
	for (unsigned index = 0; index < WORLD_ENDS; index++)
		if (!world->ends[index].endpoint)
			return &world->ends[index];
	return NULL;
}

static void create_qp(struct end *end)
{
	MUST(endpoint_create_qp(end->endpoint));
	make_regions(end);
	world_post_receives(end, end->control ? SLOTS : SLOTS / 2);
}

void world_accept(struct end *end)
{
	if (!end->endpoint || end->endpoint->state != ENDPOINT_REQUESTED)
		return;
	if (!end_queue(end))
		create_qp(end);
	MUST(endpoint_accept(end->endpoint, "yes", 4));
}

void world_reject(struct end *end, const void *data, size_t length)
{
	if (!end->endpoint || end->endpoint->state != ENDPOINT_REQUESTED)
		return;
	endpoint_reject(end->endpoint, data, length);
	end->endpoint = NULL;
	if (end->regions[0])
		drop_regions(end);
}

static void requested(struct world *world, struct endpoint *endpoint)
{
	struct end *end = free_end(world);
	unsigned choice = (unsigned)(world->policy & 3);

	endpoint->handlers = &handlers;
	endpoint->context = world;
	if (!end) {
		endpoint_reject(endpoint, "full", 4);
		return;
	}
	*end = (struct end){ .world = world, .endpoint = endpoint, .host = HERE };
	if (is_control_address(&endpoint->peer) && !world->ends[1].control) {
		end->control = true;
		world_accept(end);
		return;
	}
	world->policy = world->policy >> 2 | world->policy << 62;
	if (choice < 2)
		world_accept(end);
	else if (choice == 2)
		world_reject(end, "no", 2);
}

static void event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct world *world = context;
	struct end *end = world->ends;

	if (event->kind == EVENT_REQUEST) {
		requested(world, event->request);
		return;
	}
	while (end < world->ends + WORLD_ENDS && end->endpoint != endpoint)
		end++;
	if (end == world->ends + WORLD_ENDS)
		violation("an event of an endpoint that is gone");
	switch (event->kind) {
	case EVENT_ADDRESS_RESOLVED:
		create_qp(end);
		if (endpoint->kind == ENDPOINT_GROUP)
			MUST(endpoint_join(endpoint));
		break;
	case EVENT_ROUTE_RESOLVED:
		MUST(endpoint_connect(endpoint, "fuzz", 4));
		break;
	case EVENT_JOINED:
		end->joined = true;
		break;
	case EVENT_ESTABLISHED:
		if (end->established)
			violation("a connection is established twice");
		end->established = true;
		break;
	case EVENT_FAILED:
	case EVENT_DISCONNECTED:
		if (end->control && !world->tainted && !world->ending)
			violation("the control is gone");
		if (world->policy & 4)
			world_destroy(end);
		break;
	default:
		violation("an event of kind %d", (int)event->kind);
	}
}

/* ---- commands' calls ---- */

static struct end *begin(struct world *world, unsigned host, enum endpoint_kind kind,
			 const struct endpoint_options *options)
{
	struct end *end = free_end(world);

	if (!end)
		return NULL;
	*end = (struct end){ .world = world, .host = host };
	MUST(endpoint_create(kind, world->hosts[host].channel, options, &handlers, world, &end->endpoint));
	return end;
}

static const struct endpoint_options usual = {
	.port_space = PORT_SPACE_TCP,
	.send_depth = SENDS,
	.receive_depth = SLOTS,
};

void world_connect(struct world *world, unsigned host, const struct address *source, const struct address *destination)
{
	struct address peer = *destination;
	struct end *end;

	if (source->family != destination->family || address_is_multicast(destination))
		return;
	end = begin(world, host, ENDPOINT_CONNECTION, &usual);
	if (!end)
		return;
	end->control = host == THERE && is_control_address(source) && end == &world->ends[0];
	peer.port = WORLD_PORT;
	MUST(endpoint_resolve(end->endpoint, source, &peer));
}

void world_join(struct world *world, unsigned host, const struct address *source, const struct address *group,
		bool send_only, bool no_loopback)
{
	struct endpoint_options options = usual;
	struct end *end;

	if (source->family != group->family || !address_is_multicast(group))
		return;
	options.port_space = PORT_SPACE_UDP;
	options.send_only = send_only;
	options.no_loopback = no_loopback;
	end = begin(world, host, ENDPOINT_GROUP, &options);
	if (end)
		MUST(endpoint_resolve(end->endpoint, source, group));
}

void world_disconnect(struct end *end)
{
	if (end->endpoint && end->endpoint->state == ENDPOINT_ESTABLISHED)
		MUST(endpoint_disconnect(end->endpoint));
}

/* ---- hostile packets ---- */

static bool holds(const struct frame *frame, uint64_t number, unsigned size)
{
	uint8_t bytes[8];

	bytes_write(bytes, size, number);
	return memmem(frame->bytes, frame->length, bytes, size) != NULL;
}

/* A packet from the right address with the right numbers may end a connection. A REQ never may. */
static void judge(struct world *world, const struct frame *frame)
{
	for (unsigned index = 0; index < 2; index++) {
		const struct end *end = &world->ends[index];
		const struct soft_endpoint *endpoint = soft_endpoint_of(end->endpoint);
		struct mad mad;
		size_t header = PACKET_BASE_SIZE + 8;

		if (!end->control || !end->endpoint || !endpoint->qp ||
		    !address_same_host(&frame->from, &endpoint->path.peer))
			continue;
		if (holds(frame, endpoint->qp->by_qpn.key, 3) && bytes_read(frame->bytes + 5, 3) > 1)
			world->tainted = true;
		if (frame->length < header || bytes_read(frame->bytes + 5, 3) != 1)
			continue;
		if (mad_parse(frame->bytes + header, frame->length - header, &mad) && mad.kind == MAD_REQ)
			continue;
		if ((endpoint->cm_id && holds(frame, endpoint->cm_id->local_id, 4)) ||
		    holds(frame, soft_of(world->hosts[!end->host].transport)->guid, 8))
			world->tainted = true;
	}
}

void world_inject_bare(struct world *world, const struct frame *frame)
{
	judge(world, frame);
	network_deliver(frame);
}

void world_inject(struct world *world, struct frame *frame)
{
	if (frame->from.family == frame->to.family && frame->length >= PACKET_BASE_SIZE &&
	    frame->length <= NETWORK_FRAME_MAX - ICRC_SIZE)
		network_append_icrc(frame, &soft_of(world->hosts[HERE].transport)->icrc);
	world_inject_bare(world, frame);
}

/* ---- opening, closing ---- */

static void open_host(struct world *world, unsigned index, const struct world_terms *terms)
{
	struct host *host = &world->hosts[index];
	struct endpoint_options options = usual;

	MUST(transport_open("soft", NULL, &world->log, &(struct error){ 0 }, &host->transport));
	MUST(channel_create(host->transport, &host->channel));
	if (index != HERE)
		return;
	options.timeout = terms->limited ? 10 * CLOCK_NS_PER_S : 0;
	for (unsigned number = 0; number < 8; number += 4) {
		struct address address = world_address(number);

		address.port = WORLD_PORT;
		MUST(endpoint_create(ENDPOINT_LISTENER, host->channel, &options, &handlers, world, &host->listener));
		MUST(endpoint_listen(host->listener, &address));
	}
}

struct world *world_open(const struct world_terms *terms)
{
	static const struct {
		uint8_t host, source, destination;
	} connections[] = {
		{ THERE, 2, 0 }, { THERE, 1, 0 }, { THERE, 5, 4 }, { THERE, 1, 0 }, { HERE, 0, 3 },
	};
	struct world *world = calloc(1, sizeof(*world));
	struct address source, destination;
	char scramble[8];

	if (!world)
		abort();
	world->log = network_log(&world->errors);
	network_open(terms->seed, terms->mtu, terms->buffer);
	snprintf(scramble, sizeof(scramble), "%u", terms->scramble);
	if (terms->scramble)
		setenv("RDMATEST_SCRAMBLE", scramble, 1);
	else
		unsetenv("RDMATEST_SCRAMBLE");
	for (unsigned index = 0; index < WORLD_HOSTS; index++)
		open_host(world, index, terms);
	for (unsigned index = 0; index < sizeof(connections) / sizeof(connections[0]); index++) {
		source = world_address(connections[index].source);
		destination = world_address(connections[index].destination);
		world_connect(world, connections[index].host, &source, &destination);
		network_advance(50 * CLOCK_NS_PER_MS, 200);
		world->policy = terms->policy;
		if (!index && !(world->ends[0].established && world->ends[1].established && world->ends[1].control))
			violation("the control does not come about");
	}
	source = world_address(0);
	destination = world_address(7);
	world_join(world, HERE, &source, &destination, false, true);
	source = world_address(4);
	destination = world_address(8);
	world_join(world, HERE, &source, &destination, false, false);
	source = world_address(1);
	destination = world_address(7);
	world_join(world, THERE, &source, &destination, false, false);
	network_run_due();
	return world;
}

static void check_control(struct world *world)
{
	const struct end *one = &world->ends[0], *other = &world->ends[1];

	/* Outstanding work may have to wait for its retransmission. */
	network_advance(20 * CLOCK_NS_PER_S, 2000);
	for (unsigned talks = 0; talks < CONTROL_TALKS; talks++) {
		uint32_t wanted[2];

		if (world->tainted)
			return;
		if (one->said != one->done || other->said != other->done || one->heard != other->said ||
		    other->heard != one->said)
			violation("the control hangs");
		wanted[0] = one->said + 1;
		wanted[1] = other->said + 1;
		world_talk(world);
		network_advance(200 * CLOCK_NS_PER_MS, 2000);
		if (!world->tainted && (one->done != wanted[0] || other->done != wanted[1]))
			violation("the control does not talk any more");
	}
}

void world_close(struct world *world)
{
	network_drop_next(0, &(struct address){ 0 });
	check_control(world);
	world->ending = true;
	for (unsigned index = 0; index < WORLD_ENDS; index++)
		if (world->ends[index].endpoint)
			world_destroy(&world->ends[index]);
	network_run_due();
	for (unsigned index = 0; index < WORLD_HOSTS; index++)
		transport_close(world->hosts[index].transport);
	network_close();
	free(world);
}
