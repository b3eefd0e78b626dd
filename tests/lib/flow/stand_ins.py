"""What stands in for a counter that a driver does not have: its packets, and what the kernel counts."""

from __future__ import annotations

from dataclasses import replace

from offload.card.counters import Snapshot
from offload.card.profile import DIRECTIONS, Profile
from offload.host.base import Host

HEADERS = 52  # bytes of IPv4 and TCP with timestamps, of a frame's MTU
PACKETS = {"tx": "tx_tls_encrypted_packets", "rx": "rx_tls_decrypted_packets"}
BYTES = {"tx": "tx_tls_encrypted_bytes", "rx": "rx_tls_decrypted_bytes"}


def packets_only(profile: Profile) -> frozenset[str]:
    """The directions in which a card counts packets and no bytes."""
    return frozenset(d for d in DIRECTIONS if BYTES[d] in profile.counters.absent(d))


class StandIns:
    """Values for the counters that a profile calls absent, so that a proof asks the same of every card.

    Bytes are packets, each as full as the MTU allows: more than there were where packets are smaller, so a
    proof that the card did at least this much holds, and the wire must say the rest. Contexts and errors are
    those of the kernel's tls_stat.
    """

    def __init__(self, profile: Profile) -> None:
        self._absent = {d: set(profile.counters.absent(d)) for d in DIRECTIONS}
        self._bytes = packets_only(profile)
        self._mtu = 0
        self._packets: dict[str, int] = {}
        self._sum = dict.fromkeys(DIRECTIONS, 0)

    def add(self, host: Host, seen: Snapshot) -> Snapshot:
        """The snapshot with what stands in."""
        if not any(self._absent.values()):
            return seen
        more = self._counted(host, seen) if self._bytes else {}
        return replace(seen, driver={**seen.driver, **more, **self._by_kernel(seen)})

    def _counted(self, host: Host, seen: Snapshot) -> dict[str, int]:
        """Bytes by packets since the snapshot before; of two MTUs meanwhile the larger one counts."""
        mtu, values = int(host.read(f"/sys/class/net/{seen.dev}/mtu")), seen.values()
        for direction in self._bytes:
            now = values.get(PACKETS[direction], 0)
            self._sum[direction] += (now - self._packets.get(direction, 0)) * (max(mtu, self._mtu) - HEADERS)
            self._packets[direction] = now
        self._mtu = mtu
        return {BYTES[direction]: self._sum[direction] for direction in self._bytes}

    def _by_kernel(self, seen: Snapshot) -> dict[str, int]:
        """Contexts taken and given back, and records that were refused, by tls_stat."""
        tls, found = seen.tls or {}, {}
        for direction in DIRECTIONS:
            taken = tls.get(f"Tls{direction.title()}Device", 0)
            found[f"{direction}_tls_ctx"] = taken
            found[f"{direction}_tls_del"] = taken - tls.get(f"TlsCurr{direction.title()}Device", 0)
        found["rx_tls_err"] = tls.get("TlsDecryptError", 0)
        every = set().union(*self._absent.values())
        return {name: n for name, n in found.items() if name in every}
