"""submission.json as Checkbox wants it: its public schema's rules, and outcomes that say the same."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from offload.suite.report.forms.checkbox import submission
from tests.unit.suite.report import report_whole as made
from tests.unit.suite.report.render.test_report_render import EVIL
from tests.unit.suite.report.render.test_report_render import document as small

# The rules of canonical/checkbox, submission-schema/schema.json (bda305fa), for what we write. The schema is
# GPL-3 and stays where it is: CHECKBOX_SCHEMA=FILE checks against a copy of it.
TEXT = {"type": "string"}
NAME = ["name", "version", "packaging"]
RESULT = {
    "id": TEXT,
    "full_id": TEXT,
    "name": TEXT,
    "certification_status": {"enum": ["blocker", "non-blocker"]},
    "category": TEXT,
    "category_id": TEXT,
    "status": {"enum": ["pass", "fail", "not-supported", "crash", "skip", "undecided"]},
    "outcome": {"enum": ["pass", "fail", "not-supported", "crash", "skip", "undecided"]},
    "comments": {"type": ["string", "null"]},
    "io_log": TEXT,
    "duration": {"type": "number"},
    "plugin": {
        "enum": ["shell", "user-interact-verify", "user-interact", "manual", "attachment", "resource"]
    },
    "template_id": {"type": ["string", "null"]},
    "type": {"const": "test"},
    "project": {"const": "certification"},
}
RESULTS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": RESULT,
        "required": sorted(RESULT.keys() - {"type", "project"}),
        "additionalProperties": False,
    },
}
ORIGIN = {"type": "object", "required": NAME, "properties": {"packaging": {"required": ["type", "version"]}}}
WHOLE = {
    "title": TEXT,
    "results": RESULTS,
    "resource-results": RESULTS,
    "attachment-results": RESULTS,
    "rejected-jobs": {"type": "array", "maxItems": 0},
    "category_map": {"type": "object", "additionalProperties": TEXT},
    "custom_joblist": {"type": "boolean"},
}
RULES = {
    "type": "object",
    "required": sorted(WHOLE),
    "additionalProperties": False,
    "properties": WHOLE | {"description": TEXT, "testplan_id": TEXT, "kernel": TEXT, "origin": ORIGIN},
}


@pytest.mark.parametrize("worst", ["pass", "fail", "xfail", "skip", "error"])
def test_submission_keeps_the_rules(worst: str) -> None:
    """submission.json has every key that Checkbox wants, and none that it does not know."""
    tree = submission(made.document(worst=worst))
    jsonschema.validate(tree, RULES)
    assert {row["category_id"] for row in tree["results"]} == tree["category_map"].keys()
    assert len({row["full_id"] for row in tree["results"]}) == len(tree["results"])


@pytest.mark.skipif("CHECKBOX_SCHEMA" not in os.environ, reason="CHECKBOX_SCHEMA names no copy of the schema")
def test_submission_fits_their_own_schema() -> None:
    """submission.json is valid by the schema that Checkbox publishes."""
    schema = json.loads(Path(os.environ["CHECKBOX_SCHEMA"]).read_text())
    whole = schema["definitions"]["Submission"]
    # since their commit 547496b1c nothing is valid: it requires `resource-results` and knows no such key
    whole["properties"].setdefault("resource-results", {"type": "array"})
    for worst in ("pass", "fail", "xfail", "skip", "error"):
        jsonschema.validate(submission(made.document(worst=worst)), schema)
        jsonschema.validate(submission(small(worst, EVIL)), schema)


@pytest.mark.parametrize(
    ("worst", "outcome", "promise"),
    [
        ("fail", "fail", "fail"),
        ("error", "crash", "fail"),
        ("skip", "skip", "fail"),
        ("xfail", "pass", "pass"),
    ],
)
def test_outcomes_say_the_same(worst: str, outcome: str, promise: str) -> None:
    """A portal sees each outcome, which of them block, and what is behind a limitation."""
    rows = {row["id"]: row for row in submission(made.document(worst=worst))["results"]}
    test, kept = rows["payload.tx/test_payload.tx[0]"], rows["promise/payload.tx"]
    assert (test["outcome"], kept["outcome"], kept["certification_status"]) == (outcome, promise, "blocker")
    assert test["comments"] and kept["comments"] and rows["promise/payload.rx"]["comments"] is None
    verdict = rows["verdict/certified"]["outcome"]
    assert verdict == {"xfail": "pass", "error": "crash"}.get(worst, "fail")
    assert {row["certification_status"] for row in rows.values()} == {"blocker", "non-blocker"}


def test_simulated_is_said_first() -> None:
    """No portal can take a simulated card for a real one by its title."""
    assert submission(small())["title"].startswith("TLS offload of SIMULATED ")
    assert "SIMULATED" not in submission(small(simulated=False))["title"]


@pytest.mark.parametrize(
    "broken", [{"template_id": ...}, {"skip_reason": "x"}, {"outcome": "xfail"}, {"duration": "1"}]
)
def test_rules_refuse_what_they_should(broken: dict[str, Any]) -> None:
    """The rules refuse a missing key, an unknown one and an unknown outcome."""
    good: dict[str, Any] = submission(small())
    jsonschema.validate(good, RULES)
    row = good["results"][0] | broken
    bad = {key: value for key, value in row.items() if value is not ...}
    for tree in (good | {"results": [bad]}, {key: good[key] for key in good if key != "title"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(tree, RULES)
