"""The kernel's own impairments, netem, on one port of the wire: bulk and delay, and seldom a seed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from offload.errors import CommandFailed, ConfigError, Refused
from offload.host.base import Bench, Host
from offload.host.tools import tool
from offload.suite.traffic.impairments.place import (
    NET_ADMIN,
    STATUS,
    check_no_end,
    check_rights,
    links,
    read_files,
    wire_of,
)
from offload.suite.traffic.impairments.rules import check_directions

LIMIT = 100_000  # packets: netem's own limit of 1000 would be one more loss


@dataclass(frozen=True)
class Netem:
    """What netem is asked for: shares in percent, `delay` and `jitter` in ms, `rate` in Mbit/s, 0 for none.

    `seed` is used where kernel and tc know it (Linux 6.6, iproute2 6.6). ConfigError for what netem
    cannot do, or does not do as one would think.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    reorder: float = 0.0
    delay: float = 0.0
    jitter: float = 0.0
    rate: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for what in ("loss", "duplicate", "corrupt", "reorder"):
            if not 0 <= getattr(self, what) <= 100:
                raise ConfigError(f"{what} of {getattr(self, what)} %", "a share in percent, 0 to 100")
        for what in ("delay", "jitter", "rate", "seed"):
            if getattr(self, what) < 0:
                raise ConfigError(f"{what} is {getattr(self, what)}", "0 or more")
        if self.reorder and not self.delay:
            raise ConfigError(
                "netem reorders only delayed packets",
                "set delay too: netem sends the reordered packets at once",
            )
        if self.jitter and not self.delay:
            raise ConfigError("netem's jitter varies its delay, so it needs a delay", "set delay too")
        if not self.words():
            raise ConfigError("netem without a setting", "set loss, delay, rate, ...")

    def words(self) -> list[str]:
        """The options of `tc qdisc ... netem`, without the seed."""
        words: list[str] = []
        if self.delay:
            words += ["delay", f"{self.delay:g}ms"] + ([f"{self.jitter:g}ms"] if self.jitter else [])
        for what in ("loss", "duplicate", "corrupt", "reorder"):
            words += [what, f"{getattr(self, what):g}%"] if getattr(self, what) else []
        return words + (["rate", f"{self.rate:g}mbit"] if self.rate else [])


@dataclass(frozen=True)
class Working:
    """netem at work on a port; `seeded` says whether the kernel took the seed."""

    host: Host
    port: str
    asked: Netem
    seeded: bool

    def statistics(self) -> dict[str, int]:
        """Return packets, bytes and drops so far."""
        row = _root(self.host, self.port, "-s")
        return {name: int(row.get(name, 0)) for name in ("packets", "bytes", "drops")}

    def json(self) -> dict[str, Any]:
        """Return what the evidence keeps; a seed only if it was used."""
        asked = {name: value for name, value in vars(self.asked).items() if value and name != "seed"}
        seed = self.asked.seed if self.seeded else None
        return {"tool": "netem", "port": self.port, **asked, "seed": seed, **self.statistics()}


def _root(host: Host, port: str, *options: str) -> dict[str, Any]:
    """The root qdisc of a port as tc has it."""
    done = tool(host, ["tc", *options, "-j", "qdisc", "show", "dev", port, "root"])
    try:
        rows = json.loads(done.checked().text)
        return next((row for row in rows if row.get("root")), rows[0] if rows else {})
    except (ValueError, TypeError, AttributeError):
        raise CommandFailed(list(done.argv), done.rc, done.stdout, b"no list of qdiscs") from None


def _check_default(host: Host, port: str) -> None:
    """Refused if somebody has put a qdisc there: the kernel's own has the handle 0."""
    found = _root(host, port)
    if found and found.get("handle") != "0:":
        raise Refused(
            f"{port} already has a queueing discipline: {found.get('kind')} {found.get('handle')}",
            f"tc qdisc del dev {port} root",
        )


def _add(host: Host, port: str, asked: Netem) -> bool:
    """Add it, with the seed if tc and kernel know what that is: whether they do."""
    argv = ["tc", "qdisc", "add", "dev", port, "root", "netem", "limit", str(LIMIT), *asked.words()]
    if asked.seed:
        done = tool(host, [*argv, "seed", str(asked.seed)])
        if done.rc == 0:
            return int(_root(host, port).get("options", {}).get("seed", 0)) == asked.seed
        if b'"seed"' not in done.stderr:
            _explain(done.stderr, port)
            done.checked()
    done = tool(host, argv)
    _explain(done.stderr, port)
    done.checked()
    return False


def _explain(stderr: bytes, port: str) -> None:
    if b"qdisc kind is unknown" in stderr:
        raise Refused(f"this kernel has no netem for {port}", "modprobe sch_netem")


@contextmanager
def netem(bench: Bench, port: str, asked: Netem, *, offloads: tuple[str, ...] = ()) -> Iterator[Working]:
    """Put netem on what leaves a port of the wire (towards the end behind it); the qdisc found comes back.

    `offloads`: as for `wirebox`. Before anything changes: Refused on an end of the bench, saying why, on a
    port that has a qdisc already, and for impairments that cannot meet what the card offloads. ConfigError
    for a port that is not of the wire; NoDevice, NoPermission.
    """
    host = wire_of(bench, [port])
    check_directions(["b>a" if port == bench.wire_ports[0] else "a>b"], offloads)
    check_no_end(links(host, [port]), [port])
    check_rights(host, read_files(host, [STATUS]).get(STATUS, ""), NET_ADMIN)
    _check_default(host, port)
    seeded = _add(host, port, asked)
    try:
        yield Working(host, port, asked, seeded)
    finally:  # without a root qdisc the kernel puts its default back, which is what was found
        host.run(["tc", "qdisc", "del", "dev", port, "root"])
