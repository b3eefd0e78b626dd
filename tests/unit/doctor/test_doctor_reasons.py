"""The file of reasons: sound, whole on its page, and each condition made for real or recorded."""

from __future__ import annotations

import re

from offload.doctor.page import page
from offload.doctor.reasons import FILE, LEVELS, load
from tests.unit.doctor.fake_apps import APP_CASES
from tests.unit.doctor.fake_process import PID_CASES
from tests.unit.doctor.test_doctor import CASES


def test_every_code_has_a_case_and_a_section() -> None:
    cases = [*CASES, *APP_CASES, *PID_CASES]
    assert sorted(cases) == sorted(load()), "each code has one case, here or there"
    assert page() == (FILE.parents[2] / "docs/reference/reasons.md").read_text(), (
        "python -m offload.doctor.page"
    )


def test_reason_file_is_sound() -> None:
    """Codes are D and three digits, in order; names are unique; each says how it is tested."""
    reasons = list(load().values())
    assert [r.code for r in reasons] == sorted(r.code for r in reasons)
    assert len({r.name for r in reasons}) == len(reasons)
    for reason in reasons:
        assert reason.code[0] == "D" and reason.code[1:].isdigit() and len(reason.code) == 4
        assert reason.level in LEVELS and reason.test.startswith(("for real: ", "recorded: "))


def test_a_claim_of_a_real_test_has_one() -> None:
    """A code whose condition is said to be made for real is named in a test of the lab."""
    tests = FILE.parents[2] / "tests"
    numbers = ("11_doctor", "13_ls", "60_apps", "61_apps")
    lab = "".join(p.read_text() for n in numbers for p in sorted(tests.glob(f"[hs]w*/**/test_{n}.py")))
    real = [r.code for r in load().values() if r.test.startswith("for real: ")]
    assert len(real) > 28 and not [code for code in real if f'"{code}"' not in lab]


def test_a_recorded_condition_says_why() -> None:
    """A code that no lab makes for real says why not, and has a fixture all the same."""
    recorded = [r for r in load().values() if r.test.startswith("recorded: ")]
    known = {*CASES, *APP_CASES, *PID_CASES}
    assert not [r.code for r in recorded if r.code not in known or not re.search(r" \(.+\)$", r.test)]
