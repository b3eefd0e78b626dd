"""The only reader of counters: /proc/net/tls_stat, `ethtool -S` -> Snapshot; Snapshot - Snapshot = Delta."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from offload.card.profile import Profile, near
from offload.errors import RigError
from offload.host.base import Host
from offload.host.tools import tool

U64 = 2**64 - 1
MAX_LINES = 20_000  # mlx5 with 128 channels shows about 10,000
NAME = re.compile(r"[A-Za-z0-9_.\[\]() :/-]{1,80}")
# mlx5 rx{i}_, tx{i}_, ch{i}_, qos_tx{i}_; virtio and veth rx_queue_{i}_; nfp rvec_{i}_
PER_RING = re.compile(r"(?:qos_)?(?:[rt]x|ch|rvec|[rt]x_?queue|queue)_?\d+_.*")
GAUGES = ("TlsCurr",)  # how many connections there are now: may go down


class MissingCounter(RigError):
    """A counter that was asked for is not there (which is not the same as 0)."""


@dataclass(frozen=True)
class Snapshot:
    """Counters at one moment; `tls` is None where kernel TLS is not loaded.

    `problems` are lines that made no sense; `names` maps the names of
    tls-offload.rst to the driver's, as the profile says.
    """

    dev: str
    at: float
    tls: Mapping[str, int] | None
    driver: Mapping[str, int]
    names: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def values(self) -> dict[str, int]:
        """Every counter; the driver's under the kernel document's name where the profile maps it."""
        mapped = {kernel: self.driver[own] for kernel, own in self.names.items() if own in self.driver}
        return {**self.driver, **mapped, **(self.tls or {})}

    def __getitem__(self, name: str) -> int:
        return _pick(self.values(), name, f"on {self.dev}")

    def get(self, name: str, default: int | None = None) -> int | None:
        """The counter, or `default` if there is none."""
        return self.values().get(name, default)

    def __sub__(self, before: Snapshot) -> Delta:
        return difference(before, self)


@dataclass(frozen=True)
class Delta:
    """What moved between two snapshots: only counters that were in both; the rest is named."""

    dev: str
    seconds: float
    moved: Mapping[str, int]
    appeared: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    backwards: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> int:
        if name in self.backwards:
            raise MissingCounter(
                f"counter {name} of {self.dev} went backwards: it was reset, or its value is wrong"
            )
        return _pick(self.moved, name, f"in both snapshots of {self.dev}")

    def get(self, name: str, default: int | None = None) -> int | None:
        """How far the counter moved, or `default` if it is not in both or went backwards."""
        return default if name in self.backwards else self.moved.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self.moved)

    def nonzero(self, prefix: str = "") -> dict[str, int]:
        """The counters that moved and whose name starts with `prefix`."""
        return {n: v for n, v in self.moved.items() if v and n.startswith(prefix)}


def _pick(values: Mapping[str, int], name: str, where: str) -> int:
    """A value by name; MissingCounter with the nearest name."""
    if name not in values:
        raise MissingCounter(f"no counter {name} {where}{near(name, values)}")
    return values[name]


def difference(before: Snapshot, after: Snapshot) -> Delta:
    """After minus before. Counters of kernel TLS start at 0 when the module is loaded in between."""
    old, new = before.values(), after.values()
    if before.tls is None:
        old |= dict.fromkeys(after.tls or {}, 0)
    both = [n for n in new if n in old]
    moved = {n: new[n] - old[n] for n in both}
    return Delta(
        after.dev,
        after.at - before.at,
        moved,
        appeared=tuple(n for n in new if n not in old),
        vanished=tuple(n for n in old if n not in new),
        backwards=tuple(n for n, v in moved.items() if v < 0 and not n.startswith(GAUGES)),
        problems=before.problems + after.problems,
    )


def snapshot(host: Host, dev: str, profile: Profile | None = None) -> Snapshot:
    """Read both sources now; through commands, so that the network namespace is the host's."""
    tls, wrong_tls = tls_stat(host)
    driver, wrong = driver_stats(host, dev)
    names = dict(profile.counters.tx.names + profile.counters.rx.names) if profile else {}
    return Snapshot(dev, time.monotonic(), tls, driver, names, tuple(wrong_tls + wrong))


def tls_stat(host: Host) -> tuple[dict[str, int] | None, list[str]]:
    """/proc/net/tls_stat of the host's namespace (None: kernel TLS is not loaded), and odd lines."""
    done = host.run(["cat", "/proc/net/tls_stat"], check=False)
    return parse(done.text.replace("\t", ": ")) if done.rc == 0 else (None, [])


def driver_stats(host: Host, dev: str) -> tuple[dict[str, int], list[str]]:
    """`ethtool -S` without the per-ring counters; empty for a driver that has none.

    Text only: `ethtool --json -S` is refused by ethtool 6.1 to 7.2.
    """
    done = tool(host, ["ethtool", "-S", dev])
    return parse(done.text) if done.rc == 0 else ({}, [])


def parse(text: str) -> tuple[dict[str, int], list[str]]:
    """Lines of `name: value`, and problems; a driver's text is hostile: bounded and checked.

    ch_ktls pads its names with blanks (cxgb4_ethtool.c:121).
    """
    found: dict[str, int] = {}
    problems: list[str] = []
    lines = text.splitlines()
    for line in lines[:MAX_LINES]:
        name, colon, value = (part.strip() for part in line.rpartition(":"))
        if not colon or (not value and not found):
            continue  # the title line, `NIC statistics:`
        if wrong := _wrong(name, value, found):
            problems.append(f"counter line {line.strip()[:80]!r}: {wrong}")
        elif not PER_RING.fullmatch(name):
            found[name] = int(value)
    if len(lines) > MAX_LINES:
        problems.append(f"{len(lines)} counter lines; only the first {MAX_LINES} were read")
    return found, problems[:50]


def _wrong(name: str, value: str, found: Mapping[str, int]) -> str:
    """Return what is wrong with a line, or ''."""
    if not NAME.fullmatch(name):
        return "odd name"
    if not re.fullmatch(r"[0-9]{1,20}", value) or int(value) > U64:
        return "not a number of 64 bits"
    return "name given twice" if name in found else ""
