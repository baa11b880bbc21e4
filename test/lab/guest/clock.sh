# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Time and process state without starting a process: forks are dear under emulation.

# Sets now to hundredths of a second since boot.
now() {
	read -r lab_uptime _ </proc/uptime
	now=${lab_uptime%.*}${lab_uptime#*.}
}

# lab_limit SECONDS: sets lab_deadline. They are for an idle machine; a busy one gets six times as many, lab_seconds.
lab_limit() {
	lab_seconds=$(($1 * 6))
	now
	lab_deadline=$((now + lab_seconds * 100))
}

# Prints hundredths as seconds with one decimal.
seconds() {
	echo "$(($1 / 100)).$(($1 % 100 / 10))"
}

# pause SECONDS: "sleep" would start a process each time. This pipe never has input.
pause() {
	# shellcheck disable=SC3045 # the guest has busybox
	read -r -t "$1" _ <>/lab/never || :
}

# A process waiting to be reaped has ended too.
has_ended() {
	{ read -r lab_stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	case ${lab_stat##*) } in
	Z* | X*) return 0 ;;
	esac
	return 1
}
