# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# First contact: no host knows the link-layer address of another. The other host is the namespace apart, at the far end
# of a veth pair, with 10.0.0.9 and fd00::9 for soft, and 10.1.0.9 and fd01::9 for a soft-iWARP device of its own.

hosts_apart() {
	soft_apart
	ip link set e1 netns apart
	ip -n apart link set e1 up
	ip -n apart address add 10.1.0.9/24 dev e1
	ip -n apart address add fd01::9/64 dev e1 nodad
	ip netns exec apart rdma link add siw1 type siw netdev e1 || fail "rdma link add siw1 failed"
}

# What the other host sends arrives that much later.
delay_answers() {
	for lab_port in d1 e1; do
		ip netns exec apart tc qdisc replace dev "$lab_port" root netem delay "$1"
	done
}

forget_neighbours() {
	ip neigh flush all
	ip -n apart neigh flush all
}

# program SIDE home|apart: in $program, the words of rping.
program() {
	case $1-$2 in
	ours-apart) program='/usr/bin/ip netns exec apart /opt/rdmatest/bin/rping' ;;
	stock-apart) program='/usr/bin/ip netns exec apart /usr/bin/rping' ;;
	*) program="$1 rping" ;;
	esac
}

# addresses DEVICE 4|6: in $home and $apart.
addresses() {
	case $1$2 in
	rxe4) home=10.0.0.1 apart=10.0.0.9 ;;
	rxe6) home=fd00::1 apart=fd00::9 ;;
	siw4) home=10.1.0.1 apart=10.1.0.9 ;;
	siw6) home=fd01::1 apart=fd01::9 ;;
	esac
}

# attempts COUNT WHAT COMMAND...: each at a first contact; how many succeeded is in $passed.
attempts() {
	contact_count=$1 contact_what=$2 passed=0
	shift 2
	: >attempts.times
	for contact_attempt in $(seq "$contact_count"); do
		forget_neighbours
		now
		contact_begin=$now
		run 60 "$@"
		now
		[ "$status" != 0 ] || passed=$((passed + 1))
		echo $((now - contact_begin)) >>attempts.times
	done
	contact_median=$(sort -n attempts.times | sed -n "$(((contact_count + 1) / 2))p")
	say "RESULT first contact $contact_what: $passed of $contact_count, median $contact_median hundredths of a second"
}

# first_contact out|in DEVICE 4|6 DELAY COUNT SIDE...: from this host to the other, or from there. Beside soft-RoCE the
# other host has soft, and SIDE is the end on the device; beside soft-iWARP SIDE is the client.
first_contact() {
	contact_way=$1 contact_device=$2 contact_family=$3 contact_delay=$4 contact_tries=$5
	shift 5
	addresses "$contact_device" "$contact_family"
	delay_answers "$contact_delay"
	for contact_side in "$@"; do
		client=$contact_side server=ours
		case $contact_way-$contact_device in
		out-rxe) server=soft ;;
		in-rxe) client=soft server=$contact_side ;;
		esac
		case $contact_way in
		out) target=$apart client_at=home server_at=apart ;;
		in) target=$home client_at=apart server_at=home ;;
		esac
		program "$server" "$server_at"
		# shellcheck disable=SC2086 # a list of words
		start server $program -s -P -a "$target"
		wait_listening server 20
		program "$client" "$client_at"
		# shellcheck disable=SC2086
		attempts "$contact_tries" "$contact_way $contact_device IPv$contact_family $contact_delay $contact_side" \
			$program -c -a "$target" -C 1
		[ "$client" = stock ] || expect_text_equal "$contact_count" "$passed" 'first contacts that succeed'
		send INT server
		finish server 20
	done
}
