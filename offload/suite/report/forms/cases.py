"""A run as a flat list of results that other tools can read: first each promise, then each test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CERTIFIED = ("certified", "certified with limitations")
# State of a promise -> outcome. What blocks the certificate and is not proved must not look like a skip:
# a reader that knows only these words would take an incomplete run for a good one.
STATES = {"kept": "pass", "limited": "xfail", "broken": "fail"}


@dataclass(frozen=True)
class Case:
    """One result: `group` is its promise, `outcome` one of events.OUTCOMES, `blocker` its promise's."""

    group: str
    name: str
    outcome: str
    reason: str
    details: str
    seconds: float
    blocker: bool

    @property
    def bad(self) -> bool:
        """Say whether a reader must see it as a failure."""
        return self.outcome in ("fail", "error")


def good(document: Mapping[str, Any]) -> bool:
    """Say whether the verdict is a certificate."""
    return document["verdict"] in CERTIFIED


def title(document: Mapping[str, Any]) -> str:
    """Return what was tested, in one line."""
    mark = "SIMULATED " if document["simulated"] else ""
    remark = document.get("judged", {}).get("profile", {}).get("remark", "")
    by = f" ({remark})" if remark else ""
    return clean(f"{mark}{document['card']['name']}, kernel {document['kernel'] or 'not known'}{by}")


def promises(document: Mapping[str, Any]) -> list[Case]:
    """Return every promise that was asked, and as the last case the verdict."""
    found = [_promise(p) for p in document["promises"] if p["state"] != "not promised"]
    outcome = "pass" if good(document) else "error" if document["verdict"] == "void" else "fail"
    reason = "" if good(document) else f"{document['verdict']}: {document['headline']}"
    details = cleaned("\n".join(map(str, document["reasons"])))
    return [*found, Case("verdict", "certified", outcome, clean(reason), details, 0.0, True)]


def _promise(promise: Mapping[str, Any]) -> Case:
    state = promise["state"]
    blocks = promise["blocker"] and (state != "not proved" or promise.get("unproved", "blocks") == "blocks")
    outcome = STATES.get(state) or ("fail" if blocks else "skip")
    reason = "" if state == "kept" else f"{state}: {promise['reason']}"
    return Case("promise", promise["id"], outcome, clean(reason), "", 0.0, promise["blocker"])


def tests(document: Mapping[str, Any]) -> list[Case]:
    """Return every test in the order of the run; one of no promise blocks, as in the verdict."""
    blockers = {promise["id"]: promise["blocker"] for promise in document["promises"]}
    return [
        Case(
            clean(test["promise"] or "no promise"),
            clean(test["id"].rsplit("/", 1)[-1]),
            test["outcome"],
            clean(test["reason"]),
            cleaned(test["details"]),
            test["seconds"],
            blockers.get(test["promise"], True),
        )
        for test in document["tests"]
    ]


def cleaned(text: object) -> str:
    """Return text of several lines without any other control character, nor one that turns a line round."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in str(text))


def clean(text: object) -> str:
    """Return text as one line without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
