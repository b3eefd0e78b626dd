"""Without a NIC that offloads, a capture on the lab's wire has every frame: the last, the tagged, the big."""

from __future__ import annotations

import re
import struct
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from offload.cmd import wait_until
from offload.host.base import Side
from offload.suite.traffic import tap
from offload.suite.traffic.tap import capturing

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.requires("wire"),
    pytest.mark.skipif(not Path(tap.PROGRAM).exists(), reason="build/wiretap is not there (make build)"),
]
# Sends frames and says that it has. A line: interface, how many, size, the first bytes, what stands before
# them for the kernel (virtio_net_hdr: cut it later, in the card); then come number and zeros.
SENDER = """
import socket, struct, sys
for line in sys.stdin:
    dev, count, size, head, order = line.rstrip("\\n").split(" ")
    head, order = bytes.fromhex(head), bytes.fromhex(order)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as out:
        out.bind((dev, 0))
        if order:
            out.setsockopt(263, 15, 1)  # SOL_PACKET, PACKET_VNET_HDR
        for number in range(int(count)):
            out.send(order + (head + struct.pack("!I", number)).ljust(int(size), b"\\0"))
    print("sent", flush=True)
"""
ETHERNET = b"\xff" * 6 + b"\2" + bytes(5)  # to all, from an address that the bridge takes
Send = Callable[..., None]


@pytest.fixture
def burst(dut: Side) -> Iterator[Send]:
    """A function that has the DUT send so many frames that begin so."""
    process, asked = dut.host.start(["python3", "-c", SENDER]), 0

    def sent(count: int, head: bytes, size: int = 60, order: bytes = b"") -> None:
        nonlocal asked
        asked += 1
        process.stdin(f"{dut.dev} {count} {size} {head.hex()} {order.hex()}\n".encode())
        wait_until(lambda: process.output()[0].count(b"sent") == asked, 240, "frames to be sent", every=0.01)

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
    checks, settings = str(ROOT / "native/wiretap/tests"), str(ROOT / "native/pytest.ini")
    argv = ["unshare", "--net", sys.executable, "-B", "-m", "pytest", "-c", settings, checks]
    done = dut.host.run([*argv, "--program", tap.PROGRAM, "-k", "interface"], check=False, timeout=1800)
    reported = re.search(r"^(\d+) passed", done.text, re.M)
    said = (done.text + done.stderr.decode("utf-8", "replace"))[-2000:]
    assert done.rc == 0 and reported and int(reported.group(1)) >= 4, said


def test_the_last_frames_are_there(wire: Any, bench: Any, burst: Send, tmp_path: Path) -> None:
    """Without a NIC that offloads frames sent right before the stop are all in the capture, 20 times."""
    for turn in range(20):
        mark, here = uuid.uuid4().bytes, tmp_path / f"{turn}"
        with capturing(wire, bench.wire_ports[1], f"/run/{mark.hex()}") as caught:
            burst(200, ETHERNET + b"\x88\xb5" + mark)
        caught.fetch(here)
        assert numbers(here.read_bytes(), mark) == list(range(200)), f"turn {turn}: {caught.counts}"


@pytest.mark.parametrize("tags", ["8100a005", "88a80007", "88a8000781000008"])
def test_tags_are_kept(wire: Any, bench: Any, burst: Send, tmp_path: Path, tags: str) -> None:
    """Without a NIC that offloads VLAN tags are where they were, on both ports of the wire."""
    for port in bench.wire_ports:
        mark, here = uuid.uuid4().bytes, tmp_path / port
        with capturing(wire, port, f"/run/{mark.hex()}") as caught:
            burst(3, head := ETHERNET + bytes.fromhex(tags) + b"\x88\xb5" + mark)
        caught.fetch(here)
        assert here.read_bytes().count(head) == 3, here.read_bytes().hex()


def test_big_frames_are_whole(wire: Any, bench: Any, burst: Send, tmp_path: Path) -> None:
    """Without a NIC that offloads frames of 64 KiB that a card is to cut are there with every byte."""
    size = 65535  # one more, and the kernel cuts it itself (netif_skb_features: gso_max_size)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, size - 14, 1, 0, 64, 6, 0) + bytes([192, 0, 2, 1, 192, 0, 2, 2])
    tcp = struct.pack("!HHIIBBHHH", 9, 9, 1, 1, 0x50, 0x10, 1000, 0, 0)
    # NEEDS_CSUM, GSO_TCPV4, 54 bytes of headers, pieces of 1448, checksum at 34 + 16 (virtio 1.1, 5.1.6)
    order = struct.pack("<BBHHHH", 1, 1, 54, 1448, 34, 16)
    for port in bench.wire_ports:
        mark, here = uuid.uuid4().bytes, tmp_path / port
        head = ETHERNET + b"\x08\x00" + ip + tcp + mark
        with capturing(wire, port, f"/run/{mark.hex()}") as caught:
            burst(3, head, size, order)
        caught.fetch(here)
        data = here.read_bytes()
        frames = [(head + struct.pack("!I", number)).ljust(size, b"\0") for number in range(3)]
        assert [data.count(frame) for frame in frames] == [1, 1, 1] and caught.stop().truncated == 0
