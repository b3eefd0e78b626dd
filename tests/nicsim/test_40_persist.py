"""Whether what --persist writes is obeyed by the real systemd, ifupdown and NetworkManager, also at boot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from offload.suite.bench.programs import managers
from offload.switch.persist_files import path_of
from tests.lib.rig.managers import DEV, House, house, missing

BOTH = {"tx": True, "rx": True}
FRESH = {"tx": True, "rx": False}  # as mlx5 starts


@pytest.fixture
def home() -> Iterator[House]:
    """Debian's programs around a card that is played."""
    if lacking := missing():
        pytest.skip(f"this machine lacks {lacking}")
    with house(managers.fetch()) as made:
        assert made.on() == FRESH
        yield made


@pytest.mark.once
def test_systemd_keeps_it(home: House) -> None:
    """Without this a unit could look right and be ignored by udev or systemd at the next boot."""
    said = home.command("enable", DEV, "--persist")
    assert f"kept by systemd: {path_of('systemd', DEV)}" in said and home.on() == BOTH
    home.link("up"), home.link("down"), home.link("up")
    assert home.on() == BOTH, "a link that flaps loses the switches"
    home.unplug(), home.plug()
    home.comes_on()
    home.reboot()
    home.comes_on()
    home.command("enable", DEV, "--persist", "none")
    home.unplug(), home.plug()
    home.reboot()
    assert home.on() == FRESH, "who switches it on, if nobody keeps it?"


@pytest.mark.once
def test_ifupdown_keeps_it(home: House) -> None:
    """Without this a script could be written where ifup does not look, or be skipped for its name."""
    home.run("sh", "-c", f"echo 'iface {DEV} inet manual' >>/etc/network/interfaces")
    said = home.command("enable", DEV, "--persist")
    assert f"kept by ifupdown: {path_of('ifupdown', DEV)}" in said
    home.run("ifup", DEV)
    home.unplug(), home.plug()
    assert home.on() == FRESH
    home.run("ifup", "--force", DEV)
    assert home.on() == BOTH
    home.reboot()
    home.run("ifup", DEV)
    assert home.on() == BOTH
    home.command("enable", DEV, "--persist", "none")
    home.reboot()
    home.run("ifup", DEV)
    assert home.on() == FRESH, "who switches it on, if nobody keeps it?"


@pytest.mark.once
def test_networkmanager_keeps_it(home: House) -> None:
    """Without this a dispatcher script could be skipped for its mode or what NetworkManager passes."""
    home.run("systemctl", "enable", "NetworkManager-dispatcher", "NetworkManager")  # as installing it does
    home.run("systemctl", "start", "dbus.socket", "NetworkManager")
    home.link("up")
    settings = ("ipv4.method", "disabled", "ipv6.method", "disabled")
    home.run("nmcli", "connection", "add", "type", "ethernet", "ifname", DEV, "con-name", "lab", *settings)
    home.run("nmcli", "connection", "up", "lab")
    said = home.command("enable", DEV, "--persist")
    assert f"kept by networkmanager: {path_of('networkmanager', DEV)}" in said
    home.switch_off()
    home.run("nmcli", "connection", "down", "lab")
    home.run("nmcli", "connection", "up", "lab")
    home.comes_on()
    home.unplug(), home.plug(), home.link("up")
    home.comes_on()
