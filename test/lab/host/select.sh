# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Which scenarios to run, and the queue the guests take them from.

single_scenarios=()
pair_scenarios=()
left_out=()

# scenario_header NAME KEY DEFAULT
scenario_header() {
	REPLY=$(sed -n "s/^# $2: *//p" "$scenario_dir/${1%%@*}")
	REPLY=${REPLY%%$'\n'*}
	REPLY=${REPLY:-$3}
}

all_scenarios() {
	(cd "$scenario_dir" && find . -mindepth 2 -type f ! -name '*.*' | sed 's#^\./##' | sort)
}

# list_scenarios HEADER: the scenarios with it, each with its text.
list_scenarios() {
	local name
	for name in $(all_scenarios); do
		scenario_header "$name" "$1" ''
		[ -z "$REPLY" ] || printf '%-28s %s\n' "$name" "$REPLY"
	done
}

# The scenarios of a run without names: all, or those of the core, with their cases.
default_scenarios() {
	local name
	for name in $(all_scenarios); do
		if [ "$core" = yes ]; then
			scenario_header "$name" core ''
			[ -n "$REPLY" ] || continue
			scenario_header "$name" 'core cases' ''
			echo "$name${REPLY:+@${REPLY// /,}}"
			continue
		fi
		echo "$name"
	done
}

# Sorts the scenarios named by the arguments into single and pair, longest first, so
# that no guest starts a long one when the others are done.
select_scenarios() {
	local wanted name chosen=()
	[ $# -gt 0 ] || mapfile -t chosen < <(default_scenarios)
	for wanted in "$@"; do
		if [ -f "$scenario_dir/${wanted%%@*}" ]; then
			chosen+=("$wanted")
		elif [ -d "$scenario_dir/$wanted" ]; then
			mapfile -t -O "${#chosen[@]}" chosen < <(all_scenarios | grep "^${wanted%/}/")
		else
			die "there is no scenario $wanted; -l lists them"
		fi
	done
	[ "${#chosen[@]}" -gt 0 ] || die "there is no scenario to run"
	while read -r _ name; do
		scenario_header "$name" guests 1
		case $REPLY in
		1) single_scenarios+=("$name") ;;
		2) pair_scenarios+=("$name") ;;
		*) die "$name: the header '# guests:' must be 1 or 2, not '$REPLY'" ;;
		esac
	done < <(for name in "${chosen[@]}"; do
		scenario_header "$name" overlay none
		[ "$REPLY" = none ] && plain=1 || plain=0
		scenario_header "$name" time 60
		# Those with an overlay come last: they need another boot.
		printf '%s%05d %s\n' "$plain" "$REPLY" "$name"
	done | sort -r -s -k1,1)
}

wanted_overlays() {
	local name
	for name in "${single_scenarios[@]}" "${pair_scenarios[@]}"; do
		scenario_header "$name" overlay none
		echo "$REPLY"
	done | sort -u
}

# leave_out OVERLAY: excludes scenarios with two guests and that overlay.
leave_out() {
	local name chosen=("${pair_scenarios[@]}")
	pair_scenarios=()
	for name in "${chosen[@]}"; do
		scenario_header "$name" overlay none
		if [ "$REPLY" = "$1" ]; then
			left_out+=("$name")
		else
			pair_scenarios+=("$name")
		fi
	done
}

queue_write() {
	local file=$1
	shift
	printf '%s\n' "$@" >"$file"
	: >"$file.lock"
}

# The next scenario in REPLY; 1 if there is none, or no reader of the result.
queue_take() {
	local file=$1
	kill -0 $$ 2>/dev/null || return 1
	exec {queue_lock}<"$file.lock"
	flock "$queue_lock"
	REPLY=$(head -n 1 "$file")
	sed -i 1d "$file"
	exec {queue_lock}<&-
	[ -n "$REPLY" ]
}
