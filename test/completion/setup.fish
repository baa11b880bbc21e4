# SPDX-License-Identifier: BSD-2-Clause
# Answers like test/completion/type for the other shells: fish's list, a ^A, and the completed line.
while read -l line
    set -l offered (complete -C $line)
    set -l before (string match -r '.* ' -- $line)
    printf '%s\1%s%s\n' "$offered" "$before" (string replace -r '\t.*' '' -- $offered | string join ' ' | string collect --allow-empty)
end
