"""One bench of a fleet: acquired, certified by a process of its own, watched, given back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from offload.errors import ConfigError, OffloadError
from offload.suite.certify.fleet.grid import Grid

EVENTS, REPORT = "events.jsonl", "report.json"
ROLES, KINDS = ("dut", "peer", "wire"), ("NetworkService", "OffloadHost", "OffloadNic", "OffloadWire")
GRACE = 30.0  # seconds: for undos and the report after Ctrl-C
Say = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """What came of a bench. `word`: that of its verdict, `void` too if the bench or its rig broke."""

    place: str
    word: str
    reason: str
    seconds: float
    report: str
    cycled: bool = False

    def json(self) -> dict[str, Any]:
        """As the merged document has it."""
        return asdict(self)


class Bench:
    """Certifies one place. `argv`: the command that certifies; how the bench is reached is added to it."""

    def __init__(self, grid: Grid, place: str, folder: Path, argv: Sequence[str], hang: float) -> None:
        self._grid, self._place, self._folder, self._argv = grid, place, folder, list(argv)
        self._hang, self._stop = hang, threading.Event()
        self._cycled = False

    def stop(self) -> None:
        """End it from outside: its undos run, its place is given back."""
        self._stop.set()

    def run(self, say: Say, wait: float) -> Result:
        """Do all of it; whatever breaks is a Result too."""
        began = time.monotonic()
        try:
            with self._grid.held(self._place, wait) as found:
                began = time.monotonic()
                say(f"{self._place}: acquired")
                problem = self._certify(found)
        except OffloadError as exc:
            problem = str(exc).partition("\n")[0]
        word, reason = verdict(self._folder / REPORT, problem)
        report = str(self._folder / "report.html") if (self._folder / "report.html").exists() else ""
        return Result(self._place, word, reason, round(time.monotonic() - began, 1), report, self._cycled)

    def _certify(self, found: Mapping[str, Any]) -> str:
        """Run the child to its end; why it is no verdict, or ''."""
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        argv = [*self._argv, *reached(found, Path(f"{self._folder}.yaml")), "--out", str(self._folder)]
        with Path(f"{self._folder}.log").open("wb") as log:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            try:
                problem = self._watched(child, found)
            finally:
                end(child)
        if problem:
            return problem
        if not (self._folder / REPORT).exists():
            return (
                last_line(Path(f"{self._folder}.log")) or f"certify ended with exit code {child.returncode}"
            )
        return ""

    def _watched(self, child: subprocess.Popen[bytes], found: Mapping[str, Any]) -> str:
        """Wait for the child while its events grow; a bench that hangs is switched off and on again."""
        seen, since = -1, time.monotonic()
        while child.poll() is None:
            if self._stop.is_set():
                return "interrupted"
            size = grown(self._folder / EVENTS)
            if size != seen:
                seen, since = size, time.monotonic()
            if time.monotonic() - since > self._hang:
                return f"hung: no event for {self._hang:g} s; {self._power_cycled(found)}"
            time.sleep(0.2)
        return ""

    def _power_cycled(self, found: Mapping[str, Any]) -> str:
        """Switch the bench off and on again, where labgrid knows how; what came of it."""
        why = self._grid.cycle(self._place, found)
        self._cycled = not why
        return f"the bench was not power-cycled: {why}" if why else "the bench was power-cycled"


def reached(found: Mapping[str, Any], file: Path) -> list[str]:
    """How the bench of these resources is reached: options of certify. ConfigError if they do not say.

    A lab in a VM by its name; real hosts by a lab file, written to `file` from resources whose names begin
    with their role (`dut-port`, `dut-ssh`, `dut-host`, `peer-port`, ...).
    """
    for name, fields in found.items():
        if name.startswith("OffloadVm:") and isinstance(fields.get("lab"), str):
            return ["--attach", fields["lab"]]
    targets: dict[str, Any] = {}
    for name, fields in found.items():
        kind, _, label = name.partition(":")
        role = label.split("-")[0]
        if kind in KINDS and role in ROLES:
            targets.setdefault(role, {"resources": {}})["resources"][kind] = fields
    if "dut" in targets and "peer" in targets:
        file.write_text(yaml.safe_dump({"targets": targets}))
        return ["--lab", str(file)]
    raise ConfigError(
        f"the place does not say how to reach its bench (resources: {', '.join(found) or 'none'})",
        "an OffloadVm, or matches named dut-..., peer-...: docs/certify/labgrid.md",
    )


def verdict(report: Path, problem: str) -> tuple[str, str]:
    """The word and the reason; a run that broke is void, whatever its report says."""
    if problem:
        return "void", problem
    try:
        found = json.loads(report.read_text())
        return str(found["verdict"]), str(found["headline"])
    except (OSError, ValueError, KeyError, TypeError) as exc:
        return "void", f"no report that can be read: {exc}"


def grown(path: Path) -> int:
    """Bytes in a file; 0 if there is none yet."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


def last_line(path: Path) -> str:
    """The last line that a child wrote, for a person."""
    with suppress(OSError):
        lines = [line for line in path.read_text("utf-8", "replace").splitlines() if line.strip()]
        return next((line for line in reversed(lines) if "error" in line), lines[-1] if lines else "")
    return ""


def end(child: subprocess.Popen[bytes]) -> None:
    """Ctrl-C, time for its undos, then kill; harmless if it has ended."""
    if child.poll() is not None:
        return
    child.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
        return
    child.kill()
    child.wait()


def command(options: Sequence[str]) -> list[str]:
    """The certify of this very package."""
    return [sys.executable, "-m", "offload", "certify", *options]
