"""What if payload is altered on its way out of an interface? tc pedit flips bits of chosen TLS records.

Below kernel TLS and above the card this says who encrypts: altered plaintext arrives authentic, altered
ciphertext is refused. On the wire it is an attacker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from offload.errors import ConfigError, Refused, RigError
from offload.host.base import Host

HEADER, TAG = 5, 16  # bytes around a record's content (RFC 5246 section 6.2.1, RFC 5288 section 3)
REACH = 1100  # bytes of content and tag that are surely in a record's first segment, at MTU 1280, any options
WORD = 4  # pedit alters 32-bit words, and leaves one that ends behind the packet (tcf_pedit_act())
PREF = 47100  # filters with these priorities are ours
# words of a TCP header: bare, and with the time stamps that Linux sends by default (net/ipv4/tcp_output.c)
TCP_WORDS = (5, 8)
NETWORK = {4: ("ip", 20), 6: ("ipv6", 40)}  # name, header bytes; options are never matched


@dataclass(frozen=True)
class Target:
    """A record to alter, wherever a packet begins with it: plaintext length, and bits to flip by offset.

    Only the content can be altered and, in TLS 1.2, the first 12 bytes of the tag behind it, and only their
    first REACH bytes: never a header or a nonce.
    `port`: the TCP port of the end that `sends` or not. `version`: "1.2" (AES-GCM only) or "1.3".
    """

    port: int
    size: int
    flips: Mapping[int, int]
    version: str = "1.2"
    family: int = 4
    sends: bool = False

    def __post_init__(self) -> None:
        last = max(self.flips, default=-1)
        reach = min(self.size + (TAG - WORD if self.version == "1.2" else 0), REACH)
        if not (self.flips and min(self.flips) >= 0 and last < reach and self.size <= 16384):
            raise ConfigError(
                f"cannot flip bits at {sorted(self.flips)} of {self.size} bytes", f"0 to {reach - 1}"
            )
        if not all(0 < bits < 256 for bits in self.flips.values()):
            raise ConfigError(f"bits {sorted(self.flips.values())}", "1 to 255: a mask of the flipped bits")

    @property
    def before(self) -> int:
        """Bytes from the record's first to its content: header, and explicit nonce in TLS 1.2."""
        return HEADER + (8 if self.version == "1.2" else 0)

    @property
    def head(self) -> bytes:
        """The record's header; TLS 1.3 adds one byte of inner type."""
        length = self.before - HEADER + self.size + TAG + (self.version == "1.3")
        return b"\x17\x03\x03" + length.to_bytes(2, "big")

    def altered(self, content: bytes) -> bytes:
        """Return what becomes of this content; what is altered of the tag is not part of it."""
        out = bytearray(content)
        for at, bits in self.flips.items():
            if at < len(out):
                out[at] ^= bits
        return bytes(out)

    def filter(self, words: int, checksum: bool) -> list[str]:
        """Return match and action for `tc filter add`, for a TCP header of this many 32-bit words."""
        name, ip = NETWORK[self.family]
        payload = ip + 4 * words
        match = [("u8", "0x45", "0xff", 0)] if name == "ip" else []  # no IP options
        match += [("u8", "6", "0xff", 9 if name == "ip" else 6)]  # TCP
        match += [("u16", str(self.port), "0xffff", ip if self.sends else ip + 2)]
        match += [("u8", f"{words << 4:#x}", "0xf0", ip + 12)]
        match += [("u32", f"0x{self.head[:4].hex()}", "0xffffffff", payload)]
        match += [("u8", f"{self.head[4]:#x}", "0xff", payload + 4)]
        text = [
            word for kind, value, mask, at in match for word in ("match", kind, value, mask, "at", str(at))
        ]
        keys = [
            f"munge offset {payload + self.before + at} u8 invert retain {bits:#x}"
            for at, bits in sorted(self.flips.items())
        ]
        csum = ["pipe", "action", "csum", "tcp"] if checksum else []
        return [*text, "action", "pedit", *" ".join(keys).split(), *csum]


class Mangler:
    """Filters that are in place; `mangling()` makes it."""

    def __init__(self, host: Host, dev: str, targets: Sequence[Target]) -> None:
        self._host, self._dev, self._count = host, dev, len(targets)

    def hits(self) -> list[int]:
        """Return how many segments altered packets had so far, for each target (a TSO packet has many)."""
        found = [0] * self._count
        for row in _filters(self._host, self._dev, "egress"):
            for action in row.get("options", {}).get("actions", [])[:1]:
                found[row["pref"] - PREF] += action["stats"]["packets"]
        return found


@contextmanager
def mangling(host: Host, dev: str, targets: Sequence[Target], *, checksum: bool = False) -> Iterator[Mangler]:
    """Alter what leaves `dev` of the host until the block ends; what was found there is there again after.

    `checksum`: make the TCP checksum right again. Needed on the wire; where a socket's own packets leave, the
    card or the kernel makes it later, from what it finds then. Refused if there are filters already: theirs
    could come first. RigError if the kernel does not take ours.
    """
    made = _claim(host, dev)
    try:
        _tc(host, "-batch", "-", lines=_lines(dev, targets, checksum))
        yield Mangler(host, dev, targets)
    finally:
        _tc(
            host,
            *(("qdisc", "del", "dev", dev, "clsact") if made else ("filter", "del", "dev", dev, "egress")),
        )


def _lines(dev: str, targets: Sequence[Target], checksum: bool) -> str:
    """Return the commands that make the filters; one process is enough for all."""
    lines = ""
    for number, target in enumerate(targets):
        where = f"dev {dev} egress protocol {NETWORK[target.family][0]} pref {PREF + number}"
        for words in TCP_WORDS:
            lines += f"filter add {where} u32 {' '.join(target.filter(words, checksum))}\n"
    return lines


def _claim(host: Host, dev: str) -> bool:
    """Make sure that there is a clsact without filters; say whether we made it."""
    kinds = {row["kind"] for row in _json(host, "qdisc", "show", "dev", dev)}
    if "ingress" in kinds:
        raise Refused(f"{dev} has an ingress qdisc, and clsact excludes it", f"tc qdisc show dev {dev}")
    if "clsact" not in kinds:
        _tc(host, "qdisc", "add", "dev", dev, "clsact")
        return True
    for direction in ("egress", "ingress"):
        if _filters(host, dev, direction):
            raise Refused(
                f"{dev} already has filters on its {direction}", f"tc filter show dev {dev} {direction}"
            )
    return False


def _filters(host: Host, dev: str, direction: str) -> list[dict[str, Any]]:
    return _json(host, "-s", "filter", "show", "dev", dev, direction)


def _json(host: Host, *words: str) -> list[dict[str, Any]]:
    text = _tc(host, "-j", *words).strip()
    rows: list[dict[str, Any]] = json.loads(text) if text else []
    return rows


def _tc(host: Host, *words: str, lines: str = "") -> str:
    done = host.run(["tc", *words], input=lines.encode(), check=False)
    if done.rc == 127:
        raise RigError(f"program tc is not installed ({done.where})", "apt install iproute2")
    if done.rc != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise RigError(
            f"tc failed ({done.where}): tc {' '.join(words)}: {said}\n{lines}".rstrip(),
            "modprobe cls_u32 act_pedit act_csum",
        )
    return done.text
