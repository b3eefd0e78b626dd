"""A tap on the wire: what was captured of a connection, and what that proves with the peer's keys."""

from __future__ import annotations

import re
import shutil
import struct
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from offload.card.profile import Cell
from offload.errors import RigError
from offload.host.base import Host
from offload.suite.traffic.keylog import KeyLog, keylog
from offload.suite.wire import words
from offload.suite.wire.ask import Ask
from offload.suite.wire.verify import verify
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Traffic
from tests.lib.rig.rig import Rig
from tests.lib.wire.above import HEADS, opened, stayed
from tests.lib.wire.captures import HOST, Taken

NEEDLE = 16  # bytes; shorter ones would be found by chance


@dataclass(frozen=True)
class Segment:
    """TCP payload in a captured frame: ports, sequence number, bytes."""

    source: int
    target: int
    seq: int
    payload: bytes = field(repr=False)


def segments(capture: bytes) -> Iterator[Segment]:
    """Yield the TCP payload of each Ethernet frame of a pcapng file as wiretap writes it (little-endian)."""
    at = 0
    while at + 12 <= len(capture):
        kind, size = struct.unpack_from("<II", capture, at)
        if kind == 6:  # enhanced packet block
            found = _segment(capture[at + 28 : at + 28 + struct.unpack_from("<I", capture, at + 20)[0]])
            if found is not None and found.payload:
                yield found
        at += size


def _segment(frame: bytes) -> Segment | None:
    if frame[12:14] == b"\x81\0":  # in a VLAN: four bytes more
        frame = frame[:12] + frame[16:]
    kind, ip = int.from_bytes(frame[12:14], "big"), frame[14:]
    if kind == 0x0800 and len(ip) >= 20 and ip[9] == 6:
        head, end = (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big")
    elif kind == 0x86DD and len(ip) >= 40 and ip[6] == 6:
        head, end = 40, int.from_bytes(ip[4:6], "big") and 40 + int.from_bytes(ip[4:6], "big")
    else:
        return None
    tcp = ip[head : end or len(ip)]  # a length of 0: BIG TCP
    return Segment(*struct.unpack("!HHI", tcp[:8]), tcp[(tcp[12] >> 4) * 4 :])


def share(content: bytes, seen: Sequence[Segment]) -> float:
    """Return how much of the content was seen as it is: the share of its 16-byte pieces, 0 to 1."""
    pieces = {content[at : at + NEEDLE] for at in range(0, len(content) - NEEDLE + 1, NEEDLE)}
    found: set[bytes] = set()
    for one in seen:
        data = one.payload
        found |= pieces & {data[at : at + NEEDLE] for at in range(len(data) - NEEDLE + 1)}
    return len(found) / len(pieces)


def most_decrypted(wire: Sequence[Segment], host: Sequence[Segment]) -> int:
    """Return how many frames of one direction a card can have decrypted (TLS 1.2, AES-GCM).

    Those whose payload it changed, and those that hold nothing of a record but header, nonce and tag, which
    stay as they are. What is sent again is held against what the host got again: of a handshake's last record
    the first copy can be too early for the card, and the second one decrypted.
    """
    base = wire[0].seq
    (outside, numbers), (inside, _) = _copies(wire, base), _copies(host, base)
    content = _content(outside[0])
    count = 0
    for one, number in zip(wire, numbers, strict=True):
        at = (one.seq - base) & 0xFFFFFFFF
        place = slice(at, at + len(one.payload))
        came = inside[number][place] if number < len(inside) else b""
        count += one.payload != came or set(content[place]) == {OVERHEAD}
    return count


CLEAR, OVERHEAD, CONTENT = range(3)


def _copies(seen: Sequence[Segment], base: int) -> tuple[list[bytearray], list[int]]:
    """Return the stream, what came of it a second time, a third time; and in which of them each segment is.

    Zeros where nothing came.
    """
    pieces = [((one.seq - base) & 0xFFFFFFFF, one.payload) for one in seen]
    size = max(at + len(data) for at, data in pieces)
    copies, taken, numbers = list[bytearray](), list[bytearray](), list[int]()
    for at, data in pieces:
        place = slice(at, at + len(data))
        number = next((n for n, there in enumerate(taken) if not any(there[place])), len(taken))
        if number == len(taken):
            copies.append(bytearray(size))
            taken.append(bytearray(size))
        copies[number][place], taken[number][place] = data, b"\1" * len(data)
        numbers.append(number)
    return copies, numbers


def _content(stream: bytes) -> bytearray:
    """Return for each byte of a TLS 1.2 stream whether it is application data, or wrapped around some."""
    out, at = bytearray(len(stream)), 0
    while at + 5 <= len(stream):
        size = 5 + int.from_bytes(stream[at + 3 : at + 5], "big")
        if stream[at] == 23:
            kinds = bytes([OVERHEAD]) * 13 + bytes([CONTENT]) * (size - 29) + bytes([OVERHEAD]) * 16
            out[at : at + size] = kinds[: len(stream) - at]
        at += size
    return out


@dataclass(frozen=True)
class Secret:
    """Key log lines, which nothing that shows values may show."""

    content: bytes = field(repr=False)


@contextmanager
def watched(
    rig: Rig, places: dict[str, tuple[Host, str]], folder: Path
) -> Iterator[dict[str, list[Segment]]]:
    """Capture at some places while the block runs; what was seen is in the answer once it has ended."""
    seen: dict[str, list[Segment]] = {}
    with rig.captures.taking(places, folder) as taken:
        yield seen
        for name, file in taken.files().items():
            seen[name] = list(segments(file.read_bytes()))


class Watch:
    """A wire that is being watched. Whatever is asked of it ends the captures first."""

    def __init__(self, taken: Taken, keys: KeyLog) -> None:
        self._taken, self._keys = taken, keys
        self._secret: Secret | None = None

    def stop(self) -> dict[str, Path]:
        """End the captures, with nothing lost, and fetch them and the keys: files by place."""
        files = self._taken.files()
        self.secret()
        return files

    def secret(self) -> bytes:
        """Return the keys of the peer's stunnel so far; read once, when the captures have ended."""
        self._secret = self._secret or Secret(self._keys.read())
        return self._secret.content

    def document(self, **ask: Any) -> dict[str, Any]:
        """Return what the capture beyond the card proves (docs/reference/wire.md); `ask`: fields of Ask.

        AssertionError if the ends agreed on no keys: then the connection broke, and not what looks at it.
        """
        self.stop()
        assert self.secret().strip(), "the connection broke before its ends had agreed on keys"
        return verify(Ask(capture=self.stop()["wire"], keylog=self.secret(), **ask))

    def handed_over(self, flow: Flow, cell: Cell) -> None:
        """The kernel took the connection; of one that broke, first what the DUT sent wrong."""
        try:
            proof.handed_over(flow, cell)
        except AssertionError as exc:
            known = [self.document()] if self.secret().strip() else []
            said = [words.difference(c["from_client"]) for found in known for c in found["connections"]]
            raise AssertionError("; ".join([*filter(None, said), str(exc)])) from None

    def proves(self, evidence: dict[str, Any], sender: str, total: int, **ask: Any) -> dict[str, Any]:
        """Assert that every record is what it should be; `sender` (client or server) sent `total` bytes.

        Returns the direction of the payload. What was found is in the evidence, whatever it is.
        """
        document = self.document(**ask)
        directions = [c[f"from_{sender}"] for c in document["connections"]]
        evidence["wire"] = {
            "proof": "B",
            "outcome": document["outcome"],
            "engine": document["engine"],
            "records": sum(direction["app_records"] for direction in directions),
            "bytes": sum(direction["payload_bytes"] for direction in directions),
            "difference": "" if document["outcome"] == "equal" else words.first_sentence(document),
        }
        for direction in directions:  # for information: neither is a promise
            evidence |= {
                "record_sizes": direction["sizes"],
                "retransmitted_bytes": direction["retransmitted_bytes"],
            }
        assert document["outcome"] == "equal", words.first_sentence(document)
        assert len(directions) == 1, f"{len(directions)} connections on the wire, there was one"
        assert directions[0]["proof"] == "payload" and directions[0]["payload_bytes"] == total
        return dict(directions[0])

    def sent_again(self, sender: str, port: int) -> int:
        """How many bytes `sender` (client or server) has put on the wire more than once."""
        directions = [c[f"from_{sender}"] for c in self.document(port=port)["connections"]]
        return sum(int(direction["retransmitted_bytes"]) for direction in directions)

    def lets_through(self) -> None:
        """Assert that the card sent all that TCP still needed; needs a capture at the DUT's host port."""
        files = self.stop()
        assert not (said := stayed(files[HOST], files["wire"], opened(files["wire"]), {})), said

    def segments(self, place: str) -> list[Segment]:
        """Return every TCP segment with payload that was seen there, in order."""
        return list(segments(self.stop()[place].read_bytes()))

    def keep(self, folder: Path, name: str) -> str:
        """Copy the captures to where a person can look at them; keys are never with them."""
        folder.mkdir(parents=True, exist_ok=True)
        names = []
        for place, path in self.stop().items():
            names.append(folder / f"{name}-{place}.pcapng")
            shutil.copyfile(path, names[-1])
        return " ".join(str(path) for path in names)


class WireTap:
    """Opens captures for a test; a test that fails while they are open leaves them to look at."""

    def __init__(self, request: pytest.FixtureRequest, traffic: Traffic) -> None:
        self._traffic, self._bench = traffic, traffic.rig.bench
        events = request.config.getoption("--events")
        self._kept = Path(events).parent / "captures" if events else None
        self._name = re.sub(r"\W+", "-", request.node.name).strip("-")

    @contextmanager
    def open(self, *, host: bool = False, above: bool = False) -> Iterator[Watch]:
        """Capture beyond the DUT's card, with the keys of the peer's stunnel.

        `host`: also at its host port, whole frames; `above`: their headers, for `Watch.lets_through`.
        """
        assert self._bench.wire is not None
        dut, peer = self._bench.dut, self._traffic.peer
        places = {"wire": (self._bench.wire, self._bench.wire_ports[0])}  # the port on the DUT's side
        places |= {HOST: (dut.host, dut.dev)} if host or above else {}
        with ExitStack() as undo:
            folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="ktls-offload-")))
            log = undo.enter_context(keylog(peer.side.host, peer.at.folder, f"keys-{uuid.uuid4().hex[:8]}"))
            self._traffic.keys = log
            undo.callback(setattr, self._traffic, "keys", None)
            seen: list[Watch] = []
            try:
                taking = self._traffic.rig.captures.taking(
                    places, folder, lambda: seen[0].secret(), heads=HEADS if above else 0
                )
                with taking as taken:
                    seen.append(Watch(taken, log))
                    yield seen[0]
            except RigError:
                raise
            except BaseException as exc:
                exc.add_note(f"what was on the wire: {seen[0].keep(self._folder(), self._name)}")
                raise

    def _folder(self) -> Path:
        return self._kept or Path(tempfile.mkdtemp(prefix="ktls-offload-captures-"))
