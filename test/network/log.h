/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of the program are counted and not printed (log.wrap); the word defect in one is a violation. */
#ifndef TEST_NETWORK_LOG_H
#define TEST_NETWORK_LOG_H

/* Number of errors reported, except to a log that discards them. */
unsigned network_complaints(void);

/* Those of them about requests that never became a connection, which are no failure of a persistent server. */
unsigned network_strangers(void);

#endif
