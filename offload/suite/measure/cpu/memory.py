"""How many bytes went to and from a host's memory, where its kernel and CPU can tell; else why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from offload.errors import RigError
from offload.host.base import Host
from offload.paths import PACKAGE
from offload.suite.measure.cpu.cycles import PYTHON, U64, Counter, answer

READER = PACKAGE / "suite/measure/cpu/memory_reader.py"
WHAT = "the counter of memory traffic"


@dataclass(frozen=True)
class Traffic:
    """Bytes of each counter so far."""

    host: str
    bytes: Mapping[str, int]

    def __sub__(self, before: Traffic) -> int:
        return difference(before, self)


class Memory:
    """Counts on a host; `words`: by what. Where it cannot, `absent` says why, and there are no snapshots."""

    def __init__(self, counter: Counter | None, absent: str = "", words: str = "") -> None:
        self.absent, self.words, self._counter = absent, words, counter

    def say(self) -> str:
        """One phrase for the document."""
        return f"not measurable here: {self.absent}" if self.absent else f"counted by {self.words}"

    def snapshot(self) -> Traffic:
        """Bytes so far. RigError if nothing counts, or what does makes no sense."""
        if self.absent or self._counter is None:
            raise RigError(f"no memory traffic: {self.absent}")
        self._counter.ask()
        said, host = answer(self._counter.line(), WHAT, self._counter.host.name), self._counter.host.name
        if not said or not all(type(value) is int and 0 <= value <= U64 for value in said.values()):
            raise RigError(f"{WHAT} on {host} said {str(said)[:80]}, wanted whole numbers")
        return Traffic(host, said)


@contextmanager
def counting(host: Host, root: str = "/sys") -> Iterator[Memory]:
    """Count while the block runs; it always runs: look at `absent` before a snapshot. `root`: its /sys."""
    try:
        process = host.start([*PYTHON, READER.read_text("utf-8"), root])
    except OSError as exc:
        yield Memory(None, f"cannot run {PYTHON[0]}: {exc.strerror}")
        return
    try:
        counter = Counter(host, process, what=WHAT)
        try:
            first = answer(counter.line(), WHAT, host.name)
        except RigError as exc:
            first = {"absent": str(exc)}
        words = first.get("source")
        if isinstance(words, str):
            yield Memory(counter, words=words[:200])
        else:
            yield Memory(None, str(first.get("absent", "the answer makes no sense"))[:300])
    finally:
        process.kill(9)


def difference(before: Traffic, after: Traffic) -> int:
    """Bytes between two snapshots, all counters together. RigError for other ones, or one that went back."""
    if before.host != after.host or before.bytes.keys() != after.bytes.keys():
        raise RigError(f"memory traffic of other counters ({after.host})")
    each = {name: now - before.bytes[name] for name, now in after.bytes.items()}
    if back := [name for name, moved in each.items() if moved < 0]:
        raise RigError(f"memory traffic of {back[0]} went back ({after.host})")
    return sum(each.values())
