/* SPDX-License-Identifier: BSD-2-Clause */
/* Log messages are counted and not printed (log.wrap). A message with the word defect is a violation. */
#ifndef TEST_NETWORK_LOG_H
#define TEST_NETWORK_LOG_H

/* Returns the number of errors logged, except to a log that discards them. */
unsigned network_errors(void);

/* Returns how many of them are about requests that never became a connection, which are no failure of a persistent
 * server. */
unsigned network_request_errors(void);

#endif
