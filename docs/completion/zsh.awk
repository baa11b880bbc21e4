# SPDX-License-Identifier: BSD-2-Clause
# Prints _rdmatest's tables from the rows of docs/options.awk.

# Single-quotes a text for the shell.
function quoted(text)
{
	gsub(/'/, "'\\''", text)
	return "'" text "'"
}

# Escapes characters with a meaning in _arguments' specifications.
function plain(text)
{
	gsub(/\\|:|\[|\]/, "\\\\&", text)
	return text
}

function action(offer)
{
	if (offer == "@hosts")
		return "_hosts"
	if (offer == "@files")
		return "_files"
	if (offer ~ /^@/)
		return "_rdmatest_class " substr(offer, 2)
	return offer ? "(" offer ")" : " "
}

BEGIN { FS = "\t" }
$1 == "command" {
	count++
	names[count] = $2
	summaries = summaries "\n\t\t" quoted($2 ":" $3)
}
$1 == "operand" { operands[$2] = "\n\t\t\t" quoted("*:address:" action($3)) }
$1 == "option" {
	text = "[" plain($8) "]" ($5 ? ":" $5 ":" action($6) : "")
	letter = "-" $3 ($5 ? "+" : "")
	name = "--" $4 ($5 ? "=" : "")
	once = "(-" $3 " --" $4 ")"
	specification = $3 ? quoted($7 ? "*" : once) "{" letter "," name "}" quoted(text) : quoted(name text)
	options[$2] = options[$2] "\n\t\t\t" specification
}

function row(command)
{
	print "\t" command ")"
	print "\t\toptions=(" options[command] operands[command] "\n\t\t)"
	print "\t\t;;"
}

END {
	print "# _rdmatest_commands [NAME:SUMMARY]...: offers the commands, and these."
	print "_rdmatest_commands() {"
	print "\tlocal -a commands=(" summaries
	print "\t\t\"$@\""
	print "\t)"
	print "\t_describe -t commands command commands"
	print "}"
	print ""
	print "# Sets options, for _arguments."
	print "_rdmatest_table() {"
	print "\tcase $1 in"
	row("rdmatest")
	for (place = 1; place <= count; place++)
		row(names[place])
	print "\tesac"
	print "}"
}
