# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# To be read with "." at the top of a bench or load: changes to the project's folder, and into its own network namespace if
# allowed, so that its loopback is unused.
apart_script=$(realpath "$0")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck disable=SC2034 # for whoever reads this
BUILD=${BUILD:-build}
if [ "${BENCH_APART-}" != yes ] && unshare --net true 2>/dev/null; then
	BENCH_APART=yes exec unshare --net "$apart_script" "$@"
fi
[ "${BENCH_APART-}" != yes ] || ip link set lo up
. test/bench/pairs
