"""What a kernel handed to its card: what of it TCP still needed, and what never came out."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.lib.wire.above import CWR, HEADS, Stretch, gone, needed, opened, out, reduced, stayed
from tests.unit.suite.wire.oracle.wire_make import ACK, CLIENT, Flow, pcap

BASE = 1000  # the sequence number of the first byte, in a Flow


class Above(Flow):
    """What a tap above the card of the DUT sees, who is the client."""

    def acknowledged(self, upto: int, data: bytes = b"") -> None:
        """The peer says how much it has, with payload of its own or without."""
        self.frame("server", self.sent["server"], ACK, data)
        said = struct.pack(">I", (BASE + upto) % 2**32)
        self.frames[-1] = self.frames[-1][:42] + said + self.frames[-1][46:]

    def needed(self, folder: Path) -> list[Stretch]:
        """What TCP still needed of what was handed down, of a file that has the headers only."""
        file = folder / "above.pcap"
        file.write_bytes(pcap(self.frames, snap=HEADS))
        return needed(file, {CLIENT[1]: BASE})[CLIENT[1]]


def test_what_was_acknowledged_before_it_was_handed_down_is_not_needed(tmp_path: Path) -> None:
    """A copy that waited in a queue until the peer had it all; one byte more is not acknowledged whole."""
    flow = Above()
    flow.send("client", bytes(4200))
    flow.acknowledged(2800, b"with data")
    flow.frame("client", 0, ACK, bytes(1400))
    flow.frame("client", 1400, ACK, bytes(1401))  # its last byte is needed, and its record may be gone
    flow.frame("client", 2800, ACK, bytes(1400))
    firsts = [(0, 1400), (1400, 2800), (2800, 4200)]
    assert flow.needed(tmp_path) == [*firsts, (2800, 4200)]


def test_a_copy_that_comes_before_its_acknowledgment_is_needed(tmp_path: Path) -> None:
    """TCP did not know by then: the kernel has the record, and the card must send it."""
    flow = Above()
    flow.send("client", bytes(1400))
    flow.frame("client", 0, ACK, bytes(1400))
    flow.acknowledged(1400)
    flow.acknowledged(0)  # an older one, overtaken
    flow.frame("client", 0, ACK, bytes(1400))
    assert flow.needed(tmp_path) == [(0, 1400), (0, 1400)]


@pytest.mark.parametrize(
    ("handed", "out", "wanted"),
    [
        ([(0, 3000)], [(0, 1448), (1448, 2896), (2896, 3000)], None),  # the card cuts
        ([(0, 1448)], [(0, 1448), (0, 1448)], None),  # a copy that nobody needed came out as well
        ([(0, 1448), (0, 1448)], [(0, 1448)], (0, 1448)),
        ([(0, 3000), (1448, 2000)], [(0, 1448), (1448, 3000)], (1448, 2000)),
        ([(0, 3000)], [(0, 1448), (2896, 3000)], (1448, 2896)),
        ([(0, 100), (500, 600)], [], (0, 100)),
        ([], [(0, 100)], None),
    ],
)
def test_each_byte_comes_out_as_often_as_it_went_in(
    handed: list[Stretch], out: list[Stretch], wanted: Stretch | None
) -> None:
    """However the card cuts packets; the first stretch that lacks is told."""
    assert gone(handed, out) == wanted


@pytest.mark.parametrize(
    ("copies", "lossy", "said"),
    [
        (2, {}, ""),
        (1, {}, "port 40000 of the DUT: 1400 bytes of payload stayed in the card, not acknowledged yet"),
        (1, {CLIENT[1]: (0, 1400)}, ""),  # an event set the port again
        (1, {CLIENT[1]: (1400, 9000)}, "port 40000 of the DUT: 1400 bytes"),
    ],
)
def test_a_card_that_drops_what_comes_again_is_told(
    copies: int, lossy: dict[int, Stretch], said: str, tmp_path: Path
) -> None:
    """However often TCP then repeats it; of a connection that the capture shows from its SYN."""
    above, beyond = Above(), Above()
    for _ in range(2):
        above.frame("client", 0, ACK, bytes(1400))
    for _ in range(copies):
        beyond.frame("client", 0, ACK, bytes(1400))
    files = [flow.write(tmp_path / name) for flow, name in ((above, "above"), (beyond, "beyond"))]
    bases = opened(files[1])
    assert bases == {CLIENT[1]: BASE}
    assert out(files[1], bases) == {CLIENT[1]: [(0, 1400)] * copies}
    assert stayed(*files, bases, lossy).startswith(said) and bool(said) == bool(stayed(*files, bases, lossy))


def test_a_packet_says_that_the_window_is_smaller(tmp_path: Path) -> None:
    """By its first number, for each end."""
    flow = Above()
    flow.send("client", bytes(1400))
    flow.frame("client", 1400, ACK | CWR, bytes(4200))
    flow.frame("server", 0, ACK | CWR, bytes(7))
    assert reduced(flow.write(tmp_path / "above"))[CLIENT[1]] == {BASE + 1400}
