"""What a scenario does so that its records lie as they must, whatever the host's clock and TCP do."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.profile import find
from tests.lib.scenario import connections, layout, play, troubles
from tests.lib.scenario.connections import BUFFER, OVERHEAD, Burst, Track
from tests.lib.scenario.play import Play
from tests.lib.scenario.space import load

SPACE = load(find("connectx-6-dx"))
MSS = 1448


def made(line: str, victim: Any = None) -> Play:
    """A play of this scenario on one connection."""
    victim = victim or SimpleNamespace(tracks={way: Track(None, 0) for way in ("tx", "rx")})  # type: ignore[arg-type]
    stage: Any = SimpleNamespace(line=victim, made=[])
    return Play(stage, SPACE.parse(line), [victim], None)


def moves(line: str, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each burst of the trouble goes in one direction at a time."""
    found: list[bool] = []
    played = made(line)
    monkeypatch.setattr(played, "_placed", lambda way: layout.placed(played.scenario, f"placed {way}", MSS))
    monkeypatch.setattr(played, "_rules", lambda *_: None)
    monkeypatch.setattr(played, "_moved", lambda _: found.append(False))
    monkeypatch.setattr(play, "turn", lambda *_, apart: found.append(apart))
    played._trouble()
    return found


@pytest.mark.parametrize(("place", "bursts"), [("header-cut", 5), ("tag-cut", 17)])
def test_where_trouble_strikes_a_cut_one_direction_waits(
    place: str, bursts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SACK blocks would move the cut of what the other end sends; both ends send all other bursts at once."""
    line = f"direction=both,place={place}"
    assert moves(f"seed=7,{line}", monkeypatch) == [False] * bursts
    struck = set()
    for seed in range(40):
        found = moves(f"seed={seed},{line},trouble=lost-thrice", monkeypatch)
        assert found.count(True) == 1 and len(found) == bursts
        struck.add(found.index(True))
    assert len(struck) > bursts // 2


def test_uncut_records_go_both_ways_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks where a record without a place begins."""
    assert moves("seed=7,direction=both,trouble=lost-thrice", monkeypatch) == [False]


def test_the_struck_burst_is_the_one_with_the_record() -> None:
    """It is the burst in which the record of the trouble lies; the first and the last frame lie elsewhere."""
    for seed in range(40):
        for trouble in ("lost-tag", "lost-first", "lost-last", "duplicate"):
            scenario = SPACE.parse(f"seed={seed},place=tag-cut,trouble={trouble}")
            bursts = layout.placed(scenario, "placed tx", MSS)
            track = Track(None, 0)  # type: ignore[arg-type]
            number, at = troubles.struck(scenario, track, bursts), layout.spot(scenario, track, bursts)
            if trouble in ("lost-first", "lost-last"):
                assert number == (0 if trouble == "lost-first" else len(bursts) - 1)
            else:
                assert sum(b.total for b in bursts[:number]) + bursts[number].writes[0] == at.before


@pytest.mark.parametrize(
    ("windows", "bursts", "trouble"),
    [
        ([30], 1, "none"),
        ([9, 12, 20], 3, "none"),
        ([9] * 20, play.WIDER, "none"),
        ([9, 20, 27], 3, "lost-first"),
    ],
)
def test_tcp_gets_room_for_hundreds_of_records(
    windows: list[int], bursts: int, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bursts are sent until TCP's window holds 300 records, twice as many if it loses some; not for ever."""
    left, moved = iter(windows), list[Any]()
    monkeypatch.setattr(play, "move", lambda *what: moved.append(what))
    end = SimpleNamespace(call=lambda _: {"mss": 1000, "window": next(left)})
    victim = SimpleNamespace(source=lambda _: end, tracks={})
    made(f"seed=7,place=hundreds-in-tso,record=16,trouble={trouble}", victim)._widen()
    assert len(moved) == bursts


def test_a_long_record_goes_before_hundreds_of_short_ones() -> None:
    """Paced, TCP waits after it, and the trouble strikes none but the short ones."""
    scenario = SPACE.parse("seed=7,place=hundreds-in-tso,record=16,trouble=lost-tag")
    (burst,) = layout.placed(scenario, "placed tx", MSS)
    assert burst.writes == (300 * (16 + OVERHEAD), *[16] * 600) and burst.cork
    found = set()
    for seed in range(40):
        one = SPACE.parse(f"seed={seed},place=hundreds-in-tso,record=16,trouble=lost-tag")
        at = layout.spot(one, Track(None, 0), [burst])  # type: ignore[arg-type]
        assert at.end - at.begin == 16 + OVERHEAD and at.before >= burst.writes[0]
        found.add(at.begin)
    assert len(found) > 30


@pytest.mark.parametrize(
    ("sizes", "order"),
    [
        ([BUFFER], ["send", "sent", "take", "whole"]),
        ([BUFFER + 1], ["send", "take", "whole"]),
        ([1, BUFFER + 1], ["send", "take", "whole", "whole"]),
    ],
)
def test_an_end_takes_when_all_is_sent(
    sizes: list[int], order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wake for each record. What buffers cannot hold must be taken meanwhile."""
    done: list[str] = []

    def begun(asks: list[Any]) -> list[int]:
        done.append(asks[0][1])
        return [0] * len(asks)

    end = SimpleNamespace(connections=SimpleNamespace(answer=lambda _: done.append("sent")))
    line: Any = SimpleNamespace(
        source=lambda _: end,
        sink=lambda _: end,
        sending=lambda *_: (end, "send", {}),
        whole=lambda *_: done.append("whole"),
    )
    monkeypatch.setattr(connections, "begun", begun)
    connections.move([line] * len(sizes), ["tx"], [Burst("b", (size,)) for size in sizes])
    assert done == order


@pytest.mark.parametrize(
    ("trouble", "error"),
    [("body", "EBADMSG"), ("header", "EBADMSG"), ("tag", "EBADMSG"), ("version", "EINVAL")],
)
def test_the_receiver_says_by_its_error_what_was_forged(
    trouble: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tries the key on all but another version; of the record itself no byte arrives."""
    line = f"seed=7,direction=rx,trouble=forged-{trouble}"
    burst = layout.placed(SPACE.parse(line), "placed rx", MSS)[0]
    track = Track(None, 0)  # type: ignore[arg-type]
    before = layout.spot(SPACE.parse(line), track, [burst]).before
    for said, extra, wrong in (
        (error, 0, ""),
        ({"EBADMSG": "EINVAL", "EINVAL": "EBADMSG"}[error], 0, "receiver ended with E"),
        ("", 0, "receiver ended with no error"),
        (error, 1, "1 bytes of an altered record"),
    ):
        arrived = burst.content()[: before + extra]
        seen = {"bytes": len(arrived), "error": said, "sha256": hashlib.sha256(arrived).hexdigest()}
        victim = SimpleNamespace(
            tracks={"rx": track},
            send=lambda *_: None,
            sink=lambda _, seen=seen: SimpleNamespace(take=lambda _: seen),
        )
        played = made(line, victim)
        monkeypatch.setattr(played, "_rules", lambda *_: None)
        monkeypatch.setattr(played, "_sent", lambda _: None)
        with pytest.raises(AssertionError, match=wrong) if wrong else nullcontext():
            played._forged([burst])
        assert played.notes.forged
