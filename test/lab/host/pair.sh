# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Two guests on one virtual segment that run each scenario together, one as role a,
# one as role b. The segment is a socket between the two QEMUs: nothing leaves them.

# pair_start FOLDER OVERLAY CAPTURE
pair_start() {
	local folder=$1 overlay=$2 capture=$3 role try number=0 listens=on record
	rm -f "$folder.segment"
	for role in a b; do
		number=$((number + 1)) record=()
		# Each guest sees all packets of the other.
		if [ "$capture$role" = yesb ]; then
			record=(-object "filter-dump,id=capture,netdev=segment,file=$folder.b/capture")
		fi
		guest_start "$folder.$role" "$overlay" "$role" \
			-netdev "stream,id=segment,server=$listens,addr.type=unix,addr.path=$folder.segment" \
			-device "virtio-net-pci,netdev=segment,mac=52:54:00:00:00:0$number" "${record[@]}"
		# The second connects, so the first must exist.
		for ((try = 0; try < 100; try++)); do
			[ -S "$folder.segment" ] && break
			sleep 0.1
		done
		listens=off
	done
	guest_wait_ready "$folder.a" "$boot_limit" && guest_wait_ready "$folder.b" "$boot_limit"
}

pair_end() {
	guest_end "$1.a"
	guest_end "$1.b"
}

pair_worker() {
	local folder=$1 queue=$2 overlay='' capture='' name wanted
	trap 'guest_end_all; exit 143' TERM
	while queue_take "$queue"; do
		name=$REPLY
		scenario_header "$name" capture no
		wanted=$REPLY
		scenario_header "$name" overlay none
		# A capture has one scenario: the next needs another boot.
		if [ "$REPLY" != "$overlay" ] || [ "$wanted$capture" != nono ] || ! guest_is_running "$folder.a" ||
			! guest_is_running "$folder.b"; then
			overlay=$REPLY
			capture=$wanted
			pair_end "$folder"
			if ! pair_start "$folder" "$overlay" "$capture"; then
				pair_end "$folder"
				complain "two guests did not boot; trying once more"
				pair_start "$folder" "$overlay" "$capture" || {
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

# Lets guests continue at a barrier when both have reached it, and informs a waiting one if the other has ended, or has left
# the case for the next one.
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
		[ -n "${at_barrier[$role]}" ] || continue
		if [ -n "${verdict_of[$other]}" ] ||
			{ [[ ${at_barrier[$other]} = 'case '* ]] && [[ ${at_barrier[$role]} != 'case '* ]]; }; then
			at_barrier[$role]=
			guest_say "$folder.$role" gone
		fi
	done
}

# worse_verdict ONE OTHER: in REPLY.
worse_verdict() {
	case "$1 $2" in
	*FAIL*) REPLY=FAIL ;;
	*skip*) REPLY=skip ;;
	*) REPLY=ok ;;
	esac
}

# One guest's part of a case: reported once the other's has also arrived, guest a's reason first.
pair_case() {
	local name=$1 role=$2 verdict=$3 took=$4 case_name=$5 reason=${6:+guest $2: $6}
	if [ -z "$half_case" ]; then
		half_case=$case_name half_verdict=$verdict half_reason=$reason
		return
	fi
	[ "$case_name" = "$half_case" ] || verdict=FAIL reason="guest $role ran $case_name, the other $half_case"
	if [ "$role" = a ]; then
		reason=$reason${reason:+${half_reason:+; }}$half_reason
	else
		reason=$half_reason${reason:+${half_reason:+; }}$reason
	fi
	worse_verdict "$verdict" "$half_verdict"
	report_result "$REPLY" "$took" "$name@$case_name" "$reason" "$part"
	half_case=
	cases=$((cases + 1))
	: >"$part"
}

run_in_pair() {
	local folder=$1 name=$2 role line verdict took case_name reason deadline begin=$SECONDS
	local transcript=$results/${name%%@*} part=$folder.part cases=0 half_case='' half_verdict half_reason
	local -A at_barrier=([a]='' [b]='') verdict_of=([a]='' [b]='') took_by reason_of
	mkdir -p "${transcript%/*}"
	: >"$transcript"
	: >"$part"
	scenario_header "$name" time 60
	deadline=$((SECONDS + 6 * REPLY + guest_grace))
	guest_say "$folder.a" "run $name"
	guest_say "$folder.b" "run $name"
	while [ -z "${verdict_of[a]}" ] || [ -z "${verdict_of[b]}" ]; do
		for role in a b; do
			while guest_line "$folder.$role"; do
				line=$REPLY
				case $line in
				$'\001barrier '*) at_barrier[$role]=${line#* } ;;
				$'\001end '*)
					read -r _ verdict took reason <<<"$line"
					verdict_of[$role]=$verdict took_by[$role]=$took reason_of[$role]=$reason
					;;
				$'\001case '*)
					read -r _ verdict took case_name reason <<<"$line"
					pair_case "${name%%@*}" "$role" "$verdict" "$took" "$case_name" "$reason"
					;;
				*)
					printf '%s| %s\n' "$role" "$line" >>"$transcript"
					printf '%s| %s\n' "$role" "$line" >>"$part"
					;;
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
				"guest $role: ${reason_of[$role]}" "$part"
			return
			;;
		esac
	done
	[ "$cases" -gt 0 ] || report_result ok "${took_by[a]}" "$name" ''
	# Some cases do not have a complete result.
	[[ $name = *@* ]] || check_capture "$folder.b/capture" "$name"
}
