"""The run as submission.json of Checkbox: each promise, then each test, as one result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from offload.suite.report.forms import cases
from offload.suite.report.forms.cases import Case
from offload.suite.report.verdict import Gap

# Rules: canonical/checkbox, submission-schema/schema.json at bda305fa (2026-08-21): additionalProperties is
# false there, so only keys that it names (`skip_reason`, which their exporter writes, is none), and
# `resource-results`, which it requires but names no more.
SPACE = "com.github.ktls-offload"
OUTCOMES = {"pass": "pass", "fail": "fail", "xfail": "pass", "skip": "skip", "error": "crash"}
CATEGORIES = {"promises": "Promises of the card", "tests": "Tests of the promises"}


def submission(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree of submission.json. A limitation passes, with its message as the comment."""
    version, asked = document["tool"]["version"], document["promises"]
    packaging = {"type": "source", "name": "ktls-offload", "version": version}
    return {
        "title": f"TLS offload of {cases.title(document)}: {document['verdict']}",
        "description": cases.clean(document["headline"]),
        "testplan_id": f"{SPACE}::certify",
        "custom_joblist": any(promise.get("gap") == Gap.LEFT_OUT for promise in asked),
        "origin": {"name": "ktls-offload", "version": version, "packaging": packaging},
        "kernel": cases.clean(document["kernel"]),
        "results": [
            *(_result("promises", case) for case in cases.promises(document)),
            *(_result("tests", case) for case in cases.tests(document)),
        ],
        "resource-results": [],
        "attachment-results": [],
        "rejected-jobs": [],
        "category_map": {f"{SPACE}::{name}": words for name, words in CATEGORIES.items()},
    }


def _result(category: str, case: Case) -> dict[str, Any]:
    name = f"{case.group}/{case.name}"
    return {
        "id": name,
        "full_id": f"{SPACE}::{name}",
        "name": case.name,
        "certification_status": "blocker" if case.blocker else "non-blocker",
        "category": CATEGORIES[category],
        "category_id": f"{SPACE}::{category}",
        "status": OUTCOMES[case.outcome],
        "outcome": OUTCOMES[case.outcome],
        "comments": case.reason or None,
        "io_log": case.details,
        "type": "test",
        "project": "certification",
        "duration": case.seconds,
        "plugin": "shell",
        "template_id": None,
    }
