"""`certify --lab FILE`: real hosts instead of a VM: read ahead, and looked at while they are tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offload.errors import ConfigError, OffloadError

if TYPE_CHECKING:
    from offload.suite.bench.lab.bench import RealLab
    from offload.suite.bench.lab.model import LabFile


@dataclass(frozen=True)
class Hosts:
    """A bench of real hosts. `given`: the file as pytest gets it (absolute, or `env`).

    `attempts`: where it is noted which tests were begun there and never ended; `retry`: run those too.
    """

    given: str
    file: LabFile
    attempts: Path
    retry: bool

    @property
    def bench(self) -> list[str]:
        """Return pytest's options for the bench."""
        return ["--lab", self.given]

    @property
    def options(self) -> list[str]:
        """Return pytest's options for a run."""
        return [*self.bench, "--attempts", str(self.attempts), *(["--retry"] if self.retry else [])]


def hosts(named: str, retry: bool) -> Hosts:
    """Read the lab file; nobody is asked yet. ConfigError `file:line: key`."""
    from offload.suite.bench.lab.settings import journal_of
    from offload.suite.bench.lab.source import ENVIRONMENT, load_any

    file = load_any(Path(named))
    given = named if named == ENVIRONMENT else str(Path(named).absolute())
    return Hosts(given, file, journal_of(file.dut).place / "attempts.jsonl", retry)


def card(found: Hosts, nic: str) -> str:
    """The profile that judges: the file's, or `--nic`. ConfigError if they differ, or there is none."""
    known = found.file.dut.port.profile if found.file.dut.port else ""
    if nic and known and nic != known:
        raise ConfigError(f"--nic {nic}: {found.file.file} has {known}", "omit --nic")
    if not (nic or known):
        hint = "--nic ID, as in nic-profiles/, or --nic FILE: `ktls-offload probe` drafts one"
        raise ConfigError(f"{found.file.file} names no profile for the DUT", hint)
    return nic or known


@contextmanager
def watched(found: Hosts, say: Callable[[str], None]) -> Iterator[Seen]:
    """The bench, opened to look on: the tests open it once more. Errors as RealLab."""
    from offload.suite.bench.lab.bench import RealLab

    bench = RealLab(found.file, say, watch=True)
    try:
        yield Seen(bench, bench.console_mark())
    finally:
        with suppress(OffloadError):  # it may be gone
            bench.stop()


@dataclass(frozen=True)
class Seen:
    """A bench that is looked at: its rig, and what its kernels said since it was opened."""

    bench: RealLab
    mark: int

    def rig(self) -> dict[str, Any]:
        """The fields of a `rig` event, all but the profile."""
        rig = dict(self.bench.rig)
        return {"rig": rig, "kernel": rig["kernel"], "simulated": self.bench.bench.simulated}

    def console_text(self) -> str:
        """The kernel logs; RigError if the hosts are gone."""
        return self.bench.console_text(self.mark)
