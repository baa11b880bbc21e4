# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Makes the guest's base initramfs: programs, every library they need, and /etc.

library_path=usr/lib/x86_64-linux-gnu

# The programs taken from the unpacked packages; the rest of each package stays out.
guest_programs='ip tc rdma bridge rping ucmatose mckey cmtime ib_send_bw ib_send_lat
	ib_write_bw ib_write_lat ib_read_bw ib_read_lat ibv_devinfo ibv_devices strace jq'

# Libraries not named by any program: providers are opened at run time, libgcc_s by pthread_exit, nss modules by name
# look-ups, libev by the program under test. libstdbuf makes stock tools write line by line, so that a scenario can wait for
# one.
guest_extra_libraries='libibverbs/librxe-rdmav*.so libibverbs/libsiw-rdmav*.so
	libgcc_s.so.1 libnss_files.so.2 libnss_dns.so.2 libresolv.so.2 libev.so.4
	libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1'

needed_libraries() {
	objdump -p "$1" 2>/dev/null | sed -n 's/^ *NEEDED *//p'
}

# Copies to root $1 every library that its file $2 needs, found below $3.
copy_libraries() {
	local root=$1 file=$2 from=$3 library found
	for library in $(needed_libraries "$file"); do
		if [ -e "$root/$library_path/$library" ]; then
			continue
		fi
		found=
		for candidate in "$from/$library_path/$library" "$from/lib/x86_64-linux-gnu/$library"; do
			if [ -e "$candidate" ]; then
				found=$candidate
			fi
		done
		[ -n "$found" ] ||
			die "${file##*/} needs $library, which no package of guest/packages holds"
		cp -L "$found" "$root/$library_path/$library"
		copy_libraries "$root" "$root/$library_path/$library" "$from"
	done
}

copy_program() {
	local root=$1 name=$2 from=$3 place
	for place in bin sbin usr/bin usr/sbin; do
		if [ -e "$from/$place/$name" ]; then
			cp -L "$from/$place/$name" "$root/usr/bin/$name"
			copy_libraries "$root" "$root/usr/bin/$name" "$from"
			return
		fi
	done
	die "no package of guest/packages holds the program $name"
}

# copy_extra_library ROOT PATTERN FROM: rdma-core changes the version in a provider's name.
copy_extra_library() {
	local root=$1 name=$2 from=$3 place found
	for place in "$library_path" lib/x86_64-linux-gnu; do
		for found in "$from/$place"/$name; do
			[ -e "$found" ] || continue
			name=${found#"$from/$place/"}
			cp -L "$found" "$root/$library_path/$name"
			copy_libraries "$root" "$root/$library_path/$name" "$from"
			return
		done
	done
	die "no package of guest/packages holds the library $name"
}

write_etc() {
	local etc=$1/etc
	mkdir -p "$etc/libibverbs.d"
	printf 'driver rxe\n' >"$etc/libibverbs.d/rxe.driver"
	printf 'driver siw\n' >"$etc/libibverbs.d/siw.driver"
	printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$etc/group"
	printf 'passwd: files\ngroup: files\nhosts: files\nservices: files\n' >"$etc/nsswitch.conf"
	# No name service: an unknown name must fail at once, not after a timeout.
	: >"$etc/resolv.conf"
	cat >"$etc/hosts" <<-HOSTS
		127.0.0.1 localhost
		::1 localhost
		10.0.0.1 first
		10.0.0.2 second
		fd00::1 first6
		fd00::2 second6
	HOSTS
}

# busybox links for all missing tools, because tools may exec each other. link_busybox ROOT [EMULATOR]
link_busybox() {
	local root=$1 applet
	for applet in $(${2-} "$root/usr/bin/busybox" --list); do
		[ -e "$root/usr/bin/$applet" ] || ln -s busybox "$root/usr/bin/$applet"
	done
}

pack() {
	(cd "$1" && find . | sort | pack_files)
}

# The lab's own programs are static, so that they also run in the bare image. add_own_program ROOT NAME [PREFIX]
add_own_program() {
	"${3-}gcc" -O2 -Wall -Wextra -static -s -o "$1/usr/bin/$2" "$lab_dir/guest/$2.c"
}

# Makes base.cpio and bare.cpio in $1 from the unpacked packages below $2.
make_image() {
	local target=$1 from=$2 root=$1.root name
	mkdir -p "$target" "$root"/{usr/bin,$library_path/libibverbs,usr/lib64,dev,proc,sys,tmp,run,root,lab}
	for name in bin sbin; do
		ln -s usr/bin "$root/$name"
	done
	ln -s bin "$root/usr/sbin"
	ln -s usr/lib "$root/lib"
	ln -s usr/lib64 "$root/lib64"
	cp "$from/bin/busybox" "$root/usr/bin/busybox"
	cp -L "$from/lib64/ld-linux-x86-64.so.2" "$root/usr/lib64/"
	ln -s ../../lib64/ld-linux-x86-64.so.2 "$root/$library_path/ld-linux-x86-64.so.2"
	for name in $guest_programs; do
		copy_program "$root" "$name" "$from"
	done
	for name in $guest_extra_libraries; do
		copy_extra_library "$root" "$name" "$from"
	done
	cp "$from/usr/libexec/coreutils/libstdbuf.so" "$root/$library_path/"
	add_own_program "$root" launch
	link_busybox "$root"
	write_etc "$root"
	pack "$root" >"$target/base.cpio"
	rm -rf "$root"
	make_bare_image "$target/bare.cpio" "$from/bin/busybox" "$root"
}

# The image without libraries, dynamic loader and tools except busybox: in the file $1. With a compiler prefix and an
# emulator it is for another processor.
make_bare_image() {
	local busybox=$2 root=$3 prefix=${4-} emulator=${5-}
	mkdir -p "$root"/{bin,usr/bin,dev,etc,proc,sys,tmp,run,root,lab,lib}
	cp "$busybox" "$root/usr/bin/busybox"
	link_busybox "$root" "$emulator"
	ln -s ../usr/bin/sh "$root/bin/sh"
	add_own_program "$root" launch "$prefix"
	add_own_program "$root" add_rxe "$prefix"
	pack "$root" >"$1"
	rm -rf "$root"
}
