"""The run for KCIDB: kcidb-io itself takes it, and no run that is not good looks so."""

from __future__ import annotations

import json

import kcidb_io
import pytest

from offload.suite.report.forms.kcidb import LONGEST, document
from tests.unit.suite.report import report_whole as made
from tests.unit.suite.report.render.test_report_render import EVIL
from tests.unit.suite.report.render.test_report_render import document as small

SCHEMA = kcidb_io.schema.V5_3


@pytest.mark.parametrize("worst", ["pass", "fail", "xfail", "skip", "error"])
def test_kcidb_takes_it(worst: str) -> None:
    """Every kind of run is a valid submission of version 5.3, also when everything in it is hostile."""
    for tree in (made.document(worst=worst), small(worst, EVIL)):
        found = json.loads(json.dumps(document(tree)))
        SCHEMA.validate(found)
        ids = [test["id"] for test in found["tests"]]
        assert len(set(ids)) == len(ids) and {test["build_id"] for test in found["tests"]} == {
            build["id"] for build in found["builds"]
        }


def test_validator_refuses() -> None:
    """The validator itself goes red for a path that KCIDB does not know."""
    found = document(made.document())
    found["tests"][0]["path"] = "a b"
    with pytest.raises(Exception, match="a b"):
        SCHEMA.validate(found)


@pytest.mark.parametrize("worst", ["pass", "fail", "xfail", "skip", "error"])
def test_only_a_certificate_looks_good(worst: str) -> None:
    """All statuses are PASS or SKIP only for a certified run, and the verdict is a result of its own."""
    tree = made.document(worst=worst)
    found = {test["path"]: test for test in document(tree)["tests"]}
    assert found["ktls_offload.promise.payload.tx"]["misc"]["simulated"] is True
    verdict = found["ktls_offload.verdict.certified"]["status"]
    good = tree["verdict"] in ("certified", "certified with limitations")
    assert (verdict == "PASS") is good
    assert ({test["status"] for test in found.values()} <= {"PASS", "SKIP"}) is good


def test_long_log_is_cut_at_its_beginning() -> None:
    """Of a long log the end is kept, where the error stands."""
    tree = small("fail")
    tree["tests"][0]["details"] = "x" * LONGEST + "the error"
    excerpt = document(tree)["tests"][-1]["log_excerpt"]
    assert excerpt.endswith("the error") and len(excerpt) == LONGEST
