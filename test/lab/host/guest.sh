# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# One virtual machine: starts it, communicates with it, ends it by its process id. A guest is identified by its folder;
# guest_pid, guest_to and guest_from are per folder.

declare -A guest_pid guest_to guest_from

accelerator=${LAB_ACCEL:-tcg}

qemu_accelerator() {
	case $accelerator in
	tcg) echo tcg,thread=multi ;;
	count) echo tcg,thread=single ;;
	*) die "LAB_ACCEL must be tcg or count, not '$accelerator'" ;;
	esac
}

# guest_start FOLDER OVERLAY ROLE [NETWORK OPTION...]: does not wait for the boot.
guest_start() {
	local folder=$1 overlay=$2 role=$3
	shift 3
	rm -rf "$folder"
	mkdir -p "$folder"
	mkfifo "$folder/control.in" "$folder/control.out"
	local counting=()
	[ "$accelerator" != count ] || counting=(-icount 'shift=0,sleep=off' -smp 1)
	local emulator=(qemu-system-x86_64 -accel "$(qemu_accelerator)" -cpu max) console=ttyS0 kernel=kernel
	if [ "$overlay$role" = arm64b ]; then
		emulator=(qemu-system-aarch64 -accel 'tcg,thread=multi' -M virt -cpu cortex-a72) console=ttyAMA0 kernel=arm64.kernel
		counting=()
	fi
	initrd_for "$run_folder" "$overlay" "$role"
	# Should this shell be killed, the guest dies with it.
	# shellcheck disable=SC2086 # LAB_QEMU is a list of words
	setpriv --pdeathsig KILL "${emulator[@]}" -nodefaults \
		-m "${LAB_MEMORY:-1024}" -smp "$processors" -display none -no-reboot \
		-kernel "$run_folder/$kernel" -initrd "$REPLY" \
		-append "console=$console quiet loglevel=4 panic=-1 no_timer_check nokaslr mitigations=off lab.role=$role lab.matrix=$matrix ${LAB_KERNEL:-}" \
		-serial "file:$folder/console" \
		-device virtio-serial-pci \
		-chardev "pipe,id=control,path=$folder/control" \
		-device virtserialport,chardev=control,name=lab.control \
		"${counting[@]}" "$@" ${LAB_QEMU:-} </dev/null >"$folder/qemu" 2>&1 9>&- &
	guest_pid[$folder]=$!
	local to from
	exec {to}<>"$folder/control.in" {from}<>"$folder/control.out"
	guest_to[$folder]=$to
	guest_from[$folder]=$from
}

guest_is_running() {
	local pid=${guest_pid[$1]:-}
	[ -n "$pid" ] && kill -0 "$pid" 2>/dev/null
}

guest_end() {
	local folder=$1 pid=${guest_pid[$1]:-} to=${guest_to[$1]:-} from=${guest_from[$1]:-}
	[ -n "$pid" ] || return 0
	kill -KILL "$pid" 2>/dev/null || :
	wait "$pid" 2>/dev/null || :
	exec {to}>&- {from}>&-
	unset "guest_pid[$folder]" "guest_to[$folder]" "guest_from[$folder]"
}

guest_end_all() {
	local folder
	for folder in "${!guest_pid[@]}"; do
		guest_end "$folder"
	done
}

guest_say() {
	printf '%s\n' "$2" >&"${guest_to[$1]}"
}

# A pipe that never has input, for waiting.
exec {never}<> <(:)

# guest_line FOLDER: the next whole line in REPLY; 1 when there is none within 20 ms. Input that arrives just as a time limit
# of bash's read ends is lost, so no limit ends there while a guest writes.
guest_line() {
	local from=${guest_from[$1]}
	read -r -t 0 -u "$from" || read -r -t 0.02 -u "$never"
	read -r -t 0 -u "$from" && read -r -t 60 -u "$from"
}

# guest_wait_ready FOLDER SECONDS
guest_wait_ready() {
	local folder=$1 deadline=$((SECONDS + $2))
	while [ "$SECONDS" -lt "$deadline" ]; do
		if guest_line "$folder"; then
			[ "$REPLY" = $'\001ready' ] && return 0
		elif ! guest_is_running "$folder"; then
			return 1
		fi
	done
	return 1
}
