/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of objects, oldest first, initially zeroed. An object has a link as a member for each list it can be in. */
#ifndef TRANSPORT_SOFT_BASE_LIST_H
#define TRANSPORT_SOFT_BASE_LIST_H

struct soft_link {
	void *object;
	struct soft_list *list; /* NULL: in none */
	struct soft_link *next, **pprev;
};

struct soft_list {
	struct soft_link *first, **last;
	unsigned count;
};

/* The link must not be in a list. */
void soft_list_append(struct soft_list *list, struct soft_link *link, void *object);
/* The link may be in no list. */
void soft_list_remove(struct soft_link *link);

#endif
