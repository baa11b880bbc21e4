# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Start of an interactive bash that test/completion/type types into. ^Xl lists, ^Xi inserts, ^Xs shows the line.
# shellcheck disable=SC1090 # LOADER is bash-completion, or the completion itself
. "$LOADER"
PS1=
show() {
	printf '\001%s\002' "$READLINE_LINE"
	READLINE_LINE='' READLINE_POINT=0
}
bind 'set enable-bracketed-paste off'
bind 'set bell-style none'
bind 'set completion-query-items 0'
bind 'set page-completions off'
bind '"\C-xl": possible-completions'
bind '"\C-xi": insert-completions'
bind -x '"\C-xs": show'
printf 'ready\002'
