# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Puts one run's initramfs together: the cached base, an overlay if asked for, and a small archive with what changes from run
# to run. The kernel unpacks consecutive archives as one, so a rebuilt program costs nothing.

# Libraries the program links to that the base image lacks (sanitizers, for one).
add_program_libraries() {
	local root=$1 program=$2 base_names=$3 name path
	while read -r name path; do
		if ! grep -qx "usr/lib/x86_64-linux-gnu/$name" "$base_names"; then
			mkdir -p "$root/usr/lib/x86_64-linux-gnu"
			cp -L "$path" "$root/usr/lib/x86_64-linux-gnu/$name"
		fi
	done < <(ldd "$program" 2>/dev/null | sed -n 's/^\t\([^ ]*\) => \(\/[^ ]*\) (.*/\1 \2/p')
}

# Links the artefacts into the run's own folder: another run may replace them while
# this one still boots guests.
take_artefacts() {
	ln "$artefacts"/kernel/{kernel,modules.cpio} "$artefacts"/image/{base,bare}.cpio "$1/"
	local name
	[[ " ${overlays[*]-} " = *' arm64 '* ]] || return 0
	for name in kernel modules.cpio bare.cpio; do
		ln "$artefacts/arm64/$name" "$1/arm64.$name"
	done
}

# add_lab ROOT: the lab's own files and the scenarios.
add_lab() {
	local root=$1
	mkdir -p "$root/lab" "$root/usr/bin" "$root/opt/rdmatest/bin"
	cp "$lab_dir"/guest/* "$root/lab/"
	mv "$root/lab/init" "$root/init"
	mv "$root/lab/run-scenario" "$root/usr/bin/run-scenario"
	ln -s /usr/bin/run-scenario "$root/lab/run-scenario"
	cp -r "$scenario_dir" "$root/scenarios"
}

# add_program ROOT PROGRAM: with its links.
add_program() {
	local bin=$1/opt/rdmatest/bin name
	cp -L "$2" "$bin/rdmatest"
	for name in rping ucmatose mckey; do
		ln -s rdmatest "$bin/$name"
	done
}

pack_run() {
	(cd "$1" && find . | pack_files) >"$2"
	rm -rf "$1"
}

# Writes $1/run.cpio with the lab's own files, the scenarios and the program under test, and $1/run-bare.cpio with
# the static one.
make_run_archive() {
	local work=$1 program=${RDMATEST:-${BUILD:-$repo_dir/build}/rdmatest} root=$1/root tool
	add_lab "$root"
	if [ -x "$program" ]; then
		add_program "$root" "$program"
		! grep -qa __asan_init "$program" || touch "$root/lab/sanitized"
		cpio --list --quiet <"$work/base.cpio" >"$work/base.names"
		add_program_libraries "$root" "$program" "$work/base.names"
	else
		complain "there is no program under test at $program; scenarios that use it will fail"
	fi
	# transport.h's conformance suite is a separate program, built beside it; so are the misbehaving peers.
	for tool in conformance hostile; do
		[ ! -x "${program%/*}/$tool" ] || cp -L "${program%/*}/$tool" "$root/opt/rdmatest/bin/$tool"
	done
	cp "$lab_dir/../hardware/run" "$root/opt/rdmatest/bin/hardware"
	pack_run "$root" "$work/run.cpio"

	make_bare_run_archive "$work/run-bare.cpio" "${RDMATEST_STATIC:-${program%/*}/static/rdmatest}" "$root"
	if [ -e "$work/arm64.kernel" ]; then
		build_arm64
		make_bare_run_archive "$work/arm64.run.cpio" "$REPLY" "$root"
	fi
}

# make_bare_run_archive ARCHIVE PROGRAM ROOT
make_bare_run_archive() {
	add_lab "$3"
	[ ! -x "$2" ] || add_program "$3" "$2"
	pack_run "$3" "$1"
}

# The program of an arm64 host, as an image would have it, in REPLY.
build_arm64() {
	local settings folder=$artefacts/arm64.build
	readarray -t settings < <("$lab_dir/../sysroot" -n arm64)
	REPLY=$folder/static/rdmatest
	(cd "$repo_dir" && BUILD=$folder test/build "${settings[@]}" CONFIG=cmd/small.config STATIC_PROVIDERS=rxe static) >&2 ||
		complain "the arm64 program does not build"
}

# The initramfs for overlay $2 ("none", a name, or "bare", which has no base) and role $3 in $1; made once a run. With
# "arm64" guest b has that processor, and both are bare.
initrd_for() {
	local work=$1 overlay=$2
	[ "$overlay${3-}" = arm64b ] || overlay=${overlay/arm64/bare}
	local file=$work/initrd.$overlay mine=$work/initrd.$overlay.$BASHPID
	if [ ! -e "$file" ]; then
		local parts=("$work"/{base,modules,run}.cpio)
		if [ "$overlay" = bare ]; then
			parts=("$work"/{bare,modules,run-bare}.cpio)
		elif [ "$overlay" = arm64 ]; then
			parts=("$work"/arm64.{bare,modules,run}.cpio)
		fi
		cat "${parts[@]}" >"$mine"
		mv "$mine" "$file"
	fi
	REPLY=$file
}
