"""What stands above, below and before the device: bond, VLAN, bridge, queueing discipline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from offload.card.nic import UPPERS, Nic
from offload.card.profile import DIRECTIONS
from offload.doctor.reasons import Notes
from offload.host.base import Host

BOND_MODES = ("802.3ad", "balance-xor")  # bond_sk_check, with layer3+4
# What makes sch_netem orphan a packet, or copy it (sch_netem.c 7.2:500). Loss alone does not.
ORPHANS = ("delay", "rate", "slot", "reorder", "duplicate", "corrupt")
Rows = Mapping[str, Mapping[str, Any]]


def _info(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `info_data` of a virtual device."""
    info = row.get("linkinfo")
    data = info.get("info_data") if isinstance(info, dict) else None
    return data if isinstance(data, dict) else {}


def _kind(row: Mapping[str, Any] | None) -> str:
    info = row.get("linkinfo") if row else None
    return str(info.get("info_kind", "")) if isinstance(info, dict) else ""


def bond(nic: Nic, rows: Rows, notes: Notes) -> bool:
    """Note how a bond stands; say whether its ports are asked to offload."""
    data = _info(rows.get(nic.dev, {}))
    mode, policy = str(data.get("mode", "unknown")), str(data.get("xmit_hash_policy", "none"))
    seen = f"ip -d link show {nic.dev}: mode {mode}, xmit_hash_policy {policy}"
    if mode not in BOND_MODES or policy != "layer3+4":
        notes.add("D203", seen, DIRECTIONS, mode=mode, policy=policy)
        return False
    if not nic.lower:
        notes.add("D216", seen, DIRECTIONS)
        return False
    notes.add("D204", seen, ["tx"])
    return True


def above(nic: Nic, rows: Rows, notes: Notes) -> None:
    """Note devices that stand on this one: what is routed through them is not offloaded."""
    own = rows.get(nic.dev, {})
    master = str(own.get("master", ""))
    kind = _kind(rows.get(master))
    if master and kind != "bond":
        evidence = f"ip link show {nic.dev}: master {master}"
        notes.add("D404", evidence, DIRECTIONS, master=master, kind=kind or "device of another kind")
    uppers = [name for name, row in rows.items() if row.get("link") == nic.dev and _kind(row) in UPPERS]
    if uppers:
        shown = ", ".join(f"{name} ({_kind(rows[name])})" for name in uppers[:8])
        notes.add("D402", "ip -d link show", DIRECTIONS, uppers=shown)


def queueing(host: Host, nic: Nic, notes: Notes) -> None:
    """Note a queueing discipline on the way out that takes packets away from their socket."""
    done = host.run(["tc", "-j", "qdisc", "show", "dev", nic.dev], check=False)
    rows = _rows(done.text) if done.rc == 0 else None
    if rows is None:
        said = done.stderr.decode("utf-8", "replace").strip() or f"exit {done.rc}, no JSON"
        notes.add("D405", f"tc -j qdisc show dev {nic.dev}: {said}", ["tx"])
        return
    before = len(notes.findings)
    for row in rows:
        options = row.get("options")
        used = [o for o in ORPHANS if isinstance(options, dict) and _moves(options.get(o))]
        if row.get("kind") == "netem" and used:
            place = "root" if row.get("root") else f"parent {row.get('parent', '')}"
            seen = f"tc qdisc show dev {nic.dev}: netem {' '.join(used)}"
            notes.add("D401", seen, ["tx"], options=", ".join(used), place=place)
    if len(notes.findings) == before:
        notes.ok("queueing discipline")


def _moves(value: object) -> bool:
    """Say whether an option of netem does anything: {"delay": 0.1, "jitter": 0} does, zeros do not."""
    if isinstance(value, dict):
        return any(_moves(inner) for inner in value.values())
    return bool(value)


def _rows(text: str) -> list[dict[str, Any]] | None:
    """A JSON list of objects; None for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else None
