# SPDX-License-Identifier: BSD-2-Clause
# Compares the block of figures that a person reads with the same figures in JSON.
# usage: awk -f same-numbers.awk [-v later="NAME..."] OTHER TEXT
# Each figure of the text must be in JSON, the same but for what it was rounded by to four digits; prints how
# many are, or what differs. TEXT's last block counts. OTHER has of JSON a line "NAME VALUE"
# for each figure. -v later names the figures that change when a run ends.

BEGIN {
	split("ns 1 us 1e3 ms 1e6 s 1e9 B 1 kB 1e3 MB 1e6 GB 1e9 k 1e3 M 1e6 G 1e9", words, " ")
	for (i = 1; i in words; i += 2)
		scale[words[i]] = words[i + 1]
}

function differs(text)
{
	print text
	bad = 1
}

# "12.3 us", "4.5 kB/s" or "10" in nanoseconds, bytes a second or as it is.
function number(value,    parts)
{
	sub(/\/s$/, "", value)
	split(value, parts, " ")
	return parts[1] * (parts[2] in scale ? scale[parts[2]] : 1)
}

function is_number(value) { return value ~ /^-?[0-9.]+( [a-zA-Z]+)?(\/s)?$/ }

# "  round trip: count 2, min 70 us" is round_trip_count and round_trip_min: the most words of an item that name a figure of
# the other form are its name. A person is told of one sample only once: "time".
function take_text(line,    section, items, count, i, words, last, word, passed, name, whole, value)
{
	section = line
	sub(/^ +/, "", section)
	sub(/:.*/, "", section)
	gsub(/ /, "_", section)
	sub(/^ *[^:]*: /, "", line)
	count = split(line, items, ", ")
	for (i = 1; i <= count; i++) {
		sub(/^time /, "avg ", items[i])
		last = split(items[i], words, " ")
		name = items[i]
		whole = section
		for (word = passed = 1; word < last; word++) {
			whole = whole "_" words[word]
			gsub(/\./, "_", whole)
			passed += length(words[word]) + 1
			if (whole in other) {
				name = whole
				value = substr(items[i], passed)
			}
		}
		text[name] = value
	}
}

function take(name, value)
{
	sub(/_ns$|_per_second$/, "", name)
	other[name] = value
}

FNR == 1 { file++ }
file == 1 { take($1, substr($0, length($1) + 2)) }
file == 2 && / (summary of|so far, in) / { split("", text); inside = 1; next }
file == 2 && inside && /^  [a-z]/ && !/:$/ { take_text($0) }

END {
	for (name in text) {
		if (index(" " later " ", " " name " "))
			continue
		if (!(name in other))
			differs(name ": " text[name] " stands only in the text")
		else if (!is_number(text[name]) && text[name] != other[name])
			differs(name ": " text[name] " and " other[name])
		else if (is_number(text[name])) {
			distance = number(text[name]) - other[name]
			if (distance < 0)
				distance = -distance
			if (distance > 1 + other[name] * 0.0006)
				differs(name ": " text[name] " and " other[name])
			else
				same++
		} else
			same++
	}
	if (!bad)
		print same + 0, "figures are the same"
	exit bad
}
