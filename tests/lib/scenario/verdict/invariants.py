"""What must hold of every scenario: headers, counters between two bounds, contexts, checksums refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from offload.card.counters import Delta, Snapshot
from offload.host.base import Host
from tests.lib.life.life import held
from tests.lib.rig.rig import Rig

MOST = 0.9  # of the bytes in the calm that a card must decrypt (tests/lib/flow/shapes.py)
BYTES = {"tx": "tx_tls_encrypted_bytes", "rx": "rx_tls_decrypted_bytes"}
PACKETS = {"tx": "tx_tls_encrypted_packets", "rx": "rx_tls_decrypted_packets"}

# what a card takes for the bytes of a packet; in a failure these words come before the bounds
PAYLOAD, FRAMES = "", "with headers "
READINGS = frozenset({PAYLOAD, FRAMES})


class NotTaken(AssertionError):
    """A connection that was opened is not the card's, or is, and should not be."""


@dataclass(frozen=True)
class Facts:
    """What is counted at one moment: the DUT's counters, its contexts, bad checksums of both ends."""

    counters: Snapshot
    contexts: dict[str, int]
    checksums: dict[str, int]


def facts(rig: Rig) -> Facts:
    """Look at all that is counted."""
    hosts = {"tx": rig.bench.peer.host, "rx": rig.bench.dut.host}  # who receives
    now = rig.counters()
    return Facts(now, held(rig, now), {direction: bad_checksums(host) for direction, host in hosts.items()})


def bad_checksums(host: Host) -> int:
    """Segments that a host has refused for their checksum (TcpInCsumErrors, for both families)."""
    rows = [
        line.split() for line in host.read("/proc/net/snmp").decode().splitlines() if line.startswith("Tcp:")
    ]
    names, values = rows
    return int(values[names.index("InCsumErrors")])


def checksums(before: Facts, after: Facts, expected: dict[str, int]) -> None:
    """Each end refused exactly the segments whose checksum the wire made wrong."""
    for direction, count in after.checksums.items():
        new = count - before.checksums[direction]
        who = {"tx": "the peer", "rx": "the DUT"}[direction]
        assert new == expected.get(direction, 0), (
            f"{who} met {new} segments with a wrong checksum, the wire made {expected.get(direction, 0)}"
        )


def taken_over(moved: Delta, count: int, directions: Sequence[str]) -> None:
    """Every connection that was opened is the card's in these directions, and software's in the others.

    NotTaken if it is not; AssertionError if the card has more or fewer contexts than connections.
    """
    for direction in ("tx", "rx"):
        device = count if direction in directions else 0
        shown = {name: moved.get(f"Tls{direction.title()}{name}", 0) for name in ("Device", "Sw")}
        if shown != {"Device": device, "Sw": count - device}:
            raise NotTaken(f"{count} were opened, {direction} counts {shown}")
        if direction in directions and (contexts := moved.get(f"{direction}_tls_ctx")) is not None:
            assert contexts == count, f"{count} connections took {contexts} contexts of {direction}"


@dataclass(frozen=True)
class Bounds:
    """Payload of TCP that the card must have done in a direction at least, and may have done at most.

    `packets`: the same in packets, of a card that does not count bytes.
    """

    least: int
    most: int
    heads: tuple[int, int] = (0, 0)  # bytes before the payload in the frames: the fewest and the most
    packets: tuple[int, int] | None = None


def counted(
    moved: Delta, direction: str, bounds: Bounds, name: str, readings: frozenset[str] = READINGS
) -> frozenset[str]:
    """The card's own count lies between what it must have done and what was on the wire.

    A card counts the payload of its packets, or their headers too (mlx5's receive side: ktls_rx.c,
    mlx5e_ktls_handle_rx_skb()), but the same of all of them, in each scenario. Returns which of the
    `readings` the count allows.
    """
    done, packets = moved.get(BYTES[direction]), moved.get(PACKETS[direction], 0) or 0
    if bounds.packets:
        few, many = bounds.packets
        assert few <= packets <= many, (
            f"{name}: {PACKETS[direction]} moved by {packets}, wanted {few} to {many}"
        )
        return readings
    assert done is not None, f"counter {BYTES[direction]} is missing or went backwards"
    least, most = bounds.least, bounds.most
    few, many = (packets * head for head in bounds.heads)
    limits = {PAYLOAD: (least, most), FRAMES: (least + few, most + many)}
    wanted = {reading: found for reading, found in limits.items() if reading in readings}
    words = ", or ".join(f"{reading}{low} to {high}" for reading, (low, high) in wanted.items())
    fits = {reading for reading, (low, high) in wanted.items() if low <= done <= high}
    assert fits, f"{name}: {BYTES[direction]} moved by {done}, wanted {words}"
    return frozenset(fits)


def untouched(moved: Delta) -> None:
    """No card: nothing of it may move."""
    wrong = {name: moved.get(name, 0) for name in BYTES.values() if moved.get(name, 0)}
    assert not wrong, f"software did it, and the card counted {wrong}"


def errors(moved: Delta, forged: bool, peeks: bool = False, untried: bool = False) -> None:
    """Nothing was refused but what was forged, and that is counted if the kernel tried a key on it."""
    refused, card = moved.get("TlsDecryptError", 0), moved.get("rx_tls_err", 0)
    if forged and untried:
        assert not refused, f"the kernel tries no key on this record, and TlsDecryptError moved by {refused}"
    elif forged:
        # a call with records before it to return returns them, and the next one tries the same record again;
        # a peek and its read both have those records, and the next peek fails
        most = 3 if peeks else 2
        assert 1 <= refused <= most, f"one record was forged, and TlsDecryptError moved by {refused}"
    else:
        assert (refused, card) == (0, 0), f"TlsDecryptError moved by {refused}, rx_tls_err by {card}"


def placed(moved: Delta, lost: int) -> None:
    """A packet that a driver says it dropped, as its record was gone, did not come out of the card.

    The kernel forgets a record once it is acknowledged (net/tls/tls_device.c, tls_icsk_clean_acked()), and a
    driver then drops what still waits. `lost`: bytes that TCP sent and the wire did not show.
    """
    if drops := moved.get("tx_tls_drop_no_sync_data", 0):
        assert lost, f"the card dropped what it could not place: {drops} packets, and the wire shows them all"
