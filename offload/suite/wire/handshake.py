"""What did client and server agree on? Both hellos (RFC 5246 §7.4.1, RFC 8446 §4.1), and the keys."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from offload.suite.wire.keylog import Keylog
from offload.suite.wire.keys import SUITES, Schedule, Suite, schedules12, schedules13

CLIENT_HELLO, SERVER_HELLO, FINISHED, KEY_UPDATE = 1, 2, 20, 24
CHANGE_CIPHER, HANDSHAKE = 20, 22
MAX_MESSAGE = 128 << 10
MAX_LENGTH = 16640
SUPPORTED_VERSIONS = 43
# SHA-256 of "HelloRetryRequest" (RFC 8446 §4.1.3)
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


def plausible(data: bytes, at: int) -> int | None:
    """The length in the record header at `at`, where five bytes are; None if it cannot be a header."""
    kind, major, minor, length = struct.unpack_from(">BBBH", data, at)
    good = 20 <= kind <= 23 and major == 3 and minor <= 4 and length <= MAX_LENGTH
    return int(length) if good else None


def split(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(offset, type, length) of the whole records, up to the first implausible header."""
    at = 0
    while at + 5 <= len(data):
        length = plausible(data, at)
        if length is None or at + 5 + length > len(data):
            return
        yield at, data[at], length
        at += 5 + length


class Messages:
    """Puts handshake messages together; one of more than 128 KiB is passed over and noted in `too_long`."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.skip = 0
        self.too_long = False

    @property
    def unfinished(self) -> bool:
        """Whether a message has begun that is not whole."""
        return bool(self.buffer)

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """(type, body) of the messages that this part completes; an empty body for one that is too long."""
        done = []
        if self.skip:
            skipped = min(self.skip, len(data))
            self.skip -= skipped
            if self.skip:
                return []
            done.append((self.buffer[0], b""))
            self.buffer.clear()
            data = data[skipped:]
        self.buffer += data
        while len(self.buffer) >= 4 and not self.skip:
            size = 4 + int.from_bytes(self.buffer[1:4], "big")
            if size > MAX_MESSAGE:
                # it is never whole here: a record is shorter than what is too long
                self.too_long, self.skip = True, size - len(self.buffer)
                del self.buffer[1:]
            elif size > len(self.buffer):
                break
            else:
                done.append((self.buffer[0], bytes(self.buffer[4:size])))
                del self.buffer[:size]
        return done


@dataclass(frozen=True)
class ServerHello:
    """What the server chose; `version`: 1.2, 1.3 or empty."""

    random: bytes
    version: str
    suite: int


def client_random(body: bytes) -> bytes | None:
    """The random of a ClientHello; None if it is cut off."""
    return body[2:34] if len(body) >= 34 else None


def server_hello(body: bytes) -> ServerHello | None:
    """A ServerHello; None if it is malformed."""
    if len(body) < 38 or len(body) < 38 + body[34]:
        return None
    at = 35 + body[34]
    found = extensions(body[at + 3 :])
    if found is None:
        return None
    selected = found.get(SUPPORTED_VERSIONS)
    if selected is None:
        version = "1.2" if body[:2] == b"\x03\x03" else ""
    else:
        version = "1.3" if selected == b"\x03\x04" else ""
    return ServerHello(body[2:34], version, int.from_bytes(body[at : at + 2], "big"))


def extensions(block: bytes) -> dict[int, bytes] | None:
    """The extensions in a block with its length in front, which may be missing; None if malformed."""
    found: dict[int, bytes] = {}
    if not block:
        return found
    if len(block) < 2 or len(block) != 2 + int.from_bytes(block[:2], "big"):
        return None
    at = 2
    while at + 4 <= len(block):
        kind, size = struct.unpack_from(">HH", block, at)
        found.setdefault(kind, block[at + 4 : at + 4 + size])
        at += 4 + size
    return found if at == len(block) else None


@dataclass
class Session:
    """What is known of a TLS connection: names for the document, and the keys if there are any.

    `problem`: no-hello, version, cipher, no-key or empty. `schedules`: the client's and the server's keys.
    """

    version: str = ""
    suite_code: str = ""
    suite: Suite | None = None
    problem: str = ""
    schedules: tuple[Schedule, Schedule] | None = None
    early: bool = False
    too_long: dict[str, int] = field(default_factory=dict)


def first_message(data: bytes, session: Session, direction: str) -> tuple[int, bytes, bool] | None:
    """Type and body of the first handshake message that is not a HelloRetryRequest; after a type 20?"""
    messages, changed = Messages(), False
    for at, kind, length in split(data):
        changed |= kind == CHANGE_CIPHER
        if kind != HANDSHAKE:
            continue
        done = messages.feed(data[at + 5 : at + 5 + length])
        for message in done:
            if message[0] != SERVER_HELLO or message[1][2:34] != RETRY:
                return *message, changed
        if messages.too_long:
            session.too_long[direction] = at
            return None
    return None


def negotiate(client: bytes, server: bytes, log: Keylog) -> Session:
    """Return what two streams agreed on, and their keys from the key log."""
    session = Session()
    ours, theirs = first_message(client, session, "client"), first_message(server, session, "server")
    random = client_random(ours[1]) if ours and ours[0] == CLIENT_HELLO else None
    hello = server_hello(theirs[1]) if theirs and theirs[0] == SERVER_HELLO else None
    # in TLS 1.2 what follows a type 20 is protected, so it was no hello
    if hello and hello.version == "1.2" and theirs and theirs[2]:
        hello = None
    if hello and hello.version == "1.2" and ours and ours[2]:
        random = None
    if hello and random:
        session.version, session.suite_code = hello.version, f"{hello.suite:04x}"
        session.suite = SUITES.get(hello.version, SUITES["1.2"] | SUITES["1.3"]).get(hello.suite)
    session.problem = trouble(random, hello, session)
    if random and hello and session.suite and not session.problem:
        session.schedules = schedules(session.suite, hello, log, random)
        session.problem = "" if session.schedules else "no-key"
        session.early = log.get("CLIENT_EARLY_TRAFFIC_SECRET", random) is not None
    return session


def trouble(random: bytes | None, hello: ServerHello | None, session: Session) -> str:
    """Why there can be no keys, or nothing."""
    if random is None or hello is None:
        return "no-hello"
    if not hello.version:
        return "version"
    return "" if session.suite else "cipher"


def schedules(
    suite: Suite, hello: ServerHello, log: Keylog, random: bytes
) -> tuple[Schedule, Schedule] | None:
    """The keys of a connection; None if the key log lacks its secrets."""
    if hello.version == "1.3":
        return schedules13(suite, log, random)
    master = log.get("CLIENT_RANDOM", random)
    return None if master is None else schedules12(suite, master, random, hello.random)
