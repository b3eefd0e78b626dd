"""Whether a direction's bytes can be what its honest end sent: record by record against the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.lib.wiregen.adversary.receiver import Finding, Flow, Rule
from tests.lib.wiregen.adversary.table import Fact

CCS, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23


@dataclass
class Reading:
    """A direction as read. `done`: how many protected records are there; `clear`: what is searched."""

    truth: tuple[Fact, ...]
    tls13: bool
    findings: list[Finding] = field(default_factory=list)
    done: int = 0
    hidden: bool = False  # TLS 1.2: ChangeCipherSpec was there
    talk: bytearray = field(default_factory=bytearray)
    clear: list[bytes] = field(default_factory=list)
    rest: bytes = b""

    @property
    def sealed(self) -> list[Fact]:
        """The protected records of the truth."""
        return [fact for fact in self.truth if fact.sealed]

    @property
    def app(self) -> int:
        """Bytes of application data that are there."""
        return sum(fact.app for fact in self.sealed[: self.done])

    def find(self, rule: Rule, why: str) -> None:
        """Note a finding."""
        self.findings.append((rule, why))


def split(stream: bytes) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each record; the last piece may be no whole one."""
    at = 0
    while at < len(stream):
        size = 5 + int.from_bytes(stream[at + 3 : at + 5], "big")
        yield at, stream[at : at + size]
        at += size


def implausible(record: bytes) -> bool:
    """Whether a whole header says what no record is."""
    size = int.from_bytes(record[3:5], "big")
    return not 20 <= record[0] <= 23 or record[1] != 3 or record[2] > 4 or size > 16640


def read_records(stream: bytes, truth: tuple[Fact, ...], tls13: bool) -> Reading:
    """Go through a stream."""
    reading = Reading(truth, tls13)
    for at, record in split(stream):
        if len(record) >= 5 and implausible(record):
            reading.find(Rule.NOT_EQUAL, f"no record at {at}")
            return reading
        if len(record) < 5 or len(record) < 5 + int.from_bytes(record[3:5], "big"):
            reading.rest = record
            break
        one_record(reading, at, record)
    judge_talk(reading)
    return reading


def one_record(reading: Reading, at: int, record: bytes) -> None:
    """A whole record: the next protected one of the truth, or one in plaintext that may be there."""
    kind, body = record[0], record[5:]
    begun = reading.done > 0 if reading.tls13 else reading.hidden
    if kind == DATA and (reading.tls13 or begun) or (begun and kind != CCS):
        expect(reading, at, record)
    elif kind == CCS:
        change(reading, at, record)
    else:
        reading.clear.append(body)
        if kind == HANDSHAKE:
            reading.talk += body
        else:
            reading.find(Rule.NOT_EQUAL, f"a record of type {kind} in clear at {at}")


def expect(reading: Reading, at: int, record: bytes) -> None:
    """A protected record must be the next one of the truth."""
    sealed = reading.sealed
    if reading.done < len(sealed) and sealed[reading.done].wire == record:
        reading.done += 1
    else:
        reading.find(Rule.NOT_EQUAL, f"the record at {at} is not what was sent")
        reading.done = min(reading.done + 1, len(sealed))


def change(reading: Reading, at: int, record: bytes) -> None:
    """ChangeCipherSpec: one byte of value 1, once in TLS 1.2, up to Finished in TLS 1.3."""
    late = not any(fact.greets for fact in reading.sealed[reading.done :])
    if record[5:] != b"\1" or (late if reading.tls13 else reading.hidden):
        reading.clear.append(record[5:])
        reading.find(Rule.NOT_EQUAL, f"ChangeCipherSpec at {at}")
    reading.hidden = True


def messages(talk: bytes) -> list[bytes]:
    """Handshake messages; the last one may be incomplete."""
    out, at = [], 0
    while at < len(talk):
        size = 4 + int.from_bytes(talk[at + 1 : at + 4], "big")
        out.append(talk[at : at + size])
        at += size
    return out


def judge_talk(reading: Reading) -> None:
    """The clear handshake: what the ends would notice cannot be seen here, but its shape can."""
    true = b"".join(fact.wire[5:] for fact in reading.truth if not fact.sealed and fact.wire[0] == HANDSHAKE)
    talk = bytes(reading.talk)
    reading.clear.append(talk)
    if true.startswith(talk):
        if len(talk) < len(true) and (reading.done or reading.hidden):
            reading.find(Rule.UNSURE, "a clear handshake message is missing")
        return
    reading.find(Rule.UNSURE, "the clear handshake is not what was sent")
    found = messages(talk)
    if len(found[-1]) < 4 or len(found[-1]) < 4 + int.from_bytes(found[-1][1:4], "big"):
        reading.find(Rule.NOT_EQUAL, "a clear handshake message without its end")
        found.pop()
    first = messages(true)[0][0]
    if reading.tls13 and (len(found) > 2 or any(message[0] != first for message in found)):
        reading.find(Rule.NOT_EQUAL, "a clear handshake message that is no hello")


def judge_end(reading: Reading, flow: Flow, app: int, asked: bool) -> None:
    """How the direction ends: closed, cut off, or with bytes that are no record."""
    whole = reading.app >= app
    if flow.gap():
        reading.find(Rule.PROBLEM, "a hole")
        return
    if reading.rest:
        reading.find(Rule.PROBLEM if flow.fin is None else Rule.DIFFERENT, "bytes behind the last record")
    if asked and not whole:
        reading.find(Rule.PROBLEM if flow.fin is None else Rule.DIFFERENT, "not all of the payload")
    if flow.fin is None and not (asked and whole):
        reading.find(Rule.PROBLEM, "nobody saw it close")
