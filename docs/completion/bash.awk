# SPDX-License-Identifier: BSD-2-Clause
# Prints rdmatest.bash's tables from the rows of docs/options.awk (-v links="NAME...").

function entry(option, argument, offer)
{
	return option (argument ? "=" offer : "")
}

BEGIN {
	FS = "\t"
}
$1 == "command" { commands = commands (commands ? " " : "") $2 }
$1 == "operand" { operands[$2] = $3 }
$1 == "option" {
	options[$2] = options[$2] "\n\t\t\t'" ($3 ? entry("-" $3, $5, $6) "' '" : "") entry("--" $4, $5, $6) "'"
}

function row(command, operand)
{
	print "\t" command ")"
	print "\t\toperand='" operand "'"
	print "\t\toptions=(" options[command] ")"
	print "\t\t;;"
}

END {
	print "_rdmatest_links='" links "'"
	print ""
	print "# A command's options, and after a = the offers for a value."
	print "_rdmatest_table() {"
	print "\tcase $1 in"
	row("rdmatest", commands " help")
	row("help", commands)
	count = split(commands, names, " ")
	for (place = 1; place <= count; place++)
		row(names[place], operands[names[place]])
	print "\tesac"
	print "}"
	print ""
	print "complete -F _rdmatest rdmatest " links
}
