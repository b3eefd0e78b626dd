"""Connections without a handshake: what does the wire prove of them, by the keys that both ends were given?

A card that is wrong from its first record on breaks a handshake, and the peer's alert does not say how.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from offload.card.profile import Cell
from offload.suite.traffic import rawkeys
from offload.suite.traffic.drive import Ended, Part, sending, take
from offload.suite.traffic.drive import send as send_step
from offload.suite.wire import oracle, streams
from offload.suite.wire.handshake import Session, split
from offload.suite.wire.keys import AES128, AES256, Epoch, Schedule, Suite
from offload.suite.wire.records import APPLICATION, Walk
from offload.suite.wire.words import first_sentence
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Several, Traffic
from tests.lib.wire.wire import NEEDLE

NONCE, TAG = 8, 16  # RFC 5288 section 3
PLAINEST = "AES-128 over IPv4"
# bytes that software may decrypt first: a card that starts in the middle of a stream needs one resync
EARLY = 1 << 18
# bytes of each write, and how many of them: a record each, on both sides of 256 bytes
WRITES = {16384: 2, 5000: 4, 256: 8, 255: 8, 100: 8, 17: 8, 1: 4}


def payload(name: str) -> Several:
    """56 KiB in records of every order of size."""
    return Several(tuple(sending(f"{name} {size}", size * count, size) for size, count in WRITES.items()))


def longer(name: str) -> Several:
    """The same, and 512 KiB in whole records: more than may be software's before the card finds one."""
    return Several((*payload(name).parts, sending(f"{name} bulk", 2 * EARLY, 16384)))


@dataclass(frozen=True)
class Key:
    """What one end sends under; nothing that shows values shows it."""

    key: bytes = field(repr=False)
    salt: bytes = field(repr=False)
    iv: bytes = field(default=b"", repr=False)  # TLS 1.3: the rest of what is combined with the number

    @property
    def version(self) -> str:
        """TLS 1.2 or 1.3, by what there is."""
        return "1.3" if self.iv else "1.2"

    @property
    def suite(self) -> Suite:
        """AES-128 or AES-256, by its length."""
        return AES128 if len(self.key) == AES128.key_size else AES256

    @property
    def half(self) -> Key:
        """Return what a card has that takes half of it."""
        return Key(self.key[: len(self.key) // 2], self.salt, self.iv)

    def schedule(self) -> Schedule:
        """The same as the verifier has it."""
        return Schedule([Epoch(self.version, self.suite, self.key, self.salt + self.iv)])


def keys_of(infos: bytes) -> tuple[Key, Key]:
    """The client's and the server's of two tls12_crypto_info_* (include/uapi/linux/tls.h)."""
    half = len(infos) // 2
    both = infos[:half], infos[half:]
    newer = infos[:2] == struct.pack("=H", rawkeys.VERSIONS["1.3"])
    client, server = (Key(info[12:-12], info[-12:-8], info[4:12] if newer else b"") for info in both)
    return client, server


@dataclass(frozen=True)
class Sent:
    """A connection that has ended: who sent, its port at the peer, the keys of both, what was sent on it."""

    flow: Flow
    direction: str
    port: int
    keys: tuple[Key, Key]
    plan: Several
    family: int

    def __str__(self) -> str:
        return f"AES-{8 * len(self.keys[0].key)} over IPv{self.family}"


def moved(traffic: Traffic, cell: Cell, plan: Several) -> Sent:
    """Send from the DUT, or to it: over IPv4, with the cipher of the cell; no handshake.

    The sender waits for the receiver: a socket whose peer has closed can no longer be given to kernel TLS
    (tls_init(), net/tls/tls_main.c).
    """
    before, ours, theirs = traffic.rig.counters(), traffic.dut, traffic.peer
    ends = ((ours.side.host, ours.at.folder), (theirs.side.host, theirs.at.folder))
    parts = (replace(plan.parts[0], gate=0), *plan.parts[1:])
    steps = tuple(send_step(part) for part in parts), (take(),)
    mine, other = steps if cell.direction == "tx" else steps[::-1]
    listener, port = theirs.pump.listen(host=theirs.side.v4)
    with rawkeys.placed(ends, cell.cipher, version=cell.version) as paths:
        keys = keys_of(ours.side.host.read(paths[0]))
        far = theirs.pump.accept(listener, *other, keys=paths[1])
        near = ours.pump.connect(theirs.side.v4, port, *mine, keys=paths[0])
        sender, receiver = (near, far) if cell.direction == "tx" else (far, near)
        try:
            with suppress(Ended):  # its report says why
                receiver.opened()
            sender.go()
            flow = Flow(near.report(120), far.report(120), traffic.rig.counters() - before)
        finally:
            theirs.pump.close(listener)
    return Sent(flow, cell.direction, port, keys, plan, 4)


@dataclass(frozen=True)
class Wire:
    """What a capture has of a connection: its document (wire.md), and the bytes that the DUT sent."""

    document: dict[str, Any]
    stream: bytes = field(repr=False)

    @property
    def direction(self) -> dict[str, Any]:
        """The direction from the DUT."""
        found: dict[str, Any] = self.document["connections"][0]["from_client"]
        return found

    @property
    def words(self) -> str:
        """The first difference, or why nothing is proven; empty if all is equal."""
        return "" if self.document["outcome"] == "equal" else first_sentence(self.document)


def walked(capture: Path, sent: Sent) -> Wire:
    """Go through what the DUT sent: from its first byte on it must be protected."""
    found = [c for c in streams.load(capture, sent.port).connections if c.from_client.reach]
    assert len(found) == 1, f"{len(found)} connections on the wire, there was one ({sent.flow.dut.error})"
    one, (client, server) = found[0], sent.keys
    session = Session(client.version, suite=client.suite, schedules=(client.schedule(), server.schedule()))
    ours, theirs = Walk(one.from_client, session, sent.plan.content()), Walk(one.from_server, session, None)
    ours.guarded = True
    ours.run()
    return Wire(document(one, ours, theirs, session), one.from_client.data)


def document(one: streams.Connection, ours: Walk, theirs: Walk, session: Session) -> dict[str, Any]:
    """What the wire verifier says of one connection, of which the DUT's direction was walked."""
    outcome = oracle.outcome((ours, theirs), ours.problems)
    connection = {
        "client": one.client,
        "server": one.server,
        "outcome": outcome,
        "problems": [vars(problem) for problem in ours.problems],
        "from_client": oracle.direction(ours, theirs, session),
        "from_server": oracle.direction(theirs, ours, session),
    }
    return {"outcome": outcome, "connections": [connection], "leak": None, "problems": []}


def proves(
    capture: Path, evidence: dict[str, Any], sent: Sent, sizes: Mapping[int, int] = WRITES
) -> dict[str, Any]:
    """Assert that every record is on the wire as it should be, and no plaintext; note what was found.

    `sizes`: how many records there must be of each size. Returns the direction from the DUT.
    """
    seen, content = walked(capture, sent), sent.plan.content()
    evidence["wire"] = {
        "proof": "B",
        "outcome": seen.document["outcome"],
        "engine": "python",
        "records": seen.direction["app_records"],
        "bytes": seen.direction["payload_bytes"],
        "difference": seen.words,
    }
    clear = plaintext(seen.stream, content)
    assert not clear, clear
    assert not seen.words, f"{explained(seen.stream, sent)}: {seen.words}"
    assert seen.direction["sizes"] == {str(size): sizes[size] for size in sorted(sizes)}, (
        f"other records than were written: {seen.direction['sizes']}"
    )
    assert seen.direction["payload_bytes"] == sent.plan.total, "not all of the payload was proven"
    return seen.direction


def decrypted(sent: Sent) -> None:
    """The DUT's card decrypted it, but for what came before it knew where the records are."""
    flow = sent.flow
    proof.exactly(flow, TlsRxDevice=1, TlsRxSw=0, TlsDecryptError=0, rx_tls_err=0)
    done = proof.count(flow, "rx_tls_decrypted_bytes")
    assert done >= sent.plan.total - EARLY, f"the card decrypted {done} of {sent.plan.total} bytes"


def plaintext(stream: bytes, content: bytes) -> str:
    """Say where a stream has pieces of the content as they are, and how many; nothing if it has none."""
    pieces = {content[at : at + NEEDLE]: at for at in range(0, len(content) - NEEDLE + 1, NEEDLE)}
    hits = {at: stream[at : at + NEEDLE] for at in range(len(stream)) if stream[at : at + NEEDLE] in pieces}
    if not hits:
        return ""
    first = min(hits)
    share = len(set(hits.values())) / len(pieces)
    return (
        f"plaintext on the wire at stream offset {first:,}: {hits[first].hex()} is byte "
        f"{pieces[hits[first]]:,} of the payload; {share:.1%} of it is there in plaintext"
    )


@dataclass(frozen=True)
class Seen:
    """A record of application data as it is on the wire, what its plaintext should be, its number."""

    number: int
    body: bytes
    plain: bytes

    @property
    def aad(self) -> bytes:
        """Return what the tag covers besides the content (RFC 5246 section 6.2.3.3)."""
        head = (APPLICATION, 3, 3, *divmod(len(self.plain), 256))
        return self.number.to_bytes(8, "big") + bytes(head)

    def right(self, key: Key) -> bool:
        """Whether a correct sender with this key would have put it there."""
        sealed = AESGCM(key.key).encrypt(key.salt + self.body[:NONCE], self.plain, self.aad)
        return sealed == self.body[NONCE:]

    def authentic(self, key: Key) -> bool:
        """Whether a receiver with this key takes it, whatever it holds."""
        try:
            AESGCM(key.key).decrypt(key.salt + self.body[:NONCE], self.body[NONCE:], self.aad)
        except InvalidTag:
            return False
        return True


def records(stream: bytes, content: bytes) -> Iterator[Seen]:
    """The records of application data of a stream whose headers can be read."""
    at = 0
    for number, (begins, kind, length) in enumerate(split(stream)):
        if kind != APPLICATION or length < NONCE + TAG:
            continue
        size = length - NONCE - TAG
        yield Seen(number, stream[begins + 5 : begins + 5 + length], content[at : at + size])
        at += size


def explained(stream: bytes, sent: Sent) -> str:
    """Say which sizes of records are wrong and right, and what is known of the wrong ones."""
    if sent.keys[0].iv:
        return f"{sent} of TLS 1.3"
    key, seen = sent.keys[0], list(records(stream, sent.plan.content()))
    wrong = [one for one in seen if not one.right(key)]
    words = f"wrong are {_sizes(wrong)}, right {_sizes([one for one in seen if one not in wrong])}"
    if wrong and all(one.authentic(key) for one in wrong):
        words += "; the tags of the wrong ones fit what was sent"
    if wrong and key.suite == AES256 and all(one.right(key.half) for one in wrong):
        words += "; they are what AES-128 makes with the first half of the key"
    return words


def _sizes(found: Sequence[Seen]) -> str:
    sizes = sorted({len(one.plain) for one in found})
    many = "1 record" if len(found) == 1 else f"{len(found)} records"
    return f"{many} of {', '.join(map(str, sizes))} bytes" if found else "no record"


@contextmanager
def named(traffic: Traffic, sent: Sent) -> Iterator[None]:
    """Give a failure the name of the connection, and say what becomes of the plainest one next to it."""
    try:
        yield
    except AssertionError as exc:
        compared = "" if str(sent) == PLAINEST else f" ({PLAINEST} {_plainest(traffic, sent.direction)})"
        exc.args = (f"{sent}{compared}: {exc}",)  # raised again as it is: the check that failed is the place
        raise


def _plainest(traffic: Traffic, direction: str) -> str:
    """Return what becomes of a connection with AES-128 over IPv4, in words."""
    plan = payload("beside")
    flow = moved(traffic, Cell(direction, "1.2", "aes-gcm-128"), plan).flow
    seen = (flow.far if direction == "tx" else flow.dut).taken
    return "arrives whole" if seen == Part(plan.total, plan.sha256()) else "does not arrive either"
