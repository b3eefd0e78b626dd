"""The run as a submission to KCIDB, the database of kernel test results: each promise, then each test."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from offload.suite.report.forms import cases
from offload.suite.report.forms.cases import Case

# Rules: schema v5.3 of kcidb-io 141. A limitation passes, with its message as the comment.
ORIGIN = "ktls_offload"
VERSION = {"major": 5, "minor": 3}
STATUS = {"pass": "PASS", "fail": "FAIL", "xfail": "PASS", "skip": "SKIP", "error": "ERROR"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\Z")
LONGEST = 16 << 10  # characters of a log's excerpt


def document(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree of a submission: the kernel as checkout and build, and the results."""
    kernel = cases.clean(report["kernel"]) or "not known"
    package = cases.clean(report["rig"].get("kernel-package", ""))
    build = f"{ORIGIN}:{kernel}" + (f":{package}" if package else "")
    source = {"id": build, "origin": ORIGIN, "comment": f"kernel {kernel} {package}".strip()}
    results = [*cases.promises(report), *cases.tests(report)]
    return {
        "version": VERSION,
        "checkouts": [source | {"valid": True}],
        "builds": [source | {"checkout_id": build, "status": "PASS"}],
        "tests": [_test(number, case, build, report) for number, case in enumerate(results)],
    }


def _test(number: int, case: Case, build: str, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return one result; its id is that of the events and its place among the results."""
    started = {"start_time": report["started"]} if TIME.match(report["started"]) else {}
    excerpt = {"log_excerpt": case.details[-LONGEST:]} if case.details else {}
    return {
        "id": f"{ORIGIN}:{report['digests']['events']}:{number}",
        "origin": ORIGIN,
        "build_id": build,
        "path": _path(case),
        "comment": f"{case.name}: {case.reason}" if case.reason else case.name,
        "status": STATUS[case.outcome],
        "duration": case.seconds,
        "environment": {"comment": cases.title(report), "misc": _about(report)},
        "misc": {"blocker": case.blocker, "verdict": report["verdict"], "simulated": report["simulated"]},
        **started,
        **excerpt,
    }


def _about(report: Mapping[str, Any]) -> dict[str, Any]:
    rig = {cases.clean(name): cases.clean(value) for name, value in report["rig"].items()}
    return {"card": cases.clean(report["card"]["name"]), "simulated": report["simulated"], "rig": rig}


def _path(case: Case) -> str:
    """Return `ktls_offload.promise.payload.tx`; what a path may not hold becomes an underscore."""
    promise = case.group in ("promise", "verdict")
    name = case.name if promise else re.sub(r"\.py::", ".", case.name).partition("[")[0]
    parts = [ORIGIN, case.group if promise else "test", *name.split(".")]
    return ".".join(re.sub(r"[^a-zA-Z0-9_-]", "_", part) or "_" for part in parts)
