/* SPDX-License-Identifier: BSD-2-Clause */
/* Two command lines against each other, or one alone, in one process and on one loop, on the provider. */
#pragma once

#include "cmd/child_run.h"
#include "test/unit/unit.h"
#include "test/verbs/provider/provider.h"

struct pair {
	struct errors errors;
	struct run run;
	const char *timeout;
	struct child_run server, client;
	const char *client_line;
	void (*begun)(struct pair *pair); /* called before the server */
	void (*ready)(struct pair *pair); /* called once a client may connect, before there is one */
	void (*later)(struct pair *pair); /* called that long after it */
	int later_ms;
	int grace_ms; /* of the end whose peer has ended; 0: 150 */
	struct loop_timer timer, moment;
	enum outcome server_outcome, client_outcome;
	char *server_text, *client_text; /* their output */
	struct capture capture;		 /* of stderr */
};

/*
 * Runs both until they end: "rping -s ..." and "rping -c ...". In them '@' is the address, '#' the group, and
 * "--timeout" is added (timeout: NULL for 5s). The client starts when the server is ready; when one has ended, the
 * other gets a grace period and is then interrupted. A line may be NULL.
 */
void pair_run(struct pair *pair, const char *server_line, const char *client_line, const char *timeout);
/* Frees the output. */
void pair_free(struct pair *pair);

/* Runs a command line such as "rping -s" by itself, as main() does, with what it writes in errors and text, which is to
 * be freed. */
enum outcome line_run(const char *line, struct capture *errors, char **text);

/* If the condition is false, fails with the pair's output and command lines; else ends the pair and the provider. */
void pair_finish(struct pair *pair, const char *tried, bool good);
