# SPDX-License-Identifier: BSD-2-Clause
# Prints the option section of the manual page of a command (-v command=COMMAND) from the rows of docs/options.awk.

function quoted(text)
{
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text
}

function bold(text)
{
	return "\\fB" quoted(text) "\\fR"
}

BEGIN { FS = "\t" }
$1 == "option" && $2 == command {
	print ".TP"
	print ($3 ? bold("-" $3 ",") " " : "") bold("--" $4) ($5 ? " \\fI" $5 "\\fR" : "")
	print quoted($8) "."
}
