/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/doctor/driver.h"

#include <stdio.h>
#include <string.h>

/* Sources: drivers/infiniband/hw of Linux and the network drivers it uses; providers of rdma-core. */
const struct driver driver_table[DRIVER_CARDS + 2] = {
	{ "mlx5_core", "mlx5_ib", "mlx5", true },
	{ "mlx4_core", "mlx4_ib", "mlx4", true },
	{ "bnxt_en", "bnxt_re", "bnxt_re", false },
	{ "ice", "irdma", "irdma", false },
	{ "i40e", "irdma", "irdma", false },
	{ "cxgb4", "iw_cxgb4", "cxgb4", true },
	{ "qede", "qedr", "qedr", false },
	{ "be2net", "ocrdma", "ocrdma", false },
	{ "efa", "efa", "efa", true, .no_cm = true },
	{ "erdma", "erdma", "erdma", true },
	{ "hfi1", "hfi1", "hfi1verbs", true },
	{ "qib", "ib_qib", "ipathverbs", true },
	{ "ib_mthca", "ib_mthca", "mthca", true },
	{ "hns3", "hns_roce_hw_v2", "hns", false },
	{ "vmw_pvrdma", "vmw_pvrdma", "vmw_pvrdma", true },
	{ "mana", "mana_ib", "mana", false },
	{ "", "rdma_rxe", "rxe", false },
	{ "", "siw", "siw", false },
};

const struct driver *driver_of_card(const char *card)
{
	for (unsigned i = 0; i < DRIVER_CARDS; i++)
		if (!strcmp(driver_table[i].card, card))
			return &driver_table[i];
	return NULL;
}

/*
 * Finds the first mapped file of this process whose path contains part. path gets the path before part, file the path
 * after its slash.
 */
static bool find_mapped_file(const char *root, const char *part, char path[SYSFS_PATH_SIZE], char file[SYSFS_TEXT_SIZE])
{
	char line[SYSFS_PATH_SIZE];
	char *found = sysfs_find(sysfs_path(line, "%s/proc/self/maps", root), part);

	if (!found)
		return false;
	snprintf(file, SYSFS_TEXT_SIZE, "%.*s", (int)strcspn(found + 1, " \n"), found + 1);
	*found = 0;
	strcpy(path, line + strcspn(line, "/"));
	return true;
}

enum provider_state provider_find(const char *root, const char *provider, char file[SYSFS_TEXT_SIZE])
{
	char directory[SYSFS_PATH_SIZE], path[SYSFS_PATH_SIZE];
	char prefix[SYSFS_TEXT_SIZE];
	struct names names;
	bool found = false;

	snprintf(prefix, sizeof(prefix), "/lib%s-rdmav", provider);
	if (find_mapped_file(root, prefix, directory, file))
		return PROVIDER_FOUND;
	if (!find_mapped_file(root, "/libibverbs.so", directory, file))
		return PROVIDER_UNKNOWN;
	names = sysfs_names(sysfs_path(path, "%s%s/libibverbs", root, directory));
	for (int i = 0; i < names.count && !found; i++) {
		strcpy(file, names.entries[i]->d_name);
		found = !strncmp(file, prefix + 1, strlen(prefix + 1));
	}
	sysfs_names_free(&names);
	if (!found)
		return PROVIDER_NO_LIBRARY;
	found = sysfs_has("%s/etc/libibverbs.d/%s.driver", root, provider);
	return found ? PROVIDER_FOUND : PROVIDER_NO_FILE;
}
