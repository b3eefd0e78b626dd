"""What impairments a run met: each case in words with its recovery, and the records under loss."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SHARES = ("full", "part", "none")
MOST = 32  # rules of one case: as many as wirebox takes
LONGEST = 200  # characters of a rule that has no words
DIRECTIONS = {
    "a>b": "to the peer",
    "b>a": "to the DUT",
    "both": "both ways",
}  # wire port a is the one at the DUT
KINDS = {"loss": "lost", "duplicate": "twice", "reorder": "late", "corrupt": "damaged"}
HURT = {"repaired": "checksum right", "noise": "checksum wrong"}
# native/wirebox/README.md has the words of a rule
RULE = re.compile(
    r"(?P<direction>a>b|b>a)(?: port (?P<port>\d+))? (?P<place>\w+)(?: (?P<number>\+?\d+))?"
    r" (?P<action>[a-z]+)(?P<rest>(?: [a-z]+| -?\d+)*)"
)
CHANCE = re.compile(
    r"impair (?P<direction>a>b|b>a|both)(?: port (?P<port>\d+))?(?: seed (?P<seed>\d+))?(?P<rest>.*)"
)


def section(tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tests under impairments (`cases`), and the records under random loss (`loss`), lowest
    loss first.

    Under loss only passed tests count; several at one level are added up.
    """
    cases = [_case(test) for test in tests if isinstance(test["evidence"].get("impairment"), Mapping)]
    return {"cases": cases, "loss": _levels(tests)}


def _case(test: Mapping[str, Any]) -> dict[str, Any]:
    """One test: its impairments by rules and seed, the frames they met, and how the card recovered."""
    found = test["evidence"]["impairment"]
    rules = [str(rule)[:LONGEST] for rule in _list(found.get("rules")) if rule != "clear"]
    actions = [action for action in _list(found.get("actions")) if isinstance(action, Mapping)]
    return {
        "id": str(test["id"]),
        "outcome": str(test["outcome"]),
        "rules": rules[:MOST],
        "seed": found["seed"] if _count(found.get("seed")) is not None else None,
        "met": sum(action.get("action") != "none" for action in actions),
        "recovery": _numbers(test["evidence"].get("recovery")),
        "sent_again": _numbers(test["evidence"].get("sent_again")),
    }


def _levels(tests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records by percent of loss."""
    sums: dict[float, dict[str, Any]] = {}
    for test in tests:
        found = test["evidence"].get("loss")
        if test["outcome"] != "pass" or not isinstance(found, Mapping):
            continue
        percent, counts = found.get("percent"), [_count(found.get(name)) for name in SHARES]
        if not isinstance(percent, int | float) or isinstance(percent, bool) or not 0 <= percent <= 100:
            continue
        known = [count for count in counts if count is not None]
        if len(known) != len(counts) or sum(known) == 0:
            continue
        row = sums.setdefault(float(percent), {"percent": float(percent)} | dict.fromkeys(SHARES, 0))
        row |= {name: row[name] + count for name, count in zip(SHARES, known, strict=True)}
        row["resync_requests"] = row.get("resync_requests", 0) + (_count(found.get("resync_requests")) or 0)
    return [sums[percent] for percent in sorted(sums)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: Any) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64
    return int(value) if good else None


def _numbers(found: Any) -> dict[str, int | float]:
    """The numbers among what a test noted, by name."""
    if not isinstance(found, Mapping):
        return {}
    return {
        str(name): value
        for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 63
    }


def words(rules: Sequence[str], seed: int | None = None) -> list[str]:
    """Return rules of wirebox in words, those that differ only in their place together.

    `seed` is that of chance which names none.
    """
    together: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        place, *rest = _phrase(rule, seed)
        together.setdefault((rest[0], rest[1]), []).append(place)
    return [
        f"{_joined(places)}, {direction}: {what}" if direction else what
        for (direction, what), places in together.items()
    ]


def _joined(places: Sequence[str]) -> str:
    """The places of several rules, those of one kind together: `header of data records 6, 7`."""
    kinds: dict[str, list[str]] = {}
    for place in places:
        kind, _, number = place.rpartition(" ")
        kind, number = (kind, number) if number.isdigit() else (place, "")
        kinds.setdefault(kind, []).append(number)
    return ", ".join(
        f"{kind}{'s' if len(found) > 1 else ''} {', '.join(found)}".strip() for kind, found in kinds.items()
    )


def _phrase(rule: str, seed: int | None) -> tuple[str, str, str]:
    """One rule: which frame, on which way, what is done to it; only the last for one that has no words."""
    if chance := CHANCE.fullmatch(rule):
        named = chance["seed"] or ("" if seed is None else str(seed))
        what = ", ".join(_chances(chance["rest"])) or "nothing"
        return "random frames", _direction(chance), what + (f" (seed {named})" if named else "")
    if chosen := RULE.fullmatch(rule):
        place = _place(chosen["place"], chosen["number"] or "")
        return place, _direction(chosen), _deed(chosen["action"], chosen["rest"])
    return "", "", rule


def _direction(match: re.Match[str]) -> str:
    return DIRECTIONS[match["direction"]] + (f" (port {match['port']})" if match["port"] else "")


def _place(place: str, number: str) -> str:
    if place in ("header", "inside", "tag"):
        kind = "data record" if number.startswith("+") else "record"
        return f"{place} of {kind} {number.removeprefix('+')}"
    if place in ("first", "last"):
        return f"{place} frame of data" if place == "first" else "last frame"
    return f"{'byte' if place == 'offset' else place} {number}"


def _deed(action: str, rest: str) -> str:
    words = rest.split()
    often = f", {words[words.index('times') + 1]} times" if "times" in words[:-1] else ""
    if action == "delay":
        return f"late by {words[0] if words else 3} frames{often}"
    if action == "flip":
        return f"a bit flipped, {next((HURT[w] for w in words if w in HURT), 'checksum right')}{often}"
    return {"drop": "lost", "duplicate": "twice"}.get(action, action) + often


def _chances(rest: str) -> Iterator[str]:
    words = rest.split()
    for name, value in zip(words, words[1:], strict=False):
        if name in KINDS:
            yield f"{value.rstrip('%').rstrip('0').rstrip('.') or '0'} % {KINDS[name]}"
        elif name == "jitter":
            yield f"jitter of {int(value) / 1000:g} ms" if value.isdigit() else "jitter"
