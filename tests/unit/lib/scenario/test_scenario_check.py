"""A failed scenario and its software twin: when the twin fails as well, the card is not blamed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.profile import find
from offload.errors import RigError
from tests.lib.scenario import check as checked
from tests.lib.scenario.space import Scenario, load
from tests.lib.scenario.verdict.blame import NotTheCards, Unseen

SPACE = load(find("connectx-6-dx"))
LINE = "seed=7,mtu=9000,trouble=lost-tag"
BAD = "connection of port 9: different: wrong keystream"


class Stand:
    """A stand on which scenarios fail with these words: with the card, and without it."""

    def __init__(self, card: str, software: str) -> None:
        self.said = {True: card, False: software}
        self.card, self.keep = ("tx", "rx"), None
        self.rig = SimpleNamespace(
            profile=SimpleNamespace(directions=lambda: ("tx", "rx")),
            captures=SimpleNamespace(aside=self.aside),
        )
        self.offload = SimpleNamespace(set=self.set)
        self.switched: list[dict[str, bool]] = []
        self.left_out = 0

    def set(self, **directions: bool) -> None:
        """Switch the offload."""
        self.switched.append(directions)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave captures out."""
        self.left_out += 1
        yield

    def renew(self) -> None:
        """Open old connections anew."""


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No scenario really runs: a stand says what comes of it."""

    def run(stand: Any, scenario: Scenario, *, strict: bool = False) -> None:
        words = stand.said[bool(stand.card)]
        if words.startswith("rig"):
            raise RigError(words)
        raise AssertionError(words) if words else AssertionError

    monkeypatch.setattr(checked, "run", run)


def failed(card: str, software: str) -> tuple[BaseException, Stand, dict[str, Any]]:
    """What a failing scenario ends with."""
    stand, evidence = Stand(card, software), dict[str, Any]()
    with pytest.raises((AssertionError, RigError)) as ended:
        checked.check(stand, SPACE, SPACE.parse(LINE), evidence)  # type: ignore[arg-type]
    assert stand.card == ("tx", "rx") and stand.switched[-1] == {"tx": True, "rx": True}
    return ended.value, stand, evidence


@pytest.mark.parametrize(
    "software",
    [
        BAD,
        "receiver: 3 of 10 bytes arrived",
        "2 of 9 captured frames are unexplained: stray-data at 3 (a > b)",
        "frame 3 of the DUT: a wrong checksum",
    ],
)
def test_a_twin_that_fails_never_blames_the_card(software: str) -> None:
    """A broken rig is named, and no headline says what records of the card are."""
    exc, stand, evidence = failed(BAD, software)
    assert isinstance(exc, NotTheCards) and isinstance(exc, RigError)
    assert str(exc).startswith(
        "software TLS fails under the same conditions, so this says nothing of the card: "
    )
    assert software in str(exc) and "--scenario seed=7" in str(exc) and "sent records" not in str(exc)
    assert evidence["scenario"]["software"] == software and stand.left_out == 1


@pytest.mark.parametrize(
    "software",
    [
        "software did it, and the card counted {'tx_tls_encrypted_bytes': 7}",
        "1 were opened, tx counts {'Device': 1, 'Sw': 0}",
        "contexts were not released: {'tx_tls_ctx - tx_tls_del': 1} are left",
        "rig: the switch does not move",
    ],
)
def test_a_card_that_works_while_it_is_off_is_to_blame(software: str) -> None:
    """What only a card or its driver can do is the card's, and so is what has no twin."""
    exc, _, evidence = failed(BAD, software)
    assert isinstance(exc, AssertionError) and str(exc).startswith("sent records have a wrong keystream")
    assert "software under the same conditions:" in str(exc) and software in str(exc)


def test_the_headline_names_the_conditions_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card that fails where software holds is blamed, with the conditions it takes."""

    def run(stand: Any, scenario: Scenario, *, strict: bool = False) -> Any:
        if stand.card and scenario["trouble"] == "lost-tag":
            raise AssertionError(BAD)
        return SimpleNamespace(missing=(), met={}, evidence={}, scenario=scenario)

    monkeypatch.setattr(checked, "run", run)
    exc, _, _ = failed("", "")
    assert str(exc).startswith("sent records have a wrong keystream when the frame with a tag is lost: ")
    assert "software under the same conditions: intact; repeat it: certify --scenario seed=7,trouble" in str(
        exc
    )


def test_what_a_profile_forgives_can_be_held_against_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the test of a limitation asks for that; every other scenario lets it pass."""
    asked = []

    def run(stand: Any, scenario: Scenario, *, strict: bool = False) -> Any:
        asked.append(strict)
        return SimpleNamespace(missing=("place: nowhere",), met={}, evidence={}, scenario=scenario)

    monkeypatch.setattr(checked, "run", run)
    stand: Any = SimpleNamespace(rig=SimpleNamespace(profile=find("connectx-6-dx")))
    evidence: dict[str, Any] = {}
    missing = checked.strictly(stand, "seed=1,direction=rx", evidence)
    assert missing == ("place: nowhere",) and evidence["scenario"]["not_met"] == ["place: nowhere"]
    checked.check_line(stand, "seed=1,direction=rx", {})
    assert asked == [True, False, False]


def test_a_failure_is_reported_as_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for speed, it is not shrunk and not compared: one run, and the headline has each condition."""
    runs: list[Scenario] = []

    def run(stand: Any, scenario: Scenario, *, strict: bool = False) -> None:
        runs.append(scenario)
        raise AssertionError(BAD)

    monkeypatch.setattr(checked, "run", run)
    monkeypatch.setattr(checked, "AS_FOUND", [True])
    with pytest.raises(AssertionError) as ended:
        checked.check(Stand("", ""), SPACE, SPACE.parse(LINE), {})  # type: ignore[arg-type]
    said = str(ended.value)
    assert said.startswith("sent records have a wrong keystream at an MTU of 9000 and when the frame with")
    assert len(runs) == 1 and said.endswith(f"repeat it: certify --scenario {LINE}")


def late(monkeypatch: pytest.MonkeyPatch, times: int, fault: str = "") -> list[Scenario]:
    """The captures of so many runs begin too late; one in which the tag is lost fails with these words."""
    runs: list[Scenario] = []

    def run(stand: Any, scenario: Scenario, *, strict: bool = False) -> Any:
        runs.append(scenario)
        if fault and stand.card and scenario["trouble"] == "lost-tag" and len(runs) == 1:
            raise AssertionError(fault)
        if len(runs) - bool(fault) <= times:
            raise Unseen("connection of port 9: inconclusive: the beginning is not in the capture")
        return SimpleNamespace(missing=(), met={}, evidence={}, scenario=scenario)

    monkeypatch.setattr(checked, "run", run)
    return runs


def test_a_capture_that_begins_too_late_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing of the card: the scenario runs once more, and the evidence says why."""
    runs, evidence = late(monkeypatch, 1), dict[str, Any]()
    missing = checked.check(Stand("", ""), SPACE, SPACE.parse(LINE), evidence)  # type: ignore[arg-type]
    assert missing == () and len(runs) == 2 and "beginning" in evidence["scenario"]["first_not_seen"]


def test_captures_that_begin_too_late_break_the_rig(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice: an error of the rig, which voids the run, and no word of the card."""
    runs, evidence = late(monkeypatch, 2), dict[str, Any]()
    with pytest.raises(Unseen):
        checked.check(Stand("", ""), SPACE, SPACE.parse(LINE), evidence)  # type: ignore[arg-type]
    assert len(runs) == 2 and "first_failure" not in evidence["scenario"]


def test_a_failure_stays_one_whatever_the_later_captures_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plainer runs tell nothing then, and the card is blamed for what was seen."""
    late(monkeypatch, 99, BAD)
    exc, _, _ = failed("", "")
    assert isinstance(exc, AssertionError) and BAD in str(exc) and "not to be had" in str(exc)
