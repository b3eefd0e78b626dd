"""What every card can do, what is on and why not: needs no root and no profile; for people and programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from offload.card.counters import driver_stats, tls_stat
from offload.card.nic import Match, Nic, links, match, seen
from offload.card.nic_why import why_fixed, without_ktls
from offload.card.profile import DIRECTIONS, FEATURES, WORDS, Profile, load_all
from offload.errors import OffloadError
from offload.host.base import Host

SCHEMA = 1


class Device(NamedTuple):
    """One interface, its profile, its counters, and a sentence per direction."""

    nic: Nic
    found: Match
    counters: Mapping[str, int]  # the driver's
    odd: tuple[str, ...]  # lines of its counters that made no sense
    why: Mapping[str, str]
    changed: tuple[Mapping[str, Any], ...]

    def interesting(self) -> bool:
        """Say whether it has a profile or a TLS feature that is on or can be switched."""
        has = [f for d in DIRECTIONS if (f := self.nic.feature(d)) and (f.active or not f.fixed)]
        return bool(has or self.found.profile or self.found.simulated)


class Status(NamedTuple):
    """The whole answer. `asked` says whether the person named the devices."""

    kernel: str
    tls: Mapping[str, int] | None
    devices: tuple[Device, ...]
    asked: bool
    warnings: tuple[str, ...]
    without: str = ""  # why no module can bring kernel TLS to this kernel


def gather(host: Host, wanted: Sequence[str], changed: Sequence[Mapping[str, Any]] = ()) -> Status:
    """Look at the named devices, or at all. NoDevice if a named one is not there."""
    warnings: list[str] = []
    profiles: tuple[Profile, ...] = ()
    try:
        profiles = load_all()
    except OffloadError as exc:
        warnings.append(f"profiles not read: {exc}")
    rows = links(host)
    nics = [seen(host, dev, rows) for dev in wanted or rows]
    stat, odd = tls_stat(host)
    devices = tuple(_device(host, nic, profiles, changed) for nic in nics)
    warnings += odd + [line for d in devices for line in d.odd]
    without = without_ktls(host) if stat is None else ""
    release = host.run(["uname", "-r"]).text.strip()
    return Status(release, stat, devices, bool(wanted), tuple(warnings), without)


def _device(
    host: Host, nic: Nic, profiles: Sequence[Profile], changed: Sequence[Mapping[str, Any]]
) -> Device:
    """One interface with everything about it."""
    found = match(nic, profiles)
    why = {d: _why(host, nic, found, d) for d in DIRECTIONS}
    mine = tuple(c for c in changed if c["ifindex"] == nic.ifindex and c["bus"] == nic.bus)
    counters, odd = driver_stats(host, nic.dev)
    return Device(nic, found, counters, tuple(odd), why, mine)


def _why(host: Host, nic: Nic, found: Match, direction: str) -> str:
    """One plain sentence about a direction: what it does if it is on, why it is off if not."""
    feature, profile = nic.feature(direction), found.profile
    if feature is None:
        return f"this kernel or ethtool does not know {FEATURES[direction]}"
    if feature.active:
        what = profile.offloads(direction) if profile else "what the driver accepts"
        down = "" if nic.up else "; but the interface is down, and the kernel offloads nothing while it is"
        return f"new connections: {what or 'nothing that the profile promises'}{down}"
    if profile and (never := profile.why_no_direction(direction)):
        return never
    if feature.fixed:
        return "; ".join(why_fixed(host, nic, found, direction))
    if missing := nic.checksum_missing(direction):
        verb = "comes back with" if feature.requested else "needs"
        return f"{verb} {WORDS[missing]} checksum offload, which is off: ethtool -K {nic.dev} {missing} on"
    return f"{_origin(profile, direction)}: ktls-offload enable {nic.dev} --{direction}"


def _origin(profile: Profile | None, direction: str) -> str:
    """Whether it is off because the driver starts so."""
    if profile is None:
        return "switched off"
    return "someone switched it off" if profile.default(direction) else "driver default; to switch it on"


def as_json(status: Status) -> str:
    """The answer for programs; keys are only ever added to schema 1."""
    document = {
        "schema": SCHEMA,
        "kernel": status.kernel,
        "tls_stat": status.tls,
        "devices": [_json_device(d) for d in status.devices],
        "warnings": list(status.warnings),
    }
    return json.dumps(document, indent=2)


def _json_device(device: Device) -> dict[str, Any]:
    """One device as plain values."""
    nic, found = device.nic, device.found
    plain = ("dev", "ifindex", "up", "operstate", "kind", "driver", "version", "firmware", "bus", "pci")
    return {
        **{key: getattr(nic, key) for key in plain},
        "lower": list(nic.lower),
        "profile": found.profile.id if found.profile else None,
        "simulated": found.simulated,
        "plays": found.plays or None,
        "directions": {d: _json_direction(device, d) for d in DIRECTIONS},
        "counters": _tls_counters(device),
        "changed": [dict(c) for c in device.changed],
    }


def _json_direction(device: Device, direction: str) -> dict[str, Any]:
    """One direction; the three states are null if the kernel does not know the feature."""
    feature, profile = device.nic.feature(direction), device.found.profile
    return {
        "feature": FEATURES[direction],
        "active": feature.active if feature else None,
        "requested": feature.requested if feature else None,
        "fixed": feature.fixed if feature else None,
        "promised": direction in profile.directions() if profile else None,
        "why": device.why[direction],
    }


def _tls_counters(device: Device) -> dict[str, int]:
    """The driver's TLS counters that live (what the profile calls dead never moves)."""
    profile = device.found.profile
    dead = {n for d in DIRECTIONS for n in profile.counters.dead(d)} if profile else set()
    return {n: v for n, v in device.counters.items() if "_tls_" in n and n not in dead}


def as_text(status: Status) -> str:
    """The answer for people."""
    shown = [d for d in status.devices if status.asked or d.interesting()]
    rest = [d.nic for d in status.devices if d not in shown]
    blocks = [_text_device(d) for d in shown]
    if not shown:
        blocks.append(["no interface here has TLS offload that can be switched"])
    if rest:
        blocks.append(
            ["without TLS offload: " + ", ".join(f"{n.dev} ({n.kind or n.driver or '-'})" for n in rest)]
        )
    blocks.append(_text_tls(status))
    blocks += [[f"warning: {w}"] for w in status.warnings]
    text = "\n\n".join("\n".join(lines) for lines in blocks)
    # an interface, a driver or a counter may be called anything
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def _text_device(device: Device) -> list[str]:
    """A device as a block of lines."""
    nic, found = device.nic, device.found
    title = found.profile.title() if found.profile else nic.kind or "unknown card"
    simulated = f", SIMULATED by {nic.driver}" if found.simulated else ""
    profile = f"profile {found.profile.id}" if found.profile else "no profile fits"
    lines = [f"{nic.dev}: {title}{simulated} ({profile})", f"  card      {_facts(nic)}"]
    for direction in DIRECTIONS:
        lines.append(
            f"  {WORDS[direction]:<9} {nic.feature(direction) or 'unknown'!s:<4} - {device.why[direction]}"
        )
    moved = {n: v for n, v in _tls_counters(device).items() if v}
    if _tls_counters(device):
        lines.append(
            "  counters  " + (", ".join(f"{n} {v}" for n, v in moved.items()) or "all TLS counters are 0")
        )
    for change in device.changed:
        was = "on" if change["requested"] else "off"
        lines.append(f"  changed   {change['what']} was {was} before: ktls-offload restore {nic.dev}")
    return lines


def _facts(nic: Nic) -> str:
    """Driver, firmware, place and link on one line."""
    # a driver without carrier detection leaves it unknown; the kernel then treats it as up (operstates.rst)
    link = {"unknown": "up"}.get(nic.operstate, nic.operstate) if nic.up else "down (administratively)"
    facts = [f"driver {nic.driver or '-'} {nic.version}".strip()]
    facts += [f"firmware {nic.firmware}"] if nic.firmware else []
    facts += [f"PCI {nic.pci}"] if nic.pci else []
    facts += [f"at {nic.bus}"] if nic.bus else []
    return ", ".join([*facts, f"link {link}"])


def _text_tls(status: Status) -> list[str]:
    """Kernel TLS of this namespace in two lines."""
    if status.tls is None:
        why = status.without or "not loaded (no /proc/net/tls_stat; modprobe tls loads it)"
        return [f"kernel TLS ({status.kernel}): {why}"]
    lines = [f"kernel TLS in this namespace ({status.kernel}):"]
    for direction in DIRECTIONS:
        word = direction.capitalize()
        now = [status.tls.get(f"TlsCurr{word}{kind}", 0) for kind in ("Device", "Sw")]
        ever = [status.tls.get(f"Tls{word}{kind}", 0) for kind in ("Device", "Sw")]
        lines.append(
            f"  {WORDS[direction]:<9} now {now[0]} installed on a card, {now[1]} in software; "
            f"since boot {ever[0]} and {ever[1]}"
        )
    others = {n: v for n, v in status.tls.items() if v and not n.endswith(("Device", "Sw"))}
    return [*lines, "  also      " + ", ".join(f"{n} {v}" for n, v in others.items())] if others else lines
