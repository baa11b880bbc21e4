# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Two ends of ours or of the stock tools in one guest, for the benches.
. /scenarios/pairs
. /scenarios/settings

# program_of WHOSE TOOL
program_of() {
	case $1 in
	ours) echo "/opt/rdmatest/bin/$2" ;;
	stock) [ -d /scenarios/stock ] && echo "env LD_LIBRARY_PATH=/scenarios/stock /scenarios/stock/$2" || echo "/usr/bin/$2" ;;
	esac
}

# The seconds since the guest was booted, to the nanosecond.
seconds_now() {
	awk '/^now at/ { printf "%.9f\n", $3 / 1e9; exit }' /proc/timer_list
}

compute() {
	awk "BEGIN { printf \"%.${2:-3}f\\n\", $1 }"
}

listens() {
	rdma resource show cm_id | grep -q LISTEN
}

# serve COMMAND...: a server that is ready; its process is $server.
serve() {
	"$@" >server.out 2>&1 &
	server=$!
	until listens; do
		kill -0 "$server" 2>/dev/null || return
		sleep 0.02
	done
}

# served WHOSE: the server has ended successfully. A stock tool may end with another status than 0 even after success.
served() {
	wait "$server" || [ "$1" = stock ]
}

# Runs few and many of an operation: the difference excludes start and end. If the machine was so busy that no difference is
# left, both are repeated.
#   between FEW MANY COMMAND...    the seconds of one, of MANY; COMMAND gets the number, and prints its seconds
between() {
	few=$1 many=$2
	shift 2
	for attempt in 1 2 3 4 5; do
		short=$("$@" "$few") && long=$("$@" "$many") || return
		awk "BEGIN { if ($long <= $short) exit 1; printf \"%.9f\\n\", ($long - $short) / ($many - $few) }" && return
		echo "again ($attempt)" >&2
	done
	return 1
}

# run_seconds WHOSE TOOL 'SERVER OPTION...' 'CLIENT OPTION...': of a client, from its start to its end.
run_seconds() {
	# shellcheck disable=SC2046,SC2086 # lists of words
	serve $(program_of "$1" "$2") $3 || return
	begin=$(seconds_now)
	# shellcheck disable=SC2046,SC2086
	$(program_of "$1" "$2") $4 >client.out 2>&1 || [ "$1" = stock ] || return
	end=$(seconds_now)
	served "$1" || return
	compute "$end - $begin" 9
}

# ping_seconds WHOSE 'OPTION...' COUNT
ping_seconds() {
	run_seconds "$1" rping "-s -a 10.0.0.1 $2" "-c -a 10.0.0.1 -S 64 -C $3 $2"
}

# ping_rate WHOSE COUNT [OPTION...]: pings a second.
ping_rate() {
	whose=$1 count=$2
	shift 2
	one=$(between 10 "$count" ping_seconds "$whose" "$*") && compute "1 / $one" 1
}

# ping_time COUNT [OPTION...]: the microseconds of a ping of ours by its own clock, from the first to the last.
ping_time() {
	count=$1
	shift
	serve /opt/rdmatest/bin/rping -s -a 10.0.0.1 "$@" || return
	/opt/rdmatest/bin/rping -c -a 10.0.0.1 -S 64 -C "$count" --json "$@" >client.out || return
	served ours || return
	sed -n 's/.*"rate_per_second":\([0-9.]*\).*/\1/p' client.out | awk '{ printf "%.3f\n", 1e6 / $1 }'
}

# calls_in FILE [NAME]: the number of system calls by strace -c, of all threads together, without the calls of that name.
calls_in() {
	awk -v without="${2-}" '$4 ~ /^[0-9]+$/ && $NF != "total" && $NF != without { count += $4 } END { print count + 0 }' "$1"
}

# bare poll|epoll COUNT: the microseconds of a ping.
bare() {
	serve /scenarios/verbs_ping server "$1" 10.0.0.1 "$2" 64 || return
	/scenarios/verbs_ping client "$1" 10.0.0.1 "$2" 64 || return
	served ours
}

# latency COUNT [OPTION...]: the microseconds of three round trips of ib_send_lat, which prints half of one.
latency() {
	count=$1
	shift
	serve ib_send_lat -R -F -s 64 -n "$count" "$@" || return
	ib_send_lat -R -F -s 64 -n "$count" "$@" 10.0.0.1 >client.out 2>&1 || return
	served ours || return
	awk '$1 == 64 { printf "%.3f\n", 6 * $6 }' client.out
}
