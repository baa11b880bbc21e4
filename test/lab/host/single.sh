# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# A worker: one guest at a time that runs scenarios from the queue. If a guest hangs or dies, its present scenario fails, and
# the next one gets a fresh guest.

# For a busy machine, like the guest's limits (clock.sh).
boot_limit=900
# On top of a scenario's own limit, which the guest enforces.
guest_grace=30

single_worker() {
	local folder=$1 queue=$2 overlay='' name
	trap 'guest_end_all; exit 143' TERM
	while queue_take "$queue"; do
		name=$REPLY
		scenario_header "$name" overlay none
		if [ "$REPLY" != "$overlay" ] || ! guest_is_running "$folder"; then
			overlay=$REPLY
			guest_end "$folder"
			if ! boot "$folder" "$overlay" none; then
				boot_failed "$folder" "$name"
				continue
			fi
		fi
		run_in_guest "$folder" "$name"
	done
	guest_end "$folder"
}

# Once more if it fails: a busy machine can be slow to a fault.
boot() {
	local folder=$1
	guest_start "$@"
	guest_wait_ready "$folder" "$boot_limit" && return 0
	complain "a guest did not boot; trying once more"
	guest_end "$folder"
	guest_start "$@"
	guest_wait_ready "$folder" "$boot_limit"
}

boot_failed() {
	append_console "$1" >"$1/transcript"
	guest_end "$1"
	report_result FAIL 0.0 "$2" "the guest did not boot" "$1/transcript"
}

# Reads what the guest writes until the scenario's end. A case is reported when it
# ends; the scenario itself only if it has no cases, or failed outside them.
run_in_guest() {
	local folder=$1 name=$2 deadline=0 line cases=0 verdict took case_name reason
	local transcript=$results/${name%%@*} part=$folder/part blank='' begin=$SECONDS
	mkdir -p "${transcript%/*}"
	: >"$transcript"
	: >"$part"
	scenario_header "$name" time 60
	deadline=$((SECONDS + 6 * REPLY + guest_grace))
	guest_say "$folder" "run $name"
	while :; do
		if ! guest_line "$folder"; then
			if ! guest_is_running "$folder"; then
				lost_guest "$folder" "$name" "$begin" "the guest died"
				return
			fi
			if [ "$SECONDS" -ge "$deadline" ]; then
				lost_guest "$folder" "$name" "$begin" "the guest hung: no result within its limit"
				return
			fi
			continue
		fi
		line=$REPLY
		case $line in
		$'\001case '*)
			read -r _ verdict took case_name reason <<<"$line"
			cases=$((cases + 1))
			report_result "$verdict" "$took" "${name%%@*}@$case_name" "$reason" "$part"
			: >"$part"
			;;
		$'\001end '*)
			read -r _ verdict took reason <<<"$line"
			if [ "$verdict" != ok ] || [ "$cases" -eq 0 ]; then
				report_result "$verdict" "$took" "$name" "$reason" "$part"
			fi
			return
			;;
		*)
			# The guest adds an end to a possibly unfinished line; if it was complete, this is a blank line,
			# which is held back until more follows.
			if [ -z "$line" ]; then
				blank+=$'\n'
				continue
			fi
			printf '%s%s\n' "$blank" "$line" >>"$part"
			printf '%s%s\n' "$blank" "$line" >>"$transcript"
			blank=
			;;
		esac
	done
}

lost_guest() {
	local folder=$1 name=$2
	append_console "$folder" >>"$folder/part"
	append_console "$folder" >>"$results/${name%%@*}"
	guest_end "$folder"
	report_result FAIL "$((SECONDS - $3)).0" "$name" "$4" "$folder/part"
}
