"""Turns of arms on a testbed that is played: the document, what is skipped, warned of and refused."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.counters import Snapshot
from offload.card.profile import find
from offload.errors import ConfigError, Refused, RigError
from offload.host.base import Completed, Side
from offload.suite.measure import run as measure_run
from offload.suite.measure.arms import Moved, NoFigure
from offload.suite.measure.cpu.cycles import Cycles
from offload.suite.measure.cpu.meter import Snapshot as Cpu
from offload.suite.measure.plan import Plan, Setting
from offload.suite.measure.testbed import Testbed, interrupts
from offload.suite.measure.window import Window, ticked

MIB = 1 << 20
SETTING = Setting("stream", "tx", 1, None)


def cpu(at: float, busy: int, idle: int) -> Cpu:
    """One CPU's ticks at a moment."""
    row = dict.fromkeys(("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"), 0)
    return Cpu("dut", at, 0.0, 100, {0: {**row, "user": busy, "idle": idle}})


class Played(Testbed):
    """A testbed whose clock, counters and card do what a dictionary says; a second per turn, half a core."""

    def __init__(self, profile: str | None = "connectx-6-dx", speed: str = "100000") -> None:
        done = Completed(("cat",), 0, speed.encode(), b"", 0.0)
        host: Any = SimpleNamespace(name="dut", run=lambda argv, **more: done)
        self.dut, self.peer, self.address = Side(host, "eth0", "192.0.2.1", ""), None, "192.0.2.2"
        self.profile = find(profile) if profile else None
        self.simulated = self.emulated = self.shared = False
        self.about, self.warnings, self.ends, self.undo = {}, [], {}, ExitStack()
        self.switched: list[Any] = []
        self.switches: Any = SimpleNamespace(set=lambda tls, on, **_: self.switched.append((dict(tls), on)))
        self.time, self.counted = 0, {"TlsTxDevice": 0, "TlsTxSw": 0, "tx_tls_encrypted_bytes": 0}
        self.bytes = {"tx": 0, "rx": 0}
        self.meter: Any = SimpleNamespace(snapshot=self.tick)

    def tick(self) -> Cpu:
        """A second later."""
        self.time += 1
        return cpu(float(self.time), self.time * 50, self.time * 50)

    def counters(self) -> Snapshot:
        """As they are."""
        return Snapshot("eth0", float(self.time), dict(self.counted), {}, {})

    def carried(self) -> dict[str, int]:
        """As it is."""
        return dict(self.bytes)

    def without_ktls(self) -> str:
        """It has."""
        return ""

    def unswitchable(self, direction: str) -> str:
        """It always can be."""
        return ""


class Load:
    """A workload that moves 10 MiB in a second, as the arm says or as `lie` says."""

    lie, seconds = "", 0.0

    def __init__(self, testbed: Any) -> None:
        self.testbed = testbed

    def missing(self, arm: str, setting: Setting) -> str:
        """Nothing but for user space."""
        return "stunnel4 is not installed" if arm == "user" else ""

    def run(self, arm: str, setting: Setting, seconds: float, window: Window) -> Moved:
        """One turn."""
        window.begin()
        arm = self.lie or arm
        self.testbed.bytes["tx"] += 11 * MIB
        self.testbed.counted["TlsTxSw"] += arm == "sw"
        self.testbed.counted["TlsTxDevice"] += arm == "hw"
        self.testbed.counted["tx_tls_encrypted_bytes"] += 10 * MIB * (arm == "hw")
        window.end()
        kinds = (arm,) if arm != "plain" else ()
        return Moved(10 * MIB, 0, 1, self.seconds, kinds=kinds, whole=self.seconds > 0)


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_run, "WORKLOADS", {"stream": Load})
    monkeypatch.setattr(Load, "lie", "")


def test_document() -> None:
    """Arms take turns, warm-up rounds do not count, and the document says what was what."""
    testbed = Played()
    found = measure_run.measure(testbed, Plan(("user", "sw", "hw", "plain"), (SETTING,), 1.0, 2, 1))
    assert found["schema"] == "ktls-offload/measure/1" and found["method"] == "time"
    assert [(row["arm"], len(row["samples"])) for row in found["rows"]] == [
        ("sw", 2),
        ("hw", 2),
        ("plain", 2),
    ]
    assert [row["cipher"] for row in found["rows"]] == ["aes_gcm_128", "aes_gcm_128", ""]
    assert found["rows"][0]["samples"][0] == {"cores": 0.5, "bytes": 10 * MIB, "seconds": 1.0}
    assert found["skipped"] == [
        {"arm": "user", "workload": "stream", "direction": "tx", "reason": "stunnel4 is not installed"}
    ]
    on = [tls["tx"] for tls, _ in testbed.switched]
    assert on == [False, True, False] * 3 and not found["warnings"]


def test_program_that_starts_and_ends_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window's idle ends around a program make neither its cores nor its speed less."""
    monkeypatch.setattr(Load, "seconds", 0.8)
    found = measure_run.measure(Played(), Plan(("plain",), (SETTING,), 1.0, 1, 0))
    assert found["rows"][0]["samples"] == [{"cores": 0.625, "bytes": 10 * MIB, "seconds": 0.8}]


@pytest.mark.parametrize(("arm", "lie"), [("hw", "sw"), ("sw", "hw"), ("plain", "sw")])
def test_another_arm_is_no_figure(arm: str, lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An arm that ran as another one ends the measurement."""
    monkeypatch.setattr(Load, "lie", lie)
    with pytest.raises(NoFigure, match=f"arm {arm}: "):
        measure_run.measure(Played(), Plan((arm,), (SETTING,)))


def test_nothing_to_measure() -> None:
    """Arms that cannot run are refused with every reason, not left out in silence."""
    with pytest.raises(
        Refused,
        match="could not measure anything: stream user: stunnel4 is not installed; stream hw: no profile",
    ):
        measure_run.measure(Played(None), Plan(("user", "hw"), (SETTING,)))


def test_cycles_where_they_are_counted() -> None:
    """A sample has the cycles of its window; a counter that was taken away is a warning."""
    testbed: Any = Played()
    shots = iter([Cycles("dut", {0: (7, 10, 10)}), Cycles("dut", {0: (1007, 20, 20)})])
    testbed.counter = SimpleNamespace(snapshot=lambda: next(shots))
    plan = Plan(("plain",), (SETTING,), 1.0, 1, 0)
    assert measure_run.measure(testbed, plan)["rows"][0]["samples"][0]["cycles"] == 1000
    shots = iter([Cycles("dut", {0: (7, 10, 10)}), Cycles("dut", {0: (7, 20, 10)})])
    found = measure_run.measure(testbed, plan)
    assert "cycles" not in found["rows"][0]["samples"][0]
    assert found["warnings"] == ["cycles of cpu0 were not counted (dut)"]


def test_limits_are_warned_of() -> None:
    """A link or cores that were full are in the document: throughput is theirs."""
    found = measure_run.measure(Played(speed="0.1"), Plan(("plain",), (SETTING,), 1.0, 1, 0))
    assert found["warnings"] == [], "a speed that makes no sense is no limit"
    found = measure_run.measure(Played(speed="80"), Plan(("plain",), (SETTING,), 1.0, 1, 0))
    assert "the link (0.08 Gbit/s) was saturated" in found["warnings"][0]


def test_window_without_use() -> None:
    """A workload that opened no window is no figure."""
    testbed: Any = Played()
    with pytest.raises(RigError, match="never reached its measuring window"):
        _ = Window(testbed.meter).cores


def test_ticks_of_an_emulated_machine() -> None:
    """A machine that stood still is measured by its ticks, and never as idle."""
    assert ticked(cpu(0.0, 0, 0), cpu(60.0, 30, 10)) == 0.75
    assert 0 < ticked(cpu(0.0, 0, 0), cpu(60.0, 0, 10)) < 0.1


def test_interrupts_of_the_card() -> None:
    """The card's interrupts are found by its name and by its PCI address."""
    text = (
        b"            CPU0\n 24:  5  PCI-MSI  mlx5_comp0@pci:0000:04:00.0\n 25:  5  eth0-rx\n 26:  1  other\n"
    )

    def run(argv: list[str], **more: Any) -> Completed:
        assert argv[4:] == ["24", "25"]
        return Completed(tuple(argv), 0, b"0-3\n4-7\n", b"", 0.0)

    host: Any = SimpleNamespace(read=lambda path: text, run=run)
    nic: Any = SimpleNamespace(dev="eth0", bus="0000:04:00.0")
    assert interrupts(host, nic) == "2 on CPUs 0-3, 4-7"
    none: Any = SimpleNamespace(dev="eth9", bus="")
    assert interrupts(host, none) == "none that name the card"


def test_peers() -> None:
    """A far end that makes no sense is one sentence."""
    import ipaddress

    from offload.suite.measure.testbed import _peer

    own = ipaddress.IPv4Interface("192.0.2.1/24")
    assert _peer("192.0.2.9", own) == (None, "192.0.2.9")
    for text, why in (("here", "an IPv4 address, or netns:NAME"), ("netns:a b", "not the name of a network")):
        with pytest.raises(ConfigError, match=why):
            _peer(text, own)
    with pytest.raises(ConfigError, match="there is no network namespace 'nowhere-m2'"):
        _peer("netns:nowhere-m2", own)
