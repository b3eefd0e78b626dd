"""A setting of the measurement in words, as short as the report's other settings allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from offload.suite.measure.cpu.published import published
from offload.suite.report.cpu.rows import SIDES
from offload.suite.report.render.svg import figure, size

DIRECTIONS = {"tx": "Tx", "rx": "Rx", "both": "both ways"}
ARTIFACT = "ConnectX-6 Dx, ASPLOS\u201921 artifact"
OFF = {"": "TSO, GSO, GRO off", "soft": "TSO off", "gso": "TSO, GRO off", "gro": "TSO, GSO off"}
MARK = "SIMULATED: validates the method, says nothing about a card"


def label(setting: Mapping[str, Any], sized: bool = True, counted: bool = True) -> str:
    """Return a setting in one phrase: `nginx Tx, TLS 1.2 aes_gcm_128, 8 connections, 64 KiB`.

    Without its size or its number of connections where a plot shows them on an axis.
    """
    parts = [f"{setting['workload']} {DIRECTIONS.get(setting['direction'], setting['direction'])}"]
    parts += [f"TLS {setting['version']} {setting['cipher']}"] if setting["cipher"] else []
    parts += [connections(setting["streams"])] if counted else []
    parts += [size(setting["size"])] if sized and setting["size"] is not None else []
    parts += ["a connection per request"] if setting["close"] else []
    parts += [] if setting["segmentation"] else [OFF[setting["only"]]]
    return ", ".join(parts)


def connections(count: int) -> str:
    """Return a number of connections in words."""
    return f"{count:,} connection{'s' if count != 1 else ''}"


def measured(section: Mapping[str, Any], setting: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return the head of a plot of what this run measured."""
    return {"title": title, "simulated": is_simulated(section, setting), "published": "", "cite": None}


def cited(title: str, source: str, what: str = ARTIFACT) -> dict[str, Any]:
    """Return the head of a plot of what others published; `source` is an id of cpu_published.toml."""
    cite = published().sources[source]
    return {"title": title, "simulated": False, "published": f"Published: {what}", "cite": cite}


def is_simulated(section: Mapping[str, Any], setting: Mapping[str, Any]) -> bool:
    """Say whether a setting was measured on a simulated card."""
    return bool(section["sources"][setting["source"]]["simulated"])


def ends(spread: Mapping[str, Any]) -> str:
    """Return the interval of a figure: `8.20 to 8.70`; empty without one."""
    return "" if spread["low"] is None else f"{figure(spread['low'])} to {figure(spread['high'])}"


def worth_showing(section: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the settings that say something of a card: times of a simulated one say nothing, counts do."""
    settings = section["settings"]
    return [one for one in settings if one["method"] != "time" or not is_simulated(section, one)]


def summary(section: Mapping[str, Any]) -> list[str]:
    """Return what offload costs of software kTLS, a line per setting and side; what two tests say, once.

    First what says most: what was timed on a card; of a simulated one only what was counted.
    """
    found = []
    for setting in sorted(worth_showing(section), key=lambda one: one["method"] != "time"):
        for pair in setting["compared"]:
            side = f", {SIDES[pair['side']]}" if pair.get("side") else ""
            if (pair["base"], pair["arm"]) == ("sw", "hw"):
                found.append(f"{label(setting)}{side}: {pair['words']}")
    return list(dict.fromkeys(found))
