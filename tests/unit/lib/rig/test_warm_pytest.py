"""The pytest that unit tests start without a start: it does, says and ends as a new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from offload.cmd import wait_until
from tests.unit.conftest import age


def run(python: str, folder: Path, body: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a file of tests there."""
    (folder / "test_it.py").write_text(f"import os, sys, pytest\n{body}\n")
    argv = [
        python,
        "-m",
        "pytest",
        "-q",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "test_it.py",
    ]
    full = {**os.environ, **env}
    return subprocess.run(argv, cwd=folder, env=full, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("def test_a(): pass", 0),
        ("def test_a(): assert sys.argv == 1", 1),
        ("def test_a(: pass", 2),
        ("", 5),
        ("def test_a(): os._exit(3)", 3),
        ("def test_a(): pytest.exit('no', returncode=7)", 7),
        ("def test_a(): raise KeyboardInterrupt", 2),
        ("def test_a(): os.kill(os.getpid(), 9)", -9),
    ],
    ids=["pass", "fail", "unreadable", "nothing", "left", "exit", "interrupt", "killed"],
)
def test_ends_as_a_new_one(tmp_path: Path, warm_python: str, body: str, code: int) -> None:
    """A pytest that was forked ends with the code of a new one, and says the same."""
    forked = run(warm_python, tmp_path, body)
    assert forked.returncode == code, forked.stdout + forked.stderr
    if code == 1:
        said = run(sys.executable, tmp_path, body)
        assert said.stdout.splitlines()[:-1] == forked.stdout.splitlines()[:-1], "but for the seconds"
        assert not said.stderr and not forked.stderr


def test_is_where_and_what_it_was_asked_to_be(tmp_path: Path, warm_python: str) -> None:
    """Folder, environment and path of the modules are those of the call."""
    (tmp_path / "mine.py").write_text("HERE = 1\n")
    body = "import mine\ndef test_a():\n print(os.getcwd(), os.environ.get('WORD'), mine.HERE)\n assert 0"
    assert f"{tmp_path} a=b\nc 1" in run(warm_python, tmp_path, body, WORD="a=b\nc").stdout
    assert f"{tmp_path} None 1" in run(warm_python, tmp_path, body).stdout


def test_is_killed_with_its_stub(tmp_path: Path, warm_python: str) -> None:
    """A pytest whose program is killed does not go on."""
    note = tmp_path / "pid"
    body = "import os, time\ndef test_a():\n open('pid', 'w').write(f'{os.getpid()} ')\n time.sleep(600)\n"
    (tmp_path / "test_it.py").write_text(body)
    with subprocess.Popen([warm_python, "-m", "pytest", "-q"], cwd=tmp_path) as program:
        wait_until(lambda: note.exists() and note.read_text().endswith(" "), 120, "the test to run")
        program.send_signal(signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{note.read_text().strip()}").exists(), 120, "pytest to end")


def test_a_folder_that_another_run_takes_away_is_new(tmp_path: Path) -> None:
    """Two runs that begin and end together do not meet in the shared memory."""
    (kept := tmp_path / "kept").mkdir()
    os.utime(kept, (0, 0))
    assert age(kept) > 3600 and age(tmp_path / "gone") == 0
