"""What a NIC profile says, as frozen values: facts about a card and nothing else."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, replace
from typing import NamedTuple

DIRECTIONS = ("tx", "rx")
VERSIONS = ("1.2", "1.3")
CIPHERS = ("aes-gcm-128", "aes-gcm-256", "chacha20-poly1305")
FEATURES = {"tx": "tls-hw-tx-offload", "rx": "tls-hw-rx-offload"}
WORDS = {"tx": "transmit", "rx": "receive"}
# in /proc/net/tls_stat of a kernel that hands TLS 1.3 to cards: v17 of the series
TLS13_COUNTER = "TlsCurrTxRekey"
LOG = "tests/hw/test_90_log.py::test_kernel_log_is_clean"  # the test that reads the kernel's log

# Documentation/networking/tls-offload.rst 7.2:478-523, and tx_tls_del, which mlx5 and funeth have beyond it.
KERNEL_COUNTERS = {
    "tx": (
        "tx_tls_encrypted_packets",
        "tx_tls_encrypted_bytes",
        "tx_tls_ctx",
        "tx_tls_del",
        "tx_tls_ooo",
        "tx_tls_skip_no_sync_data",
        "tx_tls_drop_no_sync_data",
        "tx_tls_drop_bypass_req",
    ),
    "rx": (
        "rx_tls_decrypted_packets",
        "rx_tls_decrypted_bytes",
        "rx_tls_ctx",
        "rx_tls_del",
        "rx_tls_resync_req_pkt",
        "rx_tls_resync_req_start",
        "rx_tls_resync_req_end",
        "rx_tls_resync_req_skip",
        "rx_tls_resync_res_ok",
        "rx_tls_resync_res_skip",
        "rx_tls_err",
    ),
}


class Cell(NamedTuple):
    """One combination that a connection can have; whether a card promises it is the profile's matter."""

    direction: str
    version: str
    cipher: str

    def __str__(self) -> str:
        return f"{self.direction} TLS {self.version} {self.cipher}"


ALL_CELLS = tuple(Cell(d, v, c) for d in DIRECTIONS for v in VERSIONS for c in CIPHERS)


class PciId(NamedTuple):
    """Vendor and a range of device ids (first = last for one device), as numbers."""

    vendor: int
    first: int
    last: int
    name: str

    def __str__(self) -> str:
        last = "" if self.first == self.last else f"-{self.last:04x}"
        return f"{self.vendor:04x}:{self.first:04x}{last}"

    def covers(self, pci: str) -> bool:
        """Say whether `vvvv:dddd` is one of these."""
        vendor, _, device = pci.partition(":")
        try:
            return int(vendor, 16) == self.vendor and self.first <= int(device, 16) <= self.last
        except ValueError:
            return False


class Kconfig(NamedTuple):
    """A kernel option and the least that will do: `y`, or `m` (which also takes y)."""

    symbol: str
    wanted: str
    why: str

    def met_by(self, value: str) -> bool:
        """Say whether the kernel's value (`y`, `m` or '') will do."""
        return value == "y" or value == self.wanted


class Step(NamedTuple):
    """One thing to do before a direction is on: load a module or switch a feature."""

    kind: str  # "modprobe" or "feature"
    what: str
    direction: str
    why: str


@dataclass(frozen=True)
class Counters:
    """The driver's counters of one direction: `names` maps the kernel document's name to the driver's."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class CounterMap:
    """Counters of both directions, asked for by the kernel document's name."""

    tx: Counters = Counters()
    rx: Counters = Counters()

    def of(self, direction: str) -> Counters:
        """The counters of `tx` or `rx`."""
        return self.tx if direction == "tx" else self.rx

    def required(self, direction: str) -> tuple[str, ...]:
        """Kernel names that the driver must show and move: a verdict rests on them."""
        return self.of(direction).required

    def optional(self, direction: str) -> tuple[str, ...]:
        """Kernel names that are reported where they exist."""
        return self.of(direction).optional

    def dead(self, direction: str) -> tuple[str, ...]:
        """Names that the driver shows but never moves: never part of a criterion."""
        return self.of(direction).dead

    def absent(self, direction: str) -> tuple[str, ...]:
        """Kernel names that the driver does not count: a proof must do without them."""
        return self.of(direction).absent

    def name(self, kernel_name: str) -> str | None:
        """The driver's name of a counter; None if the driver has none."""
        return dict(self.tx.names + self.rx.names).get(kernel_name)

    def known(self, driver_name: str) -> bool:
        """Say whether the profile mentions a driver's counter at all."""
        named = {n for c in (self.tx, self.rx) for n in (*dict(c.names).values(), *c.dead)}
        own = self.tx.own + self.rx.own
        return driver_name in named or any(fnmatch.fnmatchcase(driver_name, o) for o in own)


class Part(NamedTuple):
    """A part number and whether it has crypto."""

    pattern: str
    crypto: bool
    note: str


@dataclass(frozen=True)
class Need:
    """What SKU or firmware it takes, and hints that help a person to find out.

    `minimum`: the oldest firmware that has all this profile knows of, '' if none is known; `gives`: what an
    older one lacks.
    """

    need: str
    hints: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    minimum: str = ""
    gives: str = ""


class Limitation(NamedTuple):
    """A known weakness that excuses one failure: that of `test`, in which `expect` is then seen.

    Where `test` reads the kernel's log, `expect` is the function that warns there. `no_resync`: a condition
    of scenarios, as in `ip=v4-options`. Receiving connections find no place again there; no scenario minds.
    """

    id: str
    what: str
    test: str
    expect: str
    link: str
    no_resync: str = ""

    def names(self, nodeid: str) -> bool:
        """Say whether this is the test; with any parameters, if `test` names none."""
        return self.test in (nodeid, nodeid.partition("[")[0])

    def seen_in(self, words: str) -> bool:
        """Say whether a failure with these words is the expected one."""
        return self.expect.lower() in words.lower()

    def warns(self) -> str:
        """The function of the kernel whose warning this is; '' if it is none."""
        return self.expect if self.names(LOG) else ""


class Note(NamedTuple):
    """A known weakness that no test meets: it tells a person what is then `seen`, and excuses nothing.

    `warn`: the direction that `doctor` warns of while it is on, '' for none.
    """

    id: str
    what: str
    seen: str
    link: str
    warn: str = ""


@dataclass(frozen=True)
class Profile:
    """One card."""

    id: str
    name: str
    vendor: str
    driver: str
    plays: str | None
    pci: tuple[PciId, ...]
    kconfig: tuple[Kconfig, ...]
    promises: frozenset[Cell]
    reasons: tuple[tuple[Cell, str], ...]
    defaults: tuple[tuple[str, bool], ...]
    steps: tuple[Step, ...]
    counters: CounterMap
    sku: Need
    firmware: Need
    limitations: tuple[Limitation, ...]
    notes: tuple[Note, ...]
    path: str
    later: frozenset[Cell] = frozenset()  # promises of a kernel that hands TLS 1.3 to cards

    def on(self, tls13: bool) -> Profile:
        """The card on a kernel that hands TLS 1.3 to cards (`tls13`), or on one that does not."""
        if not tls13 or not self.later:
            return self
        reasons = tuple((cell, why) for cell, why in self.reasons if cell not in self.later)
        return replace(self, promises=self.promises | self.later, reasons=reasons, later=frozenset())

    def promised(self, direction: str, version: str, cipher: str) -> bool:
        """Say whether the card offloads this combination."""
        return Cell(direction, version, cipher) in self.promises

    def cells(self) -> tuple[Cell, ...]:
        """Every combination, promised or not, in a fixed order."""
        return ALL_CELLS

    def reason(self, direction: str, version: str, cipher: str) -> str:
        """Why a combination is not promised; '' if it is."""
        return dict(self.reasons).get(Cell(direction, version, cipher), "")

    def directions(self) -> tuple[str, ...]:
        """The directions in which the card promises anything."""
        return tuple(d for d in DIRECTIONS if any(c.direction == d for c in self.promises))

    def why_no_direction(self, direction: str) -> str:
        """Why the card promises nothing at all in a direction; '' if it does."""
        return "" if direction in self.directions() else self.reason(direction, "1.2", "aes-gcm-128")

    def default(self, direction: str) -> bool:
        """Say whether the driver starts with the feature on."""
        return dict(self.defaults).get(direction, False)

    def offloads(self, direction: str) -> str:
        """Return what is offloaded in a direction, in a few words: `TLS 1.2 with aes-gcm-128,
        aes-gcm-256`."""
        found = {v: [c for c in CIPHERS if self.promised(direction, v, c)] for v in VERSIONS}
        return "; ".join(f"TLS {v} with {', '.join(cs)}" for v, cs in found.items() if cs)

    def warnings(self) -> tuple[str, ...]:
        """Functions of the kernel whose warnings are known limitations."""
        return tuple(name for one in self.limitations if (name := one.warns()))

    def no_resync(self) -> tuple[str, ...]:
        """Conditions in which a receiving connection that once lost its place stays in software."""
        return tuple(one.no_resync for one in self.limitations if one.no_resync)

    def title(self) -> str:
        """Vendor and name."""
        return f"{self.vendor} {self.name}"
