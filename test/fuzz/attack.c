/* SPDX-License-Identifier: BSD-2-Clause */
/* The meaning of an input for the target packets: a few settings of the world, then records of its events. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "test/fuzz/input.h"
#include "test/fuzz/target.h"
#include "test/fuzz/world.h"
#include "transport/soft/cm/cm_internal.h"
#include "transport/soft/qp/qp_internal.h"

enum {
	RECORDS_MAX = 120,
	CONTROL_ENDS = 2, /* they come first, and commands do not touch them */
};

/* The chosen end or the next one with a queue pair; any if there is none. */
static struct end *choose(struct input *input, unsigned first)
{
	struct end *ends = input->world->ends;
	unsigned count = WORLD_ENDS - first, choice = take8(input) % count;

	for (unsigned index = 0; index < count; index++) {
		struct end *end = &ends[first + (choice + index) % count];

		if (end_queue(end))
			return end;
	}
	return &ends[first + choice];
}

static struct end *take_end(struct input *input)
{
	return choose(input, 0);
}

static struct end *take_exposed(struct input *input)
{
	return choose(input, CONTROL_ENDS);
}

static void take_addresses(struct input *input, struct frame *frame)
{
	unsigned number = take8(input);

	frame->from = world_address(number % 12);
	frame->to = world_address(number / 12);
	frame->from.port = UDP_PORT_ROCE;
}

/* ---- the records ---- */

static void raw(struct input *input)
{
	struct frame frame = { 0 };
	unsigned flags;

	take_addresses(input, &frame);
	flags = take8(input);
	frame.length = take_bytes(input, frame.bytes, take16(input) % (NETWORK_FRAME_MAX - ICRC_SIZE));
	if (flags & 1)
		world_inject(input->world, &frame);
	else
		world_inject_bare(input->world, &frame);
}

static void change(struct input *input, struct frame *frame, unsigned changes)
{
	while (changes--) {
		unsigned what = take8(input);
		size_t at = what & 4 ? take16(input) : take8(input);
		uint8_t value = take8(input);

		if (!frame->length)
			return;
		at %= frame->length;
		switch (what % 4) {
		case 0:
			frame->bytes[at] = value;
			break;
		case 1:
			frame->bytes[at] ^= (uint8_t)(1u << value % 8);
			break;
		case 2:
			frame->bytes[at] = (uint8_t)(frame->bytes[at] + (int8_t)value);
			break;
		default:
			if (value & 1)
				frame->length = at & ~(size_t)3;
			else if (frame->length + value < NETWORK_FRAME_MAX - ICRC_SIZE)
				frame->length += value;
		}
	}
}

/* Repeats a sent packet, unchanged or changed, from the same address or another. */
static void again(struct input *input)
{
	const struct frame *sent = network_sent_frame(take8(input) % NETWORK_HISTORY);
	unsigned flags = take8(input);
	struct frame frame = { .identification = 0 };

	if (!sent)
		return;
	frame = *sent;
	if (flags & 1)
		take_addresses(input, &frame);
	if (flags & 2) {
		struct address from = frame.from;

		frame.from = frame.to;
		frame.to = from;
	}
	if (frame.length < ICRC_SIZE)
		return;
	frame.length -= ICRC_SIZE;
	frame.from.port = flags & 4 ? 49152 : UDP_PORT_ROCE;
	frame.identification = flags & 4 ? take16(input) : 0;
	change(input, &frame, flags >> 4);
	frame.length += flags & 8 ? ICRC_SIZE : 0;
	if (flags & 8)
		world_inject_bare(input->world, &frame);
	else
		world_inject(input->world, &frame);
}

/* Headers, payload, pad: the bytes after the headers come from the input, then are zeros. */
static void inject_packet(struct input *input, struct frame *frame, struct packet *packet)
{
	uint8_t header[PACKET_HEADER_MAX] = { 0 };
	size_t header_length;

	packet->pkey = PACKET_PKEY;
	header_length = packet_write(packet, header);
	if (!header_length || header_length + packet->length + 3 > NETWORK_FRAME_MAX - ICRC_SIZE)
		return;
	memset(frame->bytes, 0, header_length + packet->length + 3);
	memcpy(frame->bytes, header, header_length);
	if (packet->payload)
		memcpy(frame->bytes + header_length, packet->payload, packet->length);
	else if (packet->length)
		memset(frame->bytes + header_length, 0x5a, packet->length);
	frame->length = header_length + packet->length + packet_pad(packet->length);
	world_inject(input->world, frame);
}

static size_t take_length(struct input *input, const struct soft_qp *qp, uint32_t left)
{
	unsigned how = take8(input);

	switch (how % 8) {
	case 0:
		return 0;
	case 1:
		return qp->endpoint->path.mtu;
	case 2:
	case 6:
	case 7:
		return left < qp->endpoint->path.mtu ? left : qp->endpoint->path.mtu;
	case 3:
		return how;
	case 4:
		return qp->endpoint->path.mtu + how - 32;
	default:
		return take16(input) % (PACKET_PAYLOAD_MAX + 64);
	}
}

static int32_t take_step(struct input *input)
{
	int step = (int8_t)take8(input);

	/* Mostly none, else small; large at the ends. */
	if (step > 120 || step < -120)
		return step > 0 ? (step - 120) << 20 : -((-step - 120) << 20);
	return step & 1 ? step / 2 : 0;
}

static bool aim(const struct soft_qp *qp, unsigned flags, struct frame *frame)
{
	if (!qp || !qp->endpoint->path.socket)
		return false;
	frame->from = flags & 1 ? world_address(3) : qp->endpoint->path.peer;
	frame->to = qp->endpoint->path.local;
	frame->from.port = UDP_PORT_ROCE;
	return true;
}

/* Mostly part of a region: from its start, or up to its end, and slightly before or beyond. */
static void take_remote(struct input *input, const struct soft_qp *qp, struct packet *packet)
{
	const struct end *end = take_end(input);
	const struct region *region = end->regions[REGIONS - 1 - take8(input) % REGIONS];
	unsigned how = take8(input) % 8;

	packet->remote.length = (uint32_t)take(input, how ? 2 : 4);
	if (how)
		packet->remote.length %= how & 1 ? qp->endpoint->path.mtu + 1 : REGION_LENGTH + 8;
	if (!region || how < 2) {
		packet->remote.address = take(input, 8);
		packet->remote.key = region ? region->remote_key : take16(input);
		return;
	}
	packet->remote.address = region->remote_address;
	if (how & 2)
		packet->remote.address += region->length - packet->remote.length;
	if (how & 4)
		packet->remote.address += (uint64_t)(int64_t)(int8_t)take8(input);
	packet->remote.key = region->remote_key;
}

/* Requests of a peer that knows everything. */
static void request(struct input *input)
{
	struct soft_qp *qp = end_queue(take_end(input));
	unsigned flags = take8(input), count = 1 + (flags >> 4);
	struct frame frame = { .identification = 0 };
	struct packet packet = { 0 };
	uint32_t left;
	int32_t step;

	if (!aim(qp, flags, &frame))
		return;
	packet.opcode = take8(input) % (OPCODE_READ_REQUEST + 1);
	packet.destination = qp->by_qpn.key;
	step = take_step(input);
	packet.psn = (qp->responder.epsn + (uint32_t)step) & PSN_MASK;
	packet.ack_request = flags & 2;
	left = qp->responder.write.bytes_left;
	if (opcode_form(packet.opcode) & FORM_REMOTE) {
		take_remote(input, qp, &packet);
		left = packet.remote.length;
	}
	if (!(opcode_form(packet.opcode) & FORM_READ))
		packet.length = take_length(input, qp, left);
	/* Several in a row arrive in one batch. */
	for (; count; count--) {
		inject_packet(input, &frame, &packet);
		packet.psn = (packet.psn + (flags & 4 ? 1 : 0)) & PSN_MASK;
	}
}

/* Answers of such a peer. */
static void answer(struct input *input)
{
	struct soft_qp *qp = end_queue(take_end(input));
	unsigned flags = take8(input), count = 1 + (flags >> 4);
	struct frame frame = { .identification = 0 };
	struct packet packet = { 0 };
	uint32_t step;

	if (!aim(qp, flags, &frame))
		return;
	packet.opcode = (uint8_t)(OPCODE_READ_RESPONSE_FIRST + take8(input) % 5);
	packet.destination = qp->by_qpn.key;
	step = (uint32_t)take_step(input);
	packet.psn = (qp->requester.unacked_psn + step) & PSN_MASK;
	packet.acknowledgement.syndrome = take8(input);
	packet.acknowledgement.msn = take8(input);
	if (opcode_form(packet.opcode) & FORM_PAYLOAD)
		packet.length = take_length(input, qp, 100);
	for (; count; count--) {
		inject_packet(input, &frame, &packet);
		packet.psn = (packet.psn + (flags & 4 ? 1 : 0)) & PSN_MASK;
	}
}

static struct soft_cm_id *take_link(struct input *input)
{
	unsigned number = take8(input);
	const struct soft_cm *cm = soft_of(input->world->hosts[number & 1].transport)->cm;
	const struct soft_table *table = &cm->tables[CM_BY_ID];

	if (!table->count)
		return NULL;
	number = (number >> 1) % (unsigned)table->count;
	for (size_t index = 0; index < table->bucket_count; index++)
		for (struct soft_table_entry *entry = table->buckets[index]; entry; entry = entry->next)
			if (!number--)
				return entry->object;
	return NULL;
}

static void fill_request(struct input *input, struct mad *mad, const struct soft_cm_id *cm_id,
			 const struct frame *frame, uint8_t *private_data)
{
	struct mad_address address = { .version = frame->from.family == ADDRESS_IP4 ? 4 : 6, .port = 7 };
	struct mad_req *req = &mad->req;
	unsigned flags = take8(input);

	memcpy(address.source, frame->from.bytes, sizeof(address.source));
	memcpy(address.destination, frame->to.bytes, sizeof(address.destination));
	mad_address_write(&address, private_data);
	*req = (struct mad_req){
		.service_id = mad_service_id(PORT_SPACE_TCP, WORLD_PORT),
		.ca_guid = flags & 2 ? cm_id->peer_guid : take8(input) % 4,
		.qpn = flags & 32 ? cm_id->agreement.peer_qpn : 2 + take8(input) % 16u,
		.responder_resources = flags & 15,
		.initiator_depth = (uint8_t)(flags >> 4),
		.starting_psn = flags & 1 ? PSN_MASK : 0,
		.retry_count = take8(input) & 7,
		.rnr_retry_count = flags & 7,
		.path_mtu = (uint8_t)(1 + (flags >> 2) % 5),
		.path = { .ack_timeout = take8(input) & 31 },
	};
	mad->local_id = 1 + take8(input) % 32u;
	mad->remote_id = 0;
	soft_cm_gid(&frame->from, req->path.local_gid);
	soft_cm_gid(&frame->to, req->path.remote_gid);
}

static void fill_other(struct input *input, struct mad *mad, const struct soft_cm_id *cm_id, const uint8_t *information)
{
	static const uint8_t reasons[] = { REJECTED_TIMEOUT, REJECTED_STALE, REJECTED_MTU, REJECTED_BY_CONSUMER, 255 };

	switch (mad->kind) {
	case MAD_REP:
		mad->rep = (struct mad_rep){
			.qpn = take8(input) % 16u,
			.starting_psn = take16(input),
			.responder_resources = take8(input),
			.initiator_depth = take8(input),
			.rnr_retry_count = take8(input) & 7,
			.ca_guid = take8(input) % 4,
		};
		break;
	case MAD_REJ:
		mad->rej = (struct mad_rej){
			.answered = take8(input) % 4,
			.reason = reasons[take8(input) % (sizeof(reasons) / sizeof(reasons[0]))],
			.information_length = take8(input) % MAD_INFORMATION_MAX,
			.information = information,
		};
		break;
	case MAD_MRA:
		mad->mra.answered = take8(input) % 4;
		break;
	case MAD_DREQ:
		mad->dreq.remote_qpn = cm_id->local_qpn;
		break;
	default:
		break;
	}
}

/* A message from a link's peer, or a request from anywhere. */
static void message(struct input *input)
{
	const struct soft_cm_id *cm_id = take_link(input);
	uint8_t private_data[MAD_REQ_PRIVATE] = { 0 }, information[MAD_INFORMATION_MAX] = { 0 }, bytes[MAD_SIZE];
	unsigned flags = take8(input);
	struct frame frame = { .identification = 0 };
	struct packet packet = {
		.opcode = OPCODE_DATAGRAM,
		.destination = MAD_QPN,
		.datagram = { .key = MAD_QKEY, .source = MAD_QPN },
		.payload = bytes,
		.length = MAD_SIZE,
	};
	struct mad mad = {
		.kind = (enum mad_kind)(MAD_REQ + (flags & 31) % 7),
		.private_data = private_data,
		.private_length = sizeof(private_data),
	};

	if (!cm_id)
		return;
	frame.from = cm_id->path.peer;
	frame.to = cm_id->path.local;
	mad.transaction = cm_id->transaction;
	mad.local_id = cm_id->peer_known ? cm_id->remote_id : 77;
	mad.remote_id = cm_id->local_id;
	if (flags & 0x20)
		information[0] = take8(input) % 8;
	else
		bytes_write(information, 8, cm_id->peer_guid);
	if (flags & 0x80)
		take_addresses(input, &frame);
	frame.from.port = UDP_PORT_ROCE;
	if (mad.kind == MAD_REQ)
		fill_request(input, &mad, cm_id, &frame, private_data);
	else
		fill_other(input, &mad, cm_id, information);
	mad_write(&mad, bytes);
	if (flags & 0x40) {
		bytes[take8(input)] = take8(input);
		bytes[take8(input)] ^= take8(input);
	}
	inject_packet(input, &frame, &packet);
}

/* To a group's queue pairs, or to one member's. */
static void datagram(struct input *input)
{
	struct soft_qp *qp = end_queue(take_end(input));
	unsigned flags = take8(input);
	struct frame frame = { .identification = 0 };
	struct packet packet = {
		.opcode = flags & 1 ? OPCODE_DATAGRAM_IMMEDIATE : OPCODE_DATAGRAM,
		.destination = flags & 2 && qp ? qp->by_qpn.key : PSN_MASK,
		.datagram = { .key = flags & 4 ? flags : UINT32_C(0x01234567), .source = 2 },
	};

	take_addresses(input, &frame);
	packet.length = take16(input) % (SLOT_LENGTH + 100);
	if (flags & 8 && qp)
		packet.datagram.source = qp->by_qpn.key;
	inject_packet(input, &frame, &packet);
}

static void post(struct input *input)
{
	static const enum work_kind kinds[] = { WORK_SEND, WORK_WRITE, WORK_READ, WORK_SEND };
	struct end *end = take_exposed(input);
	const struct end *peer = take_exposed(input);
	unsigned flags = take8(input);
	const struct region *remote = peer->regions[(flags & 4 ? REGION_WRITABLE : REGION_READABLE)];
	struct work work = {
		.kind = kinds[flags & 3],
		.unsignalled = flags & 8,
		.has_immediate = flags & 16,
		.length = take16(input),
		.offset = take16(input),
	};

	if (!end->regions[0])
		return;
	work.region = end->regions[work.kind == WORK_READ ? REGION_SINK : REGION_SOURCE];
	if (end->endpoint && end->endpoint->kind == ENDPOINT_GROUP) {
		work.kind = WORK_SEND;
		work.length %= 1024;
	}
	if (!(flags & 32)) {
		work.offset %= REGION_LENGTH;
		work.length %= REGION_LENGTH + 1 - (uint32_t)work.offset;
	}
	work.remote_address = remote ? remote->remote_address + (flags & 64 ? take16(input) : 0) : 0;
	work.remote_key = remote ? remote->remote_key : 0;
	world_post(end, &work);
}

static void command(struct input *input)
{
	struct world *world = input->world;
	unsigned choice = take8(input) % 9;
	struct end *end = &world->ends[CONTROL_ENDS + take8(input) % (WORLD_ENDS - CONTROL_ENDS)];
	struct frame addresses = { .identification = 0 };
	bool there;

	switch (choice) {
	case 0:
		world_post_receives(end, 1 + take8(input) % SLOTS);
		break;
	case 1:
		world_accept(end);
		break;
	case 2:
		world_reject(end, "no", take8(input) % 3);
		break;
	case 3:
		world_disconnect(end);
		break;
	case 4:
	case 5: /* a kept input may have it; it was leaving a group */
		world_destroy(end);
		break;
	case 7:
		world_drop_region(end, (enum world_region)(take8(input) % REGIONS));
		break;
	case 6:
		there = take8(input) & 1;
		take_addresses(input, &addresses);
		addresses.from = world_address(there ? take8(input) % 2 ? 1 : 5 : take8(input) % 2 ? 0 : 4);
		world_connect(world, there, &addresses.from, &addresses.to);
		break;
	default:
		there = take8(input) & 1;
		addresses.from = world_address(there ? 1 : 0);
		addresses.to = world_address(take8(input) & 1 ? 7 : 9);
		choice = take8(input);
		world_join(world, there, &addresses.from, &addresses.to, choice & 1, choice & 2);
	}
}

static void pass(struct input *input)
{
	unsigned how = take8(input);

	switch (how % 4) {
	case 0:
		network_run_due();
		break;
	case 1:
		network_advance((how >> 2) * CLOCK_NS_PER_MS, 50);
		break;
	case 2:
		network_advance((how >> 2) * CLOCK_NS_PER_S, 100);
		break;
	default:
		network_advance(60 * CLOCK_NS_PER_S, 1 + (how >> 2));
	}
}

static void trouble(struct input *input)
{
	unsigned how = take8(input);
	uint8_t quoted[NETWORK_QUOTED_MAX];
	const struct frame *sent;
	struct address address;
	size_t length;

	if (how & 1) {
		address = world_address(2);
		network_drop_next((how >> 1) % 16, &address);
		return;
	}
	/* Quotes any bytes, or a sent packet; the control connection must survive both. */
	sent = how & 2 ? network_sent_frame(take8(input) % NETWORK_HISTORY) : NULL;
	if (sent) {
		length = sent->length < sizeof(quoted) ? sent->length : sizeof(quoted);
		memcpy(quoted, sent->bytes, length);
		address = sent->to;
	} else {
		address = world_address(how >> 4);
		length = take_bytes(input, quoted, take8(input) % sizeof(quoted));
	}
	network_port_unreachable(&address, quoted, how & 4 ? length / 2 : length);
}

static void pass_and_talk(struct input *input)
{
	pass(input);
	world_talk(input->world);
}

/* By the lower half of its first byte. */
static void (*const records[16])(struct input *input) = {
	raw,	 again,	  again,    request, request, request, answer,	answer,
	message, message, datagram, post,    post,    command, trouble, pass_and_talk,
};

void attack(const uint8_t *bytes, size_t length)
{
	static const int mtus[] = { 1500, 356, 9000, 356 };
	struct input input = { .bytes = bytes, .length = length };
	struct world_terms terms;
	unsigned kind;

	terms.seed = take8(&input);
	terms.policy = take16(&input) * UINT64_C(0x0001000100010001);
	kind = take8(&input);
	terms.mtu = mtus[kind & 3];
	terms.buffer = kind & 4 ? 16384 : 212992;
	terms.limited = take8(&input) & 1;
	terms.scramble = take8(&input) % 8;
	input.world = world_open(&terms);
	for (unsigned count = 0; input.length && count < RECORDS_MAX; count++) {
		uint8_t record = take8(&input);

		records[record & 15](&input);
		/* Else the next record comes with the same batch. */
		if (record & 16)
			network_run_due();
		if (record & 32)
			network_advance(CLOCK_NS_PER_MS, 20);
	}
	network_run_due();
	world_close(input.world);
}
