"""Fetches what tests unpack from the archive: managers, nginx, wrk, tlshd, HAProxy, Python 3.9, Chromium.

usage: python -m tests.lib.rig.fetch      (`ktls-offload lab fetch` gets the kernels, QEMU and the module)
"""

from __future__ import annotations

import sys

from offload.errors import OffloadError, RigError
from offload.suite.bench.programs import managers, unpacked
from tests.lib.catalogue import browser
from tests.lib.flow import haproxy, tlshd
from tests.lib.rig import python39


def main() -> int:
    """Fetch; the exit code of what could not be had. Without the optional ones tests are skipped."""
    try:
        managers.fetch()
    except OffloadError as exc:
        sys.stderr.write(f"ktls-offload: {exc}\n")
        return exc.exit_code
    for optional in (unpacked.find, tlshd.fetch, haproxy.fetch, python39.fetch, browser.find):
        try:
            optional()
        except RigError as exc:
            sys.stderr.write(f"ktls-offload: {exc}; the tests that want it will be skipped\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
