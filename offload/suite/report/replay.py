"""How a test that was repeated compares with the former run: outcome, reason, and the frames it met."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from offload.suite.report.events import Log

# a count, a time, a port, and bytes that depend on the keys of the connection, as words.py shows them
NUMBER = re.compile(r"(?<=expected )[0-9a-f]{2,}\b|(?<=got )[0-9a-f]{2,}\b|\d+(\.\d+)?")


def compare(
    then: Mapping[str, Any], outcome: str, reason: str, evidence: Mapping[str, Any]
) -> dict[str, Any]:
    """Return how a repeated test compares: `same` outcome, `for` the same reason, and the frames met."""
    same = outcome == then["outcome"]
    return {
        "then": str(then["outcome"]),
        "same": same,
        "same_reason": same and _shape(reason) == _shape(str(then["reason"])),
        "impairment": frames(then["evidence"].get("impairment"), evidence.get("impairment")),
    }


def _shape(reason: str) -> str:
    """A reason without its numbers: times and counts differ from run to run."""
    return NUMBER.sub("#", reason)


def frames(then: Any, now: Any) -> str:
    """Say in one phrase whether the same frames matched; empty without impairments then and now.

    A chosen frame is the same if rule, action and record are; one met by chance if its number is. Frames
    beyond the end of the other run do not count. It also says which bytes of the stream chance met:
    that depends on what TCP had sent by then.
    """
    if not _is_impairment(then) or not _is_impairment(now):
        return "" if then is None and now is None else "no record of the frames that the rules matched"
    if then["rules"] != now["rules"] or then.get("seed") != now.get("seed"):
        return "the impairment rules differed"
    limits = {
        direction: min(_last(then, direction), _last(now, direction)) for direction in ("to-peer", "to-dut")
    }
    old, new = _met(then, limits), _met(now, limits)
    both, either = sum((old & new).values()), sum((old | new).values())
    if both == either:
        return _all_of(both) + _bytes(then, now, limits) if both else "no rule matched a frame"
    first = min((old - new) or (new - old))
    whose = "only then" if first in old - new else "only now"
    return f"{both} of {either} frames were the same; {whose}: {_words(first)}"


def _is_impairment(found: Any) -> bool:
    return (
        isinstance(found, Mapping)
        and isinstance(found.get("rules"), list)
        and isinstance(found.get("actions"), list)
        and all(isinstance(action, Mapping) for action in found["actions"])
    )


Met = tuple[int, str, str, int]  # rule, direction, action, number of the frame (chance) or record (chosen)


def _met(impairment: Mapping[str, Any], limits: Mapping[str, int]) -> Counter[Met]:
    """Return the frames that were met, each as what makes it the same in another run."""
    rows: Counter[Met] = Counter()
    for action in impairment["actions"]:
        direction, number = _place(action)
        if action.get("action") == "none" or number > limits.get(direction, 0):
            continue
        place = number or _number(action, "record", -1)
        rows[(_number(action, "rule"), direction, str(action.get("action")), place)] += 1
    return rows


def _last(impairment: Mapping[str, Any], direction: str) -> int:
    """The number of the last frame that chance looked at, as far as the record tells."""
    return max(
        (number for place, number in map(_place, impairment["actions"]) if place == direction), default=0
    )


def _all_of(count: int) -> str:
    return "the same frame matched" if count == 1 else f"the same {count} frames matched"


def _bytes(then: Mapping[str, Any], now: Mapping[str, Any], limits: Mapping[str, int]) -> str:
    """Say how many of the frames that chance met held the same bytes; empty if all of them did."""
    old, new = (
        {_place(a): a.get("offset") for a in w["actions"] if _number(a, "number")} for w in (then, now)
    )
    both = [place for place in old if place in new and place[1] <= limits.get(place[0], 0)]
    same = sum(old[place] == new[place] for place in both)
    return f", {same} of {len(both)} at the same byte of the stream" if same < len(both) else ""


def _place(action: Mapping[str, Any]) -> tuple[str, int]:
    return str(action.get("direction")), _number(action, "number")


def _number(action: Mapping[str, Any], key: str, default: int = 0) -> int:
    value = action.get(key)
    return value if isinstance(value, int) else default


def _words(met: Met) -> str:
    rule, direction, action, place = met
    return f"rule {rule}, {action} {direction}" + (f", at {place}" if place >= 0 else "")


def section(log: Log, kernel: str, rig: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what the report says of a run that repeats another one; None for a run that does not.

    `kernel` and `rig` are what this run stood on: where they differ from then, it is not the same run again.
    """
    head = next((event for event in log.events if event["event"] == "replay"), None)
    if head is None:
        return None
    results = {event["id"]: event for event in log.events if event["event"] == "test"}
    plans = (test for event in log.events if event["event"] == "plan" for test in event["tests"])
    planned = {str(test.get("id")) for test in plans if isinstance(test, dict)}
    rows = [
        _row(row, results.get(row["id"]), row["id"] in planned)
        for row in head["tests"]
        if isinstance(row, dict) and isinstance(row.get("id"), str)
    ]
    return {"of": head["of"], "sha256": head["sha256"], "differs": _differs(head, kernel, rig), "tests": rows}


def _differs(head: Mapping[str, Any], kernel: str, rig: Mapping[str, str]) -> list[str]:
    """Name the parts of the rig that are not those of the former run; what is in brackets is a remark."""
    then, now = (
        {name: str(value).partition(" (")[0] for name, value in parts.items()}
        for parts in ({**head["rig"], "kernel": head["kernel"]}, {**rig, "kernel": kernel})
    )
    return [
        f"{name}: {then.get(name, 'none')} then, {now.get(name, 'none')} now"
        for name in sorted({*then, *({"knobs"} & now.keys())})
        if then.get(name) != now.get(name)
    ]


def _row(then: Mapping[str, Any], test: Mapping[str, Any] | None, planned: bool) -> dict[str, Any]:
    found = {"id": then["id"], "then": str(then.get("outcome")), "now": "", "same": False, "impairment": ""}
    if test is None:
        return found | {"words": "planned, but has no result" if planned else "no longer in the suite"}
    repeated = test["evidence"].get("replay")
    repeated = repeated if isinstance(repeated, Mapping) else {}
    same = test["outcome"] == found["then"]
    words = "same outcome" if same else "another outcome"
    words += ", for another reason" if same and repeated.get("same_reason") is False else ""
    return found | {
        "now": str(test["outcome"]),
        "same": same,
        "words": words,
        "impairment": str(repeated.get("impairment", "")),
    }
