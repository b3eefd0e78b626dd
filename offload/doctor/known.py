"""Which known kernel bugs can offloaded connections meet here? From errata.yaml, by release and package."""

from __future__ import annotations

from collections.abc import Sequence

from offload.card.nic import Nic
from offload.doctor.kernel import Machine
from offload.doctor.reasons import Notes
from offload.errata.match import Erratum, load, standing

PARTS = ("device", "qdisc", "bonding", "mlx5", "ch_ktls")
SHOWN = 6


def examine(machine: Machine, nic: Nic, directions: Sequence[str], notes: Notes) -> None:
    """Note the bugs that this kernel has, of the device path and of this driver."""
    mine = [e for e in load() if _concerns(e, nic.driver, directions, nic.kind)]
    has = [e for e in mine if standing(e, machine.kernel).word == "affected"]
    if not has:
        notes.ok("no known kernel bug of the device path")
        return
    ids = ", ".join(e.id for e in has[:SHOWN]) + (f" and {len(has) - SHOWN} more" if len(has) > SHOWN else "")
    detail = [f"{e.id}: {e.symptom}" for e in has]
    notes.add("D109", str(machine.kernel), directions, detail, count=len(has), ids=ids)


def _concerns(erratum: Erratum, driver: str, directions: Sequence[str], kind: str) -> bool:
    """Say whether it is a bug that an offloaded connection of this card can meet."""
    if erratum.kind != "bug" or erratum.part not in PARTS or (erratum.driver and erratum.driver != driver):
        return False
    return bool(set(erratum.directions) & set(directions)) and (erratum.part != "bonding" or kind == "bond")
