"""Known limitations: no test of a card names one, and the helper that meets them forgives nothing else."""

import re
import subprocess
from pathlib import Path

import pytest

from offload.card.profile import find, load_all
from offload.card.profile_model import LOG
from tests.unit.suite.report.record.test_report_plugin import play, results

pytest_plugins = "pytester"

ROOT = Path(__file__).resolve().parents[4]
HELPER = ROOT / "tests/lib/rig/limits.py"
LISTED = {profile.id: {limit.test for limit in profile.limitations} for profile in load_all()}
OPTION = """
def pytest_addoption(parser):
    parser.addoption("--profile", default="nicsim.yaml")

@__import__("pytest").fixture
def odd_end():
    pass

@__import__("pytest").hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    result = yield
    assert "odd_end" not in pyfuncitem.funcargs, "and it was not put back"
    return result
"""
LIMIT = """limitations:
  - id: a-limit
    what: "loses its rules"
    test: "tests/test_it.py::test_one"
    expect: "no longer decrypted"
    link: https://docs.kernel.org/
"""


def test_no_test_of_a_card_knows_a_limitation() -> None:
    """Neither the id of a limitation nor an xfail stands in a test of a card, helper aside."""
    ids = [one.id for profile in load_all() for one in (*profile.limitations, *profile.notes)]
    wrong = re.compile("|".join(map(re.escape, [*ids, "xfail", ".limitations"])))
    files = [*ROOT.glob("tests/hw/**/*.py"), *ROOT.glob("tests/lib/**/*.py"), ROOT / "tests/conftest.py"]
    # the catalogue shows outcomes, and runs no test of a card itself
    readers = {HELPER, *ROOT.glob("tests/lib/catalogue/*.py")}
    found = {str(path): wrong.findall(path.read_text()) for path in files if path not in readers}
    assert len(found) > 50 and not {path: words for path, words in found.items() if words}


def test_no_limitation_excuses_plaintext() -> None:
    """A limitation forgives a failure, so plaintext on the wire is never one: it is a note with `warn`."""
    known = [(profile, one) for profile in load_all() for one in profile.limitations]
    assert not [(p.id, one.id) for p, one in known if "plaintext" in f"{one.what} {one.expect}"]
    hazards = {note.id: note.warn for note in find("agilio-nfp").notes}
    assert hazards["nfp-nfdk-plaintext"] == "tx"


@pytest.mark.parametrize("profile", [name for name, tests in LISTED.items() if tests])
def test_a_limitation_names_a_test_that_is_run(profile: str, warm_python: str) -> None:
    """The tests that a profile's limitations name are in a run with this profile."""
    argv = [warm_python, "-m", "pytest", "-q", "--collect-only", "--no-header", "--profile", profile]
    done = subprocess.run([*argv, *LISTED[profile]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and LISTED[profile] <= set(done.stdout.split()), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("body", "outcome", "reason"),
    [
        (
            "assert 0, 'the kernel warned: WARNING: at f.c:1 of_card+0x1'",
            "xfail",
            "a-limit: the kernel warned",
        ),
        ("pass", "pass", ""),
        ("assert 0, 'the kernel log is empty'", "fail", "the kernel log is empty"),
    ],
)
def test_a_warning_may_be_absent(pytester: pytest.Pytester, body: str, outcome: str, reason: str) -> None:
    """The kernel's log has a listed warning only where something provoked it: without it the test passes."""
    listed = LIMIT.replace("tests/test_it.py::test_one", LOG).replace("no longer decrypted", "of_card")
    good = (ROOT / "nic-profiles/nicsim.yaml").read_text()
    (pytester.path / "nicsim.yaml").write_text(good.replace("limitations: []\n", listed))
    (pytester.path / "tests/hw").mkdir(parents=True)
    (pytester.path / "conftest.py").write_text(OPTION)
    where, _, name = LOG.partition("::")
    _, events = play(pytester, f"def {name}(): {body}", "-p", "tests.lib.rig.limits", place=where)
    ((found, why),) = results(events)
    assert found == outcome and why.startswith(reason), (found, why)


@pytest.mark.parametrize(
    ("body", "exit", "outcome", "reason"),
    [
        (
            "def test_one(): assert 0, 'it is No Longer decrypted\\nat all'",
            1,
            "xfail",
            "a-limit: it is No Longer decrypted",
        ),
        (
            "@pytest.mark.parametrize('n', [1])\ndef test_one(n): assert 0, 'no longer decrypted'",
            1,
            "xfail",
            "a-limit: no longer decrypted",
        ),
        ("def test_one(): pass", 1, "fail", "passed, though the profile lists a-limit"),
        ("def test_one(): assert 0, 'a byte differs'", 1, "fail", "a byte differs"),
        ("def test_one(): raise ValueError('no longer decrypted')", 1, "fail", "ValueError: no longer"),
        ("def test_one(): raise RigError('no longer decrypted')", 1, "error", "no longer decrypted"),
        ("def test_one(): pytest.skip('no peer')", 1, "skip", "no peer"),
        ("def test_one(odd_end): assert 0, 'no longer decrypted'", 1, "fail", "and it was not put back"),
        ("def test_one(bad_undo): assert 0, 'no longer decrypted'", 1, "error", "in teardown: undone"),
        ("def test_two(): assert 0, 'no longer decrypted'", 1, "fail", "no longer decrypted"),
        ("def test_two(): pass", 0, "pass", ""),
    ],
)
def test_a_limitation_is_met_as_listed_or_fails(
    pytester: pytest.Pytester, body: str, exit: int, outcome: str, reason: str
) -> None:
    """Only the expected failure of the named test is an xfail; its passing is a failure."""
    good = (ROOT / "nic-profiles/nicsim.yaml").read_text()
    (pytester.path / "nicsim.yaml").write_text(good.replace("limitations: []\n", LIMIT))
    (pytester.path / "tests").mkdir()
    (pytester.path / "conftest.py").write_text(OPTION)
    code, events = play(pytester, body, "-p", "tests.lib.rig.limits", place="tests/test_it.py")
    (found,) = results(events)
    assert (code, found[0]) == (exit, outcome) and found[1].startswith(reason), found
