"""What a kernel handed to its card: what of it TCP still needed, and what never came out."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.lib.wire.above import (
    CWR,
    HEADS,
    Packet,
    Stretch,
    congestion,
    gone,
    needed,
    opened,
    out,
    packets,
    stayed,
)
from tests.unit.suite.wire.oracle.wire_make import ACK, CLIENT, SERVER, Flow, pcap

BASE = 1000  # the sequence number of the first byte, in a Flow


class Above(Flow):
    """What a tap above the card of the DUT sees, who is the client."""

    def acknowledged(self, upto: int, data: bytes = b"") -> None:
        """The peer says how much it has, with payload of its own or without."""
        self.frame("server", self.sent["server"], ACK, data)
        said = struct.pack(">I", (BASE + upto) % 2**32)
        self.frames[-1] = self.frames[-1][:42] + said + self.frames[-1][46:]

    def listening(self, offset: int, flags: int, size: int) -> None:
        """A packet of the client that says ECT(0)."""
        self.frame("client", offset, flags, bytes(size))
        four = self.frames[-1][14] >> 4 == 4
        self.frames[-1] = self.frames[-1][:15] + (b"\x02" if four else b"\x20") + self.frames[-1][16:]

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


def test_a_packet_says_what_tcp_knows_of_congestion(tmp_path: Path) -> None:
    """ECN bits and CWR, for each end and both versions of IP; a packet without payload says nothing."""
    flow = Above()
    flow.send("client", bytes(1400))
    flow.listening(1400, ACK | CWR, 4200)
    flow.frame("client", 5600, ACK | CWR, b"")
    flow.frame("server", 0, ACK, bytes(7))
    found = packets(flow.write(tmp_path / "above"))
    first, second = Packet(BASE, 1400, (0, False)), Packet(BASE + 1400, 4200, (2, True))
    assert (found[CLIENT[1]], [one.size for one in found[SERVER[1]]]) == ([first, second], [7])
    six = Above(("2001:db8::1", CLIENT[1]), ("2001:db8::2", 443))
    six.listening(0, ACK, 1400)
    assert packets(six.write(tmp_path / "six"))[CLIENT[1]] == [Packet(BASE, 1400, (2, False))]


def test_a_frame_says_what_a_packet_there_says() -> None:
    """CWR is in the first frame of its packet; where TCP sent data twice, one frame for each."""
    near = (1 << 32) - 100
    packets = [Packet(near, 1400, (2, True)), Packet(1300, 500, (0, False))]
    assert congestion(packets, near) == {(2, True): 1}
    assert congestion(packets, near + 50) == congestion(packets, 1299) == {(2, False): 1}, "begins again"
    assert congestion(packets, 1300) == {(0, False): 1}
    assert not congestion(packets, 1800) and not congestion(packets, near - 1), "no packet has that byte"
    packets += [Packet(1000, 1400, (0, False)), Packet(1290, 20, (2, True))]
    assert congestion(packets, 1300) == {(0, False): 2, (2, False): 1}
