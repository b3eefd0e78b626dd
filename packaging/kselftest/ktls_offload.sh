#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A program for the kernel's tools/testing/selftests/drivers/net/hw: certifies the TLS offload of a card, prints KTAP.
# The bench is net.config in this folder, or else the environment, as for the tests there (README.rst in drivers/net).
# KTLS_OFFLOAD: the command, if not ktls-offload of PATH; KTLS_OFFLOAD_OUT: the folder of the run. Arguments go to certify.
here=$(cd "$(dirname "$0")" && pwd)
command=${KTLS_OFFLOAD:-ktls-offload}
out=${KTLS_OFFLOAD_OUT:-$here/ktls_offload-$(date -u +%Y%m%dT%H%M%SZ)}

skip() {
	printf 'TAP version 13\n1..0 # SKIP %s\n' "$1"
	exit 4
}

lab="env"
[ -f "$here/net.config" ] && lab=$here/net.config
[ "$lab" = env ] && [ -z "$NETIF" ] && skip "no net.config in $here, and no NETIF in the environment"
command -v "$command" >/dev/null || skip "no $command in PATH"

"$command" certify --lab "$lab" --out "$out" "$@" >&2
code=$?
if [ ! -f "$out/report.ktap" ]; then
	printf 'TAP version 13\nBail out! %s certify ended with %s and without a report\n' "$command" "$code"
	exit 1
fi
# the runner of the selftests puts "# " before each line, as the report has it already
sed -n '/^# TAP version/,$s/^# //p' "$out/report.ktap"
exit "$code"
