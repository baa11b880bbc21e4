/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/soft/base/list.h"

#include <stddef.h>

void soft_list_append(struct soft_list *list, struct soft_link *link, void *object)
{
	*link = (struct soft_link){ .object = object,
				    .list = list,
				    .pprev = list->count++ ? list->last : &list->first };
	*link->pprev = link;
	list->last = &link->next;
}

void soft_list_remove(struct soft_link *link)
{
	if (!link->list)
		return;
	*link->pprev = link->next;
	if (link->next)
		link->next->pprev = link->pprev;
	else
		link->list->last = link->pprev;
	link->list->count--;
	link->list = NULL;
}
