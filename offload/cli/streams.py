"""Makes the three standard streams safe: a daemon may have closed one, and stderr may be a full disk."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


class Messages(io.FileIO):
    """Stderr: what it cannot take is dropped, so that no unread message changes an exit code.

    Python itself ends with 120 when the last flush fails (Py_FinalizeEx in pylifecycle.c).
    """

    def write(self, data: Any) -> int:
        """Write the bytes, or drop them."""
        try:
            return super().write(data)
        except OSError:
            return len(data)


def settle() -> None:
    """Open what is closed of descriptors 0 to 2, so that no file of ours takes its place; replace stderr."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    if sys.stderr is sys.__stderr__:  # not in a test that captures it
        raw = io.BufferedWriter(Messages(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(raw, errors="backslashreplace", line_buffering=True)
