"""What the page's section on active cores is filled with: words, plots, tables, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from offload.suite.measure.cost.compared import SAVED, UNTOLD
from offload.suite.report.cpu import plots
from offload.suite.report.cpu import words as cpu_words
from offload.suite.report.cpu.rows import ARMS, SIDES
from offload.suite.report.render.svg import figure

NOTES = {SAVED: "Saved elsewhere", UNTOLD: "Not counted"}
MEMORY, ABSENT = "memory traffic", "not measurable here"  # as offload/suite/measure/cpu/memory.py says it


def page(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that templates/cpu.html shows of a report's section `cpu`; empty for a report without it."""
    if not section:
        return {}
    all_, shown = len(section["settings"]), cpu_words.worth_showing(section)
    section = {**section, "settings": shown}
    arms = [arm for setting in section["settings"] for arm in setting["arms"]]
    return plots.page(section) | {
        "requests": any("requests" in arm for arm in arms),
        "memory": any("memory_per_byte" in arm for arm in arms),
        "no_memory": _no_memory(section),
        "arms": ARMS,
        "sides": SIDES,
        "mark": cpu_words.MARK,
        "simulated": any(source["simulated"] for source in section["sources"]),
        "said": cpu_words.summary(section),
        "notes": _notes(section),
        "sources": section["sources"],
        "skipped": _skipped(section),
        "complete": section["complete"],
        "hidden": all_ - len(shown),
    }


def _no_memory(section: Mapping[str, Any]) -> list[str]:
    """Why memory traffic was not counted, by those who measured over time; what several say is told once."""
    timed = {setting["source"] for setting in section["settings"] if setting["method"] == "time"}
    said = [section["sources"][number]["about"].get(MEMORY, "") for number in sorted(timed)]
    return list(dict.fromkeys(words for words in said if words.startswith(ABSENT)))


def _notes(section: Mapping[str, Any]) -> list[str]:
    """Return what to compare figures below the real driver with, and what these do not tell; each once."""
    said = [source["about"] for source in section["sources"] if not source["problem"]]
    found = [f"{words}: {about[key]}" for about in said for key, words in NOTES.items() if key in about]
    return list(dict.fromkeys(found))


def _skipped(section: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what was not measured, and why; one line for several tests with the same reason."""
    found: dict[tuple[str, str], None] = {}
    for entry in (entry for source in section["sources"] for entry in source["skipped"]):
        direction = cpu_words.DIRECTIONS.get(entry["direction"], entry["direction"])
        named = " ".join(filter(None, (entry["workload"], direction)))
        what = ", ".join(filter(None, (named, ARMS.get(entry["arm"], entry["arm"]))))
        found[what, entry["reason"] or "no reason given"] = None
    return list(found)


def pair(setting: Mapping[str, Any], arm: str, side: str = "") -> Mapping[str, Any] | None:
    """Return how an arm compares with software kTLS in a setting, on one side; None for what does not."""
    for found in setting["compared"]:
        if (found["base"], found["arm"], found.get("side", "")) == ("sw", arm, side):
            return dict(found)
    return None


def held(words: str) -> str:
    """Return words in which a percent sign parts neither from its number nor from what it says."""
    return words.replace(" %", "\u00a0%").replace("% less", "%\u00a0less").replace("% more", "%\u00a0more")


FILTERS = {"held": held, "figure": figure, "ends": cpu_words.ends, "setting": cpu_words.label, "pair": pair}
