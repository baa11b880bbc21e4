# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Finds the kernel modules the guest needs and the order in which they load.
# The dependencies are read from each module itself, so no kmod is needed on the host.

wanted_modules='virtio_pci virtio_console virtio_net
	ib_uverbs rdma_ucm rdma_rxe veth sch_netem sch_ingress cls_u32 act_gact dummy bridge tun'
# Requested by name at run time (rxe at "rdma link add", siw at its first connection), or by siw, without a recorded
# dependency; newer kernels have their code built in.
older_modules='crc32_generic crc32c_generic libcrc32c'

module_order=()

# Newer kernels' modules are compressed.
module_file() {
	local name=$1 tree=$2 file
	file=$(find "$tree" -name "${name//_/[_-]}.ko*" -print -quit)
	case $file in
	*.xz) xz -d "$file" ;;
	esac
	printf '%s\n' "${file%.xz}"
}

# Built in means there is no file to load.
is_builtin() {
	grep -qE "/(${1}|${1//_/-})\.ko$" "$2/modules.builtin"
}

# Appends a module after everything it depends on.
add_module() {
	local name=$1 tree=$2 file depends part known
	for known in "${module_order[@]}"; do
		if [ "$(basename "$known" .ko | tr - _)" = "${name//-/_}" ]; then
			return
		fi
	done
	file=$(module_file "$name" "$tree")
	if [ -z "$file" ]; then
		is_builtin "$name" "$tree" && return
		die "kernel module $name is not in the kernel package"
	fi
	depends=$(tr '\0' '\n' <"$file" | awk '!found && sub(/^depends=/, "") { print; found = 1 }')
	for part in ${depends//,/ }; do
		add_module "$part" "$tree"
	done
	module_order+=("$file")
}

# Copies the wanted modules of the kernel tree $1 to $2 with a file "order".
collect_modules() {
	local tree=$1 target=$2 name file
	module_order=()
	mkdir -p "$target"
	for name in $older_modules; do
		[ -z "$(module_file "$name" "$tree")" ] || add_module "$name" "$tree"
	done
	for name in $wanted_modules; do
		add_module "$name" "$tree"
	done
	# Under the kernel's name for them, so that the guest need not translate.
	for file in "${module_order[@]}"; do
		name=$(basename "$file" .ko | tr - _)
		cp "$file" "$target/$name.ko"
		printf '%s\n' "$name" >>"$target/order"
	done
}
