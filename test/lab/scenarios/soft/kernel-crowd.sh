# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Many clients at once. Each soft one is a process with an address of its own: the port belongs to one process of each.

soft_apart
# What takes part in a burst has to fit: a processor that is emulated takes longer to empty its queue of received packets.
echo 20000 >/proc/sys/net/core/netdev_max_backlog
# The kernel's connection manager waits for ARP, one peer after the other: half a second for each new address here.
peer_link=$(ip netns exec apart cat /sys/class/net/d1/address)
number=100
while [ "$number" -lt 200 ]; do
	number=$((number + 1))
	echo "address add 10.0.0.$number/24 dev d1" >&3
	echo "neighbour replace 10.0.0.$number lladdr $peer_link dev d0 nud permanent"
done 3>/tmp/addresses | ip -batch -
ip -n apart -batch /tmp/addresses

# source_of SIDE NUMBER: the option with which many soft clients each take an address of their own.
source_of() {
	case $1 in
	soft) echo "-I 10.0.0.$((100 + $2))" ;;
	esac
}

# time_of SIDE: a hundred processes on an emulated processor are slow.
time_of() {
	[ "$1" = stock ] || echo '--timeout 60'
}

# crowd CLIENT SERVER ADDRESS COUNT PINGS [OPTION...]
crowd() {
	client=$1 server=$2 address=$3 count=$4 pings=$5
	shift 5
	# shellcheck disable=SC2046 # an option and its value, or nothing
	start server "$server" rping -s -P -a "$address" $(time_of "$server") "$@"
	wait_listening server 10
	number=0
	while [ "$number" -lt "$count" ]; do
		number=$((number + 1))
		# shellcheck disable=SC2046 # options and their values, or nothing
		start "client$number" "$client" rping -c -a "$address" -V -C "$pings" \
			$(time_of "$client") $(source_of "$client" "$number") "$@"
	done
	number=0
	while [ "$number" -lt "$count" ]; do
		number=$((number + 1))
		finish "client$number" 120
		expect_success "client$number"
	done
	send INT server
	finish server 10
	if [ "$server" != stock ]; then
		expect_status 0
		expect_silent server.err
		expect_line server.out "^rping: served $count clients, $((count * pings)) pings \\([a-z]+\\)\$"
	fi
	nothing_is_left
}

# many_connections CLIENT SERVER ADDRESS
many_connections() {
	skip_sanitized 'it takes longer for a packet than the time-out allows'
	start server "$2" ucmatose -b "$3" -c 512 -C 16 --timeout 60
	wait_listening server 10
	start client "$1" ucmatose -s "$3" -c 512 -C 16 --timeout 60
	finish client 180
	expect_status 0
	finish server 60
	expect_status 0
	nothing_is_left
}
