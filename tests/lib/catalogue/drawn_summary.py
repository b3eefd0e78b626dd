"""Results of drawn bad cards in words: a line for each, and how many escaped, with the interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.lib.catalogue.drawn import Defect
from tests.lib.catalogue.page import evidence

CUT = 200  # characters of a headline on the terminal
SURE = 1.96  # standard deviations: 95 %


@dataclass(frozen=True)
class Drawn:
    """One card. `own_fired`, `own_word`, `own_line`: in its own scenario; `fired`: in all that ran.

    `ran`: scenarios of the depth; `seen`: whether one failed (without a depth: its own), `by` this headline.
    """

    defect: Defect
    own_fired: int
    own_word: str
    own_line: str
    fired: int
    ran: int
    seen: bool
    by: str
    seconds: float
    shrunk: bool = True  # whether the failing scenario was made plainer, so that its headline says something

    @property
    def counts(self) -> bool:
        """Whether it says something of the suite: it acted in its own scenario, and the rig held."""
        return bool(self.own_fired) and (self.seen or self.own_word != "void")

    @property
    def escaped(self) -> bool:
        """Whether nobody noticed, though it acted in its own scenario."""
        return self.counts and not self.seen

    @property
    def blamed(self) -> bool:
        """Whether a headline names the condition; an offset only where the evidence says one."""
        return any(map(self.defect.blamed, (self.by, self.own_line)))

    def json(self) -> dict[str, Any]:
        """For a later reader."""
        reported = {"knobs": self.defect.knobs, "words": self.defect.words(), "scenario": self.defect.line}
        names = ("own_fired", "own_word", "own_line", "fired", "ran", "seen", "by", "escaped", "blamed")
        mine = {name: getattr(self, name) for name in names}
        security = {"security": self.defect.place.security, "seconds": round(self.seconds, 1)}
        return {"id": self.defect.id, **reported, **mine, **security}


def line(one: Drawn) -> str:
    """One line of the table on a terminal."""
    silent = "NOT FIRED" if not one.own_fired else "VOID"
    word = "caught" if one.seen else "ESCAPED" if one.counts else silent
    said = evidence(one.by)[:CUT] if one.seen else f"repeat it: {one.defect.knobs} and {one.defect.line}"
    return f"{word:9} {one.seconds:6.1f} s  fired {one.fired:5}  {one.defect.words()}: {said}"


def wilson(bad: int, count: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share, in percent."""
    share, square = bad / count, SURE * SURE
    middle = share + square / (2 * count)
    half = SURE * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    whole = 1 + square / count
    return 100 * max(0.0, (middle - half) / whole), 100 * min(1.0, (middle + half) / whole)


def summary(drawn: Sequence[Drawn], name: str, depth: str, wanted: int) -> Iterator[str]:
    """How many were caught, blamed rightly, and escaped; then the ones that were not caught."""
    fired = [one for one in drawn if one.counts]
    escaped = [one for one in fired if one.escaped]
    against = f"the scenarios of depth {depth}" if depth else "the scenario made for each"
    yield f"\ndraw {name}: {wanted} cards against {against}; {len(drawn)} were run, {len(fired)} acted"
    if fired:
        low, high = wilson(len(escaped), len(fired))
        share = 100 * len(escaped) / len(fired)
        yield f"escaped: {len(escaped)} of {len(fired)} = {share:.1f} % (95 %: {low:.1f} to {high:.1f} %)"
        grave = sum(one.defect.place.security for one in escaped)
        relevant = sum(one.defect.place.security for one in fired)
        yield f"escaped of the security-relevant ones: {grave} of {relevant}"
        blamed = sum(one.blamed for one in fired if one.seen)
        yield f"the headline names the condition: {blamed} of {len(fired) - len(escaped)} that were caught"
    for one in drawn:
        if not one.seen:
            yield line(one)
