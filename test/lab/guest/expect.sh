# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Expectations. Each is counted, and none can hold for a program that never ran.

expect_status() {
	lab_checked
	[ -n "$status" ] || fail "expect_status: nothing has been finished yet"
	[ "$status" = "$1" ] || fail "status is $status, expected $1"
}

# ends STATUS finish|interrupt|run WORD...: it ends with that status.
ends() {
	lab_expected=$1
	shift
	"$@"
	expect_status "$lab_expected"
}

expect_status_not() {
	lab_checked
	[ -n "$status" ] || fail "expect_status_not: nothing has been finished yet"
	[ "$status" != "$1" ] || fail "status is $status"
}

# Checks both streams of NAME; NAME.out or NAME.err means that one.
lab_streams() {
	case $1 in
	*.out | *.err) lab_files=$1 ;;
	*) lab_files="$1.out $1.err" ;;
	esac
	for lab_file in $lab_files; do
		[ -f "$lab_file" ] || fail "there is no output of '$1'"
	done
}

expect_line() {
	lab_checked
	lab_streams "$1"
	# shellcheck disable=SC2086 # one or two names
	grep -qE -e "$2" $lab_files || fail "$1 has no line matching: $2"
}

expect_no_line() {
	lab_checked
	lab_streams "$1"
	# shellcheck disable=SC2086 # one or two names
	if lab_found=$(grep -hE -e "$2" $lab_files); then
		fail "$1 has a line matching: $2 ($lab_found)"
	fi
}

# expect_count NAME REGEX N: exactly N lines match.
expect_count() {
	lab_checked
	lab_streams "$1"
	# shellcheck disable=SC2086 # one or two names
	lab_count=$(cat $lab_files | grep -cE -e "$2" || :)
	[ "$lab_count" = "$3" ] || fail "$1 has $lab_count lines matching '$2', expected $3"
}

# expect_silent NAME.err: it was written by a program, and it is empty.
expect_silent() {
	lab_checked
	lab_streams "$1"
	for lab_file in $lab_files; do
		[ ! -s "$lab_file" ] || fail "$lab_file is not empty: $(head -n 1 "$lab_file")"
	done
}

# expect_running NAME: it has not ended.
expect_running() {
	lab_checked
	lab_find "$1"
	! has_ended "$lab_pid" || fail "$1 has ended"
}

# expect_text_equal WANTED FOUND WHAT
expect_text_equal() {
	lab_checked
	[ "$1" = "$2" ] || fail "${3:-text} is '$2', expected '$1'"
}

# expect WHAT COMMAND...: the command succeeds.
expect() {
	lab_checked
	lab_what=$1
	shift
	step "expect $lab_what: $*"
	"$@" || fail "not so: $lab_what"
}

# expect_between LOW FOUND HIGH WHAT: whole numbers.
expect_between() {
	lab_checked
	{ [ "$1" -le "$2" ] && [ "$2" -le "$3" ]; } || fail "${4:-number} is $2, expected $1 to $3"
}

# Objects held by processes. Every verbs object needs a context, so contexts and connection ids suffice.
lab_user_resources() {
	for lab_type in ctx cm_id; do
		rdma resource show "$lab_type" 2>/dev/null | grep -E ' pid [0-9]+' | sed "s/^/$lab_type: /"
	done
	return 0
}

# rdma_leftovers: no process holds an RDMA object. The kernel frees them asynchronously after a process has ended, hence the
# second of grace.
rdma_leftovers() {
	lab_checked
	now
	lab_deadline=$((now + 100))
	while :; do
		lab_left=$(lab_user_resources)
		[ -n "$lab_left" ] || return 0
		now
		[ "$now" -lt "$lab_deadline" ] || fail "RDMA objects are left over: $lab_left"
		pause 0.1
	done
}

# kernel_log_clean: no warning, crash or error since the scenario began, or one of its cases failed. Linux 7.2's soft-RoCE
# logs each failed completion, which the program also gets.
kernel_log_clean() {
	lab_checked
	lab_found=$(dmesg | awk -v "begin=lab: begin $lab_scenario" '
		index($0, begin) { begun = 1; found = ""; next }
		/rxe.* non-flush error status/ { next }
		/WARNING|BUG|Oops|Call Trace|refcount|bad ICRC|blocked for more|segfault|general protection|(rxe|siw).*(err|fail|invalid)/ {
			found = found $0 "\n"
		}
		END { if (!begun) print "the scenario has no beginning in the kernel log"; printf "%s", found }')
	[ -z "$lab_found" ] || fail "the kernel complained: $lab_found"
}

# device_errors: soft-RoCE's counters besides traffic, "NAME COUNT" per line: repeated, out-of-order or missing packets,
# missing receives. No output if all are zero. Its own repeats mean nothing: on a long connection it repeats a request about
# every two seconds without need, also between two kernels, because it never stops its timer. And moving the other end of the
# cable into a namespace counts as link "downed".
device_errors() {
	for lab_file in /sys/class/infiniband/rxe0/ports/1/hw_counters/*; do
		case ${lab_file##*/} in
		lifespan | sent_pkts | sent_bytes | rcvd_pkts | rcvd_bytes | rdma_sends | rdma_recvs | ack_deferred) continue ;;
		completer_retry_err | link_downed) continue ;;
		esac
		read -r lab_value <"$lab_file"
		[ "$lab_value" = 0 ] || echo "${lab_file##*/} $lab_value"
	done
}

# without_device_errors FUNCTION [ARGUMENT...]: soft-RoCE counts no error while that runs, and at most one in ten received
# packets as a repeated request. Some repeats are unnecessary: when the host stops the whole guest, and at a connection's
# first packet, whose round trip is unknown, in a crowd on a slow processor.
without_device_errors() {
	lab_errors=$(device_errors | grep -v '^duplicate_request ' || :)
	lab_repeats=$(device_count duplicate_request) lab_packets=$(device_count rcvd_pkts)
	"$@"
	lab_repeats=$(($(device_count duplicate_request) - lab_repeats))
	lab_packets=$(($(device_count rcvd_pkts) - lab_packets))
	say "$lab_repeats of $lab_packets packets were repeats"
	expect_text_equal "$lab_errors" "$(device_errors | grep -v '^duplicate_request ' || :)" "what soft-RoCE counts besides traffic"
	lab_checked
	[ $((lab_repeats * 10)) -le "$lab_packets" ] || fail "more than one in ten packets came again"
}

# device_count NAME: the first soft-RoCE device's counter.
device_count() {
	cat "/sys/class/infiniband/rxe0/ports/1/hw_counters/$1"
}
