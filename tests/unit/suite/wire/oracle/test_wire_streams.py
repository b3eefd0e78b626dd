"""Reassembly: what each side sent, with loss, reordering, overlaps and strange sequence numbers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from offload.suite.wire import ranges, streams
from offload.suite.wire.ranges import Ranges
from offload.suite.wire.streams import Capture, Connection, Problem, Stream
from tests.unit.suite.wire.oracle.wire_make import ACK, CLIENT, FIN, RST, SERVER, SYN, Flow, ethernet, tcp

DATA = random.Random(1).randbytes(3000)


def load(folder: Path, flow: Flow) -> Capture:
    return streams.load(flow.write(folder / "c"))


def client(folder: Path, flow: Flow) -> Stream:
    """What the client of the only connection sent."""
    (connection,) = load(folder, flow).connections
    return connection.from_client


def test_a_stream_in_order(tmp_path: Path) -> None:
    """Segments in order are the stream, across the end of the sequence space too."""
    flow = Flow()
    flow.base["client"] = 2**32 - 700
    flow.frames = []
    flow.frame("client", -1, SYN)
    flow.send("client", DATA, 500)
    flow.fin("client")
    found = client(tmp_path, flow)
    assert found.data == DATA and found.fin == 3000 and not found.gap and not found.problems


@pytest.mark.parametrize("seed", range(30))
def test_any_order_gives_the_same_stream(tmp_path: Path, seed: int) -> None:
    """Reordered, repeated and overlapping segments give one stream, and no difference."""
    rng = random.Random(seed)
    flow = Flow()
    cuts = [(at, rng.randrange(1, 400)) for at in range(0, 3000, 100)] * 2
    cuts += [(at, 100) for at in range(0, 3000, 100)]
    rng.shuffle(cuts)
    for at, size in cuts:
        flow.frame("client", at, ACK, DATA[at : at + size])
    found = client(tmp_path, flow)
    assert found.data == DATA and found.retransmission is None and not found.gap
    sent = sum(len(DATA[at : at + size]) for at, size in cuts)
    assert found.retransmitted_bytes == sent - 3000 and not found.held.starts and not found.held.count


def test_the_first_byte_counts(tmp_path: Path) -> None:
    """A later copy never changes the stream; the lowest offset that differs is told."""
    flow = Flow()
    flow.send("client", DATA[:100])
    flow.frame("client", 200, data=DATA[200:300])
    flow.frame("client", 50, data=bytes(200))
    flow.frame("client", 0, data=b"?" + DATA[1:50])
    found = client(tmp_path, flow)
    assert found.data == DATA[:100] + bytes(100) + DATA[200:300]
    assert (found.out_of_order, found.retransmissions, found.retransmitted_bytes) == (1, 2, 150)
    assert found.retransmission is not None and found.retransmission.zeros
    assert (found.retransmission.offset, found.retransmission.frame) == (50, 5)
    assert found.retransmission.expected == DATA[50:66] and found.retransmission.got == bytes(16)


def test_a_difference_beyond_a_hole(tmp_path: Path) -> None:
    """Bytes that wait for others are compared too."""
    flow = Flow()
    flow.frame("client", 500, data=DATA[500:600])
    flow.frame("client", 600, data=DATA[600:604])
    flow.frame("client", 550, data=DATA[550:599] + bytes([DATA[599] ^ 1]) + DATA[600:604])
    found = client(tmp_path, flow)
    assert found.retransmission is not None and found.retransmission.one_bit
    assert (found.retransmission.offset, len(found.retransmission.got)) == (599, 5)
    assert found.gap and found.data == b""


def test_strange_sequence_numbers(tmp_path: Path) -> None:
    """A segment before the stream or more than 1 GiB ahead is left out, FIN and all."""
    flow = Flow()
    flow.send("client", DATA[:100])
    for offset in (-1, 100 + (1 << 30) + 1):
        flow.frame("client", offset, FIN | ACK, b"x")
    flow.frame("client", 100 + (1 << 30), data=b"x")
    found = client(tmp_path, flow)
    assert (found.strange, found.fin, found.out_of_order) == (2, None, 1) and found.gap


def test_a_keepalive_is_compared(tmp_path: Path) -> None:
    """A keepalive's byte is that of the stream."""
    flow = Flow()
    flow.send("client", DATA[:100])
    flow.frame("client", 99, data=DATA[99:100])
    found = client(tmp_path, flow)
    assert found.retransmissions == 1 and found.retransmission is None


def opened(folder: Path, *segments: tuple[str, int, int]) -> list[Connection]:
    """The connections of (side, sequence, flags)."""
    flow = Flow(syn=False)
    ends = {"client": (CLIENT, SERVER), "server": (SERVER, CLIENT)}
    flow.frames = [ethernet(tcp(*ends[side], seq, flags)) for side, seq, flags in segments]
    return load(folder, flow).connections


@pytest.mark.parametrize(
    ("segments", "clients"),
    [
        ([("client", 5, SYN), ("client", 5, SYN), ("server", 9, SYN | ACK), ("client", 6, ACK)], "c"),
        ([("client", 5, SYN), ("client", 77, SYN)], "cc"),
        ([("client", 5, SYN), ("server", 5, SYN)], "cs"),
        ([("server", 9, SYN | ACK), ("client", 6, ACK)], "c"),
        ([("server", 9, SYN | ACK), ("client", 2**32 - 1, SYN), ("client", 0, ACK)], "c"),
        ([("server", 9, SYN | ACK), ("client", 5, SYN)], "cc"),
        ([("server", 9, ACK)], "s"),
        ([("server", 9, ACK), ("client", 5, SYN)], "sc"),
        ([("server", 9, ACK), ("server", 5, SYN)], "ss"),
        ([("client", 5, RST), ("server", 5, RST | ACK)], ""),
        ([("client", 5, SYN), ("server", 5, RST | ACK)], "c"),
    ],
)
def test_what_opens_a_connection(tmp_path: Path, segments: list[tuple[str, int, int]], clients: str) -> None:
    """SYN decides who is the client and when a pair of ports begins anew."""
    found = opened(tmp_path, *segments)
    assert "".join("c" if c.client == "192.0.2.1:40000" else "s" for c in found) == clients


def test_an_answer_may_be_captured_before_its_syn(tmp_path: Path) -> None:
    """With two processors the tap may see the answer first; it acknowledges 0, so the SYN is 2^32 - 1."""
    (found,) = opened(tmp_path, ("server", 9, SYN | ACK), ("client", 2**32 - 1, SYN), ("client", 0, ACK))
    assert [s.problems for s in found.streams] == [[], []]
    assert (found.from_client.base, found.from_server.base) == (0, 10)


def test_problems_of_a_direction(tmp_path: Path) -> None:
    """A direction that did not begin with SYN says so; RST and FIN are noted."""
    flow = Flow(syn=False)
    flow.send("client", b"\x16\x03")
    flow.frame("server", 0, RST)
    flow.fin("client")
    (found,) = load(tmp_path, flow).connections
    assert found.from_client.problems == [Problem("no-syn", "client")] and found.listed
    assert found.from_server.rst and found.from_client.fin == 2


def test_data_on_a_syn(tmp_path: Path) -> None:
    """TCP Fast Open's data are the first of the stream."""
    flow = Flow(syn=False)
    flow.frame("client", -1, SYN, DATA[:50])
    flow.frame("client", 50, data=DATA[50:99])
    assert client(tmp_path, flow).data == DATA[:99]


def test_too_much_reorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a bound to the ranges beyond a hole, and it is told once."""
    monkeypatch.setattr(ranges, "MAX_RANGES", 3)
    flow = Flow()
    for at in (100, 200, 300, 400, 500):
        flow.frame("client", at, data=DATA[at : at + 10])
    for at in (110, 190, 310, 0):
        flow.frame("client", at, data=DATA[at : at + 10])
    found = client(tmp_path, flow)
    assert found.problems == [Problem("too-much-reorder", "client", 400)]
    assert found.held.count == 3 and found.out_of_order == 6 and found.data == DATA[:10]


@pytest.mark.parametrize("seed", range(50))
def test_ranges_hold_each_byte_once(seed: int) -> None:
    """Ranges agree with a plain list of bytes, whatever is added."""
    rng, held, model = random.Random(seed), Ranges(), dict[int, int]()
    for _ in range(60):
        at, data = rng.randrange(10, 200), rng.randbytes(rng.randrange(1, 30))
        overlaps = held.add(at, data)
        seen = {i: model[i] for i in range(at, at + len(data)) if i in model}
        reported = {o.offset + i: old for o in overlaps for i, old in enumerate(o.old)}
        assert reported == seen
        assert all(o.new == data[o.offset - at :][: len(o.new)] for o in overlaps)
        model = {at + i: byte for i, byte in enumerate(data)} | model
        assert held.count == sum(i - 1 not in model for i in model)
    start = min(model)
    taken = b"".join(held.take(start))
    assert taken == bytes(model[i] for i in range(start, start + len(taken)))
    assert start + len(taken) not in model
