# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Paths and small helpers shared by the lab's host-side scripts. The reading script sets lab_dir (the folder test/lab).

repo_dir=$(cd "$lab_dir/../.." && pwd)
artefacts=${LAB_BUILD:-$(realpath -m "${BUILD:-$repo_dir/build}")/lab}

# The lab's own test has scenarios that fail on purpose, elsewhere.
scenario_dir=${LAB_SCENARIOS:-$lab_dir/scenarios}

complain() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
	complain "$*"
	exit 1
}

# Makes a folder for one run in REPLY, and removes those of killed runs. A lock identifies them, because a process ID is not
# valid in another PID namespace.
make_run_folder() {
	local folder lock
	mkdir -p "$artefacts"
	for folder in "$artefacts"/run.*; do
		[ ! -f "$folder/lock" ] || flock -n "$folder/lock" rm -rf "$folder" || :
	done
	REPLY=$(mktemp -d "$artefacts/run.XXXXXX")
	exec {lock}>"$REPLY/new"
	flock "$lock"
	mv "$REPLY/new" "$REPLY/lock"
}

# An archive of the files whose names come in, as a kernel unpacks them.
pack_files() {
	cpio --quiet --create --format=newc --owner=0:0 --reproducible
}

# link_merged FOLDER: of unpacked packages. Newer ones have all files below usr; links the older places there.
link_merged() {
	local name
	for name in bin sbin lib lib64; do
		[ -e "$1/$name" ] || ln -s "usr/$name" "$1/$name"
	done
}
