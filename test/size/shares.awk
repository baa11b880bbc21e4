# SPDX-License-Identifier: BSD-2-Clause
# With map.awk: how many bytes of the program come from where. Prints "BYTES WHERE" a line.

function owner(file) {
	sub(/\(.*/, "", file)
	sub(/.*\//, "", file)
	if (file ~ /^(rdmatest\.a|main\.o)$|\.ltrans\.o$/)
		return "rdmatest"
	if (file ~ /^libev\./)
		return "libev"
	if (file ~ /^lib(rdmacm|ibverbs)\./)
		return "librdmacm and libibverbs"
	if (file ~ /^libnl-/)
		return "libnl"
	if (file ~ /^(libc|libm|libm-[0-9.]*|libmvec|libgcc|libgcc_eh)\.a$|^[Sgr]?crt/)
		return "the C library"
	return "drivers"
}

function section(name, size, file, address) {
	bytes[owner(file)] += size
}

END {
	for (where in bytes)
		print bytes[where], where
}
