"""Is every record of a direction what a correct sender would have put there? wire.md, "Records"."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from offload.suite.wire.handshake import (
    CHANGE_CIPHER,
    CLIENT_HELLO,
    FINISHED,
    HANDSHAKE,
    KEY_UPDATE,
    RETRY,
    SERVER_HELLO,
    Messages,
    Session,
    plausible,
)
from offload.suite.wire.keys import Epoch, Schedule
from offload.suite.wire.needles import WINDOW, Found, Needles
from offload.suite.wire.streams import Problem, Stream

ALERT, APPLICATION = 21, 23
CLEAR_MAX = 1 << 17  # where a clear handshake record of a direction begins at the latest
MOST_HELLOS = 2  # in plaintext, of a direction in TLS 1.3: one more after a HelloRetryRequest
CLOSE_NOTIFY = b"\x01\x00"


class Record(NamedTuple):
    """A record as it is on the wire; `position`: where its plaintext should be in the payload."""

    number: int
    offset: int
    kind: int
    header: bytes
    body: bytes
    sequence: int
    epoch: int
    position: int


@dataclass(frozen=True)
class Difference:
    """A difference before it is classified.

    `what`: header (no record can begin there), start (type or version), malformed, nonce, content, excess (of
    the payload), length (an incomplete record), missing (payload), clear (payload `found` in it). `plain`:
    what the inner plaintext should be, if known; for excess what there is beyond.
    `nonce`: what the explicit nonce should be; `reuse`: the one on the wire occurred before.
    """

    what: str
    record: Record
    plain: bytes | None = None
    nonce: int = 0
    reuse: bool = False
    found: Found | None = None


class Content(NamedTuple):
    """What a protected record turned out to hold: size of its plaintext, kind of data, what is wrong."""

    size: int
    application: bool
    compared: bool = False
    wrong: Difference | None = None
    text: bytes = b""


@dataclass
class Tally:
    """What was counted in a direction."""

    records: int = 0
    protected: int = 0
    app_records: int = 0
    app_bytes: int = 0
    payload_bytes: int = 0
    authentic_bytes: int = 0
    right: int = 0
    different: int = 0
    epochs: int = 0
    nonce_first: str = ""
    close_notify: bool = False
    sizes: Counter[int] = field(default_factory=Counter)


class Walk:
    """Goes through one direction once; then `tally`, `problems` and `first` tell."""

    def __init__(
        self, stream: Stream, session: Session, payload: bytes | None, needles: Needles | None = None
    ) -> None:
        self.stream, self.session, self.payload = stream, session, payload
        self.needles = needles or Needles(None, None)
        self.client = stream.direction == "client"
        self.schedule: Schedule | None = None
        if session.schedules:
            self.schedule = session.schedules[0 if self.client else 1]
        self.tally = Tally()
        self.problems = list(stream.problems)
        self.first: Difference | None = None
        self.guarded = self.ended = False
        self.sequence = self.epoch = 0
        self.clear, self.hidden = Messages(), Messages()
        self.messages = 0
        self.carried = b""
        self.nonces: set[int] = set()
        self.next_nonce = -1

    def run(self) -> None:
        """The whole direction, and what its end says."""
        data, at = self.stream.data, 0
        if self.stream.direction in self.session.too_long:
            self._problem("handshake-too-long", self.session.too_long[self.stream.direction])
        while not self.ended and at + 5 <= len(data):
            length = plausible(data, at)
            if length is None:
                self._differ(Difference("header", self._record(at, b"")))
                self.ended = True
            elif at + 5 + length > len(data):
                break
            else:
                self._take(self._record(at, data[at + 5 : at + 5 + length]))
                at += 5 + length
        self._end(at)

    def _record(self, at: int, body: bytes) -> Record:
        header = self.stream.data[at : at + 5]
        kind = header[0] if header else 0
        sequence = self.sequence if self.guarded else self.tally.records
        return Record(self.tally.records, at, kind, header, body, sequence, self.epoch, self.tally.app_bytes)

    def _problem(self, code: str, at: int = 0) -> None:
        if code not in (p.code for p in self.problems):
            self.problems.append(Problem(code, self.stream.direction, at))

    def _stop(self, code: str, at: int) -> None:
        self._problem(code, at)
        self.ended = True

    def _differ(self, difference: Difference) -> None:
        """Count a difference; the first one is kept."""
        self.tally.different += 1
        self.first = self.first or difference

    def _take(self, record: Record) -> None:
        """One whole record, in the state that the direction is in."""
        self.tally.records += 1
        if self.schedule is None:
            return
        if self.session.version == "1.3":
            if record.kind == CHANGE_CIPHER:
                self._change_cipher(record)
            elif self.tally.protected or (self.guarded and record.kind == APPLICATION):
                self._whole(record)
                self._protected(self.schedule, record)
            else:
                self._in_clear(record)
        elif record.kind == CHANGE_CIPHER:
            if self.guarded:
                self._stop("renegotiation", record.offset)
            else:
                self._whole(record)
                self._change_cipher(record)
            self.guarded = True
        elif self.guarded:
            self._protected(self.schedule, record)
        else:
            self._in_clear(record)

    def _in_clear(self, record: Record) -> None:
        """A record before protection; in TLS 1.3 the hello ends that."""
        if record.kind == ALERT:
            self._problem("clear-alert", record.offset)
        late = record.kind == HANDSHAKE and record.offset >= CLEAR_MAX
        if late or record.kind == APPLICATION:
            self._problem("clear-record", record.offset)
        if record.kind != HANDSHAKE:
            self._search(record, b"")
            return
        self._search(record, self.carried)
        self.carried = (self.carried + record.body)[1 - WINDOW :]
        known = not self.clear.too_long
        for kind, body in self.clear.feed(record.body):
            hello = CLIENT_HELLO if self.client else SERVER_HELLO
            self.messages += 1
            if known and self.session.version == "1.3" and (kind != hello or self.messages > MOST_HELLOS):
                self._problem("clear-record", record.offset)
            if self.session.version == "1.3" and kind == hello and body[2:34] != RETRY:
                self.guarded = True
        if self.clear.too_long:
            self._problem("handshake-too-long", record.offset)

    def _whole(self, record: Record) -> None:
        """Protection begins behind a whole message only (RFC 8446 section 5.1)."""
        too_long = any(problem.code == "handshake-too-long" for problem in self.problems)
        if not self.tally.protected and self.clear.unfinished and not too_long:
            self._problem("clear-record", record.offset)

    def _change_cipher(self, record: Record) -> None:
        """A ChangeCipherSpec is one byte; in TLS 1.3 it is for the handshake only."""
        if record.body != b"\1" or (self.session.version == "1.3" and self.epoch):
            self._problem("change-cipher-spec", record.offset)
        self._search(record, b"")

    def _search(self, record: Record, before: bytes) -> None:
        """Look for payload in a record that is not protected; `before`: what its body goes on from."""
        found = self.needles.first(before + record.body)
        if found is not None:
            found = found._replace(at=found.at - len(before))
            self._differ(Difference("clear", record._replace(sequence=record.number), found=found))

    def _protected(self, schedule: Schedule, record: Record) -> None:
        """One protected record: header before length before nonce before content."""
        epoch = schedule.get(self.epoch)
        self.tally.protected += 1
        self.sequence += 1
        wrong = Difference("start", record) if record.header[:3] != self._start(record) else None
        if len(record.body) < epoch.overhead:
            self._differ(wrong or Difference("malformed", record))
            return
        nonce = self._nonce(epoch, record)
        content = (self._content12 if epoch.version == "1.2" else self._content13)(epoch, record)
        if self.ended:
            return
        excess = self._count(content, record)
        wrong = wrong or nonce or content.wrong or excess
        if wrong:
            self._differ(wrong)
        else:
            self._right(content)

    def _start(self, record: Record) -> bytes:
        """Type and version that a protected record must have."""
        kind = APPLICATION if self.session.version == "1.3" else record.kind
        return bytes([kind, 3, 3])

    def _count(self, content: Content, record: Record) -> Difference | None:
        """Application data, right or not; what of it is beyond the payload."""
        if not content.application:
            return None
        self.tally.app_records += 1
        self.tally.app_bytes += content.size
        self.tally.sizes[content.size] += 1
        if self.payload is None or self.tally.app_bytes <= len(self.payload):
            return None
        return Difference("excess", record, content.text[max(0, len(self.payload) - record.position) :])

    def _right(self, content: Content) -> None:
        self.tally.right += 1
        self.tally.authentic_bytes += content.size
        if content.compared:
            self.tally.payload_bytes += content.size

    def _nonce(self, epoch: Epoch, record: Record) -> Difference | None:
        """TLS 1.2 GCM: each explicit nonce is the one before plus 1, as OpenSSL and the kernel make them."""
        if not epoch.explicit:
            return None
        wire = record.body[: epoch.explicit]
        nonce, expected = int.from_bytes(wire, "big"), self.next_nonce
        reuse = nonce in self.nonces
        self.nonces.add(nonce)
        self.next_nonce = (nonce + 1) & 0xFFFFFFFFFFFFFFFF
        if expected < 0:
            self.tally.nonce_first = wire.hex()
        wrong = expected >= 0 and nonce != expected
        return Difference("nonce", record, nonce=expected, reuse=reuse) if wrong else None

    def _expected(self, record: Record, size: int) -> bytes | None:
        """The payload's next bytes, if there is one and it has this many."""
        end = record.position + size
        return (
            self.payload[record.position : end]
            if self.payload is not None and end <= len(self.payload)
            else None
        )

    def _content12(self, epoch: Epoch, record: Record) -> Content:
        """TLS 1.2: application data is sealed again and compared, all else is opened."""
        size = len(record.body) - epoch.overhead
        application = record.kind == APPLICATION
        plain = self._expected(record, size) if application else None
        inner = None
        if plain is None:
            inner = epoch.open(record.kind, record.sequence, record.body)
            right = inner is not None
            self.tally.close_notify |= record.kind == ALERT and inner == CLOSE_NOTIFY
        else:
            wire = record.body[: epoch.explicit]
            right = epoch.seal(record.kind, record.sequence, wire, plain) == record.body[epoch.explicit :]
        wrong = None if right else Difference("content", record, plain)
        return Content(size, application, plain is not None, wrong, inner or b"")

    def _content13(self, epoch: Epoch, record: Record) -> Content:
        """TLS 1.3: the type and the padding are inside, so the record is opened first."""
        inner = epoch.open(record.kind, record.sequence, record.body)
        if inner is None:
            return self._broken13(record, len(record.body) - epoch.overhead)
        content = inner.rstrip(b"\0")
        if not content:
            return Content(0, False, wrong=Difference("malformed", record))
        kind, content = content[-1], content[:-1]
        if kind != APPLICATION:
            self._inside13(kind, content)
            return Content(len(content), False)
        plain = self._expected(record, len(content))
        if plain is None or plain == content:
            return Content(len(content), True, plain is not None, text=content)
        # an AEAD seals a plaintext in one way only: authentic and equal means that sealing again gives this
        return Content(len(content), True, True, Difference("content", record, plain + inner[len(content) :]))

    def _broken13(self, record: Record, size: int) -> Content:
        """Not authentic: application data without padding, after the handshake."""
        if self.client and self.tally.protected == 1 and self.session.early:
            self._stop("early-data", record.offset)
        if record.epoch == 0:
            return Content(size, False, wrong=Difference("content", record))
        plain = self._expected(record, size)
        inner = None if plain is None else plain + bytes([APPLICATION])
        return Content(size, True, plain is not None, Difference("content", record, inner))

    def _inside13(self, kind: int, content: bytes) -> None:
        """Alerts and handshake messages: the next record may be the first of the next epoch."""
        self.tally.close_notify |= kind == ALERT and content == CLOSE_NOTIFY
        if kind != HANDSHAKE:
            return
        last = FINISHED if self.epoch == 0 else KEY_UPDATE
        if last in (message[0] for message in self.hidden.feed(content)):
            self.epoch += 1
            self.sequence = 0

    def _end(self, at: int) -> None:
        """Judge the end of the direction; `at`: where the records ended."""
        self.tally.epochs = self.epoch + 1 if self.guarded else 0
        stream, size = self.stream, len(self.stream.data)
        if stream.empty:
            if self.payload:
                self._problem("payload-not-covered")
            return
        if stream.gap:
            self._problem("gap", size)
        proven = self.payload is not None and bool(self.tally.right)
        proven = proven and self.tally.payload_bytes == self.tally.app_bytes == len(self.payload or b"")
        if stream.fin is None and not proven:
            self._problem("reset" if stream.rst else "no-close")
        if stream.fin is None and not stream.gap and not self.ended and at < size:
            self._tail(at)
        if stream.fin is not None and stream.reach > stream.fin:
            self._problem("data-after-fin", stream.fin)
        whole = stream.fin is not None and not stream.gap and not self.ended
        if whole and at < min(size, stream.fin or 0):
            self._differ(Difference("length", self._record(at, b"")))
        self._covered(at, whole and self.schedule is not None)

    def _tail(self, at: int) -> None:
        """Bytes behind the last record, of a stream whose end nobody saw."""
        self._problem("tail", at)
        if self.schedule is not None:
            self._search(self._record(at, self.stream.data[at:]), b"")

    def _covered(self, at: int, whole: bool) -> None:
        """Payload and application data have the same length; `whole`: the stream is complete and was read."""
        if self.payload is None:
            return
        if self.tally.app_bytes < len(self.payload):
            if whole:
                self._differ(Difference("missing", self._record(at, b"")))
            else:
                self._problem("payload-not-covered")
