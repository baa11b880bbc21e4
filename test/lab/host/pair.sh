# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Two guests on one virtual segment that run each scenario together, one as role a,
# one as role b. The segment is a socket between the two QEMUs: nothing leaves them.

pair_network() {
	local folder=$1 role=$2
	if [ "$role" = a ]; then
		REPLY="stream,id=segment,server=on,addr.type=unix,addr.path=$folder.segment"
	else
		REPLY="stream,id=segment,server=off,addr.type=unix,addr.path=$folder.segment"
	fi
}

pair_start() {
	local folder=$1 overlay=$2 role number=0 try
	rm -f "$folder.segment"
	for role in a b; do
		number=$((number + 1))
		pair_network "$folder" "$role"
		guest_start "$folder.$role" "$overlay" "$role" -netdev "$REPLY" \
			-device "virtio-net-pci,netdev=segment,mac=52:54:00:00:00:0$number"
		# The second connects, so the first must be there.
		for ((try = 0; try < 100; try++)); do
			[ -S "$folder.segment" ] && break
			sleep 0.1
		done
	done
	guest_wait_ready "$folder.a" "$boot_limit" && guest_wait_ready "$folder.b" "$boot_limit"
}

pair_end() {
	guest_end "$1.a"
	guest_end "$1.b"
}

pair_worker() {
	local folder=$1 queue=$2 overlay='' name
	trap 'guest_end_all; exit 143' TERM
	while queue_take "$queue"; do
		name=$REPLY
		scenario_header "$name" overlay none
		if [ "$REPLY" != "$overlay" ] || ! guest_is_running "$folder.a" || ! guest_is_running "$folder.b"; then
			overlay=$REPLY
			pair_end "$folder"
			if ! pair_start "$folder" "$overlay"; then
				pair_end "$folder"
				complain "two guests did not boot; trying once more"
				pair_start "$folder" "$overlay" || {
					append_console "$folder.a" >"$folder.transcript"
					append_console "$folder.b" >>"$folder.transcript"
					pair_end "$folder"
					report_result FAIL 0.0 "$name" "the two guests did not boot" "$folder.transcript"
					continue
				}
			fi
		fi
		run_in_pair "$folder" "$name"
	done
	pair_end "$folder"
}

# Lets guests go on at a barrier when both are there, and tells one that waits in
# vain when the other has ended.
pair_barriers() {
	local folder=$1 role other
	if [ -n "${at_barrier[a]}" ] && [ "${at_barrier[a]}" = "${at_barrier[b]}" ]; then
		at_barrier=([a]='' [b]='')
		guest_say "$folder.a" go
		guest_say "$folder.b" go
		return
	fi
	for role in a b; do
		[ "$role" = a ] && other=b || other=a
		if [ -n "${at_barrier[$role]}" ] && [ -n "${verdict_of[$other]}" ]; then
			at_barrier[$role]=
			guest_say "$folder.$role" gone
		fi
	done
}

run_in_pair() {
	local folder=$1 name=$2 role line verdict took reason deadline begin=$SECONDS
	local transcript=$results/$name
	local -A at_barrier=([a]='' [b]='') verdict_of=([a]='' [b]='') took_by reason_of
	mkdir -p "${transcript%/*}"
	: >"$transcript"
	scenario_header "$name" time 60
	deadline=$((SECONDS + REPLY + guest_grace))
	guest_say "$folder.a" "run $name"
	guest_say "$folder.b" "run $name"
	while [ -z "${verdict_of[a]}" ] || [ -z "${verdict_of[b]}" ]; do
		for role in a b; do
			while guest_line "$folder.$role" 0.1; do
				line=$REPLY
				case $line in
				$'\001barrier '*) at_barrier[$role]=${line#* } ;;
				$'\001end '*)
					read -r _ verdict took reason <<<"$line"
					verdict_of[$role]=$verdict took_by[$role]=$took reason_of[$role]=$reason
					;;
				$'\001case '*)
					printf '%s| a scenario of two guests has no cases\n' "$role" >>"$transcript"
					verdict_of[$role]=FAIL took_by[$role]=0.0 reason_of[$role]="uses cases"
					;;
				*) printf '%s| %s\n' "$role" "$line" >>"$transcript" ;;
				esac
			done
			if ! guest_is_running "$folder.$role" || [ "$SECONDS" -ge "$deadline" ]; then
				append_console "$folder.a" >>"$transcript"
				append_console "$folder.b" >>"$transcript"
				pair_end "$folder"
				report_result FAIL "$((SECONDS - begin)).0" "$name" "guest $role died or hung" "$transcript"
				return
			fi
		done
		pair_barriers "$folder"
	done
	for role in a b; do
		case ${verdict_of[$role]} in
		ok) ;;
		*)
			report_result "${verdict_of[$role]}" "${took_by[$role]}" "$name" \
				"guest $role: ${reason_of[$role]}" "$transcript"
			return
			;;
		esac
	done
	report_result ok "${took_by[a]}" "$name" ''
}
