"""The truth table: for each direction, TLS version and cipher, who does the work here, and why."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import NamedTuple

from offload.card.profile import Cell, Profile
from offload.card.profile_model import ALL_CELLS
from offload.doctor.library import Trial

HW, SW, NONE, UNKNOWN = "hw", "sw", "none", "?"
# tls_device.c 7.2:1095 (version) and tls_main.c 7.2:100 (cipher), through Linux 7.3
KERNEL_HW = ("1.2", ("aes-gcm-128", "aes-gcm-256"))


class Verdict(NamedTuple):
    """A cell: hw, sw, none (the kernel does not take it) or ?; and why it is not hw."""

    cell: Cell
    who: str
    why: str


def table(
    profile: Profile | None,
    states: Mapping[str, tuple[str, str]],
    trial: Trial,
    no_tls: str,
    tls13: bool = False,
) -> tuple[Verdict, ...]:
    """Every cell of the directions in `states`, which has the state and the code of the reason of each.

    `no_tls`: the code that says why there is no kernel TLS at all, or ''. `tls13`: cards get it.
    """
    cells = [cell for cell in ALL_CELLS if cell.direction in states]
    if no_tls:
        return tuple(Verdict(cell, NONE, no_tls) for cell in cells)
    return tuple(_cell(cell, profile, *states[cell.direction], trial, tls13) for cell in cells)


def _cell(cell: Cell, profile: Profile | None, state: str, code: str, trial: Trial, tls13: bool) -> Verdict:
    """One cell: the card first, then what kernel TLS does without it."""
    if why := _never(cell, profile, tls13):
        return Verdict(cell, *_software(cell, trial, why))
    if state == "ready":
        if profile is None:
            return Verdict(cell, UNKNOWN, "the driver decides, and no profile describes it")
        return Verdict(cell, HW, "")
    return Verdict(cell, *_software(cell, trial, code))


def _never(cell: Cell, profile: Profile | None, tls13: bool) -> str:
    """Why no setting brings this cell onto the card; '' if one may."""
    if profile is not None:
        return profile.reason(*cell)
    if cell.version != KERNEL_HW[0] and not tls13:
        return "the kernel offloads TLS 1.2 only (through Linux 7.3)"
    return "" if cell.cipher in KERNEL_HW[1] else "the kernel offloads AES-GCM only"


def _software(cell: Cell, trial: Trial, why: str) -> tuple[str, str]:
    """Return what kernel TLS does in software, as it was tried."""
    answer = (trial.cells or {}).get((cell.direction, cell.version, cell.cipher))
    if answer is None:
        return UNKNOWN, why
    if answer == 0:
        return SW, why
    word = errno.errorcode.get(answer, str(answer))
    return NONE, f"this kernel refuses it ({word})"
