"""Did every test of a result pass? A good card's must: its verdict would forgive optional promises.

usage: python -m tests.lib.catalogue.none_failed results/TIME     exit code 1: a test failed, or none passed
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def failed(report: Mapping[str, Any]) -> list[str]:
    """The tests of a report that neither passed nor were skipped nor failed as their profile foretold."""
    bad = [test for test in report["tests"] if test["outcome"] in ("fail", "error")]
    return [f"{test['outcome']}: {test['id']}: {test['reason']}" for test in bad]


def main(folder: str) -> int:
    """Print what failed."""
    report = json.loads((Path(folder) / "report.json").read_text())
    bad = failed(report)
    passed = sum(test["outcome"] == "pass" for test in report["tests"])
    lines = [*bad, f"{folder}: {passed} passed, {len(bad)} failed of {len(report['tests'])}"]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if bad or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
