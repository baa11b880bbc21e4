# SPDX-License-Identifier: BSD-2-Clause
# Prints the option section of the manual page of a command (-v command=COMMAND) from the rows of docs/options.awk.

function quoted(text)
{
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text
}

# Lines of at most 80 bytes, for mandoc's lint.
function wrapped(text,    line, count, words, place)
{
	count = split(text, words, " ")
	for (place = 1; place <= count; place++) {
		if (length(line words[place]) >= 80) {
			print line
			line = ""
		}
		line = line (line ? " " : "") words[place]
	}
	print line
}

function bold(text)
{
	return "\\fB" quoted(text) "\\fR"
}

BEGIN { FS = "\t" }
$1 == "option" && $2 == command {
	if ($9 != section && $9 != "Options:")
		print ".SS " substr($9, 1, length($9) - 1)
	section = $9
	print ".TP"
	print ($3 ? bold("-" $3 ",") " " : "") bold("--" $4) ($5 ? " \\fI" $5 "\\fR" : "")
	wrapped(quoted($8) ".")
}
