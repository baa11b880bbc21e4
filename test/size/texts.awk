# SPDX-License-Identifier: BSD-2-Clause
# With map.awk: how many bytes of the program are string literals, equal ones merged. Prints "BYTES texts".

# Where a text is the end of another one, two sections lie in one place.
function section(name, size, file, address) {
	if (name !~ /^\.rodata.*\.str/ || address + size <= end)
		return
	bytes += address + size - (address > end ? address : end)
	end = address + size
}

END { print bytes, "texts" }
