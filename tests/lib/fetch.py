"""Fetches what the tests unpack from the archive, before any test runs: network managers, nginx, wrk.

usage: python -m tests.lib.fetch      (`ktls-offload lab fetch` gets the kernels, QEMU and the module)
"""

from __future__ import annotations

import sys

from offload.errors import OffloadError, RigError
from offload.vm import managers, programs


def main() -> int:
    """Fetch; the exit code of what could not be had. Without nginx and wrk some tests are skipped."""
    try:
        managers.fetch()
    except OffloadError as exc:
        sys.stderr.write(f"ktls-offload: {exc}\n")
        return exc.exit_code
    try:
        programs.find()
    except RigError as exc:
        sys.stderr.write(f"ktls-offload: {exc}; the tests that want it will be skipped\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
