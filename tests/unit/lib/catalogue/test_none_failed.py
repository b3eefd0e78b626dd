"""The gate of a good card: one failed test is red, whatever the verdict."""

import json
from pathlib import Path

import pytest

from tests.lib.catalogue import none_failed


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [(["pass", "skip", "xfail"], 0), (["pass", "fail"], 1), (["pass", "error"], 1), (["skip"], 1)],
)
def test_a_test_that_failed_is_red(
    outcomes: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make test` goes red when certify forgives a failed test of a good card."""
    tests = [{"id": f"t{n}", "outcome": word, "reason": "why"} for n, word in enumerate(outcomes)]
    (tmp_path / "report.json").write_text(json.dumps({"tests": tests}))
    assert none_failed.main(str(tmp_path)) == code
    assert ("t1: why" in capsys.readouterr().out) == (code == 1 and "pass" in outcomes)
