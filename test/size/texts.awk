# SPDX-License-Identifier: BSD-2-Clause
# With map.awk: how many bytes of the program are string literals, equal ones merged. Prints "BYTES texts".

function section(name, size, file) {
	if (name ~ /^\.rodata.*\.str/)
		bytes += size
}

END { print bytes, "texts" }
