# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Unpacks Debian's kernel for the guest and builds the siw (iWARP) module, which
# Debian leaves out, against the same release.

# kernel_package ARCHITECTURE [OPTION...]: the package behind the metapackage, of apt-cache with these options.
kernel_package() {
	apt-cache "${@:2}" depends "linux-image-$1" 2>/dev/null |
		awk '!found && /Depends: linux-image-[0-9]/ { print $2; found = 1 }'
}

# Every package the kernel part is made of; $1 is the image package. What builds modules has other names in each release.
kernel_packages() {
	local release=${1#linux-image-}
	printf '%s\n' "$1" "linux-headers-$release" "linux-source-$(printf '%s' "$release" | cut -d. -f1,2)"
	apt-cache depends "linux-headers-$release" 2>/dev/null |
		awk '/Depends: linux-(headers-.*-common|kbuild-)/ { print $2 }'
}

unpack_only() {
	local archive=$1 target=$2
	mkdir -p "$target"
	dpkg-deb --fsys-tarfile "$archive" | tar -x -C "$target" --wildcards "${@:3}"
}

# Only siw's own folder of the kernel source is unpacked, straight from the package. What is behind it need not even be
# read, which is more than half: the archive is sorted, and drivers/infiniband/ulp comes next.
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

# Headers are used where they were unpacked: their one absolute path is redirected. No debugging information, which pahole
# would make.
build_siw() {
	local work=$1 release=$2 target=$3
	local headers=$work/headers/usr/src/linux-headers-$release
	printf 'include %s/usr/src/linux-headers-%s-common/Makefile\n' \
		"$work/headers" "${release%-amd64}" >"$headers/Makefile"
	make -s -C "$headers" M="$work/siw" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$work/siw.log" 2>&1 ||
		{ tail -n 20 "$work/siw.log" >&2; die "building siw.ko failed"; }
	strip --strip-debug -o "$target/siw.ko" "$work/siw/siw.ko"
	printf 'siw\n' >>"$target/order"
	tr '\0' '\n' <"$target/siw.ko" | grep -c "^vermagic=$release " >/dev/null ||
		die "siw.ko was not built for kernel $release"
}

# The kernel without its compression: unpacking it under emulation takes longer than
# the rest of the boot. QEMU boots the ELF file inside directly; should a later
# release compress otherwise, the packed kernel does as well, only slower.
unpack_kernel() {
	local packed=$1 target=$2 offset
	offset=$(LC_ALL=C grep -aboP '\xFD7zXZ\x00' "$packed" | awk -F: 'NR == 1 { print $1 }' || :)
	if [ -n "$offset" ]; then
		# What follows the compressed part makes xz complain at its end.
		tail -c "+$((offset + 1))" "$packed" | xz -dc >"$target" 2>/dev/null || :
	fi
	if ! readelf -h "$target" >/dev/null 2>&1; then
		cp "$packed" "$target"
	fi
}

# Of the modules only those that a guest could want, of the headers those of this processor: unpacking takes longer than
# building. A file for each setting of the kernel's is only there for make to look whether it is new.
no_modules=(--exclude='*/lib/modules/*/kernel/'{sound,drivers/{gpu,media,scsi,iio,usb},drivers/net/{ethernet,wireless}})
no_headers=(--exclude='*/arch/[a-wyz]*' --exclude='*/include/config/[A-Z0-9]*' --exclude='*/include/dt-bindings' --exclude='Kconfig*')

# Makes kernel and modules.cpio in $1 from the packages in $2, for image package $3.
make_kernel() {
	local target=$1 downloads=$2 release=${3#linux-image-}
	local work=$target.work archive kernel_version source_version
	local modules=$work/root/lib/modules
	mkdir -p "$target" "$modules" "$work/headers" "$work/image"
	kernel_version=$(dpkg-deb -f "$downloads/$3".deb Version)
	archive=$downloads/linux-source-$(printf '%s' "$release" | cut -d. -f1,2).deb
	source_version=$(dpkg-deb -f "$archive" Version)
	[ "$kernel_version" = "$source_version" ] ||
		die "kernel is $kernel_version but its source is $source_version"

	unpack_siw "$archive" "$work" &
	local unpacking=$!
	unpack_only "$downloads/$3.deb" "$work/image" "${no_modules[@]}" './boot/vmlinuz-*' '*/lib/modules/*'
	unpack_kernel "$work/image/boot/vmlinuz-$release" "$target/kernel"
	link_merged "$work/image"
	collect_modules "$work/image/lib/modules/$release" "$modules"
	for archive in "$downloads"/linux-headers-*.deb "$downloads"/linux-kbuild-*.deb; do
		unpack_only "$archive" "$work/headers" "${no_headers[@]}" '*'
	done
	wait "$unpacking" || die "unpacking siw's source failed"
	build_siw "$work" "$release" "$modules"
	# Without an entry for lib, which is a link in one of the images and a folder in the other.
	(cd "$work/root" && find lib/modules | sort | pack_files) >"$target/modules.cpio"
	rm -rf "$work"
}

# Makes kernel, modules.cpio and bare.cpio of another processor in $1: what a guest without a library boots.
make_arm64() {
	local target=$1 work=$1.work release
	mkdir -p "$target" "$work"
	apt_lists "$work/apt" deb arm64 >&2
	release=$(kernel_package arm64 "${apt_apart[@]}")
	apt_unpack "$work/image" download "$release" busybox-static >&2
	release=${release#linux-image-}
	link_merged "$work/image"
	cp "$work/image/boot/vmlinuz-$release" "$target/kernel"
	collect_modules "$work/image/lib/modules/$release" "$work/root/lib/modules"
	(cd "$work/root" && find lib/modules | sort | pack_files) >"$target/modules.cpio"
	make_bare_image "$target/bare.cpio" "$work/image/bin/busybox" "$target.root" aarch64-linux-gnu- qemu-aarch64-static
	rm -rf "$work"
}
