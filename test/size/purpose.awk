# SPDX-License-Identifier: BSD-2-Clause
# With number.awk, of what `nm -S -l` prints: how many bytes are from files that match, as a row of a table.
# awk -v what=TEXT -v files=PATTERN

NF == 5 && $5 ~ files { bytes += number($2) }
END { print "| " what " | " bytes " |" }
