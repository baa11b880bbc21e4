/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast a processor moves messages of SIZE bytes, in millions of bytes per second of processor time:
 *
 *   own_code device COMMAND SIZE    both ends of a command on the simulated device, which copies memory
 *   own_code limit COMMAND SIZE     as many copies and comparisons, by memcpy and memcmp, and nothing else
 *   own_code payload COMMAND SIZE   what one end does with a payload: writes it, and compares it if the command does
 *   own_code memcmp COMMAND SIZE    one comparison of a message by memcmp
 */
#include <malloc.h>
#include <time.h>

#include "core/payload.h"
#include "test/bench/need.h"
#include "test/verbs/provider/pair.h"

static int64_t begun;

static int64_t processor_time(void)
{
	struct timespec time;

	need(!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), "clock_gettime");
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void started(struct pair *pair)
{
	begun = processor_time();
}

enum {
	RPING,
	RPING_V,
	UCMATOSE,
	BYTES = 1000000000,
};

/* Bytes in flight, and how often the device moves, sets and compares a message's bytes. */
static const struct {
	const char *command, *server, *client;
	unsigned window, moves, sets, compares;
} rows[] = {
	[RPING] = { "rping", "rping -s -a @", "rping -c -a @", .moves = 2 },
	[RPING_V] = { "rping-V", "rping -s -V -a @", "rping -c -V -a @", .moves = 2, .sets = 1, .compares = 2 },
	[UCMATOSE] = { "ucmatose", "ucmatose -b @", "ucmatose -s @", .window = 4 << 20, .moves = 2, .compares = 2 },
};

static int64_t device(size_t row, unsigned size, unsigned count)
{
	struct pair pair = { .ready = started };
	char server[256], client[256];

	snprintf(server, sizeof(server), "%s -S %u -C %u", rows[row].server, size, count);
	snprintf(client, sizeof(client), "%s -S %u -C %u", rows[row].client, size, count);
	provider_begin(PROVIDER_ROCE, 0);
	pair_run(&pair, server, client, "100s");
	begun = processor_time() - begun;
	if (pair.server_outcome || pair.client_outcome) {
		fprintf(stderr, "%s\n%s\n%s\n", pair.capture.text, pair.server_text, pair.client_text);
		exit(1);
	}
	pair_free(&pair);
	provider_end();
	return begun;
}

/* A command's memory: the message, and its destination. */
struct memory {
	uint8_t *message, *slots;
	unsigned slot_count;
};

static struct memory memory_of(size_t row, unsigned size)
{
	struct memory memory = { .slot_count = rows[row].window / size ? rows[row].window / size : 1 };

	memory.message = malloc((size_t)size + PAYLOAD_PATTERN);
	memory.slots = malloc((size_t)memory.slot_count * size);
	need(memory.message && memory.slots, "malloc");
	/* Memory never written is one page of zeros. */
	memset(memory.message, 1, (size_t)size + PAYLOAD_PATTERN);
	memset(memory.slots, 1, (size_t)memory.slot_count * size);
	return memory;
}

static uint8_t *slot_of(const struct memory *memory, unsigned number, unsigned size)
{
	/* The compiler must not remove unread results. */
	__asm__ volatile("" : : "r"(memory->message), "r"(memory->slots) : "memory");
	return memory->slots + (size_t)(number % memory->slot_count) * size;
}

static int64_t limit(size_t row, unsigned size, unsigned count)
{
	struct memory memory = memory_of(row, size);

	begun = processor_time();
	for (unsigned i = 0; i < count; i++) {
		uint8_t *slot = slot_of(&memory, i, size);

		for (unsigned times = 0; times < rows[row].sets; times++)
			memset(slot, 0, size);
		for (unsigned times = 0; times < rows[row].moves; times++) {
			uint8_t *buffer = calloc(1, (size_t)size + 1);

			need(buffer, "calloc");
			memcpy(buffer, memory.message, size);
			memcpy(slot, buffer, size);
			free(buffer);
		}
		for (unsigned times = 0; times < rows[row].compares; times++)
			need(!memcmp(memory.message, slot, size), "memcmp");
	}
	return processor_time() - begun;
}

static int64_t payload(size_t row, unsigned size, unsigned count)
{
	struct memory memory = memory_of(row, size);
	struct payload_difference difference;
	size_t offset = 0;

	if (row == UCMATOSE)
		payload_pattern_write(memory.message, size);
	else
		payload_ramp_write(memory.message, size);
	for (unsigned i = 0; row == UCMATOSE && i < memory.slot_count; i++)
		memcpy(slot_of(&memory, i, size), memory.message + payload_pattern_offset(size, 1, i), size);
	begun = processor_time();
	for (unsigned i = 0; i < count; i++) {
		uint8_t *slot = slot_of(&memory, i, size);
		bool same = true;

		if (row == UCMATOSE)
			same = payload_equal(memory.message + payload_pattern_offset(size, 1, i % memory.slot_count),
					     slot, size, &difference);
		else
			offset = payload_ping_write(memory.message, size, i, offset);
		if (row == RPING_V)
			same = payload_ping_check(memory.message + offset, size, i, &difference);
		need(same, "the payload");
	}
	return processor_time() - begun;
}

static int64_t memcmp_only(size_t row, unsigned size, unsigned count)
{
	struct memory memory = memory_of(row, size);

	begun = processor_time();
	for (unsigned i = 0; i < count; i++)
		need(!memcmp(memory.message, slot_of(&memory, i, size), size), "memcmp");
	return processor_time() - begun;
}

static const struct {
	const char *name;
	int64_t (*time)(size_t row, unsigned size, unsigned count);
} modes[] = { { "device", device }, { "limit", limit }, { "payload", payload }, { "memcmp", memcmp_only } };

int main(int argc, char **argv)
{
	unsigned size = argc == 4 ? (unsigned)atoi(argv[3]) : 0;
	size_t mode = 0, row = 0;

	while (argc == 4 && mode < LENGTH(modes) && strcmp(argv[1], modes[mode].name) != 0)
		mode++;
	while (argc == 4 && row < LENGTH(rows) && strcmp(argv[2], rows[row].command) != 0)
		row++;
	if (!size || mode == LENGTH(modes) || row == LENGTH(rows)) {
		fprintf(stderr, "usage: own_code device|limit|payload|memcmp rping|rping-V|ucmatose SIZE\n");
		return 2;
	}
	/* As in a long run: no new pages for each message. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	printf("%.1f\n", (double)size * (BYTES / size) * 1000 / (double)modes[mode].time(row, size, BYTES / size));
	return 0;
}
