"""Which part is this card? The part number of its vital product data, as the card has it."""

from __future__ import annotations

from offload.card.nic import PCI_ADDRESS
from offload.host.base import Host

MAX = 32 * 1024  # PCI: 15 bits of address
READ_ONLY, END = 0x90, 0x78  # PCI Local Bus 3.0, appendix I: large tag VPD-R, small tag End


def part_number(data: bytes) -> str:
    """The PN field; '' if there is none. It reads at most 32 KiB of any content, and always ends."""
    at, data = 0, data[:MAX]
    while at < len(data) and data[at] != END:
        tag = data[at]
        large = bool(tag & 0x80)
        size = int.from_bytes(data[at + 1 : at + 3], "little") if large else tag & 0x07
        start = at + (3 if large else 1)
        if tag == READ_ONLY:
            return _field(data[start : start + size], b"PN")
        at = start + size
    return ""


def _field(area: bytes, name: bytes) -> str:
    """A field of the read-only area: two letters, a length, text."""
    at = 0
    while at + 3 <= len(area):
        size = area[at + 2]
        if area[at : at + 2] == name:
            text = area[at + 3 : at + 3 + size].decode("ascii", "replace")
            return "".join(c for c in text if c.isprintable()).strip()
        at += 3 + size
    return ""


def of(host: Host, bus: str) -> tuple[str, str]:
    """The part number of a PCI address, and why there is none: ('', 'needs root')."""
    if not PCI_ADDRESS.fullmatch(bus):
        return "", "not a PCI device"
    try:
        found = part_number(host.read(f"/sys/bus/pci/devices/{bus}/vpd"))
    except PermissionError:
        return "", "only root can read it"
    except OSError:
        return "", "the card has no vital product data"
    return found, "" if found else "its vital product data contains no part number"
