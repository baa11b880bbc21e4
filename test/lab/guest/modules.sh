# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Loads missing modules, in the image's order. A scenario may have unloaded some; the next one gets them back.

load_modules() {
	while read -r lab_module; do
		[ -d "/sys/module/$lab_module" ] || insmod "/lib/modules/$lab_module.ko" || return 1
	done </lib/modules/order
}
