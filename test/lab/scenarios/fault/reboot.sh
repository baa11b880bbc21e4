# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash

# Guest a survives: over the kernel, and then over soft, which needs an address for each process. Guest b is rebooted.
there=10.0.0.2
dropped='does not answer|timed out|retries exceeded|no answer|went away|disconnected'

survive_over() {
	side=$1
	if [ "$side" = ours ]; then
		rping_here=10.0.0.1 rping_from=10.0.0.1 ucmatose_here=10.0.0.1 ucmatose_from=10.0.0.1
	else
		rping_here=10.0.0.11 rping_from=10.0.0.12 ucmatose_here=10.0.0.13 ucmatose_from=10.0.0.14
	fi
}

# Those of guest a.
start_servers() {
	start server "$side" rping -s -P -a $rping_here --timeout 8s --debug
	start messages "$side" ucmatose -b $ucmatose_here -C 1000000 --timeout 8s --debug
	wait_listening server 20
	wait_listening messages 20
}

start_clients() {
	start pings "$side" rping -c -a $there -I $rping_from --timeout 8s --debug -v "$@"
	start stream "$side" ucmatose -s $there -b $ucmatose_from -C 1000000 --timeout 8s --debug
}

# Those of guest b, which find no time to end.
their_servers() {
	start server ours rping -s -P -a $there --timeout 60s
	start messages ours ucmatose -b $there -C 1000000 --timeout 60s
	wait_listening server 20
	wait_listening messages 20
}

their_clients() {
	start pings ours rping -c -a $rping_here --timeout 60s -v "$@"
	start stream ours ucmatose -s $ucmatose_here -C 1000000 --timeout 60s
}

under_way() {
	wait_for pings "^ping data: rdma-ping-$1: " 30
	wait_for stream '^(receiving data transfers|sending replies)' 30
}

matches() {
	printf '%s\n' "$2" | grep -qE -e "$1"
}

# ended NAME STATUS REGEX: in time, and one true reason, besides what was asked for to follow it.
ended() {
	finish "$1" 40
	words=$(grep -v ': debug: ' "$1.err" || :)
	say "RESULT $lab_case: $1: $status: $words"
	expect_status "$2"
	if [ "$2" = 0 ]; then
		expect_text_equal '' "$words" "what $1 says"
	else
		expect "a true reason of $1" matches "$3" "$words"
		expect_between 1 "$(printf '%s\n' "$words" | wc -l)" 2 "lines of $1"
	fi
}

# What has come back pings the server that was there all the time.
back() {
	if [ "$LAB_ROLE" = b ]; then
		wait_until 60 'the network is there' ping -c 1 -W 1 $rping_here >/dev/null
		barrier back
		run 60 ours rping -c -a $rping_here -C 3 -V --timeout 20s
		barrier served
		expect_status 0
		return
	fi
	netem_clear
	barrier back
	barrier served
	expect_running server
	send INT server
	finish server 30
	say "RESULT $lab_case: server: $status: $(grep -v ': debug: ' server.err || :)"
	expect_between 0 "$status" 1 'exit code of the server'
	expect_line server.out "served [0-9]+ clients?, "
	expect_no_line server.err 'defect'
}

# Nobody talks with anybody yet: clients of ours wait for a server that comes at last.
listening() {
	if [ "$LAB_ROLE" = a ]; then
		start_servers
		start pings "$side" rping -c -a $there -I $rping_from -C 3 -V --timeout 8s --wait-server 200s
		barrier waiting
		back
		ended pings 0
		send INT messages
		ended messages 1 'interrupted'
	elif rebooted; then
		# Its client may come and go before anybody looks whether it listens.
		start server ours rping -s -a $there --timeout 60s
		back
		finish server 60
		expect_status 0
	else
		barrier waiting
		reboot
	fi
}

# What guest b answers is lost, and then it is gone. Its link-layer address is known before: its answers to ARP would be
# lost, too, and the clients would not get beyond resolving.
connecting() {
	if [ "$LAB_ROLE" = a ]; then
		start_servers
		barrier servers
		barrier known
		ping -c 1 $there >/dev/null || :
		barrier cut
		barrier is_cut
		start_clients
		wait_for pings ' -> connecting$' 30
		wait_for stream ' -> connecting$' 30
		barrier connecting
		ended pings 4 "connecting: .*($dropped|nobody listens there)"
		ended stream 4 "connecting: .*($dropped|nobody listens there)"
		back
		send KILL messages
		finish messages 5
	elif rebooted; then
		back
	else
		their_servers
		barrier servers
		barrier known
		barrier cut
		netem loss 100%
		barrier is_cut
		barrier connecting
		reboot
	fi
}

# What we answer is lost. Guest b knows our link-layer address before, or it could send no request.
accepting() {
	if [ "$LAB_ROLE" = a ]; then
		start_servers
		barrier servers
		barrier known
		netem loss 100%
		barrier is_cut
		wait_for server ' -> accepting$' 30
		wait_for messages ' -> accepting$' 30
		barrier accepting
		ended messages 4 "accepting: .*($dropped)"
		back
	elif rebooted; then
		back
	else
		barrier servers
		ping -c 1 $rping_here >/dev/null || :
		ping -c 1 $ucmatose_here >/dev/null || :
		barrier known
		barrier is_cut
		their_clients
		barrier accepting
		reboot
	fi
}

# connected LAST [OPTION...]: pings and messages each way; or one ping each way, and then nothing for long.
connected() {
	last=$1
	shift
	if [ "$LAB_ROLE" = a ]; then
		start_servers
		barrier servers
		start_clients "$@"
		barrier clients
		under_way "$last"
		barrier busy
		ended pings 1 "$dropped"
		ended stream 1 "$dropped"
		ended messages 1 "$dropped"
		back
	elif rebooted; then
		back
	else
		their_servers
		barrier servers
		their_clients "$@"
		barrier clients
		under_way "$last"
		barrier busy
		reboot
	fi
}

busy() {
	connected 3
}

idle() {
	connected 0 --interval 15s
}

# Told to end, with a peer that does not say goodbye.
disconnecting() {
	if [ "$LAB_ROLE" = a ]; then
		start_servers
		barrier servers
		start_clients --interval 100s
		barrier clients
		under_way 0
		wait_for server ' -> waiting for the next ping$' 30
		barrier idle
		barrier cut
		send INT pings
		send INT server
		wait_for pings ' -> disconnecting$' 30
		wait_for server ' -> disconnecting$' 30
		barrier disconnecting
		ended pings 1 'disconnecting: timed out'
		ended server 1 "$dropped|shutdown exceeded"
		ended stream 1 "$dropped"
		ended messages 1 "$dropped"
		barrier ended
		start_servers
		back
		send KILL messages
		finish messages 5
	elif rebooted; then
		back
	else
		their_servers
		barrier servers
		their_clients --interval 100s
		barrier clients
		under_way 0
		barrier idle
		netem loss 100%
		barrier cut
		barrier disconnecting
		# Its new kernel would answer the goodbye.
		barrier ended
		reboot
	fi
}

at_step() {
	"$1"
	nothing_is_left
}

# steps STEP...: over both.
steps() {
	survive_over ours
	for step_name in "$@"; do
		try "ours-$step_name" at_step "$step_name"
	done
	if [ "$LAB_ROLE" = a ]; then
		rdma link delete rxe0
		module_unload rdma_rxe
		for lab_number in 11 12 13 14; do
			ip address add 10.0.0.$lab_number/24 dev eth0
		done
	fi
	survive_over soft
	for step_name in "$@"; do
		try "soft-$step_name" at_step "$step_name"
	done
}
