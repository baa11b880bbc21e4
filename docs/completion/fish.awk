# SPDX-License-Identifier: BSD-2-Clause
# Prints the table of rdmatest.fish from the rows of docs/options.awk (-v links="NAME...").

function quoted(text)
{
	gsub(/[\\']/, "\\\\&", text)
	return "'" text "'"
}

# complete's options for a value; -x: required, and not a file.
function value(offer)
{
	if (offer == "@files")
		return " -r -F"
	if (offer == "@hosts")
		return " -x -a '(__fish_print_hostnames)'"
	if (offer ~ /^@/)
		return " -x -a '(__rdmatest_class " substr(offer, 2) ")'"
	return " -x" (offer ? " -a " quoted(offer) : "")
}

function rule(command, rest)
{
	print "complete -c rdmatest -n '__rdmatest_is" (command ? " " command : "") "'" rest
}

BEGIN { FS = "\t" }
$1 == "command" {
	rule("", " -a " $2 " -d " quoted($3))
	rule("help", " -a " $2 " -d " quoted($3))
}
$1 == "operand" { rule($2, " -a '(__fish_print_hostnames)'") }
$1 == "option" {
	rule($2 == "rdmatest" ? "" : $2, ($3 ? " -s " $3 : "") " -l " $4 ($5 ? value($6) : "") " -d " quoted($8))
}
END {
	count = split(links, names, " ")
	for (place = 1; place <= count; place++)
		print "complete -c " names[place] " --wraps 'rdmatest " names[place] "'"
}
