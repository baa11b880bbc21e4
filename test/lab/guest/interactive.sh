# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# Functions for a person at the guest's prompt, besides the tools.
exec 3>&1
lab_scenario=interactive
lab_filter=
. /lab/lib.sh

# A failure ends a scenario, not the prompt.
fail() {
	printf 'FAILED: %s\n' "$*"
	return 1
}

stock() { (lab_become stock "$@"); }
ours() { (lab_become ours "$@"); }
alias run-scenario="sh /lab/run-scenario"
PS1='lab# '
