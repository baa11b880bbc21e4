# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Loads what is not loaded yet, in the order the image lists. A scenario may have
# unloaded something; the next one gets it back.

load_modules() {
	while read -r lab_module; do
		[ -d "/sys/module/$lab_module" ] || insmod "/lib/modules/$lab_module.ko" || return 1
	done </lib/modules/order
}
