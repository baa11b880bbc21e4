# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# The verbs of a scenario. Each is described where it is defined.
# Names beginning with lab_ are the library's own.
. /lab/clock.sh
. /lab/modules.sh
. /lab/verdict.sh
. /lab/devices.sh
. /lab/processes.sh
. /lab/expect.sh
. /lab/waiting.sh
. /lab/peers.sh
. /lab/impaired.sh
