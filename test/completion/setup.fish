# SPDX-License-Identifier: BSD-2-Clause
# Answers as test/completion/type does for the other shells: what fish lists, a ^A, and the line with all of it in place.
while read -l line
    set -l offered (complete -C $line)
    set -l before (string match -r '.* ' -- $line)
    printf '%s\1%s%s\n' "$offered" "$before" (string replace -r '\t.*' '' -- $offered | string join ' ' | string collect --allow-empty)
end
