"""The hardware suite as a program: run in a pytest of its own, judged by its events."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from offload.errors import RigError
from offload.profile import find
from offload.report import criteria, events, facts
from offload.report.verdict import PromiseState, Verdict, judge

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Outcome:
    """What a run of the hardware suite came to."""

    verdict: Verdict
    tests: dict[str, str]  # id -> pass, fail, ...
    output: str

    def promise(self, name: str) -> PromiseState:
        """Return the state of one promise."""
        return next(p for p in self.verdict.promises if p.criterion.id == name)


def run_suite(folder: Path, profile: str, kernel: str, tests: list[str], attach: str = "") -> Outcome:
    """Run these tests in a pytest of their own and judge its events."""
    log = folder / "events.jsonl"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    argv += ["--events", str(log), "--profile", profile, "--kernel", kernel]
    argv += ["--attach", attach] if attach else []
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=900)
    if not log.exists():
        raise RigError(f"the suite wrote no events:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    found = events.read(log)
    verdict = judge(found, criteria.load(), facts.of(find(profile)))
    return Outcome(
        verdict, {e["id"]: e["outcome"] for e in found.events if e["event"] == "test"}, done.stdout[-6000:]
    )


Suite = Callable[..., Outcome]
