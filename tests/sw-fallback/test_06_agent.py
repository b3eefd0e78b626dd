"""Without a NIC that offloads, what the lab's agent answers by itself is what the programs in it print."""

from __future__ import annotations

import pytest

from offload.host.base import Side
from tests.lib.rig.rig import Rig


@pytest.mark.parametrize(
    "argv",
    [
        "ethtool -S DEV",
        "ethtool -k DEV",
        "ethtool --json -k DEV",
        "ethtool -i DEV",
        "cat /proc/net/dev_mcast",
    ],
)
def test_known_commands_are_the_programs(rig: Rig, dut: Side, argv: str) -> None:
    """Without a NIC that offloads a command and the same one through `env`, which starts it, say the same."""
    words = argv.replace("DEV", dut.dev).split()
    said = [dut.host.run([*before, *words]).stdout for before in ([], [], ["env"], [])]
    assert said[0] and all(each == said[0] for each in said)


@pytest.mark.parametrize("form", ["-k", "--json -k"])
def test_a_feature_that_was_switched_is_seen(rig: Rig, dut: Side, form: str) -> None:
    """Without a NIC that offloads what was remembered of an interface is not said of what it has become."""
    argv = ["ethtool", *form.split(), dut.dev]
    before = dut.host.run(argv).stdout
    try:
        dut.host.run(["ethtool", "-K", dut.dev, "gso", "off"])
        during = [dut.host.run([*by, *argv]).stdout for by in ([], ["env"], [])]
    finally:
        dut.host.run(["ethtool", "-K", dut.dev, "gso", "on"])
    assert during[0] != before and all(each == during[0] for each in during)
    assert dut.host.run(argv).stdout == before
