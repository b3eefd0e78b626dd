"""How much memory do a process and its descendants take, now and at most?

The sum of PSS: a page that several of them share counts once, whereas RSS would count a forked Python twice.
A cgroup's memory.peak would need root or a delegated group, and counts the page cache, which fetching kernels
fills. Spikes between two looks are missed; what outlives its parents (`lab up`) is not a descendant any more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

PROC = Path("/proc")
LOOK = 2.0  # seconds between two looks: each costs a few milliseconds of processor


def parents(proc: Path = PROC) -> dict[int, int]:
    """The parent of each process, by its number."""
    found = {}
    for stat in proc.glob("[0-9]*/stat"):
        try:
            text = stat.read_text(errors="replace")
        except OSError:  # it ended meanwhile
            continue
        found[int(stat.parent.name)] = int(text.rpartition(")")[2].split()[1])
    return found


def tree(top: int, known: Mapping[int, int]) -> list[int]:
    """The process `top` and its descendants."""
    children: dict[int, list[int]] = {}
    for pid, parent in known.items():
        children.setdefault(parent, []).append(pid)
    found, todo = [], [top]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def pss(pid: int, proc: Path = PROC) -> int:
    """The memory of one process in bytes, shared pages divided by those who share them; 0 if it has ended."""
    try:
        lines = (proc / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def memory(top: int, known: Mapping[int, int], proc: Path = PROC) -> int:
    """The memory of a process and its descendants in bytes."""
    return sum(pss(pid, proc) for pid in tree(top, known))


class Peak:
    """Looks at this process and its descendants until `end`; a thread, which ends with the process anyhow."""

    def __init__(self) -> None:
        self.bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while True:
            self.bytes = max(self.bytes, memory(os.getpid(), parents()))
            if self._over.wait(LOOK):
                return

    def end(self) -> int:
        """Look no more; the most memory that was seen at once, in bytes."""
        self._over.set()
        self._thread.join()
        return self.bytes
