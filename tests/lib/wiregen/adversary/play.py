"""One example: edits drawn by Hypothesis, both engines asked, the third party's word held against theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.lib.wiregen import engines
from tests.lib.wiregen.adversary import edits, edits_header, edits_records
from tests.lib.wiregen.adversary.dice import Dice
from tests.lib.wiregen.adversary.oracle import opinion
from tests.lib.wiregen.adversary.table import TABLES, Hand, session_of, table

ALONE, WITH_RECORDS = (1, 1, 1, 2, 3), (0, 0, 1)  # edits of frames in one capture, with one of records
assert edits_header.__name__  # its edits are in the register
PLAIN = settings(
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
    report_multiple_bugs=False,
)


def deal(dice: Dice) -> Hand:
    """A good capture after some edits."""
    number, session, notes = dice.int(0, TABLES - 1), None, []
    if dice.int(0, 3) == 3:
        name = dice.pick(sorted(edits_records.RECORD_EDITS))
        session = edits_records.copied(session_of(number))
        notes.append(edits_records.RECORD_EDITS[name](dice, session))
    hand = table(number, session)
    hand.notes += [f"table {number}", *notes]
    for _ in range(dice.pick(WITH_RECORDS if session else ALONE)):
        name = dice.pick(sorted(edits.EDITS))
        hand.notes.append(edits.EDITS[name](dice, hand))
    return hand


@st.composite
def hands(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Hand:
    """Edited captures; what fails shrinks to fewer and simpler edits."""
    return deal(Dice(draw))


def answers(hand: Hand, folder: Path) -> dict[str, dict[str, Any]]:
    """The document of each engine."""
    case = hand.case()
    running = engines.start_core(case, folder / "core")
    ours = engines.oracle(case, folder / "python")
    return {"python": ours, "core": engines.end_core(running)}


def complaint(hand: Hand, said: dict[str, dict[str, Any]]) -> str:
    """Return what is wrong with the answers; empty if nothing is."""
    think = opinion(hand)
    for name, verdict in said.items():
        outcome = verdict.get("outcome", "refused")
        if outcome not in think.allowed:
            return f"{name} says {outcome}; may be {' or '.join(sorted(think.allowed))}: {think.reason}"
    parted = list(engines.parting(said["python"], said["core"]))
    return "engines part: " + "; ".join(parted[:3]) if parted else ""


def kept(hand: Hand, folder: Path, why: str) -> None:
    """Leave a finding in files: capture, keylog, payload, and what was done."""
    folder.mkdir(parents=True, exist_ok=True)
    engines.write(hand.case(), folder)
    text = "\n".join([*(line for line in hand.notes if line), "", why, ""])
    (folder / "why.txt").write_text(text)


def hunt(first: int, count: int, folder: Path, keep: Path, tally: Counter[str]) -> str:
    """Run examples from this seed on; the finding, if there is one, with its capture in `keep`.

    `tally`: how many captures may only be equal, how many not, and how many are left open.
    """
    notes = ""

    @seed(first)
    @settings(PLAIN, max_examples=count)
    @given(hands())
    def play(hand: Hand) -> None:
        nonlocal notes
        allowed = opinion(hand).allowed
        tally["legal" if allowed == {"equal"} else "open" if "equal" in allowed else "not equal"] += 1
        if why := complaint(hand, answers(hand, folder)):
            notes = why
            kept(hand, keep, why)
            raise AssertionError(why)

    try:
        play()
    except AssertionError as exc:
        return notes or str(exc)
    return ""
