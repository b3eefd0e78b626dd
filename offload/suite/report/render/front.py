"""What the first pages of a report show: figures, what capped the verdict, promises by need, what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from offload.suite.report import wire
from offload.suite.report.cpu.rows import SIDES
from offload.suite.report.cpu.words import is_simulated
from offload.suite.report.verdict import FAILED, INCOMPLETE, LIMITED, Gap, State

# what to do about a promise that is not proved
REMEDIES: dict[str, str] = {
    Gap.SKIPPED: "Install or provide what is missing, and run again.",
    Gap.RIG: "Repair the rig, and run again.",
    Gap.LEFT_OUT: "Run the whole suite: omit --only.",
    Gap.NO_RESULT: "Run again: the test was planned and did not end.",
    Gap.NO_PROOF: "Look at the test's evidence: it passed without showing a proof.",
    Gap.TOO_FEW: "Run the whole suite.",
    Gap.UNCOVERED: "Run the whole suite.",
    Gap.UNMEASURED: "Run the whole suite on a rig that can measure.",
    Gap.UNCROSSED: "Run with --depth standard.",
}
SIDE = ("sender", "dut", "receiver", "host")  # whose saving is shown first


class Figure(NamedTuple):
    """A number with its unit, and the words below it."""

    value: str
    words: str


class Unproved(NamedTuple):
    """Why promises were not proved, what to do about it, and which they are."""

    why: str
    remedy: str
    promises: list[str]


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return the three figures that a reader wants first: wire, payload, cost."""
    totals = wire.totals(document.get("wire", []))
    records, payload = totals["B"]["records"], totals["A"]["bytes"]
    return [
        Figure(f"{records:,}", "TLS records on the wire match a correct sender's")
        if records
        else Figure("none", "of the TLS records on the wire were proved to match"),
        Figure(wire.size(payload), "of payload arrived intact at the other end")
        if payload
        else Figure("none", "of the payload was found intact at the other end"),
        _saving(document),
    ]


def _saving(document: Mapping[str, Any]) -> Figure:
    """Return what offload saves of software kernel TLS: counted in a simulation, timed on a card."""
    section = document.get("cpu") or {"settings": [], "sources": []}
    for setting in section["settings"]:
        counted = setting["method"] == "icount"
        if counted is not is_simulated(section, setting):
            continue
        pairs = [p for p in setting["compared"] if (p["base"], p["arm"]) == ("sw", "hw")]
        pairs.sort(key=lambda pair: SIDE.index(pair["side"]) if pair.get("side") in SIDE else 0)
        if pairs and pairs[0].get("saved_percent") is not None:
            return _saved(pairs[0], counted)
    return Figure("\u2013", "cost per byte was not measured")


def _saved(pair: Mapping[str, Any], counted: bool) -> Figure:
    saved, side = pair["saved_percent"], SIDES.get(pair.get("side", ""), "")
    what = "instructions per byte" if counted else "processor time"
    words = f"{'fewer' if counted and saved >= 0 else 'less' if saved >= 0 else 'more'} {what}"
    return Figure(f"{abs(saved):.0f} %", f"{words} than software kernel TLS{f' ({side})' if side else ''}")


def capped(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the promises that the verdict is about: broken, not proved, or limiting; none if void."""
    caps = {FAILED: _breaks, INCOMPLETE: _blocks, LIMITED: _limits}.get(document["verdict"])
    return [promise for promise in document["promises"] if caps and caps(promise)]


def _breaks(promise: Mapping[str, Any]) -> bool:
    return bool(promise["state"] == State.BROKEN and promise["blocker"])


def _blocks(promise: Mapping[str, Any]) -> bool:
    return promise["state"] == State.UNPROVED and required(promise)


def _limits(promise: Mapping[str, Any]) -> bool:
    open_ = promise["state"] == State.UNPROVED and promise["gap"] != Gap.SKIPPED
    return open_ or promise["state"] in (State.BROKEN, State.LIMITED)


def required(promise: Mapping[str, Any]) -> bool:
    """Say whether there is no certificate without this promise."""
    return bool(promise["blocker"]) and promise.get("unproved", "blocks") == "blocks"


def by_need(document: Mapping[str, Any]) -> list[tuple[str, Sequence[Mapping[str, Any]]]]:
    """Return the promises under the headings of the first pages; those that are not asked come last."""
    asked = [promise for promise in document["promises"] if promise["state"] != State.UNPROMISED]
    rest = [promise for promise in document["promises"] if promise["state"] == State.UNPROMISED]
    groups = [
        ("Required", [promise for promise in asked if required(promise)]),
        ("Optional", [promise for promise in asked if not required(promise)]),
        ("Not promised by the profile, so not asked", rest),
    ]
    return [(name, found) for name, found in groups if found]


def unproved(document: Mapping[str, Any]) -> list[Unproved]:
    """Return why promises were not proved and what to do about it; those with the same reason together."""
    rows: dict[tuple[str, str], list[str]] = {}
    for promise in document["promises"]:
        if promise["state"] == State.UNPROVED:
            gap = promise["gap"]
            why = gap if gap in (Gap.LEFT_OUT, Gap.NO_RESULT) else promise["reason"]
            why = f"{gap}: {promise['why']}" if promise.get("why") else why
            rows.setdefault((gap, why), []).append(promise["id"])
    return [Unproved(why, REMEDIES.get(gap, "Run again."), ids) for (gap, why), ids in rows.items()]
