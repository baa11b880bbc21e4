/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mckey's datagrams and counts, routers' answers, and typed text: a value that is read, written and read again is
 * unchanged.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cmd/doctor/doctor.h"
#include "cmd/mckey/mckey.h"
#include "core/address.h"
#include "core/units.h"
#include "test/fuzz/input.h"
#include "test/fuzz/target.h"
#include "test/network/network.h"
#include "test/unit/pattern.h"

enum {
	TEXT_MAX = 300,
	MARKS_MAX = 2000,
};

/* A copy of exactly that size, so that a read beyond it is detected. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t length)
{
	uint8_t *copy = malloc(length ? length : 1);

	if (!copy)
		abort();
	if (length)
		memcpy(copy, bytes, length);
	return copy;
}

/* ---- mckey ---- */

/* Numbers as a hostile sender may choose them: the first byte says how, three follow. */
static void count_stream(struct input *input)
{
	struct senders senders = { .members = 1 };
	struct sender *sender = calloc(1, sizeof(*sender) + sizeof(struct flow));
	struct datagram_mark mark = { .sequence = 0, .total = UINT32_MAX };
	struct counts counts;
	uint64_t counted = 0, arrived = 0;

	if (!sender)
		return;
	sender_add(&senders, sender);
	while (input->length && counted < MARKS_MAX) {
		uint8_t how = take8(input);

		if (how & 1)
			mark.sequence = (uint32_t)take(input, how & 2 ? 4 : 1);
		else
			mark.sequence += (uint32_t)(int32_t)(int8_t)(how & 0xfc) / 4 + 1;
		if (mark.sequence == UINT32_MAX)
			mark.sequence = 0; /* no mark has it: it is below the total */
		mark.total = how == 0x80 ? 0 : UINT32_MAX;
		arrived += flow_count(&sender->flows[0], sender, &mark, false);
		counted++;
	}
	counts = senders_counts(&senders, 0);
	if (sender->flows[0].arrived != arrived || counts.received != arrived)
		violation("a datagram is counted as new, or not, and the number of the arrived does not follow");
	if (counts.received + counts.duplicated != counted)
		violation("a datagram is counted twice, or not at all");
	if (counts.out_of_order > counts.received)
		violation("more datagrams are out of order than came");
	free(sender);
}

void parse_datagram(const uint8_t *bytes, size_t length)
{
	uint8_t *copy = exact_copy(bytes, length);
	struct input input = { .bytes = bytes, .length = length };
	struct payload_difference difference = { 0 };
	struct datagram_mark mark = { .sequence = length > 4 ? bytes[4] : 0, .total = UINT32_MAX };
	struct address source = { 0 };

	if (length >= DATAGRAM_HEADER_SIZE)
		datagram_source(copy, bytes[0] & 1, &source);
	datagram_read(copy, length, pattern(), 77, &mark, &difference);
	mark = (struct datagram_mark){ .sequence = length > 4 ? bytes[4] : 0, .total = UINT32_MAX };
	/* One of ours, and the same with a byte changed. */
	datagram_write(copy, length, pattern(), 77, &mark);
	if (length >= DATAGRAM_MARK_SIZE &&
	    (!datagram_read(copy, length, pattern(), 77, &mark, &difference) || !mark.total))
		violation("a datagram is not intact as it was written");
	if (length > DATAGRAM_MARK_SIZE) {
		copy[DATAGRAM_MARK_SIZE + bytes[0] % (length - DATAGRAM_MARK_SIZE)] ^= (uint8_t)(bytes[1] | 1);
		if (datagram_read(copy, length, pattern(), 77, &mark, &difference) || difference.position >= length)
			violation("a damaged datagram goes unnoticed");
	}
	free(copy);
	count_stream(&input);
}

/* ---- doctor ---- */

/* The first byte has the family, the second the length of the name; the rest of the input are the control messages. */
void parse_answer(const uint8_t *bytes, size_t length)
{
	struct input input = { .bytes = bytes, .length = length };
	struct address peer = { .family = take8(&input) & 1 ? ADDRESS_IP6 : ADDRESS_IP4 }, from, to;
	size_t name_length = take8(&input) % (sizeof(struct sockaddr_storage) + 1);
	struct sockaddr_storage name = { .ss_family = 0 };
	struct msghdr message;
	enum trace_answer answer;

	name_length = take_bytes(&input, (uint8_t *)&name, name_length);
	message = (struct msghdr){
		.msg_name = exact_copy((const uint8_t *)&name, name_length),
		.msg_namelen = (socklen_t)name_length,
		.msg_control = exact_copy(input.bytes, input.length),
		.msg_controllen = input.length,
	};
	answer = trace_read_answer(&message, &peer, &from);
	if (answer != TRACE_OTHER && (!address_from_socket(&name, &to) || !address_same_host(&to, &peer)))
		violation("an answer for another host counts");
	if (answer == TRACE_ROUTER && from.family != peer.family)
		violation("a router without an address of the packet's family");
	free(message.msg_name);
	free(message.msg_control);
}

/* ---- text ---- */

static void read_address(const char *text, enum address_format format)
{
	char first[ADDRESS_TEXT_SIZE], second[ADDRESS_TEXT_SIZE];
	struct address address, again;
	struct sockaddr_storage socket_address;

	memset(&address, 0, sizeof(address));
	if (!address_parse(text, format, &address))
		return;
	if (address.family == ADDRESS_NONE || address.port)
		violation("'%s' is read as no address", text);
	address_host(&address, first);
	if (!address_parse(first, format == ADDRESS_FORMAT_GID ? format : ADDRESS_FORMAT_IP, &again) ||
	    !address_same_host(&address, &again))
		violation("'%s' is shown as '%s', which is another address", text, first);
	address.port = 65535;
	address_text(&address, second);
	if (strlen(second) >= sizeof(second))
		violation("an address has no end");
	address_is_any(&address);
	address_is_multicast(&address);
	if (address.family == ADDRESS_GID)
		return;
	address_to_socket(&address, &socket_address);
	if (!address_from_socket(&socket_address, &again) || !address_same_host(&address, &again) ||
	    again.port != 65535)
		violation("'%s' changes on its way through a socket's address", text);
}

static void show_quantities(const uint8_t *bytes, size_t length)
{
	char text[UNITS_TEXT_SIZE];
	int64_t whole = 0;
	double number = 0;

	memcpy(&whole, bytes, length < sizeof(whole) ? length : sizeof(whole));
	memcpy(&number, bytes, length < sizeof(number) ? length : sizeof(number));
	if (whole < 0)
		whole = ~whole;
	if (strlen(units_time(whole, text)) >= sizeof(text))
		violation("a time has no end");
	/* Counts over times: never negative, never NaN. */
	if (!(number >= 0) || number > 1e300)
		number = 0;
	if (strlen(units_rate(number, text)) >= sizeof(text) || strlen(units_bandwidth(number, text)) >= sizeof(text))
		violation("a rate has no end");
}

void parse_addresses(const uint8_t *bytes, size_t length)
{
	char text[TEXT_MAX + 1] = "";

	show_quantities(bytes, length);
	length = length < TEXT_MAX ? length : TEXT_MAX;
	memcpy(text, bytes, length);
	for (unsigned format = ADDRESS_FORMAT_ANY; format <= ADDRESS_FORMAT_GID; format++)
		read_address(text, (enum address_format)format);
	if (spelling_distance(text, "validate") != spelling_distance("validate", text))
		violation("two words are nearer to each other one way than the other");
}
