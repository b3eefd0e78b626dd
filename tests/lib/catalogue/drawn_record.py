"""A record that grows: what became of each drawn bad card, one line of JSON each, and how many escaped."""

from __future__ import annotations

import datetime
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from offload.errors import ConfigError
from tests.lib.catalogue import clean as catalogue_clean
from tests.lib.catalogue import record
from tests.lib.catalogue.drawn import Defect, defects
from tests.lib.catalogue.drawn_summary import Drawn, wilson

FILE = catalogue_clean.FILE.with_name("drawn.jsonl")
BEGIN, END = "<!-- made by benchmarks.drawn, of drawn.jsonl: begin -->", "<!-- end of drawn cards -->"
SEED = 1823  # of the record; 1801 to 1805 and 1911 were drawn while the suite was built
CAUGHT, ESCAPED, SILENT, VOID = "caught", "escaped", "silent", "void"
FIELDS = ("date", "commit", "kernel", "seed", "id", "security", "depth", "word", "scenarios", "by", "named")
FIELDS += ("headline", "fired", "seconds")
LATER = ("load",)
AGAIN = 5  # runs with the same code that show whether a verdict is steady
SHRUNK = 5  # of so many cards in a seed's order one has its scenario shrunk, which the headline is judged by
LONGEST = 200  # characters of a headline
SCENARIO = re.compile(r"\[(seed=[^\]]*)\]\]?$")
Json = Mapping[str, Any]


def following(seed: int, lines: Sequence[Json], count: int) -> tuple[Defect, ...]:
    """The next cards of a seed's order that the record does not have: so a later draw goes on."""
    done = {line["id"] for line in lines if line["seed"] == seed}
    every = defects()
    order = random.Random(seed).sample(every, len(every))
    return tuple(one for one in order if one.id not in done)[:count]


def drawn_before(seed: int, lines: Sequence[Json], count: int) -> tuple[Defect, ...]:
    """The first cards of a seed that were drawn, to run them again. ConfigError if there are not so many."""
    by_id = {one.id: one for one in defects()}
    ids = dict.fromkeys(line["id"] for line in lines if line["seed"] == seed)
    found = [by_id[name] for name in ids if name in by_id]
    if len(found) < count:
        raise ConfigError(f"{count} cards to run again", f"seed {seed} has {len(found)} in the record")
    return tuple(found[:count])


def shrinks(seed: int, defect: Defect) -> bool:
    """Whether the failing scenario of a card is shrunk: each fifth of a seed's order."""
    every = defects()
    return random.Random(seed).sample(every, len(every)).index(defect) % SHRUNK == 0


def entry(drawn: Drawn, *, seed: int, depth: str, kernel: str, code: str) -> dict[str, Any]:
    """The line of a card: caught by which scenario, and whether the headline names its condition.

    `named` is None if the scenario was not shrunk: the headline then has all conditions, needed or not.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    silent = VOID if drawn.own_fired else SILENT
    word = CAUGHT if drawn.seen else ESCAPED if drawn.counts else silent
    found = SCENARIO.search(drawn.by)
    who = (seed, drawn.defect.id, drawn.defect.place.security, depth)
    what = (
        word,
        drawn.ran,
        found[1] if found else "",
        (drawn.seen and drawn.blamed) if drawn.shrunk else None,
        drawn.by.partition(": ")[0][:LONGEST],
    )
    values = (now, code, kernel, *who, *what, drawn.fired, round(drawn.seconds, 1))
    return dict(zip(FIELDS, values, strict=True)) | {"load": round(os.getloadavg()[0], 1)}


def append(line: Json, path: Path | None = None) -> None:
    """Add a line to the record."""
    record.append(path or FILE, line)


def read(path: Path | None = None) -> list[dict[str, Any]]:
    """Every line. ConfigError with file and line for one that is none."""
    return record.read(path or FILE, FIELDS, LATER)


def first(lines: Sequence[Json]) -> list[Json]:
    """The first line of each card: one that is run again, after a repair, changes no share."""
    return list({line["id"]: line for line in reversed(lines)}.values())[::-1]


def sentences(lines: Sequence[Json]) -> Iterator[str]:
    """The record in sentences: how many were caught, of which the headline was right, and what escaped."""
    cards = first(lines)
    acted = [line for line in cards if line["word"] in (CAUGHT, ESCAPED)]
    escaped = [line for line in acted if line["word"] == ESCAPED]
    grave = [line for line in acted if line["security"]]
    silent = len(cards) - len(acted)
    yield f"{len(cards)} cards were drawn, and the fault of {len(acted)} acted ({silent} did not count)."
    if acted:
        low, high = wilson(len(escaped), len(acted))
        share = 100 * len(escaped) / len(acted)
        yield f"{len(escaped)} escaped: {share:.1f} % (95 %: {low:.1f} to {high:.1f} %),"
        yield f"{sum(line['security'] for line in escaped)} of {len(grave)} security-relevant ones."
    if caught := [line for line in acted if line["word"] == CAUGHT]:
        asked = [line["named"] for line in caught if line["named"] is not None]
        yield f"{len(asked)} of the {len(caught)} caught cards had their failing scenario shrunk:"
        yield f"the headline names the condition of {sum(asked)} of these."
    yield from steady(lines)


def steady(lines: Sequence[Json]) -> Iterator[str]:
    """Whether a card that ran several times with the same code had the same verdict each time."""
    runs: dict[tuple[str, str], list[Json]] = {}
    for line in lines:
        runs.setdefault((line["id"], line["commit"]), []).append(line)
    often = [same for same in runs.values() if len(same) >= AGAIN]
    if not often:
        return
    other = sorted({same[0]["id"] for same in often if len({line["word"] for line in same}) > 1})
    loads = [line["load"] for same in often for line in same if line["load"] is not None]
    span = f" at loads of {min(loads):.0f} to {max(loads):.0f}" if loads else ""
    yield f"{len(often)} cards ran {AGAIN} times or more with the same code{span};"
    yield f"the verdict differed for {', '.join(other) or 'none'}."


def table(lines: Sequence[Json]) -> str:
    """The sentences, and a row for each card that escaped, or whose headline does not name its condition."""
    out = [" ".join(sentences(lines)), ""]
    latest = {line["id"]: line for line in lines}
    odd = [line for line in first(lines) if line["word"] != CAUGHT or line["named"] is False]
    if odd:
        out += ["| card | first | headline | latest |", "|---|---|---|---|"]
    for line in odd:
        now = latest[line["id"]]
        again = "" if now is line else now["word"] + (", named" if now["named"] else "")
        out.append(
            f"| `{line['id']}` | {line['word']} | {line['headline'] or 'none'} | {again or 'the same'} |"
        )
    return "\n".join(out) + "\n"


def page(text: str, lines: Sequence[Json]) -> str:
    """The page with what the record has now. ValueError if it has no place for it."""
    return record.put(text, BEGIN, END, table(lines))
