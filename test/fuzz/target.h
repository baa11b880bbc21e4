/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fuzz targets, in one program for every engine. A target takes any bytes, runs the real code on them, and aborts
 * if an invariant is violated (violation() of network.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef void target_function(const uint8_t *bytes, size_t length);

struct target {
	const char *name;
	target_function *function;
};

/* Ends with a NULL name. */
extern const struct target targets[];
/* NULL if there is no target of that name. */
const struct target *target_find(const char *name);

target_function attack;		 /* packets into two soft transports: attack.c */
target_function parse_datagram;	 /* mckey's parsing of datagrams, and its counts: formats.c */
target_function parse_answer;	 /* doctor's parsing of a socket's error queue */
target_function parse_addresses; /* typed addresses and quantities */
target_function parse_options;	 /* the command line of every command: command_line.c */
target_function peer_of_rping;	 /* a hostile peer of the real commands: peer.c */
target_function peer_of_ucmatose;
target_function peer_of_mckey;
