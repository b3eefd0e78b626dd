"""What an arm is: how the card must be switched for it, and the proof that it was what its name says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from offload.card.counters import Delta
from offload.card.profile import Profile
from offload.errors import OffloadError

SIDES = {"tx": ("tx",), "rx": ("rx",), "both": ("tx", "rx")}
TITLES = {
    "user": "user-space TLS",
    "sw": "software kTLS",
    "hw": "offload",
    "hw-zc": "offload + zero-copy",
    "plain": "plain TCP",
    "esp-null": "ESP, null",
    "esp-128": "ESP, AES-128",
    "esp-256": "ESP, AES-256",
    "esp-128-hw": "ESP, AES-128, card",
    "esp-256-hw": "ESP, AES-256, card",
}
SHARE = 0.90  # of the payload that the card must have counted: as counters.move-when-on in criteria.yaml
# Bytes of a connection that may arrive before the card knows where its records begin: what was sent before
# the receiver installed TLS_RX, and at worst a window of one resync.
RX_START = 256 << 10
WORK = {
    "tx": ("tx_tls_encrypted_bytes", "tx_tls_encrypted_packets"),
    "rx": ("rx_tls_decrypted_bytes", "rx_tls_decrypted_packets"),
}
ESP_WORK = {"tx": "ipsec_tx_bytes", "rx": "ipsec_rx_bytes"}  # mlx5: en_accel/ipsec_stats.c


class NoFigure(OffloadError):
    """What ran is not what the arm's name says, or lost payload: a failure of what was measured."""


@dataclass(frozen=True)
class Moved:
    """What a turn moved, as the DUT sees it: payload in bytes by direction, and how many connections did it.

    `kinds`: what the sockets themselves said they are (hw, sw, user, none), where the program tells.
    `whole`: a program that began and ended within the window: what it cost there is of these `seconds`.
    """

    tx: int
    rx: int
    connections: int
    seconds: float = 0.0
    requests: int | None = None
    kinds: tuple[str, ...] = ()
    whole: bool = False

    @property
    def bytes(self) -> int:
        """Payload of both directions."""
        return self.tx + self.rx

    def of(self, side: str) -> int:
        """Payload of one direction."""
        return self.tx if side == "tx" else self.rx


def features(arm: str, direction: str) -> dict[str, bool]:
    """How the TLS features must be: on for the directions that an offload arm loads, else off."""
    return {side: arm.startswith("hw") and side in SIDES[direction] for side in ("tx", "rx")}


def impossible(
    arm: str, direction: str, workload: str, profile: Profile | None, cipher: str, version: str
) -> str:
    """Why an arm cannot be, or ''."""
    if workload in ("nginx", "video", "file") and direction != "tx":
        return f"{workload} serves files: its bulk data goes out"
    if arm == "hw-zc" and direction == "rx":
        return "zero-copy sendfile affects transmit only"
    if not arm.startswith("hw"):
        return ""
    if profile is None:
        return "no profile matches this interface, so its offloads are unknown"
    for side in SIDES[direction]:
        if not profile.promised(side, version, cipher):
            return f"{profile.title()} has no {side} offload here: {profile.reason(side, version, cipher)}"
    return ""


def check(
    arm: str, direction: str, moved: Moved, delta: Delta, carried: Mapping[str, int], profile: Profile | None
) -> None:
    """Hold what was counted against the arm's name. NoFigure with the counter if it was another arm.

    `carried`: bytes that the interface itself counted meanwhile, by direction.
    """
    for side in SIDES[direction]:
        if moved.of(side) <= 0:
            raise NoFigure(
                f"arm {arm}: no payload moved ({side})", "check the program that should have sent it"
            )
        if carried[side] < moved.of(side) * SHARE:
            raise NoFigure(
                f"arm {arm}: {moved.of(side)} bytes of payload ({side}), {carried[side]} on the interface",
                "the traffic took another path: check addresses and routes",
            )
        _by_whom(arm, side, delta)
        _by_card(arm, side, moved, delta, profile)
    wanted = "none" if arm.startswith("esp") else {"user": "user", "sw": "sw", "plain": "none"}.get(arm, "hw")
    if wrong := sorted(set(moved.kinds) - {wanted, "kernel"}):
        raise NoFigure(f"arm {arm}: sockets say {', '.join(wrong)}, wanted {wanted}")


def _by_whom(arm: str, side: str, delta: Delta) -> None:
    """/proc/net/tls_stat: connections of the right kind, and none of another."""
    name = f"Tls{side.title()}"
    device, software = delta.get(f"{name}Device", 0) or 0, delta.get(f"{name}Sw", 0) or 0
    said = f"arm {arm}: /proc/net/tls_stat counted {name}Device {device}, {name}Sw {software}"
    wrong = device if arm == "sw" else software if arm.startswith("hw") else device + software
    right = software if arm == "sw" else device
    if wrong or (arm in ("sw", "hw", "hw-zc") and not right):
        raise NoFigure(f"{said}: it ran as another arm")
    if delta.get("TlsDecryptError", 0):
        raise NoFigure(f"arm {arm}: records did not decrypt (TlsDecryptError moved)")


def _by_card(arm: str, side: str, moved: Moved, delta: Delta, profile: Profile | None) -> None:
    """The card's own counters: most of the payload in an offload arm, exactly nothing in another."""
    _esp_by_card(arm, side, moved, delta)
    required = profile.counters.required(side) if profile else ()
    name = next((n for n in WORK[side] if n in required), WORK[side][0])
    if not arm.startswith("hw"):
        if delta.get(name, 0):
            raise NoFigure(f"arm {arm}: the card counted {name} {delta.get(name)}, wanted 0")
        return
    wanted = 1.0
    if name == WORK[side][0]:
        start = moved.connections * RX_START if side == "rx" else 0
        wanted = max(moved.of(side) * SHARE - start, 1.0)
    if (delta.get(name) or 0) < wanted:
        raise NoFigure(f"arm {arm}: the card counted {name} {delta.get(name)}, wanted {wanted:.0f} or more")


def _esp_by_card(arm: str, side: str, moved: Moved, delta: Delta) -> None:
    """The same of an arm in ESP, where the driver counts it; the states are asked in any case."""
    counted = delta.get(ESP_WORK[side])
    if counted is None or not arm.startswith("esp"):
        return
    wanted = moved.of(side) * SHARE if arm.endswith("-hw") else 0
    if counted < wanted or (counted and not wanted):
        raise NoFigure(f"arm {arm}: the card counted {ESP_WORK[side]} {counted}, wanted {wanted:.0f}")
