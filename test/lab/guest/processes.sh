# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Starting programs, waiting for them, and showing their output.

lab_started=
ours_under=
soft_under=
status=
out=
err=

# Executes a scenario's words as a program, so that the process id is the program's own. "stock rping" and "ours rping"
# choose the tool, "soft rping" is ours with the soft transport; "nobody" before them chooses the user.
lab_become() {
	lab_as=
	if [ "$1" = nobody ]; then
		lab_as=-n
		shift
	fi
	case $1 in
	stock)
		lab_program=/usr/bin/$2
		lab_under=
		shift 2
		# Else its output to a file appears at its end, or never if it is killed.
		export LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libstdbuf.so _STDBUF_O=L
		;;
	ours)
		lab_program=/opt/rdmatest/bin/$2
		lab_under=$ours_under
		shift 2
		;;
	soft)
		lab_program=/opt/rdmatest/bin/$2
		lab_under="$soft_under $ours_under"
		export RDMATEST_TRANSPORT=soft
		shift 2
		;;
	*)
		lab_program=$1
		lab_under=
		shift
		;;
	esac
	# shellcheck disable=SC2086 # empty or a list of words
	exec 3>&- /usr/bin/launch $lab_as $lab_under "$lab_program" "$@"
}

# Until the shell's child has executed the program, SIGINT would still be ignored, and the process would have the shell's
# name.
lab_wait_become() {
	lab_limit 20
	while [ "$now" -lt "$lab_deadline" ]; do
		lab_command=
		# Bytes of 0 are skipped.
		read -r lab_command 2>/dev/null <"/proc/$1/cmdline" || :
		case $lab_command in
		sh/lab/scenario-main* | /usr/bin/launch*) ;;
		*) return 0 ;;
		esac
		pause 0.01
		now
	done
	fail "the program did not start within $lab_seconds s"
}

# start NAME COMMAND...: runs in the background with output in NAME.out and NAME.err.
start() {
	lab_name=$1
	shift
	case $lab_name in
	*[!a-z0-9_]* | '') fail "start: '$lab_name' is no name (a-z, 0-9, _)" ;;
	esac
	step "start $lab_name: $*"
	case "$* " in
	*'stock mckey '*' -s '*) needs_stock_sender ;;
	esac
	eval "lab_shown_$lab_name=no"
	lab_become "$@" >"$lab_name.out" 2>"$lab_name.err" </dev/null &
	eval "lab_pid_$lab_name=$!"
	lab_wait_become $!
	case " $lab_started " in
	*" $lab_name "*) ;;
	*) lab_started="$lab_started $lab_name" ;;
	esac
}

# Sets lab_pid to the process started as NAME.
lab_find() {
	case " $lab_started " in
	*" $1 "*) eval "lab_pid=\$lab_pid_$1" ;;
	*) fail "nothing was started as '$1'" ;;
	esac
}

# Shows NAME's output, once, cut to a readable length; byte 1 is the lab's own mark.
show_output() {
	eval "lab_shown=\$lab_shown_$1"
	[ "$lab_shown" = no ] || return 0
	eval "lab_shown_$1=yes"
	for lab_stream in out err; do
		if [ -s "$1.$lab_stream" ]; then
			awk -v "name=$1.$lab_stream" '
				NR == 61 { print "  " name "| ... and more" }
				NR > 60 { next }
				{ gsub("\001", "?"); print "  " name "| " substr($0, 1, 400) }' "$1.$lab_stream"
		fi
	done
}

# finish NAME SECONDS: waits for the end; its exit code is then in $status, 128+N for
# signal N. It is a failure if it still runs after that time.
finish() {
	lab_find "$1"
	lab_limit "$2"
	lab_begin=$now
	until has_ended "$lab_pid"; do
		now
		if [ "$now" -ge "$lab_deadline" ]; then
			kill -KILL "$lab_pid" 2>/dev/null || :
			fail "$1 was still running after $lab_seconds s"
		fi
		pause 0.05
	done
	status=0
	wait "$lab_pid" || status=$?
	now
	show_output "$1"
	step "$1 ended with status $status after $(seconds $((now - lab_begin))) s of waiting"
}

# run SECONDS COMMAND...: in the foreground; sets $status, $out and $err.
run() {
	lab_limit=$1
	shift
	start run "$@"
	finish run "$lab_limit"
	out=$(cat run.out)
	err=$(cat run.err)
}

# send SIGNAL NAME: for example send INT server.
send() {
	lab_find "$2"
	step "send $1 to $2"
	kill -s "$1" "$lab_pid" || fail "$2 is gone, signal $1 cannot be sent"
}

# interrupt NAME SECONDS: as Ctrl-C does, and waits for the end.
interrupt() {
	send INT "$1"
	finish "$@"
}

# memory_lock_limit KILOBYTES: for everything started from here on, also as nobody.
memory_lock_limit() {
	step "memory_lock_limit $1"
	ulimit -l "$1"
}
