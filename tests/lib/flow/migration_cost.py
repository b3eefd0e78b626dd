"""One guest moved again and again, by transport: each proved to be what it is called, and what it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from offload.card.counters import Delta
from offload.card.profile import Cell, Profile
from offload.errors import RigError
from offload.suite.measure.cpu import meter as cpu
from offload.suite.measure.cpu.pairs import turns
from offload.suite.traffic.certs import Placed
from tests.lib.flow import migration
from tests.lib.flow.cores import played
from tests.lib.flow.migration import PAGE, End, Guest, Moved, Status
from tests.lib.flow.migration_transports import CIPHER, TRANSPORTS, VERSION, Stand, ends, standing
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch

SCHEMA = "ktls-offload/migration/2"
ARMS = ("plain", "stunnel", "qemu-tls", "ktls-sw", "ktls-hw")
FASTEST = 1 << 40  # bytes a second: QEMU's own limit is 128 MiB
DOWNTIME = 300  # ms, QEMU's default: what the last migration of the same QEMU was allowed does not count
MOST = 5  # rounds of copying, LIBXL_XGS_POLICY_MAX_ITERATIONS of Xen's tools/libs/light/libxl_stream_write.c
SHORT = "left out where machines are emulated: it takes long there, and has no kernel TLS"


@dataclass(frozen=True)
class Ran:
    """One migration: what QEMU and guest say, ms until all had arrived, CPU seconds and cores of each end."""

    moved: Moved
    guest: Status
    line: Mapping[str, Any]  # of ktls-handoff
    arrived: int
    spent: tuple[float, float]
    cores: tuple[Mapping[str, float], Mapping[str, float]]
    held: Mapping[str, Any]  # bytes and sha256 of the memory that was equal at both ends

    def row(self) -> dict[str, Any]:
        """It, for the evidence."""
        names, moved = ("source", "destination"), self.moved
        sides = {
            name: {"cpu_seconds": round(used, 2), **cores}
            for name, used, cores in zip(names, self.spent, self.cores, strict=True)
        }
        return {
            "ms": moved.total,
            "arrived_ms": self.arrived,
            "downtime_ms": moved.downtime,
            "bytes": moved.copied,
            "rounds": moved.rounds,
            "forced": moved.forced,
            **sides,
        }


def once(
    transport: str,
    near: End,
    far: End,
    at: tuple[Placed, Placed],
    next_port: Callable[[], int],
    cipher: str = CIPHER,
    meters: Sequence[cpu.Meter] = (),
) -> Ran:
    """Migrate; RigError or AssertionError unless the same guest lives on at the far end.

    After `MOST` rounds the guest is stopped and the rest is copied. `meters`: of both hosts' CPUs, if their
    cores are to be told.
    """
    with standing(near, far, at, next_port, cipher) as stand:
        uri = TRANSPORTS["ktls" if transport.startswith("ktls") else transport](stand)
        near.qmp("migrate-set-parameters", **{"max-bandwidth": FASTEST, "downtime-limit": DOWNTIME})
        used, began = _spent(stand), [meter.snapshot() for meter in meters]
        then = time.monotonic()
        moved = migration.go(near, far, uri, MOST)
        took = round(1000 * (time.monotonic() - then))
        cores = [active(first, meter) for first, meter in zip(began, meters, strict=True)] or [{}, {}]
        after = _spent(stand)
        if moved.status != "completed":
            raise RigError(f"{transport}: the migration ended as {moved.status}: {moved.error}")
        status, held = migration.equal(near, far, transport)
        migration.lives(far, status)
    spent = after[0] - used[0], after[1] - used[1]
    return Ran(moved, status, stand.line, took, spent, (cores[0], cores[1]), held)


def _spent(stand: Stand) -> tuple[float, float]:
    """Seconds of CPU of each end's QEMU and stunnel so far."""
    near, far = (
        sum(end.call("spent", pids=stand.pids[which]).values())
        for which, end in (("near", stand.near), ("far", stand.far))
    )
    return near, far


def active(before: cpu.Snapshot, meter: cpu.Meter) -> dict[str, float]:
    """A host's active cores since then, and by how much they can be wrong; empty if that cannot be known."""
    try:
        use = meter.snapshot() - before
    except RigError:  # so short, or a CPU came or went: the other figures stand without it
        return {}
    return {"cores": round(use.cores, 3), "margin": round(use.margin, 3)}


def cipher_of(profile: Profile) -> str:
    """The cipher of every transport: one that the card promises to encrypt, if there is one."""
    known = ("aes-gcm-256", "aes-gcm-128")
    return next((name for name in known if Cell("tx", VERSION, name) in profile.promises), CIPHER)


def by_card(profile: Profile) -> bool:
    """Say whether the card promises to encrypt the stream."""
    return Cell("tx", VERSION, cipher_of(profile)) in profile.promises


@dataclass(frozen=True)
class Move:
    """A migration from the DUT to the peer, and what the DUT counted."""

    ran: Ran
    counted: Delta


class Ferry:
    """One guest between DUT and peer, and what it takes to move it; kept until it is closed, or fails."""

    def __init__(self) -> None:
        self._undo, self._there = ExitStack(), False
        self.last: dict[str, Move] = {}  # the last move by each transport

    def move(self, rig: Rig, transport: str, meters: Sequence[cpu.Meter] = ()) -> Move:
        """Move it; AssertionError if it did not arrive equal, or the transport is not what it is called."""
        try:
            if not self._there:
                dut, peer = rig.bench.dut, rig.bench.peer
                self._ends = self._undo.enter_context(ends(dut, peer, guest_of(rig), rig.certs()))
                self._there = True
            before, cipher = rig.counters(), cipher_of(rig.profile)
            ran = once(transport, *self._ends, rig.next_port, cipher, meters)
            found = Move(ran, rig.counters() - before)
            proved(transport, found, cipher, guest_of(rig))
        except BaseException:
            self.close()  # what is left there is not known
            raise
        self.last[transport] = found
        return found

    def qemu(self) -> str:
        """The version of the QEMU that has the guest."""
        found = self._ends[0].qmp("query-version")["qemu"]
        return ".".join(str(found[part]) for part in ("major", "minor", "micro"))

    def close(self) -> None:
        """End both ends."""
        self._there = False
        self._undo.close()


def guest_of(rig: Rig) -> Guest:
    """Which guest is moved: a small one where machines are emulated."""
    return Guest() if played(rig.bench) else Guest(256, 2000)


def proved(transport: str, found: Move, cipher: str, guest: Guest) -> None:
    """Traffic flowed, and socket, kernel and card say that it took this transport."""
    moved, line = found.ran.moved, found.ran.line
    # the guest's own pages are no zeroes, so that each went over the wire at least once
    assert moved.copied >= guest.pages * PAGE, f"{transport}: {moved.copied} bytes are less than the guest"
    assert found.ran.guest.written > 0, f"{transport}: the guest wrote nothing"
    if transport.startswith("ktls"):
        assert (line["tx"], line["kernel_cipher"]) == (transport[-2:], cipher), f"{transport}: {dict(line)}"
    counted = {name: found.counted[name] for name in ("TlsTxDevice", "TlsTxSw")}
    wanted = {"TlsTxDevice": int(transport == "ktls-hw"), "TlsTxSw": int(transport == "ktls-sw")}
    assert counted == wanted, f"{transport}: counted {counted}, wanted {wanted}"
    if transport == "ktls-hw":
        done = found.counted["tx_tls_encrypted_bytes"]
        assert done >= moved.copied, f"QEMU sent {moved.copied} bytes, the card encrypted {done}"


def skipped(transport: str, rig: Rig) -> str:
    """Why a transport is not measured here, or ''."""
    if transport == "ktls-hw" and not by_card(rig.profile):
        return f"the profile promises no transmit of TLS {VERSION} with AES-GCM"
    return SHORT if transport == "qemu-tls" and played(rig.bench) else ""


def measured(rig: Rig, ferry: Ferry, offload: Switch) -> dict[str, Any]:
    """The document of every transport that exists here, in turns: five rounds after one that warms.

    Where machines are emulated: one, and what the run has moved before is not moved again.
    """
    emulated, guest = played(rig.bench), guest_of(rig)
    why = {transport: skipped(transport, rig) for transport in ARMS}
    runs: dict[str, list[dict[str, Any]]] = {transport: [] for transport, reason in why.items() if not reason}
    hosts = (rig.bench.dut.host, rig.bench.peer.host)
    meters = [] if emulated else [cpu.Meter(host) for host in hosts]
    for turn in turns(list(runs), 1 if emulated else 5, 0 if emulated else 1):
        found = ferry.last.get(turn.arm) if emulated else None
        if found is None:
            offload.set(tx=turn.arm == "ktls-hw")
            found = ferry.move(rig, turn.arm, meters)
        if turn.counts:
            runs[turn.arm].append(found.ran.row())
    return {
        "schema": SCHEMA,
        "simulated": emulated,
        "guest": {"mib": guest.mib, "pages_per_second": guest.rate},
        "about": {"tls": f"{VERSION} {cipher_of(rig.profile).replace('-', '_')}", "qemu": ferry.qemu()},
        "transports": [{"transport": transport, "runs": rows} for transport, rows in runs.items()],
        "skipped": [
            {"transport": transport, "reason": reason} for transport, reason in why.items() if reason
        ],
    }
