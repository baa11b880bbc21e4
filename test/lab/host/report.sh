# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# A run's output for a person, and the results as files:
#   results/summary              one line a result: verdict, seconds, name, reason
#   results/GROUP/NAME           the transcript

# print_result VERDICT SECONDS NAME REASON
print_result() {
	printf '%-4s %6ss %s%s\n' "$1" "$2" "$3" "${4:+: $4}"
}

# The end of a failed first attempt is kept here.
first_failure() {
	echo "$run_folder/first-${1//\//-}"
}

# report_result VERDICT SECONDS NAME REASON [TRANSCRIPT FILE]: one line, and for a
# failure its transcript, never mixed with another worker's. A failure while $tries_again is "yes" may still pass.
report_result() {
	local verdict=$1 took=$2 name=$3 reason=$4 transcript=${5:-} label=$1 lock
	[ "$verdict$tries_again" != FAILyes ] || label=fail
	exec {lock}<"$run_folder/print.lock"
	flock "$lock"
	printf '%s %s %s %s\n' "$verdict" "$took" "$name" "$reason" >>"$results/summary"
	print_result "$label" "$took" "$name" "$reason"
	if [ "$verdict" = FAIL ]; then
		[ -z "$transcript" ] || sed 's/^/    /' "$transcript"
		[ "$label" = FAIL ] || {
			[ -z "$transcript" ] || tail -n 12 "$transcript"
			echo "$reason"
		} >"$(first_failure "${name%@decoded}")"
	fi
	exec {lock}<&-
}

# Adds a console's end to a transcript: a panic is reported nowhere else.
append_console() {
	printf '%s\n' '--- the end of the guest console:'
	tail -n 40 "$1/console" | tr -d '\000-\010\013-\037'
	tail -n 5 "$1/qemu"
}

# has_result SCENARIO[@CASE] [VERDICT]: in this attempt. Of the scenario, or of a list or pattern of cases, any case's will do.
attempt_line=0
has_result() {
	local name=$1
	[[ $name != *[*,]* ]] || name=${name%%@*}
	awk -v name="$name" -v verdict="${2-}" -v since="$attempt_line" '
		NR > since && (verdict == "" || $1 == verdict) && ($3 == name || index($3, name "@") == 1) { found = 1 }
		END { exit !found }' "$results/summary"
}

# Every requested scenario must have left a result: one without has failed. Failures are named again at the end, where
# readers look.
report_totals() {
	local name took reason passed failed skipped final=${LAB_RESULTS:-$artefacts/results}
	for name in "$@"; do
		has_result "${name%%@*}" || report_result FAIL 0.0 "$name" "the lab lost it: no result came"
	done
	while read -r _ took name reason; do
		print_result FAIL "$took" "$name" "$reason"
	done < <(grep '^FAIL ' "$results/summary" || :)
	# A second attempt at a scenario repeats cases that had passed.
	passed=$(awk '$1 == "ok" && !seen[$3]++' "$results/summary" | wc -l)
	failed=$(grep -c '^FAIL ' "$results/summary" || :)
	skipped=$(grep -c '^skip ' "$results/summary" || :)
	rm -rf "$final"
	mkdir -p "$(dirname "$final")"
	mv "$results" "$final"
	if [ "$skipped" -gt 0 ]; then
		printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	else
		printf '%d passed, %d failed\n' "$passed" "$failed"
	fi
	[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
}
