# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# How cost grows, measured by benches here (bash) and in the lab's guests (busybox): lines "@ CURVE X VALUE", each a median. To
# be read with ".". The reader has:
#   program            our program, a command split at commas
#   transport address  what it uses
#   repeats            how often each point is measured; the first time is not counted

growth_serve() {
	: >growth.server
	# shellcheck disable=SC2046 # commands with their arguments
	$(echo "${program:?}" | tr , ' ') "$@" --transport "${transport:?}" --deadline 200s >growth.server 2>&1 &
	growth_server=$!
	growth_tries=0
	until grep -qE ' (listening|ready) on ' growth.server; do
		growth_tries=$((growth_tries + 1))
		[ "$growth_tries" -lt 400 ] || break
		sleep 0.02
	done
}

growth_run() {
	# shellcheck disable=SC2046
	$(echo "${program:?}" | tr , ' ') "$@" --transport "${transport:?}" --deadline 200s --json >growth.client 2>growth.errors ||
		{ cat growth.errors growth.server >&2; return 1; }
}

# growth_figure NAME: the first figure of that name in what the client reported.
growth_figure() {
	sed -n "s/.*\"$1\":\([0-9.e+]*\).*/\1/p" growth.client
}

# growth_point CURVE X COMMAND...: the command prints a value.
growth_point() {
	growth_curve=$1 growth_x=$2
	shift 2
	growth_turn=0
	: >growth.values
	while [ "$growth_turn" -le "${repeats:?}" ]; do
		growth_value=$("$@") && [ -n "$growth_value" ] || return 1
		[ "$growth_turn" -eq 0 ] || echo "$growth_value" >>growth.values
		growth_turn=$((growth_turn + 1))
	done
	sort -g growth.values | awk -v curve="$growth_curve" -v x="$growth_x" '
		{ value[NR] = $1 }
		END { print "@", curve, x, NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2 }'
}

# The microseconds from start to end of the client's run, each of so many.
growth_share() {
	growth_figure duration_ns | awk -v count="$1" '{ printf "%.4g\n", $1 / 1000 / count }'
}

# connecting COUNT: what it takes to make and end a connection, one of so many at once.
connecting() {
	growth_serve ucmatose -b "${address:?}" -c "$1" -C 0
	growth_run ucmatose -s "$address" -c "$1" -C 0 && wait "$growth_server" || return
	growth_share "$1"
}

# messaging SIZE COUNT: what a message of that size takes, of so many each way, one way after the other.
messaging() {
	growth_serve ucmatose -b "${address:?}" -S "$1" -C "$2"
	growth_run ucmatose -s "$address" -S "$1" -C "$2" && wait "$growth_server" || return
	growth_share $((2 * $2))
}

# pinging CLIENTS COUNT: what a ping takes, of COUNT each of so many clients at once, beyond connecting.
pinging() {
	awk "BEGIN { for (i = 0; i < $1; i++) print \"$address\" }" >growth.targets
	growth_serve rping -s -P -a "$address"
	growth_run rping -c --targets growth.targets -S 64 -C 2 || return
	growth_short=$(growth_figure duration_ns)
	growth_run rping -c --targets growth.targets -S 64 -C $(($2 + 2)) || return
	growth_long=$(growth_figure duration_ns)
	kill "$growth_server"
	wait "$growth_server" || return
	awk "BEGIN { value = ($growth_long - $growth_short) / 1000 / $1 / $2; printf \"%.4g\\n\", (value > 0 ? value : 0.001) }"
}
