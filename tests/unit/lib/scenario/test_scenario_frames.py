"""The headers that a scenario asks of a card: which frame is told, and which ones are as they should be."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from tests.lib.scenario.frames import ACK, CWR, ECE, ECT, SYN, TURN, Frame, Headers, frame_of, payload, wrong
from tests.lib.wire.above import Packet, Words

PORT, SIZE = 40000, 1000
NEW, AGAIN, SMALLER = (ECT, False), (0, False), (ECT, True)
SAID = (NEW, NEW, SMALLER, NEW)  # of the packets one after the other


def ecn(*said: Words, again: int = 0) -> Headers:
    """What TCP's packets say of congestion, and which one it sent again."""
    found = [Packet(7 + n * SIZE, SIZE, words) for n, words in enumerate(said)]
    return Headers(ecn=True, packets=(*found, found[again]._replace(words=AGAIN)))


ECN = ecn(*SAID)


def frame(number: int, offset: int, *, tos: int = ECT, flags: int = ACK, size: int = SIZE) -> Frame:
    payload = bytes(size)
    return Frame(number, PORT, 443, tos, 64, b"", True, 7 + offset, flags, (8,), payload)


def test_a_packet_that_is_sent_twice_is_reported() -> None:
    """A card that sends a packet twice is told; what TCP sends again has another number."""
    first, second = (replace(frame(n, 0, tos=0), ident=n) for n in (2, 3))
    assert wrong([first, second], PORT, Headers()) == ""
    again = replace(first, number=3)
    said = "frame 3 of the DUT: the packet of frame 2 once more (stream offset 0)"
    assert wrong([first, again], PORT, Headers()) == said
    plain = [replace(one, ident=0) for one in (first, again)]
    assert wrong(plain, PORT, Headers()) == "", "IPv6 numbers no packets"
    turned = replace(frame(4, SIZE, tos=0), ident=2)
    assert wrong([first, turned], PORT, Headers()) == "", "the number comes again after 65,536 packets"


def test_a_wrong_frame_is_named_by_its_place() -> None:
    """What is said of a frame has its offset in the stream, from the first data on."""
    first, second = frame(2, 0, tos=0), frame(9, SIZE, tos=0)
    assert "a wrong checksum (stream offset 1,000)" in wrong(
        [first, replace(second, intact=False)], PORT, Headers()
    )
    late = frame(10, 3 * SIZE, tos=0)
    said = "frame 10 is 1000 bytes ahead of stream offset 2,000"
    assert wrong([first, second, late], PORT, Headers()) == said


def sent(*offsets: int, first: int = 0) -> list[Frame]:
    """Frames of the DUT at these offsets, the packets numbered from `first` on; 0: IPv6, no numbers."""
    numbers = range(first, first + len(offsets)) if first else [0] * len(offsets)
    rows = zip(range(1, len(offsets) + 1), offsets, numbers, strict=True)
    return [replace(frame(n, SIZE * at, tos=0), ident=ident % (1 << 16)) for n, at, ident in rows]


LOSSY = Headers(lossy=(2 * SIZE, 5 * SIZE))  # an event that may lose frames: while these bytes were sent


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        ((0, 1, 2, 4, 3, 5, 6), ""),  # lost before the wire, and sent again
        ((0, 1, 4, 2, 3, 5, 6), ""),
        ((0, 1, 2, 3, 5, 4, 6), ""),
        ((1, 0, 2, 3, 4, 5, 6), "frame 1 is 1000 bytes ahead of stream offset 0"),
        ((0, 2, 1, 3, 4, 5, 6), "frame 2 is 1000 bytes ahead of stream offset 1,000"),
        ((0, 1, 2, 3, 4, 6, 5), "frame 6 is 1000 bytes ahead of stream offset 5,000"),
        ((0, 1, 2, 3, 6, 4, 5), "frame 5 is 2000 bytes ahead of stream offset 4,000"),
    ],
)
def test_an_event_that_loses_frames_hides_no_other_order(offsets: tuple[int, ...], said: str) -> None:
    """Data may be missing while the port is set again; before and after, new data is in order."""
    assert wrong(sent(*offsets), PORT, LOSSY, 7) == said
    if offsets[0] == 0:
        assert bool(wrong(sent(*offsets), PORT, Headers(), 7)), "no event, and nothing may lack"


def test_a_packet_that_left_late_is_reported_where_frames_are_lost() -> None:
    """IPv4 numbers packets: what TCP sends again has a later number, what left late an earlier one."""
    again = sent(0, 1, 2, 4, 3, 5, first=65532)
    assert wrong(again, PORT, LOSSY, 7) == "", "the numbers begin again after 65,536"
    late = [again[0], again[1], again[3], again[2], *again[4:]]
    said = "frame 3 of the DUT leaves after frame 4, a later packet (stream offset 2,000)"
    assert wrong(late, PORT, LOSSY, 7) == said
    assert wrong(late, PORT, replace(LOSSY, numbered=False), 7) == "", "queues may differ"
    assert wrong([replace(one, ident=0) for one in late], PORT, LOSSY, 7) == "", "nobody can tell"


def test_the_number_of_a_packet_is_read() -> None:
    """The identification of an IPv4 header is its packet's number; IPv6 has none."""
    tcp = struct.pack("!HHIIBBHHH", PORT, 443, 7, 0, 5 << 4, ACK, 0, 0, 0) + b"data"
    v4 = struct.pack("!BBHHHBBH8x", 0x45, 0, 20 + len(tcp), 0x1234, 0, 64, 6, 0)
    v6 = struct.pack("!IHBB32x", 6 << 28, len(tcp), 6, 64)
    for kind, ip, ident in ((0x0800, v4, 0x1234), (0x86DD, v6, 0)):
        found = frame_of(1, bytes(12) + kind.to_bytes(2, "big") + ip + tcp)
        assert found and (found.ident, found.payload) == (ident, b"data")
        assert found.head == 14 + len(ip) + 20


def test_a_flow_label_is_read_and_asked_for() -> None:
    """The flow label of IPv6 is there where the kernel chooses one, and nowhere else."""
    tcp = struct.pack("!HHIIBBHHH", PORT, 443, 7, 0, 5 << 4, ACK, 0, 0, 0) + b"data"
    v6 = struct.pack("!IHBB32x", 6 << 28 | 0xB8 << 20 | 0xABCDE, len(tcp), 6, 64)
    found = frame_of(1, bytes(12) + b"\x86\xdd" + v6 + tcp)
    assert found and (found.tos, found.label) == (0xB8, 0xABCDE)
    labeled = replace(frame(2, 0, tos=0), label=0xABCDE)
    assert wrong([labeled], PORT, Headers(label=True)) == ""
    assert "flow label 0xabcde, software sends none" in wrong([labeled], PORT, Headers())
    bare = replace(labeled, label=0)
    assert "flow label 0x00000, software sends another" in wrong([bare], PORT, Headers(label=True))
    assert wrong([replace(bare, payload=b"")], PORT, Headers(label=True)) == "", "sent before the option was"


def listening() -> list[Frame]:
    """A connection that speaks of congestion: SYN, data, some of it again, answers to marks."""
    return [
        frame(1, -1, tos=0, flags=SYN | ECE | CWR, size=0),
        frame(2, 0),
        frame(3, SIZE),
        frame(4, 0, tos=0),
        frame(5, 2 * SIZE, flags=ACK | CWR),
        frame(6, 3 * SIZE, flags=ACK | ECE),
        frame(7, 4 * SIZE, tos=0, flags=ACK | ECE, size=0),
    ]


def test_who_listens_to_marks_is_right() -> None:
    """ECT on new data, none on what is sent again, one CWR, and ECE are right."""
    assert wrong(listening(), PORT, ECN) == ""
    assert "flags" in wrong(listening(), PORT, Headers())


def test_two_packets_in_a_row_may_have_a_smaller_window() -> None:
    """A mark and a timeout on a busy host: a good card failed for "CWR in two segments in a row"."""
    both = [*listening()[:5], frame(6, 3 * SIZE, flags=ACK | CWR)]
    assert wrong(both, PORT, ecn(NEW, NEW, SMALLER, SMALLER)) == ""


def test_what_is_seen_first_may_be_a_second_copy() -> None:
    """An event lost the first one before the wire: what TCP sent again has no ECT, and the card adds none."""
    lost = [*listening()[:2], frame(3, SIZE, tos=0), *listening()[4:]]
    assert wrong(lost, PORT, replace(ecn(*SAID, again=1), lossy=(SIZE, 2 * SIZE)), 7) == ""
    assert wrong(lost, PORT, replace(ECN, lossy=(SIZE, 2 * SIZE)), 7).startswith(
        "frame 3 of the DUT: without"
    )


@pytest.mark.parametrize(
    ("at", "bad", "words"),
    [
        (2, frame(3, SIZE, tos=0), "frame 3 of the DUT: without ECT; TCP's packets there: with ECT(0)"),
        (2, frame(3, SIZE, tos=3), "frame 3 of the DUT"),
        (2, frame(3, 9 * SIZE), "frame 3 of the DUT: with ECT(0); TCP's packets there: none"),
        (3, frame(4, 0, tos=0xB8), "traffic class 0xb8"),
        (3, frame(4, 0, tos=3), "traffic class 0x03"),
        (
            3,
            frame(4, 0),
            "frame 4 of the DUT: with ECT(0) again; TCP's packets there: with ECT(0), without ECT",
        ),
        (1, frame(2, 0, tos=0), "frame 4 of the DUT: without ECT again; TCP's packets there: with ECT(0), w"),
        (3, frame(4, 0, flags=ACK | CWR, tos=0), "; TCP's packets there: with ECT(0), without ECT"),
        (4, frame(5, 2 * SIZE), "with ECT(0); TCP's packets there: with ECT(0) and CWR"),
        (5, frame(6, 3 * SIZE, flags=ACK | CWR), "frame 6 of the DUT: with ECT(0) and CWR; TCP's packets"),
    ],
)
def test_a_card_that_loses_the_marks_is_reported(at: int, bad: Frame, words: str) -> None:
    """A card that drops ECT or CWR, or puts CWR into every segment, is told by its frame."""
    frames = listening()
    frames[at] = bad
    assert words in wrong(frames, PORT, ECN)


def test_payload_is_counted_up_to_where_tcp_was_asked() -> None:
    """Every frame counts, also one that comes twice; what came later does not."""
    first, second, last = frame(1, 0), frame(2, SIZE), frame(3, 2 * SIZE)
    end, sent = 3 * SIZE, [first, second, last]
    assert payload(sent, 7, end) == end
    assert payload([*sent, second], 7, end) == end + SIZE
    assert payload([first, last], 7, end) == 2 * SIZE, "what was lost before the wire"
    assert payload([*sent, frame(4, end), frame(5, end)], 7, end) == end, "sent after TCP was asked"
    base = TURN - SIZE  # the sequence numbers begin again
    turned = [replace(one, seq=(base + n * SIZE) % TURN) for n, one in enumerate(sent)]
    assert payload([*turned, turned[2]], base, end) == end + SIZE
