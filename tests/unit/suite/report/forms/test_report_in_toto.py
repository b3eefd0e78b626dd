"""The in-toto statement: which bytes it is about, what it claims, and that nothing unproved passes."""

import base64
import hashlib
import json
from pathlib import Path

import jsonschema
import pytest

from offload.suite.report.forms.export import made as export
from offload.suite.report.forms.in_toto import statement
from offload.suite.report.trust.saved import saved
from tests.unit.suite.report import report_whole as made
from tests.unit.suite.report.render.test_report_render import EVIL
from tests.unit.suite.report.render.test_report_render import document as small

# in-toto/attestation: spec/v1/statement.md, spec/v1/resource_descriptor.md, spec/predicates/test-result.md
DIGEST = {"type": "object", "minProperties": 1, "additionalProperties": {"pattern": "^[0-9a-f]{64}$"}}
NAMES = {"type": "array", "items": {"type": "string"}}
SOURCE = {
    "anyOf": [{"required": ["uri"]}, {"required": ["digest"]}, {"required": ["content"]}],
    "properties": {"digest": DIGEST},
}
SUBJECT = {"type": "object", "required": ["digest", "name"], "properties": {"digest": DIGEST}}
PREDICATE = {
    "required": ["result", "configuration"],
    "properties": {
        "result": {"enum": ["PASSED", "WARNED", "FAILED"]},
        "configuration": {"type": "array", "minItems": 1, "items": SOURCE},
        "passedTests": NAMES,
        "warnedTests": NAMES,
        "failedTests": NAMES,
    },
}
RULES = {
    "required": ["_type", "subject", "predicateType", "predicate"],
    "properties": {
        "_type": {"const": "https://in-toto.io/Statement/v1"},
        "subject": {"type": "array", "minItems": 1, "items": SUBJECT},
        "predicateType": {"const": "https://in-toto.io/attestation/test-result/v0.1"},
        "predicate": PREDICATE,
    },
}
FILES = {"report.json": "a" * 64, "events.jsonl": "b" * 64}


@pytest.mark.parametrize(
    ("worst", "result"),
    [("pass", "PASSED"), ("xfail", "WARNED"), ("fail", "FAILED"), ("skip", "FAILED"), ("error", "FAILED")],
)
def test_statement_claims_what_was_proved(worst: str, result: str) -> None:
    """Only a certificate passes, and each test is in the list of its outcome."""
    tree = statement(made.document(worst=worst), FILES)
    jsonschema.validate(tree, RULES)
    claim = tree["predicate"]
    assert claim["result"] == result
    lists = {"pass": "passedTests", "xfail": "warnedTests", "skip": "ktlsOffloadSkippedTests"}
    name = "payload.tx: test_payload.tx[0]"
    for key in ("passedTests", "warnedTests", "failedTests", "ktlsOffloadSkippedTests"):
        assert (name in claim[key]) is (key == lists.get(worst, "failedTests"))
    assert ("promise payload.tx" in claim["failedTests"]) is (worst in ("fail", "skip", "error"))


def test_configuration_can_be_checked() -> None:
    """The statement names the criteria by digest, and holds the rig with its own digest."""
    tree = made.document()
    criteria, rig = statement(tree, FILES)["predicate"]["configuration"]
    assert criteria["digest"] == {"sha256": tree["digests"]["criteria"]}
    content = base64.b64decode(rig["content"])
    assert hashlib.sha256(content).hexdigest() == rig["digest"]["sha256"]
    assert json.loads(content)["kernel"] == tree["kernel"] and json.loads(content)["simulated"] is True


def test_subjects_are_the_files_of_the_run(tmp_path: Path) -> None:
    """The statement is about every file of the run, each by its SHA-256."""
    folder = made.folder(tmp_path)
    (folder / "captures").mkdir()
    (folder / "captures/test-wire.pcapng").write_bytes(b"x")
    tree = json.loads(export("in-toto", saved(folder), folder))
    jsonschema.validate(tree, RULES)
    found = {row["name"]: row["digest"]["sha256"] for row in tree["subject"]}
    left = [path for path in folder.rglob("*") if path.is_file()]
    assert found == {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in left
    }
    assert {"report.json", "events.jsonl", "report.ktap", "captures/test-wire.pcapng"} <= found.keys()


def test_any_text_can_be_held() -> None:
    """What a card says is text of the statement and nothing else."""
    jsonschema.validate(json.loads(json.dumps(statement(small("fail", EVIL), FILES))), RULES)
