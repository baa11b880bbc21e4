# SPDX-License-Identifier: BSD-2-Clause
# Turns the option section of `rdmatest help COMMAND` into manual page source. A row begins with two spaces and a
# dash (after the place of a letter); its text starts two or more spaces behind, and goes on in deeper lines.

function quoted(text)
{
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text
}

function finish()
{
	if (text != "")
		print quoted(text) "."
	text = ""
}

/^Options:/ { inside = 1; next }
!inside { next }
/^  (-.|   ) ?/ && /^ +-/ && substr($0, 1, 10) ~ /-/ {
	finish()
	row = substr($0, 3)
	sub(/^ +/, "", row)
	place = match(row, /   *[^ -]/)
	head = place ? substr(row, 1, place - 1) : row
	text = place ? substr(row, place) : ""
	sub(/^ +/, "", text)
	sub(/ +$/, "", head)
	count = split(head, words, " ")
	line = ""
	for (index_ = 1; index_ <= count; index_++)
		line = line (index_ > 1 ? " " : "") (words[index_] ~ /^-/ ? "\\fB" quoted(words[index_]) "\\fR" : "\\fI" words[index_] "\\fR")
	print ".TP"
	print line
	next
}
{
	row = $0
	sub(/^ +/, "", row)
	text = text (text == "" ? "" : " ") row
}
END { finish() }
