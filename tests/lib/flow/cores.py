"""Configurations in turns: a testbed with the rig's own pumps, and what a measuring document must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from offload.card.nic import look
from offload.errors import TimedOut
from offload.host.base import Bench
from offload.suite.measure.plan import Plan, Setting
from offload.suite.measure.run import measure, once
from offload.suite.measure.stream import Stream
from offload.suite.measure.switch import keeping, steady
from offload.suite.measure.testbed import Testbed, about
from tests.lib.rig.rig import Rig, in_lab

ANSWERS = 4  # for each connection in a window, or else some have none: by what a first look moved
SMALLEST, LONGEST = 4 << 10, 30.0  # bytes of an answer, seconds of a window
LOOK = Setting("stream", "tx", 1, None)  # software encrypts, whatever the card can


def played(bench: Bench) -> bool:
    """Say whether figures by time are of no card: in a lab, and on hosts whose card is a simulated one."""
    return bench.simulated or in_lab(bench)


@contextmanager
def testbed_of(rig: Rig) -> Iterator[Testbed]:
    """The rig as a place to measure on; features and governor come back."""
    dut, peer = rig.bench.dut, rig.bench.peer
    with ExitStack() as undo:
        switches = undo.enter_context(keeping(dut.host, dut.dev))
        lab = played(rig.bench)  # its figures are labeled
        shared = lab or rig.bench.shared
        testbed = Testbed(dut, peer, peer.v4, rig.profile, lab, switches, undo, shared, emulated=lab)
        testbed.port = rig.port + 1000
        testbed.ends = {"dut": rig.end("dut"), "peer": rig.end("peer")}
        testbed.about = about(dut.host, look(dut.host, dut.dev), {})
        testbed.about["governor"], warning = undo.enter_context(steady(dut.host))
        testbed.add(warning)
        if not lab:
            testbed.count_cycles()
        yield testbed


def measured(rig: Rig, arms: Sequence[str], *settings: Setting) -> dict[str, Any]:
    """The document of these arms: one short turn each where no card is, at the first setting; else pairs.

    Raises NoFigure if an arm was not what its name says, or payload was lost. A bench that is too slow for a
    sample is a skip: what is measured for its figure alone voids no run.
    """
    short = played(rig.bench)
    wanted, seconds = (settings[:1], 0.4) if short else (settings, 3.0)
    with testbed_of(rig) as testbed:
        try:
            if any(setting.workload in ("nginx", "video") for setting in wanted):
                wanted, seconds = fitted(wanted, seconds, pace(rig, testbed))
            plan = Plan(tuple(arms), wanted, seconds, *((1, 0) if short else (5, 1)))
            found = measure(testbed, plan)
        except TimedOut as exc:
            pytest.skip(f"no sample: {exc.args[0]}")
        finally:
            rig.port = testbed.port
    return found


def pace(rig: Rig, testbed: Testbed) -> float:
    """Payload in bytes per second that the bench moved in a first look, taken once per rig."""
    if not rig.pace:
        row = once(testbed, Stream(testbed), "sw", LOOK, 0.4)
        rig.pace = row["bytes"] / row["seconds"]
    return rig.pace


def fitted(settings: Sequence[Setting], seconds: float, moves: float) -> tuple[tuple[Setting, ...], float]:
    """The settings with smaller answers, or else a longer window, so that each connection gets ANSWERS.

    `moves`: bytes per second of the bench. wrk measures whole seconds.
    """
    found, window = list[Setting](), max(seconds, 1.0)
    for setting in settings:
        assert setting.size is not None
        room = int(moves * window / (ANSWERS * setting.streams))
        size = min(setting.size, max(SMALLEST, 1 << max(room, 1).bit_length() - 1))
        found.append(replace(setting, size=size))
    most = max(setting.streams * (setting.size or 0) for setting in found)
    return tuple(dict.fromkeys(found)), max(seconds, min(LONGEST, ANSWERS * most / moves))


def sound(found: Mapping[str, Any], arms: Sequence[str]) -> None:
    """Every arm has a row with traffic and CPU behind it; what was skipped has a reason."""
    skipped = {row["arm"] for row in found["skipped"]}
    assert all(row["reason"] for row in found["skipped"]), found["skipped"]
    assert {row["arm"] for row in found["rows"]} == set(arms) - skipped, (found["skipped"], arms)
    for row in found["rows"]:
        assert row["samples"], f"arm {row['arm']} has no sample"
        for sample in row["samples"]:
            assert sample["bytes"] > 0 and sample["seconds"] > 0 and sample["cores"] > 0, (row["arm"], sample)
