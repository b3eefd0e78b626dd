"""A test that killed a machine is known in the next run, until a person says to retry."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from offload.errors import ConfigError
from offload.suite.bench.lab.attempts import Attempts
from tests.unit.suite.bench.lab.test_lab_file import ROOT, written


def test_attempts(tmp_path: Path) -> None:
    """A test that never ended is known after a crash, even one that tore the last line."""
    path = tmp_path / "state" / "attempts"
    first = Attempts(path)
    first.begin("good", "T1")
    first.end("good")
    first.begin("killer", "T2")
    assert Attempts(path).lost == {"killer": "T2"}
    path.write_bytes(path.read_bytes() + b'{"beg')
    again = Attempts(path)
    assert again.lost == {"killer": "T2"}
    again.begin("next", "T3")
    assert Attempts(path).lost == {"killer": "T2", "next": "T3"}
    again.forget("killer")
    assert Attempts(path).lost == {"next": "T3"}
    with pytest.raises(ConfigError, match="not a list of attempts"):
        Attempts(written(tmp_path, "a\nb\n", "other"))


def test_a_test_that_killed_a_machine_is_left_alone(tmp_path: Path, warm_python: str) -> None:
    """A test under which the run died is an error in the next one, until --retry is given."""
    body = "import os\ndef test_a(): pass\ndef test_b(): 'FIXED' in os.environ or os._exit(3)\n"
    written(tmp_path, body, "test_it.py")
    argv = [warm_python, "-m", "pytest", "-q", "-p", "tests.lib.rig.attempts", "-p", "no:cacheprovider"]

    def run(*more: str, **env: str) -> str:
        full = {**os.environ, "PYTHONPATH": str(ROOT), **env}
        words = [*argv, "--attempts", "tried", *more]
        return subprocess.run(words, cwd=tmp_path, env=full, capture_output=True, text=True).stdout

    run()
    begun = [json.loads(line) for line in (tmp_path / "tried").read_text().splitlines()]
    assert begun[-1]["begun"].endswith("test_b")
    said = run()
    assert "1 passed, 1 error" in said and "never ended: bench or runner died under it; not run again" in said
    assert "2 passed" in run("--retry", FIXED="1")
    assert "2 passed" in run(FIXED="1")


DYING = """
import pytest, types
from offload.errors import RigError
dead = []

class Host:
    def run(self, argv, **more):
        if dead:
            raise RigError("the connection is gone")
        return types.SimpleNamespace(rc=0)

@pytest.fixture
def rig():
    end = types.SimpleNamespace(host=Host())
    lab = types.SimpleNamespace(FATE)
    return types.SimpleNamespace(lab=lab, bench=types.SimpleNamespace(dut=end, peer=end))

def test_a(rig): assert 0
def test_b(rig): dead.append(1); raise RigError("the connection is gone")
def test_c(rig): raise RigError("the connection is gone")
"""


@pytest.mark.parametrize(
    "fate, why",
    [
        ("", "it does not answer any more"),
        ("fate=lambda: 'dut rebooted during the test'", "dut rebooted during the test"),
        ("fate=lambda: ''", None),
    ],
)
def test_a_test_under_which_a_host_died_is_known(
    tmp_path: Path, fate: str, why: str | None, warm_python: str
) -> None:
    """A failed test is tried again, and one whose connection was lost; one that took its host
    along is not, with the reason; and no later one is blamed."""
    written(tmp_path, DYING.replace("FATE", fate), "test_it.py")
    argv = [warm_python, "-m", "pytest", "-q", "-p", "tests.lib.rig.attempts", "-p", "no:cacheprovider"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*argv, "--attempts", "tried"], cwd=tmp_path, env=env, capture_output=True)
    found, killer = Attempts(tmp_path / "tried"), "test_it.py::test_b"
    assert (list(found.lost), found.why) == (([killer], {killer: why}) if why else ([], {}))
    again = subprocess.run(
        [*argv, "--attempts", "tried"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert (f"never ended: {why}; not run again" in again.stdout) == bool(why), again.stdout
