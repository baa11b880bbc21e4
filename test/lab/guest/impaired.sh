# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# A bad network within one guest, for the soft transport: a bridge with three hosts. The guest itself has the kernel's
# soft-RoCE on d0 (10.0.0.1, fd00::1); the namespaces one (10.0.0.11, fd00::11) and two (10.0.0.12, fd00::12) are free
# for us. A side of a connection is "one" or "two", ours over soft; or "ours" or "stock", on the kernel.

impaired_ports='d1 port11 port12'

# lab_known NUMBER LINK_ADDRESS KNOWER...: enters the link address on other hosts, by commands that act there: the test is of
# RoCE, not ARP.
lab_known() {
	lab_number=$1 lab_link_address=$2
	shift 2
	for lab_knower in "$@"; do
		for lab_network in 10.0.0. fd00::; do
			case $lab_knower in
			d0) set -- ip ;;
			*) set -- ip -n "$lab_knower" ;;
			esac
			"$@" neighbour replace "$lab_network$lab_number" lladdr "$lab_link_address" nud permanent dev "$lab_knower"
		done
	done
}

# One packet for each segment: else many would be lost as one.
lab_host() {
	ip netns add "$1"
	ip link add "$1" address "02:00:00:00:00:$2" type veth peer name "port$2"
	ip link set "$1" netns "$1"
	ip link set "port$2" master net0 up
	ip -n "$1" link set lo up
	ip -n "$1" link set "$1" gso_max_segs 1 up
	ip -n "$1" address add "10.0.0.$2/24" dev "$1"
	ip -n "$1" address add "fd00::$2/64" dev "$1" nodad
	ip -n "$1" route add 224.0.0.0/4 dev "$1"
}

# impaired_network: makes it.
impaired_network() {
	ip link add net0 type bridge mcast_snooping 0
	ip link set net0 up
	ip link set d1 master net0
	lab_host one 11
	lab_host two 12
	lab_known 1 "$(cat /sys/class/net/d0/address)" one two
	lab_known 11 02:00:00:00:00:11 d0 two
	lab_known 12 02:00:00:00:00:12 d0 one
}

# impair 'loss 5%', impair none: applies to packets that leave each port of the bridge (tc-netem(8)). An existing netem would
# keep settings that the new one does not name.
impair() {
	step "impair $1"
	for lab_port in $impaired_ports; do
		tc qdisc delete dev "$lab_port" root 2>/dev/null || :
		# shellcheck disable=SC2086 # a list of words
		[ "$1" = none ] || tc qdisc add dev "$lab_port" root netem limit 10000 $1
	done
	impairment=$1
}

# address_of SIDE 4|6: in $address.
address_of() {
	case $2 in
	4) address=10.0.0. ;;
	6) address=fd00:: ;;
	esac
	case $1 in
	one) address=${address}11 ;;
	two) address=${address}12 ;;
	*) address=${address}1 ;;
	esac
}

# start_at NAME SIDE TOOL OPTION...
start_at() {
	lab_name=$1 lab_side=$2 lab_tool=$3
	shift 3
	case $lab_side in
	one | two)
		start "$lab_name" /usr/bin/ip netns exec "$lab_side" "/opt/rdmatest/bin/$lab_tool" --transport soft "$@"
		;;
	*) start "$lab_name" "$lab_side" "$lab_tool" "$@" ;;
	esac
}

# Valid reasons of a failure on a bad network. A stock peer that failed, or was ended, is a peer that left.
true_reasons='timed out after [0-9.]+ s|retries exceeded|the peer does not answer|UDP port 4791 is closed|rejects UDP port 4791'
true_reasons="$true_reasons|the (server|client|peer) (went away|left|disconnected)|deadline of [0-9.]+ s exceeded"
true_reasons="$true_reasons|[0-9]+ of [0-9]+ datagrams did not arrive|[0-9]+ of [0-9]+ connections failed"

# ended_truthfully NAME: the last finished run was verified, and says so; or it failed with a valid reason. A damaged byte
# that no checksum detected is one, and is distinguished here.
ended_truthfully() {
	expect_no_line "$1.err" 'defect'
	case $status in
	0)
		expect_line "$1.out" '(verified|checked|answered|received|sent).* \((soft, udp|verbs, rxe0)\)$'
		expect_silent "$1.err"
		;;
	1)
		case $impairment in
		*corrupt*) ! grep -q 'differs' "$1.err" || say "a damaged byte went unseen" ;;
		*) expect_no_line "$1.err" 'differs' ;;
		esac
		expect_line "$1.err" "$true_reasons|differs"
		;;
	4) expect_line "$1.err" ": (resolving|connecting|joining|established|waiting).*($true_reasons|no answer)" ;;
	*) fail "$1 ended with status $status" ;;
	esac
}

# limits: every rdmatest run is over by then.
impaired_limits='--deadline 40s --timeout 20s'

# impaired_pair TOOL CLIENT SERVER 4|6 OPTION...: rping or ucmatose, with the options for both of them.
impaired_pair() {
	lab_pair_tool=$1 lab_client=$2 lab_server=$3
	address_of "$3" "$4"
	shift 4
	case $lab_pair_tool in
	rping) lab_server_options="-s -a $address" lab_client_options="-c -a $address" ;;
	ucmatose) lab_server_options="-b $address" lab_client_options="-s $address" ;;
	esac
	lab_server_limits=$impaired_limits lab_client_limits=$impaired_limits
	[ "$lab_server" != stock ] || lab_server_limits=
	[ "$lab_client" != stock ] || lab_client_limits=
	# shellcheck disable=SC2086 # lists of words
	start_at server "$lab_server" "$lab_pair_tool" $lab_server_options $lab_server_limits "$@"
	wait_listening server 10
	# shellcheck disable=SC2086
	start_at client "$lab_client" "$lab_pair_tool" $lab_client_options $lab_client_limits "$@"
	statuses=
	# Stock tools may hang forever, and their verdict is unreliable.
	if [ "$lab_client" = stock ]; then
		lab_order='server client'
	else
		lab_order='client server'
	fi
	for lab_end in $lab_order; do
		eval "lab_end_side=\$lab_$lab_end"
		if [ "$lab_end_side" = stock ]; then
			show_output "$lab_end"
			continue
		fi
		finish "$lab_end" 100
		ended_truthfully "$lab_end"
		statuses="$statuses$lab_end $status "
	done
}

# impaired_group SENDER RECEIVER 4|6 COUNT: mckey. The receiver misses as many as it reports, and gets the others.
impaired_group() {
	lab_sender=$1 lab_receiver=$2 lab_count=$4
	group=239.1.1.1
	[ "$3" = 4 ] || group=ff15::1
	address_of "$2" "$3"
	lab_limits='--idle-timeout 2s --deadline 60s'
	[ "$2" != stock ] || lab_limits=
	# shellcheck disable=SC2086 # lists of words
	start_at receiver "$2" mckey -m $group -b "$address" -C "$4" $lab_limits
	wait_for receiver '^mckey: joined dgid' 10
	address_of "$1" "$3"
	lab_limits='--deadline 60s'
	[ "$1" != stock ] || lab_limits=
	# shellcheck disable=SC2086
	start_at sender "$1" mckey -m $group -b "$address" -s -C "$4" $lab_limits
	finish sender 65
	[ "$1" = stock ] || ended_truthfully sender
	# It hangs when one is missing.
	[ "$2" != stock ] || return 0
	finish receiver 65
	ended_truthfully receiver
	lab_got=$(sed -n 's/.*: \([0-9]*\) of [0-9]* datagrams received.*/\1/p' receiver.out)
	lab_missed=$(sed -n 's/.*: \([0-9]*\) of [0-9]* datagrams did not arrive.*/\1/p' receiver.err)
	case $lab_sender:$impairment in
	# Its datagrams have no numbers to detect a duplicate.
	stock:*duplicate*) expect_between "$lab_count" "$((${lab_got:-0} + ${lab_missed:-0}))" "$((2 * lab_count))" "datagrams" ;;
	*)
		expect_text_equal "$lab_count" "$((${lab_got:-0} + ${lab_missed:-0}))" "datagrams received and missed"
		[ "$status" = 1 ] || expect_text_equal "$lab_count" "$lab_got" "datagrams received"
		;;
	esac
}

# at_work CLIENT SERVER [OPTION...]: an rping that verifies endlessly, after its first pings. The options in $server_only are
# only for the server.
server_only=
at_work() {
	address_of "$2" 4
	client=$1 server=$2
	shift 2
	# shellcheck disable=SC2086 # words
	start_at server "$server" rping -s -a "$address" -V "$@" $server_only
	wait_listening server 10
	start_at client "$client" rping -c -a "$address" -V -v "$@"
	wait_for client '^ping data: rdma-ping-3: ' 10
}

# On a moderately bad network a connection delivers everything. But a disconnecting kernel may not have sent its last
# acknowledgement, and may send its last messages only once.
impaired_pair_verified() {
	lab_checked
	impaired_pair "$@"
	case $lab_pair_tool-$lab_server:$statuses in
	*:'client 0 server 0 ' | *:'client 0 ' | *:'server 0 ') return 0 ;;
	ucmatose-ours:'client 1 server 0 ' | ucmatose-stock:'client 1 ')
		expect_line client.err '\(sending\): the peer disconnected'
		;;
	# A stock client with its last answer sends its DREQ once; if that is lost, the server has no proof.
	rping-*:'server 1 ')
		lab_pings=$(echo "$*" | sed -n 's/.*-C \([0-9]*\).*/\1/p')
		expect_line server.err 'RDMA WRITE failed: the peer does not answer'
		expect_line server.out "^ *pings: answered $((lab_pings - 1)), verified $((lab_pings - 1))\$"
		;;
	*) fail "not verified: $statuses" ;;
	esac
}
