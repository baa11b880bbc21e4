# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Completion of rdmatest and its links in bash. `make docs` writes the part between the marks.

# options begin
_rdmatest_links='rping ucmatose mckey'

# A command's options, and after a = the offers for a value.
_rdmatest_table() {
	case $1 in
	rdmatest)
		operand='rping ucmatose mckey selftest doctor help'
		options=(
			'--list'
			'-h' '--help'
			'--version')
		;;
	help)
		operand='rping ucmatose mckey selftest doctor'
		options=()
		;;
	rping)
		operand='@hosts'
		options=(
			'-s' '--server'
			'-c' '--client'
			'-a=@hosts' '--address=@hosts'
			'-p=' '--port='
			'-V' '--validate'
			'-C=' '--count='
			'-S=' '--size='
			'--transport=verbs soft'
			'-h' '--usage'
			'--help'
			'--version'
			'-P' '--persistent'
			'--max-clients='
			'--backlog='
			'--targets=@files'
			'--warmup='
			'--paths='
			'--equal-paths'
			'--reconnect'
			'--wait-server='
			'--interval='
			'--duration='
			'--poll'
			'--spin='
			'-v' '--verbose'
			'-d' '--debug'
			'--histogram'
			'--interval-report='
			'--expect='
			'--json'
			'--json-stream'
			'--prometheus=@files'
			'--quiet'
			'-I=@hosts' '--source=@hosts'
			'-q' '--own-qp'
			'--tos='
			'--ack-timeout='
			'--retry='
			'--rnr-retry='
			'--device=@infiniband'
			'--port-num='
			'--gid-index='
			'--interface=@net'
			'--ipv4'
			'--ipv6'
			'--dscp='
			'--service-level='
			'--mtu=256 512 1024 2048 4096'
			'--inline='
			'--idle-timeout='
			'--timeout='
			'--deadline='
			'--daemon')
		;;
	ucmatose)
		operand='@hosts'
		options=(
			'-s=@hosts' '--server=@hosts'
			'-b=@hosts' '--bind=@hosts'
			'--source=@hosts'
			'-c=' '--connections='
			'-C=' '--count='
			'-S=' '--size='
			'-p=' '--port='
			'--transport=verbs soft'
			'-h' '--usage'
			'--help'
			'--version'
			'--backlog='
			'--wait-server='
			'--poll'
			'--spin='
			'--debug'
			'--histogram'
			'--interval-report='
			'--expect='
			'--json'
			'--json-stream'
			'--prometheus=@files'
			'--quiet'
			'-f=name ip ipv4 ipv6 gid' '--format=name ip ipv4 ipv6 gid'
			'-P=tcp ib' '--port-space=tcp ib'
			'-m' '--migrate'
			'-t=' '--tos='
			'-a=' '--ack-timeout='
			'--retry='
			'--rnr-retry='
			'--device=@infiniband'
			'--port-num='
			'--gid-index='
			'--interface=@net'
			'--ipv4'
			'--ipv6'
			'--dscp='
			'--service-level='
			'--mtu=256 512 1024 2048 4096'
			'--inline='
			'--idle-timeout='
			'--timeout='
			'--deadline='
			'--daemon')
		;;
	mckey)
		operand='@hosts'
		options=(
			'-m=@hosts' '--group=@hosts'
			'-M=' '--mgid='
			'-s' '--sender'
			'-b=@hosts' '--bind=@hosts'
			'--source=@hosts'
			'-c=' '--connections='
			'-C=' '--count='
			'-S=' '--size='
			'--transport=verbs soft'
			'-h' '--usage'
			'--help'
			'--version'
			'--pause='
			'--rate='
			'--poll'
			'--spin='
			'--debug'
			'--histogram'
			'--interval-report='
			'--expect='
			'--json'
			'--json-stream'
			'--prometheus=@files'
			'--quiet'
			'-p=udp ipoib' '--port-space=udp ipoib'
			'-o' '--send-only'
			'-l' '--no-loopback'
			'--tos='
			'--device=@infiniband'
			'--port-num='
			'--gid-index='
			'--interface=@net'
			'--ipv4'
			'--ipv6'
			'--dscp='
			'--service-level='
			'--mtu=256 512 1024 2048 4096'
			'--inline='
			'--idle-timeout='
			'--timeout='
			'--deadline='
			'--daemon')
		;;
	selftest)
		operand=''
		options=(
			'-a=@hosts' '--address=@hosts'
			'-v' '--verbose'
			'--transport=verbs soft'
			'-h' '--usage'
			'--help'
			'--version'
			'--poll'
			'--spin='
			'-d' '--debug'
			'--json'
			'--json-stream'
			'--prometheus=@files'
			'--quiet'
			'--timeout='
			'--deadline=')
		;;
	doctor)
		operand='@hosts'
		options=(
			'-a=@hosts' '--address=@hosts'
			'-p=' '--port='
			'--paths='
			'--load'
			'--udp-port='
			'--transport=verbs soft'
			'-h' '--usage'
			'--help'
			'--version'
			'-d' '--debug'
			'--json'
			'--json-stream'
			'--prometheus=@files'
			'--quiet'
			'-I=@hosts' '--source=@hosts'
			'--tos='
			'--device=@infiniband'
			'--port-num='
			'--gid-index='
			'--interface=@net'
			'--ipv4'
			'--ipv6'
			'--dscp='
			'--service-level='
			'--mtu=256 512 1024 2048 4096'
			'--inline='
			'--timeout='
			'--deadline=')
		;;
	esac
}

complete -F _rdmatest rdmatest rping ucmatose mckey
# options end

# _rdmatest_find OPTION: sets value to "=" and the offers, if the option takes a value.
_rdmatest_find() {
	local entry
	value=
	for entry in "${options[@]}"; do
		[[ $entry != "$1="* ]] || value="=${entry#*=}"
	done
	[[ -n $value ]]
}

# _rdmatest_wants WORD: whether the next word is the value of an option in this one, perhaps of the last of several letters.
_rdmatest_wants() {
	local letters=${1#-}
	value=
	case $1 in
	--*) _rdmatest_find "$1" ;;
	-*)
		while [[ -n $letters ]]; do
			if _rdmatest_find "-${letters:0:1}"; then
				[[ ${#letters} -eq 1 ]] || value=
				return
			fi
			letters=${letters:1}
		done
		;;
	esac
}

# _rdmatest_offer WHAT WORD: fills COMPREPLY.
_rdmatest_offer() {
	local what=$1 paths
	case $what in
	@files)
		# Readline's own completion, which handles quotes and blanks.
		compopt -o default
		return
		;;
	@hosts)
		# bash-completion's function also knows ssh's hosts.
		if declare -F _known_hosts_real >/dev/null; then
			_known_hosts_real -- "$2"
		else
			mapfile -t COMPREPLY < <(compgen -A hostname -- "$2")
		fi
		return
		;;
	@*)
		paths=(/sys/class/"${what#@}"/"$2"*/)
		[[ -e ${paths[0]} ]] || return
		# A name may contain shell code, which compgen -W would run.
		paths=("${paths[@]%/}")
		mapfile -t COMPREPLY < <(printf '%q\n' "${paths[@]##*/}")
		return
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$what" -- "$2")
}

_rdmatest() {
	local IFS=$' \t\n' words last typed command place=1 word value operand options before cut

	# COMP_WORDS has words split at = and :, so the line itself is parsed.
	read -ra words <<<"${COMP_LINE:0:COMP_POINT}."
	last=$((${#words[@]} - 1))
	typed=${words[last]%.}
	command=${words[0]##*/}
	if [[ " $_rdmatest_links " != *" $command "* ]]; then
		command=rdmatest
		if [[ $last -gt 1 ]]; then
			command=${words[1]}
			place=2
		fi
	fi
	_rdmatest_table "$command"
	[[ $command != help || $last -eq 2 ]] || operand=

	for word in "${words[@]:place:last-place}"; do
		if [[ -n $value ]]; then
			value=
		elif [[ $word == -- ]]; then
			options=()
		else
			_rdmatest_wants "$word"
		fi
	done

	if [[ -z $value && $typed == --*=* ]]; then
		before=${typed%%=*}=
		_rdmatest_find "${before%=}" || return
	elif [[ -z $value && $typed == -* ]]; then
		value="=${options[*]%%=*}"
	elif [[ -z $value ]]; then
		value="=$operand"
	fi
	COMPREPLY=()
	_rdmatest_offer "${value#=}" "${typed#"$before"}"

	# bash replaces the last piece of the word ($2), not all of it.
	cut=${typed%"$2"}
	COMPREPLY=("${COMPREPLY[@]/#/"$before"}")
	COMPREPLY=("${COMPREPLY[@]#"$cut"}")
}
