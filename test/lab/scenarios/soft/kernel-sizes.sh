# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Sizes of messages between the soft transport and the kernel's soft-RoCE, at any MTU of the two interfaces.

# mtu KERNEL SOFT: of the interfaces. Path MTU: 1,024 bytes of 1,500, 4,096 of 9,000.
mtu() {
	ip link set d0 mtu "$1"
	ip -n apart link set d1 mtu "$2"
}

# pings CLIENT SERVER ADDRESS SIZE...: one server for all clients.
pings() {
	client=$1 server=$2 address=$3
	shift 3
	start server "$server" rping -s -P -a "$address" -S 65535
	wait_listening server 10
	for size in "$@"; do
		run 20 "$client" rping -c -a "$address" -C 3 -V -S "$size"
		expect_success run
		[ "$client" = stock ] || expect_line run.out "^rping: 3 pings of $size bytes? to .* answered and verified"
	done
	send INT server
	finish server 10
	[ "$server" = stock ] || expect_status 0
	[ "$server" = stock ] || expect_line server.out "^rping: served $# clients, $((3 * $#)) pings \\([a-z]+\\)\$"
	nothing_is_left
}

# messages CLIENT SERVER ADDRESS SIZE...: between our own tools every byte is compared.
messages() {
	client=$1 server=$2 address=$3
	shift 3
	for size in "$@"; do
		message_pair "$client" "$server" "-b $address -C 4 -S $size" "-s $address -C 4 -S $size"
		if [ "$client" != stock ]; then
			expect_line client.out "^ucmatose: 1 connection, 4 messages of $size bytes? each way"
		fi
	done
}

# packets_of_path SIDE LEAST MOST: that many packets for ten messages of a MiB each way, acknowledgements and all.
packets_of_path() {
	read -r before </sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts
	message_pair soft "$1" '-b 10.0.0.1 -S 1048576' '-s 10.0.0.1 -S 1048576'
	read -r after </sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts
	expect_between "$2" "$((after - before))" "$3" 'packets that soft-RoCE received'
}

# silent_for_mtu: soft-RoCE takes a path MTU that is too large for its interface, and what it sends then gets nowhere.
silent_for_mtu() {
	start server ours ucmatose -b 10.0.0.1 -S 65537 --timeout 3
	wait_listening server 10
	run 20 soft ucmatose -s 10.0.0.1 -S 65537 --timeout 3
	expect_status 1
	expect_line run.err 'timed out after 3 s: sent 0, received 0 of 10 messages'
	finish server 60
	expect_status 1
	rdma_leftovers
}

# refused_for_mtu CLIENT: the client's path MTU is too large for the server, which says so at once.
refused_for_mtu() {
	start server soft rping -s -P -a 10.0.0.9
	wait_listening server 10
	start client "$1" rping -c -a 10.0.0.9 -C 3
	finish client 20
	expect_status_not 0
	[ "$1" = stock ] || expect_line client.err 'MTU'
	send INT server
	finish server 10
	nothing_is_left
}
