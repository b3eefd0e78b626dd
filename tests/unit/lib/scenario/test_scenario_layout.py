"""Where the records of a scenario lie: a forged one comes last, so that all that is cut was there before."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from offload.card.profile import find
from tests.lib.scenario.connections import OVERHEAD, Track
from tests.lib.scenario.layout import BEFORE, CUTS, MOST, TAG, cut, ordinary, placed, spot
from tests.lib.scenario.space import load
from tests.lib.scenario.troubles import forged_at, rules

SPACE = load(find("connectx-6-dx"))
MSS = 1448


@pytest.mark.parametrize("place", sorted(CUTS))
def test_each_byte_is_cut_after(place: str) -> None:
    """Each byte of a header or tag has its record, and the seed says which one is the last."""
    last = set()
    for seed in range(120):
        bursts = cut(SPACE.parse(f"seed={seed},place={place}"), MSS)
        found = []
        for before, size, _ in bursts:
            header = before + OVERHEAD
            what = header if place == "header-cut" else header + OVERHEAD + size - TAG
            first = what + CUTS[place][0]
            found.append(-(-first // MSS) * MSS - what)
        assert sorted(found) == list(CUTS[place])
        last.add(found[-1])
    assert len(last) == len(CUTS[place])


@pytest.mark.parametrize("place", sorted(CUTS))
def test_a_forged_record_is_the_last_one_that_is_cut(place: str) -> None:
    """The connection ends where somebody forged: what is cut is before it, not behind."""
    for seed in range(20):
        scenario = SPACE.parse(f"seed={seed},direction=rx,place={place},trouble=forged-tag")
        bursts = placed(scenario, "placed rx", MSS)
        at = spot(scenario, Track(None, 0), bursts)  # type: ignore[arg-type]
        assert at.before == sum(b.total for b in bursts[:-1]) + bursts[-1].writes[0]


@pytest.mark.parametrize(
    ("words", "mss"),
    [
        ("", 1448),
        (",tcp=bare", 1460),
        (",ip=v4-options", 1444),
        (",ip=v6", 1428),
        (",ip=v6-extension,mtu=9000", 8920),
        (",ip=v6-tclass,tcp=sack-live", 1416),
        (",mtu=600", 548),
    ],
)
def test_a_record_fills_a_segment(words: str, mss: int) -> None:
    """Each segment has one record: what is in front of it takes its part of the MTU."""
    scenario = SPACE.parse(f"seed=7,record=segment{words}")
    (burst,) = placed(scenario, "placed tx", mss)
    assert {size + OVERHEAD for size in burst.writes} == {mss} and len(burst.writes) > 2


def test_a_record_right_after_a_resync_is_forged() -> None:
    """The second record that comes after the lost header is altered, not one far behind."""
    for seed in range(20):
        scenario = SPACE.parse(f"seed={seed},direction=rx,trouble=forged-resync")
        bursts = placed(scenario, "placed rx", MSS)
        at = spot(scenario, Track(None, 0), bursts)  # type: ignore[arg-type]
        assert at.begin == bursts[0].writes[0] + OVERHEAD
        assert at.end - TAG <= forged_at(scenario, at) < at.end


def forgeries(record: str, part: str = "header") -> Iterator[tuple[int, int, int]]:
    """Of many seeds: which byte of a record's header is altered, and its length before and after."""
    for seed in range(60):
        scenario = SPACE.parse(f"seed={seed},direction=rx,record={record},trouble=forged-{part}")
        line = SimpleNamespace(tracks={"rx": Track(None, 0)}, port=443)  # type: ignore[arg-type]
        bursts = placed(scenario, "placed rx", MSS)
        at = spot(scenario, line.tracks["rx"], bursts)
        ((rule, times),) = rules(scenario, line, "rx", bursts)  # type: ignore[arg-type]
        where, length = rule.number - at.begin, at.end - at.begin - 5
        assert times == 1
        yield where, length, length ^ {3: 256, 4: 1}.get(where, 0) << rule.bit


@pytest.mark.parametrize(
    ("record", "bytes_"), [("4096", {0, 3, 4}), ("16384", {0, 3, 4}), ("16383", {0, 4}), ("16", {0, 4})]
)
def test_the_type_or_the_length_of_a_record_is_forged(record: str, bytes_: set[int]) -> None:
    """A header is altered in a byte that the kernel leaves to the tag: which one, the seed says."""
    assert {where for where, _, _ in forgeries(record)} == bytes_


@pytest.mark.parametrize("record", ["16", "4096", "16384"])
def test_either_byte_of_a_version_is_forged(record: str) -> None:
    """The major or the minor number is altered, and the length stays what it is."""
    found = list(forgeries(record, "version"))
    assert {where for where, _, _ in found} == {1, 2} and all(was == is_ for _, was, is_ in found)


@pytest.mark.parametrize("record", SPACE.made["record"])
def test_a_forged_length_is_one_that_the_kernel_decrypts(record: str) -> None:
    """It is 24 to 16,408 bytes (tls_rx_msg_size), and at most one longer: more bytes might never come."""
    for where, before, after in forgeries(record):
        assert (where == 0) == (before == after) and 24 <= after <= 16384 + 24 and after <= before + 1


@pytest.mark.parametrize(("among", "records"), [(1, 48), (2, 24), (9, 5), (33, 3), (70, 3)])
def test_connections_share_the_records_of_a_burst(among: int, records: int) -> None:
    """More connections mean more turns, not more records in each; a number of short records still carries."""
    burst = ordinary(SPACE.parse(f"seed=7,record=16,connections={among}"), "start", among)
    assert burst.writes == (16,) * records
    assert records > BEFORE and records <= max(MOST // among, BEFORE + 1)
