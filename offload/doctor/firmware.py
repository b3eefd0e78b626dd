"""Which board and firmware does a card say it is? As devlink and mstflint tell it."""

from __future__ import annotations

import re
from typing import NamedTuple

from offload.card.nic import Nic
from offload.card.nic_tools import VERSIONS, ask
from offload.host.base import Host

SHOWN = ("FW Version", "PSID", "Description")  # of mstflint's answer, in a finding


class Board(NamedTuple):
    """What a card says it is. `text`: `fw.psid MT_0000000359, fw 22.35.1012`; `part`: its part number;
    `crypto`: whether it is described as one with crypto, None if no tool says so."""

    text: str = ""
    part: str = ""
    crypto: bool | None = None


def board(host: Host, nic: Nic) -> Board:
    """Return what devlink and mstflint say of an interface's card; an empty Board if nobody says anything.

    The description is the maker's: `No Crypto`, `Crypto Disabled` or, of a part that has it, `Crypto`.
    """
    said = {answer.tool: answer.said for answer in ask(host, nic, ("devlink", "mstflint"))}
    by_devlink, flash = said.get("devlink", {}), said.get("mstflint", {})
    shown = [
        ", ".join(f"{name} {found[name]}" for name in names if name in found)
        for found, names in ((by_devlink, VERSIONS), (flash, SHOWN))
    ]
    words = flash.get("Description", "").lower()
    crypto = None if "crypto" not in words else re.search(r"\bno crypto|crypto disabled", words) is None
    return Board("; ".join(text for text in shown if text), flash.get("Part Number", "")[:40], crypto)


def older(firmware: str, minimum: str) -> bool | None:
    """Whether firmware is older than a version; None if the two cannot be compared.

    `22.35.1012 (MT_0000000359)` of mlx5 and `1.27.5.0, TP 0.1.4.9` of cxgb4 begin with their numbers. With
    another first number, or more numbers, they are of two families.
    """
    found = re.match(r"\d{1,9}(\.\d{1,9})+(?![.\w])", firmware)
    have = tuple(map(int, found[0].split("."))) if found else ()
    want = tuple(map(int, minimum.split(".")))
    return have < want if have[:1] == want[:1] and len(have) == len(want) else None
