# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Many clients in a few processes, in waves, of which one process a wave is killed; long lives. Every verdict must be right, and
# between the waves the server and the kernel hold what they held before.

# A number of a JSON summary: number NAME FILE.
number() {
	sed 's/"targets":.*//' "$2" | grep -o "\"$1\":[0-9]*" | head -n 1 | cut -d : -f 2
}

# What is held: WHEN, the server's KiB and descriptors, the kernel's own KiB, objects of RDMA. One line.
held() {
	echo "$1 $(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$2/status") $(ls "/proc/$2/fd" | wc -l)" \
		"$(sed -n 's/^SUnreclaim:[^0-9]*\([0-9]*\).*/\1/p' /proc/meminfo)" \
		"$(for held_kind in qp cq mr pd cm_id ctx; do rdma resource show $held_kind | grep -c ' pid '; done | tr '\n' '/')"
}

# held_alike WHEN: the same in the second line of that name, when all has been used once, and in the last.
held_alike() {
	grep "^$1 " held >held.some
	cat held.some
	alike_lines=$(wc -l <held.some)
	[ "$alike_lines" -ge 2 ] || fail "looked only $alike_lines times at what is held"
	read -r _ first_kib first_open first_kernel first_objects <<-LINE
		$(sed -n 2p held.some)
	LINE
	read -r _ last_kib last_open last_kernel last_objects <<-LINE
		$(tail -n 1 held.some)
	LINE
	say "RESULT memory_$1	$first_kib KiB, $last_kib KiB"
	say "RESULT kernel_memory_$1	$first_kernel KiB, $last_kernel KiB"
	expect_between 0 "$last_kib" $((first_kib + first_kib / 20 + 512)) "KiB of the server, $1"
	expect_between 0 "$last_kernel" $((first_kernel + first_kernel / 20 + 4096)) "KiB of the kernel, $1"
	expect_text_equal "$first_open" "$last_open" "descriptors of the server, $1"
	expect_text_equal "$first_objects" "$last_objects" "objects of RDMA, $1"
}

# All of the clients of NAME, so many, have had an answer.
answered() {
	[ "$(grep -c 'rdma-ping-0: ' "$1.out")" -eq "$2" ]
}

# begin_process NAME OPTION...: so many clients as $each.
begin_process() {
	begin_name=$1
	shift
	start "$begin_name" ours rping -c --targets targets -V --interval "$interval" --timeout 60s "$@"
}

# end_process NAME: all of its clients were served.
end_process() {
	finish "$1" 300 >finish.text
	expect_status 0
	expect_silent "$1.err"
	ended_sent=$(number sent "$1.out")
	expect_text_equal "$ended_sent" "$(number answered "$1.out")" "pings answered"
	expect_text_equal "$ended_sent" "$(number verified "$1.out")" "pings verified"
	expect_text_equal "$((each + 1))" "$(grep -o '"verdict":"pass"' "$1.out" | wc -l)" "clients that passed, and the whole"
	served=$((served + each)) pings=$((pings + ended_sent))
	say "$1: $ended_sent pings, round trip median $(number p50_ns "$1.out") ns, p99 $(number p99_ns "$1.out") ns"
	rm "$1.out" "$1.err"
}

# waves WAVES PROCESSES EACH SECONDS INTERVAL SEED: a wave is PROCESSES of EACH clients, so long, and then a few.
waves() {
	waves=$1 processes=$2 each=$3 lasting=$4 interval=$5 seed=$6
	served=0 pings=0 lost=0 wave=0
	awk -v count="$each" 'BEGIN { for (i = 0; i < count; i++) print "10.0.0.1" }' >targets
	: >held
	start server ours rping -s -P -a 10.0.0.1 -V --timeout 60s
	wait_listening server 10
	lab_find server
	server=$lab_pid
	while [ "$wave" -lt "$waves" ]; do
		wave=$((wave + 1))
		# The one that is killed, and when: after so many hundredths of the time. It has promised a million pings: the kernel
		# takes leave of the server for whoever dies, which is else no failure.
		read -r victim moment <<-LINE
			$(awk -v seed="$((seed + wave))" -v count="$processes" 'BEGIN { srand(seed); print int(rand() * count), int(rand() * 90) }')
		LINE
		process=0
		while [ "$process" -lt "$processes" ]; do
			if [ "$process" -eq "$victim" ]; then
				begin_process victim -v -C 1000000
			else
				begin_process "p$process" --duration "${lasting}s" --json
			fi
			process=$((process + 1))
		done
		wait_until 300 'the clients to be killed have had an answer' answered victim "$each"
		sleep "$(awk "BEGIN { print $lasting * $moment / 100 }")"
		held full "$server" >>held
		send KILL victim
		finish victim 10 >finish.text
		expect_silent victim.err
		lost=$((lost + each))
		rm victim.out
		begin_process new --duration "$((lasting / 4 + 1))s" --json
		process=0
		while [ "$process" -lt "$processes" ]; do
			[ "$process" -eq "$victim" ] || end_process "p$process"
			process=$((process + 1))
		done
		end_process new
		wait_until 120 "the server knows of $((served + lost)) ends" ended_clients
		held calm "$server" >>held
		say "wave $wave: $((processes * each)) clients, $pings pings so far, load average $(cut -d ' ' -f 1 /proc/loadavg)"
	done
	send INT server
	finish server 60 >finish.text
	tail -n 1 server.out
	expect_status 1
	say "RESULT clients_at_once	$((processes * each))"
	say "RESULT clients	$((served + lost))"
	say "RESULT killed	$lost"
	say "RESULT waves	$waves"
	say "RESULT seed	$seed"
	expect_line server.out "^rping: FAILED: served $served clients, [0-9]+ pings, $lost clients? failed \\(verbs\\)\$"
	expect_count server.out ' pings? of [0-9]+ bytes? from .* verified and answered' "$served"
	expect_text_equal "$pings" "$(awk '/ verified and answered / { sum += $2 } END { print sum }' server.out)" 'pings of the served'
	expect_text_equal "$lost" "$(grep -vc 'hint: ' server.err)" 'errors of the server'
	say "RESULT pings	$(sed -n 's/^rping: FAILED: served .* clients, \([0-9]*\) pings.*/\1/p' server.out)"
	[ "$waves" -lt 2 ] || held_alike full
	[ "$waves" -lt 2 ] || held_alike calm
	rdma_leftovers
	kernel_log_clean
}

ended_clients() {
	[ "$(grep -c ' from ' server.out)" -ge $((served + lost)) ]
}
