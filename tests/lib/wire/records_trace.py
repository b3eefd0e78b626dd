"""Which records came to the kernel decrypted by the card: its trace event tls:tls_device_decrypted."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from offload.errors import RigError
from offload.host.base import Host

TRACING = "/sys/kernel/tracing"
EVENT = "events/tls/tls_device_decrypted"
# net/tls/trace.h: the record as a whole is ciphertext, or as a whole plaintext, or neither of the two
LINE = re.compile(
    r"tls_device_decrypted: sk=(\S+) tcp_seq=(\d+) rec_no=(\d+) len=(\d+) encrypted=([01]) decrypted=([01])"
)
SHARES = {("0", "1"): "full", ("0", "0"): "part", ("1", "0"): "none"}
OVERHEAD = 29  # bytes of a TLS 1.2 AES-GCM record around its payload: header, nonce, tag


@dataclass(frozen=True)
class Met:
    """A record: its number in the connection, bytes of payload, what the card decrypted: full, part, none."""

    number: int
    size: int
    by_card: str


@dataclass(frozen=True)
class Share:
    """Bytes, with headers and tags, of the records that came decrypted: as a whole, and at least in part.

    `touched` is None if the trace has lost some.
    """

    whole: int
    touched: int | None


class Trace:
    """The kernel's trace of a host in a folder of its own, apart from whatever else is traced."""

    def __init__(self, host: Host, folder: str) -> None:
        self._host, self._folder = host, folder

    @contextmanager
    def taken(self) -> Iterator[Trace]:
        """Trace what the host receives while the block runs, from nothing on."""
        self._host.write(f"{self._folder}/trace", b"")  # whoever truncates it, empties it
        self._host.write(f"{self._folder}/{EVENT}/enable", b"1")
        try:
            yield self
        finally:
            self._host.write(f"{self._folder}/{EVENT}/enable", b"0")

    def records(self) -> list[Met]:
        """Return the records so far, in order; RigError if some were lost or are of several connections."""
        return parse(self._text())

    def share(self) -> Share:
        """Return what the card decrypted so far, of any connection."""
        return share(self._text())

    def _text(self) -> str:
        return self._host.run(["cat", f"{self._folder}/trace"]).text


def parse(text: str) -> list[Met]:
    """Return the records of a trace of one connection; RigError if it is not that, or not all of it."""
    if "EVENTS]" in text:
        raise RigError("the kernel's trace lost records: its buffer is too small")
    found = _events(text)
    if len({sk for sk, *_ in found}) > 1:
        raise RigError("more than one connection was received on the DUT while the records were traced")
    records = [Met(int(n), int(size) - OVERHEAD, SHARES[enc, dec]) for _, _, n, size, enc, dec in found]
    numbers = [record.number for record in records]
    if records and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise RigError(f"the kernel's trace does not have every record once: {numbers}")
    return records


def share(text: str) -> Share:
    """Return what a trace says that the card decrypted. A record that is tried twice counts once.

    Where a closed socket's place in memory is used again, `touched` has both of them, `whole` one.
    """
    whole, touched = dict[tuple[str, ...], int](), dict[tuple[str, ...], int]()
    for sk, seq, n, size, enc, dec in _events(text):
        if SHARES[enc, dec] == "full":
            whole[sk, n] = int(size)
        if SHARES[enc, dec] != "none":
            touched[sk, seq, n] = int(size)
    lost = "EVENTS]" in text
    return Share(sum(whole.values()), None if lost else sum(touched.values()))


def _events(text: str) -> list[tuple[str, ...]]:
    """Return the fields of each event. RigError if the kernel writes them otherwise."""
    found: list[tuple[str, ...]] = LINE.findall(text)
    if text.count("tls_device_decrypted:") != len(found):
        raise RigError("the kernel's trace of tls_device_decrypted has another form here", "net/tls/trace.h")
    return found


def shares(records: Iterable[Met]) -> dict[str, int]:
    """Return how many records the card decrypted in full, in part and not at all, and how many there are."""
    count = Counter(record.by_card for record in records)
    return {"records": count.total(), **{share: count[share] for share in SHARES.values()}}


def missing(host: Host) -> str:
    """Say what a host lacks for `tracing`; nothing if it has it."""
    there = host.run(["test", "-e", f"{TRACING}/{EVENT}/enable"], check=False).rc == 0
    return "" if there else f"{host.name} has no tracefs with {EVENT} at {TRACING}"


@contextmanager
def tracing(host: Host) -> Iterator[Trace]:
    """Trace the records that a host receives while the block runs."""
    with instance(host) as trace, trace.taken():
        yield trace


@contextmanager
def instance(host: Host) -> Iterator[Trace]:
    """A trace to be taken again and again: to make its folder, the kernel makes a file for each event."""
    folder = f"{TRACING}/instances/ktls-offload-{uuid.uuid4().hex[:8]}"
    host.run(["mkdir", folder])
    try:
        yield Trace(host, folder)
    finally:
        host.run(["rmdir", folder])
