"""Features and governors while arms take turns: set, read back, and always put back as they were found."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import SwitchFailed
from offload.host.base import Completed
from offload.host.local import LocalHost
from offload.suite.measure.switch import keeping, steady
from offload.switch.journal import Journal
from tests.unit.switch.fake_bench import FakeMachine, feature

SEGMENTS = ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """A machine with an mlx5 card that has segmentation offloads too; GRO was found off."""
    made = FakeMachine(tmp_path, monkeypatch)
    devices = made.state()["devices"]
    devices["eth0"]["features"] |= {name: feature(name != SEGMENTS[2]) for name in SEGMENTS}
    made.set(devices=devices)
    return made


def active(machine: FakeMachine) -> dict[str, bool]:
    """What is on."""
    return {n: row["active"] for n, row in machine.state()["devices"]["eth0"]["features"].items()}


def test_sets_and_puts_back(machine: FakeMachine) -> None:
    """Arms get the features they need, what was off stays off, and all comes back."""
    before = machine.machine()
    with keeping(LocalHost(), "eth0", Journal()) as switches:
        switches.set({"tx": False, "rx": True}, True)
        now = active(machine)
        assert not now["tls-hw-tx-offload"] and now["tls-hw-rx-offload"] and not now[SEGMENTS[2]]
        assert len(Journal().entries()) == 2, "what is switched is in the journal before"
        switches.set({"tx": True, "rx": False}, False)
        assert not any(active(machine)[name] for name in SEGMENTS)
    assert machine.machine() == before and not Journal().entries()


def test_parts_of_segmentation(machine: FakeMachine) -> None:
    """A part leaves on what it names of what was on; the card's IPsec follows the arm."""
    card = "esp-hw-offload"
    machine.change("eth0", SEGMENTS[2], active=True, requested=True)
    devices = machine.state()["devices"]
    devices["eth0"]["features"][card] = feature(False)
    machine.set(devices=devices)
    before = machine.machine()
    with keeping(LocalHost(), "eth0", Journal()) as switches:
        for only, wanted in (("soft", "011"), ("gso", "010"), ("gro", "001"), ("", "000")):
            switches.set({}, False, only=only, esp=True)
            now = active(machine)
            assert [now[name] for name in SEGMENTS] == [on == "1" for on in wanted], only
            assert now[card]
        switches.set({}, True, esp=False)
        assert all(active(machine)[name] for name in SEGMENTS) and not active(machine)[card]
    assert machine.machine() == before and not Journal().entries()


def test_restore_after_a_kill(machine: FakeMachine) -> None:
    """A measurement that was killed is undone by `ktls-offload restore`."""
    before = machine.machine()

    def die() -> None:
        import os

        from offload.suite.measure.switch import Switches

        Switches(LocalHost(), "eth0", Journal()).set({"tx": False, "rx": True}, False)
        os._exit(9)

    with Journal().locked():
        pass
    assert machine.call("status", patch=die) == 9
    assert machine.machine() != before
    assert machine.call("restore", "eth0") == 0, machine.said
    assert machine.machine() == before


def test_what_a_person_enabled_stays_in_the_journal(machine: FakeMachine) -> None:
    """`restore` still finds the value before a person's own change after a measurement."""
    machine.change("eth0", "tls-hw-rx-offload", active=False, requested=False)
    assert machine.call("enable", "eth0", "--rx") == 0, machine.said
    kept = Journal().entries()
    with keeping(LocalHost(), "eth0", Journal()) as switches:
        switches.set({"tx": False, "rx": False}, True)
    assert active(machine)["tls-hw-rx-offload"] and Journal().entries() == kept


def test_a_card_that_does_not_follow(machine: FakeMachine) -> None:
    """A feature that stays as it is ends the measurement, and the rest comes back."""
    machine.change("eth0", "tls-hw-rx-offload", fixed=True)
    before = machine.machine()
    with (
        pytest.raises(SwitchFailed, match="tls-hw-rx-offload is off"),
        keeping(LocalHost(), "eth0", Journal()) as switches,
    ):
        switches.set({"tx": False, "rx": True}, True)
    assert machine.machine() == before


class Governed:
    """A host whose CPUs have governors in a dictionary."""

    def __init__(self, found: dict[str, str], refuse: bool = False) -> None:
        self.found, self.refuse = found, refuse

    def run(self, argv: list[str], **more: Any) -> Completed:
        """Play `grep -H` and the echo into a file."""
        if "grep" in argv[2]:
            out = "".join(f"{path}:{value}\n" for path, value in self.found.items())
            return Completed(tuple(argv), 0, out.encode(), b"", 0.0)
        if self.refuse:
            return Completed(tuple(argv), 2, b"", b"sh: 1: cannot create x: Read-only file system\n", 0.0)
        self.found[argv[4]] = argv[3]
        return Completed(tuple(argv), 0, b"", b"", 0.0)


def test_governor() -> None:
    """The CPUs run at one speed meanwhile; where that cannot be, it is said."""
    host: Any = Governed({"cpu0": "ondemand", "cpu1": "powersave"})
    with steady(host) as (words, warning):
        assert set(host.found.values()) == {"performance"} and not warning
        assert words == "performance (was ondemand, powersave)"
    assert host.found == {"cpu0": "ondemand", "cpu1": "powersave"}
    fixed: Any = Governed({"cpu0": "ondemand"}, refuse=True)
    with steady(fixed) as (words, warning):
        assert (words, warning) == (
            "ondemand",
            "governor is ondemand and cannot be set: Read-only file system",
        )
    none: Any = SimpleNamespace(run=lambda argv, **more: Completed(tuple(argv), 2, b"", b"grep: no\n", 0.0))
    with steady(none) as said:
        assert said == ("none", "")
