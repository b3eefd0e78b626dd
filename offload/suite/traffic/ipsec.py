"""ESP in transport mode between two hosts, by `ip xfrm`: what stands where kernel TLS would, and goes again.

Keys are random, go to `ip` on its standard input, and are in no argv, environment, file or log. The states
and policies have a hard time limit in the kernel, so that kill -9 leaves nothing for ever. The next
run on the same pair of addresses removes what it finds of ours.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from offload.card.nic import features
from offload.errors import ConfigError, Refused, RigError
from offload.host.base import Host, Side
from offload.host.tools import tool
from offload.suite.traffic.learned import forgotten

MARK = 0x6B74  # "kt": reqid of our states and priority of our policies
LIFE = 3600  # seconds until the kernel takes away what nobody took away
FEATURE = "esp-hw-offload"
MODULES = ("xfrm_user", "esp4", "esp4_offload")
STAT = "/proc/net/xfrm_stat"
# name: (words of `ip xfrm state`, bytes of key). RFC 4106: the last four bytes are the salt.
CIPHERS = {
    "null": ("enc ecb(cipher_null) {key}", 0),
    "gcm-128": ("aead rfc4106(gcm(aes)) {key} 128", 20),
    "gcm-256": ("aead rfc4106(gcm(aes)) {key} 128", 36),
}


@dataclass(frozen=True)
class Association:
    """One direction: from, to, the number that names its state, and the key, which nothing shows."""

    source: str
    target: str
    spi: int
    key: str = field(repr=False)


@dataclass(frozen=True)
class Counted:
    """What a host's kernel counts of the state of one direction: payload with TCP header, and packets."""

    bytes: int
    packets: int


def association(source: str, target: str, cipher: str) -> Association:
    """A direction with a new key. ConfigError for a cipher that there is not."""
    if cipher not in CIPHERS:
        raise ConfigError(f"no IPsec cipher {cipher!r}", f"choose one of {', '.join(CIPHERS)}")
    size = CIPHERS[cipher][1]
    key = "0x" + secrets.token_hex(size) if size else '""'
    return Association(source, target, 0x1000 + secrets.randbelow(1 << 31), key)


def state(one: Association, cipher: str, card: str = "", life: int = LIFE) -> str:
    """The line for `ip -batch` that makes a state. `card`: "DEV in" or "DEV out" for a card that encrypts.

    Extended sequence numbers: 2^32 packets are nine minutes of 100 Gbit/s.
    """
    how = CIPHERS[cipher][0].format(key=one.key)
    dev, _, side = card.partition(" ")
    offload = f" offload dev {dev} dir {side}" if card else ""
    ident = f"src {one.source} dst {one.target} proto esp spi {one.spi:#x} reqid {MARK}"
    window = "flag esn replay-window 128"
    return f"xfrm state add {ident} mode transport {window} {how} limit time-hard {life}{offload}"


def policy(one: Association, side: str, life: int = LIFE) -> str:
    """The line that demands it of all TCP from or to (`out`, `in`) a host, and takes nothing else."""
    ends = f"src {one.source} dst {one.target}"
    demand = f"tmpl {ends} proto esp reqid {MARK} mode transport level required"
    return f"xfrm policy add {selector(one, side)} priority {MARK} limit time-hard {life} {demand}"


def selector(one: Association, side: str) -> str:
    return f"src {one.source}/32 dst {one.target}/32 proto 6 dir {side}"  # TCP, where no /etc/protocols is


def missing(host: Host) -> str:
    """Why a host cannot do ESP, or ''; loads its modules, without which there is no offload of segments."""
    done = tool(host, ["modprobe", "-a", *MODULES])
    return f"the kernel of {host.name} has no ESP (modules {', '.join(MODULES)})" if done.rc else ""


def without_card(host: Host, dev: str) -> str:
    """Why a card does not encrypt ESP, or ''."""
    found = features(host, dev).get(FEATURE)
    if found is None or (found.fixed and not found.active):
        return f"{dev} has no ESP crypto offload: {FEATURE} is {found or 'unknown to this kernel'}"
    return ""


class Esp:
    """Two hosts whose TCP with each other is in ESP; `protected` makes it."""

    def __init__(self, near: Side, far: Side, cipher: str, card: bool, life: int) -> None:
        self.near, self.far, self.cipher, self._card, self._life = near, far, cipher, card, life
        self.out, self.into = association(near.v4, far.v4, cipher), association(far.v4, near.v4, cipher)

    def _associations(self, side: Side) -> tuple[tuple[Association, str], ...]:
        """Both directions as this side sees them."""
        mine = side is self.near
        return (self.out, "out" if mine else "in"), (self.into, "in" if mine else "out")

    def clear(self) -> None:
        """Take away what a killed run left. Refused if somebody else has a policy for this pair."""
        for side in (self.near, self.far):
            _clear(side.host, self._associations(side))

    def set_up(self) -> None:
        """States first, at both ends, then what demands them. RigError in words."""
        for side in (self.near, self.far):
            lines = [
                state(one, self.cipher, self._offload(side, to), self._life)
                for one, to in self._associations(side)
            ]
            _batch(side.host, lines)
        for side in (self.near, self.far):
            _batch(side.host, [policy(one, to, self._life) for one, to in self._associations(side)])

    def _offload(self, side: Side, to: str) -> str:
        """The card's part: the near host's, where it was asked for."""
        return f"{side.dev} {to}" if self._card and side is self.near else ""

    def take_down(self) -> None:
        """Take all of it away; harmless again. RigError if something stays."""
        left = []
        for side in (self.near, self.far):
            words = [f"xfrm policy delete {selector(one, to)}" for one, to in self._associations(side)]
            words.append(f"xfrm state deleteall reqid {MARK}")
            side.host.run(["ip", "-force", "-batch", "-"], input=_text(words), check=False)
            left += [f"{what} on {side.host.name}" for what in ("state", "policy") if _ours(side.host, what)]
        if left:
            raise RigError(f"could NOT remove IPsec {', '.join(left)}", f"it expires in {self._life} s")

    def counted(self, side: Side, one: Association) -> Counted:
        """Return what a side's kernel has counted of a direction. RigError if its state is gone."""
        found = re.search(r"lifetime current:\s+(\d+)\(bytes\), (\d+)\(packets\)", self._listed(side, one))
        if found is None:
            raise RigError(f"{side.host.name}: no IPsec state for {one.source} to {one.target}")
        return Counted(int(found[1]), int(found[2]))

    def by_card(self, one: Association) -> bool:
        """Whether the near side's kernel has given a direction to the card.

        If the driver does not take it (-EOPNOTSUPP), the kernel encrypts by itself and `ip` reports success.
        """
        return "offload parameters" in self._listed(self.near, one)

    def _listed(self, side: Side, one: Association) -> str:
        """The state of a direction as `ip` shows it, without its keys."""
        ident = ["src", one.source, "dst", one.target, "proto", "esp", "spi", f"{one.spi:#x}"]
        return tool(side.host, ["ip", "-s", "xfrm", "state", "list", *ident, "nokeys"]).text


def _text(lines: Sequence[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _batch(host: Host, lines: Sequence[str]) -> None:
    """Run lines of `ip`. Its words are dropped if a key could be among them."""
    done = host.run(["ip", "-batch", "-"], input=_text(lines), check=False)
    if done.rc:
        said = re.sub(r"0x[0-9a-fA-F]{9,}", "(key)", " ".join(done.stderr.decode("utf-8", "replace").split()))
        raise RigError(f"ip xfrm on {host.name}: {said[:200] or f'exit code {done.rc}'}")


def _ours(host: Host, what: str) -> bool:
    """Whether there is a state or a policy of ours."""
    if what == "state":
        return bool(tool(host, ["ip", "xfrm", "state", "list", "reqid", str(MARK), "nokeys"]).text.strip())
    return f"priority {MARK}" in tool(host, ["ip", "xfrm", "policy", "list"]).text


def _clear(host: Host, associations: Sequence[tuple[Association, str]]) -> None:
    """Take away what a killed run left. Refused if somebody else has a policy for this pair."""
    for one, to in associations:
        listed = ["ip", "xfrm", "policy", "list", "src", one.source, "dst", one.target, "dir", to]
        found = tool(host, listed).text.strip()
        if found and f"priority {MARK}" not in found:
            raise Refused(
                f"{host.name} has an IPsec policy for {one.source} to {one.target} already",
                "another program made it: measure on other addresses",
            )
        if found:
            _batch(host, [f"xfrm policy delete {selector(one, to)}"])
    host.run(["ip", "xfrm", "state", "deleteall", "reqid", str(MARK)], check=False)


@contextmanager
def protected(near: Side, far: Side, cipher: str, *, card: bool = False, life: int = LIFE) -> Iterator[Esp]:
    """Put all TCP between two sides into ESP while the block runs. `card`: the near side's card encrypts.

    ConfigError for a cipher that there is not; Refused if the pair has IPsec already; RigError in words.
    """
    made = Esp(near, far, cipher, card, life)
    made.clear()
    with forgotten(near, far):  # in ESP, an open connection has less room than its TCP knows
        try:
            made.set_up()
            yield made
        finally:
            made.take_down()


def errors(host: Host) -> dict[str, int]:
    """The host's counters of what IPsec refused or lost (/proc/net/xfrm_stat). RigError if there are none."""
    try:
        rows = [line.split() for line in host.read(STAT).decode().splitlines()]
        return {name: int(value) for name, value in rows}
    except (OSError, ValueError):
        raise RigError(f"{host.name}: {STAT} cannot be read", "CONFIG_XFRM_STATISTICS") from None
