# SPDX-License-Identifier: BSD-2-Clause
# With number.awk, of what `nm -S -l` prints: how many bytes of the program come from which of our folders, of soft in one.
# Prints "BYTES FOLDER" a line.

NF == 5 && match($5, /\/(core|cmd|transport)\/.*:/) {
	folder = substr($5, RSTART + 1)
	sub(/\/[^\/]*$/, "", folder)
	sub(/soft\/.*/, "soft", folder)
	bytes[folder] += number($2)
}
END {
	for (folder in bytes)
		print bytes[folder], folder
}
