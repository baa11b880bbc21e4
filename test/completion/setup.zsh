# SPDX-License-Identifier: BSD-2-Clause
# Start of an interactive zsh that test/completion/type types into. ^Xl lists, ^Xi inserts, ^Xs shows the line.
fpath=($COMPLETIONS/zsh/site-functions $fpath)
autoload -Uz compinit
compinit -u -D
PS1=
COLUMNS=250 LINES=200 LISTMAX=0
unsetopt beep zle_bracketed_paste
zstyle ':completion:insert:*' completer _all_matches _complete
zstyle ':completion:insert:*' insert yes
zle -C insert complete-word _generic
bindkey '^Xi' insert
bindkey '^Xl' list-choices
show() {
	print -rn $'\x01'"$BUFFER"$'\x02'
	BUFFER=
}
zle -N show
bindkey '^Xs' show
print -n "ready\x02"
