"""The hardware suite as a program: a pytest of its own that has collected tests/hw, judged by its events."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.card.profile import find
from offload.cmd import Pace
from offload.errors import RigError
from offload.suite.report import criteria, events, facts
from offload.suite.report.verdict import PromiseState, Verdict, judge
from tests.lib.catalogue.rows import short

ROOT = Path(__file__).parents[3]
START, RUN = 180.0, 900.0  # seconds; on an idle machine to collect takes 3, a test 1 to 20


@dataclass(frozen=True)
class Outcome:
    """What a run of hardware tests came to."""

    verdict: Verdict
    tests: dict[str, str]  # id -> pass, fail, ...
    output: str

    def broken(self) -> list[PromiseState]:
        """The broken promises, in the order of the report."""
        return [p for p in self.verdict.promises if p.state == "broken"]


class Suite:
    """The hardware suite, up and waiting, attached to a lab; each run is judged by itself.

    The tests, and what they do, are those of `certify`: collected once, they run one by one with all their
    fixtures. What a pytest session keeps (the pumps at both ends, what was probed) is kept between runs.
    """

    def __init__(
        self, folder: Path, profile: str, kernel: str, lab: str, scenarios: Sequence[str] = ()
    ) -> None:
        """Start it; `scenarios`: lines of these instead of those of a depth. RigError if nothing collects."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._facts, self._runs = folder, facts.of(find(profile)), 0
        self._log = folder / f"pytest-{lab}.log"
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        argv += ["-p", "tests.lib.catalogue.plugin", "tests/hw"]
        argv += ["--profile", profile, "--kernel", kernel, "--attach", lab]
        argv += [
            "--orders",
            str(theirs.fileno()),
            *(word for line in scenarios for word in ("--scenario", line)),
        ]
        self._said = self._log.open("ab")
        self._begin = self._said.tell()
        with theirs:
            self._child = subprocess.Popen(
                argv, cwd=ROOT, stdout=self._said, stderr=self._said, pass_fds=[theirs.fileno()]
            )
        self._line = ours
        self._answers = ours.makefile("r")
        self._ids = {short(test): test for test in self._answer(START)["tests"]}
        self.tests = tuple(self._ids)

    def run(
        self, *tests: str, name: str = "", knobs: str = "", off: str = "", as_found: bool = False
    ) -> Outcome:
        """Run these tests (by their short ids) and judge them; `name`: of the file of events.

        `off`: a check to do without (tests/nicsim/escape_run.py); `as_found`: a scenario that fails is not
        shrunk. RigError if the suite died, or does not have one of the tests.
        """
        self._runs += 1
        log = self._folder / f"{name or f'run-{self._runs}'}.jsonl"
        begin = self._log.stat().st_size
        log.unlink(missing_ok=True)
        wanted = [self._ids.get(test, test) for test in tests]
        order = {"tests": wanted, "events": str(log), "knobs": knobs, "off": off, "as_found": as_found}
        self._line.sendall(json.dumps(order).encode() + b"\n")
        answer = self._answer(RUN)
        if "unknown" in answer:
            raise RigError(f"the suite has no test {', '.join(answer['unknown'])}")
        found = events.read(log)
        verdict = judge(found, criteria.load(), self._facts)
        ended = [event for event in found.events if event["event"] == "test"]
        outcomes = {short(test["id"]): test["outcome"] for test in ended}
        return Outcome(verdict, outcomes, self._output(begin))

    def _answer(self, seconds: float) -> dict[str, Any]:
        """Wait for its next line."""
        self._line.settimeout(seconds * Pace.factor)
        try:
            line, why = self._answers.readline(), "the suite ended"
        except TimeoutError:
            line, why = "", f"the suite has not answered for {seconds:.0f} s"
        if not line:
            self.close()
            raise RigError(f"{why}:\n{self._output(self._begin)}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _output(self, begin: int) -> str:
        """The end of what pytest has said since then."""
        return self._log.read_bytes()[begin:].decode("utf-8", "replace")[-6000:]

    def close(self) -> None:
        """End it."""
        self._line.close()
        self._answers.close()
        try:
            self._child.wait(120)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._said.close()
