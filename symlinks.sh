#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes or removes links to rdmatest with the names of its commands.
#
# usage: symlinks.sh install|remove
# environment:
#   PREFIX    the links are in $PREFIX/bin beside rdmatest (default /usr/local)
#   DESTDIR   a root put in front of it, for packages and images
#   RDMATEST  the program that lists the names (default the installed one), such as one built for this host
#   LIST      a file with the names, - for standard input, if no program can run
#
# A file that is not our link is never touched: install then makes no link and fails; remove leaves it. install reports
# programs with these names in other folders.
set -eu

program=rdmatest
bin=${DESTDIR:-}${PREFIX:-/usr/local}/bin

die() {
	echo "symlinks.sh: $1" >&2
	exit "${2:-1}"
}

names() {
	if [ -n "${LIST:-}" ]; then
		cat "$LIST" || die "$LIST: cannot be read"
	else
		"${RDMATEST:-$bin/$program}" --list ||
			die "${RDMATEST:-$bin/$program}: does not run here; name one that does with RDMATEST, or a list with LIST"
	fi
}

is_ours() {
	[ "$(readlink "$1" 2>/dev/null)" = "$program" ]
}

is_taken() {
	[ -e "$1" ] || [ -L "$1" ]
}

# Checks everything before making the first link.
check() {
	[ -d "$bin" ] || [ "$1" = remove ] || die "$bin: no such folder"
	for name in $list; do
		case $name in
		'' | "$program" | *[!a-z0-9-]*) die "'$name' is no name for a link" ;;
		esac
		[ "$1" = remove ] || is_ours "$bin/$name" || ! is_taken "$bin/$name" ||
			die "$bin/$name: exists and is not a link to $program; no link was made"
	done
}

install_links() {
	for name in $list; do
		is_ours "$bin/$name" || ln -s "$program" "$bin/$name" || die "$bin/$name: cannot be made"
	done
	note_others
}

# Of two programs with one name the shell runs the first one in PATH.
note_others() {
	others=
	for name in $list; do
		IFS=:
		for folder in $PATH:/usr/bin; do
			other=${DESTDIR:-}$folder/$name
			[ -x "$other" ] && ! is_ours "$other" || continue
			others="$others $other"
			break
		done
		unset IFS
	done
	[ -z "$others" ] ||
		echo "symlinks.sh: note: there is also$others; a shell runs the first in its PATH; LINKS=no makes no links" >&2
}

remove_links() {
	for name in $list; do
		if is_ours "$bin/$name"; then
			rm -f "$bin/$name" || die "$bin/$name: cannot be removed"
		elif is_taken "$bin/$name"; then
			echo "symlinks.sh: $bin/$name: left alone, as it is not a link to $program" >&2
		fi
	done
}

[ $# -eq 1 ] || die 'usage: symlinks.sh install|remove' 2
case $1 in
install | remove) ;;
*) die 'usage: symlinks.sh install|remove' 2 ;;
esac
list=$(names) || exit 1
[ -n "$list" ] || die 'the list of names is empty'
check "$1"
"$1"_links
