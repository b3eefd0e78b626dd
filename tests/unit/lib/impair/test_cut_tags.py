"""A segment that should end inside a tag and ended elsewhere is sent again, and not for ever."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from offload.suite.traffic.impair import Action
from tests.lib.impair import cut_tags

MSS = 1448


class Wire:
    """A connection and what loses its segments: the first `early` bursts leave in other segments."""

    def __init__(self, early: int) -> None:
        self.track, self.port, self.early, self.rules = SimpleNamespace(wire=0), 40000, early, list[Any]()
        self.tracks = {"tx": self.track}

    def move(self, _lines: object, _directions: object, bursts: Any) -> None:
        """Send a burst."""
        self.track.wire += sum(bursts[0].writes) + len(bursts[0].writes) * cut_tags.OVERHEAD

    def add(self, rule: Any) -> int:
        """Take a rule."""
        self.rules.append(rule)
        return len(self.rules)

    def acted(self, rule: int) -> Action:
        """Say which segment was lost."""
        last = self.rules[rule - 1].number + (7 if rule <= self.early else 0)
        return Action(rule, rule, "to-peer", "", 1000, "drop", offset=last + 1 - 1000)


@pytest.mark.parametrize(("early", "tries"), [(0, 1), (2, 3), (9, cut_tags.TRIES)])
def test_it_is_sent_until_a_segment_ends_there(
    early: int, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try has a place of its own in the stream; without success the capture says what lacks."""
    wire, cut = Wire(early), cut_tags.cuts(MSS)[9]
    monkeypatch.setattr(cut_tags, "move", wire.move)
    ends = cut_tags.lost(wire, cut, wire)  # type: ignore[arg-type]
    burst = wire.track.wire // tries
    assert ends == {n * burst + cut.end: 10 for n in range(tries)}
    assert [rule.number + 1 for rule in wire.rules] == list(ends)
