/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same without a fuzzer:
 *
 *   replay FILE...                  each file is an input
 *   replay --random SECONDS [SEED]  inputs of a seeded generator; one that fails is left in ./fuzz-failed
 *   replay --seeds FOLDER           writes what a fuzzer may begin with: packets of a real peer, and random records
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "test/fuzz/attack.h"
#include "test/unit/soft_vectors.h"

enum {
	INPUT_MOST = 4096,
	SEEDS = 64,
};

static uint64_t roll(uint64_t *die)
{
	*die ^= *die >> 12;
	*die ^= *die << 25;
	*die ^= *die >> 27;
	return (*die * UINT64_C(0x2545f4914f6cdd1d)) >> 16;
}

/* Any bytes are records; small numbers mean something more often. */
static size_t make(uint64_t *die, uint8_t bytes[INPUT_MOST])
{
	size_t length = ATTACK_TERMS + roll(die) % (roll(die) % 4 ? 300 : 1500);

	for (size_t index = 0; index < length; index++)
		bytes[index] = (uint8_t)(roll(die) % 3 ? roll(die) % 40 : roll(die));
	return length;
}

static int save(const char *path, const uint8_t *bytes, size_t length)
{
	FILE *file = fopen(path, "we");

	if (!file || fwrite(bytes, 1, length, file) != length || fclose(file)) {
		perror(path);
		return 1;
	}
	return 0;
}

static int replay(const char *path)
{
	uint8_t *bytes = malloc(INPUT_MOST * 16);
	FILE *file = fopen(path, "re");
	size_t length;

	if (!file || !bytes) {
		perror(path);
		free(bytes);
		return 1;
	}
	length = fread(bytes, 1, INPUT_MOST * 16, file);
	fclose(file);
	/* Of exactly that size, so that a look beyond it is noticed. */
	bytes = realloc(bytes, length ? length : 1);
	attack(bytes, length);
	free(bytes);
	printf("ok   %s\n", path);
	return 0;
}

static int run_random(double seconds, uint64_t seed)
{
	int64_t end = clock_now() + (int64_t)(seconds * 1e9);
	uint64_t die = seed * 2 + 1;
	unsigned long count = 0;

	for (; clock_now() < end; count++) {
		uint8_t bytes[INPUT_MOST];
		size_t length = make(&die, bytes);

		if (save("fuzz-failed", bytes, length))
			return 1;
		attack(bytes, length);
	}
	remove("fuzz-failed");
	printf("ok   %lu random inputs, seed %llu\n", count, (unsigned long long)seed);
	return 0;
}

/* One packet of a real peer: its addresses are those of this world. */
static int save_packet(const char *folder, const char *name, const uint8_t *packet, size_t length)
{
	uint8_t bytes[INPUT_MOST] = { 0 };
	size_t header = (packet[0] >> 4 == 4 ? 20 : 40) + 8, payload = length - header;
	char path[512];

	bytes[ATTACK_TERMS] = ATTACK_RAW | 16;
	bytes[ATTACK_TERMS + 1] = packet[0] >> 4 == 4 ? 1 : 5 + 12 * 4; /* from .2 to .1 */
	bytes[ATTACK_TERMS + 2] = ATTACK_RAW_ICRC;
	payload -= ICRC_SIZE;
	bytes[ATTACK_TERMS + 3] = (uint8_t)payload;
	bytes[ATTACK_TERMS + 4] = (uint8_t)(payload >> 8);
	memcpy(bytes + ATTACK_TERMS + 5, packet + header, payload);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return save(path, bytes, ATTACK_TERMS + 5 + payload);
}

static int save_seeds(const char *folder)
{
#define PACKET(name)                                                                                                   \
	{                                                                                                              \
#name, vector_##name, sizeof(vector_##name)                                                            \
	}
	static const struct {
		const char *name;
		const uint8_t *bytes;
		size_t length;
	} packets[] = {
		PACKET(request4),     PACKET(reply4),	     PACKET(ready4),	 PACKET(send_only4),
		PACKET(acknowledge4), PACKET(read_request4), PACKET(read_only4), PACKET(write_only4),
		PACKET(disconnect4),  PACKET(disconnected4), PACKET(request6),	 PACKET(send_only6),
	};
	uint64_t die = 1;

	for (size_t index = 0; index < sizeof(packets) / sizeof(packets[0]); index++)
		if (save_packet(folder, packets[index].name, packets[index].bytes, packets[index].length))
			return 1;
	for (unsigned index = 0; index < SEEDS; index++) {
		uint8_t bytes[INPUT_MOST];
		size_t length = make(&die, bytes);
		char path[512];

		snprintf(path, sizeof(path), "%s/random%u", folder, index);
		if (save(path, bytes, length))
			return 1;
	}
	return 0;
}

int main(int count, char **words)
{
	if (count >= 3 && !strcmp(words[1], "--random"))
		return run_random(atof(words[2]), count > 3 ? strtoull(words[3], NULL, 0) : 1);
	if (count == 3 && !strcmp(words[1], "--seeds"))
		return save_seeds(words[2]);
	for (int index = 1; index < count; index++)
		if (replay(words[index]))
			return 1;
	return 0;
}
