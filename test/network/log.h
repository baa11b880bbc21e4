/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of the program are counted and not printed (log.wrap); the word defect in one is a violation. */
#ifndef TEST_NETWORK_LOG_H
#define TEST_NETWORK_LOG_H

/* Errors that were told in all, but for those of a quiet log. */
unsigned network_complaints(void);

/* Those of them that are about who asked for a connection and never had it, which are no failure of a server that
 * stays. */
unsigned network_strangers(void);

#endif
