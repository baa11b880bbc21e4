# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Loads what is not loaded yet, in the order the image lists. A scenario may have
# unloaded something; the next one gets it back.

load_modules() {
	while read -r lab_module_file; do
		lab_module_name=$(echo "${lab_module_file%.ko}" | tr - _)
		[ -d "/sys/module/$lab_module_name" ] || insmod "/lib/modules/$lab_module_file" || return 1
	done </lib/modules/order
}
