"""What the suite finds of each bad card: one lab, one pytest in it, knob after knob."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.card.nic import Feature, features
from offload.cmd import settles
from offload.debian.kernels import fetch
from offload.errors import OffloadError, RigError
from offload.suite.bench.cards.knobs import FOLDER, turn
from offload.suite.bench.vm.lab import Lab
from tests.lib.catalogue.rows import DEBUG, Step
from tests.lib.catalogue.suite import Outcome, Suite

PEER = "connectx-6-dx"  # the peer is always a card that offloads both ways: the interop tests need one
SOON, GIVEN_BACK = 1.0, 5.0  # seconds: what a good connection takes, and one that is hung up
Shown = list[dict[str, Feature]]  # by card
# under a live connection, which then waits: an oops takes a while to appear
UNLOAD = "until grep -q 'CurrTxDevice[[:space:]]*[1-9]' /proc/net/tls_stat; do sleep 0.1; done; rmmod nicsim"


@dataclass(frozen=True)
class Found:
    """What came of one step. `promise` and `line`: what the verdict names first, and why.

    `tests`: how many ran. `problem` is empty if that is what the catalogue wants; `left`: what the step left
    behind in the lab; `fired`: how often the fault acted, as far as the card counts it.
    """

    step: Step
    word: str
    promise: str
    line: str
    seconds: float
    tests: int
    problem: str
    left: str
    output: str
    fired: int = 0

    def json(self) -> dict[str, Any]:
        """Return what a later reader wants to know of it."""
        names = ("word", "promise", "line", "tests", "problem", "left", "fired")
        return {"id": self.step.id, "seconds": round(self.seconds, 1)} | {n: getattr(self, n) for n in names}


class Stand:
    """A lab whose card is made bad and good again. Use as a context: what it boots it ends.

    A lab is booted for the first step, for another card, and after a step that has left something behind.
    """

    off = ""  # a check of the suite to do without
    as_found = False  # a scenario that fails is not shrunk
    scenarios: Sequence[str] = ()  # lines of those that the suite has, instead of a depth's

    def __init__(self, kernel: str, folder: Path, say: Callable[[str], None], attach: str = "") -> None:
        """`folder`: where the events of each step go; `attach`: the name of a lab to use, never ended."""
        self._kernel, self._folder, self._say, self._attach = kernel, folder, say, attach
        self._lab: Lab | None = None
        self._suite: Suite | None = None
        self._card = ""

    def __enter__(self) -> Stand:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """End the suite and the lab."""
        if self._suite:
            self._suite.close()
        if self._lab:
            self._lab.stop()
        self._suite = self._lab = None

    def do(self, step: Step) -> Found:
        """Run one step. RigError if the lab or the suite breaks, which a row that ends void may want."""
        lab, suite = self._ready(step.card)
        knobs, mark = step.row.knobs if step.row else "", lab.console_mark()
        before = look(lab), self._contexts(lab)
        began = time.monotonic()
        self._turn(lab, knobs)
        try:
            if step.row and step.row.during:
                lab.dut.start(["timeout", "60", "sh", "-c", UNLOAD])  # nobody waits: it may never come back
            words = {"name": step.id, "knobs": knobs, "off": self.off}
            outcome = suite.run(*self._asked(step, suite), **words, as_found=self.as_found)
            took, acted = time.monotonic() - began, self._fired(lab)
        except RigError:
            self.clear()
            raise
        left = self._left(lab, before, mark) or reported(step)
        if left:
            self._say(f"{step.id} left behind: {left}; a new lab")
            self.clear()
        word, promise, line = named(outcome)
        ran = len(outcome.tests)
        return Found(step, word, promise, line, took, ran, judged(step, outcome), left, outcome.output, acted)

    def _fired(self, lab: Lab) -> int:
        """How often the fault has acted; 0 if the lab no longer says so: its driver may be unloaded."""
        try:
            return fired(lab)
        except OffloadError:
            return 0

    def _asked(self, step: Step, suite: Suite) -> list[str]:
        """The tests of a step, or all if it names none; of a good card those that its profile has."""
        return [test for test in step.tests or suite.tests if step.row or test in suite.tests]

    def _ready(self, card: str) -> tuple[Lab, Suite]:
        """A lab with this card, and the suite in it."""
        if self._card != card:
            self.clear()
        if self._lab is None or self._suite is None:
            self._lab = self._open(card)
            self._suite, self._card = self._suite_of(card, self._lab), card
        return self._lab, self._suite

    def _suite_of(self, card: str, lab: Lab) -> Suite:
        return Suite(self._folder, card, self._kernel, lab.name, self.scenarios)

    def _open(self, card: str) -> Lab:
        if self._attach:
            return Lab.attach(self._attach)
        return Lab.boot(fetch(self._kernel, say=self._say), personality=f"{card},{PEER}", say=self._say)

    def _turn(self, lab: Lab, knobs: str) -> None:
        """Make the cards bad."""
        turn(lab.root, knobs)

    def _reset(self, lab: Lab) -> None:
        """Make them good again."""
        reset(lab)

    def _contexts(self, lab: Lab) -> list[int]:
        """How many offload contexts each card holds."""
        return contexts(lab)

    def _left(self, lab: Lab, before: tuple[Shown, list[int]], mark: int) -> str:
        """Make the card good again; return what is not as it was before, in words."""
        try:
            self._reset(lab)
            if not settles(lambda: self._contexts(lab) == before[1], SOON):
                hang_up(lab)
            if not settles(lambda: self._contexts(lab) == before[1], GIVEN_BACK):
                return f"{self._contexts(lab)} contexts of the two cards, {before[1]} before"
            if look(lab) != before[0] and switch(lab, before[0]) != before[0]:
                return f"features as {look(lab)}"
        except OffloadError as exc:
            return str(exc).partition("\n")[0]
        return " | ".join(lab.console_faults(mark)[:2])


def reported(step: Step) -> str:
    """A report of the kernel's tools stays in its log, which the last test reads whole."""
    return "a report in the kernel log" if step.row and DEBUG in step.row.kernels else ""


def reset(lab: Lab) -> None:
    """Turn every knob of both cards back."""
    lab.root.run(["sh", "-c", f"for f in {FOLDER}/*/reset; do echo 1 > $f; done"])


def hang_up(lab: Lab) -> None:
    """End the connections that a failed test has left open at both ends."""
    for host in (lab.dut, lab.peer):
        host.run(["ss", "-K", "-t", "state", "connected"], check=False)


def contexts(lab: Lab) -> list[int]:
    """How many offload contexts each card holds."""
    said = lab.root.run(["sh", "-c", f"cat {FOLDER}/*/counters"]).text
    return [int(number) for number in re.findall(r"^sim_contexts (\d+)$", said, re.M)]


def fired(lab: Lab) -> int:
    """How often a fault of the DUT's card has acted since it was good."""
    said = lab.root.run(["cat", f"{FOLDER}/0/counters"]).text
    return sum(int(number) for number in re.findall(r"^sim_fired (\d+)$", said, re.M))


def look(lab: Lab) -> Shown:
    """The features of both cards."""
    return [features(side.host, side.dev) for side in (lab.bench.dut, lab.bench.peer)]


def switch(lab: Lab, wanted: Shown) -> Shown:
    """Switch the features of both cards, which a failed test may have left; what they show then."""
    for side, shown in zip((lab.bench.dut, lab.bench.peer), wanted, strict=True):
        now = features(side.host, side.dev)
        other = [name for name, one in shown.items() if name in now and now[name] != one]
        words = [word for name in other for word in (name, "on" if shown[name].active else "off")]
        if words:
            side.host.run(["ethtool", "-K", side.dev, *words], check=False)
    return look(lab)


def named(outcome: Outcome) -> tuple[str, str, str]:
    """The word of the verdict, the promise that it names first, and why."""
    verdict = outcome.verdict
    if verdict.word == "failed":
        promise, _, why = verdict.reasons[0].partition(": ")
        return verdict.word, promise, why
    return verdict.word, "", verdict.reasons[0] if verdict.word == "void" else ""


def judged(step: Step, outcome: Outcome) -> str:
    """Return what is not as the catalogue wants it; empty if all is."""
    word, promise, line = named(outcome)
    row = step.row
    if row is None or row.end == "good":
        odd = {
            test: how for test, how in outcome.tests.items() if how not in ("pass", "xfail")
        }  # as its profile lists it
        broken = [f"{state.criterion.id}: {state.reason}" for state in outcome.broken()]
        return (
            f"a good card, and {odd or 'nothing ran'}: {broken}" if odd or broken or not outcome.tests else ""
        )
    if word != row.end:
        return f"ends {word}, wanted {row.end}: {outcome.verdict.headline}"
    if promise != row.breaks:
        return f"names {promise} first, wanted {row.breaks}: {line}"
    return "" if re.search(row.evidence, line) else f"says {line!r}, wanted {row.evidence!r}"


def side_by_side(labs: Sequence[Callable[[], object]], stop: Callable[[], object]) -> None:
    """Run each lab in its own thread. If one raises, stop the others, then raise it."""
    with ThreadPoolExecutor(len(labs)) as pool:
        going = [pool.submit(one) for one in labs]
        try:
            for one in going:
                one.result()
        except BaseException:
            stop()
            raise
