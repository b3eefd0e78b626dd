"""What was judged by what: profile, tests, source and kernel of a run, as its events name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from offload.suite.report.events import Log

NOT_KNOWN = "not known"
DISK = {"image": "kernel image", "modules": "kernel modules", "driver": "kernel driver"}
RUNNING = {
    "running": "running kernel (build id)",
    "running_driver": "running driver (build id)",
    "version": "running kernel (SHA-256 of /proc/version)",
}
HEX = re.compile(r"[0-9a-f]{64}\Z")


class Shipped(StrEnum):
    """Whether a profile is one of those that the project ships, as the checkout's commit has them."""

    YES = "yes"
    ALTERED = "altered"  # the id of a shipped one, and other content
    FOREIGN = "foreign"
    UNKNOWN = "unknown"  # no git here that could tell


def remark(log: Log, name: str) -> str:
    """Return what headline and title say of the profile; empty if it is a shipped one, or not told."""
    judged = _last(log, "judged")
    return _words(judged, name) if judged else ""


def section(log: Log, name: str) -> dict[str, Any] | None:
    """Return the section of the report; None for a run that did not say. Hostile values become empty."""
    judged, booted = _last(log, "judged"), _last(log, "booted")
    if judged is None:
        return None
    kernel = {key: _text(booted.get(key)) for key in _keys(booted)} if booted else None
    return {
        "profile": {
            "sha256": _digest(judged["profile"].get("sha256")),
            "shipped": _shipped(judged).value,
            "remark": _words(judged, name),
        },
        "tests": {str(path): _digest(value) for path, value in sorted(judged["tests"].items())},
        "commit": judged["commit"][:64],
        "dirty": judged["dirty"],
        "kernel": kernel,
    }


def rows(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the section for a person: part and digest, or what is known instead of one."""
    judged = document.get("judged")
    if judged is None:
        return []
    profile, kernel = judged["profile"], judged["kernel"] or {"checked": "not known: booted before this run"}
    about = profile["remark"] or "the shipped one"
    changed = ", with changes that are not committed" if judged["dirty"] else ""
    return [
        ("profile", f"{profile['sha256']} ({about})"),
        *((name, value or NOT_KNOWN) for name, value in judged["tests"].items()),
        ("commit", f"{judged['commit'] or NOT_KNOWN}{changed}"),
        ("kernel", f"{kernel.get('kernel', '')} ({kernel['checked']})".strip()),
        *(
            (words, kernel[name] or NOT_KNOWN)
            for name, words in {**DISK, **RUNNING}.items()
            if name in kernel
        ),
    ]


def _keys(booted: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the facts about a kernel: what a lab booted, or what runs on a real host."""
    running = tuple(RUNNING) if any(name in booted for name in RUNNING) else ()
    return ("kernel", "checked", *DISK, *running)


def _last(log: Log, kind: str) -> Mapping[str, Any] | None:
    found = [event for event in log.events if event["event"] == kind]
    return found[-1] if found else None


def _shipped(judged: Mapping[str, Any]) -> Shipped:
    try:
        return Shipped(judged["profile"].get("shipped"))
    except ValueError:
        return Shipped.UNKNOWN


def _words(judged: Mapping[str, Any], name: str) -> str:
    """Return the remark in words; `name`: what the profile that was used calls the card."""
    of = _text(judged["profile"].get("of")) or name
    return {
        Shipped.YES: "",
        Shipped.ALTERED: f"not the shipped profile of {of}",
        Shipped.FOREIGN: "not a shipped profile",
        Shipped.UNKNOWN: "no evidence that the profile is a shipped one",
    }[_shipped(judged)]


def _text(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""


def _digest(value: Any) -> str:
    return value if isinstance(value, str) and HEX.match(value) else ""
