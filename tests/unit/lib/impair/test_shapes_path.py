"""A port has its MTU back after a test, and the IPv6 addresses that a small one took."""

from __future__ import annotations

import json
from contextlib import closing
from ipaddress import IPv6Interface
from types import SimpleNamespace
from typing import Any, cast

import pytest

from offload.host.base import Completed, Host
from tests.lib.impair import shapes_path
from tests.lib.impair.shapes_path import Port, port_of, put_back

ADDRESS = "fd00:2::1/64"


class Kernel:
    """A host with one port, whose IPv6 ends below 1280 bytes, as addrconf_notify says."""

    name = "dut"

    def __init__(self, mtu: int) -> None:
        """With this MTU now."""
        self.mtu, self.looks = mtu, 0
        self.addresses = [ADDRESS] if mtu >= 1280 else []

    def run(self, argv: list[str], **_: object) -> Completed:
        """Set, add or show."""
        said = ""
        match argv:
            case ["ip", "link", "set", "p0", "mtu", mtu]:
                self.mtu = int(mtu)
            case ["ip", "-6", "address", "add", address, *_]:
                self.addresses.append(address)
            case ["ip", "-j", "-d", "link", *_]:
                self.looks += 1
                said = json.dumps([{"mtu": self.mtu, "min_mtu": 68, "max_mtu": 9978}])
            case ["cat", "/proc/net/if_inet6"]:
                rows = [(f"{int(IPv6Interface(one)):032x} 07 40 00 80", "p0") for one in self.addresses]
                rows += [
                    ("fe80" + "0" * 27 + "1 07 40 20 80", "p0"),
                    ("fd" + "0" * 29 + "9 08 40 00 80", "p00"),
                ]
                said = "".join(f"{words} {dev:>8}\n" for words, dev in rows)
            case ["cat", path]:
                said = f"{self.mtu}\n" if path.endswith("/mtu") else "1\n"
        return Completed(tuple(argv), 0, said.encode(), b"", 0.0)


@pytest.mark.parametrize("now", [600, 1279, 1280, 9000])
def test_addresses_come_back_with_the_mtu(now: int) -> None:
    """Once each, whether a small MTU had taken them or not."""
    kernel = Kernel(now)
    put_back(Port(cast(Host, kernel), "p0", 1500, 68, 9000, (ADDRESS,)))
    assert (kernel.mtu, kernel.addresses) == (1500, [ADDRESS])


def test_a_port_is_what_the_kernel_says() -> None:
    """Its own global addresses, no link-local one and no other port's; its limits are asked once."""
    kernel = Kernel(1500)
    for mtu in (1500, 600):
        kernel.mtu = mtu
        assert port_of(cast(Host, kernel), "p0") == Port(cast(Host, kernel), "p0", mtu, 68, 9978, (ADDRESS,))
    assert kernel.looks == 1


@pytest.mark.parametrize(("mtu", "order"), [(600, [600, 1500, "forgotten"]), (9000, [9000, 1500])])
def test_what_a_smaller_path_taught_is_forgotten_last(
    mtu: int, order: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When every port has its MTU again: before, kernels would learn it anew. A larger one teaches none."""
    kernel, done = Kernel(1500), list[object]()
    side = SimpleNamespace(host=kernel, dev="p0")
    bench: Any = SimpleNamespace(dut=side, peer=side, wire=kernel, wire_ports=())
    monkeypatch.setattr(shapes_path, "give", lambda _, size: done.append(size))
    monkeypatch.setattr(shapes_path, "put_back", lambda port: done.append(port.mtu))
    ends = SimpleNamespace(close=lambda: done.append("forgotten"))
    monkeypatch.setattr(shapes_path, "forgotten", lambda *_: closing(ends))
    with shapes_path.path_mtu(bench, mtu):
        assert done == [mtu, mtu]
    assert [*dict.fromkeys(done)] == order
