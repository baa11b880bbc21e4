# SPDX-License-Identifier: BSD-2-Clause
# Of a linker's map: calls section(NAME, BYTES, FILE), which another script has, for each that is in the program.

/^Linker script and memory map/ { inside = 1 }
!inside { next }
# A long name has its numbers on the next line.
/^ [.A-Z][^ ]*$/ { name = $1; next }
/^ [.A-Z]/ && NF == 4 { name = $1; address = $2; size = $3; file = $4 }
/^  / && NF == 3 { address = $1; size = $2; file = $3 }
/^ / && file != "" {
	if (address ~ /^0x0*[1-9a-f]/ && size ~ /^0x/ && name !~ /^\.(debug|comment|note\.GNU)/)
		section(name, number(size), file)
	file = ""
}
