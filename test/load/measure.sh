# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What the long runs share: what they expect, the figures they leave, what a process takes, a long-lived server. To be read
# with "." after test/bench/apart.sh.

passed=0 failed=0
program=$(realpath "$BUILD/rdmatest")
export RDMATEST_TRANSPORT=soft
folder=$(mktemp -d)
# Whatever runs, by a name of ours: it is waited for, or ended at the end, by its number.
declare -A started=()
# shellcheck disable=SC2317 # the trap's
end_all() {
	local child
	for child in "${started[@]}"; do
		kill -KILL "$child" 2>/dev/null
	done
	rm -rf "$folder"
}
trap end_all EXIT

# expect WHAT COMMAND...: a line that can fail.
expect() {
	local what=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
		echo "ok   $what"
	else
		failed=$((failed + 1))
		echo "FAIL $what"
	fi
}

# figure NAME VALUE...: for whoever reads, and for test/load/document, in the file $figures.
figure() {
	printf '%-24s %s\n' "$1" "${*:2}"
	printf '%s\t%s\n' "$1" "${*:2}" >>"${figures:?}"
}

# verdict: the last line of a run; its status is the run's.
verdict() {
	echo "$passed passed, $failed failed"
	[ $failed -eq 0 ]
}

# Microseconds of a clock, without starting a process. It is that of the wall.
now() {
	REPLY=${EPOCHREALTIME/[.,]/}
}

# pause SECONDS, without starting a process.
exec {never}<> <(:)
pause() {
	read -r -t "$1" -u "$never"
}

# memory PID: the KiB that it has in memory.
memory() {
	local name value
	REPLY=0
	while read -r name value _; do
		[ "$name" != VmRSS: ] || REPLY=$value
	done 2>/dev/null <"/proc/$1/status"
}

# descriptors PID: how many it has open.
descriptors() {
	local list=("/proc/$1/fd/"*)
	REPLY=${#list[@]}
}

# serve OPTION...: a server of rping on 127.0.0.1, $server, once it is ready. Output in $folder/server.out and server.err.
serve() {
	local tries
	: >"$folder/server.out"
	"$program" rping -s -a 127.0.0.1 "$@" >"$folder/server.out" 2>"$folder/server.err" &
	server=$!
	started[server]=$server
	for ((tries = 0; tries < 500; tries++)); do
		! grep -q ' ready on ' "$folder/server.out" || return 0
		pause 0.02
	done
	echo "the server is not ready: $(cat "$folder/server.err")" >&2
	return 1
}

# targets COUNT: a file of as many connections to the server, by name. It is there as a whole, or not: others read it.
targets() {
	local mine=$folder/targets.$1.$BASHPID
	REPLY=$folder/targets.$1
	[ ! -e "$REPLY" ] || return 0
	awk -v count="$1" 'BEGIN { for (i = 0; i < count; i++) print "127.0.0.1" }' >"$mine"
	mv "$mine" "$REPLY"
}

# number NAME FILE: a number of a JSON summary, the first of that name.
number() {
	REPLY=$(sed 's/"targets":.*//' "$2" | grep -o "\"$1\":[0-9]*" | head -n 1)
	REPLY=${REPLY#*:}
}

# What the kernel says of our programs: crashes, want of memory. Nothing where it may not be read.
kernel_says() {
	dmesg 2>/dev/null | grep -E 'rdmatest|rping|ucmatose|Out of memory|oom-kill'
}
kernel_said=$(kernel_says)

# Nothing is left: no process of ours, no socket on our loopback, no line in the kernel's log.
nothing_is_left() {
	local left
	expect 'no process is left' [ -z "$(jobs -rp)" ]
	if [ "${BENCH_APART-}" = yes ]; then
		left=$(tail -qn +2 /proc/net/udp /proc/net/udp6 | wc -l)
		expect 'no socket is left' [ "$left" -eq 0 ]
	fi
	expect 'the kernel has not said a word of it' [ "$(kernel_says)" = "$kernel_said" ]
}
