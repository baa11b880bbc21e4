# SPDX-License-Identifier: BSD-2-Clause
# Of a linker's map: how many bytes of the program come from where. Prints "BYTES WHERE" a line.

function number(hex, value, place) {
	value = 0
	for (place = 3; place <= length(hex); place++)
		value = value * 16 + index("123456789abcdef", substr(hex, place, 1))
	return value
}

function owner(file) {
	sub(/\(.*/, "", file)
	sub(/.*\//, "", file)
	if (file ~ /^(rdmatest\.a|main\.o)$/)
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

/^Linker script and memory map/ { inside = 1 }
!inside { next }
# A long name has its numbers on the next line.
/^ [.A-Z][^ ]*$/ { name = $1; next }
/^ [.A-Z]/ && NF == 4 { name = $1; address = $2; size = $3; file = $4 }
/^  / && NF == 3 { address = $1; size = $2; file = $3 }
/^ / && file != "" {
	if (address ~ /^0x0*[1-9a-f]/ && size ~ /^0x/ && name !~ /^\.(debug|comment|note\.GNU)/)
		bytes[owner(file)] += number(size)
	file = ""
}
END {
	for (where in bytes)
		print bytes[where], where
}
