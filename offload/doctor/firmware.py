"""Which board and firmware does a card say it is? devlink, or mstflint where it is installed; only read."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from offload.host.base import Host
from offload.nic import PCI_ADDRESS

# devlink-info.rst: `fixed` versions of the board and `running` ones of the firmware
WANTED = ("board.id", "fw.psid", "fw", "fw.mgmt", "fw.version")


class Board(NamedTuple):
    """What a card says it is. `text`: `fw.psid MT_0000000359, fw 22.35.1012`; `part`: its part number;
    `crypto`: whether it is described as one with crypto, None if nothing is said of it."""

    text: str = ""
    part: str = ""
    crypto: bool | None = None


def board(host: Host, bus: str) -> Board:
    """What devlink and mstflint say of the card at a PCI address; an empty Board if nobody says anything."""
    if not PCI_ADDRESS.fullmatch(bus):
        return Board()
    by_devlink, by_mstflint = _devlink(host, bus), _mstflint(host, bus)
    return by_mstflint._replace(text="; ".join(text for text in (by_devlink, by_mstflint.text) if text))


def older(firmware: str, minimum: str) -> bool | None:
    """Whether firmware is older than a version; None if the two cannot be compared.

    `22.35.1012 (MT_0000000359)` of mlx5 and `1.27.5.0, TP 0.1.4.9` of cxgb4 begin with their numbers. With
    another first number, or more numbers, they are of two families.
    """
    found = re.match(r"\d{1,9}(\.\d{1,9})+(?![.\w])", firmware)
    have = tuple(map(int, found[0].split("."))) if found else ()
    want = tuple(map(int, minimum.split(".")))
    return have < want if have[:1] == want[:1] and len(have) == len(want) else None


def _devlink(host: Host, bus: str) -> str:
    """What `devlink dev info` says."""
    done = host.run(["devlink", "-j", "dev", "info", f"pci/{bus}"], check=False)
    versions = _at(answer(done.text), "info", f"pci/{bus}", "versions") if done.rc == 0 else {}
    found = {**_at(versions, "fixed"), **_at(versions, "running")}
    return ", ".join(f"{name} {found[name]}" for name in WANTED if isinstance(found.get(name), str))


def _mstflint(host: Host, bus: str) -> Board:
    """What `mstflint query full` says; it needs root.

    The description is the maker's: `No Crypto`, `Crypto Disabled` or, of a part that has it, `Crypto`.
    """
    done = host.run(["mstflint", "-d", bus, "query", "full"], check=False, timeout=20)
    rows = re.findall(r"^([A-Z][A-Za-z ]{1,20}):[ \t]+(\S.{0,199})$", done.text, re.M) if done.rc == 0 else []
    said = {name: " ".join(value.split()) for name, value in rows}
    words = said.get("Description", "").lower()
    crypto = None if "crypto" not in words else re.search(r"\bno crypto|crypto disabled", words) is None
    shown = [f"{name} {said[name]}" for name in ("FW Version", "PSID", "Description") if name in said]
    return Board(", ".join(shown), said.get("Part Number", "")[:40], crypto)


def answer(text: str) -> dict[str, Any]:
    """A JSON object; empty for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _at(tree: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The object below these keys; empty if there is none."""
    found: Any = tree
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
