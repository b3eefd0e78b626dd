"""A path MTU that a kernel learned in a block is gone after it, and its memory is as long as before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from offload.host.base import Completed, Side
from offload.suite.traffic import learned
from offload.suite.traffic.learned import MEMORY, forgotten

A, B = "192.0.2.1", "192.0.2.2"
ROUTE = "{} dev p0 src 192.0.2.9 uid 0 \n    cache {}\n"


class Kernel:
    """A host that keeps what it learns for as many seconds as it is told; each question takes one."""

    def __init__(self, *, settable: bool = True) -> None:
        self.memory, self.mtu, self.expires, self.clock = 600, 0, 0, 0
        self.settable, self.did = settable, list[str]()

    def learns(self, mtu: int) -> None:
        self.mtu, self.expires = mtu, self.clock + self.memory

    def run(self, argv: Sequence[str], *, check: bool = True, **_: Any) -> Completed:
        said, rc = "", 0
        match argv:
            case ["sysctl", "-n", name]:
                assert name == MEMORY
                said, rc = (f"{self.memory}\n", 0) if self.settable else ("", 255)
            case ["sysctl", "-qw", words]:
                self.memory = int(words.removeprefix(f"{MEMORY}="))
                self.did.append(words)
            case ["ip", "route", "get", other]:
                self.clock += 1
                if self.clock > self.expires:
                    self.mtu = 0
                known = f"expires {self.expires - self.clock}sec mtu {self.mtu}" if self.mtu else ""
                said = ROUTE.format(other, known)
            case _:
                raise AssertionError(argv)
        return Completed(tuple(argv), rc, said.encode(), b"", 0.0)


def sides(dut: Kernel, peer: Kernel) -> tuple[Side, Side]:
    return Side(dut, "p0", A, ""), Side(peer, "p0", B, "")  # type: ignore[arg-type]


def test_what_was_learned_in_the_block_is_forgotten() -> None:
    """At both ends, before the memory is long again; also if the block fails."""
    dut, peer = Kernel(), Kernel()
    with pytest.raises(ZeroDivisionError), forgotten(*sides(dut, peer)):
        assert (dut.memory, peer.memory) == (1, 1)
        dut.learns(600)
        peer.learns(600)
        assert learned.learned(dut, B) == 600  # type: ignore[arg-type]
        raise ZeroDivisionError
    assert (dut.mtu, peer.mtu) == (0, 0)
    assert dut.did == peer.did == [f"{MEMORY}=1", f"{MEMORY}=600"]


def test_it_is_forgotten_earlier_where_the_block_asks_for_that() -> None:
    """The memory stays short. A host that knew a path MTU before is not asked: that stays."""
    dut, peer = Kernel(), Kernel()
    peer.learns(1400)
    with forgotten(*sides(dut, peer)) as forget:
        dut.learns(600)
        asked = peer.clock
        forget()
        assert (dut.mtu, dut.memory) == (0, 1) and (peer.mtu, peer.clock) == (1400, asked)


def test_what_was_known_before_stays() -> None:
    """It is the operator's network that taught it: nothing is set, and nobody waits for ten minutes."""
    dut, peer = Kernel(), Kernel()
    dut.learns(1400)
    with forgotten(*sides(dut, peer)):
        assert (dut.memory, peer.memory) == (600, 1)
    assert dut.mtu == 1400 and not dut.did


def test_a_memory_that_cannot_be_set_is_left() -> None:
    """So it is in a namespace of a kernel before 5.18; the block runs all the same."""
    dut, peer = Kernel(settable=False), Kernel()
    with forgotten(*sides(dut, peer)):
        dut.learns(600)
    assert dut.mtu == 600 and not dut.did and peer.memory == 600


@pytest.mark.parametrize(
    ("said", "mtu"),
    [
        ("192.0.2.2 dev p0 src 192.0.2.1 uid 0 \n    cache expires 595sec mtu 1500 \n", 1500),
        ("192.0.2.2 dev p0 src 192.0.2.1 uid 0 \n    cache expires 0sec mtu lock 552 \n", 552),
        ("192.0.2.2 dev p0 src 192.0.2.1 uid 0 \n    cache mtu 1400 \n", 0),  # the operator's, for good
        ("192.0.2.2 dev p0 src 192.0.2.1 uid 0 \n    cache \n", 0),
        ("RTNETLINK answers: Network is unreachable\n", 0),
    ],
)
def test_only_what_expires_was_learned(said: str, mtu: int) -> None:
    """As `ip route get` of iproute2 6.1 says it."""

    class Host:
        def run(self, argv: Sequence[str], **_: Any) -> Completed:
            return Completed(tuple(argv), 0, said.encode(), b"", 0.0)

    assert learned.learned(Host(), B) == mtu  # type: ignore[arg-type]
