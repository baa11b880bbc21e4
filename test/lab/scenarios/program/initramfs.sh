# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Two hosts whose initramfs has busybox, the static program and its links, but no library.

if [ "$LAB_ROLE" = a ]; then
	here=1
else
	here=2
fi

# A dynamic program's needs, and signs that this one is dynamic.
expect 'there is no shared library' sh -c '! find / -xdev -name "*.so*" | grep .'
expect 'there is nothing to load one' sh -c '! find / -xdev -name "ld-*" | grep .'
expect 'no driver is configured' test ! -e /etc/libibverbs.d
expect 'the program is there' test -x /opt/rdmatest/bin/rping

network_up() {
	ip link set eth0 up
	ip address add 10.0.0.$here/24 dev eth0
	ip address add fd00::$here/64 dev eth0
	ip route add 224.0.0.0/4 dev eth0
}

address_is_there() {
	cat /sys/class/infiniband/rxe0/ports/1/gids/* | grep -q "$1"
}

# A tool of the lab's own makes the device: rdma needs libraries.
rxe_up() {
	add_rxe rxe0 eth0
	wait_until 10 'rxe0 has the IPv4 address' address_is_there "^0000:0000:0000:0000:0000:ffff:0a00:000$here"
	wait_until 10 'rxe0 has the IPv6 address' address_is_there "^fd00:.*:000$here"
}

# pair SERVER-ROLE SIDE TOOL SERVER-OPTIONS CLIENT-OPTIONS LINE: its client on the other, which prints the line.
pair() {
	if [ "$LAB_ROLE" = "$1" ]; then
		# shellcheck disable=SC2086 # a list of words
		start server "$2" "$3" $4
		wait_for server 'ready on|listening on' 20
		barrier "$1 $2 $3 $4"
		ends 0 finish server 60
	else
		barrier "$1 $2 $3 $4"
		# shellcheck disable=SC2086
		ends 0 run 60 "$2" "$3" $5
		expect_line run.out "$6"
	fi
	kernel_log_clean
}
