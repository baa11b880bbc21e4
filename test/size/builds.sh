# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The measured builds, and their figures in docs/size.md and README.md. To be read with "." from the project's folder; the
# reader has $log, a file for what a build prints.
BUILD=$(realpath -m "${BUILD:-build}")
export BUILD
builds=$BUILD/size
stripped=$builds/stripped
rm -rf "$stripped"
mkdir -p "$stripped"

# build_stripped NAME SETTING... [TARGET]: the program is $stripped/NAME. Built without debugging symbols, and without a commit in its
# version.
build_stripped() {
	local name=$1 prefix='' setting
	shift
	for setting in "$@"; do
		[ "${setting%%=*}" != CROSS_COMPILE ] || prefix=${setting#*=}
	done
	MAKEFLAGS='' nice make -j"$(nproc)" BUILD="$builds/$name" CFLAGS=-Os built_from= "$@" >"${log:?}" 2>&1 &&
		"${prefix}strip" -o "$stripped/$name" "$(find "$builds/$name" -name rdmatest -type f)"
}

# sum NAME...: of text, data and bss of all.
sum() {
	size -B "${@/#/$stripped/}" | awk 'NR > 1 { bytes += $4 } END { print bytes }'
}

# thousands: separated by commas, in a table, too
thousands() {
	sed -E ':again; s/(^|[ |-])([0-9]+)([0-9]{3})($|[ |.,])/\1\2,\3\4/; t again'
}

# cell FILE ROW COLUMN: of the first row that begins with this cell, without commas
cell() {
	awk -F' *[|] *' -v row="$2" -v column="$3" '$2 == row { gsub(",", "", $(column + 1)); print $(column + 1); exit }' "$1"
}

# set_cell FILE ROW COLUMN BYTES
set_cell() {
	awk -F'[|]' -v OFS='|' -v row=" $2 " -v column="$3" -v bytes=" $(thousands <<<"$4") " \
		'$2 == row && !done++ { $(column + 1) = bytes } { print }' "$1" >"$builds/page" && cp "$builds/page" "$1"
}

# When docs/size.md is measured.
# shellcheck disable=SC2034 # by the scripts that read this one
now="$(date -u +%F) after commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"

# Rows of docs/size.md and their rows in README.md.
in_readme=(
	'`make`' '`make`: all commands, both transports'
	'`make tiny`' '`make tiny`: the three commands with their classic options, on verbs'
	'stock rping, ucmatose and mckey' 'the three stock tools'
)

write_readme() {
	local i
	for ((i = 0; i < ${#in_readme[@]}; i += 2)); do
		set_cell README.md "${in_readme[i + 1]}" 2 "$(cell docs/size.md "${in_readme[i]}" 2)"
	done
}
