# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Network and RDMA devices of a scenario.

# busybox's own ip has fewer features.
ip() { /usr/bin/ip "$@"; }
tc() { /usr/bin/tc "$@"; }
rdma() { /usr/bin/rdma "$@"; }

# All possible leftovers of a scenario: RDMA links, network devices, namespaces.
reset_state() {
	load_modules || fail "the kernel modules cannot be loaded"
	# Without the tools there are no leftovers: a guest with the bare image runs one scenario.
	[ -x /usr/bin/rdma ] || return 0
	for lab_link in /sys/class/infiniband/*; do
		[ ! -e "$lab_link" ] || rdma link delete "${lab_link##*/}" || fail "RDMA link ${lab_link##*/} cannot be removed"
	done
	for lab_link in /sys/class/net/*; do
		lab_link=${lab_link##*/}
		case $lab_link in
		lo) tc qdisc delete dev lo root 2>/dev/null || : ;;
		sit0 | ip6tnl0 | tunl0) ;;
		eth0)
			ip address flush dev eth0
			tc qdisc delete dev eth0 root 2>/dev/null || :
			;;
		*) ip link delete "$lab_link" 2>/dev/null || : ;;
		esac
	done
	for lab_space in /run/netns/*; do
		[ ! -e "$lab_space" ] || ip netns delete "${lab_space##*/}"
	done
}

# device_up rxe|siw: one RDMA device with two IPv4 and two IPv6 addresses, so that
# client and server can differ. rxe0 is on d0 with 10.0.0.1, 10.0.0.2, fd00::1, fd00::2;
# siw0 on e0 with 10.1.0.1 and so on. With two guests the device is on eth0 and each
# guest has one address: a the .1, b the .2.
device_up() {
	interface_up "$1"
	rdma link add "${1}0" type "$1" netdev "$lab_netdev" || fail "rdma link add ${1}0 failed"
	lab_wait_device "${1}0" "$1"
	say "device ${1}0 on $lab_netdev is up"
}

# interface_up rxe|siw: the network interface of such a device, with its addresses, and no device on it.
interface_up() {
	case $1 in
	rxe) lab_netdev=d0 lab_peer=d1 lab_net=0 ;;
	siw) lab_netdev=e0 lab_peer=e1 lab_net=1 ;;
	*) fail "'$1' is neither rxe nor siw" ;;
	esac
	lab_hosts='1 2'
	lab_pair=
	case $LAB_ROLE in
	a) lab_netdev=eth0 lab_hosts=1 ;;
	b) lab_netdev=eth0 lab_hosts=2 ;;
	*) lab_pair="link add $lab_netdev type veth peer name $lab_peer
		link set $lab_peer up" ;;
	esac
	{
		echo "$lab_pair"
		echo "link set $lab_netdev up"
		for lab_host in $lab_hosts; do
			echo "address add 10.$lab_net.0.$lab_host/24 dev $lab_netdev"
			echo "address add fd0$lab_net::$lab_host/64 dev $lab_netdev nodad"
		done
		# Groups without a bind address go to the first device that came up.
		echo "route append 224.0.0.0/4 dev $lab_netdev"
	} | ip -batch -
}

# soft_apart: from here on "soft" programs run in a namespace at the other end of soft-RoCE's veth pair, with
# 10.0.0.9 and fd00::9. The kernel holds UDP port 4791 in its own namespace only.
soft_apart() {
	ip netns add apart
	ip link set d1 netns apart
	ip -n apart -batch - <<-END
		link set lo up
		link set d1 up
		address add 10.0.0.9/24 dev d1
		address add fd00::9/64 dev d1 nodad
		route add 224.0.0.0/4 dev d1
	END
	soft_under='/usr/bin/ip netns exec apart'
}

# A port is usable once it is active and, for RoCE, its address table is filled; both happen asynchronously in the kernel.
lab_wait_device() {
	lab_limit 10
	while :; do
		lab_state=$(cat "/sys/class/infiniband/$1/ports/1/state" 2>/dev/null || :)
		lab_gids=$(cat "/sys/class/infiniband/$1/ports/1/gids/"* 2>/dev/null | grep -cv '^[0:]*$' || :)
		case $lab_state:$2 in
		*ACTIVE:siw) return 0 ;;
		# Link-local, and one for each address.
		*ACTIVE:rxe) [ "$lab_gids" -gt "$((${#lab_hosts} + 1))" ] && return 0 ;;
		esac
		now
		[ "$now" -lt "$lab_deadline" ] || fail "device $1 is not ready: state '$lab_state', $lab_gids addresses"
		pause 0.05
	done
}

# device_down rxe|siw: removes the device, even while in use.
device_down() {
	step "device_down $1"
	rdma link delete "${1}0" || fail "rdma link delete ${1}0 failed"
}

# netem 'loss 5%': applies to packets that leave the device. A single guest's soft-RoCE passes its packets to itself below
# the network, where none can be lost: needs two guests, or soft-iWARP, which uses lo.
netem() {
	step "netem $*"
	case $LAB_ROLE:$(rdma link show) in
	[ab]:*) lab_netem=eth0 ;;
	*:*rxe0*) fail "netem: soft-RoCE of one guest never reaches the network; use '# guests: 2'" ;;
	*) lab_netem=lo ;;
	esac
	# shellcheck disable=SC2048,SC2086 # the argument is a list of words
	tc qdisc replace dev "$lab_netem" root netem $* || fail "netem $* was refused"
}

lab_netem=
netem_clear() {
	[ -n "$lab_netem" ] || return 0
	tc qdisc delete dev "$lab_netem" root 2>/dev/null || :
	lab_netem=
}

# module_unload NAME...: the next scenario gets them back.
module_unload() {
	step "module_unload $*"
	for lab_module in "$@"; do
		rmmod "$lab_module" || fail "module $lab_module cannot be unloaded"
	done
}
