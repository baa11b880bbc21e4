# SPDX-License-Identifier: BSD-2-Clause
# Turns what `rdmatest help COMMAND` prints (with -v command=COMMAND) or `rdmatest --help` (command=rdmatest) into rows
# with tabs between their fields, for the manual pages and the completions:
#   command  NAME     SUMMARY
#   operand  COMMAND  OFFER
#   option   COMMAND  LETTER  NAME  ARGUMENT  OFFER  MANY  HELP  SECTION
# OFFER is what a shell can offer as a value: @hosts, @files, @CLASS for what is in /sys/class/CLASS, words with spaces
# between them, or nothing. MANY is 1 for what may be given again and again.

function offer(name, argument, help,    words)
{
	if (match(help, /\[one of [^;]*;/)) {
		words = substr(help, RSTART + 8, RLENGTH - 9)
		gsub(/,/, "", words)
		return words
	}
	if (name == "transport") {
		while (match(help, /[a-z]+ \(/)) {
			words = words (words ? " " : "") substr(help, RSTART, RLENGTH - 2)
			help = substr(help, RSTART + RLENGTH)
		}
		return words
	}
	if (name == "device")
		return "@infiniband"
	if (name == "interface")
		return "@net"
	if (argument == "ADDRESS" || argument == "SERVER")
		return "@hosts"
	return argument == "FILE" ? "@files" : ""
}

function finish()
{
	if (name)
		print "option\t" command "\t" letter "\t" name "\t" argument "\t" offer(name, argument, help) "\t" \
			many["-" letter] many["--" name] "\t" help "\t" section
	name = ""
}

# An operand stands alone; an option's value follows it, in the same brackets or in none.
/^Usage:/ { part = "usage" }
part == "usage" {
	for (place = 2; place <= NF; place++) {
		word = $place
		gsub(/\[|\]|\./, "", word)
		before = $(place - 1)
		if (before ~ /^\[?-/ && !index(before, "]")) {
			sub(/^\[/, "", before)
			if ($place ~ /\.\.\./)
				many[before] = 1
		} else if (offer("", word, "")) {
			operand = offer("", word, "")
		}
	}
}
/^Commands:/ { part = "commands"; next }
/^Options:/ && operand { print "operand\t" command "\t" operand }
part == "" && /^[A-Z][a-z]+:$/ { finish(); part = "options"; section = $1; next }
/^$/ { part = "" }
part == "commands" {
	name = $1
	sub(/^ +[^ ]+ +/, "")
	print "command\t" name "\t" $0
	name = ""
}

# A row begins with two spaces and a dash, or the space for a letter and two dashes. Its text starts after two or more
# spaces, and continues in deeper lines.
part == "options" && /^  (-., |    )--/ {
	finish()
	letter = substr($0, 3, 1) == "-" ? substr($0, 4, 1) : ""
	row = substr($0, 9)
	match(row, /^[^ ]+/)
	name = substr(row, 1, RLENGTH)
	row = substr(row, RLENGTH + 1)
	argument = ""
	if (match(row, /^ [^ ]+/)) {
		argument = substr(row, 2, RLENGTH - 1)
		row = substr(row, RLENGTH + 1)
	}
	sub(/^ +/, "", row)
	help = row
	next
}
part == "options" {
	sub(/^ +/, "")
	help = help (help ? " " : "") $0
}
END { finish() }
