"""What a former run found, and which of its tests are to be repeated."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.errors import ConfigError
from offload.suite.report.document import rig_of
from offload.suite.report.events import OUTCOMES
from offload.suite.report.events import read as read_events
from offload.suite.report.trust.saved import EVENTS, saved_file

FAILED = ("fail", "error")


@dataclass(frozen=True)
class Former:
    """A former run: `kernel` is its release, `rig` its parts by name, `tests` its results by id."""

    name: str
    sha256: str
    profile: str
    kernel: str
    rig: Mapping[str, str]
    simulated: bool
    tests: Mapping[str, Mapping[str, Any]]


def read(path: Path) -> Former:
    """Read a result: the folder of a run, its events.jsonl or its report.json; ConfigError if it is none."""
    if path.is_dir():
        path = next((path / n for n in (EVENTS, "report.json") if (path / n).is_file()), path / EVENTS)
    return _of_report(path) if path.suffix == ".json" else _of_events(path)


def _of_events(path: Path) -> Former:
    try:
        log = read_events(path)
    except OSError as exc:
        raise ConfigError(
            f"{path}: {exc.strerror}", "name a run's folder (results/<time>), its events.jsonl or report.json"
        ) from None
    wrong = log.problems[: -1 if log.torn else None]  # a run that was killed may end in half a line
    if wrong or not log.events:
        raise ConfigError(f"{path} is not a result: {wrong[0] if wrong else 'there are no events in it'}")
    named = [
        str(e.get("id") or e.get("profile")) for e in log.events if e["event"] in ("profile", "run-start")
    ]
    tests = {str(e["id"]): e for e in log.events if e["event"] == "test"}
    return _former(path, log.sha256, named[0] if named else "", rig_of(log), tests)


def _of_report(path: Path) -> Former:
    document = saved_file(path)
    tests, digests = document.get("tests"), document.get("digests")
    if not isinstance(tests, list) or not all(map(_is_test, tests)) or not isinstance(digests, dict):
        raise ConfigError(f"{path} is not a result: it has no list of tests", "`report recompute` says more")
    found = {str(test["id"]): test for test in tests}
    return _former(path, str(digests.get("events", "")), str(document.get("profile") or ""), document, found)


def _former(
    path: Path, sha256: str, profile: str, rig: Mapping[str, Any], tests: Mapping[str, Mapping[str, Any]]
) -> Former:
    parts = rig.get("rig") if isinstance(rig.get("rig"), Mapping) else {}
    texts = {str(key): str(value) for key, value in (parts or {}).items()}
    name, kernel = path.resolve().parent.name, str(rig.get("kernel") or "")
    return Former(name, sha256, profile, kernel, texts, bool(rig.get("simulated")), tests)


def _is_test(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and found.get("outcome") in OUTCOMES
        and all(isinstance(found.get(key), str) for key in ("id", "reason"))
        and isinstance(found.get("evidence"), dict)
    )


def choose(former: Former, pattern: str = "") -> tuple[str, ...]:
    """Return the ids of the tests to repeat: the failed ones, or those that have `pattern` in their id.

    `*` in the pattern stands for anything; a whole id is that test alone. ConfigError if there are none.
    """
    if pattern in former.tests:
        return (pattern,)
    if not pattern:
        found = tuple(name for name, test in former.tests.items() if test["outcome"] in FAILED)
        if not found:
            raise ConfigError(
                f"no test of {former.name} failed: there is nothing to repeat",
                f"{_counted(former)}; --only PATTERN repeats those with PATTERN in their id",
            )
        return found
    words = re.compile(".*".join(map(re.escape, pattern.split("*"))))
    found = tuple(name for name in former.tests if words.search(name))
    if not found:
        raise ConfigError(
            f"no test of {former.name} has {pattern!r} in its id", "a part of the id as the report shows it"
        )
    return found


def _counted(former: Former) -> str:
    words = Counter(str(test["outcome"]) for test in former.tests.values())
    return ", ".join(f"{words[word]} {word}" for word in OUTCOMES if words[word]) or "it has no results"


def command(folder: str, test: str = "") -> str:
    """Return the command that repeats what failed in a folder, or one test of it, for a shell."""
    return shlex.join(["ktls-offload", "certify", "--replay", folder, *(["--only", test] if test else [])])


def event(former: Former, tests: Iterable[str]) -> dict[str, Any]:
    """Return the fields of the event `replay`: what is repeated, and what it stood on then."""
    rows = [{"id": name, "outcome": former.tests[name]["outcome"]} for name in tests]
    return {
        "of": former.name,
        "sha256": former.sha256,
        "kernel": former.kernel,
        "rig": dict(former.rig),
        "tests": rows,
    }
