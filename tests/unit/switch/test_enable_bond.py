"""A bond is its ports: one command switches, keeps, and puts back all of them, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from offload.errors import Refused
from offload.switch.enable import Wish
from offload.switch.journal import Journal
from offload.switch.persist import each
from offload.switch.restore import restore
from tests.unit.switch.disk_host import DiskHost

GOOD = {"mode": "802.3ad", "xmit_hash_policy": "layer3+4"}
FEATURES = ("tls-hw-tx-offload", "tls-hw-rx-offload")


@pytest.fixture
def machine(tmp_path: Path) -> DiskHost:
    """A bond of two cards, and a third card beside it."""
    return bonded(DiskHost.make(tmp_path / "disk", "eth0", "eth1", "eth2", "bond0"), **GOOD)


def bonded(machine: DiskHost, *ports: str, **data: Any) -> DiskHost:
    for dev in ports or ("eth0", "eth1"):
        changed(machine, dev, link={"master": "bond0"})
    changed(machine, "bond0", link={"linkinfo": {"info_kind": "bond", "info_data": data}})
    return machine


def changed(machine: DiskHost, dev: str, **keys: Any) -> None:
    """Change a device behind everybody's back."""
    machine.put(dev, machine.nics()[dev] | keys)


def call(machine: DiskHost, *devs: str, how: str | None = None, on: bool = True, **more: Any) -> str:
    """`enable DEV...`; what it said."""
    said: list[str] = []
    wishes = [Wish(dev, on, **more) for dev in devs]
    each(machine, wishes, how, Journal(machine.root / "journal"), said.append)
    return "\n".join(said)


def switched_on(machine: DiskHost) -> set[str]:
    """The devices whose receive offload, off at the start, is on."""
    return {dev for dev, nic in machine.nics().items() if nic["features"][FEATURES[1]]["active"]}


def test_its_ports_are_switched(machine: DiskHost) -> None:
    """`enable bond0` switches each port and says so; `restore bond0` undoes it."""
    before = machine.nics()
    said = call(machine, "bond0", "eth1")
    assert said.startswith("bond0 is a bond: its ports are switched one by one: eth0, eth1\n")
    assert said.count("undo: ktls-offload restore") == 2, "a port that is named beside its bond is one device"
    assert switched_on(machine) == {"eth0", "eth1"}
    restore(machine, "bond0", Journal(machine.root / "journal"), print)
    assert machine.nics() == before


def test_each_port_is_kept(machine: DiskHost) -> None:
    """--persist writes a file for each port, and `none` on the bond removes them."""
    call(machine, "bond0", how="ifupdown")
    names = [f"/etc/network/if-up.d/ktls-offload-{dev}" for dev in ("eth0", "eth1")]
    assert list(machine.files()) == names
    assert "removed" in call(machine, "bond0", how="none") and not machine.files()


def test_off_too(machine: DiskHost) -> None:
    """`disable bond0` switches its ports off, in any mode."""
    bonded(machine, mode="active-backup", xmit_hash_policy="layer2")
    call(machine, "bond0", on=False)
    on = {dev for dev, nic in machine.nics().items() if nic["features"][FEATURES[0]]["active"]}
    assert on == {"eth2", "bond0"}


@pytest.mark.parametrize("how", [None, "ifupdown"])
@pytest.mark.parametrize("lacking", [("eth1",), ("eth0", "eth1")])
def test_a_port_that_cannot(machine: DiskHost, how: str | None, lacking: tuple[str, ...]) -> None:
    """The ports that are refused are listed, the others named, and nothing is changed."""
    for dev in lacking:
        features = machine.nics()[dev]["features"]
        changed(
            machine,
            dev,
            features={**features, FEATURES[1]: {"active": False, "fixed": True, "requested": False}},
        )
    before = machine.nics()
    with pytest.raises(Refused) as caught:
        call(machine, "bond0", how=how)
    said = str(caught.value)
    assert f"{len(lacking)} of 2 devices refused; nothing was changed" in said
    assert all(f"\n  {dev}: " in said for dev in lacking)
    assert ("only the others: ktls-offload enable eth0" in said) == (lacking == ("eth1",))
    assert (machine.nics(), machine.files()) == (before, {})


@pytest.mark.parametrize(
    ("mode", "policy"), [("active-backup", "layer3+4"), ("802.3ad", "layer2"), ("balance-rr", "")]
)
def test_a_mode_that_asks_no_port(machine: DiskHost, mode: str, policy: str) -> None:
    """A bond in which the kernel offloads nothing is refused, with what helps."""
    bonded(machine, mode=mode, xmit_hash_policy=policy)
    before = machine.nics()
    with pytest.raises(Refused, match=r"802.3ad and balance-xor with layer3\+4 only") as caught:
        call(machine, "bond0")
    assert "ktls-offload enable eth0 eth1" in str(caught.value) and machine.nics() == before


def test_no_ports(machine: DiskHost) -> None:
    """A bond without ports is refused: there is nothing to switch."""
    changed(machine, "eth0", link={})
    changed(machine, "eth1", link={})
    with pytest.raises(Refused, match="bond0 is a bond without ports"):
        call(machine, "bond0")


def test_dry_run(machine: DiskHost) -> None:
    """--dry-run shows what would be done to each port, and does nothing."""
    before = machine.nics()
    said = call(machine, "bond0", dry_run=True)
    assert all(f"ethtool -K {dev} tls-hw-rx-offload on" in said for dev in ("eth0", "eth1"))
    assert machine.nics() == before and not (machine.root / "journal").exists()
