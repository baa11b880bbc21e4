# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Many clients in a few processes, in waves, of which one process a wave is killed; long lives. Every verdict must be right, and
# in between the server and the kernel hold what they held before.

# number NAME FILE: of a JSON summary.
number() {
	sed 's/"targets":.*//' "$2" | grep -o "\"$1\":[0-9]*" | head -n 1 | cut -d : -f 2
}

# memory NAME PID: its KiB; VmHWM is the most so far.
memory() {
	sed -n "s/^$1:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$2/status" 2>/dev/null || :
}

objects() {
	for objects_kind in qp cq mr pd cm_id ctx; do
		rdma resource show $objects_kind | grep -c " pid $1 " || :
	done | tr '\n' '/'
}

# hold NAME PID [objects]: what a process has now, in a line of NAME.held: KiB now and at most, descriptors, the kernel's own KiB,
# and objects of RDMA, which take a second to count. Nothing, if it ends meanwhile. The loop's alarm is made when first a client
# is ahead of its time, which may be late on a slow machine.
hold() {
	hold_line="$(memory VmRSS "$2") $(memory VmHWM "$2") $(readlink "/proc/$2/fd"/* 2>/dev/null | grep -vc timerfd || :)"
	hold_line="$hold_line $(sed -n 's/^SUnreclaim:[^0-9]*\([0-9]*\).*/\1/p' /proc/meminfo) ${3:+$(objects "$2")}"
	[ -z "$(memory VmRSS "$2")" ] || echo "$hold_line" >>"$1.held"
}

# held_alike NAME: in the second line of its file, when all has been used once, and in the last.
held_alike() {
	cat "$1.held"
	expect_between 3 "$(wc -l <"$1.held")" 100000 'times that one looked'
	read -r first_kib first_most first_open first_kernel first_objects <<-LINE
		$(sed -n 2p "$1.held")
	LINE
	read -r last_kib last_most last_open last_kernel last_objects <<-LINE
		$(tail -n 1 "$1.held")
	LINE
	say "RESULT memory_$1	$first_kib KiB, $last_kib KiB"
	say "RESULT memory_most_$1	$first_most KiB, $last_most KiB"
	say "RESULT kernel_memory_$1	$first_kernel KiB, $last_kernel KiB"
	# AddressSanitizer keeps freed memory.
	if ! is_sanitized; then
		expect_between 0 "$last_kib" $((first_kib + first_kib / 20 + 512)) "KiB of $1"
		expect_between 0 "$last_most" $((first_most + first_most / 20 + 512)) "KiB at most of $1"
	fi
	expect_between 0 "$last_kernel" $((first_kernel + first_kernel / 20 + 4096)) "KiB of the kernel's own"
	expect_text_equal "$first_open" "$last_open" "descriptors of $1"
	expect_text_equal "$first_objects" "$last_objects" "objects of RDMA of $1"
}

# $server is its number.
serve() {
	start server ours rping -s -P -a 10.0.0.1 -V --timeout 180s
	wait_listening server 10
	lab_find server
	server=$lab_pid
}

# targets COUNT: a file.
targets() {
	awk -v count="$1" 'BEGIN { for (i = 0; i < count; i++) print "10.0.0.1" }' >targets
}

# All of the clients of NAME, so many, have had an answer.
answered() {
	[ "$(grep -c 'rdma-ping-0: ' "$1.out")" -eq "$2" ]
}

# The server knows of the end of each.
ended() {
	[ "$(grep -c ' from ' server.out)" -ge $((served + lost)) ]
}

# end_process NAME: all of its clients were served.
end_process() {
	finish "$1" 600 >finish.text
	expect_status 0
	expect_silent "$1.err"
	process_sent=$(number sent "$1.out")
	expect_text_equal "$process_sent" "$(number answered "$1.out")" 'pings answered'
	expect_text_equal "$process_sent" "$(number verified "$1.out")" 'pings verified'
	expect_text_equal "$((each + 1))" "$(grep -o '"verdict":"pass"' "$1.out" | wc -l)" 'clients that passed, and the whole'
	served=$((served + each)) pings=$((pings + process_sent))
	process_median=$(number p50_ns "$1.out") process_worst=$(number p99_ns "$1.out")
	echo "$wave $process_median $process_worst" >>latencies
	say "$1: $process_sent pings, round trip median $process_median ns, p99 $process_worst ns"
	rm "$1.out" "$1.err"
}

# begin_process NAME OPTION...
begin_process() {
	process_name=$1
	shift
	start "$process_name" ours rping -c --targets targets -V --interval "$interval" --timeout 180s "$@" >start.text
}

# begin_wave: one process, $victim, is to be killed. It has promised a million pings: the kernel takes leave of the server for
# whoever dies, which is no failure of a client that promised nothing.
begin_wave() {
	process=0
	while [ "$process" -lt "$processes" ]; do
		if [ "$process" -eq "$victim" ]; then
			begin_process victim -v -C 1000000
		else
			begin_process "p$process" --duration "${lasting}s" --json
		fi
		process=$((process + 1))
	done
	wait_until 600 'the clients to be killed have had an answer' answered victim "$each"
	sleep "$(awk "BEGIN { print $lasting * $moment / 100 }")"
	send KILL victim
	finish victim 180 >finish.text
	expect_silent victim.err
	lost=$((lost + each))
	rm victim.out
}

# latency COLUMN WAVE: the median over the processes of that wave, in milliseconds.
latency() {
	awk -v wave="$2" -v column="$1" '$1 == wave { print $column }' latencies | sort -n | awk '
		{ value[NR] = $1 } END { printf "%.1f ms", value[int((NR + 1) / 2)] / 1000000 }'
}

# begin_watch, and watched, which says how many seconds it has been.
begin_watch() {
	now
	# shellcheck disable=SC2154 # now sets it
	watch_begin=$now
}

watched() {
	now
	say "RESULT seconds	$(((now - watch_begin) / 100))"
}

# watched_for SECONDS: it has been as long.
watched_for() {
	now
	[ $((now - watch_begin)) -ge $(($1 * 100)) ]
}

# waves SECONDS LEAST PROCESSES EACH LASTING INTERVAL SEED: for so many SECONDS, and that many waves at LEAST. A wave is PROCESSES
# of EACH clients, LASTING so many seconds; another comes for the killed one and is left alone with the server for a while.
waves() {
	seconds=$1 waves=$2 processes=$3 each=$4 lasting=$5 interval=$6 seed=$7
	served=0 pings=0 lost=0 wave=0
	begin_watch
	targets "$each"
	serve
	until [ "$wave" -ge "$waves" ] && watched_for "$seconds"; do
		wave=$((wave + 1))
		# Which one is killed, and after how many hundredths of the time.
		read -r victim moment <<-LINE
			$(awk -v seed="$((seed + wave))" -v count="$processes" 'BEGIN { srand(seed); print int(rand() * count), int(rand() * 90) }')
		LINE
		begin_wave
		begin_process new --duration "$((lasting / 4 + 1))s" --json
		process=0
		while [ "$process" -lt "$processes" ]; do
			[ "$process" -eq "$victim" ] || end_process "p$process"
			process=$((process + 1))
		done
		end_process new
		wait_until 120 "the server knows of $((served + lost)) ends" ended
		hold server "$server" objects
		say "wave $wave: $((processes * each)) clients, $pings pings so far, load average $(cut -d ' ' -f 1 /proc/loadavg)"
	done
	send INT server
	finish server 60 >finish.text
	tail -n 1 server.out
	expect_status 1
	expect_line server.out "^rping: FAILED: served $served clients, [0-9]+ pings, $lost clients? failed \\(verbs\\)\$"
	expect_count server.out ' pings? of [0-9]+ bytes? from .* answered and verified' "$served"
	expect_text_equal "$pings" "$(awk '/ answered and verified / { sum += $2 } END { print sum }' server.out)" 'pings of the served'
	expect_text_equal "$lost" "$(grep -vc 'hint: ' server.err)" 'errors of the server'
	held_alike server
	rdma_leftovers
	kernel_log_clean
	say "RESULT clients_at_once	$((processes * each))"
	say "RESULT clients	$((served + lost))"
	say "RESULT killed	$lost"
	say "RESULT pings	$(sed -n 's/^rping: FAILED: served .* clients, \([0-9]*\) pings.*/\1/p' server.out)"
	say "RESULT waves	$wave"
	say "RESULT seed	$seed"
	say "RESULT interval	$interval"
	say "RESULT wrong_verdicts	0"
	say "RESULT round_trip_median	$(latency 2 2), $(latency 2 "$wave")"
	say "RESULT round_trip_p99	$(latency 3 2), $(latency 3 "$wave")"
	watched
}

connected() {
	rdma resource show qp | grep -q " pid $server "
}

# long_connection PINGS [OPTION...]: over one connection; both ends are looked at all the time.
long_connection() {
	begin_watch
	serve
	wanted=$1
	shift
	start client ours rping -c -a 10.0.0.1 -V -C "$wanted" --timeout 180s --json "$@"
	wait_until 30 'the client is connected' connected
	lab_find client
	until has_ended "$lab_pid"; do
		hold server "$server"
		hold client "$lab_pid"
		sleep 0.3
	done
	finish client 10
	expect_status 0
	expect_silent client.err
	expect_text_equal "$wanted" "$(number verified client.out)" 'pings verified'
	send INT server
	finish server 20
	expect_status 0
	expect_silent server.err
	expect_line server.out "^rping: served 1 client, $wanted pings \\(verbs\\)\$"
	held_alike server
	held_alike client
	rdma_leftovers
	kernel_log_clean
	say "RESULT pings	$wanted of 100 bytes"
	say "RESULT round_trip	median $(($(number p50_ns client.out) / 1000)) us"
	watched
}

# come_and_go TIMES EACH: so many clients, each with a ping.
come_and_go() {
	times=$1 each=$2
	begin_watch
	targets "$each"
	serve
	turn=0
	while [ "$turn" -lt "$times" ]; do
		turn=$((turn + 1))
		run 120 ours rping -c --targets targets -C 1 -V --timeout 180s >run.text
		expect_status 0
		expect_silent run.err
		served=$((turn * each)) lost=0
		wait_until 60 "the server knows of $served ends" ended
		hold server "$server" objects
	done
	send INT server
	finish server 20 >finish.text
	expect_status 0
	expect_silent server.err
	expect_line server.out "^rping: served $served clients, $served pings \\(verbs\\)\$"
	held_alike server
	rdma_leftovers
	kernel_log_clean
	say "RESULT connections	$served, $each by a process"
	watched
}

# many TIMES COUNT: so many connections of ucmatose at once, a server each time; the kernel's own memory is looked at after each.
many() {
	turn=0
	begin_watch
	while [ "$turn" -lt "$1" ]; do
		turn=$((turn + 1))
		start server ours ucmatose -b 10.0.0.1 -c "$2" -C 0 --timeout 180s
		wait_listening server 10
		run 200 ours ucmatose -s 10.0.0.1 -c "$2" -C 0 --timeout 180s >run.text
		expect_status 0
		expect_silent run.err
		finish server 20 >finish.text
		expect_status 0
		expect_silent server.err
		rdma_leftovers
		hold kernel self
	done
	held_alike kernel
	kernel_log_clean
	say "RESULT connections	$(($1 * $2)), $2 at once"
	watched
}
