# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Pairs of tools, for the interoperability matrix. A side is "ours", "stock" or "soft".

# matrix NAME FUNCTION [ARGUMENT...]: a case for each way to pair the two sides, named
# CLIENT-SERVER-NAME; FUNCTION gets the client's side, the server's, and the arguments.
matrix() {
	matrix_of 'ours-stock stock-ours ours-ours' "$@"
}

# matrix_of 'PAIRING...' NAME FUNCTION [ARGUMENT...]: only some of the pairings, where
# an option is known to one side only.
matrix_of() {
	lab_pairings=$1
	lab_row=$2
	lab_function=$3
	shift 3
	# shellcheck disable=SC2086 # a list of words
	[ "${LAB_MATRIX:-full}$lab_filter" != pairwise ] || lab_take_pairings $lab_pairings
	for lab_pairing in $lab_pairings; do
		try "$lab_pairing-$lab_row" "$lab_function" "${lab_pairing%-*}" "${lab_pairing#*-}" "$@"
	done
}

# lab_take_pairings PAIRING...: all for the first row of a scenario, and for every other row one, each in its turn.
lab_rows=0
lab_take_pairings() {
	lab_rows=$((lab_rows + 1))
	[ "$lab_rows" -gt 1 ] || return 0
	shift $((lab_rows % $#))
	lab_pairings=$1
}

# Both ends of every pair must leave nothing behind.
nothing_is_left() {
	rdma_leftovers
	kernel_log_clean
}

# expect_success NAME: exit code 0. The event thread of release 44's stock rping may outlive its channel and end a successful
# run with 255, which is ignored.
expect_success() {
	if [ "$status" = 255 ] && grep -q '^rdma_get_cm_event: Bad file descriptor' "$1.err"; then
		lab_checked
		return 0
	fi
	expect_status 0
}

# ping_pair CLIENT SERVER COUNT 'SERVER OPTIONS' 'CLIENT OPTIONS'
ping_pair() {
	# shellcheck disable=SC2086 # options are lists of words
	serve "$2" rping -s $4
	# shellcheck disable=SC2086
	start client "$1" rping -c -v -C "$3" $5
	finish client 30
	expect_success client
	expect_count client.out '^ping data: ' "$3"
	ends 0 finish server 10
	nothing_is_left
}

# message_pair CLIENT SERVER 'SERVER OPTIONS' 'CLIENT OPTIONS': ucmatose.
message_pair() {
	# shellcheck disable=SC2086
	serve "$2" ucmatose $3
	# shellcheck disable=SC2086
	start client "$1" ucmatose $4
	ends 0 finish client 60
	expect_line client.out '^return status 0$'
	ends 0 finish server 20
	expect_line server.out '^return status 0$'
	nothing_is_left
}

# message_pair_iwarp: as message_pair. The stock server sends as soon as it has accepted. Data that arrives with a reply
# without private data makes siw refuse the connection, and data that arrives before the client's queue pair is ready is
# noticed only with the next segment: races that no client can always win, so against a stock server only one of several
# attempts must succeed, against ours the first. A stock server whose client has lost the race may wait forever.
message_pair_iwarp() {
	if [ "$2" != stock ]; then
		message_pair "$@"
		return
	fi
	lab_patience=
	[ "$1" = stock ] || lab_patience='--timeout 3'
	for lab_attempt in 1 2 3 4 5 6 7 8; do
		say "attempt $lab_attempt"
		# shellcheck disable=SC2086
		serve stock ucmatose $3
		# shellcheck disable=SC2086
		start client "$1" ucmatose $4 $lab_patience
		finish client 60
		[ "$status" -ne 0 ] || break
		expect_line client 'CONNECT_ERROR.*-22|timed out after 3 s: sent'
		lab_find server
		kill -KILL "$lab_pid" 2>/dev/null || :
		finish server 20
	done
	[ "$status" -eq 0 ] || fail "none of $lab_attempt attempts succeeded"
	expect_line client.out '^return status 0$'
	ends 0 finish server 20
	nothing_is_left
}

# needs_stock_sender: a stock mckey destroys its queue pair as soon as it has posted all sends. soft-RoCE with a work queue
# for sending (Linux 6.4) then drops the unsent ones, so that a case with such a sender proves nothing.
needs_stock_sender() {
	case $(uname -r) in
	[45].* | 6.[0-3].*) ;;
	*) skip "this kernel's soft-RoCE loses what a stock mckey sends" ;;
	esac
}

# group_pair SENDER RECEIVER 'RECEIVER OPTIONS' 'SENDER OPTIONS': mckey.
group_pair() {
	# shellcheck disable=SC2086
	start receiver "$2" mckey $3
	wait_for receiver.out '^mckey: joined dgid: ' 10
	# shellcheck disable=SC2086
	start sender "$1" mckey -s $4
	ends 0 finish sender 20
	expect_line sender.out '^mckey: joined dgid: .* mlid .* sl '
	ends 0 finish receiver 20
	nothing_is_left
}

# far_pair SERVER_ROLE SERVER CLIENT TOOL 'SERVER OPTIONS' 'CLIENT OPTIONS': rping or ucmatose between two guests.
far_pair() {
	if [ "$LAB_ROLE" = "$1" ]; then
		# shellcheck disable=SC2086 # options are lists of words
		start server $2 "$4" $5
		wait_listening server 30
		barrier listening
		finish server 120
		expect_success server
	else
		barrier listening
		# shellcheck disable=SC2086
		run 120 $3 "$4" $6
		expect_success run
	fi
	nothing_is_left
}

# far_group_pair RECEIVER_ROLE RECEIVER SENDER 'RECEIVER OPTIONS' 'SENDER OPTIONS': mckey between two guests.
far_group_pair() {
	[ "$3" != stock ] || needs_stock_sender
	if [ "$LAB_ROLE" = "$1" ]; then
		# shellcheck disable=SC2086
		start receiver $2 mckey $4
		wait_for receiver.out '^mckey: joined dgid: ' 30
		[ "$2" = stock ] || wait_for receiver.out '^receiving data transfers$' 30
		barrier joined
		ends 0 finish receiver 60
	else
		barrier joined
		# shellcheck disable=SC2086
		ends 0 run 60 $3 mckey -s $5
	fi
	nothing_is_left
}
