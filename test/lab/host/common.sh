# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Paths and small helpers shared by the lab's host-side scripts.
# Wants lab_dir (the folder test/lab) to be set by the script that reads it.

# shellcheck disable=SC2154 # set by the reader
repo_dir=$(cd "$lab_dir/../.." && pwd)
# shellcheck disable=SC2034 # used by the readers
artefacts=${LAB_BUILD:-$repo_dir/build/lab}

complain() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
	complain "$*"
	exit 1
}

# The names in a package list: comments and blank lines dropped.
package_names() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' -e 's/[[:space:]]//g' "$1"
}

# Seconds since some fixed point with one decimal, without a fork.
tenths_now() {
	local whole rest
	read -r whole rest </proc/uptime
	rest=${whole#*.}
	REPLY=$((${whole%.*} * 10 + 10#${rest:0:1}))
}
