"""One interface as the kernel shows it: driver, firmware, bus, features; and which profile it fits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from offload.card.profile import FEATURES, Profile, near
from offload.errors import CommandFailed, NoDevice, RigError
from offload.host.base import Host
from offload.host.tools import tool

# IFNAMSIZ is 16 with the final NUL; a leading dash would be an option to ethtool.
DEV = re.compile(r"(?!-)[^\s/:]{1,15}")
PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# Only bonding hands a connection down to its port, in two modes (bond_sk_check); no other upper device does.
UPPERS = ("bond", "team", "bridge", "vlan", "macvlan", "ipvlan", "vxlan", "geneve", "gre", "wireguard", "vrf")


class Feature(NamedTuple):
    """One line of `ethtool -k`: what is, what was asked for, and whether it can change at all."""

    name: str
    active: bool
    fixed: bool
    requested: bool

    def __str__(self) -> str:
        text = "on" if self.active else "off"
        if self.fixed:
            return f"{text} [fixed]"
        return (
            text
            if self.active == self.requested
            else f"{text} [requested {'on' if self.requested else 'off'}]"
        )


@dataclass(frozen=True)
class Nic:
    """One interface; `pci` is vvvv:dddd or '', `kind` is '' for a real device, else bond, vlan, veth ..."""

    dev: str
    ifindex: int
    up: bool
    operstate: str
    kind: str
    lower: tuple[str, ...]
    driver: str
    version: str
    firmware: str
    bus: str
    pci: str
    address: str
    features: Mapping[str, Feature]

    def feature(self, direction: str) -> Feature | None:
        """The TLS feature of a direction; None if this kernel does not know the name."""
        return self.features.get(FEATURES[direction])

    def checksum_missing(self, direction: str) -> str:
        """The checksum offload without which the kernel drops the TLS feature, or '' if it is there.

        netdev_fix_features, net/core/dev.c 6.1:9828, 6.12:10166, 7.2:11079.
        """

        def on(name: str) -> bool:
            found = self.features.get(name)
            return found is not None and found.active

        if direction == "rx":
            return "" if on("rx-checksumming") or on("rx-checksum") else "rx"
        both = on("tx-checksum-ipv4") and on("tx-checksum-ipv6")
        return "" if both or on("tx-checksum-ip-generic") else "tx"


class Match(NamedTuple):
    """The profile that an interface fits (None: no profile does) and whether a simulated card emulates it."""

    profile: Profile | None
    simulated: bool = False
    plays: str = ""


def links(host: Host) -> dict[str, dict[str, Any]]:
    """Every interface of the namespace by name, as `ip -j -d link` has it."""
    done = tool(host, ["ip", "-j", "-d", "link", "show"])
    try:
        rows = json.loads(done.checked().text)
        return {row["ifname"]: row for row in rows if row.get("ifname")}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise CommandFailed(
            list(done.argv), done.rc, done.stdout, b"its answer is not a list of interfaces"
        ) from None


def names(host: Host) -> tuple[str, ...]:
    """The interfaces of the namespace, in the kernel's order."""
    return tuple(links(host))


def look(host: Host, dev: str) -> Nic:
    """One interface as it is now. NoDevice, with the nearest name, if there is none."""
    return seen(host, dev, links(host))


def seen(host: Host, dev: str, rows: Mapping[str, dict[str, Any]]) -> Nic:
    """As `look`, with a list of interfaces that the caller has. RigError for an answer that makes no
    sense."""
    try:
        return _seen(host, dev, rows)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise RigError(f"what ip and ethtool say about {dev!r} makes no sense") from None


def _seen(host: Host, dev: str, rows: Mapping[str, dict[str, Any]]) -> Nic:
    """Return what `ip` and `ethtool` say about an interface."""
    row = _row(dev, rows)
    name = str(row["ifname"])
    info = _drvinfo(host, name)
    bus = info.get("bus-info", "") or str(row.get("parentdev", ""))
    return Nic(
        dev=name,
        ifindex=int(row.get("ifindex", 0)),
        up="UP" in row.get("flags", []),
        operstate=str(row.get("operstate", "unknown")).lower(),
        kind=_kind(row),
        lower=tuple(n for n, r in rows.items() if r.get("master") == name) or _below(row),
        driver=info.get("driver", ""),
        version=info.get("version", ""),
        firmware=info.get("firmware-version", ""),
        bus=bus,
        pci=_pci_id(host, bus),
        address=str(row.get("permaddr") or row.get("address") or ""),
        features=features(host, name),
    )


def _row(dev: str, rows: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The row of an interface, by its name or another name of it."""
    if dev in rows:
        return rows[dev]
    for row in rows.values():
        if dev in row.get("altnames", []):
            return row
    if not DEV.fullmatch(dev):
        raise NoDevice(f"{dev!r} is not the name of an interface", f"there are: {', '.join(rows)}")
    raise NoDevice(f"no interface {dev!r}{near(dev, rows)}", f"there are: {', '.join(rows)}")


def _kind(row: Mapping[str, Any]) -> str:
    """The kind of a virtual device; '' for one that has hardware (or emulates it)."""
    if row.get("link_type") == "loopback":
        return "loopback"
    info = row.get("linkinfo")
    return str(info.get("info_kind", "")) if isinstance(info, dict) else ""


def _below(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The device that a VLAN, macvlan or the like stands on (for a veth, `link` is its peer)."""
    return (str(row["link"]),) if row.get("link") and _kind(row) in UPPERS else ()


def _drvinfo(host: Host, dev: str) -> dict[str, str]:
    """`ethtool -i` as a mapping; empty for a device without (lo)."""
    done = tool(host, ["ethtool", "-i", dev])
    rows = (line.partition(":") for line in done.text.splitlines()) if done.rc == 0 else ()
    return {key.strip(): _plain(value) for key, _, value in rows}


def _plain(text: str) -> str:
    """A driver's text, safe for a terminal."""
    return "".join(c for c in text.strip() if c.isprintable())[:80]


def _pci_id(host: Host, bus: str) -> str:
    """vvvv:dddd of a PCI address from sysfs; '' if it is none."""
    if not PCI_ADDRESS.fullmatch(bus):
        return ""
    parts = []
    for name in ("vendor", "device"):
        try:
            raw = host.read(f"/sys/bus/pci/devices/{bus}/{name}")
        except OSError:
            return ""
        parts.append(raw.decode("ascii", "replace").strip().removeprefix("0x"))
    return ":".join(parts)


def features(host: Host, dev: str) -> dict[str, Feature]:
    """`ethtool -k` by name; from its JSON where the program has it, else from its text."""
    done = tool(host, ["ethtool", "--json", "-k", dev])
    if done.rc == 0:
        with suppress(ValueError, TypeError, IndexError, KeyError, AttributeError, RecursionError):
            return _from_json(json.loads(done.text)[0])
    done = tool(host, ["ethtool", "-k", dev])
    if b"No such device" in done.stderr or b"no device matches" in done.stderr:
        raise NoDevice(f"interface {dev} disappeared")
    return from_text(done.checked().text)


def _from_json(found: Mapping[str, Any]) -> dict[str, Feature]:
    """A group such as tx-checksumming has null for fixed and requested: it is what its members are."""
    rows = {name: row for name, row in found.items() if isinstance(row, dict)}
    return {
        name: Feature(
            name,
            row.get("active") is True,
            row.get("fixed") is True,
            (row.get("active") if row.get("requested") is None else row["requested"]) is True,
        )
        for name, row in rows.items()
    }


def from_text(text: str) -> dict[str, Feature]:
    """The text form, `name: off [requested on]`; lines of another form are skipped."""
    pattern = re.compile(r"\s*([a-z0-9-]+): (on|off)(?: \[(fixed|requested (?:on|off)|not requested)\])?\s*")
    found = {}
    for line in text.splitlines():
        if match := pattern.fullmatch(line):
            name, active, note = match.group(1), match.group(2) == "on", match.group(3) or ""
            asked = {"requested on": True, "requested off": False, "not requested": False}.get(note, active)
            found[name] = Feature(name, active, note == "fixed", asked)
    return found


def match(nic: Nic, profiles: Iterable[Profile]) -> Match:
    """The profile of an interface: by what a simulated card says it plays, else by driver and PCI id."""
    known = list(profiles)
    for player in known:
        if player.plays and player.driver == nic.driver:
            before, _, after = player.plays.partition("{profile}")
            # a firmware version may have no end: what comes after the name does not count
            played = re.match(f"{re.escape(before)}([a-z0-9_.-]+){re.escape(after)}", nic.firmware)
            name = played[1] if played else player.id
            return Match(next((p for p in known if p.id == name), None), True, name)
    for profile in known:
        if profile.driver == nic.driver and any(ids.covers(nic.pci) for ids in profile.pci):
            return Match(profile)
    return Match(None)


def no_offload_because_of_kind(nic: Nic) -> str:
    """Why a device that stands on others cannot be switched here, or ''.

    get_netdev_for_sock, tls_device.c:124; only bonding has ndo_sk_get_lower_dev.
    """
    if nic.kind not in UPPERS:
        return ""
    below = f": switch it on for the ports ({', '.join(nic.lower)})" if nic.lower else ""
    if nic.kind == "bond":
        return (
            f"{nic.dev} is a bond; its ports offload, in modes 802.3ad and balance-xor with layer3+4{below}"
        )
    return f"{nic.dev} is a {nic.kind}; the kernel never offloads connections that are routed through it"
