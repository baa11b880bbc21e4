# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Failing, skipping, and proving that a scenario or case had an expectation.

lab_checks=0
lab_cases=0
lab_complete=no
lab_case=
lab_patterns=$(printf '%s' "$lab_filter" | tr , ' ')
lab_unmatched=$lab_patterns

say() {
	printf '%s\n' "$*"
}

step() {
	printf '> %s\n' "$*"
}

# One expectation was checked.
lab_checked() {
	lab_checks=$((lab_checks + 1))
}

# The file outlives a subshell that "exit" would only leave: a failure inside $(...)
# is found at the end.
fail() {
	printf 'FAILED: %s\n' "$*"
	[ -e /run/lab/reason ] || printf '%s\n' "$*" >/run/lab/reason
	exit 1
}

skip() {
	printf 'SKIPPED: %s\n' "$*"
	printf '%s\n' "$*" >/run/lab/reason
	exit 77
}

# is_sanitized: the tested program has AddressSanitizer.
is_sanitized() {
	[ -e /lab/sanitized ]
}

# skip_sanitized REASON: if the tested program has AddressSanitizer.
skip_sanitized() {
	! is_sanitized || skip "AddressSanitizer: $1"
}

# Output of running programs that no verb has shown yet, for the reader of a failure.
lab_show_unseen() {
	for lab_unseen in $lab_started; do
		show_output "$lab_unseen"
	done
}

lab_end_started() {
	for lab_one in $lab_started; do
		eval "lab_process=\$lab_pid_$lab_one"
		has_ended "$lab_process" || kill -KILL "$lab_process" || :
	done 2>/dev/null
}

lab_at_exit() {
	lab_status=$?
	trap - EXIT
	set +e
	if [ "$lab_status" -eq 77 ]; then
		exit 77
	fi
	if [ "$lab_complete" = no ] || [ "$lab_status" -ne 0 ]; then
		[ -e /run/lab/reason ] || echo "stopped with status $lab_status after $lab_checks checks" >/run/lab/reason
		lab_show_unseen
		lab_end_started
		exit 1
	fi
	lab_end_started
	if [ -e /run/lab/reason ]; then
		exit 1
	fi
	if [ "$lab_cases" -eq 0 ] && [ "$lab_checks" -eq 0 ]; then
		[ -n "$lab_unmatched" ] || echo "the scenario checked nothing" >/run/lab/reason
	fi
	[ -z "$lab_unmatched" ] || echo "no case matches: $lab_unmatched" >/run/lab/reason
	[ ! -e /run/lab/reason ] || exit 1
	exit 0
}

# lab_is_wanted CASE: one of the filter's patterns, which commas separate, matches it; each must match a case.
lab_is_wanted() {
	[ -n "$lab_filter" ] || return 0
	lab_wanted=1 lab_still_unmatched=
	set -f
	for lab_pattern in $lab_patterns; do
		# shellcheck disable=SC2254 # a pattern
		case $1 in
		$lab_pattern)
			lab_wanted=0
			continue
			;;
		esac
		case " $lab_unmatched " in
		*" $lab_pattern "*) lab_still_unmatched="$lab_still_unmatched${lab_still_unmatched:+ }$lab_pattern" ;;
		esac
	done
	set +f
	lab_unmatched=$lab_still_unmatched
	return $lab_wanted
}

lab_case_end() {
	lab_status=$?
	trap - EXIT
	set +e
	if [ "$lab_status" -eq 0 ] && [ -e /run/lab/reason ]; then
		lab_status=1
	fi
	if [ "$lab_status" -eq 0 ] && [ "$lab_checks" -eq 0 ]; then
		echo "the case checked nothing" >/run/lab/reason
		lab_status=1
	fi
	case $lab_status in
	0 | 77) ;;
	*)
		[ -e /run/lab/reason ] || echo "stopped with status $lab_status after $lab_checks checks" >/run/lab/reason
		lab_show_unseen
		;;
	esac
	lab_end_started
	netem_clear
	exit "$lab_status"
}

# try NAME FUNCTION [ARGUMENT...]: one case with its own verdict, in a subshell: its processes end with it, and its failure
# does not stop the next case.
try() {
	lab_case=$1
	shift
	lab_is_wanted "$lab_case" || return 0
	lab_cases=$((lab_cases + 1))
	printf '%s\n' "$lab_case" >/run/lab/case
	rm -f /run/lab/reason
	# Two guests begin a case together: the host ends one guest's wait in a case that the other has left.
	[ "$LAB_ROLE" = none ] || barrier "case $lab_case"
	say "=== $lab_case"
	now
	lab_case_begin=$now
	# In the background, because "set -e" is off inside anything whose status is tested.
	(
		trap lab_case_end EXIT
		mkdir -p "/run/lab/work/$lab_case"
		cd "/run/lab/work/$lab_case" || exit
		lab_checks=0
		lab_started=
		"$@"
	) &
	lab_status=0
	wait $! || lab_status=$?
	now
	case $lab_status in
	0) lab_verdict=ok ;;
	77) lab_verdict=skip ;;
	*)
		lab_verdict=FAIL
		# Kernel messages of this case do not count against the next.
		echo "lab: begin $lab_scenario" >/dev/kmsg
		;;
	esac
	lab_reason=
	[ ! -e /run/lab/reason ] || lab_reason=$(tr '\n\001' '  ' </run/lab/reason)
	printf '\001case %s %s %s %s\n' "$lab_verdict" "$(seconds $((now - lab_case_begin)))" \
		"$lab_case" "$lab_reason" >&3
	rm -f /run/lab/reason /run/lab/case
}
