# SPDX-License-Identifier: BSD-2-Clause
# number(HEX): of "1f" or "0x1f" it is 31.

function number(hex, value, place) {
	value = 0
	sub(/^0x/, "", hex)
	for (place = 1; place <= length(hex); place++)
		value = value * 16 + index("123456789abcdef", substr(hex, place, 1))
	return value
}
