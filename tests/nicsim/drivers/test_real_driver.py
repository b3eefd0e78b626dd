"""What an operator asks of a card beside TLS, through the real mlx5_core: self-test, devlink, mstflint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from offload.cmd import settles
from offload.suite.bench.cards.silicon import Silicon
from offload.suite.bench.vm import cards
from offload.suite.bench.vm.lab import Lab
from tests.lib.catalogue import mstflint, real_driver
from tests.lib.catalogue.real_driver import by_card, dev
from tests.lib.rig.rig import Labs

VERSION = "22.41.1000"  # FW_MAJOR and the others of native/cx6sim/cx6.h
DUMP = 4096  # bytes: SCAN_SIZE of native/cx6sim/pci/vsc.c
READY = 1  # the state of a queue: MLX5_SQC_STATE_RDY, MLX5_RQC_STATE_RDY


@pytest.fixture(scope="module")
def lab(pytestconfig: pytest.Config, labs: Labs) -> Iterator[Lab]:
    """Two simulated ConnectX-6 Dx; skipped where nobody has built the driver."""
    with real_driver.lab(pytestconfig, labs) as booted:
        yield booted


@pytest.fixture
def card(lab: Lab) -> str:
    """The DUT's card, as devlink names it."""
    return (
        "pci/"
        + Path(lab.bench.dut.host.run(["readlink", f"/sys/class/net/{dev(lab)}/device"]).text.strip()).name
    )


def asked(lab: Lab, *words: str) -> Any:
    """What devlink says; a card stays where it was probed: in the first network namespace."""
    return json.loads(lab.root.run(["devlink", "-j", *words]).text)


def diagnosed(lab: Lab, place: str, reporter: str) -> Any:
    """What a reporter of the driver says of a card or a port."""
    return asked(lab, "health", "diagnose", place, "reporter", reporter)


def owners(lab: Lab, card: str) -> tuple[str, str]:
    """What the name of a card's port begins with: the card, or in newer kernels a device below it."""
    below = lab.root.run(["ls", f"/sys/bus/pci/devices/{card.removeprefix('pci/')}"]).text.split()
    return f"{card}/", f"auxiliary/{next(name for name in below if name.startswith('mlx5_core.eth.'))}/"


@pytest.mark.long
def test_the_self_test_passes(lab: Lab) -> None:
    """Link, speed, health and a packet that the card loops back; with the cable out, the link test fails."""
    said = lab.bench.dut.host.run(["ethtool", "-t", dev(lab)]).text
    assert "PASS" in said and said.count("\t 0") == 4, said
    lab.bench.dut.host.run(["ip", "link", "set", dev(lab), "down"])
    said = lab.bench.dut.host.run(["ethtool", "-t", dev(lab)], check=False).text
    lab.bench.dut.host.run(["ip", "link", "set", dev(lab), "up"])
    assert "FAIL" in said, said


@pytest.mark.long
def test_devlink_tells_the_firmware(lab: Lab, card: str) -> None:
    """The version that runs and the stored one are those of `ethtool -i`."""
    versions = asked(lab, "dev", "info", card)["info"][card]["versions"]
    shown = lab.bench.dut.host.run(["ethtool", "-i", dev(lab)]).text
    assert f"firmware-version: {VERSION} ({versions['fixed']['fw.psid']})" in shown
    assert {versions[kind]["fw.version"] for kind in ("running", "stored")} == {VERSION}


@pytest.mark.long
def test_the_reporters_answer(lab: Lab, card: str) -> None:
    """Four reporters are healthy, and tell of the firmware and of the queues that the card runs."""
    shown = asked(lab, "health", "show")["health"]
    port = next(name for name in shown if name.startswith(owners(lab, card)))
    ours = {one["reporter"]: (place, one["state"]) for place in (card, port) for one in shown[place]}
    places = {"fw": card, "fw_fatal": card, "tx": port, "rx": port}  # newer kernels have more
    assert {name: ours.get(name) for name in places} == {n: (at, "healthy") for n, at in places.items()}
    assert diagnosed(lab, card, "fw")["Syndrome"] == 0
    queues = diagnosed(lab, port, "tx")["SQs"] + diagnosed(lab, port, "rx")["RQs"]
    assert len(queues) >= 2 and {queue["HW state"] for queue in queues} == {READY}, queues


@pytest.mark.long
def test_a_dump_comes_through_the_vendor_window(lab: Lab, card: str) -> None:
    """The reporter of fatal errors reads the card's registers word by word."""
    dump = asked(lab, "health", "dump", "show", card, "reporter", "fw_fatal")["crdump_data"]
    assert len(dump) == DUMP and dump[:4] == [22, 0, 41, 0], dump[:16]


@pytest.mark.long
def test_mstflint_knows_the_card(lab: Lab, card: str) -> None:
    """NVIDIA's tool, as Debian has it, reads firmware and board without the driver's help."""
    program = mstflint.had()
    if not program:
        pytest.skip("no mstflint: python -m tests.lib.catalogue.mstflint")
    said = lab.root.run([program, "-d", card.removeprefix("pci/"), "query"]).text
    found = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
    board = asked(lab, "dev", "info", card)["info"][card]["versions"]["fixed"]["fw.psid"]
    assert (found["FW Version"].strip(), found["PSID"].strip()) == (VERSION, board), said


def back(lab: Lab, address: str) -> None:
    """Give the interface that came back its name, place and address: a reset card makes a new one."""
    ours, name = lab.bench.dut, lab.root.run(["ls", f"/sys/bus/pci/devices/{address}/net"]).text.strip()
    lab.root.run(["ip", "link", "set", name, "netns", "dut", "name", dev(lab)])
    for words in (["address", "add", f"{ours.v4}/24", "dev", dev(lab)], ["link", "set", dev(lab), "up"]):
        ours.host.run(["ip", *words])
    ours.host.run(["ethtool", "-K", dev(lab), "tls-hw-tx-offload", "on", "tls-hw-rx-offload", "on"])


@pytest.mark.long
def test_a_fatal_error_is_recovered(lab: Lab, card: str) -> None:
    """The driver resets the card and counts it, and TLS works on it."""
    # with an offloaded connection before it, 6.1 hangs: the erratum mlx5-recovery-hangs
    Silicon(Path(lab.folder) / cards.CONTROL).turn(0, "health", 5)

    def recovered() -> bool:
        state = asked(lab, "health", "show", card, "reporter", "fw_fatal")["health"][card][0]
        return bool(state["recover"]) and state["state"] == "healthy"

    assert settles(recovered, 60), lab.root.run(["dmesg"]).text[-2000:]
    back(lab, card.removeprefix("pci/"))
    assert by_card(lab) == {"hw"}
