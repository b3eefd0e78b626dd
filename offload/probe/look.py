"""What can be seen of a card without knowing it: names, features, counters, modules that stand around it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from offload.card.counters import driver_stats
from offload.card.nic import Match, Nic, look, match, no_offload_because_of_kind
from offload.card.nic_why import kernel_config
from offload.card.profile import Cell, load_all
from offload.card.profile_schema import MODULE as DRIVER
from offload.doctor.vpd import of as part_number
from offload.errors import Refused
from offload.host.base import Host

IDS = ("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids")  # Debian's pci.ids; Fedora's hwdata
MODULE = re.compile(r"[a-z0-9_]{1,55}")


@dataclass(frozen=True)
class Trial:
    """What the card took of the connections that it was offered; `why`: why others were not offered.

    `moved`: the driver's TLS counters that moved meanwhile.
    """

    took: Mapping[Cell, bool] = field(default_factory=dict)
    why: str = "not tested; probe --try does"
    moved: tuple[str, ...] = ()

    def tried(self, direction: str) -> bool:
        """Say whether anything was offered in a direction."""
        return any(cell.direction == direction for cell in self.took)


@dataclass(frozen=True)
class Seen:
    """Everything that a draft is made of. `names`: vendor and device of the PCI list, or ''.

    `modules` make kernel TLS meet this driver: loaded, and they use both. `options` are the set symbols of
    the kernel's configuration that have TLS in their name, `config` is where it was read ('': nowhere).
    """

    nic: Nic
    found: Match
    kernel: str
    names: tuple[str, str]
    part: str
    no_part: str
    counters: tuple[str, ...]
    modules: tuple[str, ...]
    config: str
    options: tuple[str, ...]
    trial: Trial = Trial()

    def offers(self, direction: str) -> bool:
        """Say whether the kernel shows the direction as something that is on or can be switched."""
        feature = self.nic.feature(direction)
        return feature is not None and (feature.active or not feature.fixed)


def see(host: Host, dev: str) -> Seen:
    """Look, and change nothing. NoDevice; Refused for what is no card (lo, a bond, a VLAN, a veth)."""
    nic = look(host, dev)
    _card(nic)
    vendor, _, device = nic.pci.partition(":")
    path, config = kernel_config(host)
    part, no_part = part_number(host, nic.bus)
    return Seen(
        nic=nic,
        found=match(nic, load_all()),
        kernel=host.run(["uname", "-r"]).text.strip(),
        names=_pci_names(host, vendor, device) if vendor else ("", ""),
        part=part,
        no_part=no_part,
        counters=tuple(name for name in driver_stats(host, nic.dev)[0] if "tls" in name.lower()),
        modules=tuple(sorted(_users(host, "tls") & _users(host, nic.driver))),
        config=path,
        options=tuple(sorted(n for n in config if "TLS" in n.split("_"))),
    )


def _card(nic: Nic) -> None:
    """Refused for a device that no profile can describe."""
    if because := no_offload_because_of_kind(nic):
        raise Refused(f"a profile describes a card, and {because}", "probe a card: ktls-offload status")
    if nic.kind or not re.fullmatch(DRIVER, nic.driver):
        what = nic.kind or f"without a driver that can be named: {nic.driver!r}"
        raise Refused(
            f"a profile describes a card, and {nic.dev} is {what}", "ktls-offload status lists cards"
        )


def _users(host: Host, module: str) -> set[str]:
    """The loaded modules that use a module; none if it is built in or not loaded."""
    done = host.run(["ls", f"/sys/module/{module.replace('-', '_')}/holders"], check=False)
    names = done.text.split() if done.rc == 0 else []
    return {name for name in names if MODULE.fullmatch(name)}


def _pci_names(host: Host, vendor: str, device: str) -> tuple[str, str]:
    """Return what the PCI list calls vendor and device: `vvvv  Name`, and below it `TAB dddd  Name`."""
    for path in IDS:
        try:
            text = host.read(path).decode("utf-8", "replace")
        except OSError:
            continue
        block = re.search(rf"^{re.escape(vendor)}  (.+)\n((?:[\t#].*\n|\n)*)", text, re.M)
        if not block:
            return "", ""
        name = re.search(rf"^\t{re.escape(device)}  (.+)$", block.group(2), re.M)
        return block.group(1).strip(), name.group(1).strip() if name else ""
    return "", ""
