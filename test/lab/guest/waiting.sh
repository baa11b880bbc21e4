# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Waits for conditions, never for a fixed time.

# wait_until SECONDS WHAT COMMAND...: fails when it has not come true by then.
wait_until() {
	lab_limit "$1"
	lab_wait_deadline=$lab_deadline
	lab_what=$2
	shift 2
	lab_checked
	step "wait_until $lab_what"
	until "$@"; do
		now
		[ "$now" -lt "$lab_wait_deadline" ] || fail "not within $lab_seconds s: $lab_what"
		pause 0.05
	done
}

# wait_for NAME REGEX SECONDS: a line of NAME's output matches. NAME's end before
# that is a failure at once.
wait_for() {
	lab_find "${1%.*}"
	lab_streams "$1"
	lab_checked
	step "wait_for $1: $2"
	lab_limit "$3"
	while :; do
		lab_gone=no
		! has_ended "$lab_pid" || lab_gone=yes
		# shellcheck disable=SC2086 # one or two names
		if grep -qE -e "$2" $lab_files; then
			return 0
		fi
		[ "$lab_gone" = no ] || fail "$1 ended without a line matching: $2"
		now
		[ "$now" -lt "$lab_deadline" ] || fail "$1 wrote no line matching within $lab_seconds s: $2"
		pause 0.05
	done
}

lab_listens() {
	case $(rdma resource show cm_id 2>/dev/null) in
	# The tool of iproute2 calls the port space IB "IPoIB".
	*"state LISTEN ps TCP pid $1 "* | *"state LISTEN ps IPoIB pid $1 "*) return 0 ;;
	esac
	lab_holds_roce_port "$1"
}

# The process has a socket on UDP port 4791 (12B7 in hexadecimal), in whatever network namespace it is.
lab_holds_roce_port() {
	{ cat "/proc/$1/net/udp" "/proc/$1/net/udp6" && ls -l "/proc/$1/fd"; } 2>/dev/null | awk '
		$2 ~ /:12B7$/ { holders["socket:[" $10 "]"] }
		$NF in holders { found = 1 }
		END { exit !found }'
}

# wait_listening NAME SECONDS: NAME holds a listening connection id, or with the soft
# transport its UDP port. Stock servers print nothing when they are ready; the kernel knows.
wait_listening() {
	lab_find "$1"
	lab_checked
	step "wait_listening $1"
	lab_limit "$2"
	until lab_listens "$lab_pid"; do
		! has_ended "$lab_pid" || fail "$1 ended before it listened"
		now
		[ "$now" -lt "$lab_deadline" ] || fail "$1 does not listen after $lab_seconds s"
		pause 0.05
	done
}

# serve WHOSE TOOL OPTION...: a server, of that name, that listens.
serve() {
	start server "$@"
	wait_listening server 10
}

# barrier NAME: both guests of a two-guest scenario have got here.
barrier() {
	step "barrier $1"
	printf '\001barrier %s\n' "$1" >&3
	read -r lab_reply <&3
	[ "$lab_reply" = go ] || fail "the other guest left before barrier $1"
}
