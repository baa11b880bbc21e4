# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Packets between two guests, as decoded by tshark. A scenario with the header "# capture: yes" has NAME.packets beside it:
# its first line is the display filter that chooses the packets to judge, each other line a least number and the display
# filter of the packets it wants; the rest of a line from # on is for its readers.

# count_packets FILE FILTER...: one number a line, all from one pass over the file.
count_packets() {
	local file=$1 filter statistics=io,stat,0
	shift
	for filter in "$@"; do
		statistics+=,$filter
	done
	# The table's one row: an interval, then frames and bytes for each filter.
	tshark -r "$file" -q -z "$statistics" | sed -n 's/^|.*<>[^|]*|//p' | tr '|' '\n' | awk 'NR % 2 && NF { print $1 }'
}

# Prints a capture's errors, or nothing.
judge_capture() {
	local file=$1 table=$2 judged least filter leasts=() filters=() counts index
	{
		read -r judged
		while read -r least filter; do
			leasts+=("$least")
			filters+=("($judged) && ($filter)")
		done
	} < <(sed -e '/^#/d' -e 's/[[:space:]]*#.*//' "$table")
	if ! readarray -t counts < <(count_packets "$file" "$judged" "($judged) && infiniband" \
		"($judged) && (_ws.malformed || _ws.expert.group == \"Malformed\")" "${filters[@]}") ||
		[ "${#counts[@]}" -ne $((${#filters[@]} + 3)) ]; then
		echo "tshark cannot read the capture"
		return
	fi
	[ "${counts[0]}" -gt 0 ] || echo "there is no packet to judge"
	[ "${counts[0]}" -eq "${counts[1]}" ] ||
		echo "$((counts[0] - counts[1])) of ${counts[0]} packets are no RoCE to tshark"
	[ "${counts[2]}" -eq 0 ] || echo "${counts[2]} packets are malformed to tshark"
	for index in "${!filters[@]}"; do
		[ "${counts[index + 3]}" -ge "${leasts[index]}" ] ||
			echo "${counts[index + 3]} packets, wanted at least ${leasts[index]}: ${filters[index]#"($judged) && "}"
	done
}

# check_capture FILE SCENARIO: a result of its own, SCENARIO@decoded, if the scenario has a table.
check_capture() {
	local file=$1 name=$2 table=$scenario_dir/$2.packets begin=$SECONDS wrong
	[ -f "$table" ] || return 0
	if ! command -v tshark >/dev/null; then
		report_result skip 0.0 "$name@decoded" "tshark is not installed"
		return
	fi
	wrong=$(judge_capture "$file" "$table" 2>"$file.errors")
	if [ -n "$wrong" ]; then
		printf '%s\n' "$wrong" >>"$file.errors"
		report_result FAIL "$((SECONDS - begin)).0" "$name@decoded" "${wrong%%$'\n'*}" "$file.errors"
	else
		report_result ok "$((SECONDS - begin)).0" "$name@decoded" ''
	fi
}
