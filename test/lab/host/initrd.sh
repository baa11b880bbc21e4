# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Puts one run's initramfs together: the cached base, an overlay if asked for, and a
# small archive with what changes from run to run. The kernel unpacks archives that
# follow each other as if they were one, so a rebuilt program costs nothing.

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
	ln "$artefacts/kernel/kernel" "$artefacts/image/base.cpio" "$artefacts/valgrind/valgrind.cpio" "$1/"
}

# Writes $1/run.cpio with the lab's own files, the scenarios and the program under test.
make_run_archive() {
	local work=$1 program=${RDMATEST:-$repo_dir/build/rdmatest} root=$1/root name
	local bin=$root/opt/rdmatest/bin
	mkdir -p "$root/lab" "$bin" "$root/usr/bin"
	cp "$lab_dir"/guest/* "$root/lab/"
	mv "$root/lab/init" "$root/init"
	mv "$root/lab/run-scenario" "$root/usr/bin/run-scenario"
	ln -s /usr/bin/run-scenario "$root/lab/run-scenario"
	# A part of a scenario may be a link to a document.
	cp -rL "$scenario_dir" "$root/scenarios"
	if [ -x "$program" ]; then
		cp -L "$program" "$bin/rdmatest"
		for name in rping ucmatose mckey; do
			ln -s rdmatest "$bin/$name"
		done
		cpio --list --quiet <"$work/base.cpio" >"$work/base.names"
		add_program_libraries "$root" "$program" "$work/base.names"
	else
		complain "there is no program under test at $program; scenarios that use it will fail"
	fi
	# The conformance suite of transport.h is a program of its own, built beside it.
	if [ -x "${program%/*}/conformance" ]; then
		cp -L "${program%/*}/conformance" "$bin/conformance"
	fi
	(cd "$root" && find . -print0 | cpio --null --quiet --create --format=newc --owner=0:0) >"$work/run.cpio"
	rm -rf "$root"
}

# The initramfs for overlay $2 ("none" or a name) in $1; made once a run.
initrd_for() {
	local work=$1 overlay=$2 file=$1/initrd.$2 mine=$1/initrd.$2.$BASHPID
	if [ ! -e "$file" ]; then
		local parts=("$work/base.cpio")
		if [ "$overlay" != none ]; then
			[ -e "$work/$overlay.cpio" ] || die "there is no overlay $overlay"
			parts+=("$work/$overlay.cpio")
		fi
		cat "${parts[@]}" "$work/run.cpio" >"$mine"
		mv "$mine" "$file"
	fi
	REPLY=$file
}
