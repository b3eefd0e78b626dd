"""A port has its MTU back after a test, and the IPv6 addresses that a small one took."""

from __future__ import annotations

import json
from contextlib import closing
from ipaddress import IPv6Interface
from types import SimpleNamespace
from typing import Any, cast

import pytest

from offload.host.base import Completed, Host, Side
from tests.lib.impair import shapes_path
from tests.lib.impair.link import bounce
from tests.lib.impair.shapes_path import Port, port_mtu, port_of

ADDRESS = "fd00:2::1/64"
ROUTE = "unicast fd00:3::/64 via fd00:2::9 dev p0"


class Kernel:
    """A host with one port. IPv6 ends below 1280 bytes, as addrconf_notify says, and routes with the link."""

    name = "dut"

    def __init__(self, mtu: int) -> None:
        """With this MTU now."""
        self.mtu, self.up, self.looks = mtu, True, 0
        self.addresses = [ADDRESS] if mtu >= 1280 else []
        self.routes = [ROUTE] if mtu >= 1280 else []

    def run(self, argv: list[str], **_: object) -> Completed:
        """Set, add or show."""
        said = ""
        match argv:
            case ["ip", "link", "set", "p0", "mtu", mtu]:
                self.mtu = int(mtu)
                self.addresses, self.routes = (self.addresses, self.routes) if self.mtu >= 1280 else ([], [])
            case ["ip", "link", "set", "p0", state]:
                self.addresses, self.routes = ([], []) if state == "down" else (self.addresses, self.routes)
                self.up = state == "up"
            case ["ip", "address", "replace", address, *_, "nodad"]:
                assert address not in self.addresses, "it was there all the time"
                assert self.up and self.mtu >= 1280
                self.addresses.append(address)
            case ["ip", "-6", "route", "replace", *words]:
                assert self.addresses, "no gateway without an address"
                self.routes.append(" ".join(words))
            case _:
                said = self.shown(argv)
        return Completed(tuple(argv), 0, said.encode(), b"", 0.0)

    def shown(self, argv: list[str]) -> str:
        """What a program says that changes nothing."""
        match argv:
            case ["ip", "-j", "-d", "link", *_]:
                self.looks += 1
                return json.dumps([{"mtu": self.mtu, "min_mtu": 68, "max_mtu": 9978}])
            case ["ip", "-j", "-d", "address", *_]:
                pairs = [one.split("/") for one in self.addresses]
                rows = [{"local": a, "prefixlen": int(n), "scope": "global"} for a, n in pairs]
                return json.dumps([{"addr_info": rows}])
            case ["ip", "-j", "-d", "-6", "route", *_]:
                far = {"type": "unicast", "dst": "fd00:3::/64", "gateway": "fd00:2::9", "dev": "p0"}
                return json.dumps([far] if self.routes else [])
            case ["cat", "/proc/net/if_inet6"]:
                rows = [(f"{int(IPv6Interface(one)):032x} 07 40 00 80", "p0") for one in self.addresses]
                rows += [
                    ("fe80" + "0" * 27 + "1 07 40 20 80", "p0"),
                    ("fd" + "0" * 29 + "9 08 40 00 80", "p00"),
                ]
                return "".join(f"{words} {dev:>8}\n" for words, dev in rows)
            case ["cat", path]:
                return f"{self.mtu}\n" if path.endswith("/mtu") else "1\n"
        return ""


@pytest.mark.parametrize("mtu", [600, 1279, 1280, 9000])
def test_addresses_and_routes_come_back_with_the_mtu(mtu: int) -> None:
    """Once each, whether a small MTU had taken them or not."""
    kernel = Kernel(1500)
    with port_mtu(port_of(cast(Host, kernel), "p0"), mtu):
        assert kernel.mtu == mtu and bool(kernel.routes) == (mtu >= 1280)
    assert (kernel.mtu, kernel.addresses, kernel.routes) == (1500, [ADDRESS], [ROUTE])


def test_a_link_that_was_down_has_its_routes_again() -> None:
    """Whoever is behind a gateway is reached again."""
    kernel = Kernel(1500)
    bounce(Side(cast(Host, kernel), "p0", "192.0.2.1", "fd00:2::1"))
    assert (kernel.up, kernel.addresses, kernel.routes) == (True, [ADDRESS], [ROUTE])


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
    ends = SimpleNamespace(close=lambda: done.append("forgotten"))
    monkeypatch.setattr(shapes_path, "forgotten", lambda *_: closing(ends))
    with shapes_path.path_mtu(bench, mtu) as forget:
        assert done == [mtu, mtu] and forget is (ends if mtu == 600 else shapes_path.nothing_to_forget)
    assert [*dict.fromkeys(done)] == order
