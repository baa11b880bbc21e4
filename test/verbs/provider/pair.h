/* SPDX-License-Identifier: BSD-2-Clause */
/* Two command lines against each other, or one alone, in one process and on one loop, on the provider. */
#ifndef TEST_VERBS_PAIR_H
#define TEST_VERBS_PAIR_H

#include "cmd/child_run.h"
#include "test/unit/unit.h"
#include "test/verbs/provider/provider.h"

struct pair {
	struct errors errors;
	struct environment environment;
	const char *timeout;
	struct child_run server, client;
	const char *client_line;
	void (*begun)(struct pair *pair); /* called before the server */
	void (*ready)(struct pair *pair); /* called once a client may come, before there is one */
	void (*later)(struct pair *pair); /* and this so long after it */
	int later_ms;
	int grace_ms; /* of the one whose peer has ended; 0: 150 */
	struct loop_timer timer, moment;
	enum outcome server_outcome, client_outcome;
	char *server_text, *client_text; /* what they printed */
	struct capture capture;		 /* of stderr */
};

/*
 * Runs both to their ends: "rping -s ..." and "rping -c ...". In them '@' is the address, '#' the group, and
 * "--timeout" is added (timeout: NULL for 5s). The client comes when the server is ready; when one has ended, the other
 * has a moment and is then interrupted. A line may be NULL.
 */
void pair_run(struct pair *pair, const char *server_line, const char *client_line, const char *timeout);
/* Frees what it printed. */
void pair_free(struct pair *pair);

/* Fails with all that is known of it and of what was tried, unless it is good; else it and the provider have an end. */
void pair_finish(struct pair *pair, const char *tried, bool good);

#endif
