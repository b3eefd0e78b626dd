"""Several devices at once: a bond is its ports, and every refusal comes before the first change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from offload.errors import ConfigError, NoDevice, OffloadError, Refused
from offload.switch.enable import Rows, Say, Wish

Answer = TypeVar("Answer")
BOND_MODES = ("802.3ad", "balance-xor")  # bond_sk_check (bond_main.c), with layer3+4


def spread(rows: Rows, wishes: Sequence[Wish], say: Say) -> list[Wish]:
    """The wishes with each bond replaced by its ports, every device once. `rows`: as nic.links has them.

    Refused: a bond without ports, or to be switched on in a mode in which the kernel asks no port.
    """
    found: dict[str, Wish] = {}
    for wish in wishes:
        row = next((r for n, r in rows.items() if wish.dev in (n, *r.get("altnames", ()))), {})
        name = str(row.get("ifname", wish.dev))
        below = ports(rows, name)
        if _is_bond(row):
            _usable(wish, name, row, below)
            say(f"{name} is a bond: its ports are switched one by one: {', '.join(below)}")
        for dev in below or [name]:
            found.setdefault(dev, wish._replace(dev=dev))
    return list(found.values())


def ports(rows: Mapping[str, Mapping[str, Any]], dev: str) -> list[str]:
    """The ports of a bond; empty for anything else. `rows`: as nic.links has them."""
    return [n for n, r in rows.items() if r.get("master") == dev] if _is_bond(rows.get(dev, {})) else []


def _is_bond(row: Mapping[str, Any]) -> bool:
    info = row.get("linkinfo")
    return isinstance(info, dict) and info.get("info_kind") == "bond"


def _usable(wish: Wish, name: str, row: Mapping[str, Any], below: list[str]) -> None:
    """Refuse what would switch nothing, or nothing that a connection through the bond would meet."""
    if not below:
        raise Refused(f"{name} is a bond without ports", f"ip link set DEV master {name}")
    data = row["linkinfo"].get("info_data") or {}
    mode, policy = str(data.get("mode", "")), str(data.get("xmit_hash_policy", ""))
    if not wish.on or not mode or (mode in BOND_MODES and policy == "layer3+4"):
        return
    raise Refused(
        f"{name} is a bond in mode {mode} with hash policy {policy or 'none'}: the kernel offloads through "
        "a bond in 802.3ad and balance-xor with layer3+4 only",
        f"ktls-offload doctor {name}; its ports individually: ktls-offload enable {' '.join(below)}",
    )


def agreed(wishes: Sequence[Wish], ask: Callable[[Wish], Answer]) -> list[Answer]:
    """Ask for each; what it raises, of all that are refused in one error, and nothing was changed."""
    answers: list[Answer] = []
    refused: list[tuple[str, OffloadError]] = []
    for wish in wishes:
        try:
            answers.append(ask(wish))
        except (Refused, NoDevice, ConfigError) as why:
            refused.append((wish.dev, why))
    if refused:
        raise _together(wishes, refused)
    return answers


def _together(wishes: Sequence[Wish], refused: Sequence[tuple[str, OffloadError]]) -> OffloadError:
    if len(wishes) == 1:
        return refused[0][1]
    kind = type(refused[0][1]) if len({type(why) for _, why in refused}) == 1 else Refused
    lines = [f"{dev}: {str(why).removeprefix(f'{dev}: ')}" for dev, why in refused]
    others = [w.dev for w in wishes if w.dev not in dict(refused)]
    return kind(
        f"{len(refused)} of {len(wishes)} devices refused; nothing was changed\n  "
        + "\n  ".join(line.replace("\n", "\n  ") for line in lines),
        f"only the others: ktls-offload {'enable' if wishes[0].on else 'disable'} {' '.join(others)}"
        if others
        else "",
    )
