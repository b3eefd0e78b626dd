"""A hunt without a lab: what fails is kept, a lab that dies is booted again, and Ctrl-C loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.profile import find
from offload.errors import RigError
from offload.suite.traffic import impair, tap
from tests.lib.scenario import hunt
from tests.lib.scenario.hunt import main
from tests.lib.scenario.hunt_book import Kept
from tests.lib.scenario.hunting import DIED, FAILED, HELD, NOT_MADE, SOFTWARE, Hunt, Outcome
from tests.lib.scenario.space import Scenario, load
from tests.lib.scenario.verdict.blame import NotTheCards

SPACE = load(find("connectx-6-dx"))
Script = dict[int, list[BaseException | tuple[str, ...]]]  # by seed: what comes of each run


class Labs:
    """Labs that are made up: what happens on them is in a script."""

    def __init__(self, folder: Path, script: Script, broken: int = 0) -> None:
        self.book, self.script, self.broken = Kept(folder, SPACE), script, broken
        self.booted = 0
        self.words: list[str] = []
        self.kept: list[int] = []
        enter = self.book.enter

        def entered(outcome: Outcome) -> None:
            self.words.append(f"{outcome.scenario.seed} {outcome.word}")
            enter(outcome)

        self.book.enter = entered  # type: ignore[method-assign]

    @contextmanager
    def lab(self) -> Iterator[Labs]:
        """Boot one."""
        self.booted += 1
        if self.booted <= self.broken:
            raise RigError("no QEMU here")
        yield self

    def play(self, scenario: Scenario, evidence: dict[str, Any]) -> tuple[str, ...]:
        """Do what the script says of this seed."""
        evidence["scenario"] = {"shrunk": f"seed={scenario.seed},direction=rx"}
        comes = self.script.get(scenario.seed, [()])
        now = comes.pop(0) if len(comes) > 1 else comes[0]
        if isinstance(now, BaseException):
            if isinstance(now, KeyboardInterrupt) and now.args:
                evidence["scenario"]["first_failure"] = now.args[0]
            raise now
        return now

    def keep(self, outcome: Outcome) -> None:
        """Note of what something was put away."""
        self.kept.append(outcome.scenario.seed)

    def hunt(self, seeds: Sequence[int], clock: Callable[[], float] = lambda: 0.0) -> None:
        Hunt(self.lab, self.book, clock).run((SPACE.draw(seed) for seed in seeds), 10)


def test_what_fails_is_kept_with_its_seed(tmp_path: Path) -> None:
    """A hunt goes on after a failure, whose folder says how to repeat it."""
    labs = Labs(tmp_path, {2: [AssertionError("plaintext")], 3: [("no carry",)]})
    labs.hunt([1, 2, 3, 4])
    assert labs.words == [f"1 {HELD}", f"2 {FAILED}", f"3 {NOT_MADE}", f"4 {HELD}"]
    notes = json.loads((tmp_path / "failures/2/failure.json").read_text())
    assert (notes["seed"], notes["words"], notes["shrunk"]) == (2, "plaintext", "seed=2,direction=rx")
    assert SPACE.parse(notes["line"]) == SPACE.draw(2) and labs.kept == [2] and labs.booted == 1
    rows = [json.loads(line) for line in (tmp_path / "hunt.jsonl").read_text().splitlines()]
    assert [row["outcome"] for row in rows] == [HELD, FAILED, NOT_MADE, HELD]
    table = labs.book.table()
    assert "failed 1 times: certify --scenario seed=2,direction=rx" in table and "not made        1" in table


def test_a_lab_that_dies_is_booted_again(tmp_path: Path) -> None:
    """The scenario under which a lab was lost runs once more: only twice is a failure."""
    labs = Labs(tmp_path, {2: [RigError("gone"), ()], 4: [RigError("gone"), RigError("gone again")]})
    labs.hunt([1, 2, 3, 4, 5])
    assert labs.words == [
        f"1 {HELD}",
        f"2 {DIED}",
        f"2 {HELD}",
        f"3 {HELD}",
        f"4 {DIED}",
        f"4 {FAILED}",
        f"5 {HELD}",
    ]
    assert labs.booted == 4 and "lost under it twice: gone again" in labs.book.found[0].words


def test_what_software_fails_in_is_not_the_card_s(tmp_path: Path) -> None:
    """A scenario in which software fails as well is told, and is no failure of the card."""
    labs = Labs(tmp_path, {2: [NotTheCards("software TLS fails under the same conditions")]})
    labs.hunt([1, 2, 3])
    assert labs.words == [f"1 {HELD}", f"2 {SOFTWARE}", f"3 {HELD}"] and labs.booted == 1
    assert not labs.book.found and "software        1" in labs.book.table()


def test_no_lab_at_all_ends_it(tmp_path: Path) -> None:
    """A hunt on labs that never come up says so, and does not boot for ever."""
    with pytest.raises(RigError, match="3 labs died in a row"):
        Labs(tmp_path, {}, broken=9).hunt([1])
    one = Labs(tmp_path, {}, broken=2)
    one.hunt([1])
    assert one.words == [f"1 {HELD}"]


def test_it_ends_with_the_time(tmp_path: Path) -> None:
    """No scenario begins after the time is over."""
    ticks = count(0, 2)
    labs = Labs(tmp_path, {})
    labs.hunt(range(100), lambda: float(next(ticks)))
    assert 1 <= len(labs.words) < 5


@pytest.mark.parametrize(("found", "kept"), [("plaintext", [2]), ("", [])])
def test_ctrl_c_loses_no_failure(tmp_path: Path, found: str, kept: list[int]) -> None:
    """What had failed when somebody ended the hunt is kept, though not shrunk."""
    labs = Labs(tmp_path, {2: [KeyboardInterrupt(*[found] if found else [])]})
    with pytest.raises(KeyboardInterrupt):
        labs.hunt([1, 2, 3])
    assert labs.kept == kept and labs.words[0] == f"1 {HELD}"
    assert [one.words for one in labs.book.found] == (
        ["plaintext (ended before it was shrunk)"] if kept else []
    )


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--scenario", "directoin=rx"], "no dimension 'directoin'"),
        (["--nic", "no-such-card"], "no-such-card"),
        (["--lab", "no-such-file.yaml"], "no-such-file.yaml"),
    ],
)
def test_a_wrong_option_is_one_line(argv: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A hunt that cannot begin says why, and makes no folder."""
    assert main(argv) == 2
    said = capsys.readouterr().err
    assert why in said and "Traceback" not in said


def test_a_hunt_without_programs_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checkout that is not built is told what to type; no lab is booted and lost for it."""
    monkeypatch.setattr(tap, "PROGRAM", str(tmp_path / "wiretap"))
    monkeypatch.setattr(impair, "PROGRAM", str(tmp_path / "wirebox"))
    assert main(["--out", str(tmp_path / "out")]) == 7
    said = capsys.readouterr().err
    assert said.startswith("make hunt: not built: ") and said.endswith("  hint: make build\n")
    assert "wiretap" in said and "wirebox" in said and not (tmp_path / "out").exists()


def test_what_was_used_up_is_opened_before_the_next_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what is old there is older than a scenario's first packet, as in a run of certify."""
    did: list[str] = []
    lab = SimpleNamespace(console_mark=lambda: 0, console_faults=lambda _: ())
    stand: Any = SimpleNamespace(
        rig=SimpleNamespace(lab=lab), refill=lambda one: did.append(f"refill {one.seed}")
    )
    monkeypatch.setattr(
        hunt, "check", lambda stand, space, one, evidence: did.append(f"check {one.seed}") or ()
    )
    ground = hunt.Ground(stand, SPACE, Kept(tmp_path, SPACE), tmp_path)
    assert ground.play(SPACE.parse("seed=7"), {}) == () and did == ["refill 7", "check 7"]
