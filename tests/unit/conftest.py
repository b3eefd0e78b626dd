"""For all unit tests: small children, and temporary files in memory where there is room for them."""

from __future__ import annotations

import os

# pyproject.toml says so for this project alone; these plug-ins take most of the time of a small child
LEFT_OUT = "-p no:labgrid -p no:hypothesispytest"
MEMORY, ROOM = "/dev/shm", 1 << 30  # a run writes 80 MiB; pytest keeps the last three


def fit(place: str) -> bool:
    """Whether tests may write there, and start what they wrote: in many containers it is small and noexec."""
    try:
        found = os.statvfs(place)
    except OSError:
        return False
    free = found.f_bavail * found.f_frsize
    return free >= ROOM and not found.f_flag & os.ST_NOEXEC and os.access(place, os.W_OK)


os.environ["PYTEST_ADDOPTS"] = LEFT_OUT
if fit(MEMORY):  # no fsync waits for a disk
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
