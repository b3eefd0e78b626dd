"""Without a NIC that offloads, a capture on the lab's wire has every frame: the last, the tagged, the big."""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from offload.cmd import wait_until
from offload.host.base import Side
from offload.traffic import tap
from offload.traffic.drive import send, sending, take
from offload.traffic.tap import capturing
from tests.lib.flow import Traffic
from tests.lib.wire import segments

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.requires("wire"),
    pytest.mark.skipif(not Path(tap.PROGRAM).exists(), reason="build/wiretap is not there (make build)"),
]
# Sends and says that it has: each line of input is an interface, a tag between the addresses and the type,
# how many frames, and what is in all of them.
SENDER = """
import socket, struct, sys
for line in sys.stdin:
    dev, between, count, mark = line.rstrip("\\n").split(" ")
    head = b"\\xff" * 6 + b"\\2" + bytes(5) + bytes.fromhex(between) + b"\\x88\\xb5" + bytes.fromhex(mark)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as out:
        out.bind((dev, 0))
        for number in range(int(count)):
            out.send((head + struct.pack("!I", number)).ljust(60, b"\\0"))
    print("sent", flush=True)
"""
Send = Callable[[int, bytes, bytes], None]


@pytest.fixture
def burst(dut: Side) -> Iterator[Send]:
    """A function that has so many frames with this mark, and these VLAN tags, sent by the DUT."""
    process, asked = dut.host.start(["python3", "-c", SENDER]), 0

    def sent(count: int, mark: bytes, tags: bytes = b"") -> None:
        nonlocal asked
        asked += 1
        process.stdin(f"{dut.dev} {tags.hex()} {count} {mark.hex()}\n".encode())
        wait_until(lambda: process.output()[0].count(b"sent") == asked, 60, "frames to be sent", every=0.01)

    try:
        yield sent
    finally:
        process.kill(9)


def numbers(capture: bytes, mark: bytes) -> list[int]:
    """The numbers of the frames with this mark, in the order of the capture."""
    found = [match.end() for match in re.finditer(re.escape(mark), capture)]
    return [struct.unpack_from("!I", capture, at)[0] for at in found]


def test_the_tap_and_its_interface(dut: Side) -> None:
    """Without a NIC that offloads wiretap copes with an interface that floods, or goes: its own checks."""
    checks = ROOT / "native/wiretap/tests/run.py"
    done = dut.host.run(["python3", "-B", str(checks), tap.PROGRAM, "interface"], check=False, timeout=300)
    told = re.search(r"^(\d+) passed, (\d+) failed", done.text, re.M)
    assert done.rc == 0 and told, (done.text + done.stderr.decode("utf-8", "replace"))[-2000:]
    assert int(told.group(1)) >= 4 and told.group(2) == "0", done.text[-2000:]


def test_the_last_frames_are_there(wire: Any, bench: Any, burst: Send, tmp_path: Path) -> None:
    """Without a NIC that offloads frames sent right before the stop are all in the capture, 20 times."""
    for turn in range(20):
        mark, here = uuid.uuid4().bytes, tmp_path / f"{turn}"
        with capturing(wire, bench.wire_ports[1], f"/run/{mark.hex()}") as caught:
            burst(200, mark)
        caught.fetch(here)
        assert numbers(here.read_bytes(), mark) == list(range(200)), f"turn {turn}: {caught.counts}"


@pytest.mark.parametrize("tags", ["8100a005", "88a80007", "88a8000781000008"])
def test_tags_are_kept(wire: Any, bench: Any, burst: Send, tmp_path: Path, tags: str) -> None:
    """Without a NIC that offloads VLAN tags are where they were, on both ports of the wire."""
    for port in bench.wire_ports:
        mark, here = uuid.uuid4().bytes, tmp_path / port
        with capturing(wire, port, f"/run/{mark.hex()}") as caught:
            burst(3, mark, bytes.fromhex(tags))
        caught.fetch(here)
        data = here.read_bytes()
        assert data.count(bytes(5) + bytes.fromhex(tags) + b"\x88\xb5" + mark) == 3, data.hex()


def test_big_frames_are_whole(traffic: Traffic, wire: Any, bench: Any, tmp_path: Path) -> None:
    """Without a NIC that offloads frames that the kernel left to be cut later are there with every byte."""
    plan, dut, peer = sending("tap", 6 << 20, 1 << 20), traffic.dut, traffic.peer
    listener, port = peer.pump.listen(host=peer.side.v4)
    with capturing(wire, bench.wire_ports[0], f"/run/{uuid.uuid4().hex}") as caught:
        far = peer.pump.accept(listener, take())
        dut.pump.connect(peer.side.v4, port, send(plan)).report()
        assert far.report().took(plan)
    peer.pump.close(listener)
    assert caught.fetch(tmp_path / "here") > plan.total
    there = [one for one in segments((tmp_path / "here").read_bytes()) if one.target == port]
    stream = bytearray(plan.total)
    for one in there:
        at = one.seq - there[0].seq & 0xFFFFFFFF
        stream[at : at + len(one.payload)] = one.payload
    assert stream == plan.content() and caught.stop().truncated == 0
    assert max(len(one.payload) for one in there) > 60_000
