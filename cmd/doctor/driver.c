/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/doctor/driver.h"

#include <string.h>

enum {
	MAPS_LINES_MOST = 4096
};

/* Linux: drivers/infiniband/hw and the network drivers below it; rdma-core: providers. */
const struct driver driver_table[DRIVER_CARDS + 2] = {
	{ "mlx5_core", "mlx5_ib", "mlx5", true },
	{ "mlx4_core", "mlx4_ib", "mlx4", true },
	{ "bnxt_en", "bnxt_re", "bnxt_re", false },
	{ "ice", "irdma", "irdma", false },
	{ "i40e", "irdma", "irdma", false },
	{ "cxgb4", "iw_cxgb4", "cxgb4", true },
	{ "qede", "qedr", "qedr", false },
	{ "be2net", "ocrdma", "ocrdma", false },
	{ "efa", "efa", "efa", true },
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

/* The folder of libibverbs in this process, and the one of its providers below it. */
static bool provider_folder(const char *root, char folder[MACHINE_PATH_SIZE])
{
	char path[MACHINE_PATH_SIZE];
	char line[MACHINE_PATH_SIZE];
	FILE *maps = machine_open(machine_path(path, "%s/proc/self/maps", root));
	char *library = NULL;

	if (!maps)
		return false;
	for (unsigned i = 0; i < MAPS_LINES_MOST && !library && fgets(line, sizeof(line), maps); i++)
		library = strstr(line, "/libibverbs.so");
	fclose(maps);
	if (!library)
		return false;
	*library = 0;
	library = strchr(line, '/');
	if (library)
		machine_path(folder, "%s%s/libibverbs", root, library);
	return library;
}

enum provider_state provider_find(const char *root, const char *provider, char file[MACHINE_NAME_SIZE])
{
	char path[MACHINE_PATH_SIZE];
	char prefix[MACHINE_NAME_SIZE];
	struct names names;
	bool found = false;

	*file = 0;
	if (!provider_folder(root, path))
		return PROVIDER_UNKNOWN;
	names = machine_names(path);
	snprintf(prefix, sizeof(prefix), "lib%s-rdmav", provider);
	for (size_t i = 0; i < names.count && !found; i++) {
		found = !strncmp(names.name[i], prefix, strlen(prefix));
		if (found)
			strcpy(file, names.name[i]);
	}
	machine_names_free(&names);
	if (!found)
		return PROVIDER_NO_LIBRARY;
	found = machine_has("%s/etc/libibverbs.d/%s.driver", root, provider);
	return found ? PROVIDER_FOUND : PROVIDER_NO_FILE;
}
