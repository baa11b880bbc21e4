# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Unpacks Debian's kernel for the guest and builds the siw (iWARP) module, which
# Debian leaves out, against the same release.

# Only siw's own folder of the kernel source is unpacked, straight from the package. More than half of the package, after
# this folder, need not be read: the archive is sorted, and drivers/infiniband/ulp comes next.
unpack_siw() {
	local archive=$1 work=$2 unpacking name
	mkfifo "$work/names"
	tar -xvJ -C "$work" --strip-components=4 --wildcards \
		'linux-source-*/drivers/infiniband/sw/siw/*' 'linux-source-*/drivers/infiniband/ulp/*' \
		< <(dpkg-deb --fsys-tarfile "$archive" 2>/dev/null | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' 2>/dev/null) \
		>"$work/names" &
	unpacking=$!
	while read -r name; do
		case $name in
		*/drivers/infiniband/ulp/*)
			kill "$unpacking" 2>/dev/null || :
			break
			;;
		esac
	done <"$work/names"
	wait "$unpacking" || :
	[ -s "$work/siw/siw_main.c" ]
}

# Headers are used where they were unpacked: their one absolute path is redirected. No debugging information, which would
# need pahole.
build_siw() {
	local work=$1 release=$2 target=$3
	local headers=$work/image/usr/src/linux-headers-$release
	sed -i "s#/usr/src/#$work/image/usr/src/#" "$headers/Makefile"
	make -s -C "$headers" M="$work/siw" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$work/siw.log" 2>&1 ||
		{ tail -n 20 "$work/siw.log" >&2; die "building siw.ko failed"; }
	strip --strip-debug -o "$target/siw.ko" "$work/siw/siw.ko"
	printf 'siw\n' >>"$target/order"
	tr '\0' '\n' <"$target/siw.ko" | grep -c "^vermagic=$release " >/dev/null ||
		die "siw.ko was not built for kernel $release"
}

# The kernel without its compression: unpacking it under emulation takes longer than the rest of the boot. QEMU boots the ELF
# file inside directly; if a later release compresses differently, the packed kernel also works, only slower.
unpack_kernel() {
	local packed=$1 target=$2 offset
	offset=$(LC_ALL=C grep -aboP '\xFD7zXZ\x00' "$packed" | awk -F: 'NR == 1 { print $1 }' || :)
	if [ -n "$offset" ]; then
		# The bytes after the compressed part make xz report an error at its end.
		tail -c "+$((offset + 1))" "$packed" | xz -dc >"$target" 2>/dev/null || :
	fi
	if ! readelf -h "$target" >/dev/null 2>&1; then
		cp "$packed" "$target"
	fi
}

# Only modules that a guest could need, and this processor's headers: unpacking takes longer than building. The file for each
# kernel setting only lets make check whether it has changed.
unneeded=(--exclude='*/lib/modules/*/kernel/'{sound,drivers/{gpu,media,scsi,iio,usb},drivers/net/{ethernet,wireless}}
	--exclude='*/arch/[a-wyz]*' --exclude='*/include/config/[A-Z0-9]*' --exclude='*/include/dt-bindings' --exclude='Kconfig*')

# The kernel and the folder of its modules in the unpacked packages below $1, wherever this release has them, in packed and tree.
find_kernel() {
	packed=$(find "$1" -name 'vmlinuz*' -type f -print -quit)
	tree=$(find "$1" -path '*/lib/modules/*/kernel' -printf '%h\n' -quit)
	[ -n "$packed" ] && [ -n "$tree" ] || die "no package that linux-image depends on holds a kernel and its modules"
}

# Makes kernel and modules.cpio in $1 from the packages in $2.
make_kernel() {
	local target=$1 downloads=$2 work=$1.work archive unpacking packed tree
	local modules=$work/root/lib/modules
	mkdir -p "$target" "$modules" "$work/image"
	unpack_siw "$downloads"/linux-source-*.deb "$work" &
	unpacking=$!
	for archive in "$downloads"/*.deb; do
		[[ $archive = */linux-source-* ]] || dpkg-deb --fsys-tarfile "$archive" | tar -x -C "$work/image" "${unneeded[@]}"
	done
	find_kernel "$work/image"
	unpack_kernel "$packed" "$target/kernel"
	collect_modules "$tree" "$modules"
	wait "$unpacking" || die "unpacking siw's source failed"
	build_siw "$work" "${tree##*/}" "$modules"
	# Without an entry for lib, which is a link in one of the images and a folder in the other.
	(cd "$work/root" && find lib/modules | sort | pack_files) >"$target/modules.cpio"
	rm -rf "$work"
}

# Makes kernel, modules.cpio and bare.cpio of another processor in $1: the boot files of a guest without libraries.
make_arm64() {
	local target=$1 work=$1.work packed tree names
	mkdir -p "$target" "$work"
	apt_lists "$work/apt" deb arm64 >&2
	readarray -t names < <(apt_needed "${apt_apart[@]}" linux-image-arm64 | grep -o '^linux-[^ ]*')
	apt_unpack "$work/image" download busybox-static "${names[@]}" >&2
	link_merged "$work/image"
	find_kernel "$work/image"
	cp "$packed" "$target/kernel"
	collect_modules "$tree" "$work/root/lib/modules"
	(cd "$work/root" && find lib/modules | sort | pack_files) >"$target/modules.cpio"
	make_bare_image "$target/bare.cpio" "$work/image/bin/busybox" "$target.root" aarch64-linux-gnu- qemu-aarch64-static
	rm -rf "$work"
}
