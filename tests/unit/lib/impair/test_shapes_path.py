"""A port has its MTU back after a test, and the IPv6 addresses that a small one took."""

from __future__ import annotations

import json
from typing import cast

import pytest

from offload.host.base import Completed, Host
from tests.lib.impair.shapes_path import Port, put_back

ADDRESS = "fd00:2::1/64"


class Kernel:
    """A host with one port, whose IPv6 ends below 1280 bytes, as addrconf_notify says."""

    name = "dut"

    def __init__(self, mtu: int) -> None:
        """With this MTU now."""
        self.mtu = mtu
        self.addresses = [ADDRESS] if mtu >= 1280 else []

    def run(self, argv: list[str], **_: object) -> Completed:
        """Set, add or show."""
        said = ""
        match argv:
            case ["ip", "link", "set", "p0", "mtu", mtu]:
                self.mtu = int(mtu)
            case ["ip", "-6", "address", "add", address, *_]:
                self.addresses.append(address)
            case ["ip", "-j", *_]:
                rows = [
                    dict(zip(("local", "prefixlen"), one.split("/"), strict=True)) for one in self.addresses
                ]
                kind = {"family": "inet6", "scope": "global"}
                said = json.dumps([{"mtu": self.mtu, "addr_info": [row | kind for row in rows]}])
            case ["cat", path]:
                said = f"{self.mtu}\n" if path.endswith("/mtu") else "1\n"
        return Completed(tuple(argv), 0, said.encode(), b"", 0.0)


@pytest.mark.parametrize("now", [600, 1279, 1280, 9000])
def test_addresses_come_back_with_the_mtu(now: int) -> None:
    """Once each, whether a small MTU had taken them or not."""
    kernel = Kernel(now)
    put_back(Port(cast(Host, kernel), "p0", 1500, 68, 9000, (ADDRESS,)))
    assert (kernel.mtu, kernel.addresses) == (1500, [ADDRESS])
