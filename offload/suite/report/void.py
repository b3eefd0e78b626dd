"""Why a run says nothing about the NIC: its events are damaged or incomplete, or the rig broke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from offload.suite.report.criteria import Criteria
from offload.suite.report.events import Log
from offload.suite.report.facts import Facts


def why_void(log: Log, criteria: Criteria, facts: Facts) -> list[str]:
    """Return every reason, the worst first; empty for a run that says something."""
    rig = _broken_rig(log.results())
    return [*_unreadable(log, criteria), *_unfinished(log), *rig, *_inconsistent(log, facts)]


def _unreadable(log: Log, criteria: Criteria) -> list[str]:
    """Return what is wrong with the events as a file: bad lines, holes in the numbering, unknown promises."""
    found = [f"events: {problem}" for problem in log.problems]
    for wanted, event in enumerate(log.events):
        if event.get("seq") != wanted:
            found.append(f"events: number {wanted} is missing (found {event.get('seq')!r:.20})")
            break
    used = {
        str(event["promise"]) for event in log.events if event["event"] == "test" and event.get("promise")
    }
    return found + [f"events: unknown promise {name!r:.60}" for name in sorted(used - set(criteria.promises))]


def _unfinished(log: Log) -> list[str]:
    """Return why the run cannot have come to its end."""
    found = [f"stopped: {event.get('reason')}" for event in log.events if event["event"] == "abort"]
    kinds = Counter(event["event"] for event in log.events)
    if kinds["run-start"] == 0:
        found.append("the tests did not start")
    elif kinds["run-end"] == 0:
        found.append("the run did not finish" + _running(log))
    elif kinds["plan"] == 0:
        found.append("the plan of tests is missing")
    if kinds["run-start"] > 1 or kinds["run-end"] > 1 or kinds["plan"] > 1:
        found.append("the events belong to more than one run")
    return found


def _running(log: Log) -> str:
    """Name the test that was running when everything stopped."""
    last = [event for event in log.events if event["event"] in ("progress", "test")][-1:]
    return f" (during {last[0].get('id')})" if last and last[0]["event"] == "progress" else ""


def _broken_rig(tests: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"the rig broke in {test['id']}: {test['reason']}" for test in tests if test["outcome"] == "error"
    ]


def _inconsistent(log: Log, facts: Facts) -> list[str]:
    """Return where the events contradict each other; a report on such a run would be worth nothing."""
    found = []
    words = Counter(event["outcome"] for event in log.events if event["event"] == "test")
    ids = Counter(event["id"] for event in log.events if event["event"] == "test")
    found += [f"{name} has {count} results" for name, count in ids.items() if count > 1]
    for event in log.events:
        if event["event"] == "run-end" and event["exit"] not in (0, 1, 5):
            found.append(f"pytest ended with exit code {event['exit']}")
        if (
            event["event"] == "run-end"
            and event["exit"] == 1
            and words["pass"]
            and not words["fail"] + words["error"]
        ):
            found.append("pytest ended with exit code 1, but no test failed")
        if event["event"] in ("run-start", "rig") and event["profile"] not in ("", facts.id):
            found.append(f"the tests used profile {event['profile']!r}, but the verdict is for {facts.id!r}")
    return found
