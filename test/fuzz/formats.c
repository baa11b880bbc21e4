/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything that is read from bytes or text without a network: what is read, written and read again stays the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cmd/hello.h"
#include "cmd/mckey/flow.h"
#include "cmd/rping/protocol.h"
#include "core/address.h"
#include "core/spelling.h"
#include "core/units.h"
#include "test/fuzz/input.h"
#include "test/fuzz/target.h"
#include "test/network/network.h"
#include "test/unit/pattern.h"
#include "transport/backend.h"
#include "transport/soft/wire/mad.h"
#include "transport/soft/wire/packet.h"

enum {
	TEXT_MAX = 300,
	MARKS_MAX = 2000,
};

/* A copy of exactly that size, so that a look beyond it is noticed. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t length)
{
	uint8_t *copy = malloc(length ? length : 1);

	if (!copy)
		abort();
	if (length)
		memcpy(copy, bytes, length);
	return copy;
}

/* ---- packets and messages ---- */

static void read_packet(const uint8_t *bytes, size_t length)
{
	uint8_t first[PACKET_HEADER_MAX] = { 0 }, second[PACKET_HEADER_MAX + PACKET_ICRC_SIZE] = { 0 };
	uint8_t *whole;
	struct packet packet, again;
	size_t size;

	if (!packet_parse(bytes, length, &packet))
		return;
	if (packet.length > length ||
	    (packet.length && (packet.payload < bytes || packet.payload + packet.length > bytes + length)))
		violation("the payload of a packet is outside of it");
	size = packet_write(&packet, first);
	if (!size)
		violation("a packet that can be read cannot be written");
	whole = malloc(size + packet.length + packet.pad + PACKET_ICRC_SIZE);
	if (!whole)
		abort();
	memset(whole, 0, size + packet.length + packet.pad + PACKET_ICRC_SIZE);
	memcpy(whole, first, size);
	if (!packet_parse(whole, size + packet.length + packet.pad + PACKET_ICRC_SIZE, &again) ||
	    packet_write(&again, second) != size || memcmp(first, second, size) != 0)
		violation("a packet changes when it is written");
	free(whole);
}

static void read_message(const uint8_t *bytes, size_t length)
{
	uint8_t first[MAD_SIZE], second[MAD_SIZE];
	struct mad mad, again;

	if (!mad_parse(bytes, length, &mad))
		return;
	if (mad.private_data < bytes || mad.private_data + mad.private_length > bytes + length ||
	    (mad.kind == MAD_REJ && mad.rej.information_length > MAD_INFORMATION_MAX))
		violation("private data outside of its message");
	mad_write(&mad, first);
	if (!mad_parse(first, sizeof(first), &again) || again.kind != mad.kind)
		violation("a message cannot be read that was written");
	mad_write(&again, second);
	if (memcmp(first, second, sizeof(first)) != 0)
		violation("a message changes when it is written");
}

static void read_address_header(const uint8_t *bytes, size_t length)
{
	uint8_t first[MAD_ADDRESS_SIZE], second[MAD_ADDRESS_SIZE];
	struct mad_address address, again;

	if (!mad_address_parse(bytes, length, &address))
		return;
	mad_address_write(&address, first);
	if (!mad_address_parse(first, sizeof(first), &again))
		violation("an address header cannot be read that was written");
	mad_address_write(&again, second);
	if (memcmp(first, second, sizeof(first)) != 0)
		violation("an address header changes when it is written");
}

void parse_messages(const uint8_t *bytes, size_t length)
{
	uint8_t padded[MAD_SIZE] = { 1, 7, 2, 3 };
	uint8_t *copy = exact_copy(bytes, length);
	uint64_t number = 0;
	uint16_t port_space, port;

	read_packet(copy, length);
	read_message(copy, length);
	read_address_header(copy, length);
	/* With the right beginning, and a kind that there is, more is read. */
	memcpy(padded + 8, copy, length < MAD_SIZE - 8 ? length : MAD_SIZE - 8);
	padded[17] = (uint8_t)(MAD_REQ + padded[17] % 8);
	padded[16] = 0;
	read_message(padded, sizeof(padded));
	memcpy(&number, copy, length < sizeof(number) ? length : sizeof(number));
	if (mad_service_split(number, &port_space, &port) && mad_service_id(port_space, port) != number)
		violation("a service identifier changes");
	free(copy);
}

/* ---- what ends tell each other ---- */

static void read_hello(const uint8_t *bytes, size_t length, enum hello_tool tool)
{
	struct hello hello, again;
	uint8_t written[HELLO_SIZE];

	if (!hello_read(bytes, length, tool, &hello))
		return;
	if (hello.tool != tool)
		violation("a hello of another tool is taken");
	hello_write(&hello, written);
	if (!hello_read(written, sizeof(written), tool, &again) || again.capacity != hello.capacity ||
	    again.connections != hello.connections || again.count != hello.count ||
	    again.connection != hello.connection || again.window != hello.window)
		violation("a hello changes when it is written");
	if (tool == HELLO_RPING && ping_size(0, hello.capacity, false) > PING_SIZE)
		violation("a hello makes a ping longer than the most");
}

static void read_advertisement(const uint8_t *bytes, size_t length)
{
	uint8_t written[ADVERTISEMENT_SIZE];
	struct advertisement advertisement;

	if (length < ADVERTISEMENT_SIZE)
		return;
	advertisement_read(bytes, &advertisement);
	advertisement_write(&advertisement, written);
	if (memcmp(bytes, written, sizeof(written)) != 0)
		violation("an advertisement changes when it is written");
	if (!advertisement_fault(&advertisement, 1, PING_SIZE_MAX) &&
	    (!advertisement.size || advertisement.size > PING_SIZE_MAX ||
	     advertisement.address + advertisement.size < advertisement.address))
		violation("an advertisement passes that cannot be used");
}

void parse_hello(const uint8_t *bytes, size_t length)
{
	uint8_t *copy = exact_copy(bytes, length);
	char text[ENDPOINT_REJECT_TEXT_SIZE];
	FILE *nowhere = fopen("/dev/null", "we");

	if (!nowhere)
		abort();
	read_hello(length ? copy : NULL, length, HELLO_RPING);
	read_hello(length ? copy : NULL, length, HELLO_UCMATOSE);
	read_advertisement(copy, length);
	for (const char *at = endpoint_reject_text(copy, length, text); *at; at++)
		if (*at < ' ' || *at > '~')
			violation("a refusal is shown with a control character");
	if (length)
		ping_print(nowhere, "ping data", copy, length);
	fclose(nowhere);
	free(copy);
}

/* ---- mckey ---- */

/* Numbers as a hostile sender has them: the first byte says how, three follow. */
static void count_stream(struct input *input)
{
	struct senders senders = { .members = 1, .count = 1 };
	struct sender *sender = calloc(1, sizeof(*sender) + sizeof(struct flow));
	struct datagram_mark mark = { .sequence = 0, .total = UINT32_MAX };
	struct counts counts;
	uint64_t counted = 0, arrived = 0;

	if (!sender)
		return;
	senders.entries[0] = sender;
	while (input->length && counted < MARKS_MAX) {
		uint8_t how = take8(input);

		if (how & 1)
			mark.sequence = (uint32_t)take(input, how & 2 ? 4 : 1);
		else
			mark.sequence += (uint32_t)(int32_t)(int8_t)(how & 0xfc) / 4 + 1;
		if (mark.sequence == UINT32_MAX)
			mark.sequence = 0; /* no mark has it: it is below the total */
		arrived += flow_count(&sender->flows[0], sender, how == 0x80 ? NULL : &mark, false);
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

	if (length >= DATAGRAM_HEADER_SIZE)
		datagram_source(copy, bytes[0] & 1);
	datagram_read(copy, length, pattern(), 77, &mark, &difference);
	mark = (struct datagram_mark){ .sequence = length > 4 ? bytes[4] : 0, .total = UINT32_MAX };
	/* One of ours, and the same with a byte changed. */
	datagram_write(copy, length, pattern(), 77, &mark);
	if (length >= DATAGRAM_MARK_SIZE &&
	    datagram_read(copy, length, pattern(), 77, &mark, &difference) != DATAGRAM_INTACT)
		violation("a datagram is not intact as it was written");
	if (length > DATAGRAM_MARK_SIZE) {
		copy[DATAGRAM_MARK_SIZE + bytes[0] % (length - DATAGRAM_MARK_SIZE)] ^= (uint8_t)(bytes[1] | 1);
		if (datagram_read(copy, length, pattern(), 77, &mark, &difference) != DATAGRAM_DAMAGED ||
		    difference.position >= length)
			violation("a damaged datagram goes unnoticed");
	}
	free(copy);
	count_stream(&input);
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
	/* Counts over times: never negative, never not a number. */
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
