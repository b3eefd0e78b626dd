"""Whether `enable --persist` outlives reboots: a stock kernel, Debian's systemd, the simulated card."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from offload.debian.kernels import fetch
from offload.suite.bench.programs import managers
from offload.switch.persist_files import path_of
from tests.lib.rig.managers_vm import DEV, Computer, computer
from tests.lib.rig.rig import Labs

BOTH = {"tx": True, "rx": True}
FRESH = {"tx": True, "rx": False}  # as mlx5 starts
ADDRESS = "192.0.2.1/24"
NETWORK = f"[Match]\nName={DEV}\n[Network]\nAddress={ADDRESS}\n"


@pytest.fixture(scope="module")
def machine(
    pytestconfig: pytest.Config, labs: Labs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Computer]:
    """A VM with a disk of its own, a card in it that was never switched, and systemd."""
    labs.close()
    say = pytestconfig.pluginmanager.getplugin("terminalreporter").write_line
    disk = tmp_path_factory.mktemp("reboot") / "disk"
    with computer(fetch(pytestconfig.getoption("--kernel"), say=say), managers.fetch(say), disk, say) as made:
        yield made


def networkd_has_it(machine: Computer) -> bool:
    """Whether the address is there that systemd-networkd is to set."""
    return ADDRESS in machine.run("ip", "-4", "address", "show", DEV).text


@pytest.mark.once
@pytest.mark.turns("a server of its own")
def test_systemd_keeps_it_over_a_reboot(machine: Computer) -> None:
    """Without this a unit could be kept by a systemd that was asked, and forgotten by the next boot's."""
    assert machine.on() == FRESH
    machine.host.write("/etc/systemd/network/lab.network", NETWORK.encode(), 0o644)
    machine.run("systemctl", "enable", "--now", "systemd-networkd")
    machine.cable("up"), machine.wait(lambda: networkd_has_it(machine), "an address")
    said = machine.command("enable", DEV, "--persist")
    assert f"kept by systemd: {path_of('systemd', DEV)}" in said and machine.on() == BOTH

    machine.cable("down"), machine.cable("up"), machine.link("down"), machine.link("up")
    assert machine.on() == BOTH, "a link that flaps loses the switches"

    machine.unplug(), machine.plug()
    machine.comes_on()
    machine.reboot()
    machine.comes_on()
    machine.cable("up"), machine.wait(lambda: networkd_has_it(machine), "an address")
    assert machine.on() == BOTH, "who has the device switches it off"

    machine.run("systemctl", "disable", "--now", "systemd-networkd", "systemd-networkd.socket")
    machine.command("enable", DEV, "--persist", "none")
    machine.unplug(), machine.plug()
    machine.seen()
    assert machine.on() == FRESH, "who switches it on, if nobody keeps it?"


@pytest.mark.once
@pytest.mark.turns("a server of its own")
def test_networkmanager_keeps_it_when_power_fails(machine: Computer) -> None:
    """Without this the script could be lost with what was not on disk yet, or be left out at boot."""
    machine.run("systemctl", "enable", "NetworkManager-dispatcher", "NetworkManager")  # as installing it does
    machine.run("systemctl", "start", "NetworkManager")
    machine.cable("up")
    settings = ("ipv4.method", "disabled", "ipv6.method", "disabled")
    machine.run("nmcli", "connection", "add", "type", "ethernet", "ifname", DEV, "con-name", "lab", *settings)
    machine.run("nmcli", "connection", "up", "lab")
    assert machine.on() == FRESH
    machine.run("sync")
    said = machine.command("enable", DEV, "--persist")
    assert f"kept by networkmanager: {path_of('networkmanager', DEV)}" in said and machine.on() == BOTH

    machine.end()
    machine.boot()
    assert machine.on() == FRESH, "a new card, and no cable yet"
    machine.cable("up")
    machine.comes_on()
    machine.command("enable", DEV, "--persist", "none")
