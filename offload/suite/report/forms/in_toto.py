"""The run as an in-toto statement of type test-result: which files say so, by digest, and what they say."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from offload.suite.report.forms import cases
from offload.suite.report.render.render import canonical

STATEMENT = "https://in-toto.io/Statement/v1"
# in-toto/attestation, spec/predicates/test-result.md, version 0.1.0
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
RESULTS = {"certified": "PASSED", "certified with limitations": "WARNED"}  # all else: FAILED


def statement(document: Mapping[str, Any], subjects: Mapping[str, str]) -> dict[str, Any]:
    """Return the statement; `subjects` is the SHA-256 by name of every file of the run.

    The format has no list for skipped tests: they stand in the extension field `ktlsOffloadSkippedTests`.
    """
    promises = cases.promises(document)[:-1]
    found = [
        *((f"promise {case.name}", case.outcome) for case in promises),
        *((f"{case.group}: {case.name}", case.outcome) for case in cases.tests(document)),
    ]
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": subjects[name]}} for name in sorted(subjects)],
        "predicateType": PREDICATE,
        "predicate": {
            "result": RESULTS.get(document["verdict"], "FAILED"),
            "configuration": _configuration(document),
            "passedTests": [name for name, word in found if word == "pass"],
            "warnedTests": [name for name, word in found if word == "xfail"],
            "failedTests": [name for name, word in found if word in ("fail", "error")],
            "ktlsOffloadSkippedTests": [name for name, word in found if word == "skip"],
            "ktlsOffloadVerdict": document["verdict"],
        },
    }


def _configuration(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the result was judged by, and what the tests ran on, as resource descriptors."""
    names = ("profile", "card", "kernel", "rig", "simulated", "judged")
    rig = canonical({key: document[key] for key in names if key in document})
    return [
        {"name": "criteria.yaml", "digest": {"sha256": document["digests"]["criteria"]}},
        {
            "name": "rig.json",
            "mediaType": "application/json",
            "content": base64.b64encode(rig).decode(),
            "digest": {"sha256": hashlib.sha256(rig).hexdigest()},
        },
    ]
