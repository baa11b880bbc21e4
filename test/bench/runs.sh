# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Measured runs of the program, for benches here (bash) and in the lab's guests (busybox), with files in the current folder.
# To be read with "."; the reader has:
#   program            our program, a command split at commas: ip,netns,exec,apart,/opt/rdmatest/bin/rdmatest
#   transport address  what it uses

runs_serve() {
	: >runs.server
	# shellcheck disable=SC2046 # commands with their arguments
	$(echo "${program:?}" | tr , ' ') "$@" --transport "${transport:?}" --deadline 200s >runs.server 2>&1 &
	runs_server=$!
	runs_tries=0
	until grep -qE ' (listening|ready) on ' runs.server; do
		runs_tries=$((runs_tries + 1))
		[ "$runs_tries" -lt 400 ] || break
		sleep 0.02
	done
}

runs_client() {
	# shellcheck disable=SC2046
	$(echo "${program:?}" | tr , ' ') "$@" --transport "${transport:?}" --deadline 200s --json >runs.client 2>runs.errors ||
		{ cat runs.errors runs.server >&2; return 1; }
}

# runs_figure NAME: from the client's report.
runs_figure() {
	sed -n "s/.*\"$1\":\([0-9.e+]*\).*/\1/p" runs.client
}

# The microseconds from start to end of the client's run, per operation.
runs_share() {
	runs_figure duration_ns | awk -v count="$1" '{ printf "%.4g\n", $1 / 1000 / count }'
}

# messaging SIZE COUNT: the time of a message of that size, of COUNT each way, one way after the other.
messaging() {
	runs_serve ucmatose -b "${address:?}" -S "$1" -C "$2"
	runs_client ucmatose -s "$address" -S "$1" -C "$2" && wait "$runs_server" || return
	runs_share $((2 * $2))
}

# messages PROGRAM TRANSPORT ADDRESS SIZE COUNT: the same in millions of bytes a second. Connecting is part of the time: let
# it run for a second.
messages() {
	program=$1 transport=$2 address=$3
	runs_each=$(messaging "$4" "$5") && awk "BEGIN { printf \"%.1f\\n\", $4 / $runs_each }"
}
