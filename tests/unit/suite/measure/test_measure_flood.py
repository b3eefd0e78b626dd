"""The load of `stream`: as fast as it goes until told to stop; both edges compared, nothing lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.cmd import wait_until
from offload.host.local import LocalHost
from offload.suite.traffic import drive
from offload.suite.traffic.drive import Pump, Transfer, drain, flood


@pytest.fixture
def pump(tmp_path: Path) -> Iterator[Pump]:
    with drive.running(LocalHost(), str(tmp_path)) as found:
        yield found


def loaded(pump: Pump, how: str, seed: str = "a", size: int = 30_000) -> tuple[Transfer, Transfer]:
    """A connection under load, of which more than a block has arrived."""
    listener, port = pump.listen()
    taker = pump.accept(listener, drain("a"))
    sender = pump.connect("127.0.0.1", port, flood(seed, size, how))
    sender.opened()
    return sender, taker


@pytest.mark.parametrize("how", ["write", "sendfile"])
def test_nothing_is_lost(pump: Pump, how: str) -> None:
    """A load counts while it runs, ends when told, and both ends agree on every byte."""
    sender, taker = loaded(pump, how)
    wait_until(lambda: pump.count([taker]).taken > 3 << 20, 30, "3 MiB")
    one, two = pump.count([taker]), pump.count([taker])
    assert two.at > one.at and two.taken >= one.taken and one.sent == 0
    taker.go()
    sender.go()
    near, far = sender.report(), taker.report()
    assert (near.error, far.error) == ("", "") and near.sent.bytes == far.taken.bytes > 3 << 20


def test_other_payload_is_noticed(pump: Pump) -> None:
    """Payload that is not what was sent ends the taker, with the place."""
    sender, taker = loaded(pump, "write", seed="b")
    assert "payload differs from what was sent, after 0 bytes" in taker.report().error
    sender.go()


def test_zero_copy_needs_kernel_tls(pump: Pump) -> None:
    """Zero-copy sendfile on a plain socket is an error, not a silent copy."""
    sender, taker = loaded(pump, "zerocopy")
    assert sender.report().error
    taker.give_up()
