"""Fetches what the tests unpack from the archive, before any test runs: network managers, a newer nginx.

usage: python -m tests.lib.fetch      (`ktls-offload lab fetch` gets the kernels, QEMU and the module)
"""

from __future__ import annotations

import sys

from offload.errors import OffloadError, RigError
from offload.vm import managers, nginx


def main() -> int:
    """Fetch; the exit code of what could not be had. Without the nginx one test is skipped, no more."""
    try:
        managers.fetch()
    except OffloadError as exc:
        sys.stderr.write(f"ktls-offload: {exc}\n")
        return exc.exit_code
    try:
        nginx.find()
    except RigError as exc:
        sys.stderr.write(f"ktls-offload: {exc}; the test that wants it will be skipped\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
