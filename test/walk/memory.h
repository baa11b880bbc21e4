/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_WALK_MEMORY_H
#define TEST_WALK_MEMORY_H

/* Returns the number of blocks that are allocated and not freed. */
long memory_held(void);

#endif
