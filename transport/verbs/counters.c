/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's counters: the files in its /sys folders hw_counters and counters, which differ by driver, and its
 * interface's counters of pauses, which only ethtool has. The kernel caches hw_counters for some 10 ms (the file
 * lifespan): a shorter run shows no increase.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/ethtool.h"
#include "core/sysfs.h"
#include "transport/verbs/verbs.h"

enum {
	COUNTERS_MAX = 256, /* per folder; mlx5 and bnxt_re have less than 100 */
};

struct counter {
	struct network_counter base;
	uint64_t begun;
	uint32_t place, count; /* among the interface's statistics; 0 of 0: a file */
	char path[];	       /* or "INTERFACE/NAME"; base.name is its end */
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

/* Returns NULL if the port has one of that name. */
static struct counter *add(struct verbs_domain *domain, const char *path, uint64_t begun)
{
	struct network_counter **place = find(domain, strrchr(path, '/') + 1);
	struct counter *counter = *place ? NULL : calloc(1, sizeof(*counter) + strlen(path) + 1);

	if (!counter)
		return NULL;
	memcpy(counter->path, path, strlen(path));
	counter->begun = begun;
	counter->base.device = domain->base.device;
	counter->base.port = domain->port;
	counter->base.name = strrchr(counter->path, '/') + 1;
	*place = &counter->base;
	return counter;
}

static void add_folder(struct verbs_domain *domain, const char *folder)
{
	char path[SYSFS_PATH_SIZE], file[SYSFS_PATH_SIZE];
	struct dirent **entries;
	uint64_t begun;
	int count;

	sysfs_path(path, "/sys/class/infiniband/%s/ports/%u/%s", domain->base.device, domain->port, folder);
	/* Not sysfs_names(): irdma has names with blanks. */
	count = scandir(path, &entries, NULL, versionsort);
	for (int i = 0; i < count; i++) {
		if (i < COUNTERS_MAX && counts(entries[i]->d_name) &&
		    read_number(sysfs_path(file, "%s/%s", path, entries[i]->d_name), &begun))
			add(domain, file, begun);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

static void add_pauses(struct verbs_domain *domain)
{
	char interface[SYSFS_TEXT_SIZE], path[SYSFS_PATH_SIZE];
	struct ethtool_gstrings *names = NULL;
	struct ethtool_stats *values = NULL;

	if (sysfs_name(interface, "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/0", domain->base.device,
		       domain->port)) {
		names = ethtool_statistics(interface, ETHTOOL_GSTRINGS);
		values = ethtool_statistics(interface, ETHTOOL_GSTATS);
	}
	for (uint32_t i = 0; names && values && names->len == values->n_stats && i < names->len; i++) {
		const char *name = path + strlen(interface);
		struct counter *counter = NULL;

		sysfs_path(path, "%s/%.*s", interface, ETH_GSTRING_LEN, names->data + (size_t)i * ETH_GSTRING_LEN);
		if (strstr(name, "pause") || strstr(name, "xoff") || strstr(name, "pfc"))
			counter = add(domain, path, values->data[i]);
		if (!counter)
			continue;
		counter->place = i;
		counter->count = names->len;
	}
	free(names);
	free(values);
}

void verbs_counters_begin(struct verbs_domain *domain)
{
	/* Counters of a device that was removed and came back continue. */
	if (*find(domain, NULL))
		return;
	add_folder(domain, "hw_counters");
	add_folder(domain, "counters");
	if (WITH_EXTRAS)
		add_pauses(domain);
}

/*
 * values: those of the last counter's interface, or NULL if its driver did not answer. A driver whose statistics have
 * changed is not read. last: NULL at first.
 */
static bool read_pauses(const struct counter *counter, const struct network_counter *last,
			struct ethtool_stats **values, uint64_t *number)
{
	size_t length = (size_t)(counter->base.name - 1 - counter->path);
	char interface[SYSFS_TEXT_SIZE];

	if (!last || last->device != counter->base.device || last->port != counter->base.port) {
		free(*values);
		*values = ethtool_statistics(log_text(interface, sizeof(interface), "%.*s", (int)length, counter->path),
					     ETHTOOL_GSTATS);
	}
	if (!*values || (*values)->n_stats != counter->count)
		return false;
	*number = (*values)->data[counter->place];
	return true;
}

void verbs_counters_update(struct transport *transport)
{
	const struct network_counter *last = NULL;
	struct ethtool_stats *values = NULL;

	for (struct network_counter *next = transport->counters; next; next = next->next) {
		const struct counter *counter = (const struct counter *)next;
		uint64_t number;

		if ((counter->count ? read_pauses(counter, last, &values, &number)
				    : read_number(counter->path, &number)) &&
		    number > counter->begun)
			next->increase = number - counter->begun;
		if (counter->count)
			last = next;
	}
	free(values);
}

void verbs_counters_free(struct verbs_transport *transport)
{
	struct network_counter *counter;

	while ((counter = transport->base.counters)) {
		transport->base.counters = counter->next;
		free(counter);
	}
}
