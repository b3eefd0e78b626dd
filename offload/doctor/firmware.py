"""Which board and firmware does a card say it is? devlink, or mstflint where it is installed; only read."""

from __future__ import annotations

import json
import re
from typing import Any

from offload.host.base import Host
from offload.nic import PCI_ADDRESS

# devlink-info.rst: `fixed` versions of the board and `running` ones of the firmware
WANTED = ("board.id", "fw.psid", "fw", "fw.mgmt", "fw.version")


def of(host: Host, bus: str) -> str:
    """`fw.psid MT_0000000359, fw 22.35.1012`; '' if nobody says."""
    if not PCI_ADDRESS.fullmatch(bus):
        return ""
    return _devlink(host, bus) or _mstflint(host, bus)


def _devlink(host: Host, bus: str) -> str:
    """What `devlink dev info` says."""
    done = host.run(["devlink", "-j", "dev", "info", f"pci/{bus}"], check=False)
    versions = _at(answer(done.text), "info", f"pci/{bus}", "versions") if done.rc == 0 else {}
    found = {**_at(versions, "fixed"), **_at(versions, "running")}
    return ", ".join(f"{name} {found[name]}" for name in WANTED if isinstance(found.get(name), str))


def _mstflint(host: Host, bus: str) -> str:
    """What `mstflint query` says; it needs root."""
    done = host.run(["mstflint", "-d", bus, "query"], check=False, timeout=20)
    rows = re.findall(r"^(FW Version|PSID):[ \t]+(\S{1,60})", done.text, re.M) if done.rc == 0 else []
    return ", ".join(f"{name} {value}" for name, value in rows[:2])


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
