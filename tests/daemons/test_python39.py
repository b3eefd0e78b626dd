"""The operator's verbs under Python 3.9, as RHEL 9 has it, with a PyYAML of its time."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from offload.cli.main import SUITE, VERBS
from tests.lib.rig import python39

ROOT = Path(__file__).parents[2]
# what the operator's verbs are made of; with words of a newer Python in them these tests are red
UNIT = (
    "tests/unit/doctor/test_apps.py",
    "tests/unit/cli/test_cli_json.py",
    "tests/unit/test_cmd.py",
    "tests/unit/connect/test_connect_policy.py",
    "tests/unit/card/test_counters.py",
    "tests/unit/doctor/test_doctor.py",
    "tests/unit/doctor/test_doctor_card.py",
    "tests/unit/doctor/test_doctor_esp.py",
    "tests/unit/doctor/test_doctor_programs.py",
    "tests/unit/doctor/test_doctor_reasons.py",
    "tests/unit/doctor/test_doctor_text.py",
    "tests/unit/doctor/test_doctor_use.py",
    "tests/unit/switch/test_enable.py",
    "tests/unit/switch/test_enable_bond.py",
    "tests/unit/errata/test_errata.py",
    "tests/unit/test_errors.py",
    "tests/unit/switch/test_journal.py",
    "tests/unit/connections/test_ls.py",
    "tests/unit/card/test_nic.py",
    "tests/unit/switch/test_persist.py",
    "tests/unit/probe/test_probe.py",
    "tests/unit/card/test_profile.py",
    "tests/unit/connections/test_sockets.py",
    "tests/unit/switch/test_status.py",
)
SETTINGS = "[pytest]\naddopts = --import-mode=importlib -p no:cacheprovider --confcutdir={0}/tests/unit\n"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program that runs the interpreter, which compiles what it imports once for all these tests."""
    path = python39.had()
    if not path:
        pytest.skip("Python 3.9 is not in the cache: `make fetch` gets it where the mirror has Debian 11")
    done = subprocess.run(
        [path, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True
    )
    assert done.stdout == "(3, 9)\n", done.stderr
    folder = tmp_path_factory.mktemp("python39")
    program = folder / "python3"
    program.write_text(f'#!/bin/sh\nPYTHONPYCACHEPREFIX={folder} exec {path} "$@"\n')
    program.chmod(0o755)
    return str(program)


def call(python: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it in the checkout, with nothing of our own Python in its environment."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
    }
    return subprocess.run([python, *words], capture_output=True, text=True, env=env, cwd=ROOT)


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_each_verb_opens_or_says_what_it_needs(python: str, verb: str) -> None:
    """On Python 3.9 an operator's verb shows its help; one of the suite says what it needs."""
    done = call(python, "-m", "offload", verb, "--help")
    if verb in SUITE:
        assert done.returncode == 2 and "needs Python 3.11 or newer; this is 3.9" in done.stderr
    else:
        assert done.returncode == 0 and f"usage: ktls-offload {verb}" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (["doctor", "lo", "--json"], (10, 11, 12)),
        (["status", "--json"], (0,)),
        (["ls", "--here", "--json"], (0,)),
        (["restore", "--dry-run", "--json"], (0,)),
        (["enable", "lo", "--json"], (5,)),
    ],
)
def test_they_answer(python: str, words: list[str], codes: tuple[int, ...]) -> None:
    """The operator's verbs look at this host on Python 3.9 and answer with a document."""
    done = call(python, "-m", "offload", *words)
    assert done.returncode in codes and json.loads(done.stdout)["schema"] == 1, done.stdout + done.stderr


def test_completion_and_apps(python: str) -> None:
    """The shell's script and the reading of a server's configuration work on Python 3.9."""
    assert "complete -F" in call(python, "-m", "offload", "completion", "bash").stdout
    assert "Traceback" not in call(python, "-m", "offload", "doctor", "--app", "openssl").stderr


def test_unit_tests_pass(python: str, tmp_path: Path) -> None:
    """A thousand unit tests of the operator's verbs pass on Python 3.9."""
    settings = tmp_path / "pytest.ini"
    settings.write_text(SETTINGS.format(ROOT))
    words = ["-q", "-c", str(settings), "--rootdir", str(ROOT), "-W", "error", *UNIT]
    done = call(python, "-m", "pytest", *words)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) > 900, done.stdout[-300:]
