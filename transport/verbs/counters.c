/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's counters: the files in its /sys folders hw_counters and counters, which differ by driver. The kernel caches
 * hw_counters for some 10 ms (the file lifespan): a shorter run shows no increase.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/sysfs.h"
#include "transport/verbs/verbs.h"

enum {
	COUNTERS_MAX = 256, /* per folder; mlx5 and bnxt_re have less than 100 */
};

struct counter {
	struct network_counter base;
	uint64_t begun;
	char path[]; /* base.name is its end */
};

/* Returns false for text that is not a number, such as "N/A (no PMA)". */
static bool read_number(const char *path, uint64_t *number)
{
	char text[SYSFS_TEXT_SIZE], *end;

	sysfs_line(text, "%s", path);
	*number = strtoull(text, &end, 10);
	return end != text && !*end;
}

/* Returns the link to the port's counter of that name (NULL: any), or the list's end. */
static struct network_counter **find(const struct verbs_domain *domain, const char *name)
{
	struct network_counter **place = &domain->base.transport->counters;

	while (*place && ((*place)->device != domain->base.device || (*place)->port != domain->port ||
			  (name && strcmp((*place)->name, name) != 0)))
		place = &(*place)->next;
	return place;
}

/* Excludes bnxt_re's level files, and the file that sets the kernel's caching time. */
static bool counts(const char *name)
{
	static const char others[] = "active_\0watermark_\0db_fifo_register\0lifespan\0";

	for (const char *other = others; *other; other += strlen(other) + 1)
		if (!strncmp(name, other, strlen(other)))
			return false;
	return true;
}

static void add_counter(struct verbs_domain *domain, const char *path, const char *name)
{
	struct network_counter **place = find(domain, name);
	struct counter *counter;
	uint64_t begun;

	if (*place || !counts(name) || !read_number(path, &begun))
		return;
	counter = calloc(1, sizeof(*counter) + strlen(path) + 1);
	if (!counter)
		return;
	memcpy(counter->path, path, strlen(path));
	counter->begun = begun;
	counter->base.device = domain->base.device;
	counter->base.port = domain->port;
	counter->base.name = strrchr(counter->path, '/') + 1;
	*place = &counter->base;
}

static void add_folder(struct verbs_domain *domain, const char *folder)
{
	char path[SYSFS_PATH_SIZE], file[SYSFS_PATH_SIZE];
	struct dirent **entries;
	int count;

	sysfs_path(path, "/sys/class/infiniband/%s/ports/%u/%s", domain->base.device, domain->port, folder);
	/* Not sysfs_names(): irdma has names with blanks. */
	count = scandir(path, &entries, NULL, versionsort);
	for (int i = 0; i < count; i++) {
		if (i < COUNTERS_MAX)
			add_counter(domain, sysfs_path(file, "%s/%s", path, entries[i]->d_name), entries[i]->d_name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

void verbs_counters_begin(struct verbs_domain *domain)
{
	/* Counters of a device that was removed and came back continue. */
	if (*find(domain, NULL))
		return;
	add_folder(domain, "hw_counters");
	add_folder(domain, "counters");
}

void verbs_counters_update(struct transport *transport)
{
	for (struct network_counter *next = transport->counters; next; next = next->next) {
		const struct counter *counter = (const struct counter *)next;
		uint64_t number;

		if (read_number(counter->path, &number) && number > counter->begun)
			next->increase = number - counter->begun;
	}
}

void verbs_counters_free(struct verbs_transport *transport)
{
	struct network_counter *counter;

	while ((counter = transport->base.counters)) {
		transport->base.counters = counter->next;
		free(counter);
	}
}
