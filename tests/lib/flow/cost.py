"""Instructions per byte of the card that a lab's DUT has: one boot for all tests of a run that ask."""

from __future__ import annotations

from typing import Any

from offload.errors import RigError
from offload.suite.bench.cards import knobs
from offload.suite.bench.vm import cards
from offload.suite.measure.cost import run
from offload.suite.measure.cost.figures import group
from offload.suite.measure.cost.plan import Row
from tests.lib.rig.rig import Rig

MANY = 4  # channels compared with one
MORE = (
    *(Row(arm, "tx", n) for n in (1, MANY) for arm in ("sw", "hw")),
    *(Row(arm, "tx", 1, True) for arm in ("plain", "sw", "hw", "hw-zc")),
)


def counted(rig: Rig) -> dict[str, Any]:
    """The document of one boot: every arm of this run's tests, with the lab's faults if it has any.

    AssertionError if the card with its faults does not carry payload.
    """
    turned = "" if rig.lab.kind == cards.KIND else knobs.turned(rig.lab.root)
    faults = " ".join(word for word in turned.split() if word.startswith("0/"))
    kept = vars(rig).setdefault("cost", {})
    if faults not in kept:
        kept[faults] = _boot(rig, faults)
    found: dict[str, Any] = kept[faults]
    return found


def whole(rig: Rig) -> str:
    """The direction in which the card offloads all that it can."""
    offers = rig.profile.directions()
    return "both" if set(offers) == {"tx", "rx"} else offers[0]


def part(found: dict[str, Any], *groups: tuple[str, int, str]) -> dict[str, Any]:
    """The document with these rows only: direction, channels each way, load."""
    return {**found, "rows": [row for row in found["rows"] if group(row) in groups]}


def _boot(rig: Rig, faults: str) -> dict[str, Any]:
    series = ".".join(rig.bench.rig["kernel"].split(".")[:2])
    try:
        return run.measure(
            series,
            boots=1,
            arms=("sw", "hw"),
            directions=(whole(rig),),
            offers=rig.profile.directions(),
            more=MORE,
            personality=rig.profile.id,
            knobs=faults,
            kind=rig.lab.kind,
            say=lambda _: None,
        )
    except RigError as exc:
        if not faults:
            raise
        raise AssertionError(f"with {faults} the card does not even carry payload: {exc}") from exc
